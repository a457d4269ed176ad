"""Gaps among people of the same age band or department, in audits of two classes."""

import json

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.direction import RATE_OF
from fairbench.evaluation.findings import GAP, LARGE, NOT_MEASURED, OPEN, PAIR, SMALL
from tests.audits.tables import audit, refusal, written

SAME_AGE = "on average among people of the same band of age"


def aged(rows=4000, *, seed=0, apart=0.0, labels=None):
    """Return people of two sexes: women are younger, and the young are selected rarely.

    Parameters
    ----------
    apart : by how much more often women are selected than men of their age.
    """
    draw = np.random.default_rng(seed)
    sex = draw.choice(["men", "women"], rows)
    young = draw.random(rows) < np.where(sex == "women", 0.8, 0.2)
    age = np.where(young, draw.integers(18, 40, rows), draw.integers(40, 80, rows))
    chance = np.where(young, 0.25, 0.7) + apart * (sex == "women")
    selected = draw.random(rows) < chance
    label = draw.random(rows) < np.where(selected, 0.8, 0.2)
    frame = pd.DataFrame(
        {
            "sex": sex,
            "age": age,
            "department": draw.choice(["law", "sales"], rows),
            "decision": selected.astype(int),
            "label": label.astype(int).astype(str),
        }
    )
    if labels is not None:
        frame.loc[labels:, "label"] = ""
    return frame


def report_of(frame, within=("age:40",), **options):
    asked = {"target": "label", "prediction": "decision", **options}
    return fairbench.audit(frame, groups="sex", within=list(within), **asked)


def by_verdict(report, scope):
    findings = report.findings
    chosen = findings[(findings["about"] == GAP) & (findings["scope"] == scope)]
    return chosen.set_index("measure")["verdict"].to_dict()


def test_what_age_explains_is_large_of_everyone_and_small_among_people_of_one_age():
    report = report_of(aged(40_000))
    assert by_verdict(report, "")["selection rate"] == LARGE
    assert by_verdict(report, SAME_AGE)["selection rate"] == SMALL
    said = " ".join(report.document.verdict.can)
    assert "By sex, the selection rate of men is higher than that of women by more than" in said
    assert "no two groups differ by more than 0.05 in selection rate" in said
    assert f", {SAME_AGE}." in said


def test_a_reversal_is_found_in_both_directions_and_described():
    report = report_of(aged(20_000, apart=0.12))
    findings = report.findings[report.findings["measure"] == "selection rate"]
    groups = findings[findings["about"] == GAP].set_index("scope")["groups"]
    assert groups[""] == "men; women"
    assert groups[SAME_AGE] == "women; men"
    described = [
        item
        for section in report.document.sections
        for block in section.blocks
        for item in getattr(block, "items", ())
        if "Simpson" in str(item)
    ]
    assert described[0].startswith("In these rows the difference in selection rate by sex is")


def test_the_page_has_the_strata_with_weights_that_add_up_to_1():
    frame = aged()
    report = report_of(frame)
    gaps = {gap["metric"]: gap for gap in report.document.data["within"]}
    assert set(gaps) == set(RATE_OF)
    gap = gaps["statistical_parity"]
    assert [row["stratum"] for row in gap["strata"]] == ["under 40", "40 and over"]
    assert sum(row["weight"] for row in gap["strata"]) == pytest.approx(1)
    assert [row["rows"] for row in gap["strata"]] == [
        (frame["age"] < 40).sum(), (frame["age"] >= 40).sum(),
    ]  # fmt: skip
    mean = sum(row["weight"] * row["value"] for row in gap["strata"])
    assert gap["value"] == pytest.approx(mean)
    positives = frame[frame["label"] == "1"]
    weights = [row["weight"] for row in gaps["equal_opportunity"]["strata"]]
    assert weights[0] == pytest.approx((positives["age"] < 40).mean())
    section = next(section for section in report.document.sections if "same band" in section.title)
    assert section.title == "Among people of the same band of age"
    html = report.to_html()
    assert "standardised" in html
    assert "40 and over" in html


def test_rates_that_need_labels_are_of_the_rows_that_have_one():
    report = report_of(aged(3000, labels=600))
    gaps = {gap["metric"]: gap for gap in report.document.data["within"]}
    assert gaps["statistical_parity"]["rows"] == 3000
    assert gaps["accuracy_gap"]["rows"] == 600


def test_several_groups_are_compared_by_pairs_of_their_own_strata():
    draw = np.random.default_rng(0)
    frame = aged(9000)
    frame["sex"] = np.where(draw.random(9000) < 0.3, "other", frame["sex"])
    frame.loc[(frame["sex"] == "other") & (frame["age"] >= 40), "sex"] = "men"
    frame.loc[frame["sex"] == "other", "decision"] = 1
    frame.loc[:4, "sex"] = "rare"
    report = report_of(frame)
    gap = next(
        gap for gap in report.document.data["within"] if gap["metric"] == "statistical_parity"
    )
    assert set(gap["names"]) == {"men", "women", "other"}
    assert list(gap["left_out"]) == ["rare"]
    assert list(gap["alone"]) == ["40 and over"]
    assert gap["covered"] == pytest.approx((frame["age"] < 40).mean())
    notes = " ".join(report.document.notes)
    assert "sex within age: left out of one gap or more for too few rows" in notes
    assert "where a group has no rows, it is not compared (40 and over)" in notes
    findings = report.findings
    pairs = findings[(findings["about"] == PAIR) & (findings["scope"] == SAME_AGE)]
    named = findings[(findings["about"] == GAP) & (findings["scope"] == SAME_AGE)]
    assert named.set_index("measure").loc["selection rate", "groups"].startswith("other; ")
    assert (pairs["value"] > 0).all()


def test_groups_that_never_meet_are_not_measured_and_the_page_says_why():
    frame = aged(600)
    frame["age"] = np.where(frame["sex"] == "men", 30, 60)
    report = report_of(frame)
    assert set(by_verdict(report, SAME_AGE).values()) == {NOT_MEASURED}
    said = " ".join(report.document.verdict.cannot)
    assert "no two have enough rows among people of the same band of age" in said
    assert report._repr_html_()


def test_columns_together_make_strata_and_the_command_takes_bands(tmp_path, capsys):
    path = written(aged(1500), tmp_path)
    words = ["target=label", "prediction=decision", "group=sex", f"out={tmp_path / 'out'}"]
    assert audit([path, *words, "within=[age:30,40,department]"]) == 0
    shown = capsys.readouterr().out
    assert "Among people of the same band of age and department" in shown
    data = json.loads((tmp_path / "out" / "audit.json").read_text())
    strata = [row["stratum"] for row in data["within"][0]["strata"]]
    assert strata[0] == "under 30 x law"
    assert len(strata) == 6
    assert data["options"]["within"] == ["age", "department"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("within=[sex]", "within= names 'sex', which group= names"),
        ("within=[label]", "within= names 'label', which target= names"),
        ("within=[departmnt]", "has no column 'departmnt'; did you mean 'department'?"),
        ("within=[id]", "'id' holds 1200 different values; a within column has 2 to 50"),
        ("within=[age:40,30]", "within=age:40,30: the limits of bands rise"),
        ("within=[age,age]", "within=[age,age] names a column twice"),
        ("within=[department] weight=age", "within= takes no weight=: leave one of them out"),
        ("within=[department] cluster=id", "within= takes no cluster=: leave one of them out"),
        ("within=[department] interval=dirichlet", "within= takes no interval=dirichlet"),
        ("within=[department] prediction=guess target=price", "within= does not apply to an audit"),
        ("within=[p,q]", "'p x q' makes 1,200 strata of 1,200 rows; groups are compared within"),
    ],
)
def test_strata_that_cannot_be_are_refused_in_one_line(tmp_path, capsys, words, sentence):
    row = np.arange(1200)
    frame = aged(1200).assign(id=[f"c{i}" for i in row], p=row % 50, q=row // 24)
    numbers = np.random.default_rng(1).normal(9, 2, (2, 1200)).round(3)
    path = written(frame.assign(price=numbers[0], guess=numbers[1]), tmp_path)
    given = {"target": "label", "prediction": "decision", "group": "sex"}
    given |= dict(word.split("=", 1) for word in words.split())
    assert sentence in refusal(
        [path, *(f"{name}={value}" for name, value in given.items())], capsys
    )


def test_the_largest_difference_of_two_groups_beside_a_rare_one_has_no_sign():
    frame = aged(4000)
    frame.loc[:4, "sex"] = "rare"
    report = report_of(frame)
    for gap in report.document.data["within"]:
        if gap["value"] == gap["value"]:
            assert list(gap["left_out"]) == ["rare"]
            assert gap["value"] >= 0 and gap["lower"] >= 0
    assert SMALL not in by_verdict(report, SAME_AGE).values()


def test_few_labels_call_nothing_small_and_no_labels_leave_decisions():
    few = report_of(aged(30_000, labels=50))
    assert by_verdict(few, SAME_AGE)["selection rate"] == SMALL
    assert by_verdict(few, SAME_AGE)["accuracy"] in (OPEN, NOT_MEASURED)
    none = report_of(aged(500, labels=0), target="")
    assert set(by_verdict(none, SAME_AGE)) == {"selection rate"}


def test_every_rate_is_what_evaluate_says_within_the_same_strata():
    frame = aged(800)
    table = report_of(frame, within=["department"]).table
    evaluated = fairbench.evaluate(
        frame["label"].astype(int),
        frame["decision"],
        sensitive_features=frame["sex"],
        within=frame["department"],
    )
    keys = ["metric", "statistic", "attribute", "group", "within", "stratum"]
    own, other = (
        each[each["within"].notna()].astype({"stratum": object}).fillna({"stratum": ""})
        .set_index(keys)["value"].sort_index()
        for each in (table, evaluated)
    )  # fmt: skip
    assert len(own) == len(other)
    # The reference of comparisons is the largest group here, and the first of the alphabet there.
    rates = ~own.index.get_level_values("metric").str.contains("difference|ratio|disparate")
    np.testing.assert_allclose(own[rates].astype(float), other[own.index[rates]], rtol=1e-12)
