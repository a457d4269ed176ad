"""What an audit says: of all labels what fairbench.evaluate says, of fewer what can be known."""

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.audits.assessment import (
    assess,
    calibrations,
    impact_findings,
    impact_ratios,
    small_groups,
)
from fairbench.audits.direction import Direction
from fairbench.audits.sentences import sentences_of
from fairbench.audits.table import AuditTable
from tests.audits.tables import concluded, predictions, read


def assessed(frame, *words, target="target=label", group="group=[sex]"):
    return assess(*read(frame, "score=score", target, group, *words))


@pytest.fixture
def without_simulation(monkeypatch):
    monkeypatch.setattr("fairbench.audits.assessment.with_needed", lambda gaps, *_: gaps)


def evaluated(frame, **more):
    """Return what `evaluate` makes of the rows of a table."""
    theirs = fairbench.evaluate(
        frame["label"],
        (frame["score"] > 0.5).astype(int),
        score=frame["score"],
        sensitive_features=frame[["sex", "race"]],
        privileged={"sex": "Male", "race": "White"},
        **more,
    )
    # How uncertain a score says it is, is no matter of labels: an audit does not ask.
    judged = theirs[~theirs["metric"].str.startswith("predictive_uncertainty")]
    return judged.reset_index(drop=True)


BOTH = "group=[sex,race]"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("labels", "beside"), [(0, False), (60, True), (1500, False), (3000, False)]
)
def test_what_follows_if_scores_are_right_stands_beside_some_labels(labels, beside):
    result = assessed(predictions(3000, labels=labels), "labelled=is_labelled")
    assert (result.assumed is not None) is beside
    assert result.labels == labels
    assert result.table.complete is (labels == 3000)
    assert all(np.isfinite(gap.supposed).all() == beside for gap in result.gaps)


def test_the_last_label_changes_nothing_much(without_simulation):
    """Whatever the number of labels, the estimator is the same."""
    results = [assessed(predictions(2000, labels=n), "labelled=is_labelled") for n in (1999, 2000)]
    widths = [[gap.upper - gap.lower for gap in result.gaps] for result in results]
    np.testing.assert_allclose(*widths, rtol=0.03)


def test_scores_that_are_wrong_in_one_group_deceive_no_verdict(without_simulation):
    """Labels of women are the other way round: that is found, and both intervals know it."""
    frame = predictions(4000, labels=300)
    women = frame["sex"] == "Female"
    frame["label"] = np.where(women, 1 - frame["label"], frame["label"])
    right = (frame["score"] > 0.5) == frame["label"]
    truth = right[women].mean() - right[~women].mean()
    result = assessed(frame, "labelled=is_labelled")
    (gap,) = [gap for gap in result.gaps if gap.metric == "accuracy_gap"]
    assert gap.lower < truth < gap.upper
    assert gap.supposed[1] < truth < gap.supposed[2]
    assert gap.verdict == "large"
    notes = " ".join(concluded(result).notes)
    assert "sex: the labels of Male and Female fit least how the scores of the other" in notes


def test_without_labels_scores_are_taken_at_their_word_and_it_says_so():
    frame = predictions(800, bias=0.4)
    result = assessed(frame, target="target=")
    score = frame["score"][frame["sex"] == "Male"]
    expected = np.where(score > 0.5, score, 1 - score).mean()
    rows = result.metrics.query("metric == 'accuracy' and group == 'Male'")
    assert rows["value"].iloc[0] == pytest.approx(expected, abs=0.003)
    conclusions = concluded(result)
    assert "There are no labels" in conclusions.warning
    assert "By sex, if the scores are right, " in " ".join(conclusions.cannot)
    assert not any("true positive" in sentence for sentence in conclusions.can)


def test_a_group_of_one_row_is_kept_and_keeps_gaps_open():
    frame = predictions(300)
    frame.loc[0, "race"] = "Lone"
    result = assessed(frame, group="group=[race]")
    assert all(gap.few[-1] == "Lone" for gap in result.gaps)
    assert {gap.verdict for gap in result.gaps} == {"open"}
    alone = result.metrics.query("group == 'Lone' and metric == 'accuracy'").iloc[0]
    assert (alone["status"], alone["reason"]) == ("insufficient", "n=1 in group 'Lone'")
    assert "too few rows to show in every gap" in " ".join(concluded(result).notes)


def surveyed(frame):
    draw = np.random.default_rng(4)
    people, home = draw.lognormal(0, 1, len(frame)), draw.integers(0, len(frame) // 4, len(frame))
    return frame.assign(people=people, home=[f"home {number}" for number in home])


def test_all_labels_give_what_evaluate_gives_with_weights_and_clusters_too():
    frame = surveyed(predictions(300, bias=0.2))
    pd.testing.assert_frame_equal(assessed(frame, group=BOTH).metrics, evaluated(frame))
    result = assessed(frame, "weight=people", "cluster=home", group=BOTH)
    theirs = evaluated(frame, sample_weight=frame["people"], clusters=frame["home"])
    pd.testing.assert_frame_equal(result.metrics, theirs)
    said = " ".join(concluded(result).basis)
    assert "Rows count by 'people'" in said
    assert "Rows with the same 'home' belong together" in said
    (gap,) = (gap for gap in result.gaps if (gap.attribute, gap.metric) == ("sex", "accuracy_gap"))
    row = theirs.query("metric == 'accuracy_difference' and group == 'Female'").iloc[0]
    assert [gap.value, gap.lower, gap.upper] == pytest.approx([*row[["value", "lower", "upper"]]])
    assert not any(gap.needed for gap in result.gaps)


def test_a_posterior_says_so_and_has_the_rates_of_its_table():
    frame = predictions(300, bias=0.4)
    asked = {"target": "label", "score": "score", "groups": "sex", "interval": "dirichlet"}
    report = fairbench.audit(frame, **asked)
    selected = report.table.query("metric == 'selection_rate' and attribute == 'sex'")
    high, low = sorted(selected["value"].dropna(), reverse=True)
    gap = report.findings.query("about == 'gap' and measure == 'selection rate'").iloc[0]
    assert abs(gap["value"]) == pytest.approx(high - low, abs=1e-12)
    said = " ".join(report.document.summary.sure)
    assert "intervals of the posterior" in said and "19 of 20 such intervals" not in said


# Calibration by group: how much too high scores are, with intervals that know a rare label.


def found(rows, groups, shape, excess=0.0):
    """Return the calibration of many groups alike, each a sample of its own."""
    generator = np.random.default_rng(rows)
    score = generator.beta(*shape, rows * groups)
    label = (generator.random(len(score)) < score - excess).astype(float)
    codes = np.repeat(np.arange(groups), rows)
    names = pd.Series(pd.Categorical.from_codes(codes, [f"g{i}" for i in range(groups)]))
    table = AuditTable(
        score, np.zeros(len(score), int), label, {"g": names}, names, Direction(("0", "1"))
    )
    return list(calibrations(table))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rows", "shape"), [(40, (1, 1)), (200, (1, 1.5)), (200, (1, 20)), (1000, (1, 40))]
)
def test_intervals_of_the_excess_hold_where_they_are_printed(rows, shape):
    each = found(rows, 500, shape)
    ends = np.array([(one["lower"], one["excess"], one["upper"]) for one in each])
    printed = ends[~np.isnan(ends[:, 0])]
    assert ((printed[:, 0] <= printed[:, 1]) & (printed[:, 1] <= printed[:, 2])).all()
    assert ((printed[:, 0] <= 0) & (printed[:, 2] >= 0)).mean() > 0.925


def test_scores_that_are_too_high_are_found_but_for_too_few_of_the_rarer_label():
    high = found(2000, 5, (4, 4), excess=0.1)
    assert all(one["lower"] > 0.05 and one["upper"] < 0.15 for one in high)
    few = found(60, 20, (1, 60))
    assert all(np.isnan(one["lower"]) and not np.isnan(one["excess"]) for one in few)


# Impact ratios of an audit: who is compared with whom, and what is said of it.


def people(men=(500, 200), women=(400, 100), others=()):
    """Return people of whom (rows, selected) of each sex are selected."""
    parts = {"Male": men, "Female": women, **({"Other": others} if others else {})}
    rows = [(sex, i % 3, i < selected) for sex, (n, selected) in parts.items() for i in range(n)]
    frame = pd.DataFrame(rows, columns=["sex", "race", "decision"]).astype({"decision": int})
    race = np.where(frame["race"], "Black", "White")
    return frame.assign(race=race, label=frame["decision"])


FEMALE = "By sex, Female (ratio 0.62) is selected less than four fifths as often as the group"


def ratios(frame, *words, group="group=sex"):
    return impact_ratios(read(frame, "prediction=decision", "target=label", group, *words)[0])


def test_the_default_is_the_four_fifths_rules_group():
    male, female = ratios(people())
    named = [male[name] for name in ("group", "reference", "given", "ratio")]
    assert named == ["Male", "Male", False, 1]
    assert female["ratio"] == pytest.approx(0.25 / 0.4)
    assert female["lower"] < female["ratio"] < female["upper"] < 0.8
    assert female["below"] > 0.99
    said = sentences_of(impact_findings([male, female], [male, female], "selected"))
    assert said == [f"{FEMALE} selected most often."]


def test_a_reference_may_be_named_and_is_that_of_all_comparisons():
    words = ("prediction=decision", "target=label", BOTH, "reference=[Female,race:White]")
    table, _ = read(people(), *words)
    assert table.groups["sex"].cat.categories[0] == "Female"
    result = impact_ratios(table)
    references = {"sex": "Female", "race": "White", "sex x race": "Female x White"}
    assert {ratio["attribute"]: ratio["reference"] for ratio in result} == references
    male = next(ratio for ratio in result if ratio["group"] == "Male")
    assert male["ratio"] == pytest.approx(0.4 / 0.25)
    assert male["below"] < 0.01
    _, female = ratios(people(), "favourable=0", "reference=Male")
    assert [female["rate"], female["ratio"]] == pytest.approx([0.75, 0.75 / 0.6])


def test_nobody_is_compared_with_a_very_small_group_but_of_two():
    result = ratios(people(others=(12, 12)))
    assert {ratio["reference"] for ratio in result} == {"Male"}
    other = next(ratio for ratio in result if ratio["group"] == "Other")
    assert other["ratio"] == pytest.approx(2.5)
    female = [ratio for ratio in result if ratio["group"] == "Female"]
    assert [ratio["group"] for ratio in small_groups(result)] == ["Other"]
    assert sentences_of(impact_findings(female, female, "selected", {"sex"})) == [
        f"{FEMALE} selected most often, of the groups of at least 10 rows and 2 % of all."
    ]
    of_two = ratios(people(women=(8, 8)))
    assert {ratio["reference"] for ratio in of_two} == {"Female"} and not [*small_groups(of_two)]


def test_weights_count():
    frame = people().assign(weight=lambda each: np.where(each["decision"], 2.0, 1.0))
    male, female = ratios(frame, "weight=weight")
    assert [male["rate"], female["rate"]] == pytest.approx([400 / 700, 200 / 500])
    assert female["lower"] < female["ratio"] < female["upper"]
