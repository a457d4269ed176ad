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
    replication,
    with_differences,
)
from benchmarks.coverage.simulate import BEFORE, LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.inference.rates import Limits
from fairbench.inference.scores import area_limits, areas
from fairbench.inference.survey import Design
from fairbench.metrics.probability import bins_of_mass, brier_rows, log_loss_rows

SPREAD = 1.2  # standard deviation of the scores' logits
SHIFT = 0.7  # logits by which the scores of the shifted group are too low
BINS = 15
_BY_MASS = "calibration error, equal mass"
_QUADRATURE, _CENTRES = 3000, 21
# How P(label 1) of the second group depends on its score; the first group is calibrated.
SHAPES: Mapping[str, Callable[[Floats], Floats]] = {
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

    score: Floats
    label: Floats


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
    truth |= {f"difference in {name}": second[name] - first[name] for name in second}
    return Sample(tuple(data), truth)


def _centre(base: float) -> float:
    """Return the mean logit of calibrated scores of which a share `base` of labels is 1."""
    z = _nodes(400)
    low, high = -12.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if special.expit(middle + z).mean() < base else (low, middle)
    return middle


def _score_and_chance(z: Floats, centre: Floats, shape: str) -> tuple[Floats, Floats]:
    """Return scores and chances of label 1 at deviations `z` (R, n) from the centre (R, 1)."""
    if shape == "steps":
        z = np.clip(np.round(z / SPREAD), -2, 2) * SPREAD
    return special.expit(centre + z), special.expit(centre + SHAPES[shape](z))


def _nodes(count: int) -> Floats:
    """Return the middles of `count` equally likely parts of the deviations."""
    nodes: Floats = SPREAD * special.ndtri((np.arange(count) + 0.5) / count)
    return nodes


def _truth(centre: Floats, shape: str) -> dict[str, Floats]:
    """Return the metrics (R,) of the population, by quadrature."""
    z = np.broadcast_to(_nodes(_QUADRATURE), (len(centre), _QUADRATURE))
    score, chance = _score_and_chance(z, centre, shape)
    chance = np.broadcast_to(chance, score.shape)

    def mean(losses: Callable[[Floats, Floats], Floats]) -> Floats:
        one, zero = losses(np.ones_like(score), score), losses(np.zeros_like(score), score)
        expected: Floats = (chance * one + (1 - chance) * zero).mean(axis=1)
        return expected

    return {
        "AUC": _auc(score, chance),
        "log loss": mean(log_loss_rows),
        "Brier score": mean(brier_rows),
        "calibration error": calibration_error(score, chance),
    }


def _auc(score: Floats, chance: Floats) -> Floats:
    """Return the AUC of scores in increasing order with chances of label 1, ties half."""
    starts = np.flatnonzero(np.append(True, score[0, 1:] != score[0, :-1]))
    ones, zeros = (np.add.reduceat(each, starts, axis=1) for each in (chance, 1 - chance))
    under = np.cumsum(zeros, axis=1) - zeros / 2
    area: Floats = (ones * under).sum(axis=1) / (ones.sum(axis=1) * zeros.sum(axis=1))
    return area


def calibration_error(score: Floats, label: Floats) -> Floats:
    """Return the calibration errors (R,) of R samples in bins of equal width."""
    size, ones, scores = _binned(score, label)
    error: Floats = np.abs(ones - scores).sum(axis=1) / size.sum(axis=1)
    return error


def _binned(score: Floats, label: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the rows (R, B) of bins of equal width, and sums of labels and scores in them."""
    bins = np.clip(np.ceil(score * BINS).astype(int) - 1, 0, BINS - 1)
    cell = (bins + BINS * np.arange(len(score))[:, None]).ravel()
    size, ones, scores = (
        np.bincount(cell, weights, BINS * len(score)).reshape(-1, BINS).astype(float)
        for weights in (None, label.ravel(), score.ravel())
    )
    return size, ones, scores


def _losses(groups: Sequence[Scored]) -> dict[str, list[Floats]]:
    """Return each loss's (R, n) values in both groups."""
    return {
        name: [rows(group.label, group.score) for group in groups]
        for name, rows in (("log loss", log_loss_rows), ("Brier score", brier_rows))
    }


def _ours(groups: Sequence[Scored], _: np.random.Generator) -> Mapping[str, Interval]:
    labels = [group.label for group in groups]
    others = _losses([Scored(group.score, 1 - group.label) for group in groups])
    result = {
        name: [outcome_ours(*each) for each in zip(losses, others[name], labels, strict=True)]
        for name, losses in _losses(groups).items()
    }
    result["AUC"] = [area_ours(group.label, group.score) for group in groups]
    result["calibration error"] = []
    for group in groups:
        size, ones, scores = _binned(group.score, group.label)
        limits = calibration_ours(size, ones, scores / np.maximum(size, 1))
        result["calibration error"].append(limits)
    ends = with_differences({name: (first, second) for name, (first, second) in result.items()})
    lower, upper = ends["calibration error"]
    return ends | {"calibration error": (np.maximum(lower, 0), upper)}


def _before(groups: Sequence[Scored], _: np.random.Generator) -> Mapping[str, Interval]:
    """Return the normal intervals of mean losses; nothing else had one."""
    return {name: mean_normal(of_group[1]) for name, of_group in _losses(groups).items()}


def _wald(groups: Sequence[Scored], _: np.random.Generator) -> Mapping[str, Interval]:
    """Return normal intervals of mean losses and of their differences."""
    result = {}
    for name, (first, second) in _losses(groups).items():
        result[name] = mean_normal(second)
        result[f"difference in {name}"] = mean_normal(second, first)
    return result


def _bootstrapped(groups: Sequence[Scored], draw: np.random.Generator) -> Mapping[str, Interval]:
    result = {}
    for name, (first, second) in _losses(groups).items():
        result[name] = means_bootstrap(draw, second)
        result[f"difference in {name}"] = means_bootstrap(draw, second, first)
    return result


@dataclass(frozen=True)
class Clustered:
    """Clusters of rows with a score and a label.

    Attributes
    ----------
    sizes : rows of a cluster: ``equal`` (20), ``lognormal`` (about 20), or ``unequal``, a quarter
        having 80 and the others 8.
    nested : whether the rows of a cluster share their label.
    alike : the correlation of two scores of a cluster.
    separation : the scores with label 1 are normal around it, the others around 0.
    """

    clusters: int
    sizes: str
    nested: bool
    alike: float
    base: float
    separation: float

    @property
    def name(self) -> str:
        """What tables call it."""
        labels = "a label each" if self.nested else "both labels in each"
        return (
            f"{self.clusters} {self.sizes} clusters, {labels}, scores alike by {self.alike:g}, "
            f"base rate {self.base:g}, {self.separation:g} apart"
        )


def _clustered(short: bool) -> Sequence[Clustered]:
    clusters = (12, 20) if short else (12, 20, 40)
    laid_out = product(clusters, ("equal", "lognormal", "unequal"), (False, True), (0.1, 0.3))
    labels = ((0.4, 1.0),) if short else ((0.4, 1.0), (0.4, 0.0), (0.5, 2.5))
    return [Clustered(*layout, *label) for layout, label in product(laid_out, labels)]


@dataclass(frozen=True)
class ClusteredRows:
    """Scores and labels (n,) of the rows of all replications, which these are of, and clusters."""

    replication: NDArray[np.intp]
    unit: NDArray[np.intp]
    label: Floats
    score: Floats
    replications: int


def _draw_clustered(population: Clustered, replications: int, draw: np.random.Generator) -> Sample:
    shape = (replications, population.clusters)
    if population.sizes == "lognormal":
        rows = np.maximum(2, np.round(20 * np.exp(draw.normal(-0.5, 1, shape)))).astype(int)
    else:
        large = np.arange(population.clusters) < population.clusters // 4
        sizes = np.where(large, 80, 8) if population.sizes == "unequal" else 20
        rows = np.broadcast_to(sizes, shape)
    unit = np.repeat(np.arange(rows.size), rows.ravel())
    base = special.logit(population.base)
    if population.nested:
        label = (draw.random(rows.size) < population.base)[unit].astype(float)
    else:
        chance = special.expit(base + 0.5 * draw.standard_normal(rows.size))
        label = (draw.random(len(unit)) < chance[unit]).astype(float)
    noise = np.sqrt(population.alike) * draw.standard_normal(rows.size)[unit]
    noise += np.sqrt(1 - population.alike) * draw.standard_normal(len(unit))
    score = population.separation * label + noise
    # Of rows of different clusters, as all but a few pairs of a large population are.
    truth = np.full(replications, special.ndtr(population.separation / np.sqrt(2)))
    data = ClusteredRows(unit // population.clusters, unit, label, score, replications)
    return Sample(data, {"AUC of clusters": truth})


def _clustered_ours(data: ClusteredRows, _: np.random.Generator) -> Mapping[str, Interval]:
    design = Design.of(len(data.unit), clusters=data.unit)
    result = areas(data.label, data.score, data.replication, data.replications, design=design)
    limits = area_limits(result, level=LEVEL)
    return {"AUC of clusters": (limits.lower, limits.upper)}


def _clustered_unaware(data: ClusteredRows, _: np.random.Generator) -> Mapping[str, Interval]:
    result = areas(data.label, data.score, data.replication, data.replications)
    limits = area_limits(result, level=LEVEL)
    return {"AUC of clusters": (limits.lower, limits.upper)}


@dataclass(frozen=True, eq=False)
class Law:
    """Groups of rows whose scores reach 0 or 1, or whose labels are nearly always the same.

    Attributes
    ----------
    rows : of either group.
    score, weight, chance : (M,) the scores that there are, how likely they are, and how likely
        their rows have label 1.
    """

    law: str
    rows: int
    score: Floats
    weight: Floats
    chance: Floats

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.rows} and {self.rows} rows, {self.law}"

    def chances(self, factor: Floats) -> Floats:
        """Return the chances (R, M) of label 1, that of the rarer label being `factor` (R, 1)."""
        rare = np.minimum(self.chance, 1 - self.chance) * factor
        return np.where(self.chance < 0.5, rare, 1 - rare)


def _hard(error: float, rows: int) -> Law:
    """Return scores 0 and 1 of which a share is wrong."""
    score, chance = np.array([0.0, 1.0]), np.array([error, 1 - error])
    return Law(f"hard scores, {100 * error:g} % wrong", rows, score, np.full(2, 0.5), chance)


def _votes(rows: int) -> Law:
    """Return shares of 20 trees that vote for 1, of which even unanimous ones err in 2 %."""
    a, b, trees = 0.5, 7 / 6, 20
    votes = np.arange(trees + 1.0)
    weight = special.binom(trees, votes) * special.beta(votes + a, trees - votes + b)
    chance = 0.02 + 0.96 * (votes + a) / (trees + a + b)
    return Law("votes of 20 trees", rows, votes / trees, weight / weight.sum(), chance)


def _of_logits(law: str, rows: int, base: float, decimals: int = 15) -> Law:
    """Return calibrated scores around a base rate, rounded."""
    chance = special.expit(_centre(base) + _nodes(_QUADRATURE))
    weight = np.full(_QUADRATURE, 1 / _QUADRATURE)
    return Law(law, rows, chance.round(decimals), weight, chance)


def _nearly_alike(base: float, rows: int) -> list[Law]:
    """Return labels of which a share `base` is 1, with calibrated and other scores."""
    calibrated = _of_logits(f"calibrated, base rate {base:g}", rows, base)
    even = (np.arange(_QUADRATURE) + 0.5) / _QUADRATURE
    alike = np.full(_QUADRATURE, base)
    uniform = Law(f"uniform scores, base rate {base:g}", rows, even, calibrated.weight, alike)
    # Labels 0 have a score of their own, and may not have been seen.
    result = [calibrated, uniform]
    for zero, one in ((0.5, 0.7), (0.999, 0.97), (0.3, 0.999)):
        weight, chance = np.array([1 - base, base]), np.array([0.0, 1.0])
        law = f"scores {zero:g} of label 0 and {one:g} of label 1, base rate {base:g}"
        result.append(Law(law, rows, np.array([zero, one]), weight, chance))
    return result


def _few_scores(rows: int) -> list[Law]:
    """Return scores of one value, or of three."""
    one = Law("score 0.4 of all, chance 0.45", rows, np.array([0.4]), np.ones(1), np.array([0.45]))
    score, weight = np.array([0.1, 0.3, 0.6]), np.array([0.3, 0.4, 0.3])
    chances = {"calibrated": score, "few labels 1": np.array([0.01, 0.02, 0.05])}
    three = (
        Law(f"3 scores, {name}", rows, score, weight, chance) for name, chance in chances.items()
    )
    return [one, *three]


def _laws(short: bool) -> Sequence[Law]:
    result = [_hard(0.005, 50), _votes(300), *_nearly_alike(0.97, 30), *_few_scores(50)]
    if short:
        return result
    result += [_hard(*each) for each in ((0.005, 150), (0.005, 1000), (0.05, 200), (0.3, 200))]
    result += [_votes(100), _votes(1000)]
    result += [_of_logits("rounded to tenths", rows, 0.3, 1) for rows in (100, 300, 3000)]
    result += _nearly_alike(0.999, 200) + _nearly_alike(0.999, 3000)
    result += [law for rows in (120, 300, 1000) for law in _few_scores(rows)]
    return result


def _draw_law(population: Law, replications: int, draw: np.random.Generator) -> Sample:
    """Draw two groups of one law; the rarer label's chance varies by a tenth."""
    factor = draw.uniform(0.9, 1.1, (replications, 1))
    shape, chances = (replications, population.rows), population.chances(factor)
    data, by_row = [], np.arange(replications)[:, None]
    for _ in range(2):
        place = draw.choice(len(population.score), shape, p=population.weight)
        label = (draw.random(shape) < chances[by_row, place]).astype(float)
        data.append(Scored(population.score[place], label))
    score = np.broadcast_to(population.score, chances.shape)
    bins = np.clip(np.ceil(population.score * BINS).astype(int) - 1, 0, BINS - 1)
    away = population.weight * (chances - score)
    binned = np.stack([away[:, bins == b].sum(axis=1) for b in range(BINS)], axis=1)
    truth = {"calibration error": np.abs(binned).sum(axis=1)}
    truth[_BY_MASS] = truth["calibration error"]  # where each score has a bin of its own
    for name, rows in (("log loss", log_loss_rows), ("Brier score", brier_rows)):
        one, zero = rows(np.ones_like(score), score), rows(np.zeros_like(score), score)
        truth[name] = (population.weight * (chances * one + (1 - chances) * zero)).sum(axis=1)
    differences = {f"difference in {name}": 0 * value for name, value in truth.items()}
    return Sample(tuple(data), truth | differences)


def _without_areas(groups: Sequence[Scored], draw: np.random.Generator) -> Mapping[str, Interval]:
    result = {name: ends for name, ends in _ours(groups, draw).items() if "AUC" not in name}
    if all(_are_few(group.score) for group in groups):
        first, second = (_in_bins_of_mass(group) for group in groups)
        (lower, upper), difference = with_differences({_BY_MASS: (first, second)}).values()
        result |= {_BY_MASS: (np.maximum(lower, 0), upper), f"difference in {_BY_MASS}": difference}
    return result


def _are_few(scores: Floats) -> bool:
    """Return whether every score is that of more rows than a bin of equal mass holds."""
    shares = np.unique(scores, return_counts=True)[1] / scores.size
    return bool(shares.min() > 2 / BINS)


def _in_bins_of_mass(group: Scored) -> Limits:
    """Return the calibration errors of rows with few scores in bins of equal mass: one of each."""
    score, codes = group.score.ravel(), replication(group.score)
    count = len(group.score)
    cell = BINS * codes + bins_of_mass(score, codes, count, BINS)
    size, ones, scores = (
        np.bincount(cell, weights, BINS * count).reshape(-1, BINS).astype(float)
        for weights in (None, group.label.ravel(), score)
    )
    return calibration_ours(size, ones, scores / np.maximum(size, 1))


FAMILIES = (
    Family(
        "scores",
        "Scores",
        "The intervals are for the AUC, losses and calibration error of a group's scores, and for "
        "their differences from those of another group, whose scores are calibrated. The logits "
        f"of the scores are normal with a standard deviation of {SPREAD:g}. The name of a setting "
        "says how the scores of the group relate to its labels. *calibrated*: they are the "
        "probabilities of label 1. *slope 0.5* and *slope 2*: the logits of these probabilities "
        "vary half or twice as much as those of the scores. *shifted*: the scores are too low by "
        f"{SHIFT:g} logits. *inverted*: high scores mean low probabilities. *steps*: the scores "
        "are calibrated and take only five values.",
        _populations,
        _draw,
        (
            Construction("ours", _ours),
            Construction(BEFORE, _before),
            Construction("Wald", _wald),
            Construction(BOOTSTRAP, _bootstrapped, 200, 4),
        ),
    ),
    Family(
        "areas_of_clusters",
        "AUC of clustered rows",
        "The interval is for a group's AUC where the rows come in few clusters, of equal or very "
        "unequal sizes. The rows of a cluster have both labels, or all have the same label (*a "
        "label each*). *scores alike by 0.3* is the correlation of two scores in a cluster, and "
        "*1 apart* the distance between the mean scores of the two labels. An interval is printed "
        "only if the clusters with either label are worth at least 5 clusters of equal size.",
        _clustered,
        _draw_clustered,
        (
            Construction("ours", _clustered_ours),
            Construction("ignoring clusters", _clustered_unaware),
        ),
        replications=600,
    ),
    Family(
        "reaching_scores",
        "Scores of 0 or 1, and rare labels",
        "The intervals are for the losses and calibration errors of two groups that are drawn "
        "from the same distribution, and for the differences between the two. The scores are hard "
        "(0 or 1) and some of them are wrong, or are shares of the votes of 20 trees, or are "
        "rounded to tenths, or take one value or three, or nearly all labels are 1.",
        _laws,
        _draw_law,
        (
            Construction("ours", _without_areas),
            Construction("Wald", _wald),
            Construction(BOOTSTRAP, _bootstrapped, 200, 4),
        ),
    ),
)
