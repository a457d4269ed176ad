"""Rows for intervals and likelihoods of regressions: coverage per group, and impossible sds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairbench import Evaluator
from fairbench.core.arrays import rng
from fairbench.data.dataset import Task
from fairbench.evaluation.groups import CountIntervals, LabelledIntervals
from fairbench.evaluation.predictions import read_predictions
from fairbench.evaluation.regression import evaluate_regression
from fairbench.evaluation.table import MetricTable
from fairbench.inference.survey import LabelledRows
from fairbench.metrics.registry import BINARY, binary_confusion, metrics_of
from fairbench.metrics.regression import crps_normal_rows
from tests.evaluation.labelled import by_place, labelled

LEVELS = (0.5, 0.9)
Y, MEAN, SD = [0.0, 1.0, 2.0, 3.0], [0.1, 3.0, 2.0, 4.0], [1.0, 1.0, 0.5, 1.0]


def rows_of(levels=LEVELS, y=Y, groups="aabb", **columns):
    table = MetricTable(frequentist=False)  # of few rows there is no other interval
    columns = {"prediction": MEAN, **columns}
    evaluate_regression(table, labelled(y, groups, task=Task.REGRESSION, **columns), levels)
    return by_place(table)


def test_normal_intervals_by_hand_for_everyone_and_each_group():
    result = rows_of(sd=SD)
    # Distances in sds are 0.1, 2, 0 and 1; the levels reach 0.674 and 1.645.
    for level, covered in ((0.5, [1, 0, 1, 0]), (0.9, [1, 0, 1, 1])):
        reach = stats.norm.ppf((1 + level) / 2)
        for group, rows in (("", slice(None)), ("a", slice(2)), ("b", slice(2, 4))):
            row = result["coverage", group, f"level={level:g}"]
            assert row.value == pytest.approx(np.mean(covered[rows]))
            assert (row.n, row.status) == (4 if group == "" else 2, "ok")
            width = result["interval_width", group, f"level={level:g}"].value
            assert width == pytest.approx(2 * reach * np.mean(SD[rows]))


def test_crps_and_nll_are_means_over_each_groups_rows():
    result = rows_of(sd=SD)
    crps, nll = crps_normal_rows(Y, MEAN, SD), -stats.norm.logpdf(Y, MEAN, SD)
    for group, rows in (("", slice(None)), ("a", slice(2)), ("b", slice(2, 4))):
        assert result["crps", group, ""].value == pytest.approx(crps[rows].mean())
        assert result["nll", group, ""].value == pytest.approx(nll[rows].mean())


def test_an_uncertainty_that_is_no_sd_has_a_likelihood_and_no_more():
    rows = rows_of(uncertainty=SD)
    assert rows["nll", "", ""].value == pytest.approx(-stats.norm.logpdf(Y, MEAN, SD).mean())
    assert not {"crps", "coverage", "interval_width"} & {metric for metric, _, _ in rows}


def test_a_methods_own_intervals_stand_before_those_of_its_sd():
    own = {"lower_90": [0, 2, 2, 0], "upper_90": [1, 3, 2, 10]}
    rows = rows_of(sd=SD, **own)
    coverage = rows["coverage", "", "level=0.9"]
    assert coverage.value == pytest.approx(3 / 4)  # the ends belong to it
    assert rows["coverage", "a", "level=0.9"].value == pytest.approx(1 / 2)
    assert rows["interval_width", "", "level=0.9"].value == pytest.approx((1 + 1 + 0 + 10) / 4)
    # The level it has no interval for is the normal one's.
    assert rows["coverage", "", "level=0.5"].value == pytest.approx(1 / 2)


def test_the_columns_read_are_those_a_reading_may_return():
    levels = Evaluator().coverage_levels
    columns = {f"lower_{100 * level:g}": [-1.0, 5.0] for level in levels}
    columns |= {f"upper_{100 * level:g}": [1.0, 6.0] for level in levels}
    table = read_predictions({"prediction": [0, 5.5], **columns}, Task.REGRESSION, "m")
    data = labelled([0.0, 0.0], task=Task.REGRESSION, **{name: table[name] for name in table})
    result = by_place(Evaluator().table(data, [rng(0, "posterior")]))
    for level in levels:
        assert result["coverage", "", f"level={level:g}"].value == 0.5
        assert result["interval_width", "", f"level={level:g}"].value == 1.5


def test_levels_without_an_interval_have_no_row():
    rows = rows_of(lower_90=[-9] * 4, upper_90=[9] * 4)
    settings = {setting for metric, _, setting in rows if metric == "coverage"}
    assert settings == {"level=0.9"}


def test_infinite_intervals_cover_and_are_infinitely_wide():
    rows = rows_of(lower_90=[-np.inf, 0, 2, 3], upper_90=[np.inf, 1, 2, 3])
    assert rows["coverage", "", "level=0.9"].value == 1
    row = rows["interval_width", "", "level=0.9"]
    assert (row.value, row.status) == (np.inf, "ok")
    assert np.isnan(row.lower)
    assert rows["interval_width", "b", "level=0.9"].value == 0


@pytest.mark.parametrize("bad", [np.nan, 0.0, -1.0, np.inf])
def test_an_impossible_sd_is_counted_where_it_is(bad):
    rows = rows_of(sd=[1.0, bad, 0.5, 1.0])
    for metric in ("nll", "crps"):
        for group, n in (("", 4), ("a", 2)):
            row = rows[metric, group, ""]
            assert np.isnan(row.value)
            assert (row.status, row.n) == (f"invalid: sd invalid in 1 of {n} rows", n)
        assert rows[metric, "b", ""].status == "ok"


@pytest.mark.parametrize("bad", [np.nan, -1.0])
def test_an_impossible_interval_is_counted_where_it_is(bad):
    rows = rows_of(sd=[1.0, bad, bad, 1.0])
    for metric in ("coverage", "interval_width"):
        row = rows[metric, "", "level=0.9"]
        assert np.isnan(row.value)
        assert row.status == "invalid: interval invalid in 2 of 4 rows"
        assert rows[metric, "b", "level=0.5"].status == "invalid: interval invalid in 1 of 2 rows"


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_impossible_prediction_is_counted_and_never_a_number(bad):
    rows = rows_of(prediction=[0.1, bad, 2.0, 4.0])
    for metric in ("mae", "rmse", "r2", "mean_prediction", "statistical_parity"):
        row = rows[metric, "", ""]
        assert np.isnan(row.value)
        assert row.status == "invalid: prediction invalid in 1 of 4 rows"
    assert rows["label_parity", "", ""].status == "ok"
    assert rows["rmse", "b", ""].status == "ok"


def test_an_impossible_uncertainty_has_no_spread_diagram():
    columns = {"prediction": MEAN, "uncertainty": [1, np.nan, -2, 1]}
    data = labelled(Y, "aabb", task=Task.REGRESSION, **columns)
    result = by_place(Evaluator(spread_groups=(2,)).table(data, [rng(0, "posterior")]))
    spread = {key: row.status for key, row in result.items() if key[0].startswith("spread")}
    status = "invalid: uncertainty invalid in 2 of 4 rows"
    assert spread == {
        ("spread_error", "", "bins=2"): status,
        ("spread_rank_correlation", "", "bins=2"): status,
    }


# Intervals of rates of some labels hold, and are no wider than those of the labels alone.

BALANCED_ACCURACY = metrics_of(BINARY)["balanced_accuracy"]
NAMES = ("accuracy", "balanced_accuracy", "f1_score", "positive_predictive_value")
METRICS = [metrics_of(BINARY)[name] for name in (*NAMES, "true_positive_rate")]
REPLICATIONS, ROWS = 2500, 1000


def pools(shape, labels, *, cut=0.5, wrong=0.0, inverted=False):
    """Return the intervals of as many groups as replications, helped and not, and the truth."""
    draw = np.random.default_rng(11)
    score = draw.beta(*shape, REPLICATIONS * ROWS)
    chance = wrong + (1 - 2 * wrong) * (1 - score if inverted else score)
    decision = (score > cut).astype(np.int64)
    label = (draw.random(len(score)) < chance).astype(np.int64)
    group = np.repeat(np.arange(REPLICATIONS), ROWS)
    rows = (np.arange(REPLICATIONS)[:, None] * ROWS + np.arange(labels)).ravel()
    known = LabelledRows(score, decision, group, REPLICATIONS, rows, label[rows])
    counts = binary_confusion(label[rows], decision[rows], group[rows], n_groups=REPLICATIONS)
    truth = np.bincount(2 * label + decision, minlength=4)
    helped = LabelledIntervals.of(known, counts, 0.95, draw)
    return helped, CountIntervals(counts, np.empty((0, *counts.shape)), 0.95), truth


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "labels", "options"),
    [
        ((3, 3), 100, {}),
        ((1, 1), 300, {"wrong": 0.1}),
        ((1, 1.5), 100, {"wrong": 0.1}),
        ((6, 2), 100, {"wrong": 0.1}),
        ((1, 9), 50, {"cut": 0.2, "inverted": True}),
    ],
)
def test_intervals_hold_and_are_no_wider(shape, labels, options):
    """Fewer than 91.5 % would be 3 standard errors under the 93 % that is promised."""
    helped, alone, truth = pools(shape, labels, **options)
    ends = [np.array(of.rates(METRICS)) for of in (helped, alone)]
    true = np.array([metric(truth) for metric in METRICS])[:, None]
    printed = ~np.isnan(ends[0]).any(axis=0)
    held = (ends[0][0] <= true) & (true <= ends[0][1])
    for m, metric in enumerate(METRICS):
        assert held[m][printed[m]].mean() > 0.915, metric.name
        ours, theirs = ((end[1] - end[0])[m][printed[m]].mean() for end in ends)
        assert ours < 1.005 * theirs, metric.name


@pytest.mark.thorough
def test_a_balanced_accuracy_lies_in_its_interval():
    helped, _, _ = pools((1, 1), 60)
    lower, upper = helped.rates([BALANCED_ACCURACY])
    value = BALANCED_ACCURACY(helped.counts_of(BALANCED_ACCURACY))
    assert ((lower[0] <= value) & (value <= upper[0])).all()
