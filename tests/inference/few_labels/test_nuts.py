"""Posterior means and sds of the few-label model against NUTS, over easy and degenerate cases."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from fairbench.components.papers.released_scores import partly_labelled
from fairbench.inference.few_labels import BETA, CalibrationPosterior
from fairbench.metrics.group import difference
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
    for score, groups, labels, inverted in product(SCORES, (2, 6), (10, 100, 1000), (False, True))
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


@cache
def sampler(rows, n_groups):
    """Return a function of key and arrays: NUTS in NumPyro, compiled once for arrays of `rows`."""
    jax, numpyro = pytest.importorskip("jax"), pytest.importorskip("numpyro")
    dist, infer = numpyro.distributions, numpyro.infer

    def model(log_s, log_not_s, group, label, known):
        """Beta calibration of every group; rows that are not `known` only pad the arrays."""
        mean = numpyro.sample("mean", dist.Normal(0, np.array([0.4, 0.4, 2.0])).to_event(1))
        spread_sd = np.array([0.15, 0.15, 0.75])
        spread = numpyro.sample("spread", dist.HalfNormal(spread_sd).to_event(1))
        offset = numpyro.sample("offset", dist.Normal(0, 1).expand([n_groups, 3]).to_event(2))
        theta = numpyro.deterministic("theta", mean + spread * offset)
        a, b = (jax.numpy.exp(theta[group, k]) for k in (0, 1))
        log_odds = theta[group, 2] + a * log_s - b * log_not_s
        with numpyro.handlers.mask(mask=known):
            numpyro.sample("label", dist.Bernoulli(logits=log_odds), obs=label)

    @jax.jit
    def run(key, *arrays):
        kernel = infer.NUTS(model, target_accept_prob=0.9)
        options = {"num_chains": 2, "chain_method": "vectorized", "progress_bar": False}
        mcmc = infer.MCMC(kernel, num_warmup=1000, num_samples=1000, **options)
        mcmc.run(key, *arrays)
        return mcmc.get_samples(group_by_chain=True)["theta"]

    return lambda *arrays: np.asarray(run(jax.random.PRNGKey(0), *arrays), np.float64)


def theta_draws(table, *, rows):
    """Return (chains, draws, G, 3) draws; groups beyond the table's follow their prior."""
    shown = table.labelled
    score = np.clip(table.score[shown], 0.01, 0.99)
    columns = (np.log(score), np.log1p(-score), table.group[shown], table.label[shown])
    arrays = (np.pad(column, (0, rows - len(shown))) for column in columns)
    return sampler(rows, 6)(*arrays, np.arange(rows) < len(shown))[:, :, : table.n_groups]


def z_scores(table, generator, *, rows):
    """Return z-scores of means (3,) and of sds (3,) of the rates' first differences."""
    theta = theta_draws(table, rows=rows)
    diagnostics = pytest.importorskip("numpyro.diagnostics")
    posterior = CalibrationPosterior.of(table, generator, pool_noise=False)
    family, size = posterior.family, 1000  # of 2048 draws, which are worth about so many
    coefficients = BETA.flat_coefficients(theta.reshape(-1, 3 * table.n_groups))
    exact = family.counts(posterior.rows, family.shown(posterior.rows), coefficients, generator)
    means, sds = [], []
    for rate in RATES:
        values = difference(rate, exact)[..., 0].reshape(theta.shape[:2])
        mean, sd = values.mean(), values.std()
        error = sd / np.sqrt(diagnostics.effective_sample_size(values))
        draws = difference(rate, posterior.counts)[..., 0]
        means.append((draws.mean() - mean) / np.hypot(error, draws.std() / np.sqrt(size)))
        # The sampling variance of a variance is (kurtosis - 1) sd^4 / n.
        kurtosis = ((values - mean) ** 4).mean() / sd**4
        relative = np.sqrt((kurtosis - 1) / 4 * ((error / sd) ** 2 + 1 / size))
        sds.append((draws.std() / sd - 1) / relative)
    return np.array(means), np.array(sds)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore::Warning:numpyro|jax")
def test_means_and_sds_agree_with_nuts_within_monte_carlo_error():
    found = []
    for parameters in CASES:
        table, generator = case(*parameters)
        found.append(z_scores(table, generator, rows=128 if parameters[2] <= 128 else 1024))
    means, sds = np.sqrt(np.mean(np.square(found), axis=(0, 2)))
    assert 0.6 < means < 1.4
    assert sds < 2
