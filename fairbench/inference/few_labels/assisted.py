"""Rates of groups from few labels, assisted by scores of any quality.

The rate of the labelled rows is corrected by the scores of the rows without a label. The better the
scores have predicted labels within the group, the larger is the correction. Nothing is assumed of
the scores: bad ones help less, and at worst not at all. The result is given as effective counts,
the number of labels that would give the same variance without scores. All functions of counts can
therefore use it.

Difference estimators of survey sampling (Särndal, Swensson & Wretman 1992, "Model assisted survey
sampling", chapter 6); with a fitted slope, prediction-powered inference (Angelopoulos, Duchi &
Zrnic 2023, "PPI++").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairbench.core.arrays import Codes, Floats
from fairbench.inference.survey import sums
from fairbench.metrics.registry import Rate

# This many mean squared weights are added to the squared errors with and without scores. With few
# labels, which hardly show how well scores predict, it shrinks what scores explain towards 0.
UNSEEN = 2.0
# With n rows of a rate's rarer outcome, n / (n + FEW_EVENTS) of the fitted slope is kept: a few
# errors are predicted by chance as often as not.
FEW_EVENTS = 4.0
FEWEST = 5  # with fewer labels in a group, its scores are not used
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of G groups with scores and decisions, some of them labelled at random.

    Attributes
    ----------
    score : (N,) scores of all rows, in [0, 1].
    decision : (N,) decisions on all rows, 0 or 1.
    group : (N,) groups of all rows, 0 .. G - 1.
    groups : G, the number of groups.
    rows : (n,) positions of the rows with a label.
    label : (n,) their labels, 0 or 1.
    weight : (n,) how many rows of its group each label stands for; None where all labels stand for
        equally many.
    copies : (N,) how many rows of the data each row stands for; None where each is one. `score` is
        the mean score of the rows it stands for.
    spread : (N,) the variance of the scores of these rows; None where it is 0.
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
        """Return the rows of one group, with its unlabelled rows merged by decision.

        The rates stay the same, because a row's expected influence is linear in its score.
        """
        of_this_group = np.flatnonzero(self.group[self.rows] == group)
        labelled_rows = self.rows[of_this_group]
        n_labelled = len(labelled_rows)
        unlabelled = self.group == group
        unlabelled[labelled_rows] = False
        by_decision = [unlabelled & (self.decision == decision) for decision in (0, 1)]
        merged = [mask for mask in by_decision if mask.any()]
        mean = np.array([self.score[mask].mean() for mask in merged], float)
        spread = np.array([self.score[mask].var() for mask in merged], float)
        merged_decision = np.array([self.decision[mask][0] for mask in merged], np.int64)
        copies = np.array([mask.sum() for mask in merged], float)
        return LabelledRows(
            score=np.concatenate([self.score[labelled_rows], mean]),
            decision=np.concatenate([self.decision[labelled_rows], merged_decision]),
            group=np.zeros(n_labelled + len(merged), np.int64),
            groups=1,
            rows=np.arange(n_labelled),
            label=self.label[of_this_group],
            weight=None if self.weight is None else self.weight[of_this_group],
            copies=np.concatenate([np.ones(n_labelled), copies]),
            spread=np.concatenate([np.zeros(n_labelled), spread]),
        )

    def effective_counts(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return the effective successes and sizes (R, G) of each rate.

        A rate that rests on decisions alone is counted in all rows. A group without a row of the
        rate's denominator among its labels has a size of 0.
        """
        counts = []
        for rate in rates:
            if needs_no_label(rate):
                cells = _cells(rate.numerator), _cells(rate.denominator)
                counts.append([self._sum_all(counted[self.decision]) for counted in cells])
                continue
            share, size, denominator, events, *influences = self._from_labels(rate)
            moved, remaining = self._variance_reduction(events, *influences)
            size = size / remaining
            counts.append([np.clip(share + moved / denominator, 0, 1) * size, size])
        successes, sizes = np.array(counts, float).transpose(1, 0, 2)
        return successes, sizes

    def effective_counts_of_mean(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return effective successes and sizes (R, G) whose mean over rates has the right variance.

        If every rate is assisted by itself, the errors of the rates become correlated: a high score
        moves the true positive and the true negative rate in opposite directions, so that it
        reduces the error of either but not that of their mean. Here the slope is fitted to the mean
        of the rates; each rate's effective size is scaled by the variance reduction of that mean.
        The errors of the rates then count as independent, as they are with labels alone. The counts
        are valid for the mean of the rates, not for a single one.

        Parameters
        ----------
        rates : the rates; no row is in the denominators of two of them.
        """
        parts = [self._from_labels(rate) for rate in rates]
        shares, sizes, denominators, events, influences, expected, by_score = zip(
            *parts, strict=True
        )
        # Influences are scaled to the smallest denominator of the rates.
        smallest = np.minimum.reduce(denominators)
        factors = [smallest / denominator for denominator in denominators]
        of_all = [factor[self.group] for factor in factors]
        moved, remaining = self._variance_reduction(
            np.minimum.reduce(events),
            _weighted_sum([factor[self.group[self.rows]] for factor in factors], influences),
            _weighted_sum(of_all, expected),
            _weighted_sum(of_all, by_score),
        )
        means = _move_together(np.array(shares), moved / smallest)
        effective = np.array(sizes) / remaining
        return means * effective, effective

    def rows_of(self, rates: Sequence[Rate]) -> Floats:
        """Return how many rows (R, G) each rate rests on, with labels where it needs them."""
        cell = 2 * self.label + self.decision[self.rows]
        sizes = [
            self._sum_all(_cells(rate.denominator)[self.decision])
            if needs_no_label(rate)
            else self._sum(_cells(rate.denominator)[cell])
            for rate in rates
        ]
        return np.array(sizes)

    def _from_labels(self, rate: Rate) -> tuple[Floats, ...]:
        """Return a rate of the labelled rows, and the influence that scores predict for all.

        Returns
        -------
        share : (G,) the rates.
        size : (G,) effective numbers of labels that they rest on.
        denominator : (G,) how many rows of the group the labels in the denominator stand for.
        events : (G,) how many labels of the rarer outcome there are.
        influence : (n,) how far each labelled row moves its group's rate, times `denominator`.
        expected : (N,) the influence of every row that its score predicts.
        by_score : (N,) the slope of the expected influence in the score.
        """
        numerator_of, denominator_of = _cells(rate.numerator), _cells(rate.denominator)
        cell = 2 * self.label + self.decision[self.rows]
        in_numerator, in_denominator = numerator_of[cell], denominator_of[cell]
        weight = self._weights
        denominator = np.maximum(self._sum(weight * in_denominator), _TINY)
        squared_weights = np.maximum(self._sum((weight * in_denominator) ** 2), _TINY)
        kish_size = denominator**2 / squared_weights
        share = self._sum(weight * in_numerator) / denominator
        events = np.minimum(share, 1 - share) * kish_size
        has_rows = self._sum(in_denominator) > 0
        size = np.where(has_rows, kish_size * self._degrees_of_freedom_left, 0.0)
        influence = in_numerator - share[self.group[self.rows]] * in_denominator
        # The influence of every row if its label were 0, and 1.
        if_zero, if_one = (
            numerator_of[self.decision + 2 * label]
            - share[self.group] * denominator_of[self.decision + 2 * label]
            for label in (0, 1)
        )
        expected = (1 - self.score) * if_zero + self.score * if_one
        return share, size, denominator, events, influence, expected, if_one - if_zero

    def _variance_reduction(
        self, events: Floats, influence: Floats, expected: Floats, by_score: Floats
    ) -> tuple[Floats, Floats]:
        """Return how far scores move each group's rate, and how much of its variance remains.

        That is (G,) what they add to the sum of influences, and the share of the variance.

        Parameters
        ----------
        events : (G,) numbers of labels of the rarer outcome.
        influence : (n,) the influence of each labelled row.
        expected, by_score : (N,) what the scores predict of the influence of all rows, and its
            slope in the score.

        Notes
        -----
        In each group:

        1. Fit the slope b of influences on predictions, by least squares. The labelled rows i have
           weights w_i, influences y_i and predictions x_i. The predictor is
           a_i = w_i (x_i - mean of x), the response is z_i = w_i y_i, and the slope is
           sum(a z) / max(sum(a^2), V). V is the value of sum(a^2) if the predictions of labelled
           rows varied as much as those of all rows. Without V, if few rows have extreme scores and
           none of them is labelled yet, a slope fitted to small differences among the others would
           be extrapolated to them, and would be noise.
        2. Compute the errors of rows that are left out of the fit. With J = n / (n - 1) of a
           group's n labels, the slope without row i is
           (sum(a z) - J a_i z_i) / max(sum(a^2) - J a_i^2, V / J), and the errors of the row are
           J (z_i - slope a_i) and, without scores, J z_i.
        3. Shrink b by the factor s by which left-out rows are predicted worse than those in the
           fit. With the squared errors of left-out rows with and without scores, E and E0, and the
           same errors of the rows in the fit, E_in and E0_in, it is
           (1 - E / E0) / (1 - E_in / E0_in), limited to [0, 1].
        4. Estimate the share of the variance that remains, v = (E + u) / (E0 + u), at most 1, with
           u = UNSEEN times the mean squared weight.
        5. Keep the part q = e / (e + FEW_EVENTS) of the slope, where e is the number of events. The
           slope is then b s q, and the explained share of the variance (1 - v) (1 - (1 - q)^2).
        6. Leave the variance of labelled rows as it is: their labels are known.
        """
        group, weight, n_labels = self.group[self.rows], self._weights, self._labels
        rows = np.maximum(self._sum_all(np.ones(len(self.group))), 1)
        mean_of_all = self._sum_all(expected) / rows
        squares_of_all = (expected - mean_of_all[self.group]) ** 2
        if self.spread is not None:
            squares_of_all = squares_of_all + self.spread * by_score**2
        total_weight = np.maximum(self._sum(weight), _TINY)
        squared_weights = self._sum(weight**2)
        predicted = expected[self.rows]
        mean_of_labelled = self._sum(weight * predicted) / total_weight
        predictor = weight * (predicted - mean_of_labelled[group])
        response = weight * influence
        # Leaving a row out of its own mean enlarges its error by this factor, n / (n - 1).
        jackknife = np.maximum(n_labels, 2) / (np.maximum(n_labels, 2) - 1)
        variance_of_all = self._sum_all(squares_of_all) / rows
        least_squares = np.maximum(squared_weights * variance_of_all / jackknife, _TINY)
        squares, products = self._sum(predictor**2), self._sum(predictor * response)
        slope = products / np.maximum(squares, least_squares)

        factor = jackknife[group]
        squares_of_others = np.maximum(
            squares[group] - factor * predictor**2, (least_squares / jackknife)[group]
        )
        slope_of_others = (products[group] - factor * predictor * response) / squares_of_others
        with_scores = self._sum((factor * (response - slope_of_others * predictor)) ** 2)
        without_scores = self._sum((factor * response) ** 2)

        explained_left_out = 1 - with_scores / np.maximum(without_scores, _TINY)
        error_in_fit = self._sum((response - slope[group] * predictor) ** 2)
        explained_in_fit = 1 - error_in_fit / np.maximum(self._sum(response**2), _TINY)
        shrinkage = np.clip(explained_left_out / np.maximum(explained_in_fit, _TINY), 0, 1)
        unseen = UNSEEN * squared_weights / np.maximum(n_labels, 1)
        remaining = np.clip(
            (with_scores + unseen) / np.maximum(without_scores + unseen, _TINY), _TINY, 1
        )
        has_enough = n_labels >= FEWEST
        slope = np.where(has_enough, slope * shrinkage, 0)
        remaining = np.where(has_enough, remaining, 1.0)
        kept = events / (events + FEW_EVENTS)
        slope = slope * kept
        remaining = 1 - (1 - remaining) * kept * (2 - kept)
        labelled_share = n_labels / rows
        moved = slope * (mean_of_all - mean_of_labelled) * total_weight
        return moved, remaining + (1 - remaining) * labelled_share

    @property
    def _weights(self) -> Floats:
        """How many rows each label stands for, (n,)."""
        return np.ones(len(self.rows)) if self.weight is None else self.weight

    @property
    def _labels(self) -> Floats:
        """Numbers of labels (G,); Kish's effective numbers where labels have unequal weights."""
        total, squares = self._sum(self._weights), self._sum(self._weights**2)
        return total**2 / np.maximum(squares, _TINY)

    @property
    def _degrees_of_freedom_left(self) -> Floats:
        """The share (G,) of degrees of freedom that remains after one for each further weight.

        The parts of a group that were labelled at different rates have a mean each. Every mean that
        is estimated takes one degree of freedom from the estimate of the variance.
        """
        if self.weight is None:
            return np.ones(self.groups)
        n_labels = self._sum(np.ones(len(self.rows)))
        pairs = np.unique(np.stack([self.group[self.rows], self.weight]), axis=1)
        n_weights = np.bincount(pairs[0].astype(np.int64), minlength=self.groups)
        return np.asarray((n_labels - np.maximum(n_weights - 1, 0)) / np.maximum(n_labels, 1))

    def _sum(self, values: Floats) -> Floats:
        """Return the sums (G,) of values (n,) of labelled rows."""
        if self.groups == 1:
            return np.asarray(values.sum(keepdims=True))
        return sums(values, self.group[self.rows], self.groups)

    def _sum_all(self, values: Floats) -> Floats:
        """Return the sums (G,) of values (N,) of all rows."""
        counted = values if self.copies is None else values * self.copies
        return sums(counted, self.group, self.groups)


def _weighted_sum(weights: Sequence[Floats], arrays: Sequence[Floats]) -> Floats:
    """Return the sum of arrays, each times a weight, added in their order."""
    total = np.zeros_like(arrays[0])
    for weight, array in zip(weights, arrays, strict=True):
        total = total + weight * array
    return total


def _move_together(shares: Floats, sum_change: Floats) -> Floats:
    """Return shares (R, G) whose sum is changed, each by the same part of its way to 0 or 1.

    The scores determine the sum. How the change divides among the shares is known less well; this
    division keeps each share in [0, 1].
    """
    room = np.where(sum_change > 0, (1 - shares).sum(axis=0), shares.sum(axis=0))
    step = np.clip(sum_change / np.maximum(room, _TINY), -1, 1)
    return np.asarray(np.where(step > 0, shares + step * (1 - shares), shares * (1 + step)))


def _cells(weights: Sequence[int]) -> Floats:
    """Return 1 for each of the cells TN, FP, FN, TP that a rate counts, else 0."""
    return (np.array(weights) > 0).astype(float)


def needs_no_label(rate: Rate) -> bool:
    """Return whether a rate rests on decisions alone."""
    return all(array[:2] == array[2:] for array in (rate.numerator, rate.denominator))
