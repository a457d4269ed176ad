"""Labels that exist only for those who were selected: what follows for everyone.

Whether somebody would have repaid a loan is known only of those who got one. Without an assumption
the labels of the others may be anything. With one, they resemble those of similar people who were
selected: the odds of label 1 differ by a factor at most.

Manski (1989), "Anatomy of the selection problem"; Rambachan, Coston & Kennedy (2022), "Robust
design and evaluation of predictive algorithms under unobserved confounding", with the odds
bounded as in Rosenbaum's and Tan's models of sensitivity.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.inference.partial.bounds import RateBounds
from fairbench.metrics.rates import Rate

Codes = NDArray[np.int64]

NOTHING = np.inf  # the factor that assumes nothing
_BANDS = 5
_LABELS_OF_BAND = 30
_LARGEST_FACTOR = 1e4
_STEPS = 2**20  # of factors up to it, equal in their logarithms
_QUANTILE = 1.96  # standard errors to either side of an interval


@dataclass(frozen=True, eq=False)
class SelectedLabels:
    """Rows of G groups by decision of the model (0, 1) and by B bands of similar people, (G, 2, B).

    Attributes
    ----------
    others : how many were not selected; no label of theirs is known.
    selected : how many were.
    labelled : how many of the selected have a label, chosen at random among those of their cell.
    positive : how many of these have label 1.
    """

    others: Floats
    selected: Floats
    labelled: Floats
    positive: Floats

    @classmethod
    def of(
        cls,
        label: Floats,
        decision: Codes,
        group: Codes,
        groups: int,
        *,
        selected: Mask,
        score: Floats | None = None,
    ) -> SelectedLabels:
        """Return counts of rows, in bands of scores with labels enough to say something.

        Parameters
        ----------
        label : (n,) 0, 1, or NaN where unknown.
        decision : (n,) 0 or 1.
        group : (n,) codes 0 .. G - 1.
        groups : G, the number of groups.
        selected : (n,) who was selected.
        score : (n,) the scores by which similar people are found; None puts all in one band.
        """
        known = np.isfinite(label)
        shape = (groups, 2, _BANDS)
        band = np.zeros(len(label), np.int64)
        if score is not None:
            for one_group, one_decision in product(range(groups), (0, 1)):
                in_cell = (group == one_group) & (decision == one_decision)
                band[in_cell] = _bands(score[in_cell], known[in_cell])
        cell = np.ravel_multi_index((group, decision, band), shape)

        def count(rows: Mask) -> Floats:
            counts = np.bincount(cell[rows], minlength=int(np.prod(shape)))
            return counts.reshape(shape).astype(np.float64)

        return cls(
            others=count(~selected),
            selected=count(selected),
            labelled=count(known),
            positive=count(known & (label == 1)),
        )

    def bounds(self, rate: Rate, *, odds: float = NOTHING) -> RateBounds:
        """Return the least and the largest value (G,) of a rate among all rows.

        Parameters
        ----------
        rate : the rate.
        odds : the factor, at least 1, by which the odds of label 1 of those who were not selected
            differ at most from those of the selected of the same group, decision and band.

        Notes
        -----
        Sharp: a rate is a ratio of sums, so it is least and largest where the share of label 1
        among the others is least or largest, for each decision. Cells without any label leave
        everything open.
        """
        sides = (False, True)
        corners = [self._corner(rate, odds, largest) for largest in product(sides, sides)]
        values = np.stack([corner.value for corner in corners])
        effective_rows = np.stack([corner.effective_rows for corner in corners])
        unknown = np.isnan(values).all(axis=0)

        def extreme(sign: int) -> _Corner:
            """Return the corner of the least value (sign 1) or of the largest (-1), by group."""
            ranked = np.where(np.isnan(values), np.inf, sign * values)
            corner = ranked.argmin(axis=0)[None]
            value, rows = (
                np.take_along_axis(array, corner, 0)[0] for array in (values, effective_rows)
            )
            return _Corner(np.where(unknown, np.nan, value), rows)

        least, largest = extreme(1), extreme(-1)
        return RateBounds(
            lower=least.value,
            upper=largest.value,
            lower_rows=least.effective_rows,
            upper_rows=largest.effective_rows,
        )

    def _corner(self, rate: Rate, odds: float, largest: tuple[bool, bool]) -> _Corner:
        """Return a rate (G,) where the unknown labels are as extreme as the odds allow.

        Parameters
        ----------
        rate : the rate.
        odds : the factor between odds, as in :meth:`bounds`.
        largest : whether the others' share of label 1 is the largest, for decisions 0 and 1.
        """
        high = np.array(largest)[:, None]
        value = self._corner_value(rate, odds, high)
        return _Corner(value, self._corner_rows(rate, odds, high))

    def _corner_value(self, rate: Rate, odds: float, high: Mask) -> Floats:
        """Return the rate (G,) at a corner, from the shares of label 1 as they are."""
        has_labels = self.labelled > 0
        share = np.where(has_labels, self.positive / np.maximum(self.labelled, 1), 0.5)
        shares = self._shares(share, odds, high)
        numerator = self._total(rate.numerator, shares)
        denominator = self._total(rate.denominator, shares)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.clip(numerator / denominator, 0, 1)
        return np.where(denominator > 0, ratio, np.nan)

    def _corner_rows(self, rate: Rate, odds: float, high: Mask) -> Floats:
        """Return the effective rows (G,) of the rate at a corner.

        Half a label is added to either side: of few labels, a share of 0 is not known to be 0.
        """
        has_labels = self.labelled > 0
        share = np.where(has_labels, (self.positive + 0.5) / (self.labelled + 1), 0.5)
        shares = self._shares(share, odds, high)
        numerator = self._total(rate.numerator, shares)
        denominator = self._total(rate.denominator, shares)
        with np.errstate(invalid="ignore", divide="ignore"):
            error = self._squared_error(rate, shares, numerator, denominator)
            value = numerator / denominator
            rows = value * (1 - value) / (error / denominator**2)
        return np.clip(np.nan_to_num(rows, nan=1.0, posinf=1.0), 1e-9, denominator)

    def _shares(self, share: Floats, odds: float, high: Mask) -> _Shares:
        """Return the shares of label 1 (G, 2, B) of those with and without known labels."""
        has_labels = self.labelled > 0
        selected = np.where(has_labels, self.selected, 0.0)
        return _Shares(
            n_known=selected,
            n_unknown=self.others + self.selected - selected,
            known=share,
            unknown=_share_bound(share, odds, high, has_labels),
        )

    @staticmethod
    def _total(cells: tuple[int, int, int, int], shares: _Shares) -> Floats:
        """Return how many rows (G,) are expected in some cells of the confusion table."""
        base, slope = _lines(cells)
        expected = shares.n_known * (base + slope * shares.known) + shares.n_unknown * (
            base + slope * shares.unknown.share
        )
        return np.asarray(expected.sum(axis=(-2, -1)))

    def _squared_error(
        self, rate: Rate, shares: _Shares, numerator: Floats, denominator: Floats
    ) -> Floats:
        """Return the squared error (G,) of numerator - r denominator at the rate r.

        Notes
        -----
        The delta method. A row with the probability p of label 1 adds z(p) = b + d p, on average,
        to numerator - r denominator. In a cell of n labels with the share p, the bound of the n_u
        rows of unknown label is h(p) and their n_k others have p, so that the variance is::

            sum over cells of  n_k z(p)^2 + n_u z(h)^2          which rows there are
                             + d^2 (n_k + n_u h'(p))^2 p (1 - p) / n    how well p is known

        The bound h is not straight in p: of few labels it lies too far inside by
        d n_u h''(p) p (1 - p) / 2n on average. That is added to the standard error, in units of
        the normal quantile of an interval.
        """
        (base, slope), (whole, whole_slope) = _lines(rate.numerator), _lines(rate.denominator)
        value = (numerator / np.where(denominator > 0, denominator, np.nan))[:, None, None]
        b, d = base - value * whole, slope - value * whole_slope
        n_known, n_unknown, p, bound = shares
        between_rows = n_known * (b + d * p) ** 2 + n_unknown * (b + d * bound.share) ** 2
        by_share = d * (n_known + n_unknown * bound.slope)
        share_variance = np.where(
            self.labelled > 0, p * (1 - p) / np.maximum(self.labelled, 1), 0.0
        )
        variance = (between_rows + by_share**2 * share_variance).sum(axis=(-2, -1))
        bias = np.abs((d * n_unknown * bound.curvature * share_variance / 2).sum(axis=(-2, -1)))
        return np.asarray((np.sqrt(variance) + bias / _QUANTILE) ** 2)


class _Corner(NamedTuple):
    """A rate (G,) with the unknown labels at an extreme, and its effective rows (G,)."""

    value: Floats
    effective_rows: Floats


class _ShareBound(NamedTuple):
    """The extreme share of label 1 of unknown rows, as a function of the known share.

    Attributes
    ----------
    share : (G, 2, B) the least or the largest share.
    slope, curvature : (G, 2, B) its first and second derivative by the known share.
    """

    share: Floats
    slope: Floats
    curvature: Floats


class _Shares(NamedTuple):
    """Numbers of rows and shares of label 1 by group, decision and band, (G, 2, B).

    Attributes
    ----------
    n_known, n_unknown : rows whose share of label 1 the labels tell, and the others.
    known : the share of the former.
    unknown : the bound of the share of the latter.
    """

    n_known: Floats
    n_unknown: Floats
    known: Floats
    unknown: _ShareBound


def largest_factor(holds: Callable[[float], bool]) -> float:
    """Return the largest factor between odds, up to 10,000, for which a condition holds.

    Parameters
    ----------
    holds : the condition of a factor. It must hold for 1, and for every factor below one for which
        it holds.
    """
    size = float(np.log(_LARGEST_FACTOR)) / _STEPS
    fails = bisect_left(range(_STEPS), True, key=lambda step: not holds(np.exp(step * size)))
    return float(np.exp((fails - 1) * size))


def _bands(score: Floats, labelled: Mask) -> Codes:
    """Return the band of each score; bands have equally many labels."""
    bands = int(np.clip(labelled.sum() // _LABELS_OF_BAND, 1, _BANDS))
    if bands == 1:
        return np.zeros(len(score), np.int64)
    edges = np.quantile(score[labelled], np.arange(1, bands) / bands)
    return np.searchsorted(edges, score, side="right").astype(np.int64)


def _lines(cells: tuple[int, int, int, int]) -> tuple[Floats, Floats]:
    """Return what a row adds to a sum over cells, as a line (base, slope) in its label.

    Both are (2, 1): one line for each decision, broadcasting over bands.
    """
    table = (np.array(cells, float) > 0).astype(float).reshape(2, 2)  # by label, by decision
    return table[0][:, None], (table[1] - table[0])[:, None]


def _share_bound(share: Floats, odds: float, high: Mask, has_labels: Mask) -> _ShareBound:
    """Return the largest (where `high`) or the least share of label 1 that the odds allow.

    Notes
    -----
    Odds that differ by the factor f from those of a share p are those of the share
    h(p) = f p / (1 + (f - 1) p), with h' = f / (1 + (f - 1) p)^2 and
    h'' = -2 h' (f - 1) / (1 + (f - 1) p). Without labels h is 0 or 1.
    """
    if np.isinf(odds):
        nothing = np.zeros_like(share)
        return _ShareBound(np.broadcast_to(high * 1.0, share.shape), nothing, nothing)
    factor = np.where(high, odds, 1 / odds)
    scale = 1 + (factor - 1) * share
    bound = factor * share / scale
    slope = factor / scale**2
    curvature = -2 * slope * (factor - 1) / scale
    return _ShareBound(
        share=np.where(has_labels, bound, high * 1.0),
        slope=np.where(has_labels, slope, 0.0),
        curvature=np.where(has_labels, curvature, 0.0),
    )
