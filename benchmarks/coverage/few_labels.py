"""The family of few labels: rates of groups of which some rows have a label, all a score.

Scores are right in some populations and wrong in others, alike in all groups or in one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.inference.few_labels.assisted import LabelledRows
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.rates import Limits, difference_limits, mean_limits, rate_limits
from fairbench.metrics import rates
from fairbench.metrics.rates import Rate

Codes = NDArray[np.int64]
ROWS, GRID, BLOCK = 4000, 2001, 50
RATES: tuple[Rate, ...] = (
    rates.accuracy,
    rates.true_positive_rate,
    rates.false_positive_rate,
    rates.positive_predictive_value,
)
OF_MEAN: tuple[Rate, ...] = (rates.true_positive_rate, rates.true_negative_rate)
LABELS = (10, 20, 50, 100, 300, 1000, 2000)
# The Beta distributions that scores are of, half of them each.
TWO_HUMPS, HIDDEN = "two humps", "scores alike"
SCORES: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] = {
    TWO_HUMPS: ((1, 5), (5, 1)),
    "scores of beta(3, 3)": ((3, 3), (3, 3)),
    "uniform scores": ((1, 1), (1, 1)),
    "scores of beta(1, 1.5)": ((1, 1.5), (1, 1.5)),
    "scores of beta(6, 2)": ((6, 2), (6, 2)),
    # Decisions were made by scores that are not shown: those that are shown are all alike.
    HIDDEN: ((1, 1.5), (1, 1.5)),
}
SHOWN = 0.4
# What the log odds of a score are multiplied by, and moved by, to be those of the label; by group.
# The last group of several has the second map. Steps are three levels instead.
MAPS: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "calibrated": ((1, 0), (1, 0)),
    "slopes of 0.5": ((0.5, 0), (0.5, 0)),
    "slopes of 2": ((2, 0), (2, 0)),
    "slopes that differ": ((2, 0), (0.5, 0)),
    "one group shifted": ((1, 0), (1, -1.5)),
    "one group inverted": ((1, 0), (-1, 0)),
    "one group overconfident": ((1, 0), (0.15, 0)),
}
STEPS, AMONG_TEN = "steps", "one group overconfident"
# A tenth of the labels is the opposite of what calibrated scores would have.
WRONG, WRONG_SHARE = "a tenth of labels wrong", 0.1
OF_TWO = tuple(name for name in (*MAPS, STEPS) if name != AMONG_TEN)


@dataclass(frozen=True)
class Audited:
    """A pool of scores and decisions by group, and how many labels are bought, where.

    Attributes
    ----------
    shares : of the rows, by group.
    map : from scores to probabilities, of `MAPS`, `STEPS` or `WRONG`.
    active : half of the labels go to groups at random, the others to the group whose labelled
        rows were decided wrongly most often.
    scores : of `SCORES`.
    """

    shares: tuple[float, ...]
    map: str
    labels: int
    active: bool
    scores: str = TWO_HUMPS

    @property
    def name(self) -> str:
        """What tables call it."""
        kind = "" if self.scores == TWO_HUMPS else f"{self.scores}, "
        if len(self.shares) == 1:
            return f"{kind}{self.map}, {self.labels} labels"
        sizes = " : ".join(f"{100 * share:g} %" for share in self.shares[:2])
        groups = sizes if len(self.shares) == 2 else f"{len(self.shares)} groups"
        return f"{kind}{self.map}, {groups}, {self.labels} labels{', active' * self.active}"


@dataclass(frozen=True)
class Pools:
    """R pools of N rows in G groups, (R, N) each; `known` says which rows have a label."""

    score: Floats
    decision: Codes
    group: Codes
    label: Codes
    known: NDArray[np.bool_]
    groups: int


def _populations(short: bool) -> Sequence[Audited]:
    labels = (20, 300) if short else LABELS
    two, rare, ten = (0.6, 0.4), (0.95, 0.05), (0.1,) * 10
    shaped: list[tuple[tuple[float, ...], str]] = [(two, name) for name in OF_TWO]
    shaped += [(rare, "calibrated"), (rare, "one group inverted"), (ten, "one group shifted")]
    shaped += [(ten, AMONG_TEN)]
    some = shaped[::3] if short else shaped
    result = [Audited(*each, n, active) for each, n, active in product(some, labels, (False, True))]
    return result + [
        Audited(shares, name, n, False, scores)
        for scores, name, (shares, n) in product(
            [kind for kind in SCORES if kind != TWO_HUMPS],
            ("calibrated", WRONG) if short else ("calibrated", "slopes of 0.5", WRONG),
            # Of everyone, of two groups, and of four.
            [((1.0,), 100)] if short else product([(1.0,), two, (0.25,) * 4], (30, 100, 300, 1000)),
        )
    ]


def equally_likely_scores(kind: str = TWO_HUMPS) -> Floats:
    """Return equally likely scores, of one of the kinds of `SCORES`."""
    grid = (np.arange(GRID) + 0.5) / GRID
    return np.concatenate([special.betaincinv(*shape, grid) for shape in SCORES[kind]])


def _probability(population: Audited, score: Floats, last: Floats, moved: Floats) -> Floats:
    """Return the probability of label 1; `last` says of which rows the group is the last."""
    log_odds = special.logit(score)
    if population.map == STEPS:
        levels = np.select([score < 0.3, score < 0.7], [-2.2, 0.0], 2.2)
        return np.asarray(special.expit(levels + moved))
    if population.map == WRONG:
        right = special.expit(log_odds + moved)
        return np.asarray(WRONG_SHARE + (1 - 2 * WRONG_SHARE) * right)
    (slope, shift), (other_slope, other_shift) = MAPS[population.map]
    slopes, shifts = np.where(last, other_slope, slope), np.where(last, other_shift, shift)
    return np.asarray(special.expit(slopes * log_odds + shifts + moved))


def drawn(population: Audited, replications: int, draw: np.random.Generator) -> Sample:
    """Draw pools of a population, and say what is true of it."""
    groups, shape = len(population.shares), (replications, ROWS)
    moved = draw.uniform(-0.1, 0.1, (replications, 1))
    grid = equally_likely_scores(population.scores)
    score = draw.choice(grid, shape)
    group = draw.choice(groups, shape, p=population.shares)
    decision = (score > 0.5).astype(np.int64)
    chance = _probability(population, score, group == groups - 1, moved)
    label = (draw.random(shape) < chance).astype(np.int64)
    known = np.zeros(shape, bool)
    for r in range(replications):
        known[r, _chosen(population, group[r], label[r] != decision[r], draw)] = True
    if population.scores == HIDDEN:
        score = np.full(shape, SHOWN)
    return Sample(
        Pools(score, decision, group, label, known, groups), _truths(population, grid, moved)
    )


def _chosen(
    population: Audited, group: Codes, wrong: NDArray[np.bool_], draw: np.random.Generator
) -> Codes:
    """Return which rows get a label."""
    order = draw.permutation(ROWS)
    if not population.active:
        return order[: population.labels]
    groups = len(population.shares)
    first = [order[group[order] == g] for g in range(groups)]
    each = max(1, population.labels // 2 // groups)
    shares = [wrong[rows[:each]].mean() for rows in first]
    worst = int(np.argmax(shares))
    more = population.labels - each * groups
    return np.concatenate(
        [rows[: each + (more if g == worst else 0)] for g, rows in enumerate(first)]
    )


def _truths(population: Audited, grid: Floats, moved: Floats) -> Mapping[str, Floats]:
    of_map = [_cells(population, grid, last, moved) for last in (False, True)]
    cells = np.stack([*[of_map[0]] * (len(population.shares) - 1), of_map[1]], axis=-2)
    several = len(population.shares) > 1
    result: dict[str, Floats] = {}
    for rate in RATES:
        value = rate(cells)
        result[_of_groups(rate)] = value
        if several:
            result[_difference(rate)] = value[:, -1] - value[:, 0]
            result[_gap(rate)] = np.ptp(value, axis=-1)
    everyone = np.einsum("rgc,g->rc", cells, np.array(population.shares))
    return result | {
        BALANCED: rates.balanced_accuracy(cells),
        EVERYONE: rates.accuracy(everyone),
    }


def _cells(population: Audited, grid: Floats, last: bool, moved: Floats) -> Floats:
    """Return the probabilities (R, 4) of TN, FP, FN, TP in a group."""
    chance = _probability(population, grid[None], np.full((1, len(grid)), last), moved)
    decided = (grid <= 0.5, grid > 0.5)
    parts = [(each * mine).mean(axis=1) for each in (1 - chance, chance) for mine in decided]
    return np.stack(parts, axis=-1)


EVERYONE = "accuracy of everyone"
BALANCED = "balanced accuracy of every group"


def _of_groups(rate: Rate) -> str:
    return f"{rate.name} of every group"


def _difference(rate: Rate) -> str:
    return f"{rate.name} of the last group minus the first's"


def _gap(rate: Rate) -> str:
    return f"largest gap in {rate.name}"


def _intervals(successes: Floats, sizes: Floats) -> Mapping[str, Interval]:
    """Return the intervals of counts (K, R, G) of every rate."""
    result: dict[str, Interval] = {}
    for rate, x, n in zip(RATES, successes, sizes, strict=True):
        limits = rate_limits(x, n, level=LEVEL)
        result[_of_groups(rate)] = limits.lower, limits.upper
        if x.shape[-1] == 1:
            continue
        value = np.where(n > 0, limits.value, 0.5)  # of no rows, all is possible
        whole = Limits(value, limits.lower, limits.upper)
        difference = difference_limits(whole.take(-1), whole.take(0))
        result[_difference(rate)] = difference.lower, difference.upper
        gap = largest_gap(GroupLimits.of(x, n, level=LEVEL))
        result[_gap(rate)] = gap.lower, gap.upper
    return result


def _balanced(successes: Floats, sizes: Floats) -> Mapping[str, Interval]:
    """Return the interval of balanced accuracy from counts (2, R, G) of its rates."""
    parts = rate_limits(successes, sizes, level=LEVEL)
    mean = mean_limits(*(Limits(*(end[i] for end in parts)) for i in (0, 1)))
    return {BALANCED: (mean.lower, mean.upper)}


def _blocks(pools: Pools) -> Iterator[tuple[slice, Codes]]:
    """Yield ranges of replications, small enough for the memory, with each row's (R, N) place."""
    for start in range(0, len(pools.score), BLOCK):
        block = slice(start, start + BLOCK)
        count = len(pools.score[block])
        yield block, pools.group[block] + pools.groups * np.arange(count)[:, None]


def counts_assisted(pools: Pools) -> tuple[Floats, Floats]:
    """Return what labels and scores are worth, successes and sizes (K, R, G) of every rate."""
    return _in_blocks(pools, lambda labelled: labelled.effective_counts(RATES))


def _in_blocks(
    pools: Pools, worth: Callable[[LabelledRows], tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    parts = []
    for block, code in _blocks(pools):
        result = worth(_labelled(pools, block, code, len(code) * pools.groups))
        parts.append([each.reshape(len(each), len(code), pools.groups) for each in result])
    successes, sizes = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    return successes, sizes


def _labelled(
    pools: Pools, block: slice, code: Codes, groups: int, weight: Floats | None = None
) -> LabelledRows:
    rows = np.flatnonzero(pools.known[block].ravel())
    score, decision = pools.score[block].ravel(), pools.decision[block].ravel()
    label = pools.label[block].ravel()[rows]
    return LabelledRows(score, decision, code.ravel(), groups, rows, label, weight)


def _everyone(pools: Pools) -> Interval:
    """Return the interval of everyone's accuracy, where labels stand for unequally many rows."""
    parts = []
    for block, code in _blocks(pools):
        groups = len(code) * pools.groups
        of = code.ravel()[np.flatnonzero(pools.known[block].ravel())]
        rows, labels = (np.bincount(each, minlength=groups) for each in (code.ravel(), of))
        weight = (rows / np.maximum(labels, 1))[of]
        whole = np.repeat(np.arange(len(code)), ROWS)
        labelled = _labelled(pools, block, whole, len(code), weight)
        parts.append(labelled.effective_counts([rates.accuracy]))
    successes, sizes = (np.concatenate([part[i][0] for part in parts]) for i in (0, 1))
    limits = rate_limits(successes, sizes, level=LEVEL)
    return limits.lower, limits.upper


def _assisted(pools: Pools, _: np.random.Generator) -> Mapping[str, Interval]:
    of_mean = _in_blocks(pools, lambda labelled: labelled.effective_counts_of_mean(OF_MEAN))
    result = _intervals(*counts_assisted(pools))
    return {**result, **_balanced(*of_mean), EVERYONE: _everyone(pools)}


def counts_alone(pools: Pools, of: Sequence[Rate] = RATES) -> tuple[Floats, Floats]:
    """Return the counts of labelled rows by themselves, (K, R, G)."""
    count, groups = len(pools.score), pools.groups
    cell = 2 * pools.label + pools.decision
    place = (np.arange(count)[:, None] * groups + pools.group) * 4 + cell
    counted = np.bincount(place[pools.known], minlength=count * groups * 4)
    return rates.shares_of(of, counted.reshape(count, groups, 4))


def _alone(pools: Pools, _: np.random.Generator) -> Mapping[str, Interval]:
    return {**_intervals(*counts_alone(pools)), **_balanced(*counts_alone(pools, OF_MEAN))}


FAMILIES = (
    Family(
        "few_labels",
        "Few labels",
        f"A pool of {ROWS} rows has scores and decisions, and some of the rows have a label. The "
        "scores are calibrated in all groups, or wrong in all groups, or wrong in one group "
        "(*slopes*, *shifted* and *inverted* as under [Scores](#scores)). They have various "
        "distributions, or are the same for all rows. In some settings a tenth of the labels is "
        "wrong. *60 % : 40 %* are the shares of two groups. *active* means that half of the "
        "labels are shared equally between the groups and the others go to the group whose "
        "decisions were wrong most often. Our intervals rest on the labels; scores that predict "
        "labels make them narrower, and scores that do not are hardly used. *labelled rows* are "
        "intervals from the labelled rows alone.",
        _populations,
        drawn,
        (Construction("ours", _assisted), Construction("labelled rows", _alone)),
        replications=1000,
    ),
)
