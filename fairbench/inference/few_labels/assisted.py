"""Rates of groups from the labels alone, helped by scores of any quality.

A rate of labelled rows is moved by what the scores say of the rows that have no label, as far as
scores have predicted labels within the group. Nothing is assumed of them: scores that are wrong
help less, and at worst not at all. The result is given as counts, of how many labels the labels
and scores together are worth, so that whatever takes counts takes them too.

Difference estimators of survey sampling (Särndal, Swensson & Wretman 1992, "Model assisted survey
sampling", chapter 6); with a fitted slope, prediction-powered inference (Angelopoulos, Duchi &
Zrnic 2023, "PPI++").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairbench.inference.survey import sums
from fairbench.metrics.rates import Rate

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
# Squared errors of so many rows are added on both sides of what scores explain: of few errors, it
# is not known how well they are foreseen.
UNSEEN = 2.0
FEWEST = 5  # labels of a group from which it is asked whether scores help
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of G groups with scores and decisions, of which some were chosen at random for labels.

    Attributes
    ----------
    score, decision, group : (N,) of all rows: in [0, 1], 0 or 1, and 0 .. G - 1.
    rows : (n,) positions of the rows with a label.
    label : (n,) 0 or 1.
    weight : (n,) how many rows of its group each label stands for; None where all stand for as
        many.
    copies : (N,) how many rows each row of the table is; None where each is one.
    spread : (N,) the variance of the scores of these rows, whose mean `score` is; None where it
        is 0.
    """

    score: Floats
    decision: Codes
    group: Codes
    groups: int
    rows: Codes
    label: Codes
    weight: Floats | None = None
    copies: Floats | None = None
    spread: Floats | None = None

    def of_group(self, group: int) -> LabelledRows:
        """Return the rows of one group, those without a label summed up by decision.

        The rates are the same: what scores lead one to expect is linear in them.
        """
        known = np.flatnonzero(self.group[self.rows] == group)
        places = self.rows[known]
        bare = self.group == group
        bare[places] = False
        rows = [bare & (self.decision == each) for each in (0, 1)]
        rows = [each for each in rows if each.any()]
        mean = np.array([self.score[each].mean() for each in rows], float)
        spread = np.array([self.score[each].var() for each in rows], float)
        decided = np.array([self.decision[each][0] for each in rows], np.int64)
        several = np.array([each.sum() for each in rows], float)
        size = len(places) + len(rows)
        return LabelledRows(
            np.concatenate([self.score[places], mean]),
            np.concatenate([self.decision[places], decided]),
            np.zeros(size, np.int64),
            1,
            np.arange(len(places)),
            self.label[known],
            None if self.weight is None else self.weight[known],
            np.concatenate([np.ones(len(places)), several]),
            np.concatenate([np.zeros(len(places)), spread]),
        )

    def effective_counts(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return the counts that the labels are worth, successes and sizes (R, G) of each rate.

        A rate that rests on decisions alone is counted in all rows. A group without a row of the
        rate's denominator among its labels has a size of 0.
        """
        pairs = [
            self._known(rate) if needs_no_label(rate) else self._effective(rate) for rate in rates
        ]
        successes, sizes = np.array(pairs, float).transpose(1, 0, 2)
        return successes, sizes

    def rows_of(self, rates: Sequence[Rate]) -> Floats:
        """Return how many rows (R, G) each rate rests on, with labels where it needs them."""
        sizes = [
            self._sum_all(_cells(rate.denominator)[self.decision])
            if needs_no_label(rate)
            else self._sum(_cells(rate.denominator)[self._cell])
            for rate in rates
        ]
        return np.array(sizes)

    def _known(self, rate: Rate) -> tuple[Floats, Floats]:
        top, bottom = (_cells(each)[self.decision] for each in (rate.numerator, rate.denominator))
        return self._sum_all(top), self._sum_all(bottom)

    def correlation(self, first: Rate, second: Rate) -> Floats:
        """Return the correlations (G,) of the errors of two rates that rest on distinct rows.

        Without scores they are 0. Both rates are moved by what scores say of the same rows without
        labels, and what is left of their errors then belongs together: of balanced accuracy, at
        scores that say little, to a correlation of a half. One below 0 would narrow an interval on
        the evidence of few rows, and counts as 0.
        """
        one, other = (self._helped(rate).rest for rate in (first, second))
        both = self._sum(one**2) * self._sum(other**2)
        together = self._sum(one * other) / np.sqrt(np.maximum(both, _TINY))
        return np.asarray(np.clip(together, 0, 1))

    def _effective(self, rate: Rate) -> tuple[Floats, Floats]:
        weight, bottom = self._weights, _cells(rate.denominator)[self._cell]
        whole = np.maximum(self._sum(weight * bottom), _TINY)
        size = whole**2 / np.maximum(self._sum((weight * bottom) ** 2), _TINY)
        size = np.where(self._sum(bottom) > 0, size * self._free, 0.0)
        helped = self._helped(rate)
        value = np.clip(self._share(rate) + helped.moved / whole, 0, 1)
        size = size / helped.left
        return value * size, size

    @property
    def _cell(self) -> Codes:
        """The cell of each labelled row."""
        return 2 * self.label + self.decision[self.rows]

    def _share(self, rate: Rate) -> Floats:
        """Return a rate of the labelled rows by themselves, (G,)."""
        top, bottom = (
            self._sum(self._weights * _cells(each)[self._cell])
            for each in (rate.numerator, rate.denominator)
        )
        return np.asarray(top / np.maximum(bottom, _TINY))

    def _helped(self, rate: Rate) -> _Help:
        """Return what scores make of the influence that labelled rows have on a rate.

        The slope is fitted by least squares to the labelled rows of a group, and reduced by what
        of its fit does not hold for rows that are left out of it. What scores say varies among the
        labelled rows at least as much as among all rows, for the sake of the slope: where few rows
        have extreme scores and none of them has a label yet, a slope fitted to the little by which
        the others differ would be stretched to them, and be noise.
        """
        of, weight, count = self.group[self.rows], self._weights, self._labels
        top, bottom = (_cells(each)[self._cell] for each in (rate.numerator, rate.denominator))
        share = self._share(rate)
        expected, mean, variance = self._expected(rate, share)
        total, rows = np.maximum(self._sum(weight), _TINY), self._sum(weight**2)
        centre = self._sum(weight * expected) / total
        away, scaled = weight * (expected - centre[of]), weight * (top - share[of] * bottom)
        several = np.maximum(count, 2)
        more = several / (several - 1)
        least = np.maximum(rows * variance / more, _TINY)
        squares, products = self._sum(away**2), self._sum(away * scaled)
        fitted = products / np.maximum(squares, least)
        others = np.maximum(squares[of] - more[of] * away**2, (least / more)[of])
        of_others = (products[of] - more[of] * away * scaled) / others
        left_out = self._sum((more[of] * (scaled - of_others * away)) ** 2)
        alone, plain = self._sum((more[of] * scaled) ** 2), self._sum(scaled**2)
        holds = 1 - left_out / np.maximum(alone, _TINY)
        fits = 1 - self._sum((scaled - fitted[of] * away) ** 2) / np.maximum(plain, _TINY)
        kept = np.clip(holds / np.maximum(fits, _TINY), 0, 1)
        slope = np.where(count >= FEWEST, fitted * kept, 0)
        unseen = UNSEEN * rows / np.maximum(count, 1)
        left = np.clip((left_out + unseen) / np.maximum(alone + unseen, _TINY), _TINY, 1)
        left = np.where(count >= FEWEST, left, 1.0)
        labelled = count / np.maximum(self._rows_of, 1)
        moved = slope * (mean - centre) * total
        return _Help(moved, left + (1 - left) * labelled, scaled - slope[of] * away)

    def _expected(self, rate: Rate, share: Floats) -> tuple[Floats, Floats, Floats]:
        """Return what scores lead one to expect of the influence of rows on a rate.

        Returns
        -------
        That of labelled rows (n,), and its mean and variance (G,) over all rows.
        """
        top, bottom = _cells(rate.numerator), _cells(rate.denominator)
        zero, one = (
            top[self.decision + 2 * label] - share[self.group] * bottom[self.decision + 2 * label]
            for label in (0, 1)
        )
        expected = (1 - self.score) * zero + self.score * one
        rows = np.maximum(self._rows_of, 1)
        mean = self._sum_all(expected) / rows
        squares = (expected - mean[self.group]) ** 2
        if self.spread is not None:
            squares = squares + self.spread * (one - zero) ** 2
        return expected[self.rows], mean, self._sum_all(squares) / rows

    @property
    def _weights(self) -> Floats:
        return np.ones(len(self.rows)) if self.weight is None else self.weight

    @property
    def _labels(self) -> Floats:
        """The labels of each group; where they stand for unequally many, Kish's number."""
        whole, squares = self._sum(self._weights), self._sum(self._weights**2)
        return whole**2 / np.maximum(squares, _TINY)

    @property
    def _free(self) -> Floats:
        """The share of each group's labels that is left less one for each further weight.

        Parts of a group that were labelled at rates of their own have their own mean each, and
        what is known of how labels scatter comes from the others: as degrees of freedom are lost.
        """
        if self.weight is None:
            return np.ones(self.groups)
        labels = self._sum(np.ones(len(self.rows)))
        pairs = np.unique(np.stack([self.group[self.rows], self.weight]), axis=1)
        weights = np.bincount(pairs[0].astype(np.int64), minlength=self.groups)
        return np.asarray((labels - np.maximum(weights - 1, 0)) / np.maximum(labels, 1))

    @property
    def _rows_of(self) -> Floats:
        """The rows of each group."""
        return self._sum_all(np.ones(len(self.group)))

    def _sum(self, values: Floats) -> Floats:
        if self.groups == 1:
            return np.asarray(values.sum(keepdims=True))
        return sums(values, self.group[self.rows], self.groups)

    def _sum_all(self, values: Floats) -> Floats:
        counted = values if self.copies is None else values * self.copies
        return sums(counted, self.group, self.groups)


@dataclass(frozen=True, eq=False)
class _Help:
    """What scores make of a rate's labelled rows.

    Attributes
    ----------
    moved : (G,) by how much the sum of influences moves. left : (G,) the share of their variance
        that is left. rest : (n,) what is left of the influence of each labelled row.
    """

    moved: Floats
    left: Floats
    rest: Floats


def _cells(weights: Sequence[int]) -> Floats:
    """Return which of the cells TN, FP, FN, TP are counted."""
    return (np.array(weights) > 0).astype(float)


def needs_no_label(rate: Rate) -> bool:
    """Say whether a rate rests on decisions alone."""
    return all(each[:2] == each[2:] for each in (rate.numerator, rate.denominator))
