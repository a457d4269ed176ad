"""The family of scores: ranking, losses and calibration of a group, and against another group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.populations import BASE_RATES
from benchmarks.coverage.rows import (
    BOOTSTRAP,
    area_ours,
    calibration_ours,
    mean_normal,
    means_bootstrap,
    outcome_ours,
    with_differences,
)
from benchmarks.coverage.simulate import Construction, Family, Interval, Sample
from fairbench.metrics.probability import brier_rows, log_loss_rows

Array = NDArray[np.float64]
SPREAD = 1.2  # standard deviation of the scores' logits
SHIFT = 0.7  # logits by which the scores of the shifted group are too low
BINS = 15
_QUADRATURE, _CENTRES = 3000, 21
# How P(label 1) of the second group depends on its score; the first group is calibrated.
SHAPES: Mapping[str, Callable[[Array], Array]] = {
    "calibrated": lambda z: z,
    "slope 0.5": lambda z: 0.5 * z,
    "slope 2": lambda z: 2 * z,
    "shifted": lambda z: z + SHIFT,
    "inverted": lambda z: -z,
    "steps": lambda z: z,  # and its scores take few values
}
# Rows of the first and of the second group; the last is a group of 5 %.
SIZES = ((20, 20), (50, 50), (200, 200), (2000, 2000), (950, 50), (1900, 100))


@dataclass(frozen=True)
class Scores:
    """Two groups of rows with a score and a label.

    Attributes
    ----------
    sizes : rows of the first and of the second group.
    base : about the share of labels 1, where scores are calibrated.
    shape : how the second group's labels depend on its scores, one of `SHAPES`.
    """

    sizes: tuple[int, int]
    base: float
    shape: str

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.sizes[0]} and {self.sizes[1]} rows, base rate {self.base:g}, {self.shape}"


@dataclass(frozen=True)
class Scored:
    """Scores and labels (R, n) of a group's rows, in no order."""

    score: Array
    label: Array


def _populations(short: bool) -> Sequence[Scores]:
    sizes = ((50, 50), (200, 200), (950, 50)) if short else SIZES
    rates = (0.03, 0.3) if short else BASE_RATES
    return [Scores(*each) for each in product(sizes, rates, SHAPES)]


def _draw(population: Scores, replications: int, draw: np.random.Generator) -> Sample:
    """Draw both groups; metrics are of the second one, and of its difference from the first."""
    centres = _centre(population.base) + np.linspace(-0.1, 0.1, _CENTRES)[:, None]
    place = draw.integers(_CENTRES, size=replications)
    centre, shapes, data, truths = centres[place], ("calibrated", population.shape), [], []
    for size, shape in zip(population.sizes, shapes, strict=True):
        z = draw.normal(0, SPREAD, (replications, size))
        score, chance = _score_and_chance(z, centre, shape)
        data.append(Scored(score, (draw.random(z.shape) < chance).astype(float)))
        truths.append({name: value[place] for name, value in _truth(centres, shape).items()})
    first, second = truths
    truth = dict(second)
    truth |= {f"difference of {name}": second[name] - first[name] for name in second}
    return Sample(tuple(data), truth)


def _centre(base: float) -> float:
    """Return the mean logit of calibrated scores of which a share `base` of labels is 1."""
    z = _nodes(400)
    low, high = -12.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if special.expit(middle + z).mean() < base else (low, middle)
    return middle


def _score_and_chance(z: Array, centre: Array, shape: str) -> tuple[Array, Array]:
    """Return scores and chances of label 1 at deviations `z` (R, n) from the centre (R, 1)."""
    if shape == "steps":
        z = np.clip(np.round(z / SPREAD), -2, 2) * SPREAD
    return special.expit(centre + z), special.expit(centre + SHAPES[shape](z))


def _nodes(count: int) -> Array:
    """Return the middles of `count` equally likely parts of the deviations."""
    nodes: Array = SPREAD * special.ndtri((np.arange(count) + 0.5) / count)
    return nodes


def _truth(centre: Array, shape: str) -> dict[str, Array]:
    """Return the metrics (R,) of the population, by quadrature."""
    z = np.broadcast_to(_nodes(_QUADRATURE), (len(centre), _QUADRATURE))
    score, chance = _score_and_chance(z, centre, shape)
    chance = np.broadcast_to(chance, score.shape)

    def mean(losses: Callable[[Array, Array], Array]) -> Array:
        one, zero = losses(np.ones_like(score), score), losses(np.zeros_like(score), score)
        expected: Array = (chance * one + (1 - chance) * zero).mean(axis=1)
        return expected

    return {
        "AUC": _auc(score, chance),
        "log loss": mean(log_loss_rows),
        "Brier score": mean(brier_rows),
        "calibration error": calibration_error(score, chance),
    }


def _auc(score: Array, chance: Array) -> Array:
    """Return the AUC of scores in increasing order with chances of label 1, ties half."""
    starts = np.flatnonzero(np.append(True, score[0, 1:] != score[0, :-1]))
    ones, zeros = (np.add.reduceat(each, starts, axis=1) for each in (chance, 1 - chance))
    under = np.cumsum(zeros, axis=1) - zeros / 2
    area: Array = (ones * under).sum(axis=1) / (ones.sum(axis=1) * zeros.sum(axis=1))
    return area


def calibration_error(score: Array, label: Array) -> Array:
    """Return the calibration errors (R,) of R samples in bins of equal width."""
    size, ones, scores = _binned(score, label)
    error: Array = np.abs(ones - scores).sum(axis=1) / size.sum(axis=1)
    return error


def _binned(score: Array, label: Array) -> tuple[Array, Array, Array]:
    """Return the rows (R, B) of bins of equal width, and sums of labels and scores in them."""
    bins = np.clip(np.ceil(score * BINS).astype(int) - 1, 0, BINS - 1)
    cell = (bins + BINS * np.arange(len(score))[:, None]).ravel()
    size, ones, scores = (
        np.bincount(cell, weights, BINS * len(score)).reshape(-1, BINS).astype(float)
        for weights in (None, label.ravel(), score.ravel())
    )
    return size, ones, scores


def _losses(groups: Sequence[Scored]) -> dict[str, list[Array]]:
    """Return each loss's (R, n) values in both groups."""
    return {
        name: [rows(each.label, each.score) for each in groups]
        for name, rows in (("log loss", log_loss_rows), ("Brier score", brier_rows))
    }


def _ours(groups: Sequence[Scored], _: np.random.Generator) -> Mapping[str, Interval]:
    labels = [each.label for each in groups]
    found = {
        name: [outcome_ours(*each) for each in zip(losses, labels, strict=True)]
        for name, losses in _losses(groups).items()
    }
    found["AUC"] = [area_ours(each.label, each.score) for each in groups]
    found["calibration error"] = []
    for each in groups:
        size, ones, scores = _binned(each.score, each.label)
        limits = calibration_ours(size, ones, scores / np.maximum(size, 1))
        found["calibration error"].append(limits)
    ends = with_differences({name: (first, second) for name, (first, second) in found.items()})
    lower, upper = ends["calibration error"]
    return ends | {"calibration error": (np.maximum(lower, 0), upper)}


def _before(groups: Sequence[Scored], _: np.random.Generator) -> Mapping[str, Interval]:
    """Return the normal intervals of mean losses; nothing else had one."""
    return {name: mean_normal(of_group[1]) for name, of_group in _losses(groups).items()}


def _wald(groups: Sequence[Scored], _: np.random.Generator) -> Mapping[str, Interval]:
    """Return normal intervals of mean losses and of their differences."""
    found = {}
    for name, (first, second) in _losses(groups).items():
        found[name] = mean_normal(second)
        found[f"difference of {name}"] = mean_normal(second, first)
    return found


def _bootstrapped(groups: Sequence[Scored], draw: np.random.Generator) -> Mapping[str, Interval]:
    found = {}
    for name, (first, second) in _losses(groups).items():
        found[name] = means_bootstrap(draw, second)
        found[f"difference of {name}"] = means_bootstrap(draw, second, first)
    return found


FAMILIES = (
    Family(
        "scores",
        "Scores",
        "A group's ranking, losses and calibration, and their differences from those of a "
        f"calibrated group; logits of scores are normal with a standard deviation of {SPREAD:g}. "
        "The second group's scores are calibrated, of slope 0.5 or 2, shifted by "
        f"{SHIFT:g} logits, inverted, or take five "
        "values.",
        _populations,
        _draw,
        (
            Construction("ours", _ours),
            Construction("before", _before),
            Construction("Wald", _wald),
            Construction(BOOTSTRAP, _bootstrapped, 200, 4),
        ),
    ),
)
