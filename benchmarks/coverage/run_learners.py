"""Family of whole runs of many learners, stable and chaotic: what is said of their very fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.stats import qmc

from benchmarks.coverage.learners import LEARNERS
from benchmarks.coverage.populations import thinned
from benchmarks.coverage.runs import SHARE, People, RunCounts, rates_of, tested_counts, tested_rows
from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.inference.means import Moments, outcome_limits
from fairbench.inference.repeats import (
    FOLDS,
    REPEATS,
    RunRates,
    Splits,
    largest_mean_gap,
    mean_limits,
)
from fairbench.inference.scores import area_limits, areas

GROUPS, FEATURES = 3, 2
# How far the first group's features are moved: who is selected hangs on how they are weighed.
AHEAD = np.array([0.8, -0.4])
_POINTS = 512  # new people of a label, of the first group and of another
_PROBABILITIES = ("logistic regression", "short network")
_FEWEST = 50  # tested rows from which on a split has an AUC and a log loss here
_STABLE = ("constant", "ridge")
_DESIGNS = (
    *((200, REPEATS, 5), (200, REPEATS, 30), (500, REPEATS, 10)),
    *((200, FOLDS, 10), (500, FOLDS, 5)),
)
_DESIGNS_OF_MANY = ((2000, REPEATS, 10), (2000, FOLDS, 10))  # of what is fitted at once
# What a rate is a share of, and which of these count, among TN, FP, FN and TP.
_ALL, _SELECTED, _POSITIVE = (0, 1, 2, 3), (1, 3), (2, 3)


@dataclass(frozen=True)
class LearnerPopulation:
    """A learner and the data that it is fitted to.

    Attributes
    ----------
    signal : how far apart the means of the two labels' features are, in their standard deviations.
    positive : the share of positive labels.
    kind, count : repeated hold-outs or folds, and how many.
    """

    learner: str
    rows: int
    signal: float
    positive: float
    kind: str
    count: int

    @property
    def name(self) -> str:
        """What tables call it."""
        learned = "" if self.signal else ", nothing to learn"
        kind = "hold-outs" if self.kind == REPEATS else "folds"
        return f"{self.learner}, {self.rows} rows{learned}, {self.count} {kind}"

    @property
    def splits(self) -> Splits:
        """How the splits share rows."""
        if self.kind == FOLDS:
            return Splits(FOLDS, 1, 1 / self.count)
        return Splits(REPEATS, self.count, SHARE)

    def moved(self, label: NDArray[np.int64], group: NDArray[np.int64]) -> Floats:
        """Return how far the features of people are moved, (..., FEATURES)."""
        of_label = label[..., None] * self.signal / np.sqrt(FEATURES)
        return np.asarray(of_label + AHEAD * (group == 0)[..., None])


def _populations(short: bool) -> Sequence[LearnerPopulation]:
    populations = [
        LearnerPopulation(learner, rows, signal, positive, kind, count)
        for learner in LEARNERS
        for (signal, positive), (rows, kind, count) in product(
            ((2.0, 0.3), (0.0, 0.5)),
            (*_DESIGNS, *(_DESIGNS_OF_MANY if learner in _STABLE else ())),
        )
    ]
    return (
        thinned([population for population in populations if population.rows < 500], 4)
        if short
        else populations
    )


@dataclass(frozen=True, eq=False)
class Fitted:
    """R runs of S splits: confusion counts, and AUC and log loss with their own intervals.

    Attributes
    ----------
    losses : of each, values, lower and upper ends, (3, R, S).
    """

    counts: RunCounts
    losses: Mapping[str, Floats]


@lru_cache(maxsize=4)
def _new_people(population: LearnerPopulation) -> Floats:
    """Return new people (4 * _POINTS, FEATURES), by group and label, evenly spread.

    All groups after the first are alike.
    """
    even = special.ndtri(qmc.Sobol(FEATURES, seed=1).random(_POINTS))
    group, label = np.divmod(np.arange(4), 2)
    people: Floats = (even + population.moved(label, group)[:, None]).reshape(-1, FEATURES)
    return people


def _draw(population: LearnerPopulation, replications: int, draw: np.random.Generator) -> Sample:
    """Draw runs, and what is true of their very fits."""
    counts, shares, losses, truths = [], [], [], []
    for _ in range(replications):
        scores, people, tested = _run(population, draw)
        rows = people.label.size
        counts.append(tested_counts(people, scores[None, :, :rows] > 0.5, tested, GROUPS))
        new = scores[:, rows:].reshape(population.count, 2, 2, _POINTS)
        new = new[:, np.minimum(np.arange(GROUPS), 1)]
        shares.append((new > 0.5).mean(axis=-1))
        if population.learner in _PROBABILITIES and rows * tested.mean() >= _FEWEST:
            losses.append(_of_scores(scores[:, :rows], people.label[0], tested[0]))
            truths.append(_of_new(new, population.positive))
    data = RunCounts(np.concatenate(counts), population.splits)
    names = ("AUC", "log loss") if losses else ()
    own = {
        name: np.array([run[i] for run in losses]).swapaxes(0, 1) for i, name in enumerate(names)
    }
    truth = _truth(data, np.array(shares), population.positive)
    for i, name in enumerate(names):
        value = np.where(np.isfinite(own[name][0]), np.array(truths)[:, i], np.nan)
        truth[name] = np.nanmean(value, axis=-1)
    return Sample(Fitted(data, own), truth)


def _run(
    population: LearnerPopulation, draw: np.random.Generator
) -> tuple[Floats, People, NDArray[np.bool_]]:
    """Return scores (S, N + M) of a run's own and of new people, its people, and whom it tests."""
    shape = 1, population.rows
    label = (draw.random(shape) < population.positive).astype(np.int64)
    group = draw.integers(0, GROUPS, shape)
    features = draw.standard_normal((*shape, FEATURES))
    features += population.moved(label, group)
    stratified = label if population.kind == FOLDS else None
    tested = tested_rows(shape, population.kind, draw, splits=population.count, label=stratified)
    everyone = np.concatenate([features[0], _new_people(population)])
    fit = LEARNERS[population.learner]
    scores = fit(features[0], label[0], ~tested[0], everyone, draw)
    return scores, People(features.astype(np.float32), label, group), tested


def _of_scores(scores: Floats, label: NDArray[np.int64], tested: NDArray[np.bool_]) -> Floats:
    """Return AUC and log loss of every split with their intervals, (2, 3, S)."""
    split, row = np.nonzero(tested)
    target, score, splits = label[row], scores[split, row], len(tested)
    moments = Moments.of_groups(_log_loss(target, score), 2 * split + target, 2 * splits)
    limits = [
        area_limits(areas(target.astype(float), score, split, splits), level=LEVEL),
        outcome_limits(moments.take(np.arange(2 * splits).reshape(-1, 2)), level=LEVEL, least=0.0),
    ]
    return np.array([list(limit) for limit in limits])


def _of_new(scores: Floats, positive: float) -> Floats:
    """Return what AUC and log loss truly are of scores (S, G, 2, P) of new people, (2, S)."""
    splits = len(scores)
    target = np.broadcast_to(np.arange(2)[:, None], scores.shape)
    split = np.repeat(np.arange(splits), scores[0].size)
    area = areas(target.ravel().astype(float), scores.ravel(), split, splits).area
    loss = _log_loss(target, scores).mean(axis=(1, 3)) @ [1 - positive, positive]
    return np.array([area, loss])


def _log_loss(label: NDArray[np.int64], score: Floats) -> Floats:
    return np.asarray(-np.log(np.clip(np.where(label > 0, score, 1 - score), 1e-6, None)))


def _truth(data: RunCounts, shares: Floats, positive: float) -> dict[str, Floats]:
    """Return the means over a run's fits of shares (R, S, G, 2) selected by group and label."""
    selected, reached = shares @ [1 - positive, positive], shares[..., 1]
    wrong = (shares @ [1 - positive, -positive] + positive).mean(axis=-1)
    there = np.isfinite(rates_of(data, (3,), _POSITIVE).values)
    reached = np.where(there, reached.swapaxes(1, 2), np.nan)
    selected = selected.swapaxes(1, 2)
    gap = np.nanmean(selected, axis=-1)
    return {
        "error rate": wrong.mean(axis=1)[:, None],
        "selection rate": gap,
        "difference in selection rate": (selected[:, 1:] - selected[:, :1]).mean(axis=-1),
        "largest gap in selection rate": np.ptp(gap, axis=-1),
        "true positive rate": np.nanmean(reached, axis=-1),
        "difference in true positive rates": np.nanmean(reached[:, 1:] - reached[:, :1], axis=-1),
    }


def _rates(data: RunCounts) -> tuple[RunRates, RunRates, RunRates]:
    """Return the error rate of everyone, and the groups' selection and true positive rates."""
    everyone = replace(data, counts=data.counts.sum(axis=2, keepdims=True))
    return (
        rates_of(everyone, (1, 2), _ALL),
        rates_of(data, _SELECTED, _ALL),
        rates_of(data, (3,), _POSITIVE),
    )


def _ours(data: Fitted, _: np.random.Generator) -> Mapping[str, Interval]:
    """Return the intervals of a run's table."""
    splits = data.counts.splits
    errors, selected, reached = _rates(data.counts)
    limits = {
        "error rate": errors.limits(),
        "selection rate": selected.limits(),
        "difference in selection rate": selected.against_first(),
        "largest gap in selection rate": largest_mean_gap(selected),
        "true positive rate": reached.limits(),
        "difference in true positive rates": reached.against_first(),
    }
    for name, (value, lower, upper) in data.losses.items():
        chance = np.full(len(value), 0.5 if name == "AUC" else np.nan)
        limits[name] = mean_limits(value, lower, upper, splits, level=LEVEL, chance=chance)
    return {name: (limit.lower, limit.upper) for name, limit in limits.items()}


def _corrected(data: Fitted, _: np.random.Generator) -> Mapping[str, Interval]:
    """Return the corrected resampled t intervals, which hold-outs alone have."""
    errors, selected, reached = (rates.values for rates in _rates(data.counts))
    values = {
        "error rate": errors,
        "selection rate": selected,
        "difference in selection rate": selected[:, 1:] - selected[:, :1],
        "true positive rate": reached,
        "difference in true positive rates": reached[:, 1:] - reached[:, :1],
        **{name: own[0] for name, own in data.losses.items()},
    }
    limits = {}
    for name, value in values.items():
        none = np.full_like(value, np.nan)
        limits[name] = mean_limits(value, none, none, data.counts.splits, level=LEVEL)
    return {name: (limit.lower, limit.upper) for name, limit in limits.items()}


FAMILIES = (
    Family(
        "learners",
        "Whole runs of many learners",
        "Learners are fitted again in 5, 10 or 30 hold-outs (a fifth of the rows each) or in 5 or "
        "10 stratified folds. They range from a constant to a tree that makes no error on its "
        "training rows. The two labels are far apart, or there is nothing to learn. The true "
        "value is the average performance of these fitted models on new people. *corrected t* is "
        "Nadeau and Bengio's interval.",
        _populations,
        _draw,
        (Construction("ours", _ours), Construction("corrected t", _corrected)),
        600,
    ),
)
