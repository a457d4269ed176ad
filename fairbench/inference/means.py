"""Intervals of means of losses, which are skewed, and of whose tails a sample shows little.

Everything is a closed form of a few moments, of any number of groups at once: no draws. An interval
that would not hold is NaN; the constants with ``ROWS`` in their names say from how many
rows on there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Floats
from fairbench.inference.rates import Limits, rate_limits
from fairbench.inference.survey import Design, Sampled, SurveyCounts
from fairbench.metrics.rates import selection_rate

Level = float | Floats

ROWS = 20  # of a mean
# Of a mean of squares or its root: squares have far heavier tails, and of a few rows in a hundred
# that err ten times as much as others fewer would often show none.
ROOT_ROWS = 200
RARE_ROWS = 10  # with the rarer label, of a mean loss of labels
# How far out one more row is put, in distances of the outermost: of losses, of squares, and of
# squares with a heavy tail: between these tail indices it goes from one to the other.
UNSEEN, _UNSEEN_SQUARE, _UNSEEN_HEAVY = 1.5, 2.25, 5.0
_LIGHT, _HEAVY = 0.55, 0.65
_CUBED = 300  # the exponent of two up to which cubes neither overflow nor vanish
_ALL = 40  # from so many rows of the rarer label on, that they had to be 10 plays no part


@dataclass(frozen=True, eq=False)
class Moments:
    """What the interval of a mean is made of, arrays of any one shape.

    Attributes
    ----------
    size, mean, sd : number of rows, their mean and standard deviation (NaN of too few rows).
    skewness : third standardised moment, 0 where nothing varies.
    lowest, highest : the outermost values.
    least, most : how far out values may lie that were not seen, as far as that is known, else NaN.
    """

    size: Floats
    mean: Floats
    sd: Floats
    skewness: Floats
    lowest: Floats
    highest: Floats
    least: Floats
    most: Floats

    @classmethod
    def of(cls, values: ArrayLike) -> Moments:
        """Return the moments over the last axis of (..., n) values."""
        x = np.asarray(values, float)
        n = x.shape[-1]
        mean = x.mean(axis=-1)
        away = x - mean[..., None]
        squares, cubes = (away**2).sum(axis=-1), (away**3).sum(axis=-1)
        size, unknown = np.full(mean.shape, float(n)), np.full(mean.shape, np.nan)
        outermost = x.min(axis=-1), x.max(axis=-1)
        return cls(size, mean, *_spread(size, squares, cubes), *outermost, unknown, unknown)

    @classmethod
    def of_groups(cls, values: Floats, codes: NDArray[np.integer], groups: int) -> Moments:
        """Return the moments (..., G) of (..., n) values in groups 0 .. G - 1.

        Rows are summed up some tens of thousands at a time, in memory that is used again, and the
        parts joined (Pebay 2008, "Formulas for robust, one-pass parallel computation of covariances
        and arbitrary-order statistical moments"). NaN of groups without rows.
        """
        scale = _extreme_scale(values, codes, groups)
        if scale is not None:
            of_scaled = cls.of_groups(values / scale[..., codes], codes, groups)
            sd, mean = of_scaled.sd * scale, of_scaled.mean * scale
            ends = of_scaled.lowest * scale, of_scaled.highest * scale
            return replace(of_scaled, mean=mean, sd=sd, lowest=ends[0], highest=ends[1])
        sums = _Sums.of(values[..., :_AT_ONCE], codes[:_AT_ONCE], groups)
        for start in range(_AT_ONCE, len(codes), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            sums = sums.joined(_Sums.of(values[..., part], codes[part], groups))
        size = np.broadcast_to(sums.size, sums.mean.shape)
        sd, skewness = _spread(size, sums.squares, sums.cubes)
        skewness = np.where(size > 0, skewness, np.nan)
        unknown = np.full(sums.mean.shape, np.nan)
        ends = sums.lowest, sums.highest
        return cls(size, sums.mean, sd, skewness, *ends, unknown, unknown)

    @classmethod
    def by_label(
        cls,
        losses: Floats,
        other: Floats,
        label: NDArray[np.intp],
        codes: NDArray[np.integer],
        groups: int,
    ) -> Moments:
        """Return the moments (..., 2 G) of losses of rows with label 0 and 1, group by group.

        Parameters
        ----------
        losses, other : (..., n) losses with the label (n,) that rows have, and with the other one.
        """
        moments = cls.of_groups(losses, 2 * codes + label, 2 * groups)
        return moments.reaching(*_could_be(losses, other, label, codes, groups))

    def reaching(self, least: Floats, most: Floats) -> Moments:
        """Return these moments, of values that may lie so far out."""
        return replace(self, least=least, most=most)

    @classmethod
    def of_sampled(cls, value: Floats, totals: Floats, sample: Sampled) -> Moments:
        """Return the moments (..., G) of pseudo-values, one of each cluster and group.

        Parameters
        ----------
        value, totals : estimates (..., G), and sums of linearised scores by pair (..., P).

        Notes
        -----
        Their number is Kish's, and their spread the one that gives the same standard error. Their
        outermost lie as much nearer, which is further out than a row of average weight would be:
        where weights vary, the largest of them have not been seen either.
        """
        groups = len(sample.units)
        moments = cls.of_groups(sample.pseudo_values(value, totals), sample.group, groups)
        nearer = np.sqrt(sample.size / np.maximum(sample.units, 1))
        size = np.broadcast_to(sample.size, moments.size.shape)
        lowest, highest = (
            moments.mean + nearer * (array - moments.mean)
            for array in (moments.lowest, moments.highest)
        )
        spread = nearer * moments.sd, nearer * moments.skewness
        return cls(size, moments.mean, *spread, lowest, highest, moments.least, moments.most)

    @classmethod
    def joined(cls, several: Sequence[Moments]) -> Moments:
        """Return moments (..., G) of several sets of groups, one after the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(m, name) for m in several], -1) for name in names))

    def take(self, index: NDArray[np.integer]) -> Moments:
        """Return these moments at some positions of the last axis."""
        return Moments(*(getattr(self, field.name)[..., index] for field in fields(self)))


def _could_be(
    losses: Floats,
    other: Floats,
    label: NDArray[np.intp],
    codes: NDArray[np.integer],
    groups: int,
) -> tuple[Floats, Floats]:
    """Return how little and how much (..., 2 G) the rows of a group could lose, by label.

    That is the mean of the losses of the :data:`RARE_ROWS` rows of the group that would lose least,
    and most, if they had the label.
    """
    ends = np.full((2, *losses.shape[:-1], 2 * groups), np.nan)
    order, rows = by_group(codes, groups), np.bincount(codes, minlength=groups)
    losses, other, label = losses[..., order], other[..., order], label[order]
    for g, stop in enumerate(np.cumsum(rows).tolist()):
        rows_of_group, few = slice(stop - rows[g], stop), min(rows[g], RARE_ROWS)
        if not few:
            continue
        for either in (0, 1):
            values = np.where(
                label[rows_of_group] == either,
                losses[..., rows_of_group],
                other[..., rows_of_group],
            )
            apart = np.partition(values, (few - 1, rows[g] - few), axis=-1)
            outermost = apart[..., :few].mean(axis=-1), apart[..., rows[g] - few :].mean(axis=-1)
            ends[..., 2 * g + either] = outermost
    return ends[0], ends[1]


def by_group(codes: NDArray[np.integer], groups: int) -> NDArray[np.intp]:
    """Return the positions of rows by group, as they are within each."""
    small = codes.astype(np.int16) if groups < 2**15 else codes  # of short numbers, in linear time
    return np.argsort(small, kind="stable")


def _extreme_scale(values: Floats, codes: NDArray[np.integer], groups: int) -> Floats | None:
    """Return powers of two (..., G) over values; None where no cube overflows or vanishes."""
    largest = np.abs(values).max(initial=0.0)
    if not np.isfinite(largest):
        largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    if not largest or 2.0**-_CUBED < largest < 2.0**_CUBED:
        return None
    most = np.zeros((groups, *values.shape[:-1]))
    np.maximum.at(most, codes, np.moveaxis(np.abs(values), -1, 0))
    return _power_of_two(np.moveaxis(most, 0, -1))


_AT_ONCE = 1 << 16  # rows


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of powers of distances from the mean, and the outermost values, of groups (..., G).

    Of a group without rows all are NaN but its `size` (G,).
    """

    size: Floats
    mean: Floats
    squares: Floats
    cubes: Floats
    lowest: Floats
    highest: Floats

    @classmethod
    def of(cls, values: Floats, codes: NDArray[np.integer], groups: int) -> _Sums:
        """Return the sums of (..., n) values of rows in groups 0 .. G - 1."""
        rows = np.bincount(codes, minlength=groups)
        present = np.flatnonzero(rows)
        x = values
        if len(present) > 1:
            x = values[..., by_group(codes, groups)]
        moments = np.full((5, *x.shape[:-1], groups), np.nan)
        if len(present):
            size, starts = rows[present], (np.cumsum(rows) - rows)[present]
            mean = np.add.reduceat(x, starts, axis=-1) / size
            away = x - np.repeat(mean, size, axis=-1)
            square = away * away
            squares, cubes = (
                np.add.reduceat(array, starts, -1) for array in (square, square * away)
            )
            outermost = (f.reduceat(x, starts, axis=-1) for f in (np.minimum, np.maximum))
            moments[..., present] = mean, squares, cubes, *outermost
        return cls(rows.astype(float), *moments)

    def joined(self, other: _Sums) -> _Sums:
        """Return the sums of both sets of rows together."""
        rows, other_rows = self.size, other.size
        size = rows + other_rows
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = other.mean - self.mean
            mean = self.mean + apart * other_rows / size
            squares = self.squares + other.squares + apart**2 * rows * other_rows / size
            cubes = (
                self.cubes
                + other.cubes
                + apart**3 * rows * other_rows * (rows - other_rows) / size**2
            )
            cubes += 3 * apart * (rows * other.squares - other_rows * self.squares) / size
        of_both_parts = (
            mean, squares, cubes,
            np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest),
        )  # fmt: skip
        alone = (getattr(array, name) for name in _POWERS for array in (self, other))
        pairs = zip(alone, alone, strict=True)
        moments = (
            np.where(other_rows == 0, a, np.where(rows == 0, b, of_both))
            for (a, b), of_both in zip(pairs, of_both_parts, strict=True)
        )
        return _Sums(size, *moments)


_POWERS = ("mean", "squares", "cubes", "lowest", "highest")


def _spread(size: Floats, squares: Floats, cubes: Floats) -> tuple[Floats, Floats]:
    """Return standard deviation and skewness from sums of powers of distances from the mean."""
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.where(size > 1, np.sqrt(squares / (size - 1)), np.nan)
        skewness = np.where(squares > 0, cubes / size / (squares / size) ** 1.5, 0.0)
    return sd, skewness


def loss_limits(
    moments: Moments,
    *,
    level: Level = 0.95,
    least: Level = -np.inf,
    most: float = np.inf,
    rows: Level = ROWS,
) -> Limits:
    """Return means with their intervals, NaN of fewer than `rows` rows.

    Parameters
    ----------
    least, most : the least and the most that a mean can be, 0 of losses that are never negative.

    Notes
    -----
    On the side of the shorter tail, the end is Hall's: Student's statistic transformed for the
    skewness of the sample (Hall 1992, "On the removal of skewness by transformation"; after
    Johnson 1978, "Modified t tests and confidence intervals for asymmetrical populations"). On the
    side of the longer tail no transformation of the sample helps where it holds none of the rare
    large losses, so the end is Student's of the sample and one row more, which lies one and a half
    times as far out as the outermost row, less the length of the other tail.
    """
    return _bounded(centred_limits(moments, level=level), moments.size >= rows, least, most)


def _bounded(
    limits: Limits, enough: NDArray[np.bool_], least: Level, most: float = np.inf
) -> Limits:
    lower, upper = np.maximum(limits.lower, least), np.minimum(limits.upper, most)
    return Limits(limits.value, *(np.where(enough, end, np.nan) for end in (lower, upper)))


def around(value: Floats, limits: Limits, least: Level = -np.inf) -> Limits:
    """Return limits around what is printed, at least `least`; none where that is not finite."""
    lower, upper = (np.where(np.isfinite(value), limit, np.nan) for limit in limits[1:])
    return Limits(value, np.minimum(np.maximum(lower, least), value), np.maximum(upper, value))


def at_levels(function: Callable[[float], Limits], level: Level) -> Limits:
    """Return limits (..., G) at levels that broadcast, of a function of a single level."""
    if np.ndim(level) == 0:
        return function(float(level))
    several = np.unique(level)
    limits = function(float(several[0]))
    for sample in several[1:]:
        at_sample, other = level == sample, function(float(sample))
        limits = Limits(*(np.where(at_sample, *ends) for ends in zip(other, limits, strict=True)))
    return limits


def centred_limits(moments: Moments, *, level: Level = 0.95) -> Limits:
    """Return means with their intervals, of however few rows; see :func:`loss_limits`."""
    above, below = moments.highest - moments.mean, moments.mean - moments.lowest
    upper = _reach(moments, above, below, moments.skewness, moments.most - moments.mean, level)
    lower = _reach(moments, below, above, -moments.skewness, moments.mean - moments.least, level)
    return Limits(moments.mean, moments.mean - lower, moments.mean + upper)


def _reach(
    moments: Moments, tail: Floats, other: Floats, skewness: Floats, most: Floats, level: Level
) -> Floats:
    """Return how far the interval reaches on the side of a tail, away from the mean.

    Where a row could lie further out than allowed for by the outermost, at a distance `most`, one
    more row is put there.
    """
    n, sd = moments.size, moments.sd
    with np.errstate(invalid="ignore", divide="ignore"):
        # Of few rows, neither the skewness nor the length of the other tail says much.
        shorter = np.minimum(skewness, 0) * n / (n + ROWS)
        hall = -sd / np.sqrt(n) * _transformed(-_student(n, level), shorter / np.sqrt(n))
        unseen = UNSEEN * (tail - np.maximum(1 - ROWS / n, 0) * other)
        student = with_one_more(moments, unseen, level)
        possible = with_one_more(moments, most, level)
    reach = np.where((tail >= other) & (unseen > 0), np.fmax(student, hall), hall)
    return np.where(most > UNSEEN * tail, np.fmax(reach, possible), reach)


def with_one_more(moments: Moments, distance: Floats, level: Level) -> Floats:
    """Return Student's upper end, from the mean, of a sample with a row more at a distance."""
    n = moments.size
    shift = distance / (n + 1)
    spread = np.hypot(moments.sd * np.sqrt(1 - 1 / np.maximum(n, 1)), distance / np.sqrt(n + 1))
    return shift + _student(n + 1, level) * spread / np.sqrt(n + 1)


def _transformed(quantile: Floats, skewness: Floats) -> Floats:
    """Return Hall's inverse of a quantile; the skewness is over the root of the rows."""
    with np.errstate(invalid="ignore", divide="ignore"):
        inside = 1 + skewness * (quantile - skewness / 6)
        bent = 3 / skewness * (np.cbrt(inside) - 1)
    return np.where(np.abs(skewness) < 1e-6, quantile, bent)


def _student(n: Floats, level: Level) -> Floats:
    """Return Student's quantile of so many rows; infinite of one."""
    quantile: Floats = special.stdtrit(np.maximum(n - 1, 1), (1 + level) / 2)
    return np.where(n > 1, quantile, np.inf)


def tail_index(values: Floats, codes: NDArray[np.integer], groups: int) -> Floats:
    """Return how heavy the upper tails (..., G) of values (..., n) are; NaN of one row.

    That is 1/2 of squares of errors that are normal, far out, and 2/3 of Student's with three
    degrees of freedom. Their variance is finite under 1/2, their mean under 1.

    Notes
    -----
    Hill (1975), "A simple general approach to inference about the tail of a distribution": the mean
    logarithm of the outermost n^0.6 values (at least 10, at most half) over the next one.
    Infinite where that is not positive.
    """
    index = np.full((*values.shape[:-1], groups), np.nan)
    order, rows = by_group(codes, groups), np.bincount(codes, minlength=groups)
    for g, rows_of_group in enumerate(np.split(order, np.cumsum(rows)[:-1])):
        n = len(rows_of_group)
        if n < 2:
            continue
        outer = min(max(10, int(np.ceil(n**0.6))), n // 2)
        apart = np.partition(values[..., rows_of_group], n - outer - 1, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.log(apart[..., n - outer :] / apart[..., n - outer - 1, None]).mean(axis=-1)
        index[..., g] = np.where(apart[..., n - outer - 1] > 0, over, np.inf)
    return index


def scaled(values: Floats, codes: NDArray[np.integer], groups: int) -> tuple[Floats, Floats]:
    """Return values (n,) over their group's scale, and the scales (G,).

    A scale is the power of two over the group's largest value: no square overflows or vanishes, and
    no digit is lost.
    """
    largest = np.zeros(groups)
    np.maximum.at(largest, codes, np.abs(values))
    scale = _power_of_two(largest)
    return values / scale[codes], scale


def _power_of_two(size: Floats, *, beyond: float = 0.0) -> Floats:
    """Return the powers of two over sizes; 1 of 0 and where the exponent is at most `beyond`."""
    finite = (size > 0) & np.isfinite(size)
    exponent = np.frexp(np.where(finite, size, 1.0))[1]
    return np.where(finite & (np.abs(exponent) > beyond), np.ldexp(1.0, exponent), 1.0)


def unseen_distance(index: Floats, usual: float) -> Floats:
    """Return how far out a row more is put, in distances of the outermost, by the tail's index.

    Parameters
    ----------
    usual : where the tail is light; in heavy ones what was seen says little of what there is.
    """
    share = np.clip((index - _LIGHT) / (_HEAVY - _LIGHT), 0, 1)
    distance: Floats = usual + (_UNSEEN_HEAVY - usual) * share
    return distance


def root_limits(moments: Moments, index: Floats, *, level: Level = 0.95) -> Limits:
    """Return roots of means of squares with their intervals, NaN under :data:`ROOT_ROWS` rows.

    Parameters
    ----------
    moments, index : of the squares; see :func:`heavy_limits`.
    """
    squares = _heavy(moments, index, np.zeros_like(moments.mean), level)
    return Limits(*(np.sqrt(np.maximum(square, 0)) for square in squares))


def heavy_limits(moments: Moments, index: Floats, *, level: Level = 0.95) -> Limits:
    """Return means of losses that grow like squares, NaN under :data:`ROOT_ROWS` rows.

    Such is a normal's negative log-likelihood, which has a least value for any sd.

    Parameters
    ----------
    index : of the tail (:func:`tail_index`) of what the losses exceed the lowest by.

    Notes
    -----
    The upper end is Student's on the scale of the logarithm of what exceeds the lowest row, of the
    sample and one row more that lies a good two times as far from the mean as the highest, and five
    times where the tail is heavy; the lower is Hall's.
    """
    return _heavy(moments, index, moments.lowest, level)


def _heavy(moments: Moments, index: Floats, base: Floats, level: Level) -> Limits:
    """Return the limits of means of losses of at least `base`."""
    n, mean = moments.size, moments.mean - base
    with np.errstate(invalid="ignore", divide="ignore"):
        unseen = unseen_distance(index, _UNSEEN_SQUARE) * (moments.highest - moments.mean)
        shift = unseen / (n + 1)
        reach = with_one_more(moments, unseen, level) - shift
        upper = np.where(mean > 0, (mean + shift) * np.exp(reach / (mean + shift)), mean + reach)
    lower = np.maximum(centred_limits(moments, level=level).lower, base)
    return _bounded(Limits(moments.mean, lower, base + upper), n >= ROOT_ROWS, -np.inf)


def outcome_limits(
    moments: Moments,
    *,
    level: Level = 0.95,
    least: Level = -np.inf,
    share: Limits | None = None,
    correlation: Floats | None = None,
    enough: NDArray[np.bool_] | None = None,
) -> Limits:
    """Return mean losses of labels 0 or 1 with their intervals.

    A mean loss is that of the rows of either label, weighed by their shares. Where a label is rare
    it is its share that is uncertain, and of a share there are limits that hold, so those of the
    three parts are put together (Zou and Donner 2008, the method of variance estimates recovery).

    Parameters
    ----------
    moments : (..., 2) of the rows with label 0 and of those with label 1.
    share : of label 1, as :func:`shown_share` returns it, where it is known already.
    correlation : (..., 3) of the errors of the means of the two labels, of the share and the first,
        and of the share and the second, where rows were sampled so that they are correlated.
    enough : (...) whether there are enough rows, where they do not count alike.

    Returns
    -------
    (...) limits; NaN under :data:`ROWS` rows, and under :data:`RARE_ROWS` with the rarer label.
    """
    size, total = moments.size, moments.size.sum(axis=-1)
    share = share or at_levels(lambda each: shown_share(size[..., 1], total, level=each), level)
    weight = np.stack(np.broadcast_arrays(1 - share.value, share.value), axis=-1)
    means = np.where(size > 0, moments.mean, 0.0)
    slope = means[..., 1] - means[..., 0]
    ends = slope * (share.lower - share.value), slope * (share.upper - share.value)
    each = centred_limits(moments, level=np.asarray(level)[..., None])
    down, up = weight * (each.value - each.lower), weight * (each.upper - each.value)
    value = (weight * means).sum(axis=-1)
    turned = None if correlation is None else _turned(correlation, slope)
    lower = value - _together(down, np.minimum(*ends), turned)
    upper = value + _together(up, np.maximum(*ends), turned)
    if enough is None:
        enough = (total >= ROWS) & (size.min(axis=-1) >= RARE_ROWS)
    return _bounded(Limits(value, lower, upper), enough, least)


def _turned(correlation: Floats, slope: Floats) -> Floats:
    """Return correlations with what the share adds to the mean, which may be the less of it."""
    sign = np.sign(slope)[..., None]
    return np.concatenate(
        [np.broadcast_to(correlation[..., :1], sign.shape), sign * correlation[..., 1:]], -1
    )


def _together(means: Floats, share: Floats, correlation: Floats | None) -> Floats:
    """Return the length of the distances of two means (..., 2) and of a share, added up."""
    share = np.abs(share)
    squares = (means**2).sum(axis=-1) + share**2
    if correlation is not None:
        products = means[..., 0] * means[..., 1], means[..., 0] * share, means[..., 1] * share
        squares = squares + 2 * (correlation * np.stack(products, axis=-1)).sum(axis=-1)
    length: Floats = np.sqrt(np.maximum(squares, 0))
    return length


@dataclass(frozen=True, eq=False)
class OutcomeMeans:
    """Mean losses (..., G) of labels in groups of weighted or clustered rows.

    Attributes
    ----------
    value : (..., G) weighted means.
    moments : (..., G, 2) of pseudo-values by label.
    correlation : (..., G, 3), see :func:`outcome_limits`.
    totals : (..., P) sums of the linearised scores of the mean losses, by cluster and group.
    size : (G, 2) numbers of clusters with either label, as many as count of their group's.
    counts : from which the limits of the shares of label 1 are.
    """

    value: Floats
    moments: Moments
    correlation: Floats
    totals: Floats
    size: Floats
    counts: SurveyCounts

    @classmethod
    def of(
        cls, losses: Floats, other: Floats, outcome: Floats, sample: Sampled, design: Design
    ) -> OutcomeMeans:
        """Return the mean losses of (..., n) losses of outcomes (n,) 0 or 1, and of the others."""
        groups, label = len(sample.units), outcome.astype(np.intp)
        cells = Sampled.of(design, 2 * sample.codes + label, 2 * groups)
        mean, totals = sample.linearised(losses)
        means = cells.means(losses)
        away = cells.share * (losses - means[..., cells.codes])
        possible = _could_be(losses, other, label, sample.codes, groups)
        moments = Moments.of_sampled(means, cells.totals(away), cells).reaching(*possible)
        moments = moments.take(np.arange(2 * groups).reshape(-1, 2))
        zero, one = (sample.totals(np.where(label == array, away, 0.0)) for array in (0, 1))
        share = sample.linearised(outcome)[1]
        pairs = (zero, one), (share, zero), (share, one)
        correlation = np.stack([sample.product(*pair) for pair in pairs], axis=-1)
        counts = SurveyCounts.of(3 * label, sample.codes, design, groups=groups)
        # Whether there is an interval must not depend on which rows have the large weights.
        size = cells.units.reshape(-1, 2) * (sample.size / np.maximum(sample.units, 1))[:, None]
        return cls(mean, moments, correlation, totals, size, counts)

    def limits(self, *, level: Level = 0.95, least: Level = -np.inf) -> Limits:
        """Return the mean losses with their intervals."""
        found = outcome_limits(
            self.moments,
            level=level,
            share=at_levels(self._share, level),
            correlation=self.correlation,
            enough=(self.size.sum(axis=-1) >= ROWS) & (self.size.min(axis=-1) >= RARE_ROWS),
        )
        return around(self.value, found, least)

    def _share(self, level: float) -> Limits:
        size, weight = self.counts.size(selection_rate, level=level), self.counts.weighted
        whole = np.maximum(weight.sum(axis=1), 1e-300)
        return shown_share(weight[:, 3] / whole * size, size, level=level)


def shown_share(successes: Floats, total: Floats, *, level: float = 0.95) -> Limits:
    """Return limits of a share that is only looked at where either label has enough rows.

    That there are so many is then part of what was seen: where a label is so rare that there are
    hardly ever :data:`RARE_ROWS` of it, those shown are all too many. The limit towards the rarer
    label is the exact one given that there are.
    """
    limits = rate_limits(successes, total, level=level)
    rare = np.minimum(successes, total - successes)
    near = (rare >= RARE_ROWS) & (rare < _ALL)
    if not near.any():
        return limits
    least = np.ones_like(rare)
    least[near] = _least_if_shown(rare[near], total[near], (1 - level) / 2)
    is_rare = successes <= total - successes
    lower = np.where(is_rare, np.minimum(limits.lower, least), limits.lower)
    upper = np.where(is_rare, limits.upper, np.maximum(limits.upper, 1 - least))
    return Limits(limits.value, lower, upper)


def _least_if_shown(count: Floats, total: Floats, tail: float) -> Floats:
    """Return the share at which so many rows or more have probability `tail`, if enough have."""
    low, high = np.zeros_like(count), count / total
    for _ in range(24):
        middle = (low + high) / 2
        shown = special.betainc(RARE_ROWS, total - RARE_ROWS + 1, middle)
        fewer_rows = special.betainc(count, total - count + 1, middle)
        under = fewer_rows < tail * shown
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.where(count > RARE_ROWS, low, 0.0)
