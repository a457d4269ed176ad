"""Plain means over families: what is averaged, and how often the intervals hold."""

import numpy as np
import pytest
from scipy import stats

from fairbench.components.papers.atlas.multilevel import fit
from fairbench.core.arrays import rng
from fairbench_rank.approaches import MeasuredDifferences, family_means, mean_over_families

FAMILY = np.array([0, 0, 0, 1, 2, 2, 3])
SIZES = (1,) * 12 + (2,) * 4 + (3, 3, 4, 6)  # data sets of each of twenty families


def measured(means, variances=None):
    means = np.asarray(means, float)
    variances = np.ones_like(means) if variances is None else variances
    splits = np.full(means.shape, 5.0)
    return MeasuredDifferences(means, variances, splits, np.full(means.shape[1], 0.2), FAMILY)


def growing_with_noise(count, draw, *, spread=0.3, growing=1.0):
    """Return differences of mean 0 in ten overlapping splits, larger where the noise is."""
    family, share, splits = np.repeat(np.arange(len(SIZES)), SIZES), 0.2, 10
    tasks = len(family)
    of_families = draw.standard_normal((count, len(SIZES)))[:, family]
    truth = np.sqrt(0.5) * (of_families + draw.standard_normal((count, tasks)))
    of_size = draw.standard_normal((count, tasks, 1))
    of_splits = np.sqrt(1 - share) * draw.standard_normal((count, tasks, splits))
    of_splits += np.sqrt(share) * draw.standard_normal((count, tasks, 1))
    values = spread * truth[:, :, None] + growing * of_size + np.exp(of_size) * of_splits
    return MeasuredDifferences(
        values.mean(axis=2),
        values.var(axis=2, ddof=1),
        np.full((count, tasks), float(splits)),
        np.full(tasks, share),
        family,
    )


def test_tasks_are_averaged_within_families_and_families_equally():
    values = rng(0, "means").standard_normal((3, 7))
    values[1, :3] = np.nan
    result = family_means(measured(values))
    for row, of in zip(values, result, strict=True):
        for family in range(4):
            own = row[family == FAMILY]
            own = own[np.isfinite(own)]
            expected = own.mean() if len(own) else np.nan
            assert of[family] == pytest.approx(expected, nan_ok=True)
    assert mean_over_families(result).value == pytest.approx(np.nanmean(result, axis=1))


def test_precision_has_no_weight():
    values = rng(0, "precision").standard_normal((1, 7))
    precise = np.array([[1e-9, 1, 1, 1, 1, 1, 1e-9]])
    one, other = (family_means(measured(values, errors)) for errors in (None, precise))
    assert np.array_equal(one, other)


def test_two_families_are_too_few():
    result = mean_over_families(np.array([[0.1, 0.2, np.nan, np.nan]]))
    assert np.isnan(result).all()


def test_the_interval_is_no_narrower_than_student_and_turns_with_the_sign():
    values = rng(0, "skewed").lognormal(size=(50, 20))
    result, turned = mean_over_families(values), mean_over_families(-values)
    student = stats.ttest_1samp(values, 0, axis=1).confidence_interval(0.95)
    assert (result.lower <= student.low + 1e-12).all()
    assert (result.upper >= student.high - 1e-12).all()
    assert (result.upper > student.high + 1e-6).any()
    assert turned.lower == pytest.approx(-result.upper)
    wider = mean_over_families(values, level=1 - 0.05 / 42)
    assert (wider.lower < result.lower).all() and (wider.upper > result.upper).all()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("population", "mean"),
    [
        (lambda draw: draw.standard_normal((1500, 20)), 0.0),
        (lambda draw: draw.standard_t(3, (1500, 20)), 0.0),
        (lambda draw: draw.standard_exponential((1500, 20)), 1.0),
        (lambda draw: draw.lognormal(size=(1500, 20)), np.exp(0.5)),
    ],
)
def test_intervals_of_twenty_families_hold(population, mean):
    result = mean_over_families(population(rng(0, "families")))
    assert np.mean((result.lower <= mean) & (mean <= result.upper)) >= 0.93


@pytest.mark.thorough
def test_they_hold_where_effects_grow_with_the_noise_and_the_model_does_not():
    """The mean over families is 0; the model weighs by precision, and is sure of another one."""
    of_size = growing_with_noise(150, rng(0, "growing"))
    plain = mean_over_families(family_means(of_size))
    lower, upper = fit(of_size, generator=rng(0, "model"), draws=150).interval()
    assert np.mean((plain.lower <= 0) & (plain.upper >= 0)) >= 0.93
    assert np.mean((lower <= 0) & (upper >= 0)) < 0.7
