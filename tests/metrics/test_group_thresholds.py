"""Thresholds per group: the hull, the programme, and the mixtures, against other ways to them."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import ConvexHull
from sklearn.metrics import roc_curve

from fairbench.evaluation.abstention import CONSTRAINTS
from fairbench.metrics import registry
from fairbench.metrics.group import RocHull, expected_counts, least_error

GAPS = registry.metrics_of(registry.BINARY, "widest")

RELAXATIONS = (0, 0.01, 0.05, 0.1, 0.3, 1)


def simulated(n=600, groups=3, decimals=2):
    draw = np.random.default_rng(3)
    group = draw.integers(groups, size=n)
    score = np.round(draw.beta(1 + group, 2), decimals)
    return (draw.random(n) < score ** (1 + group / 2)).astype(float), score, group


def hulls_of(target, score, group):
    return [RocHull.of(target[group == g], score[group == g]) for g in range(group.max() + 1)]


def solved(hulls, rates, relaxations):
    """Return the counts (E, G, 4) that thresholds of one sample promise, and their errors."""
    (weights,) = least_error([hulls], rates, relaxations)
    counts = expected_counts(weights, [hull.counts for hull in hulls])
    return counts, registry.error_rate(registry.total(counts))[..., 0]


def counted(target, score, thresholds):
    """Return the counts (T, 4) of a group at thresholds."""
    none = np.zeros(len(target), int)
    decisions = (score > threshold for threshold in thresholds)
    return [registry.binary_confusion(target, each, none, n_groups=1)[0] for each in decisions]


def test_the_hull_is_that_of_the_roc_curve():
    target, score, _ = simulated(groups=1)
    hull = RocHull.of(target, score)
    result = hull.counts[:, [1, 3]] / [(target == 0).sum(), target.sum()]
    curve = np.stack(roc_curve(target, score, drop_intermediate=False)[:2], axis=1)
    # With the corner of the worst classifier, the rest of the hull is the curve's upper one.
    points = np.vstack([curve, [1, 0]])
    vertices = points[ConvexHull(points).vertices]
    expected = vertices[(vertices != [1, 0]).any(axis=1)]
    np.testing.assert_allclose(np.unique(result, axis=0), np.unique(expected, axis=0))
    np.testing.assert_array_equal(hull.counts, counted(target, score, hull.thresholds))


@pytest.mark.parametrize("target", [[0, 0, 0], [1, 1], [1]])
def test_a_group_of_one_label_keeps_the_constant_decisions(target):
    hull = RocHull.of(np.array(target, float), np.linspace(0.2, 0.7, len(target)))
    np.testing.assert_array_equal(hull.thresholds[[0, -1]], [-np.inf, np.inf])
    assert hull.counts[0, :1].sum() == hull.counts[-1, 1] == 0


def test_other_rows_are_counted_at_the_same_thresholds():
    rows, others = simulated(), simulated(n=200, decimals=1)  # some at a threshold
    for g, hull in enumerate(hulls_of(*rows)):
        y, s = (column[others[2] == g] for column in others[:2])
        np.testing.assert_array_equal(hull.counts_of(y, s), counted(y, s, hull.thresholds))
        own = (column[rows[2] == g] for column in rows[:2])
        np.testing.assert_array_equal(hull.counts_of(*own), hull.counts)


def test_of_equal_errors_the_threshold_nearest_to_a_half_is_taken():
    hull = RocHull.of(np.array([0.0, 1, 0, 1]), np.array([0.1, 0.3, 0.4, 0.9]))
    ((weights,),) = least_error([[hull]], (registry.selection_rate,), [1])
    np.testing.assert_allclose(hull.thresholds, [-np.inf, 0.2, 0.65, np.inf])
    np.testing.assert_allclose(weights, [[0, 0, 1, 0]])


def by_linprog(hulls, rates, relaxation):
    """Return cost and weights of the programme as it is written down, by another of scipy's."""
    counts, thresholds = (
        np.concatenate([getattr(hull, name) for hull in hulls]) for name in ("counts", "thresholds")
    )
    own = np.repeat(np.eye(len(hulls)), [len(hull.thresholds) for hull in hulls], axis=1)
    away = np.abs(thresholds - 0.5).clip(max=0.5)
    lowest = np.repeat(np.eye(len(rates)), len(hulls), axis=0)
    above = np.hstack([np.vstack([own * rate(counts) for rate in rates]), -lowest])
    result = linprog(
        np.append(counts[:, 1] + counts[:, 2] + away / 500, np.zeros(len(rates))),
        *(np.vstack([above, -above]), np.repeat([relaxation, 0.0], len(above))),
        *(np.hstack([own, np.zeros((len(hulls), len(rates)))]), np.ones(len(hulls))),
    )
    weights = result.x[: len(counts)]
    return result.fun, [weights[mine > 0] for mine in own]


@pytest.mark.thorough
@pytest.mark.parametrize("metric", CONSTRAINTS)
def test_no_thresholds_of_random_groups_are_better_than_the_programmes(metric):
    """Whatever is tied: few rows, scores rounded to tenths, groups in order and out of it."""
    draw, rates, samples = np.random.default_rng(5), GAPS[metric].rates, []
    for _ in range(12):
        size = draw.integers(4, 60, size=draw.integers(2, 5))
        score = [np.round(draw.random(n), 1) for n in size]
        target = [np.append(draw.random(n - 2) < draw.random(), [0, 1]).astype(float) for n in size]
        samples.append([RocHull.of(*of) for of in zip(target, score, strict=True)])
    for hulls, weights in zip(samples, least_error(samples, rates, RELAXATIONS), strict=True):
        counts = expected_counts(weights, [hull.counts for hull in hulls])
        assert (GAPS[metric](counts) <= np.array(RELAXATIONS) + 1e-9).all()
        for e, relaxation in enumerate(RELAXATIONS):
            least, _ = by_linprog(hulls, rates, relaxation)
            ours = sum(w[e] @ hull.costs for w, hull in zip(weights, hulls, strict=True))
            assert ours == pytest.approx(least, abs=1e-9)
            assert all(w[e].min() >= 0 and w[e].sum() == pytest.approx(1) for w in weights)


def test_thresholds_that_are_as_good_are_told_apart_by_the_constraint_alone():
    """Under 0.2 and under 0.8 the same rows are wrong, and both are as far from a half."""
    hull = RocHull.of(np.array([0.0, 1, 0, 1]), np.array([0.1, 0.3, 0.7, 0.9]))
    np.testing.assert_allclose(hull.thresholds, [-np.inf, 0.2, 0.8, np.inf])
    assert solved([hull], (registry.selection_rate,), [1])[1] == pytest.approx([0.25])
    # Both groups are perfect at a half, of rates 1/4 and 3/4: anything between costs 1.6 rows.
    few, many = np.array([0.0, 0, 0, 1]), np.array([0.0, 1, 1, 1])
    hulls = [RocHull.of(y, np.where(y, 0.9, 0.1)) for y in (few, many)]
    counts, errors = solved(hulls, (registry.selection_rate,), [0.1, 0.1])
    np.testing.assert_allclose(registry.selection_rate(counts), [[0.65, 0.75]] * 2)
    np.testing.assert_allclose(errors, 1.6 / 8)
