"""Groups: within strata, derived from columns, and different by construction."""

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.direction import RATE_OF
from fairbench.audits.kinds.unknown import EVERYONE
from fairbench.core.errors import UserError
from fairbench.data.groups import _are_quantities, bands_apart, in_order
from fairbench.evaluation.findings import GAP, NOT_MEASURED, OPEN, PAIR, RATIO, SMALL
from fairbench_watch.alarms import periods_of
from fairbench_watch.page import skipped
from tests.audits.tables import decided, granted, predictions, read, text_of, why_not
from tests.harness import ours

SAME_AGE = "on average among people of the same band of age"


def aged(rows=4000, *, apart=0.0, labels=None):
    """Return people of two sexes: women are younger, and the young are selected rarely.

    Parameters
    ----------
    apart : by how much more often women are selected than men of their age.
    """
    draw = np.random.default_rng(0)
    sex = draw.choice(["men", "women"], rows)
    young = draw.random(rows) < np.where(sex == "women", 0.8, 0.2)
    age = np.where(young, draw.integers(18, 40, rows), draw.integers(40, 80, rows))
    chance = np.where(young, 0.25, 0.7) + apart * (sex == "women")
    selected = draw.random(rows) < chance
    label = draw.random(rows) < np.where(selected, 0.8, 0.2)
    known = np.arange(rows) < (rows if labels is None else labels)
    return pd.DataFrame({
        "sex": sex, "age": age, "department": draw.choice(["law", "sales"], rows),
        "decision": selected.astype(int), "label": np.where(known, label.astype(int), ""),
    })  # fmt: skip


def report_of(frame, within=("age:40",), **options):
    asked = {"target": "label", "prediction": "decision", **options}
    return fairbench.audit(frame, groups="sex", within=list(within), **asked)


def by_verdict(report):
    """Return the verdicts on gaps among people of one age."""
    gaps = report.findings.query("about == @GAP and scope == @SAME_AGE")
    return gaps.set_index("measure")["verdict"].to_dict()


def strata_of(report):
    """Return the gaps within strata by their metrics."""
    return {gap["metric"]: gap for gap in report.document.data["within"]}


def test_what_age_explains_is_large_of_everyone_and_small_among_people_of_one_age():
    report = report_of(aged(40_000))
    said = " ".join(report.document.verdict.can)
    assert "By sex, the selection rate of men is higher than that of women by more than" in said
    assert "no two groups differ by more than 0.05 in selection rate" in said
    assert f", {SAME_AGE}." in said


def test_a_reversal_is_found_in_both_directions_and_described():
    report = report_of(aged(20_000, apart=0.12))
    gaps = report.findings.query("about == @GAP and measure == 'selection rate'")
    assert gaps.set_index("scope")["groups"].to_dict() == {"": "men; women", SAME_AGE: "women; men"}
    described = r"In these rows the difference in selection rate by sex is [^.]*(\.\d[^.]*)*Simpson"
    assert re.search(described, text_of(report))


def test_the_page_has_the_strata_with_weights_that_add_up_to_1():
    frame = aged()
    report = report_of(frame)
    gaps = strata_of(report)
    assert set(gaps) == set(RATE_OF)
    gap = gaps["statistical_parity"]
    assert [row["stratum"] for row in gap["strata"]] == ["under 40", "40 and over"]
    assert sum(row["weight"] for row in gap["strata"]) == pytest.approx(1)
    young = (frame["age"] < 40).sum()
    assert [row["rows"] for row in gap["strata"]] == [young, len(frame) - young]
    mean = sum(row["weight"] * row["value"] for row in gap["strata"])
    assert gap["value"] == pytest.approx(mean)
    positives = frame[frame["label"] == "1"]
    weights = [row["weight"] for row in gaps["equal_opportunity"]["strata"]]
    assert weights[0] == pytest.approx((positives["age"] < 40).mean())
    said = text_of(report)
    for part in ("## Among people of the same band of age", "standardised", "40 and over"):
        assert part in said


def test_several_groups_are_compared_by_pairs_of_their_own_strata():
    draw = np.random.default_rng(0)
    frame = aged(9000)
    frame["sex"] = np.where(draw.random(9000) < 0.3, "other", frame["sex"])
    frame.loc[(frame["sex"] == "other") & (frame["age"] >= 40), "sex"] = "men"
    frame.loc[frame["sex"] == "other", "decision"] = 1
    frame.loc[:4, "sex"] = "rare"
    report = report_of(frame)
    gap = strata_of(report)["statistical_parity"]
    assert set(gap["names"]) == {"men", "women", "other"}
    assert list(gap["left_out"]) == ["rare"]
    assert list(gap["alone"]) == ["40 and over"]
    assert gap["covered"] == pytest.approx((frame["age"] < 40).mean())
    notes = " ".join(report.document.notes)
    assert "sex within age: left out of one gap or more for too few rows" in notes
    assert "where a group has no rows, it is not compared (40 and over)" in notes
    findings = report.findings.query("scope == @SAME_AGE").set_index("about")
    pairs, named = findings.loc[[PAIR]], findings.loc[[GAP]]
    assert named.set_index("measure").loc["selection rate", "groups"].startswith("other; ")
    assert (pairs["value"] > 0).all()


def test_groups_that_never_meet_are_not_measured_and_beside_a_rare_one_a_gap_has_no_sign():
    frame = aged(4000)
    apart = report_of(frame.assign(age=np.where(frame["sex"] == "men", 30, 60)))
    assert set(by_verdict(apart).values()) == {NOT_MEASURED}
    said = " ".join(apart.document.verdict.cannot)
    assert "no two have enough rows among people of the same band of age" in said
    frame.loc[:4, "sex"] = "rare"
    report = report_of(frame)
    gaps = [gap for gap in strata_of(report).values() if gap["value"] == gap["value"]]
    assert gaps and all(list(gap["left_out"]) == ["rare"] for gap in gaps)
    assert all(gap["value"] >= 0 and gap["lower"] >= 0 for gap in gaps)
    assert SMALL not in by_verdict(report).values()


def test_columns_together_make_strata():
    report = report_of(aged(1500), within=["age:30,40", "department"])
    assert "Among people of the same band of age and department" in report.to_markdown()
    data = report.document.data
    strata = [row["stratum"] for row in data["within"][0]["strata"]]
    assert len(strata) == 6 and strata[0] == "under 30 x law"
    assert [*data["options"]["within"]] == ["age", "department"]


@pytest.mark.thorough
def test_few_labels_call_nothing_small_and_no_labels_leave_decisions():
    few = report_of(aged(30_000, labels=50))
    assert by_verdict(few)["selection rate"] == SMALL
    assert by_verdict(few)["accuracy"] in (OPEN, NOT_MEASURED)
    gaps = strata_of(few)
    assert (gaps["statistical_parity"]["rows"], gaps["accuracy_gap"]["rows"]) == (30_000, 50)
    none = report_of(aged(500, labels=0), target="")
    assert set(by_verdict(none)) == {"selection rate"}


def test_every_rate_is_what_evaluate_says_within_the_same_strata():
    frame = aged(800)
    table = report_of(frame, within=["department"]).table
    people = {"sensitive_features": frame["sex"], "within": frame["department"]}
    evaluated = fairbench.evaluate(frame["label"].astype(int), frame["decision"], **people)

    def values(rows):
        # The reference of comparisons is the largest group here, the first of the alphabet there.
        asked = "within.notna() and not metric.str.contains('difference|ratio|disparate')"
        keys = ["metric", "statistic", "attribute", "group", "within", "stratum"]
        named = rows.query(asked).astype(dict.fromkeys(keys, str)).set_index(keys)["value"]
        return named.astype(float).to_dict()

    assert values(table) and values(table) == pytest.approx(values(evaluated), nan_ok=True)


AGES = [17, 25, 39.5, 40, 62, 90, None]


def grouped(frame, *words):
    """Return the column of a table's groups, and the notes on it."""
    table, _ = read(frame, "target=label", "score=score", *words)
    (groups,) = table.groups.values()
    return groups, table.notes


def test_bands_begin_with_their_limit_and_quantiles_are_of_one_size():
    groups, _ = grouped(predictions(7).assign(age=AGES), "group=age:25,40,62")
    expected = ["under 25", "25 to under 40", "25 to under 40", "40 to under 62", "62 and over"]
    assert groups.tolist() == [*expected, "62 and over", "unknown"]
    frame = predictions(400).assign(age=np.arange(400) % 100)
    largest, *others = grouped(frame, "group=age:9,15,40")[0].cat.categories
    assert largest == "40 and over"
    assert others == ["under 9", "9 to under 15", "15 to under 40"]
    assert in_order(["white", "under sea", "7 and over"]) == ["7 and over", "under sea", "white"]
    quarters, _ = grouped(frame, "group=age:quantiles(4)")
    assert set(Counter(quarters).values()) <= {96, 100, 104}


def test_bands_are_told_from_names_with_a_colon():
    assert bands_apart(["age:25,40,62"]) == (("age",), ("age:25,40,62",))
    assert bands_apart(["a:b", "40"]) == (("a:b", "40"), ())


def test_rows_without_a_group_are_in_no_impact_ratio_and_nobodys_reference():
    race = ["A"] * 200 + ["B"] * 300 + [""] * 600
    hired = [1, 0] * 250 + [1, 1, 1, 0] * 150
    frame = pd.DataFrame({"race": race, "sex": ["m", "f", "f"] * 366 + ["m", "f"], "hired": hired})
    asked = {"prediction": "hired", "groups": ["race", "sex"], "favourable": "1"}
    report = fairbench.audit(frame, **asked)
    impact = report.document.data["impact"]
    shown = {row["group"] for row in impact}
    assert shown == {"A", "B", "m", "f", *(f"{a} x {b}" for a in "AB" for b in "mf")}
    assert [row["ratio"] for row in impact[:2]] == [1, 1]
    (note,) = [note for note in report.document.notes if "no group" in note]
    assert "race: 600 of 1,100 rows have no group: they are shown as 'unknown'" in note
    assert "most are so" in note
    table, _ = read(frame, "group=race", "prediction=hired")
    assert list(table.groups["race"].cat.categories) == ["B", "A", "unknown"]
    ratio = {"favourable": "1", "fail_if": ["impact_ratio<0.8", "race:statistical_parity>0.05"]}
    of_race = fairbench.gate(frame, prediction="hired", groups="race", **ratio)
    assert [statement.outcome for statement in of_race.statements] == ["passes", "fails"]
    scored = {"score": "hired", "groups": "race", "favourable": "1", "constraint": "ratio:0.8"}
    data = fairbench.audit(frame, **scored).document.data["decisions"]
    assert data["constraint"]["judged"][0]["value"] > 0.8
    assert [row["ratio"] for row in data["thresholds"] if row["current"]] == [1]
    assert "race has one group alone" in why_not(frame[frame["race"] != "B"], **scored)


def test_rare_groups_are_pooled_or_left_out_and_named():
    race = ["a"] * 200 + ["b"] * 190 + ["c"] * 6 + ["d"] * 4
    frame = predictions(400).assign(race=race)
    pooled, notes = grouped(frame, "group=race", "rare=30")
    assert Counter(pooled) == {"a": 200, "b": 190, "other groups": 10}
    assert "race: 'c' and 'd' have fewer than 30 rows, and are 'other groups' here" in notes
    left, notes = grouped(frame, "group=race", "leave_out=[race=c,race=d]")
    assert Counter(left) == {"a": 200, "b": 190}
    assert "race: the 4 rows of 'd' are left out, as asked" in notes
    _, notes = grouped(frame, "group=race")
    assert "2 groups, such as 'c', have fewer than 10 rows" in " ".join(notes)
    alone, notes = grouped(frame[frame["race"] != "d"], "group=race", "rare=30")
    said = " ".join(notes)
    assert Counter(alone) == {"a": 200, "b": 190, "c": 6}
    assert "race: rare=30 changes nothing, as 'c' alone is smaller" in said
    assert "'c' has fewer than 10 rows, of which" in said and "rare=30 pools" not in said


PERIODS = {"day": "2024-02-29 2024-12-31", "week": "2024-W09 2025-W01", "month": "2024-02 2024-12",
           "quarter": "2024-Q1 2024-Q4", "year": "2024 2024"}  # fmt: skip


@pytest.mark.parametrize("dates", ["2024-02-29 2024-12-31T23:59", "29.02.2024 31.12.2024"])
def test_dates_become_periods(dates):
    days = pd.Series(dates.split(), name="day")
    for unit, periods in PERIODS.items():
        assert periods_of(days, unit, "f").tolist() == periods.split()


def test_what_is_no_date_is_refused():
    for dates, sentence in (
        (["13/02/2024"], r"row 1: '13/02/2024' is no date"),
        (["2024-02-29", "soon"], r"column 'day', row 2: 'soon' is no date: write dates as"),
        (["2023-02-29"], "is no date"),
    ):
        with pytest.raises(UserError, match=sentence):
            periods_of(pd.Series(dates, name="day"), "month", "f")


MANY = 5000 * "9"
# Names of periods, and the gaps between them: the one before, the one after, how many are missing.
SKIPPED = [
    ("week 9,week 10,week 12", [("week 10", "week 12", 1)]),
    ("2020-W52,2020-W53,2021-W01", []),
    ("2023-W51,2024-W02", [("2023-W51", "2024-W02", 2)]),
    ("2023-11,2023-12,2024-02", [("2023-12", "2024-02", 1)]),
    ("2023-Q4,2024-Q1,2024-Q4", [("2024-Q1", "2024-Q4", 2)]),
    ("2019,2021", [("2019", "2021", 1)]),
    ("2024-02-28,2024-02-29,2024-03-01", []),
    ("2024-03-01,2024-03-04,2024-03-05,2024-03-08,2024-03-18",
     [("2024-03-01", "2024-03-04", 2), ("2024-03-08", "2024-03-18", 9)]),
    ("2024-02-30,2024-02-31", []),
    ("2024-52,2025-01", []),
    ("before,after", []),
    (f"{MANY}2,{MANY}5", [(f"{MANY}2", f"{MANY}5", 2)]),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize(("names", "gaps"), SKIPPED, ids=lambda value: str(value)[:20])
def test_periods_that_are_missing_are_found(names, gaps):
    assert [*skipped(names.split(","))] == gaps


def test_ages_are_told_from_codes():
    assert _are_quantities([str(age) for age in range(18, 80)])
    assert _are_quantities([f"{number / 7:.3f}" for number in range(40)])
    for codes in (range(1, 57), [10115, 10117, 10119, *range(20000, 20040)]):
        assert not _are_quantities([*map(str, codes)])


OF_DECISIONS = {"selection rate", "true positive rate", "false positive rate"}
OF_LABELS = {"precision"}
OF_COPIES = {"true positive rate", "false positive rate", "precision", "accuracy"}


def audited(frame, **options):
    asked = {"groups": "sex", "target": "label", "prediction": "hired", "favourable": "1"}
    return fairbench.audit(frame, **{**asked, **options})


BY_ITSELF = [
    ({"hired": 1}, OF_DECISIONS, "everyone is selected"),
    ({"hired": 0}, OF_DECISIONS, "everyone is not selected"),
    ({"label": 1}, OF_LABELS, "every label is '1'"),
    ({"hired": lambda frame: frame["label"]}, OF_COPIES, "every decision agrees with its label"),
    ({"hired": lambda frame: 1 - frame["label"]}, OF_COPIES, "no decision agrees with its label"),
]


@pytest.mark.parametrize(("change", "fixed", "why"), BY_ITSELF)
def test_what_decisions_or_labels_alone_decide_is_not_found(change, fixed, why):
    report = audited(decided(2000, 0.5, 0.5).assign(**change))
    gaps = report.findings.query("about == @GAP").set_index("measure")
    reasons = gaps[gaps["needs"].str.contains(f"^{why}.* by itself makes all groups the same")]
    assert ours(reasons.index) == fixed
    assert set(reasons["verdict"]) == {NOT_MEASURED}
    page = report.document
    for said in (page.verdict.cannot, page.summary.unseen):
        assert f": {why}, which by itself" in " ".join(said)
    assert not any(measure in " ".join(page.verdict.can) for measure in fixed)


def test_what_varies_stays_a_finding():
    report = audited(decided(20_000, 0.5, 0.5))
    (sentence,) = [said for said in report.document.summary.found if "no two groups" in said]
    for measure in OF_DECISIONS | OF_COPIES:
        assert measure in sentence


# Of one of them that varies, the gap is compared with the other's, which is 0.
@pytest.mark.parametrize("lowest", [0.6, 0.4])
def test_two_scores_that_select_everyone_have_no_gaps_to_compare(lowest):
    frame = decided(2000, 0.5, 0.5).assign(score=0.7, other=lambda f: lowest + 0.3 * f["hired"])
    report = audited(frame, prediction="", score="score", against="other")
    verdicts = report.findings.query("attribute == 'sex'").set_index("measure")["verdict"]
    assert set(verdicts[list(OF_DECISIONS)] == NOT_MEASURED) == {lowest > 0.5}
    assert lowest > 0.5 or NOT_MEASURED not in set(verdicts[list(OF_COPIES)])


def test_of_those_whom_one_decision_selected_it_is_no_finding_and_every_sentence_says_of_whom():
    frame = granted()
    asked = {"target": "repaid", "score": "score", "favourable": "1", "selected": "granted"}
    report = fairbench.audit(frame, groups="sex", **asked)
    page = report.document
    part = "of those selected ('granted')"
    findings = report.findings
    assert set(findings["scope"][findings["about"] == GAP]) == {part, EVERYONE}
    fixed = findings[(findings["scope"] == part) & (findings["verdict"] == NOT_MEASURED)]
    assert "share predicted '1'" in set(fixed["measure"])
    assert ours(fixed["measure"]) == OF_DECISIONS - {"selection rate"}
    sentences = [*page.verdict.can, *page.verdict.cannot, *page.summary.found]
    assert all(part in said or EVERYONE in said or "four fifths" in said for said in sentences)
    assert not any("no two groups differ" in said for said in sentences)
    labels = f"{frame['granted'].sum():,}"
    sure = f"Of 800 rows, {labels} are of those selected ('granted'), all of them with a known"
    assert sure in " ".join(page.summary.sure)
    rows = dict(page.summary.audited)["Rows"]
    assert rows.startswith(f"{labels} of 800 people, those selected ('granted'); all of them")
    ratios = findings[findings["about"] == RATIO]
    assert len(ratios) and set(ratios["scope"]) == {""}  # of everyone
    named = fairbench.audit(frame, groups="sex", decision="approved/declined", **asked)
    said = text_of(named)
    assert "everyone who was approved is predicted '1', which by itself makes all groups" in said
    assert "of those approved ('granted')" in said and "no two groups differ" not in said
    assert "selected" not in said.replace("selected=", "")


def test_two_spellings_of_one_group_are_noted_before_the_page(capsys):
    sex = ["men", "Men ", "women", "women"] * 100
    people = pd.DataFrame({"sex": sex, "hired": [1, 0, 0, 1] * 100})
    fairbench.audit(people, prediction="hired", groups="sex")
    assert "note: sex: 'Men ' and 'men' look alike" in capsys.readouterr().err
