"""Family of whole runs: a real learner, fitted again in every hold-out repeat or fold.

The learner is a nearest mean: it scores people along the line between the means of the two labels'
training rows, and selects a share of them. What such a fit makes of new people is known exactly,
so that the truth needs no test population.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.populations import thinned
from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats, Mask
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.rates import Limits, difference_limits, rate_limits
from fairbench.inference.repeats import (
    FOLDS,
    REPEATS,
    RunRates,
    Splits,
    largest_mean_gap,
    smallest_mean_ratio,
)
from fairbench.metrics.rates import binary_confusion

Labels = NDArray[np.int64]
POSITIVE, FEATURES, SHARE, SPLITS = 0.3, 4, 0.2, 10
CHUNK = 50


@dataclass(frozen=True)
class RunPopulation:
    """People to split, fit and test.

    Attributes
    ----------
    rows : how many people there are.
    groups : how many groups they are in, at random.
    selected : the share that is selected.
    shift : how far the features of the first group are moved, which makes it selected more often.
    kind : repeated hold-outs, or folds.
    """

    rows: int
    groups: int
    selected: float
    shift: float
    kind: str

    @property
    def name(self) -> str:
        """What tables call it."""
        differs = f"one group {self.shift:g} sd ahead" if self.shift else "groups alike"
        kind = "hold-outs" if self.kind == REPEATS else "folds"
        people = f"{self.rows} rows, {self.groups} groups, {self.selected:g} selected"
        return f"{people}, {differs}, {SPLITS} {kind}"

    @property
    def splits(self) -> Splits:
        """How the splits share rows."""
        return Splits(self.kind, *((1, 1 / SPLITS) if self.kind == FOLDS else (SPLITS, SHARE)))


def _populations(short: bool) -> Sequence[RunPopulation]:
    result = [
        RunPopulation(rows, groups, selected, shift, kind)
        for rows, groups, selected, shift, kind in product(
            (500, 2000), (2, 4, 10), (0.003, 0.03, 0.3), (0.0, 0.05, 0.3), (REPEATS, FOLDS)
        )
        if rows * selected >= 6
    ]
    return thinned(result, 10) if short else result


@dataclass(frozen=True, eq=False)
class People:
    """Features (R, N, D), labels and groups (R, N) of R replications of N people."""

    features: NDArray[np.float32]
    label: Labels
    group: Labels

    @classmethod
    def drawn(cls, population: RunPopulation, runs: int, draw: np.random.Generator) -> People:
        """Draw people: normal features, moved by the label and in the first group."""
        shape = (runs, population.rows)
        group = draw.integers(0, population.groups, shape)
        label = (draw.random(shape) < POSITIVE).astype(np.int64)
        features = draw.standard_normal((*shape, FEATURES), np.float32)
        features += moved(label, group, population.shift)[..., None]
        return cls(features, label, group)


def moved(label: Labels, group: Labels, shift: float) -> Floats:
    """Return how far every feature of a person is moved."""
    result: Floats = label * 2 / np.sqrt(FEATURES) + shift * (group == 0)
    return result


def tested_rows(
    shape: tuple[int, int],
    kind: str,
    draw: np.random.Generator,
    *,
    splits: int = SPLITS,
    label: Labels | None = None,
) -> Mask:
    """Return which of N people each of the S splits of R runs tests, (R, S, N).

    Parameters
    ----------
    label : (R, N), of which every fold has as many; folds are drawn without regard to it if None.
    """
    runs, rows = shape
    orders = runs if kind == FOLDS else runs * splits
    place = draw.permuted(np.tile(np.arange(rows), (orders, 1)), axis=1)
    if kind == FOLDS:
        if label is not None:
            place = np.lexsort((place, label), axis=1).argsort(axis=1)
        return np.asarray((place % splits)[:, None, :] == np.arange(splits)[:, None])
    return np.asarray(place < round(SHARE * rows)).reshape(runs, splits, rows)


def _fitted(people: People, rows: Mask, selected: float) -> tuple[Floats, Floats, Floats]:
    """Return directions (R, S, D), thresholds (R, S) and scores (R, S, N) of nearest means.

    Parameters
    ----------
    rows : (R, S, N) those that are trained on.
    """
    trained = rows.astype(np.float32)
    ones = people.label[:, None] * trained
    means = [
        (part @ people.features) / np.maximum(part.sum(axis=-1, keepdims=True), 1)
        for part in (ones, trained - ones)
    ]
    direction = means[0] - means[1]
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    score = direction @ people.features.transpose(0, 2, 1)
    size = trained.sum(axis=-1)
    mean = (score * trained).sum(axis=-1) / size
    spread = np.sqrt((score**2 * trained).sum(axis=-1) / size - mean**2)
    return direction, mean + spread * special.ndtri(1 - selected), score


@dataclass(frozen=True, eq=False)
class RunCounts:
    """Confusion counts (R, S, G, 4) of R runs in S splits."""

    counts: Floats
    splits: Splits


def fits(
    people: People, tested: Mask, population: RunPopulation, noise: float = 0.0
) -> tuple[Mask, Floats]:
    """Return whom fits select (R, S, N), and what share (R, S, G, 2) of new people they would.

    Parameters
    ----------
    noise : sd of what is added to features, beside their own of 1.
    """
    direction, threshold, score = _fitted(people, ~tested, population.selected)
    predicted = score > threshold[..., None]
    group, label = np.meshgrid(np.arange(population.groups), np.arange(2), indexing="ij")
    means = moved(label, group, population.shift) * direction.sum(axis=-1)[..., None, None]
    shares = special.ndtr((means - threshold[..., None, None]) / np.hypot(1, noise))
    return predicted, shares


def _draw(population: RunPopulation, replications: int, draw: np.random.Generator) -> Sample:
    """Draw runs, and what is true of their learner on average or of their own fits."""
    counts, shares = [], []
    for _ in range(0, replications, CHUNK):
        people = People.drawn(population, CHUNK, draw)
        tested = tested_rows(people.label.shape, population.kind, draw)
        result, selected = fits(people, tested, population)
        counts.append(tested_counts(people, result, tested, population.groups))
        shares.append(selected)
    truth = _truth(np.concatenate(shares).mean(axis=1))
    return Sample(RunCounts(np.concatenate(counts), population.splits), truth)


def tested_counts(people: People, predicted: Mask, tested: Mask, groups: int) -> Floats:
    """Return the counts (R, S, G, 4) of the rows that each split tests."""
    runs, splits = tested.shape[:2]
    at = np.nonzero(tested)
    part = (at[0] * splits + at[1]) * groups + people.group[at[0], at[2]]
    counts = binary_confusion(
        people.label[at[0], at[2]], predicted[at], part, n_groups=runs * splits * groups
    )
    return counts.reshape(runs, splits, groups, 4).astype(float)


def _truth(shares: Floats) -> Mapping[str, Floats]:
    """Return the true values of what is asked for, of shares (R, G, 2) selected."""
    selected = shares @ [1 - POSITIVE, POSITIVE]
    wrong = shares @ [1 - POSITIVE, -POSITIVE] + POSITIVE
    return {
        "error rate": wrong.mean(axis=-1, keepdims=True),
        "selection rate": selected,
        "difference in selection rate": selected[:, 1:] - selected[:, :1],
        "smallest ratio of selection rates": selected.min(axis=-1) / selected.max(axis=-1),
        "largest gap in selection rate": np.ptp(selected, axis=-1),
    }


def rates_of(data: RunCounts, hits: tuple[int, ...], of: tuple[int, ...]) -> RunRates:
    """Return the groups' rates of some cells of the confusion tables of every split."""
    counts = data.counts.transpose(0, 2, 1, 3)
    rows = counts[..., of].sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return RunRates(counts[..., hits].sum(axis=-1) / rows, rows, data.splits, LEVEL)


def _rates(data: RunCounts) -> tuple[RunRates, RunRates]:
    """Return the error rate of everyone, and the groups' selection rates, in every split."""
    everyone = replace(data, counts=data.counts.sum(axis=2, keepdims=True))
    return rates_of(everyone, (1, 2), (0, 1, 2, 3)), rates_of(data, (1, 3), (0, 1, 2, 3))


def _ours(data: RunCounts, _: np.random.Generator) -> Mapping[str, Interval]:
    """Return the intervals of a run's table."""
    errors, rates = _rates(data)
    return {
        "error rate": _ends(errors.limits()),
        "selection rate": _ends(rates.limits()),
        "difference in selection rate": _ends(rates.against_first()),
        "smallest ratio of selection rates": _ends(smallest_mean_ratio(rates)),
        "largest gap in selection rate": _ends(largest_mean_gap(rates)),
    }


def _single(data: RunCounts, _: np.random.Generator) -> Mapping[str, Interval]:
    """Return the medians over splits of their own intervals, which was printed before."""
    errors, rates = ([rate.values * rate.sizes, rate.sizes] for rate in _rates(data))
    hits, rows = (np.nan_to_num(rate).transpose(0, 2, 1) for rate in rates)
    groups = GroupLimits.of(hits, rows, level=LEVEL)
    single = groups.pointwise
    pair = difference_limits(single.take(slice(1, None)), single.take(slice(0, 1)))
    return {
        "error rate": _medians(rate_limits(errors[0], errors[1], level=LEVEL), -1),
        "selection rate": _medians(single, 1),
        "difference in selection rate": _medians(pair, 1),
        "largest gap in selection rate": _medians(largest_gap(groups), 1),
    }


def _plain(data: RunCounts, _: np.random.Generator) -> Mapping[str, Interval]:
    """Return t intervals of the splits' values as if splits were independent; gaps too."""
    errors, rates = (rate.values for rate in _rates(data))
    values = {
        "error rate": errors,
        "selection rate": rates,
        "difference in selection rate": rates[:, 1:] - rates[:, :1],
        "largest gap in selection rate": rates.max(axis=1) - rates.min(axis=1),
    }
    return {name: _t_interval(value) for name, value in values.items()}


def _t_interval(values: Floats) -> Interval:
    splits = values.shape[-1]
    mean, sd = values.mean(axis=-1), values.std(axis=-1, ddof=1)
    half = special.stdtrit(splits - 1, (1 + LEVEL) / 2) * sd / np.sqrt(splits)
    return mean - half, mean + half


def _ends(limits: Limits) -> Interval:
    return limits.lower, limits.upper


def _medians(limits: Limits, axis: int) -> Interval:
    return np.median(limits.lower, axis=axis), np.median(limits.upper, axis=axis)


FAMILIES = (
    Family(
        "runs",
        "Whole runs",
        f"A learner is fitted again in each of {SPLITS} hold-outs or folds, and tested on the rows "
        "that were left out. The true value is the average performance of these fitted models on "
        "new people. *0.3 selected* is the share of people whom the learner selects. *one group "
        "0.3 sd ahead* means that this group has better features, by 0.3 standard deviations, and "
        "is selected more often. *medians* are the medians over the splits of each split's own "
        "interval. *plain t* treats the splits as independent, and averages gaps without "
        "correcting for chance.",
        _populations,
        _draw,
        (
            Construction("ours", _ours),
            Construction("medians", _single),
            Construction("plain t", _plain),
        ),
    ),
)
