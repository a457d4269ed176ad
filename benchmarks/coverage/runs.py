"""Families of whole runs: of one, of the fairest of many, of two compared; and their learners.

Learners go from those that hardly depend on their rows to those that hang on each. Each fits all
splits of one data set at once where that is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.spatial import cKDTree
from scipy.stats import qmc

from benchmarks.coverage.simulate import LEVEL, Ends, Family, Interval, Random, Sample, Setting
from fairbench.core.arrays import Floats, Mask
from fairbench.core.errors import UserError
from fairbench.inference import repeats
from fairbench.inference.comparing import lead_of_values, objective
from fairbench.inference.means import Moments, outcome_limits
from fairbench.inference.posterior import independent_draws
from fairbench.inference.rates import Limits, quantile
from fairbench.inference.repeats import FOLDS, REPEATS, RunRates, Splits
from fairbench.inference.scores import Areas
from fairbench.metrics.probability import log_loss_rows
from fairbench.metrics.registry import BINARY, accuracy, binary_confusion, metrics_of, named, total
from fairbench.metrics.uncertainty import area_under_risk_coverage
from fairbench_search import choice
from fairbench_search.corrected import Candidates, choose, correction

Labels = NDArray[np.int64]
# Of features (N, D), labels (N,), rows trained on (S, N) and new people (M, D): scores (S, M).
Learner = Callable[[Floats, Labels, Mask, Floats, Random], Floats]
_UNITS, _EPOCHS, _RATE = 8, 15, 2.0  # of the network
_STEPS = 6  # of Newton's method


def constant(features: Floats, label: Labels, trained: Mask, people: Floats, _: Random) -> Floats:
    """Score everybody by the share of positive labels."""
    share = trained @ label / trained.sum(axis=1)
    return np.repeat(share[:, None], len(people), axis=1)


def ridge(features: Floats, label: Labels, trained: Mask, people: Floats, _: Random) -> Floats:
    """Score by least squares with a small penalty."""
    rows, weight = _with_one(features), trained.astype(float)
    gram = np.einsum("sn,ni,nj->sij", weight, rows, rows, optimize=True) + np.eye(rows.shape[1])
    slope = np.linalg.solve(gram, ((weight * label) @ rows)[..., None])[..., 0]
    return np.asarray(slope @ _with_one(people).T)


def logistic(features: Floats, label: Labels, trained: Mask, people: Floats, _: Random) -> Floats:
    """Score by logistic regression with a small penalty."""
    rows, weight = _with_one(features), trained.astype(float)
    slope, penalty = np.zeros((len(trained), rows.shape[1])), 0.1
    for _step in range(_STEPS):
        chance = special.expit(slope @ rows.T)
        curvature = weight * chance * (1 - chance)
        hessian = np.einsum("sn,ni,nj->sij", curvature, rows, rows, optimize=True)
        gradient = (weight * (label - chance)) @ rows - penalty * slope
        hessian += penalty * np.eye(rows.shape[1])
        slope = slope + np.linalg.solve(hessian, gradient[..., None])[..., 0]
    return np.asarray(special.expit(slope @ _with_one(people).T))


def deep_tree(
    features: Floats, label: Labels, trained: Mask, people: Floats, draw: Random
) -> Floats:
    """Score by a tree that errs on none of its training rows."""
    from sklearn.tree import DecisionTreeClassifier

    seeds = draw.integers(0, 2**31, len(trained))
    trees = [
        DecisionTreeClassifier(random_state=int(seed)).fit(features[rows], label[rows])
        for seed, rows in zip(seeds, trained, strict=True)
    ]
    return np.array([tree.predict(people) for tree in trees], float)


def nearest_neighbour(
    features: Floats, label: Labels, trained: Mask, people: Floats, _: Random
) -> Floats:
    """Score by the label of the nearest training row."""
    trees = [(cKDTree(features[rows]), label[rows]) for rows in trained]
    return np.array([own[tree.query(people)[1]] for tree, own in trees], float)


def network(features: Floats, label: Labels, trained: Mask, people: Floats, draw: Random) -> Floats:
    """Score by a network of eight units after a few epochs from random weights."""
    weight = trained / trained.sum(axis=1, keepdims=True)
    shape = len(trained), features.shape[1], _UNITS
    into, shift = draw.standard_normal(shape), draw.standard_normal((shape[0], 1, _UNITS))
    out, bias = draw.standard_normal((shape[0], _UNITS, 1)) / 2, np.zeros((shape[0], 1, 1))
    for _epoch in range(_EPOCHS):
        hidden = np.tanh(features @ into + shift)
        error = (special.expit(hidden @ out + bias) - label[:, None]) * weight[..., None]
        back = (error @ out.transpose(0, 2, 1)) * (1 - hidden**2)
        out -= _RATE * hidden.transpose(0, 2, 1) @ error
        bias -= _RATE * error.sum(axis=1, keepdims=True)
        into -= _RATE * features.T @ back
        shift -= _RATE * back.sum(axis=1, keepdims=True)
    score = special.expit(np.tanh(people @ into + shift) @ out + bias)
    return np.asarray(score[..., 0])


def _with_one(features: Floats) -> Floats:
    return np.concatenate([features, np.ones((len(features), 1))], axis=1)


LEARNERS: Mapping[str, Learner] = {
    "constant": constant,
    "ridge": ridge,
    "logistic regression": logistic,
    "deep tree": deep_tree,
    "nearest neighbour": nearest_neighbour,
    "short network": network,
}


# Family of whole runs: a real learner, fitted again in every hold-out repeat or fold.
#
# The learner is a nearest mean: it scores people along the line between the means of the two
# labels' training rows, and selects a share of them. What such a fit makes of new people is known
# exactly, so that the truth needs no test population.

POSITIVE, FEATURES, SHARE, SPLITS = 0.3, 4, 0.2, 10
CHUNK = 50
_ALL, _POSITIVE = (0, 1, 2, 3), (2, 3)  # what a rate is a share of, among TN, FP, FN and TP


def run_of(rows: int, groups: int, selected: float, shift: float, kind: str) -> Setting:
    """Return people to split, fit and test, in repeated hold-outs or folds (`kind`).

    Parameters
    ----------
    rows : how many people there are.
    groups : how many groups they are in, at random.
    selected : the share that is selected.
    shift : how far the features of the first group are moved, which makes it selected more often.
    """
    differs = f"one group {shift:g} sd ahead" if shift else "groups alike"
    one = Setting(rows=rows, groups=groups, selected=selected, shift=shift, kind=kind)
    one.name = f"{rows} rows, {groups} groups, {selected:g} selected, {differs}, "
    one.name += f"{SPLITS} {_KINDS[kind]}"
    return one


_KINDS = {REPEATS: "hold-outs", FOLDS: "folds"}


def _splits(kind: str, count: int = SPLITS) -> Splits:
    """Return how splits share rows."""
    return Splits(FOLDS, 1, 1 / count) if kind == FOLDS else Splits(REPEATS, count, SHARE)


def _populations() -> list[Setting]:
    shifts, shares = (0.0, 0.05, 0.3), (0.003, 0.03, 0.3)
    every = product((500, 2000), (2, 4, 10), shares, shifts, (REPEATS, FOLDS))
    return [run_of(*each) for each in every if each[0] * each[2] >= 6]


@dataclass(frozen=True, eq=False)
class People:
    """Features (R, N, D), labels and groups (R, N) of R replications of N people."""

    features: NDArray[np.float32]
    label: Labels
    group: Labels

    @classmethod
    def drawn(cls, population: Setting, runs: int, draw: Random) -> People:
        """Draw people: normal features, moved by the label and in the first group."""
        shape = (runs, population.rows)
        group = draw.integers(0, population.groups, shape)
        label = (draw.random(shape) < POSITIVE).astype(np.int64)
        features = draw.standard_normal((*shape, FEATURES), np.float32)
        features += moved(label, group, population.shift)[..., None]
        return cls(features, label, group)

    def take(self, rows: Mask) -> People:
        """Return some of the people."""
        return People(self.features[:, rows], self.label[:, rows], self.group[:, rows])


def moved(label: Labels, group: Labels, shift: float) -> Floats:
    """Return how far every feature of a person is moved."""
    result: Floats = label * 2 / np.sqrt(FEATURES) + shift * (group == 0)
    return result


def tested_rows(
    shape: tuple[int, int],
    kind: str,
    draw: Random,
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


@dataclass(frozen=True, eq=False)
class Fitted:
    """R runs of S splits.

    Attributes
    ----------
    counts : (R, S, G, 4) of the confusion.
    losses : of AUC and log loss, values, lower and upper ends, (3, R, S); nothing of most learners.
    """

    counts: Floats
    splits: Splits
    losses: Mapping[str, Floats] = field(default_factory=dict)


def fits(
    people: People, tested: Mask, population: Setting, noise: float = 0.0
) -> tuple[Mask, Floats]:
    """Return whom nearest means select (R, S, N), and what share (R, S, G, 2) of new people.

    Parameters
    ----------
    noise : sd of what is added to features, beside their own of 1.
    """
    trained = (~tested).astype(np.float32)
    ones = people.label[:, None] * trained
    of_ones, of_zeros = (
        (part @ people.features) / np.maximum(part.sum(axis=-1, keepdims=True), 1)
        for part in (ones, trained - ones)
    )
    direction = of_ones - of_zeros
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    score = direction @ people.features.transpose(0, 2, 1)
    size = trained.sum(axis=-1)
    mean = (score * trained).sum(axis=-1) / size
    spread = np.sqrt((score**2 * trained).sum(axis=-1) / size - mean**2)
    threshold = mean + spread * special.ndtri(1 - population.selected)
    group, label = np.meshgrid(np.arange(population.groups), np.arange(2), indexing="ij")
    means = moved(label, group, population.shift) * direction.sum(axis=-1)[..., None, None]
    shares = special.ndtr((means - threshold[..., None, None]) / np.hypot(1, noise))
    return score > threshold[..., None], shares


def _draw(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw runs, and what is true of their learner on average or of their own fits."""
    counts, shares = [], []
    for _ in range(0, replications, CHUNK):
        people = People.drawn(population, CHUNK, draw)
        tested = tested_rows(people.label.shape, population.kind, draw)
        result, selected = fits(people, tested, population)
        counts.append(tested_counts(people, result, tested, population.groups))
        shares.append(selected)
    truth = _truth(np.concatenate(shares).mean(axis=1))
    rates = truth["selection rate"]
    truth["smallest ratio of selection rates"] = rates.min(axis=-1) / rates.max(axis=-1)
    return Sample(Fitted(np.concatenate(counts), _splits(population.kind)), truth)


def tested_counts(people: People, predicted: Mask, tested: Mask, groups: int) -> Floats:
    """Return the counts (R, S, G, 4) of the rows that each split tests."""
    runs, splits = tested.shape[:2]
    run, split, row = at = np.nonzero(tested)
    part = (run * splits + split) * groups + people.group[run, row]
    of_all = runs * splits * groups
    counts = binary_confusion(people.label[run, row], predicted[at], part, n_groups=of_all)
    return counts.reshape(runs, splits, groups, 4).astype(float)


def _truth(shares: Floats, positive: float = POSITIVE) -> dict[str, Floats]:
    """Return the true values of what is asked for, of shares (R, G, 2) selected."""
    selected = shares @ [1 - positive, positive]
    wrong = shares @ [1 - positive, -positive] + positive
    return {
        "error rate": wrong.mean(axis=-1, keepdims=True),
        "selection rate": selected,
        "difference in selection rate": selected[:, 1:] - selected[:, :1],
        "largest gap in selection rate": np.ptp(selected, axis=-1),
    }


def rates_of(data: Fitted, hits: tuple[int, ...], of: tuple[int, ...]) -> RunRates:
    """Return the groups' rates of some cells of the confusion tables of every split."""
    counts = data.counts.transpose(0, 2, 1, 3)
    rows = counts[..., of].sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return RunRates(counts[..., hits].sum(axis=-1) / rows, rows, data.splits, LEVEL)


def _rates(data: Fitted) -> tuple[RunRates, RunRates, RunRates]:
    """Return the error rate of everyone, and the groups' selection and true positive rates."""
    everyone = replace(data, counts=data.counts.sum(axis=2, keepdims=True))
    selected, reached = rates_of(data, (1, 3), _ALL), rates_of(data, (3,), _POSITIVE)
    return rates_of(everyone, (1, 2), _ALL), selected, reached


def _ours(data: Fitted, _: Random) -> Ends:
    """Return the intervals of a run's table."""
    errors, selected, reached = _rates(data)
    limits = {
        "error rate": errors.limits(),
        "selection rate": selected.limits(),
        "difference in selection rate": selected.against_first(),
        "smallest ratio of selection rates": selected.smallest_ratio(),
        "largest gap in selection rate": repeats.largest_mean_gap(selected),
        "true positive rate": reached.limits(),
        "difference in true positive rates": reached.against_first(),
    }
    return limits | {
        name: _mean_limits(name, losses, data.splits) for name, losses in data.losses.items()
    }


def _mean_limits(name: str, losses: Floats, splits: Splits) -> Limits:
    """Return the means of values with ends (3, R, S), of AUC and of others."""
    chance = np.full(losses.shape[1], 0.5 if name == "AUC" else np.nan)
    value, lower, upper = losses
    return repeats.mean_limits(value, lower, upper, splits, level=LEVEL, chance=chance)


def _by_split(data: Fitted) -> dict[str, Floats]:
    """Return the values of every split, (R, ..., S)."""
    errors, selected, reached = (rates.values for rates in _rates(data))
    return {
        "error rate": errors,
        "selection rate": selected,
        "difference in selection rate": selected[:, 1:] - selected[:, :1],
        "true positive rate": reached,
        "difference in true positive rates": reached[:, 1:] - reached[:, :1],
        **{name: own[0] for name, own in data.losses.items()},
    }


def _plain(data: Fitted, _: Random) -> Ends:
    """Return t intervals of the splits' values as if splits were independent; gaps too."""
    values = _by_split(data)
    values["largest gap in selection rate"] = np.ptp(values["selection rate"], axis=1)
    return {name: _t_interval(value) for name, value in values.items()}


def _t_interval(values: Floats) -> Interval:
    splits = values.shape[-1]
    mean, sd = values.mean(axis=-1), values.std(axis=-1, ddof=1)
    half = special.stdtrit(splits - 1, (1 + LEVEL) / 2) * sd / np.sqrt(splits)
    return mean - half, mean + half


# Family of whole runs of many learners, stable and chaotic: what is said of their very fits.

GROUPS, FEATURES_MANY = 3, 2
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


def _moved(label: Labels, group: Labels, signal: float) -> Floats:
    """Return how far the features of people are moved, (..., FEATURES)."""
    of_label = label[..., None] * signal / np.sqrt(FEATURES_MANY)
    return np.asarray(of_label + AHEAD * (group == 0)[..., None])


def _populations_many() -> Iterator[Setting]:
    """Yield learners and the data that they are fitted to.

    The means of the two labels' features are apart by the `signal`, in their standard deviations; a
    share of labels is `positive`; there are so many (`count`) repeated hold-outs or folds (`kind`).
    """
    for learner in LEARNERS:
        designs = (*_DESIGNS, *(_DESIGNS_OF_MANY if learner in _STABLE else ()))
        labels = ((2.0, 0.3, ""), (0.0, 0.5, ", nothing to learn"))
        for (signal, positive, words), (rows, kind, count) in product(labels, designs):
            one = Setting(learner=learner, rows=rows, kind=kind, count=count)
            one.name = f"{learner}, {rows} rows{words}, {count} {_KINDS[kind]}"
            one.signal, one.positive = signal, positive
            yield one


@lru_cache(maxsize=4)
def _new_people(signal: float) -> Floats:
    """Return new people (4 * _POINTS, FEATURES), by group and label, evenly spread.

    All groups after the first are alike.
    """
    even = special.ndtri(qmc.Sobol(FEATURES_MANY, seed=1).random(_POINTS))
    group, label = np.divmod(np.arange(4), 2)
    people: Floats = (even + _moved(label, group, signal)[:, None]).reshape(-1, FEATURES_MANY)
    return people


def _draw_many(population: Setting, replications: int, draw: Random) -> Sample:
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
    data = Fitted(np.concatenate(counts), _splits(population.kind, population.count))
    truth, own = _truth_many(data, np.array(shares), population.positive), {}
    for i, name in enumerate(("AUC", "log loss") if losses else ()):
        own[name] = np.array(losses)[:, i].swapaxes(0, 1)
        value = np.where(np.isfinite(own[name][0]), np.array(truths)[:, i], np.nan)
        truth[name] = np.nanmean(value, axis=-1)
    return Sample(replace(data, losses=own), truth)


def _run(population: Setting, draw: Random) -> tuple[Floats, People, Mask]:
    """Return scores (S, N + M) of a run's own and of new people, its people, and whom it tests."""
    shape, kind = (1, population.rows), population.kind
    label = (draw.random(shape) < population.positive).astype(np.int64)
    group = draw.integers(0, GROUPS, shape)
    features = draw.standard_normal((*shape, FEATURES_MANY))
    features += _moved(label, group, population.signal)
    stratified = label if kind == FOLDS else None
    tested = tested_rows(shape, kind, draw, splits=population.count, label=stratified)
    everyone = np.concatenate([features[0], _new_people(population.signal)])
    fit = LEARNERS[population.learner]
    scores = fit(features[0], label[0], ~tested[0], everyone, draw)
    return scores, People(features.astype(np.float32), label, group), tested


def _of_scores(scores: Floats, label: Labels, tested: Mask) -> Floats:
    """Return AUC and log loss of every split with their intervals, (2, 3, S)."""
    split, row = np.nonzero(tested)
    target, score, splits = label[row], scores[split, row], len(tested)
    moments = Moments.of_groups(_log_loss(target, score), 2 * split + target, 2 * splits)
    moments = moments.take(np.arange(2 * splits).reshape(-1, 2))
    area = Areas.of(target.astype(float), score, split, splits).limits(LEVEL)
    return np.array([area, outcome_limits(moments, level=LEVEL, least=0.0)])


def _of_new(scores: Floats, positive: float) -> Floats:
    """Return what AUC and log loss truly are of scores (S, G, 2, P) of new people, (2, S)."""
    splits = len(scores)
    target = np.broadcast_to(np.arange(2)[:, None], scores.shape)
    split = np.repeat(np.arange(splits), scores[0].size)
    area = Areas.of(target.ravel().astype(float), scores.ravel(), split, splits).area
    loss = _log_loss(target, scores).mean(axis=(1, 3)) @ [1 - positive, positive]
    return np.array([area, loss])


def _log_loss(label: NDArray[np.int64], score: Floats) -> Floats:
    return np.asarray(-np.log(np.clip(np.where(label > 0, score, 1 - score), 1e-6, None)))


def _truth_many(data: Fitted, shares: Floats, positive: float) -> dict[str, Floats]:
    """Return the means over a run's fits of shares (R, S, G, 2) selected by group and label."""
    there = np.isfinite(rates_of(data, (3,), _POSITIVE).values)
    reached = np.where(there, shares[..., 1].swapaxes(1, 2), np.nan)
    return _truth(shares.mean(axis=1), positive) | {
        "true positive rate": np.nanmean(reached, axis=-1),
        "difference in true positive rates": np.nanmean(reached[:, 1:] - reached[:, :1], axis=-1),
    }


def _corrected(data: Fitted, _: Random) -> Ends:
    """Return the corrected resampled t intervals, which hold-outs alone have."""
    limits = {}
    for name, value in _by_split(data).items():
        none = np.full_like(value, np.nan)
        limits[name] = repeats.mean_limits(value, none, none, data.splits, level=LEVEL)
    return limits


# Family of two runs compared: two learners, fitted again in every one of the same hold-outs.

DRAWS = 500
NAMES = ("difference in accuracy", "difference in the gap in true positive rates")


def _learners() -> Iterator[Setting]:
    """Yield two learners on the same splits, each of half of the features.

    The second is worse by the `noise`, the sd of what is added to its features.
    """
    for rows, groups, shift, noise in product((500, 2000), (2, 4), (0.0, 0.3), (0.0, 0.5, 1.0)):
        people = run_of(rows, groups, 0.3, shift, REPEATS)
        worse = f"the second worse by noise {noise:g}" if noise else "equal learners"
        yield Setting(name=f"{worse}, {people.name}", people=people, noise=noise)


def _draw_two(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw the confusion counts (R, S, 2, G, 4) of both learners, and how they truly differ."""
    counts, shares = [], []
    for _ in range(0, replications, CHUNK):
        people = People.drawn(population.people, CHUNK, draw)
        tested = tested_rows(people.label.shape, REPEATS, draw)
        first, second = np.split(people.features, 2, axis=-1)
        second += population.noise * draw.standard_normal(second.shape, np.float32)
        of_both = []
        for features, noise in ((first, 0.0), (second, population.noise)):
            own = replace(people, features=features)
            result, share = fits(own, tested, population.people, noise)
            counted = tested_counts(people, result, tested, population.people.groups)
            of_both.append((counted, share.mean(axis=1)))
        counts.append(np.stack([counted for counted, _ in of_both], axis=2))
        shares.append(np.stack([share for _, share in of_both], axis=1))
    of_fits = np.concatenate(shares)[:replications]  # (R, 2, G, 2) selected by label
    wrong = of_fits.mean(axis=2) @ [1 - POSITIVE, -POSITIVE] + POSITIVE
    gap = np.ptp(of_fits[..., 1], axis=-1)
    truth = dict(zip(NAMES, (wrong[:, 1] - wrong[:, 0], gap[:, 1] - gap[:, 0]), strict=True))
    return Sample(np.concatenate(counts)[:replications], truth)


def _compared(counts: Floats, draw: Random) -> Ends:
    """Return the intervals of the default comparison of two runs, for each pair of them."""
    result = []
    for own in counts:
        shares = own / own.sum(axis=(-1, -2), keepdims=True)
        tables = repeats.mean_table_draws(shares, SHARE, draws=DRAWS, generator=draw)
        counted = own.mean(axis=0) / repeats.inflation(SPLITS, SHARE)
        least = _delta(*independent_draws(counted[0], counted[1], DRAWS, draw))
        delta = repeats.no_narrower(_delta(tables[:, 0], tables[:, 1]), least)
        result.append(np.nanquantile(delta, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0))
    lower, upper = np.moveaxis(np.array(result), 0, -1)  # each of 2 objectives
    return dict(zip(NAMES, zip(lower, upper, strict=True), strict=True))


def _delta(first: Floats, second: Floats) -> Floats:
    """Return differences of accuracy and of the gap of true positive rates, more being better."""
    gap = metrics_of(BINARY)["equal_opportunity"]
    delta = np.subtract(
        *(
            np.stack([accuracy(total(each))[..., 0], -gap(each)], axis=-1)
            for each in (first, second)
        )
    )
    return np.asarray(delta[~np.isnan(delta).reshape(len(delta), -1).any(axis=1)])


# Family of two runs compared by what has one value in a split: a loss, an area, uncertainties.

MEMBERS, NEW_PEOPLE = 5, 20_000
STORED = (
    *("log_loss", "area_under_risk_coverage", "epistemic_uncertainty_ratio"),
    "consistency_mean_sd",
)


def _bags() -> Iterator[Setting]:
    """Yield two bags of logistic regressions on the same splits, each of half of the features."""
    for rows, kind, shift, noise in product((300, 1000), (REPEATS, FOLDS), (0.0, 0.5), (0.0, 1.0)):
        people = run_of(rows, 2, 0.3, shift, kind)
        worse = f"the second worse by noise {noise:g}" if noise else "equal learners"
        yield Setting(name=f"{worse}, bags, {people.name}", people=people, noise=noise)


def _values(people: People, members: Floats) -> list[float]:
    """Return the values of `STORED` of members' scores (K, N) of the people of one run."""
    label, group = people.label[0], people.group[0]
    score, epistemic = members.mean(axis=0), 2 * members.var(axis=0)
    return [
        float(log_loss_rows(label, score).mean()),
        float(area_under_risk_coverage(label != (score > 0.5), score * (1 - score))),
        epistemic[group == 1].mean() / epistemic[group == 0].mean(),
        float((members * (1 - members)).std(axis=0).mean()),
    ]


def _seen(
    people: tuple[People, People], columns: slice, noise: float, trained: Mask, draw: Random
) -> tuple[Floats, Floats]:
    """Return scores (S, N) and (S, M) of people and of new ones, of fits to some of the first.

    All see their features through noise of their own.
    """
    rows = people[0].label.size
    seen = np.concatenate([each.features[0][:, columns] for each in people])
    seen = seen + noise * draw.standard_normal(seen.shape)
    score = logistic(seen[:rows], people[0].label[0], trained, seen, draw)
    return score[:, :rows], score[:, rows:]


def _draw_bags(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw the values (R, J, 2, M) of both bags in every split, and by how much they differ."""
    values, truths, kind = [], [], population.people.kind
    for _ in range(replications):
        # Drawn anew: what one sample of them lacks would be missed in every replication.
        new = People.drawn(_more(population.people, NEW_PEOPLE), 1, draw)
        people = People.drawn(population.people, 1, draw)
        (tested,) = tested_rows(people.label.shape, kind, draw)
        trained = np.repeat(~tested, MEMBERS, axis=0)
        trained &= draw.random(trained.shape) < 0.5
        of_both, true_of_both = [], []
        for columns, noise in ((slice(2), 0.0), (slice(2, 4), population.noise)):
            own, others = (
                score.reshape(len(tested), MEMBERS, -1)
                for score in _seen((people, new), columns, noise, trained, draw)
            )
            of_rows = zip(tested, own, strict=True)
            of_both.append([_values(people.take(of), each[:, of]) for of, each in of_rows])
            true_of_both.append([_values(new, each) for each in others])
        values.append(np.swapaxes(of_both, 0, 1))
        truths.append(np.mean(true_of_both, axis=1))
    leads = {
        f"lead in {name}": np.subtract(*objective(name).metric.larger_is_better(mean).T)
        for name, mean in zip(STORED, np.moveaxis(np.array(truths), -1, 0), strict=True)
    }
    return Sample((np.array(values), _share(kind)), leads)


def _more(people: Setting, rows: int) -> Setting:
    """Return so many others who are like some people."""
    return Setting(**{**vars(people), "rows": rows})


def _share(kind: str) -> float:
    """Return the share of rows that a split tests."""
    return SHARE if kind == REPEATS else 1 / SPLITS


def _of_splits(data: tuple[Floats, float], draw: Random) -> Ends:
    """Return the intervals of a comparison by values in the splits."""
    values, share = data
    student = repeats.student_draws(SPLITS, 4 * DRAWS, draw)
    result = {}
    for i, name in enumerate(STORED):
        drawn = [lead_of_values(own[..., i], objective(name), share, student) for own in values]
        lower, upper = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
        result[f"lead in {name}"] = (lower, upper)
    return result


# The family of the fairest of many: what is printed of the candidate that was chosen.

DRAWS_CHOSEN = 1000
NAMES_CHOSEN = ("gap of the chosen candidate", "error rate of the chosen candidate")
# True gaps, in standard errors of one candidate.
SHAPES = {
    "equally unfair": (9.0, 9.0),
    "spread from 6 to 12 errors": (6.0, 12.0),
    "spread from 0 to 4 errors": (0.0, 4.0),
    "unfair by 2.5 errors": (2.5, 2.5),
}
# Gaps and errors are correlated by so much; the limit on errors lies where all of them do.
TRADE_OFF = -0.5
AMONG_ACCURATE = ", among the accurate"


def _noise(population: Setting, draws: int, draw: Random) -> Floats:
    """Draw the errors (T, k, 2) of estimation of gaps and of error rates."""
    shared = draw.standard_normal((draws, 1, 2))
    own = draw.standard_normal((draws, population.count, 2))
    noise = np.sqrt(population.correlation) * shared + np.sqrt(1 - population.correlation) * own
    gap = TRADE_OFF * noise[..., 1] + np.sqrt(1 - TRADE_OFF**2) * noise[..., 0]
    return np.stack([gap, noise[..., 1]], axis=-1)


def _populations_chosen() -> Iterator[Setting]:
    """Yield candidates whose gaps and errors are normal, with standard errors of 1.

    Any two candidates' errors of estimation have the `correlation`. `bounded` says whether
    candidates are chosen among those whose error rate is within a limit.
    """
    every = product((10, 50, 500), (0.0, 0.7, 0.9), SHAPES, (False, True))
    for count, correlation, shape, bounded in every:
        one = Setting(count=count, correlation=correlation, shape=shape, bounded=bounded)
        one.name = f"{count} of correlation {correlation:g}, {shape}{AMONG_ACCURATE * bounded}"
        one.slow = count > 100
        if not (one.slow and bounded):
            yield one


def _draw_chosen(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw candidates, choose one, and say what is true of it and printed of it."""
    gaps = np.linspace(*SHAPES[population.shape], population.count)
    truth = np.stack([gaps, np.zeros(population.count)], axis=-1)
    estimates = truth + _noise(population, replications, draw)
    noise = _noise(population, DRAWS_CHOSEN, draw)
    bound = 0.0 if population.bounded else np.inf
    judged, true = list[Any](), []
    for each in estimates:
        gap, error = ((each[:, [i]], noise[..., [i]]) for i in range(2))
        candidates = Candidates(*gap, np.ones((1, 1)), *error, np.array([bound]))
        place = choose(candidates)
        true.append(np.full(2, np.nan) if place is None else truth[place])
        judged.append(None)
        if place is not None:
            seen = np.array([candidates.objectives[place], each[place, 1]])
            widths = -special.ndtri(np.transpose(correction(candidates, level=LEVEL)))
            both = _within(seen, *widths), _within(seen, *[quantile(LEVEL)] * 2)
            judged[-1] = [{"corrected": c, "naive": n} for c, n in zip(*both, strict=True)]
    return Sample((NAMES_CHOSEN, judged), dict(zip(NAMES_CHOSEN, np.array(true).T, strict=True)))


def _within(seen: Floats, below: Floats | float, above: Floats | float) -> Floats:
    """Return both ends of the gap, which is at least 0, and of the error rate."""
    return np.stack([np.maximum(seen - below, [0, -np.inf]), seen + above], axis=1)


# The family of the fairest of many runs: whole pipelines, fitted again in every hold-out.

METRIC = named("statistical_parity", BINARY)
NAMES_CHOSEN_RUNS = ("gap of the chosen run", "error rate of the chosen run")


def _drawn_runs(population: Setting, draw: Random) -> tuple[choice.SharedRows, Floats]:
    """Draw one data set: what all runs predict, and what they select of new people, (k, 2, 2).

    The last axes of the second are groups and labels.
    """
    people = People.drawn(population.people, 1, draw)
    tested = tested_rows(people.label.shape, REPEATS, draw)
    signal = moved(people.label, people.group, population.people.shift)[..., None]
    shared = np.sqrt(population.correlation) * (people.features - signal) + signal
    result = []
    for _ in range(population.count):
        own = draw.standard_normal(shared.shape, np.float32)
        features = (shared + np.sqrt(1 - population.correlation) * own).astype(np.float32)
        result.append(fits(replace(people, features=features), tested, population.people))
    predictions = np.stack([each for each, _ in result], axis=-1)[0]
    shares = np.stack([each.mean(axis=1)[0] for _, each in result])
    return _rows(people, tested[0], predictions), shares


def _rows(people: People, tested: Mask, predictions: Mask) -> choice.SharedRows:
    """Return the rows that are tested, of predictions (S, N, k)."""
    repeat, row = np.nonzero(tested)
    of_rows = people.label[0, row], people.group[0, row], predictions[repeat, row].astype(np.int64)
    return choice.SharedRows(repeat, np.zeros_like(repeat), row, *of_rows, ("a", "b"), SHARE)


def _populations_chosen_runs() -> Iterator[Setting]:
    """Yield runs of a learner on the same hold-out repeats, each with features of its own.

    The noise in the features of any two runs has the `correlation`. `bounded` says whether runs are
    chosen among those whose error is at most what it truly is.
    """
    every = product((10, 50), (0.0, 0.99), (0.0, 0.3), (False, True))
    for count, correlation, shift, bounded in every:
        people = run_of(1000, 2, 0.3, shift, REPEATS)
        one = Setting(count=count, correlation=correlation, bounded=bounded, people=people)
        one.name = f"{count} runs, features of correlation {correlation:g}, {people.name}"
        one.name, one.slow = one.name + AMONG_ACCURATE * bounded, count > 10
        yield one


def _draw_chosen_runs(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw data sets, choose on each, and say what is true of the chosen run's fits."""
    data, shares = zip(*(_drawn_runs(population, draw) for _ in range(replications)), strict=True)
    selected = np.array(shares)  # (R, k, groups, labels)
    errors = (selected @ [1 - POSITIVE, -POSITIVE] + POSITIVE).mean(axis=-1)
    gaps = np.ptp(selected @ [1 - POSITIVE, POSITIVE], axis=-1)
    within = f"error_rate<={float(errors.mean()):.9f}"
    bounds = (choice.Bound.read(within),) if population.bounded else ()
    choices = [_chosen(rows, bounds) for rows in data]
    true = [
        (gap[chosen.chosen_index], error[chosen.chosen_index]) if chosen else (np.nan, np.nan)
        for chosen, gap, error in zip(choices, gaps, errors, strict=True)
    ]
    judged = [chosen and chosen.judged for chosen in choices]
    truth = dict(zip(NAMES_CHOSEN_RUNS, np.array(true).T, strict=True))
    return Sample((NAMES_CHOSEN_RUNS, judged), truth)


def _chosen(rows: choice.SharedRows, bounds: tuple[choice.Bound, ...]) -> choice.Choice | None:
    """Return the choice, none where no run is within the bounds."""
    try:
        return choice.choose_among(choice.Shared((), rows, None, []), METRIC, bounds)
    except UserError:
        return None


def _of_choices(data: tuple[Sequence[str], Sequence[Any]], _: Random, *, ends: str) -> Ends:
    """Return the ``corrected`` or ``naive`` intervals of what was chosen, NaN of no choice."""
    names, judged = data
    nothing = [(np.nan, np.nan)] * len(names)
    result = np.array([[each[ends] for each in of] if of else nothing for of in judged])
    return dict(zip(names, result.transpose(1, 2, 0), strict=True))


# The family of the best of many runs by what has one value in a split.

COUNT_IN_SPLITS, NEW_IN_SPLITS = 10, 4000
IN_SPLITS = {"roc_auc": "AUC of the chosen run", "log_loss": "log loss of the chosen run"}


def _populations_in_splits() -> Iterator[Setting]:
    """Yield runs that each see the features through noise of their own, alike or not."""
    for kind, noise in product((REPEATS, FOLDS), (0.0, 1.0)):
        people = run_of(300, 2, 0.3, 0.0, kind)
        spread = f"worse by up to {noise:g}" if noise else "equally good"
        name = f"{COUNT_IN_SPLITS} runs, {spread}, {people.name}"
        yield Setting(name=name, people=people, noise=noise)


def _draw_in_splits(population: Setting, replications: int, draw: Random) -> Sample:
    """Draw data sets, choose on each, and say what is true of the chosen run's fits."""
    kind, like_them = population.people.kind, _more(population.people, NEW_IN_SPLITS)
    judged, true = [], []
    for _ in range(replications):
        people, new = (People.drawn(of, 1, draw) for of in (population.people, like_them))
        (tested,) = tested_rows(people.label.shape, kind, draw)
        found, of_fits = [], []
        for i in range(COUNT_IN_SPLITS):
            noise = 1 + population.noise * i / COUNT_IN_SPLITS
            own, others = _seen((people, new), slice(None), noise, ~tested, draw)
            found.append(_of_scores(own, people.label[0], tested))
            of_fits.append(_of_everyone(others, new.label[0]))
        chosen = []
        for (name, said), losses in zip(IN_SPLITS.items(), np.swapaxes(found, 0, 1), strict=True):
            losses = losses.swapaxes(0, 1)  # (3, k, S)
            limits = _mean_limits(said.partition(" of ")[0], losses, _splits(kind))
            at, values = np.array(limits[1:])[..., None], losses[0].T[..., None]
            metrics = (named(name, BINARY),)
            stored = choice.Stored([], metrics, (), values, at, _share(kind), [])
            chosen.append(choice.choice_of(stored, stored, LEVEL))
        judged.append([of.judged[0] for of in chosen])
        true.append([of_fits[of.chosen_index][m] for m, of in enumerate(chosen)])
    names = list(IN_SPLITS.values())
    return Sample((names, judged), dict(zip(names, np.array(true).T, strict=True)))


def _of_everyone(scores: Floats, label: Labels) -> Floats:
    """Return AUC and log loss of scores (S, N) of new people, means over the splits."""
    splits = len(scores)
    target = np.tile(label, splits).astype(float)
    area = Areas.of(target, scores.ravel(), np.repeat(np.arange(splits), len(label)), splits).area
    return np.array([area.mean(), _log_loss(label, scores).mean()])


_OF_CHOICES = {
    "ours": partial(_of_choices, ends="corrected"),
    "as if not chosen": partial(_of_choices, ends="naive"),
}
_OF_RUNS = {"ours": _ours, "plain t": _plain}
FAMILIES = (
    Family("chosen", _populations_chosen, _draw_chosen, _OF_CHOICES, 200),
    Family("chosen_runs", _populations_chosen_runs, _draw_chosen_runs, _OF_CHOICES, 200),
    Family("chosen_in_splits", _populations_in_splits, _draw_in_splits, _OF_CHOICES, 200),
    Family("runs", _populations, _draw, _OF_RUNS),
    Family(
        "learners", _populations_many, _draw_many, {"ours": _ours, "corrected t": _corrected}, 600
    ),
    Family("comparisons", _learners, _draw_two, {"ours": _compared}, 300),
    Family("stored_comparisons", _bags, _draw_bags, {"ours": _of_splits}, 300),
)
