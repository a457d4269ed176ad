"""Pools of scores whose labels follow the calibration model, and posteriors by quadrature."""

import numpy as np
from scipy.stats import norm

from fairbench.components.papers.released_scores import partly_labelled
from fairbench.inference.few_labels import PartlyLabelled


def pool(generator, *, rows=300, groups=2, score=None):
    """Return a pool without labels; scores are uniform where none are given."""
    score = generator.random(rows) if score is None else score
    return partly_labelled(score, np.arange(len(score)) % groups, reference=0)


def labelled(table, theta, generator, model):
    """Return the pool with labels drawn from the model at parameters (G, D)."""
    coefficients = model.flat_coefficients(theta.reshape(1, -1))
    log_odds = (coefficients @ model.design(table.score, table.group, table.n_groups))[0]
    label = (generator.random(len(log_odds)) < 1 / (1 + np.exp(-log_odds))).astype(float)
    return PartlyLabelled(table.score, table.prediction, table.group, label, table.groups)


def quadrature(model, table, points=401):
    """Return mean and sd of a lone group's two parameters, log slope and intercept, on a grid."""
    slope, intercept = np.linspace(-4, 4, points), np.linspace(-8, 8, points)
    x = model.features(table.score[table.labelled])[0]
    y = table.label[table.labelled]
    factor = 1 + slope if model.signed else np.exp(slope)
    log_odds = factor[:, None, None] * x + intercept[:, None]
    density = (y * log_odds - np.logaddexp(0, log_odds)).sum(axis=-1)
    density += _log_prior(model, 0, slope)[:, None] + _log_prior(model, 1, intercept)
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    moments = []
    for values, margin in ((slope, weight.sum(axis=1)), (intercept, weight.sum(axis=0))):
        mean = margin @ values
        moments.append((mean, np.sqrt(margin @ (values - mean) ** 2)))
    return np.array(moments)


def _log_prior(model, k, values):
    """Integrate the half-normal spread and the normal mean of a lone group out."""
    if model.spread_sd is None:
        return norm.logpdf(values, scale=model.mean_sd[k])
    spread = np.linspace(0, 6 * model.spread_sd[k], 801)
    weight = norm.pdf(spread, scale=model.spread_sd[k])
    sd = np.sqrt(model.mean_sd[k] ** 2 + spread**2)
    return np.log(norm.pdf(values[:, None], scale=sd) @ (weight / weight.sum()))
