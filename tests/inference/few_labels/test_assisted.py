"""Rates from labels helped by scores: never more sure than labels show, nor less than they are."""

import numpy as np
import pytest

from fairbench.components.papers.few_labels.methods import prediction_powered
from fairbench.evaluation.groups import LabelledIntervals
from fairbench.inference.few_labels import PartlyLabelled
from fairbench.inference.rates import rate_limits
from fairbench.inference.survey import LabelledRows
from fairbench.metrics.registry import (
    BINARY,
    accuracy,
    base_rate,
    binary_confusion,
    f1_score,
    metrics_of,
    positive_predictive_value,
    selection_rate,
    shares_of,
    true_negative_rate,
    true_positive_rate,
)
from fairbench_label.estimates import LastingIntervals

OF_MEAN = [true_positive_rate, true_negative_rate]
RATES = [accuracy, base_rate, f1_score, positive_predictive_value, true_positive_rate]


def pool(rows, groups=2, seed=0, slope=1.0):
    """Return scores, decisions, groups and labels of a pool; a slope of 1 is calibrated."""
    draw = np.random.default_rng(seed)
    score = np.where(draw.random(rows) < 0.5, draw.beta(5, 1, rows), draw.beta(1, 5, rows))
    odds = slope * np.log(score / (1 - score))
    label = (draw.random(rows) < 1 / (1 + np.exp(-odds))).astype(int)
    return score, (score > 0.5).astype(int), draw.integers(0, groups, rows), label


def test_all_labels_are_worth_what_they_count():
    score, decision, group, label = pool(500)
    labelled = LabelledRows(score, decision, group, 2, np.arange(500), label)
    cells = binary_confusion(label, decision, group, n_groups=2)
    np.testing.assert_allclose(labelled.effective_counts(RATES), shares_of(RATES, cells))
    of_mean = labelled.effective_counts_of_mean(OF_MEAN)
    np.testing.assert_allclose(of_mean, shares_of(OF_MEAN, cells))


def test_a_mean_is_moved_alike_whichever_of_its_rates_is():
    """Another derivation: the balanced accuracy by least squares of its influence, as one rate."""
    score, decision, group, label = pool(20_000, groups=1, seed=4)
    rows = np.arange(5000)
    labelled = LabelledRows(score, decision, group, 1, rows, label[rows])
    successes, sizes = labelled.effective_counts_of_mean(OF_MEAN)
    y, d = label[rows], decision[rows]
    tpr, tnr, base = d[y == 1].mean(), 1 - d[y == 0].mean(), y.mean()
    if_one, if_zero = (decision - tpr) / base, (1 - decision - tnr) / (1 - base)
    influence = np.where(y == 1, if_one[rows], if_zero[rows]) / 2
    expected = (score * if_one + (1 - score) * if_zero) / 2
    slope, _ = np.polyfit(expected[rows], influence, 1)
    value = (tpr + tnr) / 2 + slope * (expected.mean() - expected[rows].mean())
    assert (successes / sizes).mean() == pytest.approx(value, abs=2e-4)
    rest = influence - slope * (expected[rows] - expected[rows].mean())
    variance = rest.var() * (1 / 5000 - 1 / 20_000) + influence.var() / 20_000
    ours = (successes / sizes * (1 - successes / sizes) / sizes).sum() / 4
    assert ours == pytest.approx(variance, rel=0.02)


def test_a_mean_of_rates_of_which_one_has_no_error_is_not_helped():
    score, decision, group, label = pool(4000, groups=1, seed=2)
    rows = np.flatnonzero((label == 0) | (decision == 1))[:100]
    labelled = LabelledRows(score, decision, group, 1, rows, label[rows])
    cells = binary_confusion(label[rows], decision[rows], group[rows], n_groups=1)
    np.testing.assert_allclose(
        labelled.effective_counts_of_mean(OF_MEAN), shares_of(OF_MEAN, cells)
    )


def test_scores_that_say_nothing_change_nothing_but_what_decisions_tell():
    _, _, group, label = pool(4000)
    nothing, rows = np.full(4000, 0.3), np.arange(200)
    none = np.zeros(4000, int)
    mine = [accuracy, base_rate]
    result = LabelledRows(nothing, none, group, 2, rows, label[rows]).effective_counts(mine)
    cells = binary_confusion(label[rows], none[rows], group[rows], n_groups=2)
    np.testing.assert_allclose(result, shares_of(mine, cells))


def test_a_rate_of_decisions_is_counted_in_all_rows():
    score, decision, group, label = pool(1000)
    labels = LabelledRows(score, decision, group, 2, np.arange(5), label[:5])
    (successes,), (sizes,) = labels.effective_counts([selection_rate])
    assert sizes.tolist() == np.bincount(group).tolist()
    assert successes.tolist() == np.bincount(group, decision).tolist()
    assert labels.rows_of([selection_rate, accuracy]).sum(axis=1).tolist() == [1000, 5]


def test_a_group_without_labels_or_positives_is_worth_nothing():
    score, decision, _, label = pool(100)
    group = np.repeat([0, 1], 50)
    negatives = np.flatnonzero((label == 0) & (group == 0))
    labels = LabelledRows(score, decision, group, 2, negatives, label[negatives])
    successes, sizes = labels.effective_counts([accuracy, true_positive_rate])
    assert sizes[0, 0] >= len(negatives)
    assert not sizes[:, 1].any()
    assert not sizes[1].any()
    assert not successes[1].any()


@pytest.mark.parametrize("rate", [accuracy, true_positive_rate, positive_predictive_value])
def test_of_many_labels_it_is_the_prediction_powered_estimate(rate):
    """Another derivation: PPI++ solved for the rate, its slope tuned within [0, 1]."""
    score, decision, group, label = pool(40_000, seed=3)
    rows = np.arange(8000)
    shown = np.where(np.arange(40_000) < 8000, label, np.nan)
    table = PartlyLabelled(score, decision, group, shown, (0, 1))
    theirs = prediction_powered(table, rate)
    labels = LabelledRows(score, decision, group, 2, rows, label[rows])
    (successes,), (sizes,) = labels.effective_counts([rate])
    ours = rate_limits(successes, sizes)
    known = binary_confusion(label[rows], decision[rows], group[rows], n_groups=2)
    assert (sizes >= rate.size(known) - 1e-9).all()
    np.testing.assert_allclose(ours.value, theirs.value, atol=0.1 * theirs.error.max())
    # Its error is that of this pool; ours is of the population that the pool is drawn from.
    whole = rate.size(binary_confusion(label, decision, group, n_groups=2))
    error = np.sqrt(theirs.error**2 + theirs.value * (1 - theirs.value) / whole)
    np.testing.assert_allclose((ours.upper - ours.lower) / 2, 1.96 * error, rtol=0.02)


def test_rows_labelled_at_other_rates_stand_for_as_many_as_there_are():
    score, decision, group, label = pool(6000, seed=7, slope=-1.0)
    everyone = np.zeros_like(group)
    draw = np.random.default_rng(8)
    rows = np.sort(np.concatenate([draw.permutation(np.flatnonzero(group == g))[: (600, 60)[g]]
                                   for g in (0, 1)]))  # fmt: skip
    weight = np.array([(group == 0).sum() / 600, (group == 1).sum() / 60])[group[rows]]
    labels = LabelledRows(score, decision, everyone, 1, rows, label[rows], weight)
    (successes,), (sizes,) = labels.effective_counts([accuracy])
    right = label == decision
    shares = [right[rows][group[rows] == g].mean() for g in (0, 1)]
    plain = np.average(shares, weights=np.bincount(group))
    assert successes[0] / sizes[0] == pytest.approx(plain, abs=0.03)
    kish = weight.sum() ** 2 / (weight**2).sum()
    assert kish <= sizes[0] < 1.3 * kish


def test_each_further_weight_costs_a_label():
    """As the standard error of a stratified mean loses a degree of freedom for each stratum."""
    score, decision, _, label = pool(400, seed=9)
    rows, one = np.arange(20), np.zeros(400, np.int64)
    known = [LabelledRows(score, decision, one, 1, rows, label[:20], weight)
             for weight in (np.ones(20), np.repeat([1.0, 1 + 1e-9], 10))]  # fmt: skip
    (same,), (other,) = (rows.effective_counts([accuracy])[1] for rows in known)
    assert other[0] / same[0] == pytest.approx(19 / 20, rel=1e-6)


# Intervals that hold whenever one stops.


def sparse(groups, rows, seed=0):
    """Return scores around a half of which one in twenty is extreme, and calibrated labels."""
    draw = np.random.default_rng(seed)
    score = 0.5 + 0.001 * draw.standard_normal((groups, rows))
    extreme = draw.random(score.shape) < 1 / 20
    score[extreme] = draw.choice([0.01, 0.99], extreme.sum())
    return score, (draw.random(score.shape) < score).astype(np.int64)


def test_a_slope_of_scores_that_hardly_differ_is_not_stretched_to_extreme_ones():
    """Of the labelled rows no score is extreme: what labels alone say hardly moves."""
    score, label = sparse(200, 400)
    order = np.argsort(np.abs(score - 0.5) > 0.1, axis=1, kind="stable")
    score, label = (np.take_along_axis(column, order, 1) for column in (score, label))
    rows, groups = 20, 200
    group = np.repeat(np.arange(groups), 400)
    known = (np.arange(groups)[:, None] * 400 + np.arange(rows)).ravel()
    flat, decision = label.ravel()[known], (score > 0.5).astype(np.int64)
    labels = LabelledRows(score.ravel(), decision.ravel(), group, groups, known, flat)
    (successes,), (sizes,) = labels.effective_counts([accuracy])
    assert np.abs(successes / sizes - (label == decision)[:, :rows].mean(axis=1)).max() < 0.03


def test_a_group_by_itself_has_the_same_rates_as_beside_others():
    """The rows without a label are summed up, and their scores' variance with them."""
    score, label = sparse(3, 500, seed=2)
    score = np.random.default_rng(3).uniform(size=score.shape)
    group, known = np.repeat(np.arange(3), 500), np.arange(0, 1500, 20)
    decision = (score > 0.5).astype(np.int64).ravel()
    flat = label.ravel()[known]
    labels = LabelledRows(score.ravel(), decision, group, 3, known, flat)
    rates = [accuracy, true_positive_rate]
    whole = np.array(labels.effective_counts(rates))
    for g in range(3):
        one = np.array(labels.of_group(g).effective_counts(rates))
        np.testing.assert_allclose(one[..., 0], whole[..., g], rtol=1e-9)


def test_few_rows_of_a_rate_add_up_rather_than_as_squares():
    score, known = np.random.default_rng(1).beta(3, 3, 400), np.arange(4)
    label = (np.random.default_rng(5).random(400) < score).astype(np.int64)
    decision, group = (score > 0.5).astype(np.int64), np.zeros(400, np.int64)
    rows = LabelledRows(score, decision, group, 1, known, label[known])
    counts = binary_confusion(label[known], decision[known], group[known], n_groups=1)
    few = LabelledIntervals.of(rows, counts, 0.95, np.random.default_rng(0))
    balanced = metrics_of(BINARY, "rate")["balanced_accuracy"]
    intervals = LastingIntervals.lasting(few)
    (lower,), (upper,) = intervals.rates([balanced])
    parts = [intervals.limits([rate]) for rate in balanced.rates]
    assert lower[0] == pytest.approx(np.mean([part.lower[0, 0] for part in parts]))
    assert upper[0] == pytest.approx(np.mean([part.upper[0, 0] for part in parts]))
    assert intervals.correlation(accuracy).tolist() == [[-1.0]]
