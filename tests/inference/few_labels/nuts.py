"""The hierarchical calibration model of Ji et al. in NumPyro, sampled by NUTS: the slow oracle."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS

from fairbench.metrics.group import difference

MEAN_SD, SPREAD_SD = jnp.array([0.4, 0.4, 2.0]), jnp.array([0.15, 0.15, 0.75])


def model(log_s, log_not_s, group, label, known, *, n_groups):
    """Beta calibration of every group; rows that are not `known` only pad the arrays."""
    mean = numpyro.sample("mean", dist.Normal(0, MEAN_SD).to_event(1))
    spread = numpyro.sample("spread", dist.HalfNormal(SPREAD_SD).to_event(1))
    offset = numpyro.sample("offset", dist.Normal(0, 1).expand([n_groups, 3]).to_event(2))
    theta = numpyro.deterministic("theta", mean + spread * offset)
    a, b, c = jnp.exp(theta[group, 0]), jnp.exp(theta[group, 1]), theta[group, 2]
    log_odds = c + a * log_s - b * log_not_s
    with numpyro.handlers.mask(mask=known):
        numpyro.sample("label", dist.Bernoulli(logits=log_odds), obs=label)


@cache
def sampler(rows, n_groups, draws, chains):
    """Return a function of key and arrays, compiled once for arrays of `rows`."""
    options = {"num_chains": chains, "chain_method": "vectorized", "progress_bar": False}

    @jax.jit
    def run(key, *arrays):
        kernel = NUTS(partial(model, n_groups=n_groups), target_accept_prob=0.9)
        mcmc = MCMC(kernel, num_warmup=1000, num_samples=draws, **options)
        mcmc.run(key, *arrays)
        return mcmc.get_samples(group_by_chain=True)["theta"]

    return run


def theta_draws(table, *, rows, n_groups, draws=1000, chains=2, seed=0):
    """Return (chains, draws, n_groups, 3) draws; groups beyond the table's follow their prior."""
    shown = table.labelled
    score = np.clip(table.score[shown], 0.01, 0.99)
    padding = (0, rows - len(shown))
    columns = (np.log(score), np.log1p(-score), table.group[shown], table.label[shown])
    arrays = [jnp.array(np.pad(column, padding)) for column in columns]
    known = jnp.arange(rows) < len(shown)
    run = sampler(rows, n_groups, draws, chains)
    return np.asarray(run(jax.random.PRNGKey(seed), *arrays, known), np.float64)


def expected_counts(table, theta):
    """Return (..., G, 4) expected counts of the pool, row by row; known labels stay."""
    score = np.clip(table.score, 0.01, 0.99)
    counts = np.zeros((*theta.shape[:-2], table.n_groups, 4))
    for group in range(table.n_groups):
        for prediction in (0, 1):
            rows = (table.group == group) & (table.prediction == prediction)
            a, b, c = (theta[..., group, k, None] for k in range(3))
            log_odds = c + np.exp(a) * np.log(score[rows]) - np.exp(b) * np.log1p(-score[rows])
            p = 1 / (1 + np.exp(-log_odds))
            known = ~np.isnan(table.label[rows])
            p = np.where(known, table.label[rows], p)
            counts[..., group, prediction] = (1 - p).sum(axis=-1)
            counts[..., group, 2 + prediction] = p.sum(axis=-1)
    return counts


def mean_and_error(values):
    """Return mean, sd and the standard error of the mean of (chains, draws) values."""
    size = effective_sample_size(values)
    return values.mean(), values.std(), values.std() / np.sqrt(size)


def differences(counts, rates):
    """Return the first difference of each rate, {name: (...)}."""
    return {rate.name: difference(rate, counts)[..., 0] for rate in rates}
