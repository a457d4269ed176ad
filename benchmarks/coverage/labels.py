"""The family of few labels: rates of groups of which some rows have a label, all a score.

Scores are right in some populations and wrong in others, alike in all groups or in one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product, starmap
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.simulate import LEVEL, Ends, Family, Interval, Random, Sample, Setting
from fairbench.core.arrays import Floats, Mask
from fairbench.evaluation.groups import LabelledIntervals
from fairbench.inference.gaps import GroupLimits, largest_gap
from fairbench.inference.posterior import centred
from fairbench.inference.rates import Limits, difference_limits, mean_limits, rate_limits
from fairbench.inference.survey import LabelledRows
from fairbench.metrics import registry
from fairbench_label.active import BetaArms, Lowest, choose
from fairbench_label.estimates import LastingIntervals, found_limits, sequence_limits, together
from fairbench_label.questions import LEAST_SHARE

Codes = NDArray[np.int64]
ROWS, GRID, BLOCK = 4000, 2001, 50
RATES: tuple[registry.Rate, ...] = (
    *(registry.accuracy, registry.true_positive_rate, registry.false_positive_rate),
    registry.positive_predictive_value,
)
OF_MEAN: tuple[registry.Rate, ...] = (registry.true_positive_rate, registry.true_negative_rate)
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


def audited(
    shares: tuple[float, ...], map: str, labels: int, active: bool, scores: str = TWO_HUMPS
) -> Setting:
    """Return a pool of scores and decisions by group, and how many labels are bought, where.

    Parameters
    ----------
    shares : of the rows, by group.
    map : from scores to probabilities, of `MAPS`, `STEPS` or `WRONG`.
    active : half of the labels go to groups at random, the others to the group whose labelled
        rows were decided wrongly most often.
    scores : of `SCORES`.
    """
    known = {"shares": shares, "map": map, "labels": labels, "active": active, "scores": scores}
    name = f"{'' if scores == TWO_HUMPS else f'{scores}, '}{map}"
    if len(shares) > 1:
        two = " : ".join(f"{100 * share:g} %" for share in shares)
        name += f", {two if len(shares) == 2 else f'{len(shares)} groups'}"
    return Setting(name=f"{name}, {labels} labels{', active' * active}", **known)


@dataclass(frozen=True)
class Pools:
    """R pools of N rows in G groups, (R, N) each; `known` says which rows' labels are bought."""

    score: Floats
    decision: Codes
    group: Codes
    label: Codes
    known: Mask
    groups: int

    def blocks(self) -> Iterator[Pools]:
        """Yield some replications at a time, small enough for the memory."""
        names = ("score", "decision", "group", "label", "known")
        for start in range(0, len(self.score), BLOCK):
            some = {name: getattr(self, name)[start : start + BLOCK] for name in names}
            yield replace(self, **some)

    @property
    def code(self) -> Codes:
        """The group of each row, (R N,), other ones in each replication."""
        return (self.group + self.groups * np.arange(len(self.score))[:, None]).ravel()

    def labelled(self, code: Codes, groups: int, weight: Floats | None = None) -> LabelledRows:
        """Return all rows together, in these groups."""
        rows, columns = np.flatnonzero(self.known), (self.score.ravel(), self.decision.ravel())
        return LabelledRows(*columns, code, groups, rows, self.label.ravel()[rows], weight)

    @property
    def counts(self) -> Codes:
        """The labelled rows in the cells of the confusion table, (R, G, 4)."""
        shape = len(self.score), self.groups, 4
        place = 4 * self.code + (2 * self.label + self.decision).ravel()
        return np.bincount(place[self.known.ravel()], minlength=np.prod(shape)).reshape(shape)


def _populations() -> Sequence[Setting]:
    two, rare, ten = (0.6, 0.4), (0.95, 0.05), (0.1,) * 10
    shaped: list[tuple[tuple[float, ...], str]] = [(two, name) for name in OF_TWO]
    shaped += [(rare, "calibrated"), (rare, "one group inverted"), (ten, "one group shifted")]
    shaped += [(ten, AMONG_TEN)]
    every = product(shaped, LABELS, (False, True))
    result = [audited(*each, n, active) for each, n, active in every]
    return result + [
        audited(shares, name, n, False, scores)
        for scores, name, (shares, n) in product(
            [kind for kind in SCORES if kind != TWO_HUMPS],
            ("calibrated", "slopes of 0.5", WRONG),
            # Of everyone, of two groups, and of four.
            product([(1.0,), two, (0.25,) * 4], (30, 100, 300, 1000)),
        )
    ]


def equally_likely_scores(kind: str = TWO_HUMPS) -> Floats:
    """Return equally likely scores, of one of the kinds of `SCORES`."""
    grid = (np.arange(GRID) + 0.5) / GRID
    return np.concatenate([special.betaincinv(*shape, grid) for shape in SCORES[kind]])


def _probability(population: Setting, score: Floats, last: Floats, moved: Floats) -> Floats:
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


def drawn(population: Setting, replications: int, draw: Random) -> Sample:
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
    pools = Pools(score, decision, group, label, known, groups)
    return Sample(pools, _truths(population, grid, moved))


def _chosen(population: Setting, group: Codes, wrong: Mask, draw: Random) -> Codes:
    """Return which rows get a label."""
    order = draw.permutation(ROWS)
    if not population.active:
        return order[: population.labels]
    groups = len(population.shares)
    first = [order[group[order] == g] for g in range(groups)]
    each = max(1, population.labels // 2 // groups)
    worst = int(np.argmax([wrong[rows[:each]].mean() for rows in first]))
    more = population.labels - each * groups
    return np.concatenate([rows[: each + more * (g == worst)] for g, rows in enumerate(first)])


def _truths(population: Setting, grid: Floats, moved: Floats) -> Mapping[str, Floats]:
    of_map = [
        _cells(grid, _probability(population, grid[None], np.full((1, len(grid)), last), moved))
        for last in (False, True)
    ]
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
        BALANCED: registry.metrics_of(registry.BINARY)["balanced_accuracy"](cells),
        EVERYONE: registry.accuracy(everyone),
    }


def _cells(score: Floats, chance: Floats) -> Floats:
    """Return the probabilities (..., 4) of TN, FP, FN and TP, of scores (..., N) alike."""
    decided = (score <= 0.5, score > 0.5)
    parts = [(each * mine).mean(axis=-1) for each in (1 - chance, chance) for mine in decided]
    return np.stack(parts, axis=-1)


EVERYONE = "accuracy of everyone"
BALANCED = "balanced accuracy of every group"


def _of_groups(rate: registry.Rate) -> str:
    return f"{rate.name} of every group"


def _difference(rate: registry.Rate) -> str:
    return f"{rate.name} of the last group minus the first's"


def _gap(rate: registry.Rate) -> str:
    return f"largest gap in {rate.name}"


def _intervals(successes: Floats, sizes: Floats) -> Ends:
    """Return the intervals of counts (K, R, G) of every rate."""
    result: dict[str, Interval] = {}
    for rate, x, n in zip(RATES, successes, sizes, strict=True):
        limits = rate_limits(x, n, level=LEVEL)
        result[_of_groups(rate)] = limits
        if x.shape[-1] == 1:
            continue
        # Of no rows, all is possible.
        whole = Limits(np.where(n > 0, limits.value, 0.5), limits.lower, limits.upper)
        result[_difference(rate)] = difference_limits(whole.take(-1), whole.take(0))
        result[_gap(rate)] = largest_gap(GroupLimits.of(x, n, level=LEVEL))
    return result


def _balanced(successes: Floats, sizes: Floats) -> Ends:
    """Return the interval of balanced accuracy from counts (2, R, G) of its rates."""
    parts = rate_limits(successes, sizes, level=LEVEL)
    return {BALANCED: mean_limits(*(Limits(*(end[i] for end in parts)) for i in (0, 1)))}


def _in_blocks(
    pools: Pools, worth: Callable[[LabelledRows], tuple[Floats, Floats]]
) -> tuple[Floats, Floats]:
    """Return what labels and scores are worth, successes and sizes (K, R, G) of every rate."""
    parts = []
    for block in pools.blocks():
        shape = len(block.score), pools.groups
        result = worth(block.labelled(block.code, shape[0] * shape[1]))
        parts.append([each.reshape(len(each), *shape) for each in result])
    successes, sizes = (np.concatenate(each, axis=1) for each in zip(*parts, strict=True))
    return successes, sizes


def _everyone(pools: Pools) -> Interval:
    """Return the interval of everyone's accuracy, where labels stand for unequally many rows."""
    parts = []
    for block in pools.blocks():
        count, code = len(block.score), block.code
        of = code[block.known.ravel()]
        rows, labels = (np.bincount(each, minlength=count * pools.groups) for each in (code, of))
        weight = (rows / np.maximum(labels, 1))[of]
        labelled = block.labelled(np.repeat(np.arange(count), ROWS), count, weight)
        parts.append(labelled.effective_counts([registry.accuracy]))
    successes, sizes = (np.concatenate([part[i][0] for part in parts]) for i in (0, 1))
    return rate_limits(successes, sizes, level=LEVEL)


def _assisted(pools: Pools, _: Random) -> Ends:
    of_mean = _in_blocks(pools, lambda labelled: labelled.effective_counts_of_mean(OF_MEAN))
    of_rates = _in_blocks(pools, lambda labelled: labelled.effective_counts(RATES))
    return {**_intervals(*of_rates), **_balanced(*of_mean), EVERYONE: _everyone(pools)}


def counts_alone(pools: Pools, of: Sequence[registry.Rate] = RATES) -> tuple[Floats, Floats]:
    """Return the counts of labelled rows by themselves, (K, R, G)."""
    return registry.shares_of(of, pools.counts)


def _alone(pools: Pools, _: Random) -> Ends:
    return {**_intervals(*counts_alone(pools)), **_balanced(*counts_alone(pools, OF_MEAN))}


# The family of active labelling: groups are chosen by what labels said, and one looks on.

FIRST_LOOK, EVERY = 30, 10
# What the log odds of a score are multiplied by, and moved by, to be those of the label; by group.
TEN = (1.0,) * 9
MAPS_ACTIVE: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "ten groups, all alike": ((*TEN, 1.0), (0.0,) * 10),
    "ten groups, one overconfident": ((*TEN, 0.15), (0.0,) * 10),
    "ten groups, one shifted": ((*TEN, 1.0), (*(0.0,) * 9, -1.5)),
    "ten groups, more and more overconfident": (tuple(np.linspace(1, 0.3, 10)), (0.0,) * 10),
    "two groups, alike": ((1.0, 1.0), (0.0, 0.0)),
    "two groups, one inverted": ((1.0, -1.0), (0.0, 0.0)),
}
RANDOM, TOP_TWO, THOMPSON = "random", "top_two", "thompson"


# What the labels of R pools are worth, successes and sizes by group (R, G), with the help of
# scores; and the group that looks worst, (R, 1).
Counted: TypeAlias = tuple[Sequence[Floats], Codes]


def _labelling(map: str, labels: int, strategy: str, pleased: bool) -> Setting:
    """Return a pool of groups of equal size, and how its rows are labelled.

    Parameters
    ----------
    map : from scores to probabilities, of `MAPS_ACTIVE`.
    pleased : labelling stops at the first look at which the interval of the group that looks worst,
        of the labelled rows by themselves, lies under the share of all labels that were right; one
        looks at 30 labels, and then at every tenth. It stops at `labels` at the latest.
    """
    stop = "stopped when it pleases, at most" if pleased else "stopped at"
    name = f"{map}, {strategy}, {stop} {labels} labels"
    return Setting(name=name, map=map, labels=labels, strategy=strategy, pleased=pleased)


def _draw(population: Setting, replications: int, draw: Random) -> Sample:
    slopes, shifts = (np.array(each) for each in MAPS_ACTIVE[population.map])
    grid, shape = equally_likely_scores(), (replications, ROWS)
    score, group = draw.choice(grid, shape), draw.choice(len(slopes), shape)
    chance = special.expit(slopes[group] * special.logit(score) + shifts[group])
    label = (draw.random(shape) < chance).astype(np.int64)
    decision, known = (score > 0.5).astype(np.int64), np.zeros(shape, bool)
    pools = Pools(score, decision, group, label, known, len(slopes))
    pools = _labelled_active(population, pools, draw)
    rates = [registry.accuracy]
    helped = [of[0] for of in _in_blocks(pools, lambda rows: rows.effective_counts(rates))]
    with np.errstate(invalid="ignore"):
        value = helped[0] / helped[1]
    worst = np.where(np.isnan(value), np.inf, value).argmin(axis=1)[:, None]
    chance = special.expit(slopes * special.logit(grid)[:, None] + shifts)
    truth = np.where(grid[:, None] > 0.5, chance, 1 - chance).mean(axis=0)
    every = np.broadcast_to(truth, value.shape)
    return Sample((helped, worst), {OF_ALL: every, OF_FOUND: np.take_along_axis(every, worst, 1)})


def _labelled_active(population: Setting, pools: Pools, draw: Random) -> Pools:
    """Return the pools with the labels that are bought: those of a group come in random order."""
    count, groups = len(pools.score), pools.groups
    order = np.argsort(pools.group + draw.random(pools.group.shape), axis=1)
    right = np.take_along_axis(pools.label == pools.decision, order, axis=1)

    sizes = np.bincount(pools.code, minlength=count * groups).reshape(count, groups)
    first = np.cumsum(sizes, axis=1) - sizes
    sure = np.maximum(pools.score, 1 - pools.score).ravel()
    sure = np.bincount(pools.code, sure, count * groups).reshape(count, groups) / sizes
    arms = BetaArms.of(centred(sure), sizes, replications=count)
    given, each = np.zeros((count, groups), np.int64), np.arange(count)
    won, going = np.zeros_like(given), np.ones(count, bool)
    for turn in range(1, population.labels + 1):
        arm = choose(population.strategy, arms, Lowest(), draw)[:, 0]
        if population.strategy != RANDOM:
            behind = given.min(axis=1) < LEAST_SHARE * given.mean(axis=1)
            arm = np.where(behind, given.argmin(axis=1), arm)
        which, mine = each[going], arm[going]
        result = right[which, first[which, mine] + given[which, mine]]
        arms.record(which, mine, result.astype(np.int64))
        given[which, mine] += 1
        won[which, mine] += result
        if population.pleased and turn >= FIRST_LOOK and turn % EVERY == 0:
            going &= ~_pleases(won, given)
    sorted_group = np.take_along_axis(pools.group, order, axis=1)
    place = np.arange(order.shape[1]) - np.take_along_axis(first, sorted_group, axis=1)
    known = np.zeros(order.shape, bool)
    np.put_along_axis(known, order, place < np.take_along_axis(given, sorted_group, axis=1), 1)
    return replace(pools, known=known)


def _pleases(won: Codes, given: Codes) -> Mask:
    """Say where the group that looks worst is surely so, to somebody who has looked just once."""
    limits = rate_limits(won, given, level=LEVEL)
    worst = np.where(given > 0, limits.value, np.inf).argmin(axis=1)[:, None]
    share = won.sum(axis=1) / given.sum(axis=1)
    return np.asarray(np.take_along_axis(limits.upper, worst, 1)[:, 0] < share)


OF_ALL, OF_FOUND = "accuracy of every group", "accuracy of the group that looks worst"


def _searched(data: Counted, _: Random, *, limits: Callable[..., Limits]) -> Ends:
    """Return intervals that are corrected for the search for the worst group."""
    helped, worst = data
    levels = LEVEL, together(LEVEL, helped[0].shape[1])
    return _ends(worst, *(limits(*helped, level=level) for level in levels))


def _ends(worst: Codes, single: Limits, all_together: Limits) -> Ends:
    result = found_limits(single, all_together, lowest=True)
    lower, upper = (np.take_along_axis(each, worst, 1) for each in result[1:])
    return {OF_ALL: single, OF_FOUND: (lower, upper)}


_FIXED, _ANY = (partial(_searched, limits=limits) for limits in (rate_limits, sequence_limits))


# The family of intervals that are looked at all along a run of labels.
#
# An interval that holds whenever one stops has to hold at all numbers of labels together. So what
# is simulated is what all looks have in common, from the first label to the last: it misses where
# any look did.

Draw = Callable[[Random, tuple[int, ...]], Floats]
ROWS_ALONG, LABELS_ALONG, MANY = 600, 300, 2_000_000
LOOKS = np.unique([*range(1, 31), *np.geomspace(30, LABELS_ALONG, 25).astype(int)])
METRICS = ("accuracy", "base_rate", "positive_predictive_value", "balanced_accuracy")
DIFFERENCES = (registry.accuracy, registry.true_positive_rate)
APART = "difference in "


def _few_extreme(spread: float, *, sides: int) -> Draw:
    """Draw scores of a half, of which one in twenty is 0.99, or 0.01 or 0.99."""

    def drawn(draw: Random, shape: tuple[int, ...]) -> Floats:
        extreme = np.where(draw.integers(0, sides, shape) == 0, 0.99, 0.01)
        usual = np.clip(0.5 + spread * draw.standard_normal(shape), 0.01, 0.99)
        return np.where(draw.random(shape) < 1 / 20, extreme, usual)

    return drawn


def _sure(draw: Random, shape: tuple[int, ...]) -> Floats:
    return np.where(draw.random(shape) < 0.5, draw.beta(5, 1, shape), draw.beta(1, 5, shape))


SCORES_ALONG: Mapping[str, Draw] = {
    "one score in twenty extreme": _few_extreme(0.001, sides=2),
    "one in twenty extreme, one side": _few_extreme(0.001, sides=1),
    "one in twenty extreme, others vary": _few_extreme(0.01, sides=2),
    "Beta(3, 3)": lambda draw, shape: draw.beta(3, 3, shape),
    "uniform": lambda draw, shape: draw.beta(1, 1, shape),
    "Beta(1, 5) and Beta(5, 1)": _sure,
}


def pool_of(scores: str, second: str) -> Setting:
    """Return a pool whose scores are one of `SCORES_ALONG`, and its second group's labels."""
    return Setting(name=f"{scores}, second group {second}", scores=scores, second=second)


def _draw_along(run: Setting, replications: int, draw: Random) -> Sample:
    """Draw pools in random order: R of the first group, then R of the second."""
    scores, labels, cells = [], [], []
    for second in (False, True):
        score, many = (
            SCORES_ALONG[run.scores](draw, s) for s in ((replications, ROWS_ALONG), (MANY,))
        )
        chance, of_many = score, many
        if second and run.second == "inverted":
            chance, of_many = 1 - score, 1 - many
        scores.append(score)
        labels.append((draw.random(score.shape) < chance).astype(np.int64))
        cells.append(_cells(many, of_many))
    metrics = registry.metrics_of(registry.BINARY, "rate")
    truth = {name: metrics[name](cells[0]) for name in METRICS}
    truth |= {APART + rate.name: rate(cells[0]) - rate(cells[1]) for rate in DIFFERENCES}
    score, label = np.concatenate(scores), np.concatenate(labels)
    together = np.zeros_like(label)
    pools = Pools(score, (score > 0.5).astype(np.int64), together, label, together > 0, 1)
    return Sample(pools, {name: np.full(replications, each) for name, each in truth.items()})


def along(pools: Pools, _: Random, *, anytime_valid: bool) -> Ends:
    """Return what the intervals of all looks have in common, of each run (R,)."""
    common: dict[str, tuple[Floats, Floats]] = {}
    for labels in LOOKS:
        known = np.broadcast_to(np.arange(ROWS_ALONG) < labels, pools.score.shape)
        looked = replace(pools, known=known)
        rows, draw = looked.labelled(looked.code, len(known)), np.random.default_rng(0)
        intervals = LabelledIntervals.of(rows, looked.counts[:, 0], LEVEL, draw)
        if anytime_valid:
            intervals = LastingIntervals.lasting(intervals)
        for name, (lower, upper) in _at_once(intervals, len(known) // 2).items():
            everything = np.full_like(lower, -np.inf), np.full_like(upper, np.inf)
            low, high = common.get(name, everything)
            common[name] = np.fmax(low, lower), np.fmin(high, upper)
    return common


def _at_once(intervals: LabelledIntervals, runs: int) -> Mapping[str, tuple[Floats, Floats]]:
    """Return the intervals of one look; of differences, as a report joins those of two groups."""
    metrics = registry.metrics_of(registry.BINARY, "rate")
    ends = intervals.rates([metrics[name] for name in METRICS])
    result = {name: (ends[0][m, :runs], ends[1][m, :runs]) for m, name in enumerate(METRICS)}
    for rate in DIFFERENCES:
        rates = Limits(*(limit[0] for limit in intervals.limits([rate])))
        shared = np.asarray(intervals.correlation(rate))
        together = np.diagonal(shared, runs) if shared.ndim else shared
        apart = difference_limits(rates.take(slice(runs)), rates.take(slice(runs, None)), together)
        result[APART + rate.name] = apart.lower, apart.upper
    return result


_STRATEGIES = (RANDOM, TOP_TWO, THOMPSON)
_ALONG: dict[str, Any] = {
    "ours": partial(along, anytime_valid=True),
    "fixed number": (partial(along, anytime_valid=False), 10_000, 3),
}
FAMILIES = (
    Family("few_labels", _populations, drawn, {"ours": _assisted, "labelled rows": _alone}),
    Family(
        "active_labels",
        lambda: starmap(_labelling, product(MAPS_ACTIVE, (50, 100, 300), _STRATEGIES, (False,))),
        _draw,
        {"ours": _FIXED, "any stopping time": _ANY},
    ),
    Family(
        "stopped_labels",
        lambda: [_labelling(name, 300, TOP_TWO, True) for name in MAPS_ACTIVE],
        _draw,
        {"ours": _ANY, "fixed number": _FIXED},
    ),
    Family(
        "along_the_run",
        # Pools of scores, labelled at random, whose second group is alike or inverted.
        lambda: starmap(pool_of, product(SCORES_ALONG, ("alike", "inverted"))),
        _draw_along,
        _ALONG,
    ),
)
