"""Frequentist, beta-binomial and prediction-powered rates: closed forms and coverage."""

import numpy as np
import pytest
from scipy import stats

from fairbench.core.errors import UserError
from fairbench.inference.few_labels.calibration import BETA
from fairbench.inference.few_labels.frequentist import (
    beta_binomial,
    beta_parameters,
    frequentist,
    prediction_powered,
)
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.rates import accuracy, f1_score, true_positive_rate
from fairbench.metrics.registry import BINARY, metrics_of
from tests.inference.few_labels.pools import labelled, pool

RATES = [
    metric.function for metric in metrics_of(BINARY, "rate").values() if len(metric.rates) == 1
]

COUNTS = np.array([[30, 12, 9, 21], [4, 0, 0, 0]])


def truths(table, rate):
    return rate(table.counts())


def made(generator, *, rows=3000, groups=2, theta=0.0):
    return labelled(
        pool(generator, rows=rows, groups=groups), np.full((2, 3), theta), generator, BETA
    )


def test_frequentist_is_a_proportion_with_its_binomial_error():
    estimate = frequentist(COUNTS, true_positive_rate)
    np.testing.assert_allclose(estimate.value, [0.7, np.nan])
    np.testing.assert_allclose(estimate.error, [np.sqrt(0.7 * 0.3 / 30), np.nan])
    assert np.isnan(estimate.differences().value).all()


def test_errors_of_differences_add_in_quadrature():
    estimate = frequentist(np.array([[3, 1, 2, 4], [5, 5, 5, 5]]), accuracy)
    difference = estimate.differences()
    np.testing.assert_allclose(difference.value, [-0.2])
    np.testing.assert_allclose(difference.error, [np.sqrt(0.21 / 10 + 0.25 / 20)])


@pytest.mark.parametrize("prior", [1.0, 0.5])
def test_beta_binomial_has_beta_quantiles(prior):
    draws = beta_binomial(COUNTS, accuracy, np.random.default_rng(0), prior=prior, draws=20_000)
    for group, (right, wrong) in enumerate([(51, 21), (4, 0)]):
        for level in (0.025, 0.5, 0.9):
            cut = stats.beta.ppf(level, prior + right, prior + wrong)
            assert abs((draws[:, group] < cut).mean() - level) < 5 * np.sqrt(0.25 / 20_000)


def test_beta_binomial_refuses_what_is_no_proportion():
    with pytest.raises(UserError, match="f1_score is no proportion"):
        beta_parameters(COUNTS, f1_score)


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.name)
def test_without_power_labelled_rows_stand_alone(rate):
    generator = np.random.default_rng(1)
    table = made(generator).showing(generator.permutation(3000)[:300])
    powered = prediction_powered(table, rate, power=0.0)
    plain = frequentist(table.counts(), rate)
    np.testing.assert_allclose(powered.value, plain.value)
    sizes = np.bincount(table.group)
    labels = table.counts().sum(axis=1)
    correction = np.sqrt((1 - labels / sizes) * labels / (labels - 1))
    np.testing.assert_allclose(powered.error, plain.error * correction)


def test_full_power_is_the_pools_mean_score_plus_the_labelled_residual():
    generator = np.random.default_rng(2)
    table = made(generator).showing(generator.permutation(3000)[:100])
    powered = prediction_powered(table, accuracy, power=1.0)
    right = np.where(table.prediction == 1, table.score, 1 - table.score)
    for group in range(2):
        rows = table.group == group
        known = rows & ~np.isnan(table.label)
        residual = (table.label == table.prediction)[known] - right[known]
        expected = right[rows].mean() + residual.mean()
        assert powered.value[group] == pytest.approx(expected)
        correction = 1 - known.sum() / rows.sum()
        error = np.sqrt(residual.var(ddof=1) / known.sum() * correction)
        assert powered.error[group] == pytest.approx(error)


def test_perfect_scores_leave_no_error():
    generator = np.random.default_rng(3)
    label = generator.integers(0, 2, 500).astype(float)
    full = PartlyLabelled.of(label, np.arange(500) % 2, label, prediction=np.arange(500) % 3 > 0)
    part = full.showing(generator.permutation(500)[:40])
    for power in (1.0, None):
        powered = prediction_powered(part, true_positive_rate, power=power)
        np.testing.assert_allclose(powered.value, truths(full, true_positive_rate), atol=1e-12)
        np.testing.assert_allclose(powered.error, 0, atol=1e-9)


def test_groups_with_one_label_are_undefined():
    table = made(np.random.default_rng(4)).showing(np.array([0, 1, 2]))
    estimate = prediction_powered(table, accuracy)
    assert np.isfinite(estimate.value[0])
    assert np.isnan(estimate.value[1])


@pytest.mark.thorough
@pytest.mark.parametrize("power", [1.0, None], ids=["full", "tuned"])
@pytest.mark.parametrize("rate", [accuracy, true_positive_rate], ids=lambda rate: rate.name)
@pytest.mark.parametrize(
    "theta", [pytest.param(0.0, marks=pytest.mark.thorough), 0.8], ids=["calibrated", "wrong"]
)
def test_intervals_cover_the_pool_whatever_the_scores_are_worth(power, rate, theta):
    generator = np.random.default_rng(5)
    table = made(generator, theta=theta)
    truth, replications = truths(table, rate)[1] - truths(table, rate)[0], 500
    inside = 0
    for _ in range(replications):
        part = table.showing(generator.permutation(3000)[:300])
        estimate = prediction_powered(part, rate, power=power).differences()
        inside += abs(estimate.value[0] - truth) < 1.96 * estimate.error[0]
    # Four standard errors of 500 replications are 4 %.
    assert 0.90 < inside / replications < 0.99


def test_tuning_beats_both_extremes():
    generator = np.random.default_rng(6)
    table = made(generator).showing(generator.permutation(3000)[:400])
    tuned, full, none = (
        prediction_powered(table, accuracy, power=power).error for power in (None, 1.0, 0.0)
    )
    assert (tuned <= np.minimum(full, none) * 1.001).all()
