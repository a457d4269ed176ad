"""The methods of the study: the difference between a group and everyone else from few labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.few_labels.bayesian_calibration import (
    CalibrationPosterior,
    bayesian_calibrations,
)
from fairbench.inference.few_labels.calibration import BETA, LLO, SEPARATE
from fairbench.inference.few_labels.frequentist import (
    beta_binomial,
    frequentist,
    prediction_powered,
)
from fairbench.inference.few_labels.pool import plug_in, plug_in_draws
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import central_interval
from fairbench.metrics.group import difference
from fairbench.metrics.rates import Rate
from papers.few_labels.pools import Rows, everyone_else, shares

Floats = NDArray[np.float64]

MODELS = {
    "beta_calibration": BETA,
    "llo_calibration": LLO,
    "beta_calibration_nonhierarchical": SEPARATE,
}
_NORMAL = 1.96


@dataclass(frozen=True)
class Method:
    """A method, by its name in the published numbers, and its options.

    Attributes
    ----------
    scale : what the standard deviations of the priors are multiplied by.
    pool_noise : whether unlabelled labels scatter around their calibrated probability.
    """

    name: str
    scale: float = 1.0
    pool_noise: bool = False


def intervals(
    table: PartlyLabelled,
    subsets: list[Rows],
    method: Method,
    rate: Rate,
    generator: np.random.Generator,
) -> Floats:
    """Return estimate, lower and upper end of the difference for every label subset, (R, 3).

    The groups are modelled one by one; everyone outside the reference group is their mean by
    size, which is how the published numbers come out, and Beta priors are (1/2, 1/2).
    """
    if method.name in MODELS:
        return _calibrated(table, subsets, method, rate, generator)
    if method.name == "plug_in":
        draws = difference(rate, everyone_else(plug_in_draws(table, generator)))[:, 0]
        centre = difference(rate, everyone_else(plug_in(table)))[0]
        return np.tile([centre, *central_interval(draws)], (len(subsets), 1))
    if method.name == "beta_binomial":
        counts = np.array([table.counts(rows) for rows in subsets])
        rates = beta_binomial(counts, rate, generator, prior=0.5)
        return _summaries(rates[..., 1:] @ shares(table) - rates[..., 0])
    return np.array([_normal(table, rows, method, rate) for rows in subsets])


def _normal(table: PartlyLabelled, rows: Rows, method: Method, rate: Rate) -> Floats:
    """Return an estimate and the interval of its normal error."""
    if method.name == "frequentist":
        rates, weights = frequentist(table.counts(rows), rate), shares(table)
        value = rates.value[1:] @ weights - rates.value[0]
        error = np.hypot(
            rates.error[0], np.sqrt((rates.error[1:] * weights) ** 2 @ np.ones_like(weights))
        )
    else:
        two = PartlyLabelled(
            table.score, table.prediction, np.minimum(table.group, 1), table.label, table.groups[:2]
        )
        powered = prediction_powered(two.showing(rows), rate).differences()
        value, error = powered.value[0], powered.error[0]
    return np.array([value, value - _NORMAL * error, value + _NORMAL * error])


def _calibrated(
    table: PartlyLabelled,
    subsets: list[Rows],
    method: Method,
    rate: Rate,
    generator: np.random.Generator,
) -> Floats:
    model = MODELS[method.name].scaled(method.scale)
    posteriors = bayesian_calibrations(
        table, subsets, generator, model=model, pool_noise=method.pool_noise
    )
    draws = [_difference(table, posterior, method, rate) for posterior in posteriors]
    return _summaries(np.stack(draws, axis=-1))


def _difference(
    table: PartlyLabelled, posterior: CalibrationPosterior, method: Method, rate: Rate
) -> Floats:
    """Return draws of the difference (T,): of everyone's counts, or as published without noise."""
    if method.pool_noise:
        return difference(rate, everyone_else(posterior.counts))[:, 0]
    rates = rate(posterior.counts)
    published: Floats = rates[:, 1:] @ shares(table) - rates[:, 0]
    return published


def _summaries(draws: Floats) -> Floats:
    """Return mean and interval of draws (T, R), as (R, 3)."""
    return np.column_stack([draws.mean(axis=0), *central_interval(draws)])
