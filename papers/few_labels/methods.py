"""The methods of the study: the difference between a group and everyone else from few labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairbench.components.papers.few_labels.pools import Rows, everyone_else, shares
from fairbench.components.papers.few_labels.published_code import faulty_counts
from fairbench.core.arrays import Floats
from fairbench.inference.few_labels.bayesian_calibration import (
    CalibrationPosterior,
    PosteriorFamily,
)
from fairbench.inference.few_labels.calibration import BETA, LLO, SEPARATE
from fairbench.inference.few_labels.frequentist import (
    beta_binomial,
    frequentist,
    prediction_powered,
)
from fairbench.inference.few_labels.pool import NODES, plug_in, plug_in_draws
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import central_interval
from fairbench.metrics.group import difference
from fairbench.metrics.rates import (
    Counts,
    Rate,
    accuracy,
    false_positive_rate,
    true_positive_rate,
)

RATES: dict[str, Rate] = {
    "accuracy": accuracy,
    "tpr": true_positive_rate,
    "fpr": false_positive_rate,
}
HIERARCHY, APART = "beta_calibration", "beta_calibration_nonhierarchical"
# Without the shared means, groups lie around 0 as they lie around these in the hierarchy.
AROUND_0 = "beta_calibration_around_0"
MODELS = {
    HIERARCHY: BETA,
    "llo_calibration": LLO,
    APART: SEPARATE,
    AROUND_0: replace(SEPARATE, mean_sd=BETA.spread_sd or ()),
}
# What a calibration posterior can be read as: the paper's intervals, those with the scatter of
# unlabelled labels around their calibrated probability, and what the published script makes of it.
AS_PUBLISHED, POOL_NOISE, FAULTS = READINGS = ("as published", "pool noise", "faults")
_NORMAL = 1.96
_DRAWS = 512  # the text has 800: a mean over many runs needs few


@dataclass(frozen=True)
class Method:
    """A method, by its name in the published numbers, and its options.

    Attributes
    ----------
    scale : what the standard deviations of the priors are multiplied by.
    prior : both parameters of the Beta prior of labels alone: 1 in the text.
    reading : one of `READINGS`, of a calibration.
    """

    name: str
    scale: float = 1.0
    prior: float = 1.0
    reading: str = AS_PUBLISHED


def rate_name(metric: str) -> str:
    """Return which of `RATES` a metric of the published numbers is about: ``mae_delta_tpr``."""
    return metric.partition("delta_")[2].removesuffix("_percent")


def intervals(
    table: PartlyLabelled,
    subsets: Sequence[Rows],
    method: Method,
    rates: Sequence[Rate],
    generator: np.random.Generator,
) -> Floats:
    """Return estimate, lower and upper end of the differences for every label subset, (K, R, 3).

    The groups are modelled one by one; everyone outside the reference group is their mean by
    size, which is how the published numbers come out.
    """
    if method.name in MODELS:
        readings = (method.reading,)
        return calibrated(table, subsets, method, rates, generator, readings)[method.reading]
    of_rate = (_of_rate(table, subsets, method, rate, generator) for rate in rates)
    return np.stack(list(of_rate))


def _of_rate(
    table: PartlyLabelled,
    subsets: Sequence[Rows],
    method: Method,
    rate: Rate,
    generator: np.random.Generator,
) -> Floats:
    if method.name == "plug_in":
        draws = difference(rate, everyone_else(plug_in_draws(table, generator)))[:, 0]
        centre = difference(rate, everyone_else(plug_in(table)))[0]
        return np.tile([centre, *central_interval(draws)], (len(subsets), 1))
    if method.name == "beta_binomial":
        counts = np.array([table.counts(rows) for rows in subsets])
        groups = beta_binomial(counts, rate, generator, prior=method.prior, draws=_DRAWS)
        return _summaries(groups[..., 1:] @ shares(table) - groups[..., 0])
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


def calibrated(
    table: PartlyLabelled,
    subsets: Sequence[Rows],
    method: Method,
    rates: Sequence[Rate],
    generator: np.random.Generator,
    readings: Sequence[str],
) -> dict[str, Floats]:
    """Return what several readings of one posterior say, reading -> (K, R, 3) as `intervals`."""
    family = PosteriorFamily.of(
        table,
        generator,
        model=MODELS[method.name].scaled(method.scale),
        draws=_DRAWS,
        pool_noise=False,
        label_nodes=NODES,
    )
    (noise,) = generator.spawn(1)
    said: dict[str, list[Floats]] = {reading: [] for reading in readings}
    for rows in subsets:
        posterior = family.posterior(rows, generator)
        for reading, so_far in said.items():
            draws = _differences(family, posterior, rows, rates, reading, noise)
            so_far.append(_summaries(np.stack(draws, axis=-1)))
    return {reading: np.stack(values, axis=1) for reading, values in said.items()}


def _differences(
    family: PosteriorFamily,
    posterior: CalibrationPosterior,
    rows: Rows,
    rates: Sequence[Rate],
    reading: str,
    noise: np.random.Generator,
) -> list[Floats]:
    """Return draws of every rate's difference, (T,) each."""
    table, counts = family.table, posterior.counts
    if reading == POOL_NOISE:
        model = family.proposal.model
        coefficients = model.flat_coefficients(posterior.parameters.theta)
        counts = replace(family, pool_noise=True).counts(rows, coefficients, noise)
        return [difference(rate, everyone_else(counts))[:, 0] for rate in rates]
    if reading == FAULTS:
        counts = faulty_counts(table, rows, posterior.theta)
    return [_by_size(table, counts, rate) for rate in rates]


def _by_size(table: PartlyLabelled, counts: Counts, rate: Rate) -> Floats:
    """Return the difference of everyone else's rate, averaged by size, and the reference's."""
    groups = rate(counts)
    published: Floats = groups[:, 1:] @ shares(table) - groups[:, 0]
    return published


def _summaries(draws: Floats) -> Floats:
    """Return mean and interval of several quantities' draws (T, R), as (R, 3)."""
    return np.column_stack([draws.mean(axis=0), *central_interval(draws)])
