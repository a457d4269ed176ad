"""Tests of all pairs of methods at once, by flipping the signs of paired differences.

A unit is what was drawn at random: a family of tasks, a task, or a question. On each unit two
methods have one paired difference. If two methods do not differ and their differences are
distributed symmetrically around 0, flipping the signs of whole units does not change the
distribution. The largest statistic over all pairs then has a known distribution, whatever the tails
of the scores and the correlations of the pairs. For right and wrong answers this is McNemar's exact
test, of all pairs at once.

If differences are skewed, such as those of a method that sometimes fails, sign flips reject too
often. The statistic is therefore at most Hall's, which corrects for the skewness (Hall 1992,
Journal of the Royal Statistical Society B 54). No test can detect a failure so rare that it occurs
in none of the units: :func:`unseen_share` is the share of units up to which that is to be expected.

With fewer than :func:`fewest_units` units no flip can be rare enough. Student's t test of each pair
with Bonferroni's correction is used instead; it is conservative with heavy tails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Floats, Mask
from fairbench.inference import survey
from fairbench.inference.rates import Limits

Sums = NDArray[np.floating[Any]]  # sums over flips are of single precision
Positions = NDArray[np.intp]
Codes = NDArray[np.integer]
FEWEST = 3  # units from which a pair is judged at all
_ALL_FLIPS = 12  # units up to which every flip is made
# More units than this are flipped in this many blocks of units, which saves signs and memory.
_BLOCKS = 1024
# If scores are missing, each pair has its own sums over blocks: at most this many sums in all, so
# that many pairs have fewer blocks, but at least this many blocks.
_MOST_SUMS, _FEWEST_BLOCKS = 100_000_000, 16
_CHUNK = 1 << 23  # numbers in an array that is processed at once
# The skewness of n units is shrunk by n / (n + 5): that of few units is mostly noise. The coverage
# of the intervals is in docs/coverage.md, "Rankings of methods".
_NOISY = 5
# Hall's limit lies at most this many times as far from the mean as Student's. His formula is an
# expansion for small skewness, and is unbounded if few units are very skewed.
_MOST_BENT = 2
# This part of an error rate is spent: intervals of heavy-tailed and of skewed differences miss a
# little more often than they should.
_SPENT = 0.8
_FAR = 1e9  # the statistic of a mean whose differences do not vary
_ROUNDING = 1e-9  # differences this small, relative to the sum of squares, are rounding errors


@dataclass(frozen=True, eq=False)
class PairedUnits:
    """Paired differences of P pairs of M methods over U units.

    Attributes
    ----------
    methods : M, the number of methods.
    first, second : (P,) the methods of each pair; a difference is first - second.
    sizes : (P,) numbers of units that each pair was measured on.
    means : (P,) mean differences.
    errors : (P,) standard errors of the means.
    squares : (P,) sums of squared differences.
    centred : (P,) sums of squared differences around their means.
    skewness : (P,) skewness of the differences.
    blocks : sums over blocks of units, whose signs are flipped together: (G, M) sums of each
        method's values if no score is missing, otherwise (G, P) sums of each pair's differences.
    weights : (G, 1) or (G, P) total weights of the units of each block, by which a mean is
        multiplied to be subtracted from the block's sum.
    complete : whether `blocks` has a column for each method, and not for each pair.
    """

    methods: int
    first: Positions
    second: Positions
    sizes: Floats
    means: Floats
    errors: Floats
    squares: Floats
    centred: Floats
    skewness: Floats
    blocks: Sums
    weights: Sums
    complete: bool

    @cached_property
    def testable(self) -> Mask:
        """Which pairs have enough units to be tested, and differ on any, (P,)."""
        return np.asarray((self.squares > 0) & (self.sizes >= FEWEST))

    @cached_property
    def freedom(self) -> Floats:
        """Degrees of freedom of each pair, 1 at least, (P,)."""
        return np.asarray(np.maximum(self.sizes - 1, 1.0))

    @cached_property
    def scores(self) -> Floats:
        """The test statistic of each pair as a normal quantile with the sign of its mean, (P,).

        It is computed from Student's statistic, or from Hall's where that is smaller, which is
        where the longer tail is on the side of 0.

        Notes
        -----
        With Student's t and the skewness over the root of the units, a < 0, Hall's statistic is
        t + a t^2 / 3 + a^2 t^3 / 27 + a / 6.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            student = np.abs(self.means) / self.errors
        student = np.where(self.testable, np.minimum(student, _FAR), 0.0)
        bend = np.where(self.testable, np.minimum(np.sign(self.means) * self._bend, 0), 0.0)
        hall = student + bend * student**2 / 3 + bend**2 * student**3 / 27 + bend / 6
        statistic = np.clip(hall, student / _MOST_BENT, student)
        return np.asarray(np.sign(self.means) * as_normal(statistic, self.freedom))

    @cached_property
    def _bend(self) -> Floats:
        """The skewness over the root of the units, (P,), shrunk where units are few."""
        return np.asarray(self.skewness * np.sqrt(self.sizes) / (self.sizes + _NOISY))

    def limits(self, critical: float, tested: Mask) -> Limits:
        """Return the mean differences with their limits at a normal quantile, (P,) each.

        These are 0 where two methods are equal on all units, and infinite of pairs not `tested`.
        """
        student = as_student(critical, self.freedom)
        mean = np.nan_to_num(self.means)
        has_limits = tested & (self.errors > 0)
        is_equal = (self.squares <= 0) & (self.sizes >= FEWEST)
        ends = []
        for side in (-1, 1):
            with np.errstate(invalid="ignore"):
                end = mean + side * _hall_reach(student, -side * self._bend) * self.errors
            ends.append(np.where(has_limits, end, np.where(is_equal, 0.0, side * np.inf)))
        return Limits(self.means, *ends)


def as_normal(statistic: Floats, freedom: Floats | float) -> Floats:
    """Return Student's statistics as normal quantiles (Wallace 1959)."""
    scale = np.sqrt(freedom) * (8 * freedom + 1) / (8 * freedom + 3)
    return np.asarray(scale * np.sqrt(np.log1p(statistic**2 / freedom)))


def as_student(quantile: float, freedom: Floats | float) -> Floats:
    """Return the Student's statistic of a normal quantile: the inverse of :func:`as_normal`."""
    scale = np.sqrt(freedom) * (8 * freedom + 1) / (8 * freedom + 3)
    return np.asarray(np.sqrt(freedom * np.expm1((quantile / scale) ** 2)))


def _hall_reach(student: Floats, bend: Floats) -> Floats:
    """Return how many standard errors a limit is from the mean: Student's, or Hall's if larger.

    Parameters
    ----------
    student : (P,) Student's quantiles.
    bend : (P,) the skewness over the root of the units, negative where the longer tail is on this
        limit's side.

    Notes
    -----
    The inverse of Hall's statistic at the quantile t is 3 / a ((1 + a (t - a / 6))^(1/3) - 1).
    """
    bend = np.where(bend < -1e-6, bend, -1e-6)
    hall = 3 / bend * (np.cbrt(1 + bend * (student - bend / 6)) - 1)
    return np.asarray(np.clip(hall, student, _MOST_BENT * student))


def paired_units(
    values: Floats,
    group: Codes,
    unit: Codes,
    *,
    equal_unit_weights: bool = True,
    binary: bool = False,
    generator: Generator,
) -> PairedUnits:
    """Return the paired differences of all pairs of methods.

    Parameters
    ----------
    values : (M, C) scores of each method in each cell, such as a split of a task or a question;
        NaN where there is none. A pair is compared on the cells that both have.
    group : (C,) whole numbers from 0: the task of each cell. Cells of a task are averaged.
    unit : (K,) the unit of each task.
    equal_unit_weights : whether units have equal weights in the mean; otherwise tasks have, and a
        unit's weight is the number of its tasks.
    binary : whether each unit is one question, right or wrong. If two methods do not differ, their
        differences are then symmetric, however skewed the observed ones are.
    generator : assigns units to blocks if they are too many to be flipped one by one.

    Returns
    -------
    Pairs in the order of ``numpy.triu_indices(M, 1)``.
    """
    units = int(unit.max()) + 1
    first, second = np.triu_indices(len(values), 1)
    most_blocks, complete = _BLOCKS, bool(np.isfinite(values).all())
    if not complete:
        most_blocks = int(np.clip(_MOST_SUMS // len(first), _FEWEST_BLOCKS, _BLOCKS))
    block = np.arange(units)
    if units > most_blocks:
        block = generator.permutation(units) % most_blocks
    of_units = values, group, unit, block, equal_unit_weights
    pair = _pair_complete if complete else _pair_with_holes
    statistics, blocks, weights = pair(*of_units)
    if binary:
        statistics["skewness"] = np.zeros(len(first))
    return PairedUnits(
        len(values), first, second, **statistics, blocks=blocks, weights=weights, complete=complete
    )


def _pair_complete(
    values: Floats, group: Codes, unit: Codes, block: Codes, equal_unit_weights: bool
) -> tuple[dict[str, Floats], Sums, Sums]:
    """Return statistics, blocks and weights of methods that were all run on all cells.

    `block` (U,) is the block of each unit, whose signs are flipped together; the others are as in
    :func:`paired_units`.
    """
    n_cells, n_tasks = np.bincount(group), np.bincount(unit)
    units = len(n_tasks)
    task_means = survey.sums(values - values.mean(axis=0), group, len(n_cells)) / n_cells
    unit_values, weight = survey.sums(task_means, unit, units), n_tasks.astype(float)
    if equal_unit_weights:
        unit_values, weight = unit_values / n_tasks, np.ones(units)
    total_weight = weight.sum()
    method_means = unit_values.sum(axis=1) / total_weight
    statistics = _statistics_of_pairs(unit_values, method_means, weight, total_weight)
    block_sums = survey.sums(unit_values, block, int(block.max()) + 1).T
    weights = np.bincount(block, weight)[:, None]
    return statistics, block_sums.astype(np.float32), weights.astype(np.float32)


def _statistics_of_pairs(
    unit_values: Floats, method_means: Floats, weight: Floats, total_weight: float
) -> dict[str, Floats]:
    """Return the statistics of the differences of all pairs of M methods over U units.

    Parameters
    ----------
    unit_values : (M, U) what each unit adds to each method's mean, times `total_weight`.
    method_means : (M,) the methods' means.
    weight : (U,) the factors of a mean difference that is subtracted from units' differences.
    total_weight : the sum of the units' weights, by which sums become means.

    Notes
    -----
    There are O(M^2) pairs, and each needs its U differences for the sums of squares and of cubes:
    cubes of differences do not follow from sums over single methods. An (M, M, U) array of all
    differences would not fit into memory where methods and units are many. So one method at a time
    is compared with those after it, which needs an (M, U) array, and fills the moments in the order
    of the upper triangle.
    """
    methods, units = unit_values.shape
    pairs = methods * (methods - 1) // 2
    means, squares, centred, cubes = (np.zeros(pairs) for _ in range(4))
    start = 0
    for method in range(methods - 1):
        difference = unit_values[method] - unit_values[method + 1 :]
        pairs_of_method = slice(start, start + len(difference))
        means[pairs_of_method] = method_means[method] - method_means[method + 1 :]
        squares[pairs_of_method] = np.einsum("pu,pu->p", difference, difference)
        difference -= means[pairs_of_method, None] * weight
        square = difference * difference
        centred[pairs_of_method] = square.sum(axis=1)
        cubes[pairs_of_method] = np.einsum("pu,pu->p", square, difference)
        start = pairs_of_method.stop
    return _statistics(np.full(pairs, float(units)), total_weight, means, squares, centred, cubes)


def _statistics(
    sizes: Floats,
    total_weight: Floats | float,
    means: Floats,
    squares: Floats,
    centred: Floats,
    cubes: Floats,
) -> dict[str, Floats]:
    """Return the fields of :class:`PairedUnits` that follow from moments over units, (P,) each.

    Parameters
    ----------
    total_weight : sums of the units' weights.
    squares : sums of squared differences.
    centred, cubes : sums of squares and of cubes of differences around their means.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = np.sqrt(centred * sizes / (sizes - 1)) / total_weight
        skewness = cubes / sizes / (centred / sizes) ** 1.5
    return {
        "sizes": sizes,
        "means": means,
        "errors": errors,
        "squares": squares,
        "centred": centred,
        "skewness": np.where(np.isfinite(skewness), skewness, 0.0),
    }


def _pair_with_holes(
    values: Floats, group: Codes, unit: Codes, block: Codes, equal_unit_weights: bool
) -> tuple[dict[str, Floats], Sums, Sums]:
    """Return what :func:`_pair_complete` does, over the cells that both methods were run on."""
    measured = np.isfinite(values)
    pairs = len(values) * (len(values) - 1) // 2
    with np.errstate(invalid="ignore"):
        centre = np.where(measured, values, 0).sum(axis=0) / np.maximum(measured.sum(axis=0), 1)
    filled = np.where(measured, values - centre, 0.0)
    is_measured = measured.astype(np.float64)
    # (i, j) -> the sum over units of t^i w^j, where a unit's total t is the sum of a pair's
    # differences on it, and its weight w the number of them.
    sums = {(i, j): np.zeros(pairs) for i in range(4) for j in range(4 - i)}
    blocks = np.zeros((int(block.max()) + 1, pairs), np.float32)
    weights = np.zeros_like(blocks)
    for units, total, weight in _unit_sums(filled, is_measured, group, unit):
        has_weight = (weight > 0).astype(float)
        if equal_unit_weights:
            total = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
            weight = has_weight
        totals = [has_weight, total, total**2, total**2 * total]
        factors = [has_weight, weight, weight**2, weight**2 * weight]
        for (i, j), power_sum in sums.items():
            power_sum += (totals[i] * factors[j]).sum(axis=0)
        np.add.at(blocks, block[units], total)
        np.add.at(weights, block[units], weight)
    return _statistics_of_sums(sums), blocks, weights


def _statistics_of_sums(sums: Mapping[tuple[int, int], Floats]) -> dict[str, Floats]:
    """Return the statistics of the differences t around m w, where m is the mean.

    Parameters
    ----------
    sums : (i, j) -> sums over units of t^i w^j, (P,).

    Notes
    -----
    m = sum(t) / sum(w), and the sums of (t - m w)^2 and (t - m w)^3 are expanded::

        sum(t^2) - 2 m sum(t w) + m^2 sum(w^2)
        sum(t^3) - 3 m sum(t^2 w) + 3 m^2 sum(t w^2) - m^3 sum(w^3)
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        m = sums[1, 0] / sums[0, 1]
        centred = sums[2, 0] - 2 * m * sums[1, 1] + m**2 * sums[0, 2]
        centred = np.where(centred > _ROUNDING**1.5 * sums[2, 0], centred, 0.0)
        cubes = sums[3, 0] + m * (3 * m * sums[1, 2] - 3 * sums[2, 1] - m**2 * sums[0, 3])
    # A single unit has no standard error.
    total_weight = np.where(sums[0, 0] > 1, sums[0, 1], np.nan)
    squares, centred = np.nan_to_num(sums[2, 0]), np.nan_to_num(centred)
    return _statistics(sums[0, 0], total_weight, m, squares, centred, cubes)


def _unit_sums(
    filled: Floats, is_measured: Floats, group: Codes, unit: Codes
) -> Iterator[tuple[Positions, Floats, Floats]]:
    """Yield units (k,), the sums of each pair's differences on them and their numbers, (k, P).

    If every unit has a single cell, as questions have, many units are yielded at a time; otherwise
    one.

    Parameters
    ----------
    filled : (M, C) scores, 0 where there is none.
    is_measured : (M, C) 1 where there is a score, else 0.
    group, unit : (C,) the task of each cell, and (K,) the unit of each task.
    """
    first, second = np.triu_indices(len(filled), 1)
    units = int(unit.max()) + 1
    if len(group) == len(unit) == units:
        cells = np.argsort(unit[group], kind="stable")
        step = max(_CHUNK // (8 * len(first)), 1)
        for start in range(0, units, step):
            some_units = np.arange(start, min(start + step, units))
            value = filled[:, cells[some_units]].T
            present = is_measured[:, cells[some_units]].T
            in_both = present[:, first] * present[:, second]
            yield some_units, (value[:, first] - value[:, second]) * in_both, in_both
        return
    cells_by_task = _members(group, int(group.max()) + 1)
    for one_unit, tasks in enumerate(_members(unit, units)):
        total, weight = np.zeros((2, 1, len(first)))
        for task in tasks:
            cells = cells_by_task[task]
            value, present = filled[:, cells], is_measured[:, cells]
            # sums[i, j]: the sum of the scores of method i on the cells that j was also run on.
            sums = value @ present.T
            in_both = (present @ present.T)[first, second]
            total[0] += (sums[first, second] - sums[second, first]) / np.maximum(in_both, 1.0)
            weight[0] += in_both > 0
        yield np.array([one_unit]), total, weight


def _members(code: Codes, count: int) -> list[Positions]:
    """Return the positions of each of the codes 0 .. count - 1."""
    order = np.argsort(code, kind="stable")
    return np.split(order, np.searchsorted(code[order], np.arange(1, count)))


def fewest_units(error_rate: float) -> int:
    """Return the least number of units with which a flip can be rarer than `error_rate`."""
    return 1 + ceil(log2(1 / error_rate))


def unseen_share(units: int, methods: int, error_rate: float) -> float:
    """Return the share of units on which a method may do what none of so many units shows.

    What some method does on more than that, such as a failure, is seen on one unit at least, for
    all methods at once, with half of the error rate. The other half is little enough for what is
    seen on one or two units alone.
    """
    return float(1 - (error_rate / (2 * methods)) ** (1 / units))


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """Statements about all pairs of methods that hold at once.

    Attributes
    ----------
    better : (M, M) whether the row is surely better than the column.
    limits : (P,) the mean differences, with limits that hold together; infinite where a pair cannot
        be tested.
    may_be_best : (M,) whether a method may be the best on average; the best one is among them.
    p_values : (P,) adjusted p-values: the chance, if methods do not differ, of so large a statistic
        among all pairs.
    critical : the normal quantile of the intervals.
    flipped : whether the tests flipped signs; otherwise they are Student's.
    level : the largest p-value with which a pair is told apart.
    """

    better: Mask
    limits: Limits
    may_be_best: Mask
    p_values: Floats
    critical: float
    flipped: bool
    level: float


def simultaneous(
    paired: PairedUnits, *, error_rate: float = 0.05, generator: Generator, flips: int = 1999
) -> Simultaneous:
    """Test all pairs of methods, with intervals of all pairs and the methods that may be best.

    Parameters
    ----------
    paired : the paired differences; larger values are better.
    error_rate : the chance that any of these statements is wrong.
    generator : draws the signs.
    flips : how many flips are drawn if there are too many to make all.

    Notes
    -----
    Pairs: the largest statistic of all pairs. Intervals: the largest statistic of flipped
    residuals, at least Student's of one pair and at most Bonferroni's; they agree with the pairs
    (:func:`agreeing`), so that both err together. Ranks and the best methods follow from the pairs:
    a method may be the best unless another is surely better. A test of each method against all
    others would exclude one or another of many equally good ones far more often.
    """
    level = _SPENT * error_rate
    enough = paired.testable & (paired.sizes >= fewest_units(level))
    flipped = bool(enough.any())
    if flipped:
        p_values, critical = _test_by_flips(paired, enough, level, generator, flips)
    else:
        p_values, critical = _test_by_student(paired, level)
    told_apart = p_values <= level
    first_is_ahead = paired.means > 0
    ahead = np.where(first_is_ahead, paired.first, paired.second)
    behind = np.where(first_is_ahead, paired.second, paired.first)
    better = np.zeros((paired.methods, paired.methods), bool)
    better[ahead[told_apart], behind[told_apart]] = True
    limits = agreeing(paired.limits(critical, enough if flipped else paired.testable), told_apart)
    may_be_best = np.asarray(~better.any(axis=0))
    if not may_be_best.any():  # each is beaten by another, on other units
        may_be_best[:] = True
    return Simultaneous(better, limits, may_be_best, p_values, critical, flipped, level)


def agreeing(limits: Limits, told_apart: Mask) -> Limits:
    """Return limits (P,) that are on one side of 0 exactly where a pair is told apart.

    The test is exact where the interval is not quite: it is cut off at 0, or reaches to 0.
    """
    means, lower, upper = limits
    ahead, behind = told_apart & (means > 0), told_apart & (means < 0)
    lower = np.where(ahead, np.maximum(lower, 0.0), np.minimum(lower, 0.0))
    return Limits(means, lower, np.where(behind, np.minimum(upper, 0.0), np.maximum(upper, 0.0)))


def _test_by_student(paired: PairedUnits, error_rate: float) -> tuple[Floats, float]:
    """Test all pairs by Student's t with Bonferroni's correction; see :func:`_test_by_flips`."""
    pairs = max(int(paired.testable.sum()), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(paired.errors > 0, paired.means / paired.errors, 0.0)
    statistic = np.where(paired.testable, statistic, 0.0)
    # Hall's correction is not used: the skewness of so few units is noise.
    one_sided = special.stdtr(paired.freedom, -np.abs(statistic))
    freedom = float(np.median(paired.freedom[paired.testable])) if paired.testable.any() else 1.0
    student = special.stdtrit(freedom, 1 - error_rate / (2 * pairs))
    critical = float(as_normal(student, freedom))
    return np.minimum(2 * pairs * one_sided, 1.0), critical


def _test_by_flips(
    paired: PairedUnits, enough: Mask, error_rate: float, generator: Generator, flips: int
) -> tuple[Floats, float]:
    """Test all pairs by flipping the signs of their differences.

    Returns
    -------
    Adjusted p-values, (P,), and the normal quantile of the intervals of all pairs together.

    Parameters
    ----------
    paired : the paired differences.
    enough : (P,) the pairs with enough units; others are not tested, and have a p-value of 1.
    error_rate : the chance that any statement is wrong.
    generator, flips : as in :func:`simultaneous`.
    """
    signs = _signs(len(paired.blocks), flips, len(enough), generator)
    statistics, residuals = _largest_of_flips(paired, enough, signs)
    observed = np.abs(paired.scores) * (1 - 1e-6)
    exceeded = len(statistics) - np.searchsorted(np.sort(statistics), observed)
    # If flips are drawn at random, the observed data count as one more flip.
    extra = int(len(paired.blocks) > _ALL_FLIPS)
    p_values = np.where(enough, (exceeded + extra) / (len(statistics) + extra), 1.0)
    # The quantile of the largest residuals, from that of one pair up to Bonferroni's.
    of_pairs = -special.ndtri(error_rate / (2 * np.array([1, max(int(enough.sum()), 1)])))
    quantile = np.quantile(residuals, 1 - error_rate, method="higher")
    return p_values, float(np.clip(quantile, *of_pairs))


def _largest_of_flips(
    paired: PairedUnits, enough: Mask, signs_in_chunks: Iterator[Sums]
) -> tuple[Sums, Sums]:
    """Return the largest statistic and the largest residual of each flip, as normal quantiles.

    Parameters
    ----------
    paired, enough : as in :func:`_test_by_flips`.
    signs_in_chunks : the flips.
    """
    of_pairs = np.where(enough, [paired.squares, paired.centred], 0.0)
    with np.errstate(divide="ignore"):
        inverse = np.where(of_pairs > 0, 1 / np.sqrt(of_pairs), 0.0).astype(np.float32)
    mean = np.nan_to_num(paired.means).astype(np.float32)
    # If all pairs have the same number of units, only the largest ratios need to be converted to
    # normal quantiles, because the conversion is then monotone over all pairs.
    same_sizes = len(np.unique(paired.sizes[enough])) == 1
    largest = []
    for signs in signs_in_chunks:
        sums = signs @ paired.blocks
        if paired.complete:
            sums = sums[:, paired.first] - sums[:, paired.second]
        residual_sums = sums - mean * (signs @ paired.weights)
        ratios = [np.abs(sums) * inverse[0], np.abs(residual_sums) * inverse[1]]
        if not same_sizes:
            sizes = np.maximum(paired.sizes, 2).astype(np.float32)
            freedom = paired.freedom.astype(np.float32)
            ratios = [_ratios_as_normal(ratio, sizes, freedom, 1 - 1e-6) for ratio in ratios]
        largest.append([ratio.max(axis=1) for ratio in ratios])
    statistics, residuals = np.concatenate(largest, axis=1).astype(float)
    if not same_sizes:
        return statistics, residuals
    pair = int(np.argmax(enough))
    of_all = paired.sizes[pair], paired.freedom[pair], 1 - 1e-12
    statistics, residuals = (_ratios_as_normal(of, *of_all) for of in (statistics, residuals))
    return statistics, residuals


def _ratios_as_normal(ratio: Sums, size: Sums, freedom: Sums, most: float) -> Sums:
    """Return sums over the root of sums of squares, (B, P) or (B,), as normal quantiles.

    Parameters
    ----------
    size, freedom : numbers of units and degrees of freedom of each pair, or of all.
    most : the largest squared ratio over the size that is converted.

    Notes
    -----
    Student's statistic t of a ratio r over n units satisfies t^2 / f = (r^2 / n) / (1 - r^2 / n),
    with f = n - 1 degrees of freedom; :func:`as_normal` needs log(1 + t^2 / f) = -log(1 - r^2 / n).
    """
    scale = np.sqrt(freedom) * (8 * freedom + 1) / (8 * freedom + 3)
    share = np.clip(ratio**2 / size, 0.0, most)
    return np.asarray(np.sign(ratio) * scale * np.sqrt(-np.log1p(-share)))


def _signs(blocks: int, flips: int, pairs: int, generator: Generator) -> Iterator[Sums]:
    """Yield signs of blocks in chunks, (B, G): all flips of few blocks, otherwise random ones."""
    if blocks <= _ALL_FLIPS:
        # Of each flip and its opposite one is enough: absolute statistics are the same.
        codes = np.arange(1 << (blocks - 1))
        signs = 1 - 2.0 * ((codes[:, None] >> np.arange(blocks)) & 1)
    else:
        signs = generator.integers(0, 2, (flips, blocks), dtype=np.int8) * 2.0 - 1.0
    step = max(_CHUNK // max(pairs, 1), 1)
    for start in range(0, len(signs), step):
        yield signs[start : start + step].astype(np.float32)
