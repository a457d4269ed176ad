"""What is asked: the direction, thresholds, and groups that are not known."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn.metrics import roc_auc_score

import fairbench
from fairbench.audits.assessment import _STEPS, _other_thresholds, impact_ratios
from fairbench.audits.direction import (
    RATE_NAMES,
    RATE_OF,
    Direction,
    _score_area,
    _sounds_adverse,
    runs_against,
)
from fairbench.audits.kinds.counts import says_nothing
from fairbench.audits.kinds.unknown import CANNOT, RATES, _bounded_gap, bound_everyone
from fairbench.core.errors import UserError
from fairbench.evaluation.findings import LARGE, NOT_MEASURED, OPEN, SMALL, risk_of
from fairbench.inference.partial import RateBounds
from fairbench.metrics.registry import binary_confusion, false_negative_rate, selection_rate
from tests.audits.tables import gap, predictions, read, text_of


@pytest.mark.thorough
def test_the_area_is_that_of_the_curve_and_its_bound_holds_in_simulation():
    draw = np.random.default_rng(0)
    label = np.repeat([0.0, 1.0], [40, 25])
    scores = [draw.normal(0.6 * label) for _ in range(400)]
    areas, errors = np.array([_score_area(score, label) for score in scores]).T
    assert areas == pytest.approx([roc_auc_score(label, score) for score in scores])
    assert areas.std() < errors.mean()
    few = np.repeat([0.0, 1.0, np.nan], [9, 50, 5])
    assert not runs_against(-np.arange(64.0), few)


@pytest.mark.parametrize("favourable", ["paid", "default"])
def test_rates_are_named_by_the_decisions(favourable):
    direction = Direction.of(("paid", "default"), favourable, "approved/declined")
    positive = "declined" if favourable == "paid" else "approved"
    assert direction.granted == "approved"
    assert direction.rate_names["statistical_parity"] == f"share {positive}"
    wrongly = direction.rate_names[direction.wrongly_refused]
    assert wrongly == f"share {positive} of those with '{favourable}'"
    name = "false positive rate" if favourable == "paid" else "true positive rate"
    assert f"{wrongly} (also called {name})" in direction.rates_explained


@pytest.mark.parametrize(("favourable", "decided"), [("", "selected"), ("1", "selected"),
                                                      ("0", "predicted '1'")])  # fmt: skip
def test_rates_in_the_fields_terms_are_explained(favourable, decided):
    direction = Direction.of(("0", "1"), favourable, "")
    assert direction.rate_names["equal_opportunity"] == "true positive rate"
    explained = direction.rates_explained
    assert f"true positive rate (of those with '1', the share {decided})" in explained
    assert f"false positive rate (of those with '0', the share {decided})" in explained
    assert f"precision (of those {decided}, the share with '1')" in explained
    assert ("selection rate" in explained) == (decided == "selected")


@pytest.mark.parametrize("decision", ["approved", "a/b/c", "a/a", "/a"])
def test_two_decisions_are_named(decision):
    with pytest.raises(UserError, match="must name two decisions"):
        Direction.of(("0", "1"), "1", decision)


def test_names_of_what_is_bad_for_people_are_known():
    assert all(map(_sounds_adverse, ("PD", "probDefault", "Ausfallrisiko", "is_fraud")))
    assert not any(map(_sounds_adverse, ("score", "repaid", "update", "illness")))


def thresholds(frame, *words, group="group=sex"):
    table, options = read(frame, "score=score", "target=label", group, *words)
    return table, *_other_thresholds(table, options, 0.05)


def smallest_of_sex(table):
    """Return the smallest impact ratio of the sexes."""
    return min(row["ratio"] for row in impact_ratios(table) if row["attribute"] == "sex")


def test_curves_are_the_rates_at_each_threshold():
    table, (curve, *_), *_ = thresholds(predictions(500))
    assert curve["attribute"] == "sex"
    codes = table.groups["sex"].cat.codes
    for k in (0, 30, 77):
        hard = table.score > curve["thresholds"][k]
        counts = binary_confusion(table.label, hard, codes, n_groups=2)
        for rate in (selection_rate, false_negative_rate):
            assert curve["rates"][rate.name].value[k] == pytest.approx(rate(counts))


@pytest.mark.parametrize("favourable", [1, 0])
def test_thresholds_select_a_tenth_more_each_and_todays_is_among_them(favourable):
    words = ("threshold=0.45", f"favourable={favourable}")
    table, _, rows, _ = thresholds(predictions(500), *words, group="group=[sex,race]")
    mine = rows[rows["attribute"] == "sex"]
    (today,) = mine[mine["current"]].itertuples()
    assert today.threshold == 0.45
    assert today.ratio == pytest.approx(smallest_of_sex(table))
    shares = mine["selected"][~mine["current"]].tolist()
    tenths = np.arange(1, _STEPS + 1) / (_STEPS + 1)
    assert shares[:: -1 if favourable else 1] == pytest.approx(tenths, abs=0.01)
    assert (rows["ratio_lower"] <= rows["ratio"]).all() and (rows["ratio_upper"] <= 1).all()
    assert rows["gap"].between(rows["gap_lower"], rows["gap_upper"]).all()


def biased(rows, shift, seed=0):
    """Return scores of women that are lower by `shift`."""
    generator = np.random.default_rng(seed)
    sex = np.where(generator.random(rows) < 0.5, "Male", "Female")
    score = np.clip(generator.beta(2, 2, rows) - shift * (sex == "Female"), 0, 1)
    return pd.DataFrame({"sex": sex, "score": score, "label": generator.integers(0, 2, rows)})


def test_the_nearest_threshold_that_meets_a_constraint_is_found_and_judged():
    *_, asked = thresholds(biased(4000, 0.15), "constraint=ratio:0.8")
    assert asked["rows"] == (2000, 2000)
    assert asked["threshold"] < 0.5  # where more are selected, ratios are nearer to 1
    (judged,) = asked["judged"]
    assert judged["chosen"] >= 0.8
    assert judged["before"] < 0.8
    assert judged["lower"] <= judged["value"] <= judged["upper"]
    assert 0 < asked["changed"] < 0.5
    assert asked["accuracy"][1] < asked["accuracy"][0] < asked["accuracy"][2]


def test_todays_threshold_stays_where_it_meets_the_constraint():
    *_, asked = thresholds(biased(2000, 0), "constraint=selection_rate:0.2")
    assert (asked["threshold"], asked["changed"], asked["judged"][0]["holds"]) == (0.5, 0, True)


def test_the_page_has_a_constraint_and_other_thresholds():
    asked = {"target": "label", "score": "score", "groups": "sex", "threshold": 0.7}
    report = fairbench.audit(biased(400, 0.2), constraint="ratio:1", **asked)
    said = report.to_markdown()
    assert "is the threshold nearest to 0.7" in said or "At no threshold" in said
    for title in ("Errors by group", "Other thresholds", "Scores by group", "Calibration by group"):
        assert title in said


OF_SELECTED = {"target": "label", "score": "score", "groups": "sex", "selected": "hired"}


def partly_selected(rows=3000, *, bias=0.3, keep=False, seed=0):
    """Return predictions of which those with low scores were often not selected, and the truth."""
    frame = predictions(rows, bias=bias, seed=seed)
    generator = np.random.default_rng(seed + 1)
    hired = generator.random(rows) < np.clip(frame["score"] + 0.5, 0, 0.98)
    truth = frame["label"].to_numpy()
    shown = frame["label"].astype(object) if keep else frame["label"].where(hired)
    return frame.assign(hired=hired, label=shown), truth


def bounded(frame, *words):
    asked = ("target=label", "score=score", "group=sex", "selected=hired")
    table, options = read(frame, *asked, *words)
    risk = risk_of(len(table.groups) * len(RATE_OF))
    _, gaps, rates = bound_everyone(table, options, risk)
    metrics = {name: metric for metric, name in table.direction.rate_names.items()}
    return {metrics[gap["measure"]]: gap for gap in gaps}, rates


def test_bounds_hold_the_rates_of_everyone():
    frame, truth = partly_selected()
    gaps, of_everyone = bounded(frame)
    counts = binary_confusion(truth, frame["score"] > 0.5, frame["sex"] == "Female", n_groups=2)
    rates = {rate.name: rate(counts) for rate in RATE_OF.values()}
    for row in of_everyone:
        if row["rate"] in rates:
            value = rates[row["rate"]][["Male", "Female"].index(row["group"])]
            assert row["lowest"] - 1e-9 <= value <= row["highest"] + 1e-9
            # Labels that are missing depend on the score alone here.
            assert row["assumed_lower"] <= value <= row["assumed_upper"]
    for metric, bounds in gaps.items():
        men, women = RATE_OF[metric](counts)
        assert bounds["lower"] <= women - men <= bounds["upper"]


def test_what_no_label_settles_is_said_to_be_so():
    gaps, _ = bounded(partly_selected()[0])
    assert gaps["accuracy_gap"]["verdict"] == CANNOT
    precision, wrongly_positive = gaps["predictive_parity"], gaps["false_positive_rate_gap"]
    assert precision["verdict"] == precision["alike"] == wrongly_positive["alike"] == LARGE
    assert precision["factor"] is None
    factor = wrongly_positive["factor"]
    for odds, expected in ((0.98 * factor, LARGE), (1.02 * factor, OPEN)):
        gaps, _ = bounded(partly_selected()[0], f"odds={odds}")
        found = gaps["false_positive_rate_gap"]["assumed_verdict"]
        assert found == expected or (found, expected) == (CANNOT, OPEN)


BOUNDS = [
    ((0.50, 0.51), (0.51, 0.52), 1e6, SMALL),
    ((0.30, 0.40), (0.32, 0.48), 1e6, LARGE),
    ((0.50, 0.51), (0.51, 0.52), 100, OPEN),
    ((0.30, 0.40), (0.32, 0.48), 100, OPEN),
    ((0.30, 0.40), (0.41, 0.48), 1e6, CANNOT),
    ((0.30, 0.40), (0.41, 0.48), 100, CANNOT),
]


@pytest.mark.parametrize(("lower", "upper", "rows", "expected"), BOUNDS)
def test_bounds_are_told_from_noise(lower, upper, rows, expected):
    ends = RateBounds(np.array([lower, upper]), np.full((2, 2), rows))
    finding, bounds = _bounded_gap(gap(NOT_MEASURED), ["one", "other"], ends, 0.05)
    assert bounds["verdict"] == expected
    assert finding.verdict == (OPEN if expected == CANNOT else expected)
    assert finding.groups == (("other", "one") if expected == LARGE else ())


def test_a_large_gap_names_two_groups_that_are_surely_so_far_apart():
    """The groups with the largest lower and the smallest upper end may be too small for that."""
    value = np.array([0.1, 0.15, 0.8, 0.85])
    ends = RateBounds(*(np.array([row, row]) for row in (value, [20.0, 2000, 2000, 20])))
    finding, _ = _bounded_gap(gap(NOT_MEASURED, bound=0.6), [*"abcd"], ends, 0.05)
    assert finding.groups == ("c", "b")


def test_the_report_is_of_the_selected_and_says_what_follows_for_everyone():
    report = fairbench.audit(partly_selected()[0], **OF_SELECTED)
    printed = text_of(report)
    assert "Of 3,000 people, 2," in printed
    assert "What cannot be known" in printed
    larger = "By sex, the precision of Female is higher than that of Male by more than 0.05, of"
    assert f"{larger} everyone, whatever the labels are that cannot be known" in printed
    assert "No number of such rows settles what cannot be known of everyone: that" in printed
    data = report.document.data
    assert data["rows"] == data["of_everyone"]["selected"] < data["of_everyone"]["rows"]


@pytest.mark.thorough
def test_labels_of_those_who_were_not_selected_do_not_count():
    shown, hidden = (
        fairbench.audit(partly_selected(600, keep=keep)[0], **OF_SELECTED) for keep in (True, False)
    )
    pd.testing.assert_frame_equal(shown.table, hidden.table)
    pd.testing.assert_frame_equal(shown.findings, hidden.findings)


def test_a_group_of_which_nobody_was_selected_is_all_unknown():
    frame, _ = partly_selected(600)
    frame["hired"] &= frame["race"] != "Black"
    report = fairbench.audit(frame, **{**OF_SELECTED, "groups": "race"})
    rates = report.document.data["of_everyone"]["rates"]
    (black,) = (e for e in rates if (e["group"], e["rate"]) == ("Black", "base_rate"))
    assert (black["lowest"], black["highest"], black["rows"]) == (0, 1, black["others"])


def by_proxy(rows=3000, *, seed=0, spread=0.3, gap=0.0):
    """Return predictions of people whose group is known through a probability, and the groups."""
    generator = np.random.default_rng(seed)
    women = generator.beta(spread, spread, rows).round(2)
    member = generator.random(rows) < women
    score = np.clip(generator.beta(2, 2, rows) + gap * member, 0, 1)
    label = (generator.random(rows) < score).astype(int)
    columns = {"women": women, "men": (1 - women).round(2), "score": score, "label": label}
    return pd.DataFrame(columns), member


OF_PROXIES = {"target": "label", "score": "score", "proxy": ["men", "women"]}


def test_bounds_hold_whoever_belongs_to_which_group():
    frame, member = by_proxy(gap=0.2)
    report = fairbench.audit(frame, **OF_PROXIES)
    result = report.document.data
    decision = (frame["score"] > 0.5).astype(int)
    counts = binary_confusion(frame["label"], decision, member, n_groups=2)
    for figure in result["figures"]:
        rate = {rate.name: rate for rate in RATES}[figure["metric"]]
        value = rate(counts)[["men", "women"].index(figure["group"])]
        assert figure["lower"] <= value <= figure["upper"]
        assert figure["lowest"] - 1e-9 <= figure["weighted"] <= figure["highest"] + 1e-9
    metrics = {name: metric for metric, name in RATE_NAMES.items()}
    for found in result["gaps"]:
        men, women = RATE_OF[metrics[found["measure"]]](counts)
        assert found["interval"][0] <= women - men <= found["interval"][1]
    assert "no number of rows settles it: anything in" in text_of(report)


def test_sure_proxies_settle_what_groups_would():
    frame, _ = by_proxy(6000, spread=0.001, gap=0.3)
    report = fairbench.audit(frame, epsilon=0.08, **OF_PROXIES)
    said = " ".join(report.document.verdict.can)
    assert "The selection rate of women is higher than that of men by more than 0.08" in said


def test_one_column_is_of_a_group_and_everybody_else_and_without_labels_there_are_decisions():
    frame = by_proxy(500)[0].drop(columns="men").assign(label="")
    report = fairbench.audit(frame, **{**OF_PROXIES, "proxy": "women"})
    groups = report.document.data["groups"]
    assert list(groups) == ["not women", "women"]
    assert sum(groups.values()) == pytest.approx(500)
    known = report.findings[report.findings["lower"].notna()]
    assert set(known["measure"]) == {"selection rate"}


# Answers that say that a category is not known are told from categories, in any spelling.
ANSWERS = yaml.safe_load(Path(__file__).with_name("answers.yaml").read_text())


@pytest.mark.parametrize("answer", ["", "decline race " * 10_000, *ANSWERS["nothing"]])
def test_an_answer_that_says_nothing(answer):
    assert says_nothing(answer) and says_nothing(answer.upper())


@pytest.mark.parametrize("answer", ["decline race " * 10_000 + " x", *ANSWERS["something"]])
def test_a_category(answer):
    assert not says_nothing(answer)
