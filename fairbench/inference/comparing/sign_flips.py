"""Which of many methods differ, all pairs at once, by flipping the signs of paired differences.

A unit is what was drawn at random: a family of tasks, a task, or a question. On each unit two
methods have one paired difference. If a pair is alike, and its differences are as often positive as
negative of any size, then turning the sign of whole units round changes nothing: the largest
statistic over all pairs has a known distribution, whatever tails the scores have and however the
pairs go together. Of right and wrong answers this is McNemar's exact test, of all pairs at once.

Where differences are skewed, such as of a method that fails now and then, flips say too little.
The statistic is therefore at most Hall's, which knows the skewness (Hall 1992, Journal of the Royal
Statistical Society B 54). What no construction can see is a failure so rare that the units hold
none.

With fewer than :func:`fewest_units` units no flip can be rare enough. Student's t of each pair with
Holm's correction stands in for it; it is careful where tails are heavy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Floats, Mask

Sums = NDArray[np.floating[Any]]  # sums over flips are of single precision
Places = NDArray[np.intp]
FEWEST = 3  # units from which a pair is judged at all
_ALL_FLIPS = 12  # units up to which every flip is made
# More units than this are flipped in so many blocks of units: fewer signs, and sums of less memory.
_BLOCKS = 1024
# Where methods have holes, each pair has sums of its own: of many pairs there are fewer blocks.
_MOST_SUMS, _FEWEST_BLOCKS = 100_000_000, 16
_CHUNK = 1 << 23  # numbers that are worked on at once
# Of n units, n / (n + 5) of their skewness is believed: that of few units is mostly noise. What
# intervals made with it cover is in docs/coverage.md, "Rankings of methods".
_NOISY = 5
# Hall's end lies at most so many times as far out as Student's. His formula is an expansion for
# small skewness, and has no bound of its own where few units are very skewed.
_MOST_BENT = 2
_FAR = 1e9  # the statistic of a mean whose differences do not vary
_ROUNDING = 1e-9  # of a sum of squares: a difference this small is rounding


@dataclass(frozen=True, eq=False)
class PairedUnits:
    """Paired differences of P pairs of M methods over U units.

    Attributes
    ----------
    methods : M.
    first, second : (P,) the methods of each pair; a difference is first - second.
    sizes : (P,) on how many units each pair was measured.
    means, errors : (P,) mean differences, and their standard errors.
    squares, centred : (P,) sums of squared differences, as they are and around their means.
    skewness : (P,) of the differences.
    blocks : flipped together: (G, M) sums of each method where all were run everywhere, otherwise
        (G, P) sums of each pair.
    weights : (G, 1) or (G, P) the size of each block's sums, in the unit of the means.
    complete : whether `blocks` are of methods.
    """

    methods: int
    first: Places
    second: Places
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
    def judged(self) -> Mask:
        """Which pairs differ on enough units to be judged, (P,)."""
        some = self.squares > 0
        return np.asarray(some & (self.sizes >= FEWEST))

    @cached_property
    def freedom(self) -> Floats:
        """Degrees of freedom of each pair, 1 at least, (P,)."""
        return np.asarray(np.maximum(self.sizes - 1, 1.0))

    @cached_property
    def scores(self) -> Floats:
        """How far each mean is surely from 0, as a normal quantile with its sign, (P,).

        Of Student's statistic, or of Hall's where the longer tail is on the other side.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            student = np.abs(self.means) / self.errors
        student = np.where(self.judged, np.minimum(student, _FAR), 0.0)
        bend = np.where(self.judged, np.minimum(np.sign(self.means) * self._bend, 0), 0.0)
        hall = student + bend * student**2 / 3 + bend**2 * student**3 / 27 + bend / 6
        statistic = np.clip(hall, student / _MOST_BENT, student)
        return np.asarray(np.sign(self.means) * as_normal(statistic, self.freedom))

    @cached_property
    def _bend(self) -> Floats:
        """The skewness over the root of the units, (P,); that of few units is partly noise."""
        return np.asarray(self.skewness * np.sqrt(self.sizes) / (self.sizes + _NOISY))

    def flipped_sums(self, signs: Sums) -> tuple[Sums, Sums]:
        """Return sums of differences, and of weights, with signs of blocks (B, G) turned, (B, P).

        The sums of weights are (B, 1) where all pairs have the same.
        """
        sums = signs @ self.blocks
        if self.complete:
            sums = sums[:, self.first] - sums[:, self.second]
        return sums, signs @ self.weights

    def limits(self, critical: float) -> tuple[Floats, Floats]:
        """Return the ends of each pair's interval at a normal quantile, (P,) each."""
        student = as_student(critical, self.freedom)
        mean = np.nan_to_num(self.means)
        below, above = (_hall_reach(student, sign * self._bend) for sign in (1, -1))
        with np.errstate(invalid="ignore"):
            return mean - below * self.errors, mean + above * self.errors


def as_normal(statistic: Floats, freedom: Floats | float) -> Floats:
    """Return Student's statistics as normal quantiles (Wallace 1959)."""
    scale = np.sqrt(freedom) * (8 * freedom + 1) / (8 * freedom + 3)
    return np.asarray(scale * np.sqrt(np.log1p(statistic**2 / freedom)))


def as_student(quantile: float, freedom: Floats | float) -> Floats:
    """Return Student's statistics that :func:`as_normal` makes a normal quantile of."""
    scale = np.sqrt(freedom) * (8 * freedom + 1) / (8 * freedom + 3)
    return np.asarray(np.sqrt(freedom * np.expm1((quantile / scale) ** 2)))


def _hall_reach(student: Floats, bend: Floats) -> Floats:
    """Return how many standard errors an end is away: Student's, or more where a tail is long.

    Parameters
    ----------
    bend : the skewness over the root of the units, negative where this end's tail is the longer.
    """
    bend = np.where(bend < -1e-6, bend, -1e-6)
    hall = 3 / bend * (np.cbrt(1 + bend * (student - bend / 6)) - 1)
    return np.asarray(np.clip(hall, student, _MOST_BENT * student))


def paired_units(
    values: Floats,
    group: NDArray[np.integer],
    unit: NDArray[np.integer],
    *,
    alike: bool = True,
    strata: NDArray[np.integer] | None = None,
    binary: bool = False,
    generator: np.random.Generator,
) -> PairedUnits:
    """Return the paired differences of all pairs of methods.

    Parameters
    ----------
    values : (M, C) scores of each method in each cell, such as a split of a task or a question;
        NaN where there is none. A pair is compared on the cells that both have.
    group : (C,) whole numbers from 0: the task of each cell. Cells of a task are averaged.
    unit : (K,) the unit of each task.
    alike : whether units count alike in the mean; otherwise tasks do, and a unit counts as many
        times as it has tasks.
    strata : (U,) whole numbers from 0: the strata that units were drawn from, each with two units
        at least. Strata count alike, and what they differ by is no error. All methods must have all
        cells.
    binary : whether each unit is one question, right or wrong. Differences of methods that are
        alike are then symmetric, however skewed those at hand are.

    Returns
    -------
    Pairs in the order of ``numpy.triu_indices(M, 1)``.
    """
    methods, units = len(values), int(unit.max()) + 1
    first, second = np.triu_indices(methods, 1)
    measured = np.isfinite(values)
    block, most = np.arange(units), _BLOCKS
    if not measured.all():
        most = int(np.clip(_MOST_SUMS // len(first), _FEWEST_BLOCKS, _BLOCKS))
    if units > most:
        block = generator.permutation(units) % most
    if measured.all():
        paired = _complete(values, group, unit, block, first, second, alike=alike, strata=strata)
    else:
        paired = _with_holes(values, measured, group, unit, block, first, second, alike=alike)
    return replace(paired, skewness=np.zeros(len(first))) if binary else paired


def _complete(
    values: Floats,
    group: NDArray[np.integer],
    unit: NDArray[np.integer],
    block: NDArray[np.integer],
    first: Places,
    second: Places,
    *,
    alike: bool,
    strata: NDArray[np.integer] | None,
) -> PairedUnits:
    """Return the differences of methods that were all run on all cells.

    Parameters are those of :func:`paired_units`, and `block` (U,) of the units.
    """
    cells, tasks = np.bincount(group), np.bincount(unit)
    of_task = _summed(values - values.mean(axis=0), group, len(cells)) / cells
    of_unit = _summed(of_task, unit, len(tasks))
    weight = np.ones(len(tasks)) if alike else tasks.astype(float)
    if alike:
        of_unit = of_unit / tasks
    units, pairs = len(tasks), len(first)
    if strata is not None:
        of_unit, of_method = _around_strata(of_unit, strata)
        weight = np.zeros(units)
    else:
        of_method = of_unit.sum(axis=1) / weight.sum()
    means, squares, centred, cubes = (np.zeros(pairs) for _ in range(4))
    start = 0
    for method in range(len(values) - 1):
        difference = of_unit[method] - of_unit[method + 1 :]
        rows = slice(start, start + len(difference))
        means[rows] = of_method[method] - of_method[method + 1 :]
        squares[rows] = np.einsum("pu,pu->p", difference, difference)
        difference -= means[rows, None] * weight
        square = difference * difference
        centred[rows] = square.sum(axis=1)
        cubes[rows] = np.einsum("pu,pu->p", square, difference)
        start = rows.stop
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weight.sum() if strata is None else units - 1.0
        errors = np.sqrt(centred * units / (units - 1)) / total
    return PairedUnits(
        methods=len(values),
        first=first,
        second=second,
        sizes=np.full(pairs, float(units)),
        means=means,
        errors=errors,
        squares=squares,
        centred=centred,
        skewness=_skewness(cubes, centred, units),
        blocks=_summed(of_unit, block, int(block.max()) + 1).T.astype(np.float32),
        weights=np.bincount(block, weight)[:, None].astype(np.float32),
        complete=True,
    )


def _around_strata(values: Floats, strata: NDArray[np.integer]) -> tuple[Floats, Floats]:
    """Return what units (M, U) add to the mean over strata, around 0, and that mean, (M,).

    What a unit of a small stratum adds is larger, and is made larger for the degree of freedom that
    its stratum's mean takes.
    """
    sizes = np.bincount(strata)
    of_stratum = np.stack([np.bincount(strata, row, len(sizes)) for row in values]) / sizes
    share = len(values[0]) / len(sizes) / sizes * np.sqrt(sizes / np.maximum(sizes - 1, 1))
    return (values - of_stratum[:, strata]) * share[strata], of_stratum.mean(axis=1)


def _skewness(cubes: Floats, squares: Floats, size: Floats | int) -> Floats:
    """Return the skewness from sums of powers around the mean; 0 of what does not vary."""
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = cubes / size / (squares / size) ** 1.5
    return np.where(np.isfinite(skewness), skewness, 0.0)


def _summed(values: Floats, code: NDArray[np.integer], count: int) -> Floats:
    """Return the sums of columns of equal code, (..., count)."""
    if len(code) == count and (code == np.arange(count)).all():
        return values
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(count))
    return np.asarray(np.add.reduceat(values[:, order], starts, axis=1))


def _with_holes(
    values: Floats,
    measured: Mask,
    group: NDArray[np.integer],
    unit: NDArray[np.integer],
    block: NDArray[np.integer],
    first: Places,
    second: Places,
    *,
    alike: bool,
) -> PairedUnits:
    """Return the differences over the cells that both methods of a pair were run on.

    Parameters are those of :func:`paired_units`; `measured` (M, C) says where there are scores, and
    `block` (U,) is of the units.
    """
    with np.errstate(invalid="ignore"):
        centre = np.where(measured, values, 0).sum(axis=0) / np.maximum(measured.sum(axis=0), 1)
    filled, is_measured = np.where(measured, values - centre, 0.0), measured.astype(np.float64)
    pairs = len(first)
    sizes, totals, sums, squares = (np.zeros(pairs) for _ in range(4))
    # Sums over units of powers of totals (t) and weights (w), such as t^2 w.
    cubes, ttw, tw, tww = (np.zeros(pairs) for _ in range(4))
    weight_squares, weight_cubes = np.zeros(pairs), np.zeros(pairs)
    blocks = np.zeros((int(block.max()) + 1, pairs), np.float32)
    weights = np.zeros_like(blocks)
    for places, total, weight in _unit_sums(filled, is_measured, group, unit, first, second):
        if alike:
            total = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
            weight = (weight > 0).astype(float)
        sizes += (weight > 0).sum(axis=0)
        totals += weight.sum(axis=0)
        sums += total.sum(axis=0)
        square, weight_square = total**2, weight**2
        squares += square.sum(axis=0)
        cubes += (square * total).sum(axis=0)
        ttw += (square * weight).sum(axis=0)
        tw += (total * weight).sum(axis=0)
        tww += (total * weight_square).sum(axis=0)
        weight_squares += weight_square.sum(axis=0)
        weight_cubes += (weight_square * weight).sum(axis=0)
        np.add.at(blocks, block[places], total)
        np.add.at(weights, block[places], weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / totals
        centred = squares - 2 * means * tw + means**2 * weight_squares
        centred = np.where(centred > _ROUNDING**1.5 * squares, centred, 0.0)
        cubes += means * (3 * means * tww - 3 * ttw - means**2 * weight_cubes)
        errors = np.sqrt(centred * sizes / (sizes - 1)) / totals
    return PairedUnits(
        methods=len(values),
        first=first,
        second=second,
        sizes=sizes,
        means=means,
        errors=np.where(sizes > 1, errors, np.nan),
        squares=np.nan_to_num(squares),
        centred=np.nan_to_num(centred),
        skewness=_skewness(cubes, centred, sizes),
        blocks=blocks,
        weights=weights,
        complete=False,
    )


def _unit_sums(
    filled: Floats,
    is_measured: Floats,
    group: NDArray[np.integer],
    unit: NDArray[np.integer],
    first: Places,
    second: Places,
) -> Iterator[tuple[Places, Floats, Floats]]:
    """Yield units (k,) with sums over tasks of each pair's differences, (k, P), and their number.

    Units of a single cell, as questions are, come many at a time.
    """
    units = int(unit.max()) + 1
    if len(group) == len(unit) == units:
        cells = np.argsort(unit[group], kind="stable")
        step = max(_CHUNK // (8 * len(first)), 1)
        for start in range(0, units, step):
            places = np.arange(start, min(start + step, units))
            value, present = filled[:, cells[places]].T, is_measured[:, cells[places]].T
            in_both = present[:, first] * present[:, second]
            yield places, (value[:, first] - value[:, second]) * in_both, in_both
        return
    cells_of = _members(group, int(group.max()) + 1)
    for place, tasks in enumerate(_members(unit, units)):
        total, weight = np.zeros((1, len(first))), np.zeros((1, len(first)))
        for task in tasks:
            cells = cells_of[task]
            value, present = filled[:, cells], is_measured[:, cells]
            sums, common = value @ present.T, (present @ present.T)[first, second]
            total[0] += (sums[first, second] - sums[second, first]) / np.maximum(common, 1.0)
            weight[0] += common > 0
        yield np.array([place]), total, weight


def _members(code: NDArray[np.integer], count: int) -> list[Places]:
    """Return the places of each code from 0."""
    order = np.argsort(code, kind="stable")
    return np.split(order, np.searchsorted(code[order], np.arange(1, count)))


def fewest_units(wrong: float) -> int:
    """Return the units from which a flip can be rarer than `wrong`."""
    return 1 + ceil(log2(1 / wrong))


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """What holds of all pairs at once.

    Attributes
    ----------
    better : (M, M) whether the row is surely better than the column.
    lower, upper : (P,) ends of intervals that hold together; infinite of pairs not judged.
    may_be_best : (M,) the method that is best on average is among these.
    doubt : (P,) the chance of so large a statistic among all pairs still open, were they alike.
    critical : the normal quantile of the intervals.
    flipped : whether signs were flipped; otherwise Student's t stands in for it.
    level : the doubt up to which a pair is told apart.
    """

    better: Mask
    lower: Floats
    upper: Floats
    may_be_best: Mask
    doubt: Floats
    critical: float
    flipped: bool
    level: float

    @property
    def first_rank(self) -> NDArray[np.int64]:
        """The best rank that each method can have, (M,)."""
        return np.asarray(1 + self.better.sum(axis=0))

    @property
    def last_rank(self) -> NDArray[np.int64]:
        """The worst rank that each method can have, (M,)."""
        return np.asarray(len(self.better) - self.better.sum(axis=1))


def simultaneous(
    paired: PairedUnits,
    *,
    wrong: float = 0.05,
    generator: np.random.Generator,
    flips: int = 1999,
) -> Simultaneous:
    """Return which methods are surely better, intervals of all pairs, and which may be the best.

    Parameters
    ----------
    paired : larger values are better.
    wrong : the chance that any of all this is wrong. Half goes to the pairs and the ranks made of
        them, half to which methods may be the best.

    Notes
    -----
    Pairs: stepdown by the largest statistic (Romano and Wolf 2005, JASA 100). Intervals: the
    largest statistic of flipped residuals, at least Student's of one pair and at most Bonferroni's.
    Where the stepdown tells a pair apart and its interval does not, the interval ends at 0. The
    best: each method is compared with all others at once; one that another surely beats is left
    out (Gupta 1965, Technometrics 7; Hsu 1984, Annals of Statistics 12).
    """
    half = wrong / 2
    needed = fewest_units(half)
    enough = paired.judged & (paired.sizes >= needed)
    if enough.any():
        doubt, critical, beaten = _by_flips(paired, enough, half, generator, flips)
    else:
        doubt, critical, beaten = _by_student(paired, half)
    told_apart = doubt <= half
    ahead, behind = (np.where(paired.means > 0, *places) for places in _both_orders(paired))
    better = np.zeros((paired.methods, paired.methods), bool)
    better[ahead[told_apart], behind[told_apart]] = True
    counted = (enough if enough.any() else paired.judged) & (paired.errors > 0)
    equal = (paired.squares <= 0) & (paired.sizes >= FEWEST)
    mean = np.nan_to_num(paired.means)
    lower, upper = (
        np.where(counted, end, np.where(equal, 0.0, infinite))
        for end, infinite in zip(paired.limits(critical), (-np.inf, np.inf), strict=True)
    )
    lower = np.where(told_apart & (mean > 0), np.maximum(lower, 0.0), lower)
    upper = np.where(told_apart & (mean < 0), np.minimum(upper, 0.0), upper)
    may_be_best = ~beaten & ~better.any(axis=0)
    if not may_be_best.any():  # each is beaten by another, on other units
        may_be_best[:] = True
    flipped = bool(enough.any())
    return Simultaneous(better, lower, upper, may_be_best, doubt, critical, flipped, half)


def _both_orders(paired: PairedUnits) -> tuple[tuple[Places, Places], tuple[Places, Places]]:
    return (paired.first, paired.second), (paired.second, paired.first)


def _by_student(paired: PairedUnits, wrong: float) -> tuple[Floats, float, Mask]:
    """Return adjusted p-values (P,), the critical value, and the methods (M,) surely not best."""
    pairs = max(int(paired.judged.sum()), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        statistic = np.where(paired.errors > 0, paired.means / paired.errors, 0.0)
    statistic = np.where(paired.judged, statistic, 0.0)
    single = special.stdtr(paired.freedom, -np.abs(statistic))  # the skewness of so few is noise
    order = np.argsort(single, kind="stable")
    adjusted = np.empty_like(single)
    steps = np.maximum(pairs - np.arange(len(single)), 1)
    adjusted[order] = np.maximum.accumulate(np.minimum(2 * single[order] * steps, 1.0))
    freedom = float(np.median(paired.freedom[paired.judged])) if paired.judged.any() else 1.0
    reach = special.stdtrit(freedom, 1 - wrong / (2 * pairs))
    critical = float(as_normal(reach, freedom))
    sure = single <= wrong / max(paired.methods - 1, 1)
    beaten = np.zeros(paired.methods, bool)
    beaten[np.where(paired.means > 0, paired.second, paired.first)[sure]] = True
    return adjusted, critical, beaten


def _by_flips(
    paired: PairedUnits, enough: Mask, wrong: float, generator: np.random.Generator, flips: int
) -> tuple[Floats, float, Mask]:
    """Return, by flipping signs, what :func:`_by_student` returns.

    Parameters
    ----------
    enough : (P,) the pairs with enough units; others are not judged, and have a p-value of 1.
    """
    observed = np.where(enough, np.abs(paired.scores), 0.0)
    order = np.argsort(observed, kind="stable")
    methods = paired.methods
    hardest = np.zeros(methods)  # the largest statistic against each method
    signed = np.where(enough, paired.scores, 0.0)
    np.maximum.at(hardest, paired.second, signed)
    np.maximum.at(hardest, paired.first, -signed)
    inverse_root, inverse_residual = (
        _inverse_roots(np.where(enough, sums, 0.0)) for sums in (paired.squares, paired.centred)
    )
    mean = np.nan_to_num(paired.means).astype(np.float32)
    # Where all pairs have as many units, statistics are made normal quantiles after the largest is
    # taken: of fewer numbers.
    same_sizes = len(np.unique(paired.sizes[enough])) == 1
    any_pair = int(np.argmax(enough))
    exceeded, exceeded_hardest = np.zeros(len(order)), np.zeros(methods)
    largest, made = [], 0
    for signs in _signs(len(paired.blocks), flips, len(order), generator):
        sums, weights = paired.flipped_sums(signs)
        residual: Sums = np.abs(sums - mean * weights) * inverse_residual
        statistic: Sums = sums * inverse_root
        if not same_sizes:
            residual, statistic = (_normal_of(array, paired) for array in (residual, statistic))
        largest.append(residual.max(axis=1))
        made += len(signs)
        against: Sums = np.zeros((len(signs), methods), np.float32)
        _largest_against(statistic, paired, against)
        running: Sums = np.maximum.accumulate(np.abs(statistic)[:, order], axis=1)
        if same_sizes:
            running, against = (_of_pair(array, paired, any_pair) for array in (running, against))
        exceeded[order] += (running >= observed[order] * (1 - 1e-6)).sum(axis=0)
        exceeded_hardest += (against >= hardest * (1 - 1e-6)).sum(axis=0)
    # Of flips at random, the data as they are count as one more.
    extra = 0 if _makes_all(len(paired.blocks)) else 1
    p_values = (exceeded + extra) / (made + extra)
    descending = order[::-1]
    adjusted = np.empty_like(p_values)
    adjusted[descending] = np.maximum.accumulate(p_values[descending])
    adjusted[~enough] = 1.0
    residuals = np.concatenate(largest).astype(float)
    if same_sizes:
        residuals = _of_pair(residuals, paired, any_pair)
    critical = _bounded_critical(residuals, wrong, int(enough.sum()))
    beaten = (exceeded_hardest + extra) / (made + extra) <= wrong
    return adjusted, critical, np.asarray(beaten & (hardest > 0))


def _bounded_critical(largest: Floats, wrong: float, pairs: int) -> float:
    """Return the quantile of largest residuals, from that of one pair up to Bonferroni's."""
    critical = float(np.quantile(largest, 1 - wrong, method="higher"))
    bonferroni = -float(special.ndtri(wrong / (2 * max(pairs, 1))))
    return min(max(critical, -float(special.ndtri(wrong / 2))), bonferroni)


def _inverse_roots(sums: Floats) -> NDArray[np.float32]:
    """Return 1 over the roots of sums of squares, 0 of none."""
    with np.errstate(divide="ignore"):
        return np.where(sums > 0, 1 / np.sqrt(sums), 0.0).astype(np.float32)


def _of_pair(statistic: Sums, paired: PairedUnits, place: int) -> Floats:
    """Return sums over the root of squares as normal quantiles, all with the units of one pair."""
    size, freedom = paired.sizes[place], paired.freedom[place]
    scale = np.sqrt(freedom) * (8 * freedom + 1) / (8 * freedom + 3)
    share = np.clip(statistic.astype(np.float64) ** 2 / size, 0.0, 1 - 1e-12)
    return np.asarray(np.sign(statistic) * scale * np.sqrt(-np.log1p(-share)))


def _normal_of(statistic: Sums, paired: PairedUnits) -> Sums:
    """Return sums over the root of squares, (B, P), as normal quantiles with their signs."""
    freedom = paired.freedom.astype(np.float32)
    scale = np.sqrt(freedom) * (8 * freedom + 1) / (8 * freedom + 3)
    share = statistic**2 / np.maximum(paired.sizes, 2).astype(np.float32)
    np.clip(share, 0.0, 1 - 1e-6, out=share)
    return np.asarray(np.sign(statistic) * scale * np.sqrt(-np.log1p(-share)))


def _largest_against(statistic: Sums, paired: PairedUnits, against: Sums) -> None:
    """Put the largest statistic against each method, of each flip, into `against` (B, M)."""
    methods, start = paired.methods, 0
    for method in range(methods - 1):  # pairs are in the order of the upper triangle
        stop = start + methods - 1 - method
        ahead = statistic[:, start:stop]
        np.maximum(against[:, method], -ahead.min(axis=1), out=against[:, method])
        np.maximum(against[:, method + 1 :], ahead, out=against[:, method + 1 :])
        start = stop


def _makes_all(blocks: int) -> bool:
    return blocks <= _ALL_FLIPS


def _signs(
    blocks: int, flips: int, pairs: int, generator: np.random.Generator
) -> Iterator[NDArray[np.float32]]:
    """Yield signs of blocks, (B, G): every flip of few blocks, otherwise some at random."""
    if _makes_all(blocks):
        # Each flip and its opposite. Their sizes are equal, but of one method against another, the
        # sign counts, too.
        codes = np.arange(1 << (blocks - 1))
        signs = 1 - 2.0 * ((codes[:, None] >> np.arange(blocks)) & 1)
        signs = np.concatenate([signs, -signs])
    else:
        signs = generator.integers(0, 2, (flips, blocks), dtype=np.int8) * 2.0 - 1.0
    step = max(_CHUNK // max(pairs, 1), 1)
    for start in range(0, len(signs), step):
        yield signs[start : start + step].astype(np.float32)
