"""Thresholds per group: the hull, the programme, and the mixtures, against other ways to them."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from sklearn.metrics import roc_curve

from fairbench.metrics.group import RocHull, expected_counts, least_error
from fairbench.metrics.rates import binary_confusion, error_rate, selection_rate, total
from fairbench.metrics.registry import BINARY, metrics_of

GAPS = metrics_of(BINARY, "widest")

RELAXATIONS = (0, 0.01, 0.05, 0.1, 0.3, 1)


def simulated(n=600, groups=3, decimals=2):
    draw = np.random.default_rng(3)
    group = draw.integers(groups, size=n)
    score = np.round(draw.beta(1 + group, 2), decimals)
    target = (draw.random(n) < score ** (1 + group / 2)).astype(float)
    return target, score, group


def hulls_of(target, score, group):
    return [RocHull.of(target[group == g], score[group == g]) for g in range(group.max() + 1)]


def error(thresholds):
    return float(error_rate(total(thresholds.counts))[0])


def test_the_hull_is_that_of_the_roc_curve():
    target, score, _ = simulated(groups=1)
    (hull,) = hulls_of(target, score, np.zeros(len(target), int))
    found = hull.counts[:, [1, 3]] / [(target == 0).sum(), target.sum()]
    curve = np.stack(roc_curve(target, score, drop_intermediate=False)[:2], axis=1)
    # With the corner of the worst classifier, the rest of the hull is the curve's upper one.
    points = np.vstack([curve, [1, 0]])
    vertices = points[ConvexHull(points).vertices]
    expected = vertices[(vertices != [1, 0]).any(axis=1)]
    np.testing.assert_allclose(np.unique(found, axis=0), np.unique(expected, axis=0))
    for threshold, counts in zip(hull.thresholds, hull.counts, strict=True):
        direct = binary_confusion(target, score > threshold, 0 * target, n_groups=1)[0]
        np.testing.assert_array_equal(counts, direct)


@pytest.mark.parametrize("target", [[0, 0, 0], [1, 1], [1]])
def test_a_group_of_one_label_keeps_the_constant_decisions(target):
    hull = RocHull.of(np.array(target, float), np.linspace(0.2, 0.7, len(target)))
    np.testing.assert_array_equal(hull.thresholds[[0, -1]], [-np.inf, np.inf])
    assert hull.counts[0, :1].sum() == hull.counts[-1, 1] == 0


@pytest.mark.parametrize(
    ("metric", "constraint"),
    [
        ("equalized_odds", "equalized_odds"),
        ("statistical_parity", "demographic_parity"),
        ("equal_opportunity", "true_positive_rate_parity"),
    ],
)
def test_at_parity_it_is_fairlearns_threshold_optimizer(metric, constraint):
    """Which tries a grid of rates, so that it is at most a little worse."""
    from fairlearn.postprocessing import ThresholdOptimizer

    from algorithms.estimators.given import Given

    target, score, group = simulated()
    (ours,) = least_error(hulls_of(target, score, group), GAPS[metric].rates, [0])
    optimizer = ThresholdOptimizer(
        estimator=Given(), constraints=constraint, prefit=True, grid_size=5000,
        predict_method="predict",
    )  # fmt: skip
    optimizer.fit(score[:, None], target, sensitive_features=group)
    chance = optimizer._pmf_predict(score[:, None], sensitive_features=group)[:, 1]
    theirs = expected_counts(target, chance, group, n_groups=3)
    assert GAPS[metric](ours.counts) == pytest.approx(0, abs=1e-9)
    difference = float(error_rate(total(theirs))[0]) - error(ours)
    assert -1e-5 < difference < 5e-4


@pytest.mark.parametrize("relaxation", [0, 0.03, 0.2])
def test_statistical_parity_is_the_best_of_all_pairs_of_selection_rates(relaxation):
    target, score, group = simulated(n=40, groups=2, decimals=1)
    grid = np.linspace(0, 1, 1001)
    least = []
    for g in (0, 1):
        mine, y = score[group == g], target[group == g]
        single = [mine > t for t in (-1, *np.unique(mine))]
        rate = np.array([p.mean() for p in single])
        wrong = np.array([(p != y).sum() for p in single])
        chords = [
            np.interp(grid, [rate[j], rate[i]], [wrong[j], wrong[i]], left=np.inf, right=np.inf)
            for i, j in product(range(len(rate)), repeat=2)
            if rate[i] >= rate[j]
        ]
        least.append(np.min(chords, axis=0))
    far = np.abs(grid[:, None] - grid) > relaxation + 1e-9
    brute = np.where(far, np.inf, least[0][:, None] + least[1]).min() / len(target)
    (ours,) = least_error(hulls_of(target, score, group), (selection_rate,), [relaxation])
    # The grid misses the best rates by at most half a step.
    assert error(ours) == pytest.approx(brute, abs=1e-3)
    assert error(ours) <= brute + 1e-4


@pytest.mark.parametrize("metric", ["statistical_parity", "equal_opportunity", "equalized_odds"])
def test_looser_constraints_hold_and_cost_less(metric):
    hulls = hulls_of(*simulated())
    found = least_error(hulls, GAPS[metric].rates, RELAXATIONS)
    errors = np.array([error(each) for each in found])
    assert (np.diff(errors) < 1e-5).all()
    assert errors[0] > errors[-1] + 0.005
    for relaxation, each in zip(RELAXATIONS, found, strict=True):
        assert GAPS[metric](each.counts) <= relaxation + 1e-7
    unprocessed = sum(hull.counts[:, [1, 2]].sum(axis=1).min() for hull in hulls) / 600
    assert errors[-1] == pytest.approx(unprocessed, abs=1e-5)


def test_chances_give_the_counts_that_were_promised():
    target, score, group = simulated()
    for each in least_error(
        hulls_of(target, score, group), GAPS["equalized_odds"].rates, RELAXATIONS
    ):
        counts = expected_counts(target, each.chance(score, group), group, n_groups=3)
        np.testing.assert_allclose(counts, each.counts, atol=1e-9)


def test_of_equal_errors_the_threshold_nearest_to_a_half_is_taken():
    target, score = np.array([0.0, 1, 0, 1]), np.array([0.1, 0.3, 0.4, 0.9])
    hulls = hulls_of(target, score, np.zeros(4, int))
    (found,) = least_error(hulls, (selection_rate,), [1])
    np.testing.assert_allclose(hulls[0].thresholds, [-np.inf, 0.2, 0.65, np.inf])
    np.testing.assert_allclose(found.weights[0], [0, 0, 1, 0])


def by_linprog(hulls, rates, relaxation):
    """Return the solution of the same programme as it is written down, by another of scipy's."""
    counts = np.concatenate([hull.counts for hull in hulls])
    own = np.repeat(np.eye(len(hulls)), [len(hull.thresholds) for hull in hulls], axis=1)
    away = np.abs(np.concatenate([hull.thresholds for hull in hulls]) - 0.5).clip(max=0.5)
    lowest = np.repeat(np.eye(len(rates)), len(hulls), axis=0)
    above = np.hstack([np.vstack([own * rate(counts) for rate in rates]), -lowest])
    found = linprog(
        np.concatenate([counts[:, 1] + counts[:, 2] + away / 500, np.zeros(len(rates))]),
        A_ub=np.vstack([above, -above]),
        b_ub=np.repeat([relaxation, 0.0], len(above)),
        A_eq=np.hstack([own, np.zeros((len(hulls), len(rates)))]),
        b_eq=np.ones(len(hulls)),
    ).x[: len(counts)]
    return [found[mine > 0].clip(min=0) / found[mine > 0].clip(min=0).sum() for mine in own]


@pytest.mark.parametrize("metric", ["statistical_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("groups", [2, 3])
def test_thresholds_are_those_of_the_programme_to_the_last_bit(metric, groups):
    """Where the best thresholds of all meet a constraint, too, and nothing is solved."""
    hulls, rates = hulls_of(*simulated(groups=groups, decimals=4)), GAPS[metric].rates
    relaxations = (*RELAXATIONS, 1)
    found = least_error(hulls, rates, relaxations)
    assert found[-1] is found[-2]
    for relaxation, each in zip(relaxations, found, strict=True):
        theirs = by_linprog(hulls, rates, relaxation)
        assert [ours.tobytes() for ours in each.weights] == [other.tobytes() for other in theirs]


def test_thresholds_that_are_as_good_are_left_to_the_programme():
    """Under 0.2 and under 0.8 the same rows are wrong, and both are as far from a half."""
    hull = RocHull.of(np.array([0.0, 1, 0, 1]), np.array([0.1, 0.3, 0.7, 0.9]))
    np.testing.assert_allclose(hull.thresholds, [-np.inf, 0.2, 0.8, np.inf])
    found = least_error([hull], (selection_rate,), [1, 1])
    assert found[0] is not found[1]
    assert error(found[0]) == pytest.approx(0.25)
