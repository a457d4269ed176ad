"""Rates of groups from few labels, helped by scores of any quality.

A rate of labelled rows is corrected by the scores of the rows without a label, as far as scores
have predicted labels within the group. Nothing is assumed of the scores: those that are wrong help
less, and at worst not at all. The result is given as effective counts: as many labels as the labels
and the scores together are worth. Whatever takes counts can therefore take them.

Difference estimators of survey sampling (Särndal, Swensson & Wretman 1992, "Model assisted survey
sampling", chapter 6); with a fitted slope, prediction-powered inference (Angelopoulos, Duchi &
Zrnic 2023, "PPI++").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.survey import sums
from fairbench.metrics.rates import Rate

Codes = NDArray[np.int64]
# As many average squared weights are added to the squared errors with and without the scores. It
# draws what scores explain towards nothing where there are few labels, which show little of how
# well scores predict.
UNSEEN = 2.0
# With n rows of a rate's rarer outcome, n / (n + FEW_EVENTS) of the fitted slope is kept: a few
# errors are predicted by chance as often as not.
FEW_EVENTS = 4.0
FEWEST = 5  # labels of a group under which scores are not used
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
        their mean score.
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
        """Return the rows of one group, where its rows without a label are merged by decision.

        The rates stay the same, as what is expected of a row is linear in its score.
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
        counts = [
            self._counts_of_decisions(rate)
            if needs_no_label(rate)
            else self._effective_counts(rate)
            for rate in rates
        ]
        successes, sizes = np.array(counts, float).transpose(1, 0, 2)
        return successes, sizes

    def effective_counts_of_mean(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return effective counts (R, G) of rates of distinct rows that are right for their mean.

        The errors of rates that are helped one by one go together. A score that says "rather 1"
        moves the true positive and the true negative rate in opposite directions: what it takes
        away of the error of either it does not take away of their mean's, and the two errors that
        are left are alike. So the slope is fitted to the mean, and the labels of each rate are
        worth so many times more as those of the mean are. The errors then count as independent, as
        those of labels alone are; it is the mean of the rates that is right, not either of them.

        Parameters
        ----------
        rates : the rates; no row is in the denominators of two of them.
        """
        from_labels = [self._from_labels(rate) for rate in rates]
        # Influences are put in rows of the rate that rests on fewest.
        fewest = np.minimum.reduce([estimate.denominator for estimate in from_labels])
        influence = np.zeros(len(self.rows))
        expected = _Expected(np.zeros(len(self.score)), np.zeros(len(self.score)))
        for estimate in from_labels:
            factor = fewest / estimate.denominator
            influence += factor[self.group[self.rows]] * estimate.influence
            expected = expected.plus(estimate.expected, factor[self.group])
        events = np.minimum.reduce([estimate.events for estimate in from_labels])
        help_of_scores = self._help_of_scores(influence, expected, events)
        shares = _move_together(
            np.array([estimate.share for estimate in from_labels]), help_of_scores.moved / fewest
        )
        sizes = np.array([estimate.size for estimate in from_labels]) / help_of_scores.variance_left
        return shares * sizes, sizes

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

    def _counts_of_decisions(self, rate: Rate) -> tuple[Floats, Floats]:
        """Return the counts of a rate that rests on decisions alone, in all rows."""
        in_numerator = _cells(rate.numerator)[self.decision]
        in_denominator = _cells(rate.denominator)[self.decision]
        return self._sum_all(in_numerator), self._sum_all(in_denominator)

    def _effective_counts(self, rate: Rate) -> tuple[Floats, Floats]:
        """Return the effective successes and sizes (G,) of a rate, from labels and scores."""
        estimate = self._from_labels(rate)
        help_of_scores = self._help_of_scores(
            estimate.influence, estimate.expected, estimate.events
        )
        size = estimate.size / help_of_scores.variance_left
        share = np.clip(estimate.share + help_of_scores.moved / estimate.denominator, 0, 1)
        return share * size, size

    def _from_labels(self, rate: Rate) -> _FromLabels:
        """Return a rate of the labelled rows, and what scores lead one to expect of it."""
        cell = 2 * self.label + self.decision[self.rows]
        group, weight = self.group[self.rows], self._weights
        in_numerator = _cells(rate.numerator)[cell]
        in_denominator = _cells(rate.denominator)[cell]
        denominator = np.maximum(self._sum(weight * in_denominator), _TINY)
        squared_weights = np.maximum(self._sum((weight * in_denominator) ** 2), _TINY)
        kish_size = denominator**2 / squared_weights
        share = self._sum(weight * in_numerator) / denominator
        events = np.minimum(share, 1 - share) * kish_size
        has_rows = self._sum(in_denominator) > 0
        return _FromLabels(
            share=share,
            size=np.where(has_rows, kish_size * self._degrees_of_freedom_left, 0.0),
            denominator=denominator,
            events=events,
            influence=in_numerator - share[group] * in_denominator,
            expected=self._expect(rate, share),
        )

    def _expect(self, rate: Rate, share: Floats) -> _Expected:
        """Return what the scores lead one to expect of every row's influence on a rate."""
        in_numerator, in_denominator = _cells(rate.numerator), _cells(rate.denominator)

        def influence_with(label: int) -> Floats:
            """Return the influence of every row if its label were this."""
            cell = self.decision + 2 * label
            return in_numerator[cell] - share[self.group] * in_denominator[cell]

        if_zero, if_one = influence_with(0), influence_with(1)
        return _Expected((1 - self.score) * if_zero + self.score * if_one, if_one - if_zero)

    def _variance(self, expected: _Expected, mean: Floats) -> Floats:
        """Return the variance (G,) over all rows of what is expected of them."""
        squares = (expected.influence - mean[self.group]) ** 2
        if self.spread is not None:
            squares = squares + self.spread * expected.by_score**2
        return self._sum_all(squares) / np.maximum(self._group_sizes, 1)

    def _help_of_scores(
        self, influence: Floats, expected: _Expected, events: Floats
    ) -> _HelpOfScores:
        """Return how far scores move each group's rate, and how much of its variance is left.

        The slope of influences on what scores predict of them is fitted by least squares to the
        labelled rows of a group. It is reduced as far as it predicts rows that are left out of its
        fit worse than the others, and the more the fewer rows have the rarer outcome.

        Parameters
        ----------
        influence : (n,) the influence of each labelled row.
        expected : what the scores predict of the influence of all rows.
        events : (G,) numbers of labels of the rarer outcome.

        Notes
        -----
        With the fitted slope b (:meth:`_fit_slope`) and the errors of rows left out with and
        without scores, E and E0 (:meth:`_leave_one_out`), the slope that is used is::

            b * [(1 - E / E0) / (1 - E_in / E0_in), between 0 and 1] * e / (e + FEW_EVENTS)

        where E_in and E0_in are the same errors in the fit, and e is the number of events. The
        share of the variance that is left is (E + u) / (E0 + u), with u = UNSEEN times the mean
        squared weight. Where the slope is reduced to a share q, what it explains is reduced to
        1 - (1 - q)^2. Rows with a label are known: of them the variance is not reduced.
        """
        n_labels = self._labels
        fit = self._fit_slope(influence, expected)
        left_out = self._leave_one_out(fit)
        explained_left_out = 1 - left_out.with_scores / np.maximum(left_out.without_scores, _TINY)
        group = self.group[self.rows]
        error_in_fit = self._sum((fit.response - fit.slope[group] * fit.predictor) ** 2)
        explained_in_fit = 1 - error_in_fit / np.maximum(self._sum(fit.response**2), _TINY)
        kept = np.clip(explained_left_out / np.maximum(explained_in_fit, _TINY), 0, 1)
        slope = np.where(n_labels >= FEWEST, fit.slope * kept, 0)
        unseen = UNSEEN * fit.squared_weights / np.maximum(n_labels, 1)
        left = np.clip(
            (left_out.with_scores + unseen) / np.maximum(left_out.without_scores + unseen, _TINY),
            _TINY,
            1,
        )
        left = np.where(n_labels >= FEWEST, left, 1.0)
        trusted = events / (events + FEW_EVENTS)
        slope = slope * trusted
        left = 1 - (1 - left) * trusted * (2 - trusted)
        labelled_share = n_labels / np.maximum(self._group_sizes, 1)
        return _HelpOfScores(
            moved=slope * (fit.mean_of_all - fit.mean_of_labelled) * fit.total_weight,
            variance_left=left + (1 - left) * labelled_share,
        )

    def _fit_slope(self, influence: Floats, expected: _Expected) -> _SlopeFit:
        """Fit influences of labelled rows by what scores predict of them, in every group.

        Notes
        -----
        Of the labelled rows i of a group with weights w_i, influences y_i and predictions x_i, the
        predictor is a_i = w_i (x_i - mean of x), the response is z_i = w_i y_i, and the slope is
        sum(a z) / max(sum(a^2), V). V is what sum(a^2) would be if predictions varied as much as
        among all rows, with or without a label. Otherwise, where few rows have extreme scores and
        none of these has a label yet, a slope fitted to small differences among the others would be
        extrapolated to them, and be noise.
        """
        weight = self._weights
        predicted = expected.influence[self.rows]
        mean_of_all = self._sum_all(expected.influence) / np.maximum(self._group_sizes, 1)
        total_weight = np.maximum(self._sum(weight), _TINY)
        squared_weights = self._sum(weight**2)
        mean_of_labelled = self._sum(weight * predicted) / total_weight
        predictor = weight * (predicted - mean_of_labelled[self.group[self.rows]])
        response = weight * influence
        at_least_two = np.maximum(self._labels, 2)
        # How much larger an error is of a row that is left out of its own mean: n / (n - 1).
        jackknife = at_least_two / (at_least_two - 1)
        variance_of_all = self._variance(expected, mean_of_all)
        least_squares = np.maximum(squared_weights * variance_of_all / jackknife, _TINY)
        squares, products = self._sum(predictor**2), self._sum(predictor * response)
        return _SlopeFit(
            slope=products / np.maximum(squares, least_squares),
            predictor=predictor,
            response=response,
            squares=squares,
            products=products,
            least_squares=least_squares,
            jackknife=jackknife,
            mean_of_all=mean_of_all,
            mean_of_labelled=mean_of_labelled,
            total_weight=total_weight,
            squared_weights=squared_weights,
        )

    def _leave_one_out(self, fit: _SlopeFit) -> _LeftOutErrors:
        """Return the squared errors of labelled rows that are left out of means and slopes.

        Notes
        -----
        With J = n / (n - 1) of a group's n labels, and a, z and V of :meth:`_fit_slope`, the slope
        without row i is (sum(a z) - J a_i z_i) / max(sum(a^2) - J a_i^2, V / J), and the errors of
        the row are J (z_i - slope a_i) and, without scores, J z_i.
        """
        group = self.group[self.rows]
        predictor, response, jackknife = fit.predictor, fit.response, fit.jackknife
        squares_of_others = np.maximum(
            fit.squares[group] - jackknife[group] * predictor**2,
            (fit.least_squares / jackknife)[group],
        )
        products_of_others = fit.products[group] - jackknife[group] * predictor * response
        slope_of_others = products_of_others / squares_of_others
        error = jackknife[group] * (response - slope_of_others * predictor)
        return _LeftOutErrors(
            with_scores=self._sum(error**2),
            without_scores=self._sum((jackknife[group] * response) ** 2),
        )

    @property
    def _weights(self) -> Floats:
        """How many rows each label stands for, (n,)."""
        return np.ones(len(self.rows)) if self.weight is None else self.weight

    @property
    def _labels(self) -> Floats:
        """The labels of each group; where they stand for unequally many, Kish's number."""
        total, squares = self._sum(self._weights), self._sum(self._weights**2)
        return total**2 / np.maximum(squares, _TINY)

    @property
    def _degrees_of_freedom_left(self) -> Floats:
        """The share of each group's labels that is left after one for each further weight.

        Parts of a group that were labelled at different rates have a mean each. Every mean that is
        estimated takes a degree of freedom from what labels tell of how they scatter.
        """
        if self.weight is None:
            return np.ones(self.groups)
        n_labels = self._sum(np.ones(len(self.rows)))
        pairs = np.unique(np.stack([self.group[self.rows], self.weight]), axis=1)
        n_weights = np.bincount(pairs[0].astype(np.int64), minlength=self.groups)
        return np.asarray((n_labels - np.maximum(n_weights - 1, 0)) / np.maximum(n_labels, 1))

    @property
    def _group_sizes(self) -> Floats:
        """The numbers of rows (G,) of the groups."""
        return self._sum_all(np.ones(len(self.group)))

    def _sum(self, values: Floats) -> Floats:
        """Return the sums (G,) of values (n,) of labelled rows."""
        if self.groups == 1:
            return np.asarray(values.sum(keepdims=True))
        return sums(values, self.group[self.rows], self.groups)

    def _sum_all(self, values: Floats) -> Floats:
        """Return the sums (G,) of values (N,) of all rows."""
        counted = values if self.copies is None else values * self.copies
        return sums(counted, self.group, self.groups)


class _Expected(NamedTuple):
    """What scores lead one to expect of the influence of every row.

    Attributes
    ----------
    influence : (N,) the expected influence.
    by_score : (N,) how much it changes with the score: its slope.
    """

    influence: Floats
    by_score: Floats

    def plus(self, other: _Expected, factor: Floats) -> _Expected:
        """Return the sum of this and `factor` (N,) times another."""
        return _Expected(
            self.influence + factor * other.influence, self.by_score + factor * other.by_score
        )


class _HelpOfScores(NamedTuple):
    """How scores help the rates of G groups.

    Attributes
    ----------
    moved : (G,) what the scores add to the sum of influences.
    variance_left : (G,) the share of its variance that they leave.
    """

    moved: Floats
    variance_left: Floats


class _SlopeFit(NamedTuple):
    """A fit of influences by predictions, and the sums that it was made from.

    Attributes
    ----------
    slope : (G,) the fitted slopes.
    predictor, response : (n,) a and z of :meth:`LabelledRows._fit_slope`.
    squares, products : (G,) sums of a^2 and of a z.
    least_squares : (G,) V, the least sum of squares that a slope is divided by.
    jackknife : (G,) n / (n - 1) of the labels.
    mean_of_all, mean_of_labelled : (G,) mean predictions of all rows and of the labelled ones.
    total_weight, squared_weights : (G,) sums of the weights of the labelled rows and their squares.
    """

    slope: Floats
    predictor: Floats
    response: Floats
    squares: Floats
    products: Floats
    least_squares: Floats
    jackknife: Floats
    mean_of_all: Floats
    mean_of_labelled: Floats
    total_weight: Floats
    squared_weights: Floats


class _LeftOutErrors(NamedTuple):
    """Sums (G,) of squared errors of rows left out, predicted with scores and without."""

    with_scores: Floats
    without_scores: Floats


class _FromLabels(NamedTuple):
    """A rate of the labelled rows of G groups.

    Attributes
    ----------
    share : (G,) the rates.
    size : (G,) effective numbers of labels that they rest on.
    denominator : (G,) how many rows of the group the labels in the denominator stand for.
    events : (G,) how many labels of the rarer outcome there are.
    influence : (n,) how far each labelled row moves its group's rate, times `denominator`.
    expected : what the scores lead one to expect of every row's influence.
    """

    share: Floats
    size: Floats
    denominator: Floats
    events: Floats
    influence: Floats
    expected: _Expected


def _move_together(shares: Floats, sum_change: Floats) -> Floats:
    """Return shares (R, G) whose sum is changed; each goes equally far on the way to 0 or to 1.

    What the scores move is the sum: how much of it falls to which of the shares is not known so
    well, and none can leave [0, 1].
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
