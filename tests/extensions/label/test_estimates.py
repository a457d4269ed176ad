"""What labels of chosen groups say, and intervals that hold whenever one stops."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from scipy import special

from fairbench.audits.assessment import assess, calibrations
from fairbench.audits.table import read_audit_table
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.table import setting_text, values_of
from fairbench.inference.rates import rate_limits, rate_sequence
from fairbench_label.estimates import (
    ChosenRows,
    GroupSampling,
    candidates,
    found_limits,
    lasting_level,
    sequence_limits,
    together,
)
from tests.audits.tables import concluded, parse, predictions, written


@pytest.fixture(autouse=True)
def without_simulation(monkeypatch):
    for name in ("with_needed", "_with_supposed"):
        monkeypatch.setattr(f"fairbench.audits.assessment.{name}", lambda gaps, *_: gaps)


def test_the_level_is_the_chance_of_no_miss():
    ours, evidence = sequence_limits(3, 10), rate_sequence(3, 10, np.log(20))
    assert (ours.lower, ours.upper) == (evidence.lower, evidence.upper)


def test_a_lasting_mean_is_never_missed_in_the_long_run():
    """Normal means looked at after each of 30 to 1000 rows."""
    draw, rows = np.random.default_rng(0), np.arange(1, 1001)
    reach = special.ndtri((1 + lasting_level(0.95, rows)) / 2) / np.sqrt(rows)
    means = draw.normal(size=(2000, 1000)).cumsum(axis=1) / rows
    assert (np.abs(means) > reach)[:, 29:].any(axis=1).mean() < 0.05
    assert reach[99] * 10 == pytest.approx(3.11, abs=0.01)


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 10])
def test_a_lasting_level_of_few_rows_has_a_quantile(rows):
    assert 5 < NormalDist().inv_cdf((1 + float(lasting_level(0.95, rows))) / 2) < 9


def test_the_group_found_worst_of_ten_alike_is_not_as_bad_as_it_looks():
    right = np.random.default_rng(1).binomial(30, 0.8, (4000, 10))
    single, wider = (rate_limits(right, 30, level=of) for of in (0.95, together(0.95, 10)))
    lowest, highest = (found_limits(single, wider, lowest=of) for of in (True, False))
    ends = np.take_along_axis(lowest.upper, right.argmin(axis=1)[:, None], 1)
    assert (ends >= 0.8).mean() > 0.95
    for one, other in ((highest, single), (lowest, wider)):
        np.testing.assert_array_equal(one.upper, other.upper)
    np.testing.assert_array_equal(highest.lower, wider.lower)


def test_the_worst_group_is_among_the_candidates():
    draw, rates = np.random.default_rng(2), np.array([0.6, 0.7, 0.9, 0.9])
    right = draw.binomial(60, rates, (1000, 4))
    kept, same = (
        [candidates(rate_limits(hits, 60, level=together(0.95, 4)), lowest=of) for hits in each]
        for each, of in ((right, True), (60 - right, False))
    )
    assert np.mean(kept, axis=0)[0] > 0.95 and np.mean(kept, axis=0)[2] < 0.32
    np.testing.assert_array_equal(same, kept)


# Labels of rows that were chosen by group: the pool's figures, whatever the labels' shares.

SCORES = ("log_loss", "brier_score", "roc_auc", "expected_calibration_error")


def chosen_table(frame, folder, by, *more):
    words = [str(written(frame, folder)), "target=label", "score=score", "group=[sex,race]"]
    options = parse([*words, "labelled=is_labelled", *more])
    table = read_audit_table(options)
    return replace(table, sampling=GroupSampling(by, table.groups[by])), options


def unequal(rows, seed, women=0.04, men=0.4):
    """Show each sex's labels at its own rate; women's scores are wrong by a quarter."""
    frame = predictions(rows, bias=0.25, seed=seed)
    rate = np.where(frame["sex"] == "Female", women, men)
    return frame.assign(is_labelled=np.random.default_rng(seed + 1).random(rows) < rate)


def test_equal_shares_give_what_a_random_sample_gives(tmp_path):
    """An oracle for the weights: where all labels weigh the same, they change nothing."""
    frame = predictions(400, labels=400)
    table, options = chosen_table(frame, tmp_path, "sex")
    weighed = assess(table, options).metrics
    plain = assess(replace(table, sampling=None), options).metrics
    keys = ["metric", "attribute", "group", "setting"]
    tables = (values_of(frame) for frame in (weighed, plain))
    weighed, plain = (table.assign(setting=setting_text(table)) for table in tables)
    both = weighed.merge(plain, on=keys, suffixes=("", "_plain")).query("metric in @SCORES")
    assert len(both) >= 5 * 12
    np.testing.assert_allclose(both["value"], both["value_plain"], atol=1e-12)
    everyone = both.query("attribute == '' and metric == 'log_loss'")
    width = everyone["upper"] - everyone["lower"]
    plain_width = everyone["upper_plain"] - everyone["lower_plain"]
    np.testing.assert_allclose(width, plain_width, rtol=1e-6)


def test_the_papers_evaluation_has_normal_intervals_of_means_and_no_others():
    people = predictions(500, bias=0.25)
    sex, decisions = people["sex"].astype("category"), (people["score"] > 0.5).to_numpy(int)
    score, label = people["score"].to_numpy(), people["label"].to_numpy(float)
    strata = sex.cat.codes.to_numpy(np.int64)
    chosen = ChosenRows(score, decisions, label, {"sex": sex}, sex, strata=strata)
    rows = chosen.evaluate(Evaluator(interval="dirichlet"), 0)[0].query("metric in @SCORES")
    assert not rows.duplicated(["metric", "attribute", "group", "binning"]).any()
    has_interval = rows["lower"].notna()
    assert set(rows.loc[has_interval, "metric"]) == {"log_loss", "brier_score"}
    assert has_interval.sum() == 2 * 3


@pytest.mark.thorough
def test_excess_of_scores_is_that_of_the_pool(tmp_path):
    """Races are mixtures of the sexes; the intervals of their excess hold the pool's."""
    held = total = 0
    for seed in range(30):
        frame = unequal(4000, seed)
        table, _ = chosen_table(frame, tmp_path, "sex")
        excess = pd.Series(frame["score"] - frame["label"])
        truth = excess.groupby(table.groups["race"].to_numpy()).mean()
        for calibration in calibrations(table):
            if calibration["attribute"] == "race" and calibration["labels"] >= 20:
                mean = truth[calibration["group"]]
                held += int(calibration["lower"] <= mean <= calibration["upper"])
                total += 1
    assert total > 80
    # One in twenty may miss, and the pool is finite: 4 standard errors.
    assert held / total >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / total)


def test_it_says_how_rows_were_chosen(tmp_path):
    frame = unequal(600, 0).assign(is_labelled=lambda f: f["is_labelled"] & (f["sex"] == "Male"))
    table, options = chosen_table(frame, tmp_path, "sex")
    conclusions = concluded(assess(table, options))
    basis = " ".join(conclusions.basis)
    assert "How many rows of each group of sex were labelled was decided while labelling" in basis
    assert "assumes" not in basis
    assert "No row of Female has a label yet" in " ".join(conclusions.notes)
