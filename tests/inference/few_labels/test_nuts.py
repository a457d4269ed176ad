"""Posterior means and sds of the few-label model against NUTS, over easy and degenerate cases."""

import numpy as np
import pytest

from fairbench.components.papers.released_scores import partly_labelled
from fairbench.inference.few_labels import BETA, bayesian_calibration
from fairbench.metrics.registry import accuracy, false_positive_rate, true_positive_rate

RATES = (accuracy, true_positive_rate, false_positive_rate)
SCORES = {
    "uniform": lambda draw: draw.uniform(size=1500),
    "skewed": lambda draw: draw.beta(0.6, 2.5, size=1500),
    "extreme": lambda draw: draw.choice([0.0, 0.003, 0.997, 1.0], size=1500),
    "coarse": lambda draw: draw.choice([0.0, 0.25, 0.75, 1.0], size=1500),
    "constant": lambda draw: np.where(np.arange(1500) % 5 == 0, 0.7, 0.3),
}
CASES = [
    (score, groups, labels, inverted)
    for score in SCORES
    for groups in (2, 6)
    for labels in (10, 100, 1000)
    for inverted in (False, True)
    if labels < 1000 or not (inverted and groups == 6)
]


def case(score, groups, labels, inverted):
    """Return a table of which the first `labels` rows, in random order, are labelled."""
    draw = np.random.default_rng([list(SCORES).index(score), groups, labels, inverted])
    values = SCORES[score](draw)
    group = draw.integers(0, groups, len(values))
    theta = draw.normal(0, 0.3, (groups, 3))
    design = BETA.design(values, group, groups)
    log_odds = (BETA.flat_coefficients(theta.reshape(1, -1)) @ design)[0]
    p = 1 / (1 + np.exp(log_odds if inverted else -log_odds))
    label = (draw.random(len(values)) < p).astype(float)
    table = partly_labelled(values, group, label, reference=0)
    return table.showing(draw.permutation(len(values))[:labels]), draw


def z_scores(table, generator, *, rows):
    """Return z-scores of means (3,) and of sds (3,) of the rates' first differences."""
    nuts = pytest.importorskip("tests.inference.few_labels.nuts")
    theta = nuts.theta_draws(table, rows=rows, n_groups=6)
    exact = nuts.differences(nuts.expected_counts(table, theta), RATES)
    posterior = bayesian_calibration(table, generator, pool_noise=False)
    ours = nuts.differences(posterior.counts, RATES)
    size = posterior.parameters.effective_size
    means, sds = [], []
    for rate in RATES:
        mean, sd, error = nuts.mean_and_error(exact[rate.name])
        draws = ours[rate.name]
        means.append((draws.mean() - mean) / np.hypot(error, draws.std() / np.sqrt(size)))
        # The sampling variance of a variance is (kurtosis - 1) sd^4 / n.
        kurtosis = ((exact[rate.name] - mean) ** 4).mean() / sd**4
        relative = np.sqrt((kurtosis - 1) / 4 * ((error / sd) ** 2 + 1 / size))
        sds.append((draws.std() / sd - 1) / relative)
    return np.array(means), np.array(sds)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore::Warning:numpyro|jax")
def test_means_and_sds_agree_with_nuts_within_monte_carlo_error(capsys):
    assert len(CASES) >= 50
    means, sds = [], []
    for parameters in CASES:
        table, generator = case(*parameters)
        mean, sd = z_scores(table, generator, rows=128 if parameters[2] <= 128 else 1024)
        means.append(mean)
        sds.append(sd)
        with capsys.disabled():
            print(*parameters, "z of means", mean.round(1), "of sds", sd.round(1), flush=True)
    rms = [float(np.sqrt(np.mean(np.square(z)))) for z in (means, sds)]
    with capsys.disabled():
        print(f"rms z-score over {len(CASES)} cases: means {rms[0]:.2f}, sds {rms[1]:.2f}")
    assert 0.6 < rms[0] < 1.4
    assert rms[1] < 2
