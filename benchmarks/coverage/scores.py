"""Intervals of statistics of per-row values, (R, n) each: ours, and normal.

Ours are functions of many groups of rows at once, here of R replications at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.counts import BASE_RATES
from benchmarks.coverage.simulate import LEVEL, Ends, Family, Interval, Random, Sample, Setting
from fairbench.core.arrays import Floats, rng
from fairbench.inference import means
from fairbench.inference.means import Moments
from fairbench.inference.rates import Limits, difference_limits, quantile, rate_limits
from fairbench.inference.scores import Areas, Bins
from fairbench.inference.survey import Design
from fairbench.metrics import regression
from fairbench.metrics.probability import bins_of_mass, brier_rows, log_loss_rows


def replication(rows: Floats) -> NDArray[np.intp]:
    """Return which replication each of the (R, n) values is of, as one array."""
    return np.repeat(np.arange(len(rows)), rows.shape[1])


def mean_ours(losses: Floats, fewest: int = 0) -> Limits:
    """Return means of losses that are at least 0 with our limits, of so many rows or more."""
    rows = max(fewest, means.ROWS)
    limits = means.loss_limits(Moments.of(losses), level=LEVEL, least=0.0, rows=rows)
    rare = (losses > losses.min(axis=1, keepdims=True)).sum(axis=1) < means.RARE_ROWS
    return Limits(limits.value, *(np.where(rare, np.nan, end) for end in limits[1:]))


def outcome_ours(losses: Floats, other: Floats, label: Floats) -> Limits:
    """Return mean losses of labels with our limits, which know that a label may be rare."""
    labels, codes = label.ravel().astype(np.intp), replication(losses)
    moments = Moments.by_label(losses.ravel(), other.ravel(), labels, codes, len(losses))
    moments = moments.take(np.arange(2 * len(losses)).reshape(-1, 2))
    return means.outcome_limits(moments, level=LEVEL, least=0.0)


def with_differences(first: Mapping[str, Limits], second: Mapping[str, Limits]) -> Ends:
    """Return each metric's ends in the second group, and those of its difference from the first."""
    ends: dict[str, Interval] = {}
    for name, limits in second.items():
        ends |= {name: limits, f"difference in {name}": difference_limits(limits, first[name])}
    return ends


def mean_normal(losses: Floats, minus: Floats | None = None) -> Interval:
    """Return the normal intervals of means, less those of another group's losses."""
    value, variance = losses.mean(axis=1), losses.var(axis=1, ddof=1) / losses.shape[1]
    if minus is not None:
        value = value - minus.mean(axis=1)
        variance = variance + minus.var(axis=1, ddof=1) / minus.shape[1]
    half = quantile(LEVEL) * np.sqrt(variance)
    return value - half, value + half


# The family of scores: ranking, losses and calibration of a group, and against another group.

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
class Scored:
    """Scores and labels (R, n) of a group's rows, in no order."""

    score: Floats
    label: Floats

    def losses(self) -> dict[str, Floats]:
        """Return what means are taken of, by name."""
        return {name: rows(self.label, self.score) for name, rows in _LOSSES.items()}


_LOSSES = {"log loss": log_loss_rows, "Brier score": brier_rows}


def _populations() -> Iterator[Setting]:
    """Yield two groups of so many rows, about the share of labels 1, and a shape of the second."""
    for (first, second), base, shape in product(SIZES, BASE_RATES, SHAPES):
        name = f"{first} and {second} rows, base rate {base:g}, {shape}"
        yield Setting(name=name, sizes=(first, second), base=base, shape=shape)


def _draw(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw both groups; metrics are of the second one, and of its difference from the first."""
    centres = _centre(population.base) + np.linspace(-0.1, 0.1, _CENTRES)[:, None]
    place = draw.integers(_CENTRES, size=replications)
    centre, shapes, data, truths = centres[place], ("calibrated", population.shape), [], []
    for size, shape in zip(population.sizes, shapes, strict=True):
        z = draw.normal(0, SPREAD, (replications, size))
        score, chance = _score_and_chance(z, centre, shape)
        data.append(Scored(score, (draw.random(z.shape) < chance).astype(float)))
        truths.append({name: value[place] for name, value in _truth(centres, shape).items()})
    return _of_both(data, truths)


def _of_both(data: Sequence[Any], truths: Sequence[Mapping[str, Floats]]) -> Sample:
    """Return the sample of two groups: the truths of the second, and those less the first's."""
    first, second = truths
    apart = {f"difference in {name}": second[name] - first[name] for name in second}
    return Sample(tuple(data), {**second, **apart})


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
    losses = {name: each.mean(axis=1) for name, each in _expected(score, chance).items()}
    error = {"calibration error": calibration_error(score, chance)}
    return {"AUC": _auc(score, chance), **losses, **error}


def _expected(score: Floats, chance: Floats) -> dict[str, Floats]:
    """Return the expected losses of scores whose label is 1 with a chance."""
    labels = np.ones_like(score), np.zeros_like(score)
    losses = {name: [rows(label, score) for label in labels] for name, rows in _LOSSES.items()}
    return {name: chance * one + (1 - chance) * zero for name, (one, zero) in losses.items()}


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


def _binned(score: Floats, label: Floats) -> tuple[Floats, ...]:
    """Return the rows (R, B) of bins of equal width, and sums of labels and scores in them."""
    bins = np.clip(np.ceil(score * BINS).astype(int) - 1, 0, BINS - 1)
    return _in_cells(bins + BINS * np.arange(len(score))[:, None], score, label)


def _in_cells(cell: NDArray[np.intp], score: Floats, label: Floats) -> tuple[Floats, ...]:
    return tuple(
        np.bincount(cell.ravel(), weights, BINS * len(score)).reshape(-1, BINS).astype(float)
        for weights in (None, label.ravel(), score.ravel())
    )


def _limits(group: Scored) -> dict[str, Limits]:
    losses, other = group.losses(), Scored(group.score, 1 - group.label).losses()
    rows = group.label.ravel(), group.score.ravel(), replication(group.score)
    return {
        **{name: outcome_ours(losses[name], other[name], group.label) for name in losses},
        "AUC": Areas.of(*rows, len(group.score)).limits(LEVEL),
        "calibration error": _calibration(*_binned(group.score, group.label)),
    }


def _calibration(size: Floats, positives: Floats, scores: Floats) -> Limits:
    """Return calibration errors with our limits, from rows and sums in bins (R, B)."""
    return Bins(size, positives, scores / np.maximum(size, 1)).limits(level=LEVEL)


def _ours(groups: Sequence[Scored], _: Random) -> Ends:
    ends = with_differences(*map(_limits, groups))
    return {**ends, **_at_least_0("calibration error", ends)}


def _at_least_0(name: str, ends: Ends) -> Ends:
    lower, upper = ends[name][-2:]
    return {name: (np.maximum(lower, 0), upper)}


def _wald(groups: Sequence[Scored | Predicted], _: Random) -> Ends:
    """Return normal intervals of mean losses, and then of their differences."""
    first, second = (group.losses() for group in groups)
    ends = {name: mean_normal(losses) for name, losses in second.items()}
    for name, losses in second.items():
        ends[f"difference in {name}"] = mean_normal(losses, first[name])
    return ends


def _clustered() -> Iterator[Setting]:
    """Yield clusters of rows with a score and a label.

    Sizes of clusters are ``equal`` (20), ``lognormal`` (about 20), or ``unequal``, a quarter having
    80 rows and the others 8. The rows of a cluster may share their label (`nested`), and their
    scores are `alike` by a correlation. Scores with label 1 are normal around the `separation`, the
    others around 0.
    """
    sizes = ("equal", "lognormal", "unequal")
    laid_out = product((12, 20, 40), sizes, (False, True), (0.1, 0.3))
    labels = ((0.4, 1.0), (0.4, 0.0), (0.5, 2.5))
    for (count, size, nested, alike), (base, separation) in product(laid_out, labels):
        yield Setting(
            name=f"{count} {size} clusters, {'a label each' if nested else 'both labels in each'}, "
            f"scores alike by {alike:g}, base rate {base:g}, {separation:g} apart",
            clusters=count,
            sizes=size,
            nested=nested,
            alike=alike,
            base=base,
            separation=separation,
        )


def _draw_clustered(population: Setting, replications: int, draw: Random) -> Sample:
    shape = (replications, population.clusters)
    if population.sizes == "lognormal":
        rows = np.maximum(2, np.round(20 * np.exp(draw.normal(-0.5, 1, shape)))).astype(int)
    else:
        large = np.arange(population.clusters) < population.clusters // 4
        sizes = np.where(large, 80, 8) if population.sizes == "unequal" else 20
        rows = np.broadcast_to(sizes, shape)
    unit = np.repeat(np.arange(rows.size), rows.ravel())
    if population.nested:
        label = (draw.random(rows.size) < population.base)[unit].astype(float)
    else:
        odds = special.logit(population.base) + 0.5 * draw.standard_normal(rows.size)
        label = (draw.random(len(unit)) < special.expit(odds)[unit]).astype(float)
    noise = np.sqrt(population.alike) * draw.standard_normal(rows.size)[unit]
    noise += np.sqrt(1 - population.alike) * draw.standard_normal(len(unit))
    score = population.separation * label + noise
    # Of rows of different clusters, as all but a few pairs of a large population are.
    truth = np.full(replications, special.ndtr(population.separation / np.sqrt(2)))
    return Sample(((label, score, unit // population.clusters, replications), unit), truth)


def _clustered_areas(data: tuple[Any, NDArray[np.intp]], _: Random) -> Interval:
    """Return the intervals of rows, (n,) of all replications, whose clusters are known."""
    rows, unit = data
    return Areas.of(*rows, design=Design.of(len(unit), clusters=unit)).limits(LEVEL)


def _law(law: str, rows: int, score: Floats, weight: Floats, chance: Floats) -> Setting:
    """Return groups of rows whose scores reach 0 or 1, or whose labels are nearly always the same.

    Parameters
    ----------
    rows : of either group.
    score, weight, chance : (M,) the scores that there are, how likely they are, and how likely
        their rows have label 1.
    """
    name = f"{rows} and {rows} rows, {law}"
    return Setting(name=name, rows=rows, score=score, weight=weight, chance=chance)


def _hard(error: float, rows: int) -> Setting:
    """Return scores 0 and 1 of which a share is wrong."""
    score, chance = np.array([0.0, 1.0]), np.array([error, 1 - error])
    return _law(f"hard scores, {100 * error:g} % wrong", rows, score, np.full(2, 0.5), chance)


def _votes(rows: int) -> Setting:
    """Return shares of 20 trees that vote for 1, of which even unanimous ones err in 2 %."""
    a, b, trees = 0.5, 7 / 6, 20
    votes = np.arange(trees + 1.0)
    weight = special.binom(trees, votes) * special.beta(votes + a, trees - votes + b)
    chance = 0.02 + 0.96 * (votes + a) / (trees + a + b)
    return _law("votes of 20 trees", rows, votes / trees, weight / weight.sum(), chance)


def _of_logits(law: str, rows: int, base: float, decimals: int = 15) -> Setting:
    """Return calibrated scores around a base rate, rounded."""
    chance = special.expit(_centre(base) + _nodes(_QUADRATURE))
    weight = np.full(_QUADRATURE, 1 / _QUADRATURE)
    return _law(law, rows, chance.round(decimals), weight, chance)


def _nearly_alike(base: float, rows: int) -> list[Setting]:
    """Return labels of which a share `base` is 1, with calibrated and other scores."""
    calibrated = _of_logits(f"calibrated, base rate {base:g}", rows, base)
    even = (np.arange(_QUADRATURE) + 0.5) / _QUADRATURE
    alike = np.full(_QUADRATURE, base)
    uniform = _law(f"uniform scores, base rate {base:g}", rows, even, calibrated.weight, alike)
    # Labels 0 have a score of their own, and may not have been seen.
    result = [calibrated, uniform]
    for zero, one in ((0.5, 0.7), (0.999, 0.97), (0.3, 0.999)):
        weight, chance = np.array([1 - base, base]), np.array([0.0, 1.0])
        law = f"scores {zero:g} of label 0 and {one:g} of label 1, base rate {base:g}"
        result.append(_law(law, rows, np.array([zero, one]), weight, chance))
    return result


def _few_scores(rows: int) -> list[Setting]:
    """Return scores of one value, or of three."""
    one = _law("score 0.4 of all, chance 0.45", rows, np.array([0.4]), np.ones(1), np.array([0.45]))
    score, weight = np.array([0.1, 0.3, 0.6]), np.array([0.3, 0.4, 0.3])
    few = _law("3 scores, few labels 1", rows, score, weight, np.array([0.01, 0.02, 0.05]))
    return [one, _law("3 scores, calibrated", rows, score, weight, score), few]


def _laws() -> list[Setting]:
    result = [_hard(0.005, 50), _votes(300), *_nearly_alike(0.97, 30), *_few_scores(50)]
    result += [_hard(*each) for each in ((0.005, 150), (0.005, 1000), (0.05, 200), (0.3, 200))]
    result += [_votes(100), _votes(1000)]
    result += [_of_logits("rounded to tenths", rows, 0.3, 1) for rows in (100, 300, 3000)]
    result += _nearly_alike(0.999, 200) + _nearly_alike(0.999, 3000)
    result += [law for rows in (120, 300, 1000) for law in _few_scores(rows)]
    return result


def _draw_law(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw two groups of one law; the rarer label's chance varies by a tenth."""
    factor = draw.uniform(0.9, 1.1, (replications, 1))
    shape, chance = (replications, population.rows), population.chance
    rare = np.minimum(chance, 1 - chance) * factor
    chances = np.where(chance < 0.5, rare, 1 - rare)
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
    for name, expected in _expected(score, chances).items():
        truth[name] = (population.weight * expected).sum(axis=1)
    return _of_both(data, [truth, truth])


def _without_areas(groups: Sequence[Scored], draw: Random) -> Ends:
    result = {name: ends for name, ends in _ours(groups, draw).items() if "AUC" not in name}
    # Where every score is that of more rows than a bin of equal mass holds.
    if all(
        np.unique(g.score, return_counts=True)[1].min() > 2 * g.score.size / BINS for g in groups
    ):
        result |= with_differences(*({_BY_MASS: _in_bins_of_mass(group)} for group in groups))
        result |= _at_least_0(_BY_MASS, result)
    return result


def _in_bins_of_mass(group: Scored) -> Limits:
    """Return the calibration errors of rows with few scores in bins of equal mass: one of each."""
    codes = replication(group.score)
    cell = BINS * codes + bins_of_mass(group.score.ravel(), codes, len(group.score), BINS)
    return _calibration(*_in_cells(cell, group.score, group.label))


# The family of regressions: errors and likelihoods of a group, and against another group.


Law = Callable[[Random, tuple[int, int]], Floats]  # draws errors of mean 0 and sd 1


def _lognormal(sigma: float) -> Law:
    """Return lognormal errors, of either sign alike."""
    return lambda draw, shape: (
        draw.choice([-1.0, 1.0], shape) * draw.lognormal(-(sigma**2), sigma, shape)
    )


def _student(freedom: float) -> Law:
    """Return Student's errors."""
    return lambda draw, shape: draw.standard_t(freedom, shape) * sqrt((freedom - 2) / freedom)


def _mixed(parts: Mapping[float, float]) -> Law:
    """Return normal errors of which shares are so many times as large."""
    sd = sqrt(sum(share * factor**2 for factor, share in parts.items()))
    factors, shares = np.array(list(parts)) / sd, list(parts.values())
    return lambda draw, shape: draw.choice(factors, shape, p=shares) * draw.normal(size=shape)


LAWS: Mapping[str, Law] = {
    "normal": lambda draw, shape: draw.normal(size=shape),
    "skewed": lambda draw, shape: draw.exponential(size=shape) - 1,
    "heavy-tailed": _student(3.0),
}
# Whose mean squares a sample says little of.
HEAVIER: Mapping[str, Law] = {
    "lognormal": _lognormal(1.5),
    "lognormal(2)": _lognormal(2.0),
    "t(2.5)": _student(2.5),
    "t(2.2)": _student(2.2),
    "contaminated": _mixed({1.0: 0.975, 10.0: 0.02, 20.0: 0.005}),
    "1 % thirty times as large": _mixed({1.0: 0.99, 30.0: 0.01}),
    "four fifths exact": _mixed({0.0: 0.8, 1.0: 0.2}),
    "95 % exact": _mixed({0.0: 0.95, 1.0: 0.05}),
    "99 % exact": _mixed({0.0: 0.99, 1.0: 0.01}),
}
EVERY = {**LAWS, **HEAVIER}
HEAVIER_SIZES = ((20, 20), (50, 50), (200, 200), (400, 400), (1000, 1000))
SIZES_ERRORS = ((20, 20), (50, 50), (200, 200), (2000, 2000), (950, 50))
SCALES = (1.0, 1.5)
_MANY, _EACH = 10_000_000, 5_000  # errors that truths are means of; of the CRPS, every so many-th


@dataclass(frozen=True)
class Predicted:
    """Targets and predictions (R, n) of a group's rows, each with an sd of 1."""

    target: Floats
    prediction: Floats

    def losses(self) -> dict[str, Floats]:
        """Return what means are taken of, by name."""
        one = np.ones_like(self.target)
        error = self.target - self.prediction
        return {
            "MAE": regression.absolute_error_rows(self.target, self.prediction),
            "CRPS": regression.crps_normal_rows(self.target, self.prediction, one),
            "NLL": regression.normal_nll_rows(self.target, self.prediction, one),
            "interval coverage": (np.abs(error) <= quantile(LEVEL)).astype(float),
        }


def _populations_errors() -> Iterator[Setting]:
    """Yield two groups whose targets are predicted, the errors of both claimed to be of sd 1.

    Their law is one of `LAWS` or `HEAVIER`; the scale is the true sd of the second group's.
    """
    every = [*product(SIZES_ERRORS, LAWS, SCALES), *product(HEAVIER_SIZES, HEAVIER, (1.0,))]
    for (first, second), errors, scale in every:
        name = f"{first} and {second} rows, {errors} errors of sd {scale:g}"
        yield Setting(name=name, sizes=(first, second), errors=errors, scale=scale)


def _draw_errors(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw both groups; metrics are of the second one, and of its difference from the first."""
    varied = draw.uniform(0.9, 1.1, (replications, 1))
    data, truths = [], []
    for size, scale in zip(population.sizes, (1.0, population.scale), strict=True):
        sd, shape = scale * varied, (replications, size)
        mean = draw.normal(0, 1, shape)
        data.append(Predicted(mean + sd * EVERY[population.errors](draw, shape), mean))
        truths.append(_truth_errors(_sizes(population.errors), sd))
    return _of_both(data, truths)


@cache
def _sizes(errors: str) -> Floats:
    """Return the sizes of many errors of a law, in order."""
    return np.sort(np.abs(EVERY[errors](rng(0, "errors", errors), (1, _MANY))[0]))


def _truth_errors(sizes: Floats, sd: Floats) -> dict[str, Floats]:
    """Return the metrics (R,) of errors of sds (R, 1) that are claimed to be 1, by their sizes."""
    scale = sd[:, 0]
    # The CRPS is |error| and a remainder that vanishes where errors are large.
    error = sd * sizes[_EACH // 2 :: _EACH]
    density = np.exp(-(error**2) / 2) / sqrt(2 * pi)
    remainder = 2 * density - 2 * error * special.ndtr(-error) - 1 / sqrt(pi)
    absolute = sizes.mean() * scale
    return {
        "MAE": absolute,
        "RMSE": scale,
        "R2": 1 - scale**2 / (1 + scale**2),
        "CRPS": absolute + remainder.mean(axis=1),
        "NLL": (scale**2 + np.log(2 * pi)) / 2,
        "interval coverage": np.searchsorted(sizes, quantile(LEVEL) / scale, "right") / _MANY,
    }


def _limits_errors(group: Predicted) -> dict[str, Limits]:
    losses, squares = group.losses(), (group.target - group.prediction) ** 2
    nll, held, codes = losses["NLL"], losses["interval coverage"], replication(squares)
    tails = [
        means.tail_index(each.ravel(), codes, len(nll))
        for each in (squares, nll - nll.min(axis=1, keepdims=True))
    ]
    rows = group.target.ravel(), group.prediction.ravel(), codes
    return {
        "MAE": mean_ours(losses["MAE"], regression.ERROR_ROWS),
        "RMSE": means.root_limits(Moments.of(squares), tails[0], level=LEVEL),
        "R2": means.explained_variance(*rows, len(nll))[1](LEVEL),
        "CRPS": mean_ours(losses["CRPS"], regression.ERROR_ROWS),
        "NLL": means.heavy_limits(Moments.of(nll), tails[1], level=LEVEL),
        "interval coverage": rate_limits(held.sum(axis=1), held.shape[1], level=LEVEL),
    }


_AREAS = {"ours": _clustered_areas}
_OF_ERRORS: dict[str, Any] = {
    "ours": lambda groups, _: with_differences(*map(_limits_errors, groups)),
    "Wald": _wald,
}
FAMILIES = (
    Family("scores", _populations, _draw, {"ours": _ours, "Wald": _wald}),
    Family("areas_of_clusters", _clustered, _draw_clustered, _AREAS, 600, metric="AUC of clusters"),
    Family("reaching_scores", _laws, _draw_law, {"ours": _without_areas, "Wald": _wald}),
    Family("regression", _populations_errors, _draw_errors, _OF_ERRORS),
)
