"""Intervals of mean losses and of root mean squares; tests/coverage has how often they hold."""

import numpy as np
import pytest
from scipy import stats

from fairbench.inference.means import (
    Moments,
    divide_by_scale,
    heavy_limits,
    loss_limits,
    outcome_limits,
    root_limits,
    shown_share,
    tail_index,
)
from fairbench.metrics.probability import brier_rows, log_loss_rows

MOMENTS = ("size", "mean", "sd", "skewness", "lowest", "highest")


def index_of(values):
    """Return the tail index of each row of (R, n) values."""
    rows = np.repeat(np.arange(len(values)), values.shape[1])
    return tail_index(values.ravel(), rows, len(values))


def test_of_many_rows_the_interval_is_the_normal_one():
    x = np.random.default_rng(3).standard_normal(100_000)
    limits = loss_limits(Moments.of(x), level=0.9)
    expected = stats.norm.interval(0.9, x.mean(), stats.sem(x))
    np.testing.assert_allclose(limits[1:], expected, rtol=0.02)


def test_moments_by_group_are_those_of_each_groups_rows():
    draw = np.random.default_rng(4)
    x, codes = draw.exponential(size=300), draw.choice([0, 1, 3], 300)
    result = Moments.of_groups(x, codes, 4)
    limits = loss_limits(result)
    for g in (0, 1, 3):
        known = stats.describe(x[codes == g])
        expected = known.nobs, known.mean, known.variance**0.5, known.skewness, *known.minmax
        np.testing.assert_allclose([getattr(result, name)[g] for name in MOMENTS], expected)
        alone = loss_limits(Moments.of(x[codes == g]))
        np.testing.assert_allclose([end[g] for end in limits], alone, rtol=1e-9)
    assert result.size[2] == 0
    assert np.isnan(limits.lower[2])


def test_few_rows_have_no_interval():
    x = np.random.default_rng(5).exponential(size=(1, 199))
    assert [np.isnan(loss_limits(Moments.of(x[0, :n])).lower) for n in (19, 20)] == [True, False]
    assert np.isnan(root_limits(Moments.of(x), index_of(x)).upper).all()
    assert np.isnan(heavy_limits(Moments.of(x), index_of(x)).lower).all()


def test_means_that_are_bounded_have_limits_within_the_bounds():
    moments = Moments.of(np.append(np.ones(39), 0.9))
    free, bounded = loss_limits(moments), loss_limits(moments, least=0.0, most=1.0)
    assert free.upper > 1
    assert bounded.upper == 1
    assert bounded.lower == free.lower
    never_negative = loss_limits(Moments.of(np.r_[np.zeros(29), 5.0]), least=0.0)
    assert 0 <= never_negative.lower < 5 / 30 < never_negative.upper


def test_a_constant_loss_is_known():
    np.testing.assert_allclose(loss_limits(Moments.of(np.full(30, 0.7)))[1:], 0.7)


def test_mean_losses_of_labels_are_those_of_all_rows_and_print_from_ten_of_either_label_on():
    """tests/coverage has how often they hold."""
    draw = np.random.default_rng(6)
    label, score = (draw.random((300, 200)) < 0.05) * 1.0, draw.beta(1, 20, (300, 200))
    moments = of_labels(label, score, log_loss_rows)
    limits = outcome_limits(moments, least=0.0)
    assert (np.isnan(limits.lower) == (moments.size.min(axis=-1) < 10)).all()
    np.testing.assert_allclose(limits.value, log_loss_rows(label, score).mean(axis=1))


def of_labels(label, score, losses):
    """Return the moments (R, 2) of the losses of labels and scores (R, n)."""
    codes = np.repeat(np.arange(len(label)), label.shape[1])
    y, p = label.ravel(), score.ravel()
    result = Moments.by_label(losses(y, p), losses(1 - y, p), y.astype(np.intp), codes, len(label))
    return result.take(np.arange(2 * len(label)).reshape(-1, 2))


def test_a_share_that_is_shown_only_with_ten_rows_has_the_limit_of_those_shown():
    limits = shown_share(np.array([10.0, 13.0, 60.0, 187.0]), np.full(4, 200.0))
    assert limits.lower[0] == 0
    conditional = stats.binom.sf(12, 200, limits.lower[1]) / stats.binom.sf(9, 200, limits.lower[1])
    assert conditional == pytest.approx(0.025, rel=1e-4)
    assert limits.upper[3] == pytest.approx(1 - limits.lower[1])
    assert limits.lower[2] > 0.2


def test_perfect_hard_scores_may_be_wrong_and_wrong_ones_right():
    label = np.repeat([[0.0, 1.0]], 20, axis=1)
    limits = outcome_limits(of_labels(label, label, brier_rows), least=0.0)
    # Either label's 20 rows, half of all, with one row more that is wrong: two of 21 variances.
    each = (1 / 21 + stats.t(20).ppf(0.975) / 21) / 2
    assert (limits.lower[0], limits.upper[0]) == (0, pytest.approx(np.hypot(each, each)))
    wrong = outcome_limits(of_labels(label, 1 - label, brier_rows), least=0.0)
    assert wrong.lower[0] == pytest.approx(1 - limits.upper[0])
    assert wrong.upper[0] == 1


def test_what_rows_could_lose_is_that_of_the_ten_that_would_lose_most():
    score = np.linspace(0, 1, 41)
    label = (np.arange(41) % 2) * 1.0
    result = of_labels(label[None], score[None], brier_rows)
    np.testing.assert_allclose(result.most[0], np.mean(np.linspace(1, 0.775, 10) ** 2))
    np.testing.assert_allclose(result.least[0], np.mean(np.linspace(0, 0.225, 10) ** 2))


@pytest.mark.parametrize("rows", [400, 1000])
def test_a_mean_that_a_few_rows_make_has_no_interval(rows):
    squares = np.random.default_rng(8).lognormal(0, 4, (500, rows))
    assert np.isfinite(root_limits(Moments.of(squares), index_of(squares)).lower).mean() < 0.08


def test_the_tail_index_is_hills_and_that_of_a_pareto():
    x = np.random.default_rng(9).pareto(2, (1, 5000)) + 1
    ordered = np.sort(x[0])[::-1]
    m = int(np.ceil(5000**0.6))
    assert index_of(x)[0] == pytest.approx(np.log(ordered[:m] / ordered[m]).mean())
    assert index_of(x)[0] == pytest.approx(0.5, abs=0.15)
    assert index_of(np.zeros((1, 50)))[0] == np.inf
    assert index_of(np.append(np.zeros(50), x[0, :9])[None])[0] == np.inf
    assert index_of(np.append(np.zeros(50), x[0, :500])[None])[0] == index_of(x[:, :500])[0]


def test_scaled_values_lose_no_digit_and_their_squares_do_not_overflow():
    x, codes = np.array([1e199, -3e198, 1e-200, 0.3, 0.0]), np.array([0, 0, 1, 2, 3])
    small, scale = divide_by_scale(x, codes, 4)
    np.testing.assert_array_equal(small * scale[codes], x)
    assert (np.abs(small) <= 1).all()
    assert (small[:4] ** 2 > 0).all()
    assert scale[3] == 1
