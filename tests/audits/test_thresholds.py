"""What other thresholds decide: counted as at one, and a constraint judged on rows kept apart."""

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.assessment import _STEPS, _other_thresholds, impact_ratios
from fairbench.audits.table import read_audit_table
from fairbench.core.errors import UserError
from fairbench.metrics.registry import binary_confusion, false_negative_rate, selection_rate
from tests.audits.tables import audit, parse, predictions, written

WORDS = ("score=score", "target=label", "group=[sex,race]")


def thresholds(frame, folder, *more, words=WORDS):
    options = parse([str(written(frame, folder)), *words, *more])
    table = read_audit_table(options)
    return table, options, _other_thresholds(table, options, 0.05)


def smallest_of_sex(table):
    """Return the smallest impact ratio of the sexes."""
    return min(row["ratio"] for row in impact_ratios(table) if row["attribute"] == "sex")


def test_curves_are_the_rates_at_each_threshold(tmp_path):
    table, _, result = thresholds(predictions(500), tmp_path)
    curve = result[0][0]
    assert curve["attribute"] == "sex"
    codes = table.groups["sex"].cat.codes
    for k in (0, 30, 77):
        hard = table.score > curve["thresholds"][k]
        counts = binary_confusion(table.label, hard, codes, n_groups=2)
        for rate in (selection_rate, false_negative_rate):
            assert curve["rates"][rate.name].value[k] == pytest.approx(rate(counts))


def test_thresholds_select_a_tenth_more_each_and_todays_is_among_them(tmp_path):
    table, options, result = thresholds(predictions(500), tmp_path, "threshold=0.45")
    mine = [row for row in result[1].itertuples() if row.attribute == "sex"]
    assert len(mine) == _STEPS + 1
    assert [row.threshold for row in mine if row.current] == [0.45]
    shares = [row.selected for row in mine if not row.current]
    assert shares == pytest.approx(np.arange(9, 0, -1) / 10, abs=0.01)
    (today,) = [row for row in mine if row.current]
    assert today.ratio == pytest.approx(smallest_of_sex(table))
    for row in result[1].itertuples():
        assert row.ratio_lower <= row.ratio <= row.ratio_upper <= 1
        assert row.gap_lower <= row.gap <= row.gap_upper


def test_the_favourable_decision_may_be_below_the_threshold(tmp_path):
    _, _, above = thresholds(predictions(400), tmp_path)
    table, options, below = thresholds(predictions(400), tmp_path, "favourable=0")
    for one, other in zip(above[1].itertuples(), below[1].itertuples(), strict=True):
        assert other.selected == pytest.approx(1 - one.selected)
        assert other.gap == pytest.approx(one.gap)
    (today,) = [row for row in below[1].itertuples() if row.current and row.attribute == "sex"]
    assert today.ratio == pytest.approx(smallest_of_sex(table))


def biased(rows, shift, seed=0):
    """Return scores of women that are lower by `shift`."""
    generator = np.random.default_rng(seed)
    sex = np.where(generator.random(rows) < 0.5, "Male", "Female")
    score = np.clip(generator.beta(2, 2, rows) - shift * (sex == "Female"), 0, 1)
    return pd.DataFrame({"sex": sex, "score": score, "label": generator.integers(0, 2, rows)})


def test_the_nearest_threshold_that_meets_a_constraint_is_found_and_judged(tmp_path):
    words = ("score=score", "target=label", "group=sex")
    _, _, result = thresholds(biased(4000, 0.15), tmp_path, "constraint=ratio:0.8", words=words)
    asked = result[2]
    assert asked["rows"] == (2000, 2000)
    assert asked["threshold"] < 0.5  # where more are selected, ratios are nearer to 1
    (judged,) = asked["judged"]
    assert judged["chosen"] >= 0.8
    assert judged["before"] < 0.8
    assert judged["lower"] <= judged["value"] <= judged["upper"]
    assert 0 < asked["changed"] < 0.5
    assert asked["accuracy"][1] < asked["accuracy"][0] < asked["accuracy"][2]


def test_todays_threshold_stays_where_it_meets_the_constraint(tmp_path):
    words = ("score=score", "target=label", "group=sex")
    frame = biased(2000, 0)
    _, _, result = thresholds(frame, tmp_path, "constraint=selection_rate:0.2", words=words)
    assert result[2]["threshold"] == 0.5
    assert result[2]["changed"] == 0
    assert result[2]["judged"][0]["holds"] is True


@pytest.mark.thorough
def test_what_judges_a_threshold_was_not_used_to_choose_it(tmp_path):
    """Among a hundred thresholds one always looks fair: the other rows see through it."""
    words = ("score=score", "target=label", "group=sex")
    population = biased(40_000, 0.1, seed=1000)
    scores = [
        population["score"][population["sex"] == sex].to_numpy() for sex in ("Male", "Female")
    ]
    covered, flattered = 0, 0
    for seed in range(60):
        _, _, result = thresholds(
            biased(400, 0.1, seed), tmp_path, "constraint=selection_rate:0.05", words=words
        )
        (judged,) = result[2]["judged"]
        men, women = ((score > result[2]["threshold"]).mean() for score in scores)
        covered += judged["lower"] - 0.005 <= abs(men - women) <= judged["upper"] + 0.005
        flattered += judged["chosen"] < abs(men - women)
    assert covered >= 53  # of 60, 95 % less three standard errors
    assert flattered > 40


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("constraint=ratio",), "after the colon comes a number"),
        (("constraint=rati:0.8",), "unknown constraint 'rati': did you mean ratio"),
        (("constraint=ratio:1.2",), "after the colon comes a number from 0 to 1"),
        (("constraint=ratio:0.8", "prediction=label"), "constraint= looks for a threshold"),
    ],
)
def test_a_constraint_that_is_none_is_refused(words, complaint):
    with pytest.raises(UserError, match=complaint):
        parse(["x.csv", "score=score", "group=sex", *words])


def test_a_constraint_on_errors_needs_labels(tmp_path):
    words = ("score=score", "group=sex", "constraint=true_positive_rate:0.05")
    with pytest.raises(UserError, match="needs a label in every row"):
        thresholds(biased(200, 0).drop(columns="label"), tmp_path, words=words)


def test_no_threshold_meets_what_cannot_be(tmp_path, capsys):
    frame = biased(400, 0).assign(score=lambda each: np.where(each["sex"] == "Male", 0.9, 0.6))
    frame["score"] += np.random.default_rng(0).random(400) / 20
    file = written(frame, tmp_path)
    assert audit([file, "score=score", "target=label", "group=sex", "threshold=0.7",
                  "constraint=ratio:1", f"out={tmp_path}"]) == 0  # fmt: skip
    printed = " ".join(capsys.readouterr().out.split())
    assert "is the threshold nearest to 0.7" in printed or "At no threshold" in printed
    for title in ("Errors by group", "Other thresholds", "Scores by group", "Calibration by group"):
        assert title in printed
    assert '<svg class="chart"' in (tmp_path / "audit.html").read_text()
