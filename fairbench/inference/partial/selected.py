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

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.inference.partial.ends import Ends
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
        selected, score : (n,) who was selected, and by which similar people are found.
        """
        known, shape = np.isfinite(label), (groups, 2, _BANDS)
        band = np.zeros(len(label), np.int64)
        if score is not None:
            for place, decided in product(range(groups), (0, 1)):
                rows = (group == place) & (decision == decided)
                band[rows] = _bands(score[rows], known[rows])
        cell = np.ravel_multi_index((group, decision, band), shape)
        parts = (~selected, selected, known, known & (label == 1))
        counts = [np.bincount(cell[part], minlength=int(np.prod(shape))) for part in parts]
        return cls(*(count.reshape(shape).astype(np.float64) for count in counts))

    def ends(self, rate: Rate, *, odds: float = NOTHING) -> Ends:
        """Return the least and the largest value (G,) of a rate among all rows.

        Parameters
        ----------
        odds : the factor, at least 1, by which the odds of label 1 of those who were not selected
            differ at most from those of the selected of the same group, decision and band.

        Notes
        -----
        Sharp: a rate is a ratio of sums, so it is least and largest where the share of label 1
        among the others is least or largest, for each decision. Cells without any label leave
        everything open.
        """
        sides = (False, True)
        corners = [self._corner(rate, odds, which) for which in product(sides, sides)]
        values, rows = (np.stack(column) for column in zip(*corners, strict=True))
        unknown = np.isnan(values).all(axis=0)
        ends = []
        for sign in (1, -1):
            place = np.where(np.isnan(values), np.inf, sign * values).argmin(axis=0)[None]
            ends.append([np.take_along_axis(array, place, 0)[0] for array in (values, rows)])
        (lower, lower_rows), (upper, upper_rows) = ends
        lower, upper = (np.where(unknown, np.nan, array) for array in (lower, upper))
        return Ends(lower, upper, lower_rows, upper_rows)

    def _corner(self, rate: Rate, odds: float, which: tuple[bool, bool]) -> tuple[Floats, Floats]:
        """Return a rate (G,) with the others' labels at an end, and of how many rows it is worth.

        Parameters
        ----------
        which : whether the others' share of label 1 is the largest, of decisions 0 and of 1.
        """
        high = np.array(which)[:, None]
        labelled = self.labelled > 0
        plain = np.where(labelled, self.positive / np.maximum(self.labelled, 1), 0.5)
        top, whole, _ = self._sums(rate, plain, odds, high)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(whole > 0, np.clip(top / whole, 0, 1), np.nan)
            # Of few labels, a share of 0 is not known to be 0.
            smooth = np.where(labelled, (self.positive + 0.5) / (self.labelled + 1), 0.5)
            top, whole, error = self._sums(rate, smooth, odds, high)
            middle = top / whole
            rows = middle * (1 - middle) / (error / whole**2)
        return value, np.clip(np.nan_to_num(rows, nan=1.0, posinf=1.0), 1e-9, whole)

    def _sums(
        self, rate: Rate, share: Floats, odds: float, high: NDArray[np.bool_]
    ) -> tuple[Floats, Floats, Floats]:
        """Return a rate's numerator, denominator, and the variance of the one less its share.

        A bound is not straight in the share that it rests on: of few labels it lies a little too
        far inside on average, which is added to the standard error.
        """
        selected = np.where(self.labelled > 0, self.selected, 0.0)
        not_selected = self.others + self.selected - selected
        bound, slope, bend = _bounded(share, odds, high, self.labelled > 0)
        (top, top_slope), (whole, whole_slope) = _lines(rate.numerator), _lines(rate.denominator)

        def total(base: Floats, step: Floats) -> Floats:
            sums = selected * (base + step * share) + not_selected * (base + step * bound)
            return np.asarray(sums.sum(axis=(-2, -1)))

        numerator, denominator = total(top, top_slope), total(whole, whole_slope)
        value = (numerator / np.where(denominator > 0, denominator, np.nan))[:, None, None]
        base, step = top - value * whole, top_slope - value * whole_slope
        between = selected * (base + step * share) ** 2 + not_selected * (base + step * bound) ** 2
        moved = step * (selected + not_selected * slope)
        noise = np.where(self.labelled > 0, share * (1 - share) / np.maximum(self.labelled, 1), 0.0)
        variance = (between + moved**2 * noise).sum(axis=(-2, -1))
        inside = np.abs((step * not_selected * bend * noise / 2).sum(axis=(-2, -1)))
        return numerator, denominator, (np.sqrt(variance) + inside / _QUANTILE) ** 2


def largest_factor(holds: Callable[[float], bool]) -> float:
    """Return the largest factor between odds, up to 10,000, for which something holds.

    Parameters
    ----------
    holds : factor -> whether it does; it does for 1, and for all that are under another such.
    """
    size = float(np.log(_LARGEST_FACTOR)) / _STEPS
    fails = bisect_left(range(_STEPS), True, key=lambda step: not holds(np.exp(step * size)))
    return float(np.exp((fails - 1) * size))


def _bands(score: Floats, labelled: Mask) -> Codes:
    """Return bands of scores, with as many labels in each."""
    bands = int(np.clip(labelled.sum() // _LABELS_OF_BAND, 1, _BANDS))
    if bands == 1:
        return np.zeros(len(score), np.int64)
    edges = np.quantile(score[labelled], np.arange(1, bands) / bands)
    return np.searchsorted(edges, score, side="right").astype(np.int64)


def _lines(cells: tuple[int, int, int, int]) -> tuple[Floats, Floats]:
    """Return what a row of decision 0 or 1 adds to a sum over cells: base, and slope in its label.

    Both are (2, 1), to go with cells by decision and band.
    """
    table = (np.array(cells, float) > 0).astype(float).reshape(2, 2)  # by label, by decision
    return table[0][:, None], (table[1] - table[0])[:, None]


def _bounded(
    share: Floats, odds: float, high: NDArray[np.bool_], labelled: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Return the largest or the least share of label 1 with such odds, and two derivatives."""
    if np.isinf(odds):
        nothing = np.zeros_like(share)
        return np.broadcast_to(high * 1.0, share.shape), nothing, nothing
    factor = np.where(high, odds, 1 / odds)
    scale = 1 + (factor - 1) * share
    bound, slope = factor * share / scale, factor / scale**2
    bend = -2 * slope * (factor - 1) / scale
    return (
        np.where(labelled, bound, high * 1.0),
        np.where(labelled, slope, 0.0),
        np.where(labelled, bend, 0.0),
    )
