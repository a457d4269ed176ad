"""Rates from labels helped by scores: never more sure than labels show, nor less than they are."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from fairbench.core.arrays import Floats
from fairbench.evaluation.groups import LabelledIntervals
from fairbench.inference.rates import rate_limits
from fairbench.inference.survey import LabelledRows
from fairbench.metrics import registry
from fairbench.metrics.registry import accuracy, base_rate, selection_rate, shares_of
from fairbench_label.estimates import LastingIntervals

OF_MEAN = [registry.true_positive_rate, registry.true_negative_rate]
PPV = registry.positive_predictive_value
RATES = [accuracy, base_rate, registry.f1_score, PPV, OF_MEAN[0]]


@dataclass
class People:
    """A pool, of which the labels of any rows may be shown."""

    score: Floats
    group: Floats
    label: Floats
    decision: Floats = None

    def __post_init__(self):
        if self.decision is None:
            self.decision = (self.score > 0.5).astype(np.int64)

    def labelled(self, rows, weight=None):
        columns = self.score, self.decision, self.group, self.group.max() + 1
        return LabelledRows(*columns, rows, self.label[rows], weight)

    def cells(self, rows=slice(None)):
        columns = (column[rows] for column in (self.label, self.decision, self.group))
        return registry.binary_confusion(*columns, n_groups=self.group.max() + 1)


def pool(rows, groups=2, seed=0, slope=1.0):
    """Return a pool, which a slope of 1 calibrates."""
    draw = np.random.default_rng(seed)
    score = np.where(draw.random(rows) < 0.5, draw.beta(5, 1, rows), draw.beta(1, 5, rows))
    odds = slope * np.log(score / (1 - score))
    label = (draw.random(rows) < 1 / (1 + np.exp(-odds))).astype(int)
    return People(score, draw.integers(0, groups, rows), label)


def test_all_labels_are_worth_what_they_count():
    people = pool(500)
    labelled, cells = people.labelled(np.arange(500)), people.cells()
    np.testing.assert_allclose(labelled.effective_counts(RATES), shares_of(RATES, cells))
    of_mean = labelled.effective_counts_of_mean(OF_MEAN)
    np.testing.assert_allclose(of_mean, shares_of(OF_MEAN, cells))


def test_a_mean_is_moved_alike_whichever_of_its_rates_is():
    """Another derivation: the balanced accuracy by least squares of its influence, as one rate."""
    people, rows = pool(20_000, groups=1, seed=4), np.arange(5000)
    successes, sizes = people.labelled(rows).effective_counts_of_mean(OF_MEAN)
    score, decision, y, d = people.score, people.decision, people.label[rows], people.decision[rows]
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
    people = pool(4000, groups=1, seed=2)
    rows = np.flatnonzero((people.label == 0) | (people.decision == 1))[:100]
    of_mean = people.labelled(rows).effective_counts_of_mean(OF_MEAN)
    np.testing.assert_allclose(of_mean, shares_of(OF_MEAN, people.cells(rows)))


def test_scores_that_say_nothing_change_nothing_but_what_decisions_tell():
    people, rows, mine = pool(4000), np.arange(200), [accuracy, base_rate]
    people = People(np.full(4000, 0.3), people.group, people.label)
    result = people.labelled(rows).effective_counts(mine)
    np.testing.assert_allclose(result, shares_of(mine, people.cells(rows)))


def test_a_rate_of_decisions_is_counted_in_all_rows():
    people = pool(1000)
    labels = people.labelled(np.arange(5))
    (successes,), (sizes,) = labels.effective_counts([selection_rate])
    assert sizes.tolist() == np.bincount(people.group).tolist()
    assert successes.tolist() == np.bincount(people.group, people.decision).tolist()
    assert labels.rows_of([selection_rate, accuracy]).sum(axis=1).tolist() == [1000, 5]


def test_a_group_without_labels_or_positives_is_worth_nothing():
    people = replace(pool(100), group=np.repeat([0, 1], 50))
    negatives = np.flatnonzero((people.label == 0) & (people.group == 0))
    successes, sizes = people.labelled(negatives).effective_counts([accuracy, OF_MEAN[0]])
    assert sizes[0, 0] >= len(negatives)
    assert not (sizes[:, 1].any() or sizes[1].any() or successes[1].any())


def prediction_powered(people, group, labels, rate):
    """Return PPI++'s estimate of a group's rate from its first labels, and its error.

    With m = numerator - rate * denominator of a row and f its expectation under the score, it
    solves slope mean_all(f) + mean_labelled(m - slope f) = 0, the slope tuned to the least error.
    """
    score, decision, label = (
        column[people.group == group] for column in (people.score, people.decision, people.label)
    )
    weights = np.array([rate.numerator, rate.denominator])
    expected = weights[:, decision] * (1 - score) + weights[:, 2 + decision] * score
    observed, seen = weights[:, 2 * label + decision][:, :labels], expected[:, :labels]
    slope = 1.0
    for _ in range(3):  # enough for the slope to settle
        top, bottom = (observed - slope * seen).mean(axis=1) + slope * expected.mean(axis=1)
        m, f = (terms[0] - top / bottom * terms[1] for terms in (observed, seen))
        variance = np.var(m - slope * f) / labels * (1 - labels / len(score))
        slope = np.clip(np.cov(m, f)[0, 1] / np.var(f), 0, 1)
    return top / bottom, np.sqrt(variance) / bottom


@pytest.mark.parametrize("rate", [accuracy, OF_MEAN[0], PPV])
def test_of_many_labels_it_is_the_prediction_powered_estimate(rate):
    """Another derivation: PPI++ solved for the rate, its slope tuned within [0, 1]."""
    people, rows = pool(40_000, seed=3), np.arange(8000)
    labels = np.bincount(people.group[rows])
    theirs = [prediction_powered(people, group, labels[group], rate) for group in (0, 1)]
    value, error = np.array(theirs).T
    (successes,), (sizes,) = people.labelled(rows).effective_counts([rate])
    ours = rate_limits(successes, sizes)
    assert (sizes >= rate.size(people.cells(rows)) - 1e-9).all()
    np.testing.assert_allclose(ours.value, value, atol=0.1 * error.max())
    # Its error is that of this pool; ours is of the population that the pool is drawn from.
    error = np.sqrt(error**2 + value * (1 - value) / rate.size(people.cells()))
    np.testing.assert_allclose((ours.upper - ours.lower) / 2, 1.96 * error, rtol=0.02)


def test_rows_labelled_at_other_rates_stand_for_as_many_as_there_are():
    people, draw = pool(6000, seed=7, slope=-1.0), np.random.default_rng(8)
    of = [np.flatnonzero(people.group == g) for g in (0, 1)]
    parts = [draw.permutation(own)[:most] for own, most in zip(of, (600, 60), strict=True)]
    rows = np.sort(np.concatenate(parts))
    weight = np.array([len(of[0]) / 600, len(of[1]) / 60])[people.group[rows]]
    right = people.label == people.decision
    plain = np.average([right[part].mean() for part in parts], weights=[*map(len, of)])
    everyone = replace(people, group=np.zeros_like(people.group)).labelled(rows, weight)
    (successes,), (sizes,) = everyone.effective_counts([accuracy])
    assert successes[0] / sizes[0] == pytest.approx(plain, abs=0.03)
    kish = weight.sum() ** 2 / (weight**2).sum()
    assert kish <= sizes[0] < 1.3 * kish


def test_each_further_weight_costs_a_label():
    """As the standard error of a stratified mean loses a degree of freedom for each stratum."""
    people = pool(400, groups=1, seed=9)
    (same,), (other,) = (
        people.labelled(np.arange(20), weight).effective_counts([accuracy])[1]
        for weight in (np.ones(20), np.repeat([1.0, 1 + 1e-9], 10))
    )
    assert other[0] / same[0] == pytest.approx(19 / 20, rel=1e-6)


def test_a_slope_of_scores_that_hardly_differ_is_not_stretched_to_extreme_ones():
    """Of the labelled rows no score is extreme: what labels alone say hardly moves."""
    draw, groups = np.random.default_rng(0), 200
    score = 0.5 + 0.001 * draw.standard_normal((groups, 400))
    extreme = np.arange(400) >= 380
    score[:, extreme] = draw.choice([0.01, 0.99], (groups, 20))
    label = (draw.random(score.shape) < score).astype(np.int64)
    people = People(score.ravel(), np.repeat(np.arange(groups), 400), label.ravel())
    rows = np.flatnonzero(np.tile(np.arange(400) < 20, groups))
    (successes,), (sizes,) = people.labelled(rows).effective_counts([accuracy])
    assert np.abs(successes / sizes - accuracy(people.cells(rows))).max() < 0.03


def test_a_group_by_itself_has_the_same_rates_as_beside_others():
    """The rows without a label are summed up, and their scores' variance with them."""
    people, rates = pool(1500, groups=3, seed=2), [accuracy, OF_MEAN[0]]
    labels = people.labelled(np.arange(0, 1500, 20))
    whole = np.array(labels.effective_counts(rates))
    for g in range(3):
        one = np.array(labels.of_group(g).effective_counts(rates))
        np.testing.assert_allclose(one[..., 0], whole[..., g], rtol=1e-9)


# Intervals that hold whenever one stops.


def test_few_rows_of_a_rate_add_up_rather_than_as_squares():
    score, known = np.random.default_rng(1).beta(3, 3, 400), np.arange(4)
    label = (np.random.default_rng(5).random(400) < score).astype(np.int64)
    people = People(score, np.zeros(400, np.int64), label)
    few = LabelledIntervals.of(
        people.labelled(known), people.cells(known), 0.95, np.random.default_rng(0)
    )
    balanced = registry.metrics_of(registry.BINARY, "rate")["balanced_accuracy"]
    intervals = LastingIntervals.lasting(few)
    parts = [intervals.limits([rate]) for rate in balanced.rates]
    for (end,), place in zip(intervals.rates([balanced]), ("lower", "upper"), strict=True):
        assert end[0] == pytest.approx(np.mean([getattr(part, place)[0, 0] for part in parts]))
    assert intervals.correlation(accuracy).tolist() == [[-1.0]]
