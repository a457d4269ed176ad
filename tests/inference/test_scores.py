"""Intervals of areas, calibration errors and distances; tests/coverage has how often they hold."""

import numpy as np
import pytest
from scipy import special, stats
from sklearn.metrics import roc_auc_score

from fairbench.inference import scores
from fairbench.inference.gaps import distance_limits
from fairbench.inference.survey import Design
from fairbench.metrics.regression import distribution_distances
from fairbench.metrics.uncertainty import area_under_risk_coverage


def test_areas_and_variances_by_group_are_those_of_all_pairs():
    """DeLong's variance, pair by pair."""
    draw = np.random.default_rng(0)
    y, score = draw.integers(0, 2, 400), draw.random(400).round(2)
    codes = draw.choice([0, 1, 3], 400)
    result = scores.Areas.of(y.astype(float), score, codes, 4)
    for g in (0, 1, 3):
        mine = codes == g
        positive, negative = (score[mine & (y == label)] for label in (1, 0))
        wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
        variance = sum(wins.mean(axis=1 - k).var(ddof=1) / wins.shape[k] for k in (0, 1))
        assert result.area[g] == pytest.approx(roc_auc_score(y[mine], score[mine]), rel=1e-14)
        assert result.variance[g] == pytest.approx(variance)
    assert np.isnan(result.area[2])


def test_a_perfect_area_is_not_surely_perfect():
    perfect = scores.Areas(np.ones(2), np.array([10.0, 9.0]), np.full(2, 10.0), np.zeros(2))
    limits = perfect.limits()
    assert 0.6 < limits.lower[0] < 0.95
    assert limits.upper[0] == 1
    assert np.isnan(limits.lower[1])  # under 10 rows of a label


def calibrated(draw, repeats, rows, slope=1.0, bins=15):
    """Return diagrams (R, B) of scores, which are calibrated where the slope is 1."""
    logit = draw.standard_normal((repeats, rows)) * 1.5 - 1
    label = draw.random(logit.shape) < special.expit(logit)
    score = special.expit(slope * logit)
    cell = np.clip(np.ceil(score * bins).astype(int) - 1, 0, bins - 1)
    cell += bins * np.arange(repeats)[:, None]
    size, positives, total = (
        np.bincount(cell.ravel(), weight.ravel(), repeats * bins).reshape(repeats, bins)
        for weight in (np.ones_like(score), label, score)
    )
    return scores.Bins(size, positives, total / np.maximum(size, 1))


def test_calibrated_groups_of_unequal_sizes_do_not_differ_in_debiased_errors():
    draw = np.random.default_rng(3)
    small, large = (calibrated(draw, 1000, rows) for rows in (100, 2000))
    plain = (small.plug_in() - large.plug_in()).mean()
    assert plain > 0.07
    assert abs((scores._debiased_error(small) - scores._debiased_error(large)).mean()) < plain / 2.5


def test_distances_of_pairs_that_are_not_known_have_wider_limits():
    draw, sizes = np.random.default_rng(5), np.array([100, 40, 40])
    apart = distribution_distances([draw.normal(g == 1, 1, n) for g, n in enumerate(sizes)])
    limits = distance_limits(apart, sizes)
    wide = distance_limits(np.full((3, 3), apart.max()), sizes, known=False)
    assert limits.value == apart.max()
    assert wide.lower < limits.lower < limits.value < limits.upper < wide.upper


def test_the_area_under_a_risk_coverage_curve_is_that_of_the_curve():
    draw = np.random.default_rng(7)
    u = draw.integers(0, 9, 60) / 9
    wrong = draw.random(60) < u / 3
    limits = scores.coverage_area_limits(wrong, u)
    assert limits.value == pytest.approx(area_under_risk_coverage(wrong, u))
    assert 0 < limits.lower < limits.value < limits.upper


def test_rank_correlations_cover():
    draw, result = np.random.default_rng(6), []
    truth = 6 / np.pi * np.arcsin(0.6 / 2)
    for _ in range(500):
        a = draw.standard_normal(50)
        b = 0.6 * a + 0.8 * draw.standard_normal(50)
        limits = scores.correlation_limits(stats.spearmanr(a, b).statistic, 50)
        result.append(limits.lower <= truth <= limits.upper)
    assert np.mean(result) > 0.92
    assert np.isnan(scores.correlation_limits(0.5, 19).lower)


def clustered_areas(sizes, *, nested=False):
    """Return the areas of clusters whose scores are alike by 0.3."""
    draw, replications = np.random.default_rng(0), 20
    units = replications * len(sizes)
    unit = np.repeat(np.arange(units), np.tile(sizes, replications))
    label = (draw.random(units)[unit] if nested else draw.random(len(unit))) < 0.4
    score = label + np.sqrt(0.3) * draw.standard_normal(units)[unit]
    score += np.sqrt(0.7) * draw.standard_normal(len(unit))
    design = Design.of(len(unit), clusters=unit)
    return scores.Areas.of(label, score, unit // len(sizes), replications, design=design)


def test_clusters_of_equal_size_leave_their_number_less_one_and_unequal_ones_fewer():
    kish = (5 * 80 + 15 * 8) ** 2 / (5 * 80**2 + 15 * 8**2)
    assert clustered_areas([20] * 20).units == pytest.approx(20)
    assert clustered_areas([80] * 5 + [8] * 15).units == pytest.approx(kish)
    assert (clustered_areas([20] * 20, nested=True).units < 20).all()


def test_a_label_of_fewer_than_five_clusters_has_no_area_with_an_interval():
    label = np.repeat([1.0, 0.0], [400, 600])
    unit = np.concatenate([np.repeat(np.arange(4), 100), 4 + np.repeat(np.arange(30), 20)])
    rows = label, np.random.default_rng(0).normal(size=1000) + label, np.zeros(1000, int), 1
    for clusters, printed in ((unit, False), (np.arange(1000), True)):
        areas = scores.Areas.of(*rows, design=Design.of(1000, clusters=clusters))
        assert np.isnan(areas.limits().lower).all() != printed
