"""Evidence that two rates are further apart than a gap, and intervals of it, valid at every look.

Evidence is the money won in fair bets against a claim. If the claim is true, a bettor who starts
with 1 ever reaches 1 / a with a probability of at most a, no matter how often you look (Ville's
inequality). Here the claim is that the second group's rate is at most `gap` above the first's. The
evidence depends only on the counts, so that only counts have to be kept.

The claim has a nuisance parameter, the height of both rates. Against each height there is one bet:
that the rates are further apart, in the direction that the two groups' counts can detect best. The
evidence is the smallest winnings over all heights. These directions are orthogonal to the line of
heights, so that not knowing the height costs nothing to first order. In contrast, a ratio to the
largest likelihood that mixes over both rates (universal inference; Wasserman et al. 2020, PNAS 117)
costs about half the logarithm of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from fairbench.core.arrays import Floats, Mask, divide
from fairbench.inference.rates import Limits, last_holding

# The distances beyond the claimed gap that are bet on, and the stake of each bet.
_DISTANCES = np.array([0.003, 0.0063, 0.0125, 0.025, 0.05, 0.1, 0.2, 0.4])
_STAKES = np.array([0.02, 0.03, 0.04, 0.12, 0.52, 0.14, 0.08, 0.05])
# The stake of the bet that each rate, by itself, is at the claim or one of these parts of the way
# from the claim to 0 or 1.
_ANYWHERE = 0.1
_PARTS = (0.03, 0.1, 0.3, 0.6)
_TINY = 1e-12
# Heights that are tried: densest around the likeliest one and at 0 and 1; then, twice, between the
# neighbours of the height with the smallest winnings.
_FIRST = np.linspace(-1, 1, 29)
_EDGE = np.array([0, 1e-5, 1e-4, 1e-3, 5e-3, 0.02, 0.06])
_EDGES = np.concatenate([_EDGE, 1 - _EDGE])
_AGAIN = np.linspace(0, 1, 11)
_GRID_ERROR = 0.01  # subtracted: the minimum over all heights is at most this much below the grid's
_BLOCK = 2048  # evaluated at once
_LOOKS = 256  # between which the first one is sought at once
_HALVINGS = 20
_RAISED = 3.0  # added to evidence, so that its root is about linear


class Pair(NamedTuple):
    """Counts of two groups, arrays of one shape, or such that they broadcast.

    Attributes
    ----------
    first, second : successes of the first and of the second group.
    first_size, second_size : their numbers of rows.
    share : the expected share of the first group among the rows of both. It may be derived from
        anything but outcomes, and must not change while rows are counted. Evidence is valid with
        any share; a good one only makes the bets win more.
    """

    first: ArrayLike
    first_size: ArrayLike
    second: ArrayLike
    second_size: ArrayLike
    share: ArrayLike

    @classmethod
    def of(cls, sums: Floats, share: ArrayLike) -> Pair:
        """Return the pair of sums (2, 2, ...): of both groups, their rows and successes."""
        (size, successes), (other_size, other_successes) = sums
        return cls(successes, size, other_successes, other_size, np.broadcast_to(share, size.shape))

    def swapped(self) -> Pair:
        """Return the counts with the groups exchanged."""
        second_share = 1 - np.asarray(self.share, float)
        return Pair(self.second, self.second_size, self.first, self.first_size, second_share)

    def at(self, index: Any) -> Pair:
        """Return the counts at some positions of all arrays."""
        return Pair(*(np.asarray(array)[index] for array in self))

    def limits(self, needed: ArrayLike) -> Limits:
        """Return the differences second - first with intervals that hold at every look.

        Parameters
        ----------
        needed : the logarithm of the evidence against a gap that excludes it; log(2 / a) on either
            side gives intervals that all hold, at whatever looks, with a probability of 1 - a.
        """
        *counts, reach = np.broadcast_arrays(*(np.asarray(part, float) for part in (*self, needed)))
        x, n, y, m, share = (part.ravel() for part in counts)
        pair, flat_reach = Pair(x, n, y, m, share), reach.ravel()
        value = divide(y, m) - divide(x, n)
        centre = np.nan_to_num(value)
        lower = _lower(pair, centre, flat_reach)
        upper = -_lower(pair.swapped(), -centre, flat_reach)
        return Limits(*(each.reshape(reach.shape) for each in (value, lower, upper)))

    def outside(self, lower: Floats, upper: Floats, needed: Floats) -> Mask:
        """Return whether the evidence that second - first is outside the bounds is enough, (P,)."""
        return reaches(self, upper, needed) | reaches(self.swapped(), -lower, needed)

    def may_be_outside(self, lower: Floats, upper: Floats, needed: Floats) -> Mask:
        """Return where the evidence may be enough for :meth:`outside`, quickly.

        Notes
        -----
        Winnings against one height are an upper bound of the evidence, the likelihood ratio is one
        of these, and (p - q)² / q (1 - q) is one of p's divergence from q. The height is such that
        both groups' rates are off by what their numbers of rows make likely.
        """
        x, n, y, m, _ = map(np.asarray, self)
        with np.errstate(invalid="ignore", divide="ignore"):
            first, second = x / n, y / m
            ahead = second - first
            beyond = ahead - np.clip(ahead, lower, upper)
            part = m / (n + m)
            low = first + part * beyond
            high = low + ahead - beyond
            variances = np.maximum([low * (1 - low), high * (1 - high)], _TINY)
            off = part / variances[0] + (1 - part) / variances[1]
            return np.asarray(beyond**2 * part * n * off >= needed)

    def within_limits(self, needed: float | Floats) -> tuple[Floats, Floats]:
        """Return differences that are, quickly, surely within :meth:`limits`."""
        weight, other = _rate_and_weight(*self[:2])[1], _rate_and_weight(*self[2:4])[1]
        x, n, y, m = (np.asarray(part, float) for part in self[:4])
        value = np.nan_to_num(divide(y, m) - divide(x, n))
        ends = []
        for pair, centre in ((self, value), (self.swapped(), -value)):
            away = np.sqrt(needed * (1 / weight + 1 / other))
            while True:
                won = _likeliest_winnings(pair, np.maximum(centre - away, -1))
                if not (won >= needed).any():
                    break
                away = np.where(won >= needed, away / 2, away)
            ends.append(np.maximum(centre - away, -1) + 1e-6)  # limits are rounded
        return ends[0], -ends[1]

    def flat(self) -> Pair:
        """Return the counts as columns (P, 1) of floats."""
        arrays = np.broadcast_arrays(*(np.asarray(array, float) for array in self))
        return Pair(*(array.reshape(-1, 1) for array in arrays))


def log_evidence(pair: Pair, gap: ArrayLike) -> Floats:
    """Return the logarithm of the evidence that second - first is more than `gap`.

    Parameters
    ----------
    pair : counts so far, of rows that are independent given their groups.
    gap : between -1 and 1; broadcasts with the counts.

    Returns
    -------
    The same shape. Under any two rates with second - first <= gap, and also where either rate moves
    from row to row as long as one height separates them (first >= height, second <= height + gap),
    it ever reaches log(1 / a) with a probability of at most a.
    """
    *wide, claimed = np.broadcast_arrays(*pair, np.asarray(gap, float))
    shape, columns, claimed = claimed.shape, Pair(*wide).flat(), claimed.reshape(-1, 1)
    evidence = np.empty(len(claimed))
    for start in range(0, len(claimed), _BLOCK):
        rows = slice(start, start + _BLOCK)
        evidence[rows] = _least(columns.at(rows), claimed[rows]) - _GRID_ERROR
    return evidence.reshape(shape)


def _least(pair: Pair, gap: Floats) -> Floats:
    """Return the smallest log winnings over all heights, (P,)."""
    heights = _heights(pair, gap)
    for _ in range(2):
        worst = _log_winnings(pair, gap, heights).argmin(axis=-1)[:, None]
        beside = np.clip(worst + [-1, 1], 0, heights.shape[1] - 1)
        left, right = np.split(np.take_along_axis(heights, beside, -1), 2, axis=-1)
        heights = left + (right - left) * _AGAIN
    return np.asarray(_log_winnings(pair, gap, heights).min(axis=-1))


def _log_winnings(pair: Pair, gap: Floats, low: Floats) -> Floats:
    """Return the log winnings of the bets against each height, (P, H).

    Parameters
    ----------
    pair, gap : columns (P, 1) of counts and of claimed gaps.
    low : (P, H) the heights: the first rate if the claim is true.
    """
    high = np.clip(low + gap, _TINY, 1 - _TINY)
    bets = [*_directed_bets(pair, low, high), _bet_on_anywhere(pair, low, high)]
    return reduce(np.logaddexp, bets)


def _heights(pair: Pair, gap: Floats) -> Floats:
    """Return the first rates (P, H) at which the claim is tried, in ascending order."""
    weights = (_rate_and_weight(*side)[1] for side in (pair[:2], pair[2:4]))
    spread = 1 / np.sqrt(sum(weights))
    near = _likely(pair, gap) + spread * np.sinh(_FIRST * np.arcsinh(1 / spread))
    lowest, highest = np.maximum(0, -gap), np.minimum(1, 1 - gap)
    ends = lowest + (highest - lowest) * _EDGES
    heights = np.sort(np.concatenate([near, ends], axis=-1), axis=-1)
    return np.asarray(np.clip(np.clip(heights, lowest, highest), _TINY, 1 - _TINY))


def _likely(pair: Pair, gap: Floats) -> Floats:
    """Return approximately the likeliest first rate (P, 1) if the rates differ by the gap."""
    first, weight = _rate_and_weight(pair.first, pair.first_size)
    second, other = _rate_and_weight(pair.second, pair.second_size)
    likely = (weight * first + other * (second - gap)) / (weight + other)
    return np.asarray(np.clip(likely, np.maximum(0, -gap) + _TINY, np.minimum(1, 1 - gap) - _TINY))


def _rate_and_weight(successes: ArrayLike, size: ArrayLike) -> tuple[Floats, Floats]:
    """Return a rate with half a success and half a failure added, and 1 over its variance."""
    n = np.asarray(size, float)
    rate = (np.asarray(successes) + 0.5) / (n + 1)
    return rate, (n + 1) / (rate * (1 - rate))


def _directed_bets(pair: Pair, low: Floats, high: Floats) -> Iterator[Floats]:
    """Yield the log winnings of bets that rates are further apart by each of some distances.

    The group whose rate is less well known takes the larger part of the distance.
    """
    share = np.asarray(pair.share)
    low_weight, high_weight = low * (1 - low) * (1 - share), high * (1 - high) * share
    high_part = high_weight / (low_weight + high_weight)
    for distance, stake in zip(_DISTANCES, _STAKES, strict=True):
        lower = np.maximum(low - (1 - high_part) * distance, low / 2)
        upper = np.minimum(high + high_part * distance, (1 + high) / 2)
        won = _ratio(pair.first, pair.first_size, lower, low)
        won += _ratio(pair.second, pair.second_size, upper, high)
        yield won + np.log(stake * (1 - _ANYWHERE))


def _ratio(successes: ArrayLike, size: ArrayLike, rate: Floats, claimed: Floats) -> Floats:
    """Return the log likelihood ratio of two rates."""
    x, n = np.asarray(successes), np.asarray(size)
    return np.asarray(x * np.log(rate / claimed) + (n - x) * np.log((1 - rate) / (1 - claimed)))


def _bet_on_anywhere(pair: Pair, low: Floats, high: Floats) -> Floats:
    """Return the log winnings of the bet that each rate is at the claim or on its far side."""
    far = [
        np.logaddexp.reduce([np.zeros_like(claimed), *ratios]) - np.log(1 + len(_PARTS))
        for claimed, ratios in (
            (low, [_ratio(*pair[:2], low * (1 - part), low) for part in _PARTS]),
            (high, [_ratio(*pair[2:4], high + (1 - high) * part, high) for part in _PARTS]),
        )
    ]
    return np.asarray(far[0] + far[1] + np.log(_ANYWHERE))


def first_beyond(pair: Pair, gap: float, needed: float) -> int | None:
    """Return the first of many looks (T,) at which the evidence reaches what is needed.

    Parameters
    ----------
    pair : the counts at each look.
    gap : the claimed gap.
    needed : the logarithm of the evidence that is needed.

    Returns
    -------
    The position of the look; None where no look reaches it.
    """
    wide = pair.flat()
    looks = np.arange(len(np.asarray(wide.first)))
    for some in np.array_split(looks, len(looks) // _LOOKS + 1):
        part = wide.at(some)
        reached = reaches(part, np.full(len(some), gap), np.full(len(some), needed))
        if reached.any():
            return int(some[reached.argmax()])
    return None


def reaches(pair: Pair, gap: Floats, needed: Floats) -> Mask:
    """Return whether the evidence (P,) reaches what is needed, quickly where it seldom does.

    Notes
    -----
    The likelihood ratio is an upper bound of the winnings against one height, and these are one of
    the evidence. The ratio rules out most looks, and the winnings most of the others.
    """
    wide = pair.flat()
    reached: Mask = _likelihood_ratio(wide, gap[:, None]) >= needed
    for winnings in (_likeliest_winnings, log_evidence):
        some = np.flatnonzero(reached)
        reached[some] = winnings(wide.at((some, 0)), gap[some]) >= needed[some]
    return reached


def _likelihood_ratio(pair: Pair, gap: Floats) -> Floats:
    """Return the log of the largest likelihood over that at one height, (P,) of columns (P, 1).

    It is 0 if the observed rates agree with the claim: nothing is won then.
    """
    ratio = np.zeros(len(gap))
    x, n, y, m = (np.asarray(part)[:, 0] for part in pair[:4])
    ahead = y / np.maximum(m, 1) - x / np.maximum(n, 1) > gap[:, 0]
    some = np.flatnonzero(ahead & (np.minimum(n, m) > 0))
    part, claimed = pair.at(some), gap[some]
    low = _likely(part, claimed)
    for side_counts, rate in ((part[:2], low), (part[2:4], low + claimed)):
        successes, size = map(np.asarray, side_counts)
        observed, at = successes / size, np.clip(rate, _TINY, 1 - _TINY)
        side = xlogy(successes, observed / at)
        side += xlogy(size - successes, (1 - observed) / (1 - at))
        ratio[some] += side[:, 0]
    return ratio


def _likeliest_winnings(pair: Pair, gap: Floats) -> Floats:
    """Return the winnings (P,) against the likeliest height, an upper bound of the evidence."""
    wide, claimed = pair.flat(), gap[:, None]
    return _log_winnings(wide, claimed, _likely(wide, claimed))[:, 0]


def _lower(pair: Pair, value: Floats, needed: Floats) -> Floats:
    """Return a gap (P,) below the value that is excluded, within 2e-6 of the largest; -1 for none.

    Notes
    -----
    The root of the evidence is nearly linear in the gap. The winnings against the likeliest height
    exclude at least as much, and are computed faster.
    """
    from scipy.optimize import elementwise  # takes a quarter of a second

    def lacking(gap: Floats, *counts: Floats) -> Floats:
        *groups, need = counts
        evidence = log_evidence(Pair(*groups), gap)
        return np.sqrt(need + _RAISED) - np.sqrt(np.maximum(evidence + _RAISED, 0))

    lowest = np.full(value.shape, -1.0)
    near = last_holding(
        lambda gap: _likeliest_winnings(pair, gap) >= needed, lowest, value, _HALVINGS
    )
    bracket = lowest, near + 2 * 0.5**_HALVINGS
    exact = {"xatol": 0.5**_HALVINGS, "xrtol": 0, "fatol": 0, "frtol": 0}
    found = elementwise.find_root(lacking, bracket, args=(*pair, needed), tolerances=exact)
    return np.where(found.success, found.bracket[0], -1.0)


_MOST_ROWS = 1e9


def rows_until_beyond(
    first: ArrayLike, second: ArrayLike, share: ArrayLike, gap: ArrayLike, needed: ArrayLike
) -> Floats:
    """Return the rows of both groups after which a gap is found, if counts are as expected.

    The mean number of rows is close to it. Infinite where second - first is not above `gap`, and
    where there is no such rate. All arguments broadcast.
    """
    parts = [np.asarray(part, float) for part in (first, second, share, gap, needed)]
    low_rate, high_rate, part, claimed, need = np.broadcast_arrays(*parts)
    never = ~(high_rate - low_rate > claimed) | (high_rate > 1)
    low_rate, high_rate, part, claimed = (
        np.where(never, usual, given)
        for usual, given in ((0.0, low_rate), (1.0, high_rate), (0.5, part), (0.0, claimed))
    )

    def told_apart(rows: Floats) -> Mask:
        n, m = part * rows, (1 - part) * rows
        return log_evidence(Pair(low_rate * n, n, high_rate * m, m, part), claimed) >= need

    few, many = np.zeros(need.shape), np.full(need.shape, np.log(_MOST_ROWS))
    never = never | ~told_apart(np.exp(many))
    enough = last_holding(lambda log_rows: ~told_apart(np.exp(log_rows)), few, many, _HALVINGS)
    return np.where(never, np.inf, np.exp(enough))


# The same of a mean of bounded values, such as labels less their scores.

# Sizes of the bets on a mean, each half of the one before; all bets have the same stake.
_BETS = 0.5 ** np.arange(1, 11)
_COST = -np.log1p(-_BETS) - _BETS  # per squared value (Fan, Grama and Liu 2015)


class Sums(NamedTuple):
    """Sums of values between -1 and 1.

    Attributes
    ----------
    size : numbers of values.
    total : their sums.
    squares : the sums of their squares.
    """

    size: ArrayLike
    total: ArrayLike
    squares: ArrayLike

    def at(self, index: int) -> Sums:
        """Return the sums at one position of all arrays."""
        return Sums(*(np.asarray(array)[index] for array in self))

    def limits(self, needed: ArrayLike) -> Limits:
        """Return means of values between -1 and 1 with intervals that hold at every look.

        Parameters
        ----------
        needed : the logarithm of the evidence that excludes a mean on either side: log(2 / a) for a
            confidence of 1 - a at all looks together.
        """
        arrays = (np.asarray(array, float) for array in (*self, needed))
        n, total, squares, reach = np.broadcast_arrays(*arrays)
        value = divide(total, n)

        def lowest(total: Floats, mean: Floats) -> Floats:
            """Return the largest mean under their own that values of a total exclude."""
            return last_holding(
                lambda claimed: log_evidence_above(Sums(n, total, squares), claimed) >= reach,
                np.full(n.shape, -1.0),
                np.nan_to_num(mean),
            )

        return Limits(value, lowest(total, value), -lowest(-total, -value))

    def outside(self, lower: Floats, upper: Floats, needed: Floats) -> Mask:
        """Return whether the evidence that the mean is outside the bounds reaches `needed`."""
        mirrored = Sums(self.size, -np.asarray(self.total), self.squares)
        below = log_evidence_above(mirrored, -lower) >= needed
        return (log_evidence_above(self, upper) >= needed) | below

    def may_be_outside(self, lower: Floats, upper: Floats, needed: Floats) -> Mask:
        """Return where the evidence may be enough for :meth:`outside`, quickly.

        Notes
        -----
        No bet b wins more than b u - b² Q / 2, which is at most u² / 2 Q: u is how far the total is
        beyond what is claimed, and Q the sum of squares.
        """
        n, total, squares = map(np.asarray, self)
        beyond = total - np.clip(total, n * lower, n * upper)
        return np.asarray((beyond != 0) & (beyond**2 >= 2 * needed * squares))


def log_evidence_above(sums: Sums, mean: ArrayLike) -> Floats:
    """Return the logarithm of the evidence that values are above a mean, on average so far.

    Notes
    -----
    Each value x >= -1 of mean m has E exp(b x - (-log(1 - b) - b) x²) <= exp(b m) for any bet b in
    [0, 1) (Fan, Grama and Liu 2015; Howard et al. 2021): the product over the values, averaged over
    the bets, ever reaches 1 / a with a probability of at most a, whatever each value's mean is, as
    long as they average to no more than what is claimed.
    """
    arrays = (np.asarray(array, float)[..., None] for array in (*sums, mean))
    n, total, squares, claimed = arrays
    won = _BETS * (total - n * claimed) - _COST * squares
    return np.logaddexp.reduce(won, axis=-1) - np.log(len(_BETS))


# Intervals of all rows and of the rows since each mark, all of which hold no matter when you look.
#
# One risk buys the whole family. While all of it holds, a quantity has surely changed where its
# interval since a mark and that of all rows up to the mark have nothing in common (Shekhar and
# Ramdas 2023, "Reducing sequential change detection to sequential estimation").

FROM_START = 0.9  # of a quantity's risk, what is left to the interval of all rows


def log_evidence_needed(risk: float, restart: ArrayLike = 0) -> Floats:
    """Return the logarithm of the evidence at which a value is outside an interval.

    Parameters
    ----------
    risk : the probability with which any interval of the family may ever be wrong.
    restart : the number, from 1, of the mark from which the interval counts rows; 0 for the
        interval of all rows.
    """
    k = np.asarray(restart, float)
    later = (1 - FROM_START) / np.maximum(k * (k + 1), 1)
    return np.log(2 / (risk * np.where(k == 0, FROM_START, later)))
