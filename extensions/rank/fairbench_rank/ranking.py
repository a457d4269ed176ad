"""Rankings of the methods of a table of scores: ranks, candidates for the best, plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from math import ceil, inf, isfinite, isnan, nan
from operator import attrgetter, itemgetter
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Codes, Floats, Mask, Rows, divide
from fairbench.core.errors import check_choice
from fairbench.core.text import count, percent, shortened, two_digits
from fairbench.inference.gaps import difference_of_shares
from fairbench.inference.rates import Limits
from fairbench.inference.survey import sums
from fairbench.reporting.group_tables import sentence_of, sentences_of
from fairbench_rank import new_tasks, sign_flips
from fairbench_rank.approaches import finite_mean
from fairbench_rank.scores import TASKS, RankOptions, Scores, ScoreTable
from fairbench_rank.sign_flips import FEWEST, PairedUnits, Simultaneous

WRONG = 0.05  # the family-wise error rate of all simultaneous statements of a page
_MOST_PLANNED = 10  # pairs for which the answer says what would resolve them
# At most so many multiplications go into sign flips; tables that need more get fewer flips, so that
# 2,000 methods on 50 tasks take about a minute of CPU (docs/scale.md).
_WORK = 4e10
_EACH = 200  # multiplications per flip and pair for everything else
_FLIPS, _FEWEST_FLIPS = 1999, 499


# The difference first - second of two methods, in the unit of the score: ``first``, ``second``;
# ``value``, ``lower`` and ``upper``, the mean difference with its interval, simultaneous over all
# pairs, with infinite limits if it was measured on too few units; ``units``, the number of units on
# which both methods were measured; and the ``verdict``, ``better`` or ``worse``, of the first, or
# ``open``.
PairedDifference: TypeAlias = SimpleNamespace


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
    new : probabilities on a new task; None for questions without tasks.
    fresh : how often halves disagree on the best, as of :func:`new_tasks.fresh_winner`.
    held : what holds of all pairs of `paired`, in the table's order, with signs such that larger is
        better.
    plans : a row for each pair that matters most and is open: the ``first`` and the ``second``
        method, their ``difference`` with ``lower`` and ``upper``; ``units``, on which both were
        measured; ``units_needed``, which would be enough if they truly differ by epsilon, infinite
        if none is; ``times_as_many``, the factor by which more splits, or questions, of the same
        tasks would be enough, infinite if none is and NaN if tasks have one cell each; ``floor``,
        the half width below which no number of splits surely brings the interval; ``noise``, the
        share of the variance that is due to splits or questions, NaN likewise; and ``cost`` of
        the further units, for all methods that have plans, NaN without costs.
    error_rate : the share of the page's error rate that is spent on this score.
    """

    scores: Scores
    epsilon: float
    order: Rows
    methods: tuple[str, ...]
    unit: str
    units: int
    means: Floats
    ran: NDArray[np.int64]
    new: new_tasks.OnNewTask | None
    paired: PairedUnits
    held: Simultaneous
    fresh: Mapping[str, Any] | None
    plans: Sequence[Mapping[str, Any]]
    error_rate: float

    @cached_property
    def index_of(self) -> dict[str, int]:
        """The index of each method in the table."""
        return {name: int(index) for name, index in zip(self.methods, self.order, strict=True)}

    @property
    def leader(self) -> str:
        """The method of the best mean."""
        return self.methods[0]

    @property
    def best(self) -> list[str]:
        """The methods that may be the best: a confidence set."""
        return [name for name in self.methods if self.held.may_be_best[self.index_of[name]]]

    @property
    def unseen(self) -> float:
        """The share of units on which a method may do what none of the units here shows.

        It is 0 of right and wrong answers, which have no large losses.
        """
        if self.unit == "question" and is_binary(self.scores.values):
            return 0.0
        return sign_flips.unseen_share(self.units, len(self.methods), self.error_rate)

    @property
    def surely_near(self) -> list[str]:
        """The methods whose mean is surely within epsilon of the best one, simultaneously."""
        worst = np.full((self.paired.methods, self.paired.methods), 0.0)
        worst[self.paired.first, self.paired.second] = self.held.limits.lower
        worst[self.paired.second, self.paired.first] = -self.held.limits.upper
        is_near = np.asarray((worst[:, self.held.may_be_best] >= -self.epsilon).all(axis=1))
        return [name for name in self.best if is_near[self.index_of[name]]]

    @property
    def told_apart(self) -> int:
        """The number of pairs that surely differ."""
        return int(self.held.better.sum())

    @property
    def pair_count(self) -> int:
        """The number of pairs."""
        return len(self.paired.first)

    @property
    def undecided(self) -> int:
        """The number of pairs that may or may not differ."""
        return self.pair_count - self.told_apart

    @property
    def plural(self) -> str:
        """The plural word for a unit."""
        return "families" if self.unit == "family" else f"{self.unit}s"

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """A row for each pair, the better-looking method first: see `PairedDifference`."""
        first, second = np.triu_indices(len(self.order), 1)
        one, other = self.order[first], self.order[second]
        pair = _position(one, other, len(self.order))
        sign = self.scores.sign * np.where(one > other, -1.0, 1.0)
        value, *ends = (sign * array[pair] for array in self.held.limits)
        lower, upper = np.sort(np.stack(ends), axis=0)
        is_sure = [self.held.better[one, other], self.held.better[other, one]]
        names = np.array(self.methods, dtype=object)
        return pd.DataFrame(
            {
                "first": names[first],
                "second": names[second],
                "value": value + 0.0,  # adding 0 turns -0 into 0
                "lower": lower + 0.0,
                "upper": upper + 0.0,
                "units": self.paired.sizes[pair].astype(int),
                "verdict": np.select(is_sure, ["better", "worse"], "open"),
            }
        )

    def difference(self, first: str, second: str) -> PairedDifference:
        """Return the difference of two methods.

        Raises
        ------
        UserError : a method that the table does not have.
        """
        for name in (first, second):
            check_choice("method", name, self.index_of)
        one, other = self.methods.index(first), self.methods.index(second)
        found = self.pairs.iloc[_position(one, other, len(self.methods))]
        row = PairedDifference(**found.to_dict())
        if one > other:
            turned = {"better": "worse", "worse": "better", "open": "open"}
            row.first, row.second, row.verdict = first, second, turned[row.verdict]
            row.value, row.lower, row.upper = (0.0 - x for x in (row.value, row.upper, row.lower))
        return row

    def rows(self, reference: str = "") -> list[dict[str, Any]]:
        """Return a row for each method, best first: ranks, mean, and the chance of a new task.

        Parameters
        ----------
        reference : the method that the differences are from; the leader by default.
        """
        reference = reference or self.leader
        rows = []
        none = PairedDifference(value=0.0, lower=0.0, upper=0.0)
        # How many are surely better than each method of the table, and how many it surely beats.
        above, beaten = (self.held.better.sum(axis=axis) for axis in (0, 1))
        for place, (name, index) in enumerate(self.index_of.items()):
            difference = self.difference(name, reference) if name != reference else none
            rows.append({
                "score": self.scores.score,
                "method": name,
                "first_rank": int(1 + above[index]),
                "last_rank": int(len(self.methods) - beaten[index]),
                "may_be_best": bool(self.held.may_be_best[index]),
                "mean": float(self.means[place]),
                "difference": difference.value,
                "lower": difference.lower,
                "upper": difference.upper,
                "near_best_on_new": float(self.new.near[place]) if self.new else nan,
                "best_on_new": float(self.new.best[place]) if self.new else nan,
                self.plural: int(self.ran[place]),
            })  # fmt: skip
        return rows

    def plain(self) -> dict[str, Any]:
        """Return the ranking as plain values, for JSON."""
        return {
            "score": self.scores.score,
            "better": self.scores.better,
            "within": self.epsilon,
            "unit": self.unit,
            "units": self.units,
            "pairs": self.pair_count,
            "told_apart": self.told_apart,
            "may_be_best": self.best,
            "surely_near": self.surely_near,
            "ranks": self.rows(),
            "plans": list(self.plans),
            "fresh": self.fresh,
        }


def _position(one: Any, other: Any, methods: int) -> Any:
    """Return the position of pairs among all pairs, each with the earlier one first."""
    low, high = np.minimum(one, other), np.maximum(one, other)
    return low * methods - low * (low + 1) // 2 + high - low - 1


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
    """
    units, of_score = units_of(table, options), error_rate / len(table.scores)
    rankings = [_rank_by(table, scores, options, units, of_score) for scores in table.scores]
    return [replace(each, plans=[*_plans(each, units, most_planned)]) for each in rankings]


@dataclass(frozen=True, eq=False)
class _UnitsOfMean:
    """The levels of a mean: cells are averaged into groups, and groups into units.

    Attributes
    ----------
    group : (C,) the group of each cell, usually its task.
    unit : (K,) the unit of each group.
    equal_weights : whether units have equal weights, however many groups they have.
    name : the word for a unit, such as ``family``.
    """

    group: Codes
    unit: Codes
    equal_weights: bool
    name: str


def units_of(table: ScoreTable, options: RankOptions) -> _UnitsOfMean:
    """Return the units of a table: families, tasks or questions."""
    name = "family" if table.families else "task" if table.tasks else "question"
    if table.families and not table.tasks and options.mean != TASKS:
        # Questions of a family without tasks: each family is a task of its questions.
        families = np.arange(len(table.families))
        return _UnitsOfMean(table.family[table.task], families, True, name)
    return _UnitsOfMean(table.task, table.family, options.mean != TASKS, name)


def _rank_by(
    table: ScoreTable, scores: Scores, options: RankOptions, units: _UnitsOfMean, error_rate: float
) -> Ranking:
    """Return the ranking by one score, without plans, with family-wise error rate `error_rate`."""
    generator = np.random.default_rng(options.seed)
    values = scores.larger_is_better
    binary = units.name == "question" and is_binary(values)
    paired = sign_flips.paired_units(
        values,
        units.group,
        units.unit,
        equal_unit_weights=units.equal_weights,
        binary=binary,
        generator=generator,
    )
    work = float(len(paired.first)) * (len(paired.blocks) + _EACH)
    flips = int(np.clip(_WORK / max(work, 1), _FEWEST_FLIPS, _FLIPS))
    held = sign_flips.simultaneous(paired, error_rate=error_rate, generator=generator, flips=flips)
    if binary:
        held = replace(held, limits=_binary_limits(values, paired, held))
    task_means = means_of(values, units.group, len(units.unit))
    means, units_of_method = _adjusted_means(task_means, units)
    order = _best_first(means, units_of_method, held.may_be_best)
    epsilon = scores.epsilon if options.epsilon is None else options.epsilon
    epsilon = _usual_epsilon(scores.values) if epsilon is None else epsilon
    new = None
    if units.name != "question":
        new = new_tasks.on_new_task(task_means, units.unit, epsilon=epsilon, generator=generator)
        new = replace(new, best=new.best[order], near=new.near[order])
    return Ranking(
        scores=scores,
        epsilon=epsilon,
        order=order,
        methods=tuple(table.methods[index] for index in order),
        unit=units.name,
        units=int(units.unit.max()) + 1,
        means=scores.sign * means[order],
        ran=units_of_method[order],
        new=new,
        paired=paired,
        held=held,
        fresh=new_tasks.fresh_winner(values, table.task, table.family, generator=generator),
        plans=(),
        error_rate=error_rate,
    )


def _best_first(means: Floats, ran: NDArray[np.int64], may_be_best: Mask) -> Rows:
    """Return the order in which methods are shown: the leader, then by mean, larger is better.

    Methods that have fewer than half of the units of the most complete one come last. Where units
    are missing, the method of the largest mean need not be one that may be the best: the leader is
    the first that may.
    """
    has_half_of_units = ran >= ran.max() / 2
    order = np.lexsort((-means, ~has_half_of_units))
    leader = int(np.argmax(may_be_best[order]))
    return np.asarray(np.r_[order[leader], np.delete(order, leader)])


def is_binary(values: Floats) -> bool:
    """Return whether all finite scores (M, C) are 0 or 1 (right or wrong), or all are 0 or -1."""
    finite = values[np.isfinite(values)]
    size = np.abs(finite)
    return bool(((size == 0) | (size == 1)).all() and (finite > 0).any() != (finite < 0).any())


def _binary_limits(values: Floats, paired: PairedUnits, statements: Simultaneous) -> Limits:
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
    # (M, M): how many questions the row answers rightly and the column, which was asked, does not.
    alone = np.rint(right @ presence.T - right @ right.T).astype(float)
    first, second = paired.first, paired.second
    gained, lost = alone[first, second], alone[second, first]
    level = 1 - 2 * float(special.ndtr(-statements.critical))
    limits = difference_of_shares(gained, lost, np.maximum(paired.sizes, 1), level=level)
    is_few = paired.sizes < FEWEST
    ends = np.where(is_few, -np.inf, limits.lower), np.where(is_few, np.inf, limits.upper)
    told_apart = statements.p_values <= statements.level
    return sign_flips.agreeing(Limits(paired.means, *ends), told_apart)


def _usual_epsilon(values: Floats) -> float:
    """Return a negligible difference: 0.01 for shares, 1 for percentages, else by the spread."""
    finite = values[np.isfinite(values)]
    if finite.size and finite.min() >= 0 and finite.max() <= 1:
        return 0.01
    if finite.size and finite.min() >= 0 and 1.5 < finite.max() <= 100:
        return 1.0
    spread = float(np.subtract(*np.quantile(finite, [0.95, 0.05]))) / 100 if finite.size else 0.0
    return float(f"{spread:.0e}") if spread > 0 else 0.01


def means_of(values: Floats, code: Codes, count: int) -> Floats:
    """Return the means of the known columns of equal code, (M, count); NaN if there are none."""
    is_known = np.isfinite(values)
    totals = sums(np.where(is_known, values, 0.0), code, count)
    return divide(totals, sums(is_known.astype(float), code, count))


def _adjusted_means(task_means: Floats, of: _UnitsOfMean) -> tuple[Floats, NDArray[np.int64]]:
    """Return each method's mean, adjusted for missing units, and the number of units it has.

    Notes
    -----
    If no unit is missing, it is the plain mean. Otherwise the mean of method m on unit u is taken
    to be a_m + b_u, with effects of methods and of units (:func:`new_tasks.method_effects`). The
    adjusted mean of a method is a_m plus the weighted mean of b_u over units.
    """
    units = int(of.unit.max()) + 1
    counts = sums(np.isfinite(task_means).astype(float), of.unit, units)
    weight = np.where(counts > 0, 1.0 if of.equal_weights else counts, 0.0)
    filled_means = np.where(counts > 0, means_of(task_means, of.unit, units), 0.0)
    effects = new_tasks.method_effects(filled_means, weight, 1 if (counts > 0).all() else 200)
    unit_effects = (weight * (filled_means - effects[:, None])).sum(axis=0) / weight.sum(axis=0)
    return effects + np.average(unit_effects, weights=weight.max(axis=0)), (counts > 0).sum(axis=1)


def _plans(answer: Ranking, units: _UnitsOfMean, most: int) -> Iterator[dict[str, Any]]:
    """Yield plans for the pairs that matter most.

    These are the leader and each rival that may be the best; or, if the best method is settled,
    neighbours in the order of means that do not surely differ.
    """
    values = answer.scores.larger_is_better
    pairs = [(answer.leader, name) for name in answer.best if name != answer.leader]
    if not pairs:
        neighbours = zip(answer.methods, answer.methods[1:], strict=False)
        pairs = [pair for pair in neighbours if answer.difference(*pair).verdict == "open"]
    pairs = pairs[:most]
    price, critical = nan, answer.held.critical  # of one further unit, for all of these methods
    if answer.scores.cost is not None:
        planned = [answer.index_of[name] for name in dict.fromkeys(chain(*pairs))]
        cost = answer.scores.cost[planned]
        price = float(finite_mean(cost.T).sum() * cost.shape[1] / answer.units)
    for first, rival in pairs:
        difference = answer.difference(first, rival)
        one, other = answer.index_of[first], answer.index_of[rival]
        pair = _position(one, other, answer.paired.methods)
        spread = new_tasks.usual_spread(answer.paired.errors[pair], answer.paired.sizes[pair])
        needed = times = noise = nan
        if isfinite(spread) and spread > 0:
            needed = float(new_tasks.units_needed(spread, answer.epsilon, critical))
        parts, floor, n = None, 0.0, difference.units
        if units.name != "question":
            parts = new_tasks.variance_parts(values[one] - values[other], units.group, units.unit)
        if parts is not None:
            floor = new_tasks.least_half_width(parts, n, critical)
            noise = parts[1] / parts[0] if parts[0] > 0 else nan
            if n >= FEWEST:
                times = new_tasks.times_as_many(parts, answer.epsilon, n, critical)
        yield {
            "first": first,
            "second": rival,
            "difference": difference.value,
            "lower": difference.lower,
            "upper": difference.upper,
            "units": n,
            "units_needed": needed,
            "times_as_many": times,
            "floor": floor,
            "noise": noise,
            "cost": max(needed - n, 0.0) * price,
        }


# Sentences on a ranking: which methods differ, what is open, and what would resolve it.
#
# The page of ``fairbench rank``, the atlas and the leaderboard share them.

NAMED = 6  # methods that a sentence lists
short_name = partial(shortened, most=110)  # a name that is not too long for a sentence

_PAGE = "fairbench_rank:ranking"
_tell = partial(sentence_of, _PAGE)


def units_in_words(answer: Ranking, number: float | None = None) -> str:
    """Return a number of units (by default, all of the ranking) with the word for them."""
    number = answer.units if number is None else number
    return f"{count(number)} {answer.unit if number == 1 else answer.plural}"


def join_words(names: Sequence[str], word: str = "and") -> str:
    """Return a list in words; names that hold commas are divided by semicolons.

    Examples
    --------
    >>> join_words(["forest", "linear", "nearest"]), join_words(["forest, plain", "linear"], "or")
    ('forest, linear and nearest', 'forest, plain; or linear')
    """
    if len(names) < 2:
        return "".join(names)
    if any("," in name for name in names):
        return f"{'; '.join(names[:-1])}; {word} {names[-1]}"
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def first_names(names: Sequence[str], word: str = "and") -> str:
    """Return the first names of a list in words, and how many more there are."""
    listed = [short_name(name) for name in names[:NAMED]]
    if len(names) > NAMED:
        mark = ";" if any("," in name for name in listed) else ","
        return f"{f'{mark} '.join(listed)} {word} {count(len(names) - NAMED)} more"
    return join_words(listed, word)


def found_sentences(answer: Ranking, methods: str = "methods") -> Iterator[str]:
    """Yield a sentence on which methods may be the best, and how many pairs surely differ.

    Parameters
    ----------
    methods : the plural word for the methods.
    """
    best, total, near = answer.best, len(answer.methods), answer.surely_near
    said = {
        "best": len(best) == 1,
        "one_of": 1 < len(best) < total,
        "near": len(best) > 1 and near,
        "differ": True,
    }
    values = {"best": len(best), "total": total, "name": short_name(best[0])}
    values |= {"names": first_names(best), "near": first_names(near)}
    parts = sentences_of(_PAGE, said, answer=answer, methods=methods, **values)
    if len(parts) > 1 or answer.told_apart:
        told = "; ".join(parts)
        yield f"{told if len(best) == 1 else told[0].upper() + told[1:]}."


def new_task_sentences(answer: Ranking, method: str = "method") -> Iterator[str]:
    """Yield the largest probabilities to be near the best on a new task."""
    if answer.new is None:
        return
    listed = [
        f"{near_in_words(answer, place, ' %')} for {short_name(answer.methods[place])}"
        for place in np.argsort(-answer.new.near, kind="stable")[:3].tolist()
    ]
    remark = "" if len(listed) == len(answer.methods) else " (the table has all)"
    chances = join_words(listed)
    yield _tell("new_task", answer=answer, method=method, chances=chances, remark=remark)


def near_in_words(answer: Ranking, method_index: int, unit: str = "") -> str:
    """Return the percentage of a method's chance to be near the best, with its unit."""
    if answer.new is None:
        return ""
    near = float(answer.new.near[method_index])
    return percent(near) + unit + " or more" * (answer.new.few and near >= new_tasks.MOST_OF_FEW)


def fresh_sentences(answer: Ranking, methods: str = "methods") -> list[str]:
    """Return how often halves of the splits, or of the units, disagree on which mean is best."""
    fresh = answer.fresh
    if fresh is None:
        return []
    among = _tell("among", fresh=fresh, methods=methods)
    among *= fresh["methods"] < len(answer.methods)
    name = "halves_of_splits" if fresh["halved"] == new_tasks.SPLITS else "halves"
    return [_tell(name, fresh=fresh, among=among, answer=answer)]


def open_sentences(answer: Ranking, methods: str = "methods") -> list[str]:
    """Return the questions that the scores leave open."""
    total, best = len(answer.methods), len(answer.best)
    needed = sign_flips.fewest_units(answer.held.level)  # for a sign-flip test to find a difference
    said = {
        "any": best == total,
        "which": 1 < best < total,
        "undecided": answer.undecided,
        "too_few": answer.units < FEWEST,
        "few": FEWEST <= answer.units < needed,
    }
    names, units = first_names(answer.best, "or"), units_in_words(answer)
    values = {"names": names, "units": units, "fewest": FEWEST, "needed": needed}
    about = {"answer": answer, "methods": methods, "best": best, "total": total}
    return sentences_of(_PAGE, said, **about, **values)


def resolving_sentences(answer: Ranking, cells: str = "splits") -> list[str]:
    """Return sentences on how many more units, or cells, would resolve the hardest pair.

    Parameters
    ----------
    cells : the plural word for the cells of a task: splits or questions.
    """
    plans = [plan for plan in answer.plans if not isnan(plan["units_needed"])]
    if not plans:
        return []
    hardest = max(plans, key=itemgetter("units_needed"))
    needed, times = hardest["units_needed"], hardest["times_as_many"]
    lacking = needed > hardest["units"]
    said = {
        "enough": not lacking,
        "needed": lacking and isfinite(needed),
        "no_cells": lacking and times == inf,
        "more_cells": lacking and 1 < times < inf,
    }
    values = {
        "answer": answer,
        "cells": cells,
        "pair": f"{short_name(hardest['first'])} and {short_name(hardest['second'])}",
        "now": units_in_words(answer, hardest["units"]),
        "plan": hardest,
        "needed": two_digits(needed),
        "cost": f", at a cost of {two_digits(hardest['cost'])}" if hardest["cost"] > 0 else "",
        "between": 1 - hardest["noise"],
        "times": two_digits(times) if times >= 10 else f"{max(times, 1.1):.2g}",
    }
    return sentences_of(_PAGE, said, **values)


def unseen_in_words(answer: Ranking) -> str:
    """Return a sentence on the share of units that statements leave out; empty if there is none."""
    share = ceil(1000 * answer.unseen) / 10  # rounded up: it would not hold for less
    said = _tell("unseen", share=share, answer=answer, units=units_in_words(answer))
    return said * bool(share)


def simultaneous_sentences(rankings: Sequence[Ranking], all_scores: str = "all scores") -> str:
    """Return the sentences on which statements of some rankings are simultaneous.

    The largest share that any leaves out holds for all.
    """
    scores = f" of {all_scores}" if rankings[1:] else ""
    unseen = unseen_in_words(max(rankings, key=attrgetter("unseen")))
    estimates = _tell("estimates") if any(answer.new for answer in rankings) else ""
    shared = _tell("simultaneous", scores=scores, wrong=WRONG)
    return " ".join(filter(None, [shared, unseen, estimates]))
