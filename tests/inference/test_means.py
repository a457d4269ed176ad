"""Intervals of mean losses and of root mean squares: they cover, print and hold their point."""

import numpy as np
import pytest
from scipy import stats

from fairbench.inference.means import (
    Moments,
    heavy_limits,
    loss_limits,
    outcome_limits,
    root_limits,
    shown_share,
)

R = 2000
LOSSES = {
    "half normal": (lambda draw, s: np.abs(draw.standard_normal(s)), np.sqrt(2 / np.pi)),
    "exponential": (lambda draw, s: draw.exponential(size=s), 1.0),
    "of exponential errors": (lambda draw, s: np.abs(draw.exponential(size=s) - 1), 2 / np.e),
    "lognormal": (lambda draw, s: draw.lognormal(size=s), np.exp(0.5)),
    "absolute t3": (lambda draw, s: np.abs(draw.standard_t(3, s)), 2 * np.sqrt(3) / np.pi),
    "t3": (lambda draw, s: draw.standard_t(3, s), 0.0),
    "left-skewed": (lambda draw, s: -draw.exponential(size=s), -1.0),
}
SQUARES = {
    "normal": (lambda draw, s: draw.standard_normal(s) ** 2, 1.0),
    "exponential": (lambda draw, s: (draw.exponential(size=s) - 1) ** 2, 1.0),
    "t5": (lambda draw, s: draw.standard_t(5, s) ** 2, 5 / 3),
}


def covered(limits, truth):
    return ((limits.lower <= truth) & (truth <= limits.upper)).mean()


@pytest.mark.parametrize("rows", [20, 50, 200])
@pytest.mark.parametrize("name", LOSSES)
def test_intervals_of_means_cover_skewed_and_heavy_tailed_losses(name, rows):
    losses, truth = LOSSES[name]
    limits = loss_limits(Moments.of(losses(np.random.default_rng(1), (R, rows))))
    assert covered(limits, truth) > 0.915  # at least 93.5 %, and three standard errors


@pytest.mark.parametrize("name", SQUARES)
def test_intervals_of_root_mean_squares_cover(name):
    squares, truth = SQUARES[name]
    for rows in (50, 200):
        limits = root_limits(Moments.of(squares(np.random.default_rng(2), (R, rows))))
        assert covered(limits, np.sqrt(truth)) > 0.92


def test_of_many_rows_the_interval_is_the_normal_one():
    x = np.random.default_rng(3).standard_normal(100_000)
    limits = loss_limits(Moments.of(x), level=0.9)
    expected = stats.norm.interval(0.9, x.mean(), stats.sem(x))
    np.testing.assert_allclose(limits[1:], expected, rtol=0.02)


def test_moments_by_group_are_those_of_each_groups_rows():
    draw = np.random.default_rng(4)
    x, codes = draw.exponential(size=300), draw.choice([0, 1, 3], 300)
    found = Moments.of_groups(x, codes, 4)
    for g in (0, 1, 3):
        part = x[codes == g]
        assert found.size[g] == len(part)
        assert found.mean[g] == pytest.approx(part.mean())
        assert found.sd[g] == pytest.approx(part.std(ddof=1))
        assert found.skewness[g] == pytest.approx(stats.skew(part))
        assert (found.lowest[g], found.highest[g]) == (part.min(), part.max())
        alone = loss_limits(Moments.of(part))
        np.testing.assert_allclose([each[g] for each in loss_limits(found)], alone, rtol=1e-9)
    assert found.size[2] == 0
    assert np.isnan(loss_limits(found).lower[2])


def test_few_rows_have_no_interval():
    x = np.random.default_rng(5).exponential(size=49)
    assert np.isnan(loss_limits(Moments.of(x[:19])).lower)
    assert np.isfinite(loss_limits(Moments.of(x[:20])).lower)
    assert np.isnan(root_limits(Moments.of(x)).upper)


def test_losses_that_are_never_negative_have_no_negative_mean():
    x = np.r_[np.zeros(29), 5.0]
    limits = loss_limits(Moments.of(x), least=0.0)
    assert 0 <= limits.lower < x.mean() < limits.upper


def test_a_constant_loss_is_known():
    np.testing.assert_allclose(loss_limits(Moments.of(np.full(30, 0.7)))[1:], 0.7)


def log_losses(draw, base, rows):
    """Return losses (R, n) of calibrated scores around a base rate, labels, and the mean loss."""

    def sample(shape):
        score = 1 / (1 + np.exp(-(np.log(base / (1 - base)) + draw.standard_normal(shape))))
        label = draw.random(shape) < score
        return -np.log(np.where(label, score, 1 - score)), label

    losses, labels = sample((R, rows))
    cells = 2 * np.arange(R)[:, None] + labels
    moments = Moments.of_groups(losses.ravel(), cells.ravel(), 2 * R)
    return moments.take(np.arange(2 * R).reshape(R, 2)), sample(1_000_000)[0].mean()


@pytest.mark.parametrize(("base", "rows"), [(0.03, 200), (0.03, 400), (0.3, 50), (0.3, 200)])
def test_mean_losses_of_rare_labels_cover_among_those_that_print(base, rows):
    moments, truth = log_losses(np.random.default_rng(6), base, rows)
    limits = outcome_limits(moments, least=0.0)
    prints = ~np.isnan(limits.lower)
    assert (prints == (moments.size.min(axis=-1) >= 10)).all()
    inside = (limits.lower[prints] <= truth) & (truth <= limits.upper[prints])
    assert inside.mean() > 0.93
    total = (moments.size * np.nan_to_num(moments.mean)).sum(axis=-1) / rows
    np.testing.assert_allclose(limits.value, total)


def test_a_share_that_is_shown_only_with_ten_rows_has_the_limit_of_those_shown():
    limits = shown_share(np.array([10.0, 13.0, 60.0, 187.0]), np.full(4, 200.0))
    assert limits.lower[0] == 0
    conditional = stats.binom.sf(12, 200, limits.lower[1]) / stats.binom.sf(9, 200, limits.lower[1])
    assert conditional == pytest.approx(0.025, rel=1e-4)
    assert limits.upper[3] == pytest.approx(1 - limits.lower[1])
    assert limits.lower[2] > 0.2


@pytest.mark.parametrize("rows", [50, 400])
@pytest.mark.parametrize("freedom", [3, 30])
def test_likelihoods_of_heavy_tailed_errors_are_covered(freedom, rows):
    draw = np.random.default_rng([freedom, rows])
    error = draw.standard_t(freedom, (1500, rows)) / np.sqrt(freedom / (freedom - 2))
    limits = heavy_limits(Moments.of(error**2 / 2 - 7))
    assert covered(limits, -6.5) > 0.925
    assert np.isnan(heavy_limits(Moments.of(error[:, :49])).lower).all()
