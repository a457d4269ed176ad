"""Rankings of the methods of a table of scores: ranks, candidates for the best, plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, isfinite, log10

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.comparison.rank.question import TASKS, THESE, RankOptions
from fairbench.comparison.rank.table import Scores, ScoreTable
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.formats import count
from fairbench.inference.comparing.fresh_winners import FreshWinner, fresh_winner
from fairbench.inference.comparing.new_tasks import OnNewTask, on_new_task
from fairbench.inference.comparing.resolution import (
    VarianceParts,
    units_needed,
    usual_spread,
    variance_parts,
)
from fairbench.inference.comparing.sign_flips import (
    FEWEST,
    PairedUnits,
    Simultaneous,
    agreeing,
    fewest_units,
    paired_units,
    simultaneous,
    unseen_share,
)
from fairbench.inference.paired import difference_of_shares

WRONG = 0.05  # the family-wise error rate of all simultaneous statements of a page
_MOST_PLANNED = 10  # pairs for which the answer says what would resolve them
# At most so many multiplications go into sign flips; tables that need more get fewer flips, so that
# 2,000 methods on 50 tasks take about a minute of CPU (docs/scale.md).
_WORK = 4e10
_EACH = 200  # multiplications per flip and pair for everything else
_FLIPS, _FEWEST_FLIPS = 1999, 499


@dataclass(frozen=True)
class PairedDifference:
    """The difference first - second of two methods, in the unit of the score.

    Attributes
    ----------
    value, lower, upper : the mean difference with its interval, simultaneous over all pairs;
        infinite limits if it was measured on too few units.
    units : the number of units on which both methods were measured.
    verdict : ``better`` or ``worse``, of the first, or ``open``.
    """

    first: str
    second: str
    value: float
    lower: float
    upper: float
    units: int
    verdict: str


@dataclass(frozen=True)
class ResolutionPlan:
    """How many more units or splits tell a method from a rival, if they truly differ by epsilon.

    Attributes
    ----------
    units : the number of units.
    units_needed : the number of units that would be enough; infinite if none is.
    times_as_many : the factor by which more splits, or questions, of the same tasks would be
        enough; infinite if none is, NaN if tasks have one cell each.
    noise : the share of the variance that is due to splits or questions; NaN likewise.
    cost : the cost of the further units, for all methods that have plans; NaN without costs.
    """

    first: str
    rival: str
    difference: PairedDifference
    units: int
    units_needed: float
    times_as_many: float
    noise: float
    cost: float


@dataclass(frozen=True, eq=False)
class Ranking:
    """The ranking of methods by one score.

    Attributes
    ----------
    methods : the names of the methods, best first.
    order : the position of each in the table.
    unit : the sampling unit: ``family``, ``task`` or ``question``.
    units : the number of units.
    means : (M,) the mean of each method, as ordered; adjusted for units on which it was not run.
    ran : (M,) the number of units on which each method was run.
    first_rank, last_rank : (M,) simultaneous limits of the rank of each method.
    may_be_best : (M,) a confidence set for the best method.
    new : probabilities on a new task; None for questions without tasks.
    lower, upper : (P,) limits of all pairs of `paired`, in the table's order, with signs such that
        larger is better.
    error_rate : the share of the page's error rate that is spent on this score.
    """

    scores: Scores
    epsilon: float
    order: NDArray[np.intp]
    methods: tuple[str, ...]
    unit: str
    units: int
    means: Floats
    ran: NDArray[np.int64]
    first_rank: NDArray[np.int64]
    last_rank: NDArray[np.int64]
    may_be_best: NDArray[np.bool_]
    new: OnNewTask | None
    paired: PairedUnits
    held: Simultaneous
    lower: Floats
    upper: Floats
    fresh: FreshWinner | None
    plans: tuple[ResolutionPlan, ...]
    error_rate: float

    @cached_property
    def _index_of(self) -> dict[str, int]:
        """The index of each method in the table."""
        return {name: int(index) for name, index in zip(self.methods, self.order, strict=True)}

    @property
    def leader(self) -> str:
        """The method of the best mean."""
        return self.methods[0]

    @property
    def best(self) -> list[str]:
        """The methods that may be the best."""
        return [
            name for name, is_kept in zip(self.methods, self.may_be_best, strict=True) if is_kept
        ]

    @property
    def unseen(self) -> float:
        """The share of units on which a method may do what none of the units here shows.

        It is 0 of right and wrong answers, which have no large losses.
        """
        if self.unit == "question" and is_binary(self.scores.values):
            return 0.0
        return unseen_share(self.units, len(self.methods), self.error_rate)

    @property
    def surely_near(self) -> list[str]:
        """The methods whose mean is surely within epsilon of the best one, simultaneously."""
        worst = np.full((self.paired.methods, self.paired.methods), 0.0)
        worst[self.paired.first, self.paired.second] = self.lower
        worst[self.paired.second, self.paired.first] = -self.upper
        rivals = self.order[self.may_be_best]
        is_near = np.asarray((worst[:, rivals] >= -self.epsilon).all(axis=1))
        near = is_near[self.order] & self.may_be_best
        return [name for name, is_kept in zip(self.methods, near, strict=True) if is_kept]

    @property
    def told_apart(self) -> int:
        """The number of pairs that surely differ."""
        return int(self.held.better.sum())

    def difference(self, first: str, second: str) -> PairedDifference:
        """Return the difference of two methods.

        Raises
        ------
        UserError : a method that the table does not have.
        """
        for name in (first, second):
            if name not in self._index_of:
                raise unknown_name("method", name, list(self._index_of))
        first_index, second_index = self._index_of[first], self._index_of[second]
        pair = self.pair(first, second)
        sign = -1.0 if first_index > second_index else 1.0
        value, lower, upper = (
            sign * float(values_of_pairs[pair])
            for values_of_pairs in (self.paired.means, self.lower, self.upper)
        )
        verdict = "open"
        if self.held.better[first_index, second_index]:
            verdict = "better"
        elif self.held.better[second_index, first_index]:
            verdict = "worse"
        lower_limit, upper_limit = sorted([self.scores.sign * lower, self.scores.sign * upper])
        return PairedDifference(
            first=first,
            second=second,
            value=self.scores.sign * value + 0.0,  # adding 0 turns -0 into 0
            lower=lower_limit + 0.0,
            upper=upper_limit + 0.0,
            units=int(self.paired.sizes[pair]),
            verdict=verdict,
        )

    def pair(self, first: str, second: str) -> int:
        """Return the position of a pair of methods in `paired`."""
        first_index, second_index = self._index_of[first], self._index_of[second]
        low, high = min(first_index, second_index), max(first_index, second_index)
        return low * self.paired.methods - low * (low + 1) // 2 + high - low - 1

    def differences(self) -> Iterator[PairedDifference]:
        """Yield the differences of all pairs, the better-looking method first."""
        for index, first in enumerate(self.methods):
            for second in self.methods[index + 1 :]:
                yield self.difference(first, second)


def answers(
    table: ScoreTable,
    options: RankOptions,
    *,
    error_rate: float = WRONG,
    most_planned: int = _MOST_PLANNED,
) -> list[Ranking]:
    """Return the ranking by each score of a table, with family-wise error rate `error_rate`.

    Parameters
    ----------
    most_planned : the most pairs for which there is a plan.

    Raises
    ------
    UserError : a method of ``pair=`` that is not there, or questions that some methods lack where
        the claim is of these tasks.
    """
    for name in options.pair:
        if name not in table.methods:
            raise unknown_name("method", name, table.methods)
    error_rate_per_score = error_rate / len(table.scores)
    rankings = [_rank_by(table, scores, options, error_rate_per_score) for scores in table.scores]
    return [
        _with_plans(
            ranking, ranking.scores.larger_is_better, units_of(table, options), most_planned
        )
        for ranking in rankings
    ]


@dataclass(frozen=True, eq=False)
class UnitsOfMean:
    """The levels of a mean: cells are averaged into groups, and groups into units.

    Attributes
    ----------
    group : (C,) the group of each cell, usually its task.
    unit : (K,) the unit of each group.
    equal_weights : whether units have equal weights, however many groups they have.
    strata : (U,) strata within which units are drawn, or None.
    name : the word for a unit, such as ``family``.
    """

    group: NDArray[np.intp]
    unit: NDArray[np.intp]
    equal_weights: bool
    strata: NDArray[np.intp] | None
    name: str


def units_of(table: ScoreTable, options: RankOptions) -> UnitsOfMean:
    """Return the units of a table: families, tasks or questions."""
    cells = np.arange(len(table.task))
    if options.about == THESE and table.questions and table.tasks:
        return UnitsOfMean(cells, cells, True, table.task, "question")
    name = "family" if table.families else "task" if table.tasks else "question"
    if table.families and not table.tasks and options.mean != TASKS:
        # Questions of a family without tasks: each family is a task of its questions.
        families = np.arange(len(table.families))
        return UnitsOfMean(table.family[table.task], families, True, None, name)
    return UnitsOfMean(table.task, table.family, options.mean != TASKS, None, name)


def _rank_by(table: ScoreTable, scores: Scores, options: RankOptions, error_rate: float) -> Ranking:
    """Return the ranking by one score, without plans, with family-wise error rate `error_rate`."""
    generator = np.random.default_rng(options.seed)
    values = scores.larger_is_better
    units = units_of(table, options)
    if units.strata is not None:
        _check_strata(values, table, units.strata)
    binary = units.name == "question" and units.strata is None and is_binary(values)
    paired = paired_units(
        values,
        units.group,
        units.unit,
        equal_unit_weights=units.equal_weights,
        strata=units.strata,
        binary=binary,
        generator=generator,
    )
    work = float(len(paired.first)) * (len(paired.blocks) + _EACH)
    flips = int(np.clip(_WORK / max(work, 1), _FEWEST_FLIPS, _FLIPS))
    statements = simultaneous(paired, error_rate=error_rate, generator=generator, flips=flips)
    lower, upper = statements.lower, statements.upper
    if binary:
        lower, upper = _binary_limits(values, paired, statements)
    means, units_of_method = adjusted_means(
        values, units.group, units.unit, alike=units.equal_weights
    )
    order = _best_first(means, units_of_method, statements.may_be_best)
    epsilon = scores.epsilon if options.within is None else options.within
    epsilon = usual_epsilon(scores.values) if epsilon is None else epsilon
    new_task = None
    if units.name != "question":
        task_means = _task_means(values, units.group, len(units.unit))
        new_task = on_new_task(task_means, units.unit, epsilon=epsilon, generator=generator)
        new_task = replace(new_task, best=new_task.best[order], near=new_task.near[order])
    return Ranking(
        scores=scores,
        epsilon=epsilon,
        order=order,
        methods=tuple(table.methods[index] for index in order),
        unit=units.name,
        units=int(units.unit.max()) + 1,
        means=scores.sign * means[order],
        ran=units_of_method[order],
        first_rank=statements.first_rank[order],
        last_rank=statements.last_rank[order],
        may_be_best=statements.may_be_best[order],
        new=new_task,
        paired=paired,
        held=statements,
        lower=lower,
        upper=upper,
        fresh=fresh_winner(values, table.task, table.family, generator=generator),
        plans=(),
        error_rate=error_rate,
    )


def _best_first(
    means: Floats, units_of_method: NDArray[np.int64], may_be_best: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Return the order in which methods are shown: the leader, then by mean, larger is better.

    Methods that have fewer than half of the units of the most complete one come last. Where units
    are missing, the method of the largest mean need not be one that may be the best: the leader is
    the first that may.
    """
    has_half_of_units = units_of_method >= units_of_method.max() / 2
    order = np.lexsort((-means, ~has_half_of_units))
    leader = int(np.argmax(may_be_best[order]))
    return np.asarray(np.r_[order[leader], np.delete(order, leader)])


def _check_strata(values: Floats, table: ScoreTable, strata: NDArray[np.intp]) -> None:
    """Refuse missing answers, and tasks with a single question."""
    if (holes := ~np.isfinite(values)).any():
        method = int(np.flatnonzero(holes.any(axis=1))[0])
        raise UserError(
            f"about=these compares methods on the same questions, and {table.methods[method]} "
            f"lacks {count(holes[method].sum())}: leave it out of the table, or give crashed="
        )
    if (small := np.bincount(strata) < 2).any():
        name = table.tasks[int(np.flatnonzero(small)[0])]
        raise UserError(f"about=these needs two questions of each task, and '{name}' has one")


def is_binary(values: Floats) -> bool:
    """Return whether all finite scores (M, C) are 0 or 1 (right or wrong), or all are 0 or -1."""
    finite = values[np.isfinite(values)]
    size = np.abs(finite)
    return bool(((size == 0) | (size == 1)).all() and (finite > 0).any() != (finite < 0).any())


def _binary_limits(
    values: Floats, paired: PairedUnits, statements: Simultaneous
) -> tuple[Floats, Floats]:
    """Return limits of differences of shares of right answers that hold for few questions, too.

    Notes
    -----
    As in McNemar's test, they depend on the questions that just one method of a pair answers
    correctly: `gained` by the first and `lost` by the second. With R_mq = 1 for a right answer and
    P_mq = 1 for any answer of method m to question q, the first of a pair (a, b) gains
    (R P')_ab - (R R')_ab questions, where ' is the transpose.
    """
    is_known = np.isfinite(values)
    presence = is_known.astype(np.float32)
    right = np.where(is_known, values if (values > 0).any() else 1 + values, 0).astype(np.float32)
    both_right, right_where_other_present = right @ right.T, right @ presence.T
    first, second = paired.first, paired.second
    gained = np.rint(right_where_other_present[first, second] - both_right[first, second]).astype(
        float
    )
    lost = np.rint(right_where_other_present[second, first] - both_right[second, first]).astype(
        float
    )
    level = 1 - 2 * float(special.ndtr(-statements.critical))
    limits = difference_of_shares(gained, lost, np.maximum(paired.sizes, 1), level=level)
    is_few = paired.sizes < FEWEST
    lower = np.where(is_few, -np.inf, limits.lower)
    upper = np.where(is_few, np.inf, limits.upper)
    return agreeing(lower, upper, paired.means, statements.p_values <= statements.level)


def usual_epsilon(values: Floats) -> float:
    """Return a negligible difference: 0.01 for shares, 1 for percentages, else by the spread."""
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() >= 0 and finite.max() <= 1:
        return 0.01
    if finite.size and finite.min() >= 0 and 1.5 < finite.max() <= 100:
        return 1.0
    spread = float(np.subtract(*np.quantile(finite, [0.95, 0.05]))) / 100 if finite.size else 0.0
    if not spread > 0:
        return 0.01
    digit = 10.0 ** floor(log10(spread))
    return float(f"{np.floor(spread / digit) * digit:.1g}")


def _task_means(values: Floats, group: NDArray[np.intp], tasks: int) -> Floats:
    """Return the means of each method's cells of each task, (M, K); NaN if there are none."""
    is_known = np.isfinite(values)
    if not is_known.all():
        sums = [np.bincount(group, row, tasks) for row in np.where(is_known, values, 0.0)]
        counts = [np.bincount(group, row, tasks) for row in is_known.astype(float)]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.stack(sums) / np.stack(counts)
    return np.stack([np.bincount(group, row, tasks) for row in values]) / np.bincount(group)


def adjusted_means(
    values: Floats, group: NDArray[np.intp], unit: NDArray[np.intp], *, alike: bool
) -> tuple[Floats, NDArray[np.int64]]:
    """Return each method's mean, adjusted for missing units, and the number of units it has.

    Notes
    -----
    If no unit is missing, it is the plain mean. Otherwise the mean y_mu of method m on unit u is
    modelled as a_m + b_u with effects of methods and of units, fitted by least squares with
    weights w_mu: b_u is the weighted mean over methods of y_mu - a_m, and a_m that over units of
    y_mu - b_u, in turn until they settle. The adjusted mean of a method is a_m plus the weighted
    mean of b_u over units.
    """
    task_means = _task_means(values, group, len(unit))
    units = int(unit.max()) + 1
    is_measured = np.isfinite(task_means).astype(float)
    filled = np.where(is_measured > 0, task_means, 0.0)
    counts = np.stack([np.bincount(unit, row, units) for row in is_measured])
    sums = np.stack([np.bincount(unit, row, units) for row in filled])
    with np.errstate(invalid="ignore", divide="ignore"):
        unit_means = sums / counts
    weight = np.where(counts > 0, 1.0 if alike else counts, 0.0)
    filled_means = np.where(counts > 0, unit_means, 0.0)
    ran = (counts > 0).sum(axis=1)
    method_effects = np.zeros(len(values))
    unit_shares = weight.max(axis=0) / weight.max(axis=0).sum()
    rounds = 1 if (counts > 0).all() else 200
    total_weight = np.maximum(weight.sum(axis=0), 1e-300)
    for _ in range(rounds):
        unit_effects = (weight * (filled_means - method_effects[:, None])).sum(
            axis=0
        ) / total_weight
        method_effects = (weight * (filled_means - unit_effects)).sum(axis=1) / np.maximum(
            weight.sum(axis=1), 1e-300
        )
    unit_effects = (weight * (filled_means - method_effects[:, None])).sum(axis=0) / total_weight
    return method_effects + float(unit_effects @ unit_shares), ran


def _with_plans(answer: Ranking, values: Floats, units: UnitsOfMean, most: int) -> Ranking:
    """Return a ranking with plans for the pairs that matter most.

    These are the leader and each rival that may be the best; or, if the best method is settled,
    neighbours in the order of means that do not surely differ.
    """
    pairs = [(answer.leader, name) for name in answer.best if name != answer.leader]
    if not pairs:
        neighbours = zip(answer.methods, answer.methods[1:], strict=False)
        pairs = [pair for pair in neighbours if answer.difference(*pair).verdict == "open"]
    pairs = pairs[:most]
    index_of = {name: int(index) for name, index in zip(answer.methods, answer.order, strict=True)}
    planned = dict.fromkeys(name for pair in pairs for name in pair)
    price = _price(answer, units, [index_of[name] for name in planned]) if pairs else 0.0
    plans = []
    for first, rival in pairs:
        differences = values[index_of[first]] - values[index_of[rival]]
        difference = answer.difference(first, rival)
        pair = answer.pair(first, rival)
        spread = float(usual_spread(answer.paired.errors[pair], answer.paired.sizes[pair]))
        needed = float("nan")
        if isfinite(spread) and spread > 0:
            spreads = np.array([spread])
            needed = float(units_needed(spreads, answer.epsilon, answer.held.critical)[0])
        parts = (
            None
            if units.name == "question"
            else variance_parts(differences, units.group, units.unit)
        )
        further_units = max(needed - difference.units, 0.0)
        plans.append(
            ResolutionPlan(
                first=first,
                rival=rival,
                difference=difference,
                units=difference.units,
                units_needed=needed,
                times_as_many=_times_as_many(parts, answer, difference.units),
                noise=parts.noise / parts.unit if parts and parts.unit > 0 else float("nan"),
                cost=further_units * price,
            )
        )
    return replace(answer, plans=tuple(plans))


def _times_as_many(parts: VarianceParts | None, answer: Ranking, units: int) -> float:
    """Return the factor by which more cells would resolve a pair; NaN if it is unknown."""
    if parts is None or units < FEWEST:
        return float("nan")
    return parts.times_as_many(answer.epsilon, units, answer.held.critical)


def _price(answer: Ranking, units: UnitsOfMean, places: list[int]) -> float:
    """Return the cost of one further unit for these methods; NaN without costs."""
    if answer.scores.cost is None:
        return float("nan")
    cost = answer.scores.cost[places]
    is_known = np.isfinite(cost)
    if not is_known.any(axis=1).all():
        return float("nan")
    cell_cost = (np.where(is_known, cost, 0.0).sum(axis=1) / is_known.sum(axis=1)).sum()
    return float(cell_cost * cost.shape[1] / (int(units.unit.max()) + 1))


def units_to_tell_anything(answer: Ranking) -> int:
    """Return the fewest units with which a sign-flip test can find a difference."""
    return fewest_units(answer.held.level)
