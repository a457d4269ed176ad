"""Intervals of means of losses, which are skewed, and of whose tails a sample shows little.

Everything is a closed form of a few moments, of any number of groups at once: no draws. An interval
that would not hold is NaN; the constants with ``ROWS`` in their names say from how many
rows on there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from fairbench.core.arrays import Codes, Floats
from fairbench.inference.rates import Limits, last_holding, rate_limits
from fairbench.inference.survey import Design, Sampled, SurveyCounts
from fairbench.metrics.registry import selection_rate
from fairbench.metrics.regression import ERROR_ROWS

Level = float | Floats

ROWS = 20  # the fewest rows of a mean
RARE_ROWS = 10  # with the rarer label, of a mean loss of labels; of others, above the least
# How far out one more row is put, in distances of the outermost, of losses and of squares: further
# where that is many standard deviations from the mean, or the tail of squares is heavy.
UNSEEN, _UNSEEN_FAR, _FAR = 1.5, 3.0, (5.0, 8.0)
_UNSEEN_SQUARE, _UNSEEN_FAR_SQUARE, _FAR_SQUARE = 2.25, 8.0, (9.0, 14.0)
# From this tail index on, no sample shows what the mean is: it has no interval.
MOST_HEAVY = 1.2
_HEAVY, _UNSEEN_HEAVY = (0.55, 0.65, 0.9, MOST_HEAVY), (5.0, 12.0, 40.0)
_CUBED = 300  # the exponent of two up to which cubes neither overflow nor vanish
_ALL = 40  # from so many rows of the rarer label on, that they had to be 10 plays no part


@dataclass(frozen=True, eq=False)
class Moments:
    """The moments that the interval of a mean is made from, arrays of any one shape.

    Attributes
    ----------
    size : numbers of rows.
    mean : their means.
    sd : their standard deviations; NaN of too few rows.
    skewness : third standardised moments, 0 where nothing varies.
    lowest, highest : the outermost values.
    least, most : how far out values may lie that were not seen; NaN where that is not known.
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
        return cls.of_groups(x, np.zeros(x.shape[-1], np.intp), 1).take(0)

    @classmethod
    def of_groups(cls, values: Floats, codes: NDArray[np.integer], groups: int) -> Moments:
        """Return the moments (..., G) of (..., n) values in groups 0 .. G - 1.

        NaN of groups without rows.
        """
        scale = _extreme_scale(values, codes, groups)
        if scale is not None:
            of_scaled = cls.of_groups(values / scale[..., codes], codes, groups)
            names = "mean", "sd", "lowest", "highest"
            return replace(of_scaled, **{name: getattr(of_scaled, name) * scale for name in names})
        sizes = np.bincount(codes, minlength=groups)
        present = np.flatnonzero(sizes)
        x = values[..., by_group(codes, groups)] if len(present) > 1 else values
        shape = (*x.shape[:-1], groups)
        mean, sd, skewness, lowest, highest = np.full((5, *shape), np.nan)
        if len(present):
            size, starts = sizes[present], (np.cumsum(sizes) - sizes)[present]
            mean[..., present] = np.add.reduceat(x, starts, axis=-1) / size
            deviation = x - np.repeat(mean[..., present], size, axis=-1)
            square = deviation * deviation
            squares, cubes = (
                np.add.reduceat(power, starts, axis=-1) for power in (square, square * deviation)
            )
            with np.errstate(invalid="ignore", divide="ignore"):
                sd[..., present] = np.where(size > 1, np.sqrt(squares / (size - 1)), np.nan)
                third = cubes / size / (squares / size) ** 1.5
            skewness[..., present] = np.where(squares > 0, third, 0.0)
            lowest[..., present] = np.minimum.reduceat(x, starts, axis=-1)
            highest[..., present] = np.maximum.reduceat(x, starts, axis=-1)
        unknown = np.full(shape, np.nan)
        of_all = np.broadcast_to(sizes.astype(float), shape)
        return cls(of_all, mean, sd, skewness, lowest, highest, least=unknown, most=unknown)

    @classmethod
    def by_label(
        cls, losses: Floats, other: Floats, label: Codes, codes: Codes, groups: int
    ) -> Moments:
        """Return the moments (..., 2 G) of losses of rows with label 0 and 1, group by group.

        Parameters
        ----------
        losses : (..., n) the losses of rows.
        other : (..., n) the losses that rows would have with the other label.
        label : (n,) the labels of rows, 0 or 1.
        codes : (n,) the groups of rows, 0 .. G - 1.
        groups : G, the number of groups.
        """
        moments = cls.of_groups(losses, 2 * codes + label, 2 * groups)
        return moments.reaching(*_possible_losses(losses, other, label, codes, groups))

    @property
    def mirrored(self) -> Moments:
        """The moments of the negative values."""
        return replace(
            self,
            mean=-self.mean,
            skewness=-self.skewness,
            lowest=-self.highest,
            highest=-self.lowest,
            least=-self.most,
            most=-self.least,
        )

    def reaching(self, least: Floats, most: Floats) -> Moments:
        """Return these moments with other outermost values that were not seen."""
        return replace(self, least=least, most=most)

    @classmethod
    def of_sampled(cls, value: Floats, totals: Floats, sample: Sampled) -> Moments:
        """Return the moments (..., G) of pseudo-values, one of each cluster and group.

        Parameters
        ----------
        value : (..., G) the estimates.
        totals : (..., P) sums of their linearised scores by pair of a cluster and a group.
        sample : how rows were sampled.

        Notes
        -----
        The number of pseudo-values is Kish's effective one. Their distances from the mean are made
        smaller by the root of effective over actual numbers, so that the standard error stays the
        same. Outermost values are then further out than those of a row of average weight would be:
        where weights vary, the largest of them have not been seen either.
        """
        groups = len(sample.units)
        moments = cls.of_groups(sample.pseudo_values(value, totals), sample.group, groups)
        shrinkage = np.sqrt(sample.size / np.maximum(sample.units, 1))
        return replace(
            moments,
            size=np.broadcast_to(sample.size, moments.size.shape),
            sd=shrinkage * moments.sd,
            skewness=shrinkage * moments.skewness,
            lowest=moments.mean + shrinkage * (moments.lowest - moments.mean),
            highest=moments.mean + shrinkage * (moments.highest - moments.mean),
        )

    @classmethod
    def joined(cls, several: Sequence[Moments]) -> Moments:
        """Return moments (..., G) of several sets of groups, one after the other."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(m, name) for m in several], -1) for name in names))

    def take(self, index: NDArray[np.integer] | int) -> Moments:
        """Return these moments at some positions of the last axis."""
        return Moments(*(getattr(self, field.name)[..., index] for field in fields(self)))


def _possible_losses(
    losses: Floats,
    other: Floats,
    label: NDArray[np.intp],
    codes: NDArray[np.integer],
    groups: int,
) -> tuple[Floats, Floats]:
    """Return how little and how much (..., 2 G) the rows of a group could lose, by label.

    That is the mean of the losses of the :data:`RARE_ROWS` rows of the group that would lose least,
    and most, if they had the label. Parameters are those of :meth:`Moments.by_label`.
    """
    least, most = np.full((2, *losses.shape[:-1], 2 * groups), np.nan)
    order = by_group(codes, groups)
    sizes = np.bincount(codes, minlength=groups)
    losses, other, label = losses[..., order], other[..., order], label[order]
    for g, stop in enumerate(np.cumsum(sizes).tolist()):
        size = sizes[g]
        few = min(size, RARE_ROWS)
        if not few:
            continue
        members = slice(stop - size, stop)
        for supposed_label in (0, 1):
            has_label = label[members] == supposed_label
            values = np.where(has_label, losses[..., members], other[..., members])
            ordered = np.partition(values, (few - 1, size - few), axis=-1)
            least[..., 2 * g + supposed_label] = ordered[..., :few].mean(axis=-1)
            most[..., 2 * g + supposed_label] = ordered[..., size - few :].mean(axis=-1)
    return least, most


def by_group(codes: NDArray[np.integer], groups: int) -> NDArray[np.intp]:
    """Return the positions of rows sorted by group, in their order within each."""
    if groups == 1:
        return np.arange(len(codes))
    # The sort takes linear time where numbers are short.
    short = codes.astype(np.int16) if groups < 2**15 else codes
    return np.argsort(short, kind="stable")


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
    moments : the moments of the losses.
    level : the level of the intervals.
    least, most : the least and the largest possible mean, such as 0 of losses that are never
        negative.
    rows : the fewest rows of a mean that has an interval.

    Notes
    -----
    On the side of the shorter tail the limit is Hall's: Student's statistic transformed for the
    skewness of the sample (Hall 1992, "On the removal of skewness by transformation"; after
    Johnson 1978, "Modified t tests and confidence intervals for asymmetrical populations"). On the
    side of the longer tail no transformation helps if the sample contains none of the rare large
    losses. So the limit is Student's for the sample with one more row, which lies one and a half
    times as far out as the outermost row, less the length of the other tail; three times, where
    that row is eight standard deviations out. Without a least value either tail may be the longer
    one of the population, of which a sample often has one alone and looks skewed: limits are then
    at least Student's.
    """
    lost = centred_limits(moments, level=level)
    half_width = student(moments.size, level) * moments.sd / np.sqrt(moments.size)
    signed = Limits(
        lost.value,
        np.minimum(lost.lower, lost.value - half_width),
        np.maximum(lost.upper, lost.value + half_width),
    )
    return _within(signed.where(np.isneginf(least), lost), moments.size >= rows, least, most)


def _within(
    limits: Limits, enough: NDArray[np.bool_], least: Level, most: float = np.inf
) -> Limits:
    """Return limits cut off at `least` and `most`; NaN limits where there are not enough rows."""
    lower, upper = np.maximum(limits.lower, least), np.minimum(limits.upper, most)
    return Limits(limits.value, np.where(enough, lower, np.nan), np.where(enough, upper, np.nan))


def around(value: Floats, limits: Limits, least: Level = -np.inf) -> Limits:
    """Return limits that hold `value`, which is printed, and are at least `least`.

    They are NaN where the value is not finite.
    """
    lower, upper = (np.where(np.isfinite(value), limit, np.nan) for limit in limits[1:])
    return Limits(value, np.minimum(np.maximum(lower, least), value), np.maximum(upper, value))


def at_levels(function: Callable[[float], Limits], level: Level) -> Limits:
    """Return limits (..., G) at levels that broadcast, of a function of a single level."""
    if np.ndim(level) == 0:
        return function(float(level))
    levels = np.unique(level)
    limits = function(float(levels[0]))
    for one_level in levels[1:]:
        limits = function(float(one_level)).where(level == one_level, limits)
    return limits


def centred_limits(moments: Moments, *, level: Level = 0.95) -> Limits:
    """Return means with their intervals, of however few rows; see :func:`loss_limits`."""
    quantiles = student(moments.size, level), student(moments.size + 1, level)
    upper, lower = (_half_width(side, *quantiles) for side in (moments, moments.mirrored))
    return Limits(moments.mean, moments.mean - lower, moments.mean + upper)


def _half_width(moments: Moments, quantile: Floats, quantile_of_more: Floats) -> Floats:
    """Return the distance from the mean to the upper limit, from Student's quantiles.

    If a row that was not seen may lie further out than is allowed for by the outermost row, one
    more row is put there.
    """
    n, sd, mean = moments.size, moments.sd, moments.mean
    tail, other_tail = moments.highest - mean, mean - moments.lowest
    possible = moments.most - mean
    with np.errstate(invalid="ignore", divide="ignore"):
        # Of few rows, neither the skewness nor the length of the other tail says much.
        used_skewness = np.minimum(moments.skewness, 0) * n / (n + ROWS)
        hall = -sd / np.sqrt(n) * _inverse_of_hall(-quantile, used_skewness / np.sqrt(n))
        multiple = np.interp(tail / sd, _FAR, (UNSEEN, _UNSEEN_FAR))
        unseen = multiple * (tail - np.maximum(1 - ROWS / n, 0) * other_tail)
        with_unseen = _with_one_more(moments, unseen, quantile_of_more)
        with_possible = _with_one_more(moments, possible, quantile_of_more)
    is_longer = (tail >= other_tail) & (unseen > 0)
    width = np.where(is_longer, np.fmax(with_unseen, hall), hall)
    return np.where(possible > UNSEEN * tail, np.fmax(width, with_possible), width)


def _with_one_more(moments: Moments, distance: Floats, quantile: Floats) -> Floats:
    """Return the distance to Student's upper limit of a sample with one more row.

    Parameters
    ----------
    moments : the moments of the sample, from whose mean the limit is measured.
    distance : how far above the mean the row lies.
    quantile : Student's of one row more, see :func:`student`.

    Notes
    -----
    With a row more at the distance d, the mean of n rows moves by d / (n + 1), and their variance
    becomes s^2 (1 - 1 / n) + d^2 / (n + 1).
    """
    n = moments.size
    shift = distance / (n + 1)
    spread = np.hypot(moments.sd * np.sqrt(1 - 1 / np.maximum(n, 1)), distance / np.sqrt(n + 1))
    return shift + quantile * spread / np.sqrt(n + 1)


def _inverse_of_hall(quantile: Floats, skewness: Floats) -> Floats:
    """Return Student's statistic whose transformation by Hall is a quantile.

    Parameters
    ----------
    quantile : the quantile t.
    skewness : the skewness over the root of the rows, a.

    Notes
    -----
    3 / a ((1 + a (t - a / 6))^(1/3) - 1), which is t where nothing is skewed.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        cube = 1 + skewness * (quantile - skewness / 6)
        inverse = 3 / skewness * (np.cbrt(cube) - 1)
    return np.where(np.abs(skewness) < 1e-6, quantile, inverse)


def student(n: Floats, level: Level) -> Floats:
    """Return Student's quantile of so many rows; infinite of one."""
    return np.where(n > 1, special.stdtrit(np.maximum(n - 1, 1), (1 + level) / 2), np.inf)


def tail_index(values: Floats, codes: NDArray[np.integer], groups: int) -> Floats:
    """Return the tail indices (..., G) of the upper tails of values (..., n).

    The index is 1/2 for squares of errors with normal tails, far out, and 2/3 for those of
    Student's t with three degrees of freedom. The variance is finite under 1/2, the mean under 1.

    Notes
    -----
    Hill (1975), "A simple general approach to inference about the tail of a distribution": of the m
    values that are not 0, the mean logarithm of the outermost m^0.6 (at least 10, at most half)
    over the next one. Infinite of fewer than :data:`RARE_ROWS` of them, and where the next one is
    not positive: nothing is known of such a tail.
    """
    index = np.full((int(np.prod(values.shape[:-1])), groups), np.inf)
    order = by_group(codes, groups)
    flat = values.reshape(-1, values.shape[-1])
    sizes = np.bincount(codes, minlength=groups)
    for g, members in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
        for k, row in enumerate(flat[:, members]):
            nonzero = row[row != 0]
            m = len(nonzero)
            if m < RARE_ROWS:
                continue
            n_outer = min(max(10, int(np.ceil(m**0.6))), m // 2)
            ordered = np.partition(nonzero, m - n_outer - 1)
            outer, next_one = ordered[m - n_outer :], ordered[m - n_outer - 1]
            if next_one > 0:
                index[k, g] = np.log(outer / next_one).mean()
    return index.reshape(*values.shape[:-1], groups)


def divide_by_scale(
    values: Floats, codes: NDArray[np.integer], groups: int
) -> tuple[Floats, Floats]:
    """Return values (n,) over their group's scale, and the scales (G,).

    A scale is the power of two over the group's largest value: no square overflows or vanishes, and
    no digit is lost.
    """
    largest = np.zeros(groups)
    np.maximum.at(largest, codes, np.abs(values))
    scale = _power_of_two(largest)
    return values / scale[codes], scale


def _power_of_two(size: Floats) -> Floats:
    """Return the powers of two over sizes; 1 of 0 and of what is not finite."""
    return np.ldexp(1.0, np.frexp(np.where(np.isfinite(size), size, 0.0))[1])


def _unseen_distance(index: Floats, usual: float) -> Floats:
    """Return how far out one more row is put, as a multiple of the distance of the outermost row.

    Parameters
    ----------
    index : the tail's index (:func:`tail_index`).
    usual : the multiple where the tail is light. In heavy tails it is larger, as what was seen says
        little of what there is.
    """
    return np.interp(index, _HEAVY, (usual, *_UNSEEN_HEAVY))


def root_limits(moments: Moments, index: Floats, *, level: Level = 0.95) -> Limits:
    """Return roots of means of squares with their intervals, as :func:`heavy_limits` of means.

    Parameters
    ----------
    moments : the moments of the squares.
    index : the tail index of the squares (:func:`tail_index`).
    level : the level of the intervals.
    """
    squares = heavy_limits(moments, index, level=level, base=np.zeros_like(moments.mean))
    return Limits(*(np.sqrt(np.maximum(square, 0)) for square in squares))


def heavy_limits(
    moments: Moments, index: Floats, *, level: Level = 0.95, base: Floats | None = None
) -> Limits:
    """Return means of losses that grow like squares, NaN where their tail is not known.

    That is under :data:`ERROR_ROWS` rows, and from the tail index :data:`MOST_HEAVY` on. A normal's
    negative log-likelihood, which has a least value for any sd, is such a loss.

    Parameters
    ----------
    moments : the moments of the losses.
    index : the tail index (:func:`tail_index`) of what the losses exceed the lowest by.
    level : the level of the intervals.
    base : what losses are at least; the lowest row's by default.

    Notes
    -----
    The upper end is Student's on the scale of the logarithm of what exceeds the lowest row, of the
    sample and one row more that lies a good two times as far from the mean as the highest, eight
    times where that is far out, and up to forty times where the tail is heavy; the lower is Hall's.
    With one more row the mean above the base is m, and Student's half-width h; the upper limit is
    m exp(h / m) above the base.
    """
    n, base = moments.size, moments.lowest if base is None else base
    mean = moments.mean - base
    with np.errstate(invalid="ignore", divide="ignore"):
        tail = moments.highest - moments.mean
        far = np.interp(tail / moments.sd, _FAR_SQUARE, (_UNSEEN_SQUARE, _UNSEEN_FAR_SQUARE))
        unseen = np.fmax(_unseen_distance(index, _UNSEEN_SQUARE), far) * tail
        shift = unseen / (n + 1)
        half_width = _with_one_more(moments, unseen, student(n + 1, level)) - shift
        moved = mean + shift
        upper = np.where(mean > 0, moved * np.exp(half_width / moved), mean + half_width)
    lower = np.maximum(centred_limits(moments, level=level).lower, base)
    enough = (n >= ERROR_ROWS) & (index < MOST_HEAVY)
    return _within(Limits(moments.mean, lower, base + upper), enough, -np.inf)


def explained_variance(
    target: Floats,
    prediction: Floats,
    codes: Codes,
    groups: int,
    *,
    sample: Sampled | None = None,
) -> tuple[Floats, Callable[[Level], Limits], Floats, Floats | None]:
    """Return coefficients of determination (G,) of predictions (n,) in groups 0 .. G - 1.

    Returns
    -------
    value : (G,) the coefficients.
    limits : makes their intervals at a level, NaN where a tail is not known. That is under
        :data:`ERROR_ROWS` rows, and from the tail index :data:`MOST_HEAVY` on.
    tails : (2, G) the indices of the lower and upper tails of what rows add to the error of the
        logarithm of the share of variance that is left.
    totals : (P,) sums of linearised scores by cluster and group, where rows were sampled.

    Notes
    -----
    On the scale of log(1 - R2), the logarithm of the ratio of two mean squares, whose error is a
    mean of each row's influence: its squared error over the mean squared error, less its squared
    distance from the mean over the variance. As squares have long tails, either end is Student's of
    the sample and one row more, one and a half times as far out as the outermost, and up to
    forty times where the tail is heavy.
    """
    size = np.maximum(np.bincount(codes, minlength=groups), 1)
    share = 1 / size[codes] if sample is None else sample.share
    mean = np.bincount(codes, share * target, groups)
    # Halves of numbers that do not overflow have differences that do not.
    away, of_error = divide_by_scale(target / 2 - prediction / 2, codes, groups)
    apart, of_spread = divide_by_scale(target / 2 - mean[codes] / 2, codes, groups)
    unexplained, total = (np.bincount(codes, share * array**2, groups) for array in (away, apart))
    ends = Moments.of_groups(target, codes, groups)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = unexplained / total * (of_error / of_spread) ** 2
        left = np.where((total > 0) & (ends.lowest < ends.highest), ratio, np.nan)
        influence = np.nan_to_num(away**2 / unexplained[codes] - apart**2 / total[codes])
    tails = tail_index(np.stack([-influence, influence]), codes, groups)
    totals = None if sample is None else sample.totals(share * influence)
    if sample is None or totals is None:
        influences = Moments.of_groups(influence, codes, groups)
    else:
        influences = Moments.of_sampled(np.zeros(groups), totals, sample)
    has_limits = (influences.size >= ERROR_ROWS) & (left > 0) & np.isfinite(left)
    has_limits &= (tails < MOST_HEAVY).all(axis=0)
    low, high = _unseen_distance(tails, UNSEEN)

    def limits(level: Level) -> Limits:
        quantile = student(influences.size + 1, level)
        above = _with_one_more(influences, high * influences.highest, quantile)
        below = _with_one_more(influences, -low * influences.lowest, quantile)
        with np.errstate(over="ignore"):
            ends = 1 - left * np.exp(above), 1 - left * np.exp(-below)
        return Limits(1 - left, *(np.where(has_limits, end, np.nan) for end in ends))

    return 1 - left, limits, tails, totals


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
    it is its share that is uncertain, and of a share there are limits that hold. So the limits of
    both means and of the share are put together (Zou and Donner 2008, the method of variance
    estimates recovery).

    Parameters
    ----------
    moments : (..., 2) the moments of the rows with label 0 and of those with label 1.
    level : the level of the intervals.
    least : the least possible mean loss.
    share : (...) the share of label 1 with its limits; None computes :func:`shown_share`.
    correlation : (..., 3) the correlations of the errors of the means of the two labels, of the
        share and the first, and of the share and the second; None where rows were not sampled so
        that there are any.
    enough : (...) whether there are enough rows; None counts them, where they count alike.

    Returns
    -------
    (...) limits; NaN under :data:`ROWS` rows, and under :data:`RARE_ROWS` with the rarer label.
    """
    size = moments.size
    total = size.sum(axis=-1)
    if share is None:
        share = at_levels(lambda single: shown_share(size[..., 1], total, level=single), level)
    weight = np.stack(np.broadcast_arrays(1 - share.value, share.value), axis=-1)
    means = np.where(size > 0, moments.mean, 0.0)
    slope = means[..., 1] - means[..., 0]  # of the mean in the share
    by_lower, by_upper = slope * (share.lower - share.value), slope * (share.upper - share.value)
    limits = centred_limits(moments, level=np.asarray(level)[..., None])
    down, up = weight * (limits.value - limits.lower), weight * (limits.upper - limits.value)
    value = (weight * means).sum(axis=-1)
    signed = correlation
    if correlation is not None:
        # What the share adds to the mean may be negative.
        sign = np.stack([np.ones_like(slope), np.sign(slope), np.sign(slope)], axis=-1)
        signed = sign * correlation
    lower = value - _combine(down, np.minimum(by_lower, by_upper), signed)
    upper = value + _combine(up, np.maximum(by_lower, by_upper), signed)
    if enough is None:
        enough = (total >= ROWS) & (size.min(axis=-1) >= RARE_ROWS)
    return _within(Limits(value, lower, upper), enough, least)


def _combine(means: Floats, share: Floats, correlation: Floats | None) -> Floats:
    """Return the half-width of a mean from those of two means (..., 2) and of a share (...).

    That is the root of the sum of their squares and of twice their products, times correlations.
    """
    share = np.abs(share)
    squares = (means**2).sum(axis=-1) + share**2
    if correlation is not None:
        products = means[..., 0] * means[..., 1], means[..., 0] * share, means[..., 1] * share
        squares = squares + 2 * (correlation * np.stack(products, axis=-1)).sum(axis=-1)
    return np.sqrt(np.maximum(squares, 0))


def sampled_outcome_limits(
    losses: Floats, other: Floats, outcome: Floats, sample: Sampled, design: Design
) -> tuple[Callable[[Level], Limits], Floats]:
    """Return the limits (..., G), by level, of mean losses of labels in weighted or clustered rows.

    Parameters
    ----------
    losses : (..., n) the losses of rows.
    other : (..., n) the losses that rows would have with the other label.
    outcome : (n,) the labels of rows, 0 or 1.
    sample : how rows were sampled within groups.
    design : how rows were sampled.

    Returns
    -------
    The function that makes the limits, and the effective numbers of clusters (G, 2) with a label.
    """
    groups = len(sample.units)
    label = outcome.astype(np.intp)
    cells = Sampled.of(design, 2 * sample.codes + label, 2 * groups)
    cell_means = cells.means(losses)
    deviation = cells.share * (losses - cell_means[..., cells.codes])
    possible = _possible_losses(losses, other, label, sample.codes, groups)
    pseudo = Moments.of_sampled(cell_means, cells.totals(deviation), cells).reaching(*possible)
    moments = pseudo.take(np.arange(2 * groups).reshape(-1, 2))
    zero, one = (sample.totals(np.where(label == either, deviation, 0.0)) for either in (0, 1))
    of_share = sample.linearised(outcome)[1]
    errors = (zero, one), (of_share, zero), (of_share, one)
    correlation = np.stack([sample.product(*both) for both in errors], axis=-1)
    # Whether there is an interval must not depend on which rows have the large weights.
    size = cells.units.reshape(-1, 2) * (sample.size / np.maximum(sample.units, 1))[:, None]
    enough = (size.sum(axis=-1) >= ROWS) & (size.min(axis=-1) >= RARE_ROWS)
    counts = SurveyCounts.of(3 * label, sample.codes, design, groups=groups)

    def share(level: float) -> Limits:
        """Return the shares (G,) of label 1 with their limits."""
        effective = counts.size(selection_rate, level=level)
        weight = counts.weighted
        total_weight = np.maximum(weight.sum(axis=1), 1e-300)
        return shown_share(weight[:, 3] / total_weight * effective, effective, level=level)

    def limits(level: Level) -> Limits:
        about: Any = {"correlation": correlation, "enough": enough}
        return outcome_limits(moments, level=level, share=at_levels(share, level), **about)

    return limits, size


def shown_share(successes: Floats, total: Floats, level: float = 0.95) -> Limits:
    """Return limits of a share of label 1 that is only shown where either label has enough rows.

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
    """Return the exact lower limit of a share, given that at least :data:`RARE_ROWS` rows have it.

    That is the share p at which P(X >= count | X >= RARE_ROWS) is `tail`, of a binomial X.
    """

    def too_small(p: Floats) -> NDArray[np.bool_]:
        is_shown = special.betainc(RARE_ROWS, total - RARE_ROWS + 1, p)
        return special.betainc(count, total - count + 1, p) < tail * is_shown

    least = last_holding(too_small, np.zeros_like(count), count / total, 24)
    return np.where(count > RARE_ROWS, least, 0.0)
