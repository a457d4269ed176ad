"""Intervals of rates by group where some rows have a label, and all a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.evaluation.group_intervals import CountIntervals, counted_rates
from fairbench.inference.active.intervals import sequence_limits
from fairbench.inference.few_labels.assisted import FEWEST, LabelledRows, needs_no_label
from fairbench.inference.rates import Limits, rate_limits
from fairbench.metrics.rates import Counts, Rate
from fairbench.metrics.registry import Metric


@dataclass(frozen=True, eq=False)
class LabelledIntervals(CountIntervals):
    """Intervals from the labels there are, helped by scores of any quality.

    Attributes
    ----------
    successes, sizes : (R, G) effective counts of each rate in `asked`: the numbers of labelled rows
        that would be as informative as the labels and scores together.
    resting_on : (R, G) how many rows each rate rests on.
    generator : makes the posterior draws.
    labels : the labelled rows.
    anytime_valid : whether intervals hold whenever labelling is stopped, rather than at a number of
        labels that was fixed beforehand.
    """

    successes: Floats = field(kw_only=True)
    sizes: Floats = field(kw_only=True)
    resting_on: Floats = field(kw_only=True)
    generator: np.random.Generator = field(kw_only=True)
    labels: LabelledRows = field(kw_only=True)
    anytime_valid: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls, labels: LabelledRows, counts: Counts, level: float, generator: np.random.Generator
    ) -> LabelledIntervals:
        """Return the intervals of labelled rows with these counts (G, 4)."""
        rates = counted_rates()
        successes, sizes = labels.effective_counts(rates)
        return cls(
            counts,
            np.empty((0, *counts.shape)),
            level,
            rates,
            successes=successes,
            sizes=sizes,
            resting_on=labels.rows_of(rates),
            generator=generator,
            labels=labels,
        )

    def as_anytime_valid(self) -> LabelledIntervals:
        """Return the intervals that hold simultaneously at all numbers of labels."""
        return replace(self, anytime_valid=True)

    @property
    def of_counts(self) -> Callable[..., Limits]:
        """The function that computes a rate's interval from counts, for rates that need labels."""
        return sequence_limits if self.anytime_valid else rate_limits

    def _shares(self, rates: Sequence[Rate], levels: Floats) -> Limits:
        """Return which share of each rate's rows is in its numerator's cells."""
        if not self.anytime_valid:
            return super()._shares(rates, levels)
        successes, sizes = self.effective_counts(rates)
        without_labels = np.array([[needs_no_label(rate)] for rate in rates])
        fixed = rate_limits(successes, sizes, level=levels)
        lasting = sequence_limits(successes, sizes, level=levels)
        return Limits(
            *(
                np.where(without_labels, of_fixed, of_lasting)
                for of_fixed, of_lasting in zip(fixed, lasting, strict=True)
            )
        )

    def correlation(self, rate: Rate) -> Floats | float:
        """Return the correlations (G, G) of a rate's errors in two groups.

        Groups have distinct rows, so that their errors are uncorrelated: 0. But somebody who may
        stop at any time may stop after few rows, just when both groups' intervals miss in opposite
        directions. With few rows the correlation is therefore -1: widths add.
        """
        if not self.anytime_valid or needs_no_label(rate):
            return 0.0
        few = self._few([rate])[0]
        return np.where(few[:, None] | few, -1.0, 0.0)

    def _correlations(self, rates: Sequence[Rate]) -> Floats | float:
        groups = self.counts.shape[0]
        correlations = [np.broadcast_to(self.correlation(rate), (groups, groups)) for rate in rates]
        return np.stack(correlations)

    def _correlation_of(self, first: Rate, second: Rate) -> Floats | float:
        """Return the correlations (G,) of the errors of two rates of a group."""
        few = self._few([first, second]).any(axis=0)
        return np.where(self.anytime_valid & few, 1.0, 0.0)

    def _few(self, rates: Sequence[Rate]) -> NDArray[np.bool_]:
        """Return which groups (R, G) have too few rows of a rate for its interval to be joined."""
        return np.asarray(self.rows(rates) < FEWEST)

    def _indices(self, rates: Sequence[Rate]) -> list[int]:
        """Return the indices of rates among those in `asked`."""
        index = {rate.name: r for r, rate in enumerate(self.asked)}
        return [index[rate.name] for rate in rates]

    def effective_counts(self, rates: Sequence[Rate]) -> tuple[Floats, Floats]:
        """Return how many rows (R, G) count, and of how many, that labels are worth."""
        indices = self._indices(rates)
        return self.successes[indices], self.sizes[indices]

    def rows(self, rates: Sequence[Rate]) -> Floats:
        """Return how many rows (R, G) each rate rests on: with labels, where it needs them."""
        return np.asarray(self.resting_on[self._indices(rates)])

    def _counts_for(self, metric: Metric) -> tuple[Floats, Floats]:
        """Return what labels are worth for a metric, successes and sizes (R, G) of its rates."""
        if metric.interval == "rate" and len(metric.rates) > 1:
            return self.labels.effective_counts_of_mean(metric.rates)
        return self.effective_counts(metric.rates)

    def _limits_of_mean(self, metric: Metric) -> Limits:
        """Return two rates (2, G) whose mean is a metric, with their limits."""
        return self.of_counts(*self._counts_for(metric), level=self.level)

    def counts_of(self, metric: Metric) -> Counts:
        """Return counts (G, 4) that have the metric's rates; other metrics' may be others."""
        successes, sizes = self._counts_for(metric)
        with np.errstate(invalid="ignore"):
            return counts_with(metric.rates, successes / sizes)

    def posterior_counts(self, metric: Metric) -> Counts:
        """Draw such counts (T, G, 4) from the rates' Beta posteriors, whose prior is Jeffreys'."""
        successes, sizes = self.effective_counts(metric.rates)
        first = (successes + 0.5)[:, None]
        second = (sizes - successes + 0.5)[:, None]
        shape = (len(sizes), DRAWS, sizes.shape[-1])
        return counts_with(metric.rates, self.generator.beta(first, second, shape))


DRAWS = 2048


def counts_with(rates: Sequence[Rate], shares: Floats) -> Counts:
    """Return counts (..., 4) in which rates have these shares (R, ...) of successes.

    Rates of several rest on different rows, such as the true and the false positive rate.
    """
    counts = np.zeros((*shares.shape[1:], 4))
    for rate, share in zip(rates, shares, strict=True):
        in_numerator = np.array(rate.numerator) > 0
        only_in_denominator = (np.array(rate.denominator) > 0) & ~in_numerator
        counts[..., in_numerator] = (share / in_numerator.sum())[..., None]
        counts[..., only_in_denominator] = ((1 - share) / only_in_denominator.sum())[..., None]
    return counts
