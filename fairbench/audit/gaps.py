"""Gaps between groups, and whether their posterior settles that they are small or large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fairbench.evaluation.groups import Counted
from fairbench.metrics.group import GROUP_METRICS, difference
from fairbench.metrics.rates import (
    Rate,
    accuracy,
    false_positive_rate,
    positive_predictive_value,
    selection_rate,
    true_positive_rate,
)
from fairbench.posterior import central_interval

Floats = NDArray[np.float64]

CERTAIN = 0.95
SMALL, LARGE, OPEN, UNKNOWN = "small", "large", "open", "too few rows"
# The gaps that conclusions are drawn on, with the rate each is the gap of.
RATE_OF: Mapping[str, Rate] = MappingProxyType(
    {
        "statistical_parity": selection_rate,
        "equal_opportunity": true_positive_rate,
        "false_positive_rate_gap": false_positive_rate,
        "predictive_parity": positive_predictive_value,
        "accuracy_gap": accuracy,
    }
)


@dataclass(frozen=True, eq=False)
class Gap:
    """The largest difference of a rate between two groups of an attribute.

    Attributes
    ----------
    compared : positions of the groups that have enough rows. left_out : names of the others.
    value, lower, upper : the gap; for two groups the second one's rate minus the first's.
    small : probability that the gap's size is under epsilon.
    low, high : the groups of which the second is most probably ahead by more than epsilon.
    beyond, order : the probabilities that it is, and that it is ahead at all.
    verdict : `SMALL`, `LARGE`, `OPEN`, or `UNKNOWN` with under two groups of enough rows.
    assumed : it rests on scores that no label has confirmed.
    """

    attribute: str
    metric: str
    compared: Sequence[int]
    left_out: Sequence[str]
    value: float
    lower: float
    upper: float
    small: float
    low: str
    high: str
    beyond: float
    order: float
    verdict: str
    assumed: bool

    @property
    def signed(self) -> bool:
        """Whether the value is a signed difference of two groups."""
        return len(self.compared) == 2


def gaps_of(
    counted: Sequence[Counted], epsilon: float, minimum: int, *, assumed: bool
) -> list[Gap]:
    """Return every attribute's gaps between the groups of at least `minimum` rows.

    Parameters
    ----------
    assumed : there are no labels at all; the decisions, and their gap, are known all the same.
    """
    return [
        _gap(each, metric, epsilon, minimum, assumed and metric != "statistical_parity")
        for each in counted
        for metric in RATE_OF
    ]


@dataclass(frozen=True)
class Settled:
    """What draws of the groups' rates settle.

    Attributes
    ----------
    small : probability that no two groups differ by epsilon or more.
    low, high : the groups of which it is most probable that the second's rate is higher by more
        than epsilon. beyond : that probability. order : that it is higher at all.
    """

    small: float
    low: int
    high: int
    beyond: float
    order: float
    verdict: str


def settle(rates: Floats, epsilon: float) -> Settled:
    """Return what draws (T, A) of a rate settle.

    A gap is large where one group is surely ahead of another by more than epsilon; that some two
    of many groups differ is not enough, as it is likely of any that are little known. The
    probability asked for grows with the number of pairs (Bonferroni).
    """
    small = float((rates.max(axis=1) - rates.min(axis=1) < epsilon).mean())
    beyond = np.stack([(rates - each[:, None] > epsilon).mean(axis=0) for each in rates.T])
    # Where several pairs are as certain, the one furthest apart.
    mean = rates.mean(axis=0)
    ahead = beyond + 1e-6 * (mean[None, :] - mean[:, None])
    low, high = (int(i) for i in np.unravel_index(int(ahead.argmax()), ahead.shape))
    groups = rates.shape[1]
    surely = 1 - (1 - CERTAIN) / (groups * (groups - 1) / 2)
    verdict = SMALL if small >= CERTAIN else LARGE if beyond[low, high] >= surely else OPEN
    order = float((rates[:, high] > rates[:, low]).mean())
    return Settled(small, low, high, float(beyond[low, high]), order, verdict)


def _gap(counted: Counted, metric: str, epsilon: float, minimum: int, assumed: bool) -> Gap:
    rate, gap, names = RATE_OF[metric], GROUP_METRICS[metric], counted.groups
    enough = rate.size(counted.counts) >= minimum
    compared = np.flatnonzero(enough).tolist()
    left_out = [name for name, has in zip(names, enough, strict=True) if not has]
    nan = float("nan")
    if len(compared) < 2:
        nothing = (nan, nan, nan, nan, "", "", nan, nan, UNKNOWN)
        return Gap(counted.attribute, metric, compared, left_out, *nothing, assumed)
    draws, counts = counted.draws[:, compared], counted.counts[compared]
    signed = len(compared) == 2
    samples = difference(rate, draws)[:, 0] if signed else gap(draws)
    value = float(difference(rate, counts)[0] if signed else gap(counts))
    lower, upper = central_interval(samples)
    settled = settle(rate(draws), epsilon)
    return Gap(
        counted.attribute,
        metric,
        compared,
        left_out,
        value,
        float(lower),
        float(upper),
        settled.small,
        names[compared[settled.low]],
        names[compared[settled.high]],
        settled.beyond,
        settled.order,
        settled.verdict,
        assumed,
    )
