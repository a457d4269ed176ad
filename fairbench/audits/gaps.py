"""Gaps between groups, and whether labels settle that they are small or large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from fairbench.evaluation.group_intervals import CountIntervals, PosteriorIntervals
from fairbench.evaluation.groups import Counted
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.inference.gaps import probability_below
from fairbench.inference.partial.flips import Tipping
from fairbench.inference.posterior import central_interval
from fairbench.inference.rates import difference_limits
from fairbench.metrics.rates import Rate
from fairbench.metrics.registry import BINARY, label, metrics_of

Floats = NDArray[np.float64]

CERTAIN, NAN = 0.95, float("nan")
NEEDS_NO_LABELS = "statistical_parity"  # decisions, and their gap, are known without any
FEWEST_LABELS = 30  # that every group must have before a gap is called small
SMALL, LARGE, OPEN, UNKNOWN = "small", "large", "open", "too few rows"
# The gaps that conclusions are drawn on, with the rate each is the gap of.
RATE_OF: Mapping[str, Rate] = MappingProxyType(
    {
        name: metric.rates[0]
        for name, metric in metrics_of(BINARY, "widest").items()
        if metric.is_gap and len(metric.rates) == 1
    }
)
# What the rate of each is called.
RATE_NAMES: Mapping[str, str] = MappingProxyType(
    {name: label(rate.name) for name, rate in RATE_OF.items()}
)


@dataclass(frozen=True, eq=False)
class Gap:
    """The largest difference of a rate between two groups of an attribute.

    Attributes
    ----------
    compared : positions of the groups that have enough rows. left_out : names of the others.
    short_of_labels : groups that have too few labels for the gap to be called small.
    assumed : it rests on scores that no label has confirmed.
    value, lower, upper : the gap and its interval, from the labels alone. For two groups the gap is
        the second one's rate minus the first's.
    supposed : value, lower and upper if scores are calibrated alike in all groups; NaN where that
        is not asked.
    pairs : the pairs of groups that surely differ at all, the one of the higher rate first; all
        of them together are said with 95 % confidence.
    alike : of more groups than two, the value if all had the same rate: noise alone.
    small : probability that the gap's size is under epsilon.
    low, high : the groups of which the second is most probably ahead by more than epsilon.
    beyond, order : the probabilities that it is, and that it is ahead at all.
    verdict : `SMALL`, `LARGE`, `OPEN`, or `UNKNOWN` with under two groups of enough rows. All
        verdicts of an audit together are wrong in at most one audit of twenty.
    tipping : how many wrong labels would undo the verdict, where it rests on labels.
    standard_error : of the difference of two groups; the interval is not made from it.
    """

    attribute: str
    metric: str
    compared: Sequence[int]
    left_out: Sequence[str]
    assumed: bool
    value: float = NAN
    lower: float = NAN
    upper: float = NAN
    supposed: tuple[float, float, float] = (NAN, NAN, NAN)
    alike: float = NAN
    small: float = NAN
    low: str = ""
    high: str = ""
    beyond: float = NAN
    order: float = NAN
    pairs: Sequence[tuple[str, str]] = ()
    verdict: str = UNKNOWN
    tipping: Tipping | None = None
    short_of_labels: Sequence[str] = ()
    standard_error: float = NAN

    @property
    def signed(self) -> bool:
        """Whether the value is a signed difference of two groups."""
        return len(self.compared) == 2


def gaps_of(
    counted: Sequence[Counted],
    supposed: Sequence[Counted] | None,
    epsilon: float,
    minimum: int,
    *,
    assumed: bool,
    metrics: Sequence[str] = tuple(RATE_OF),
) -> list[Gap]:
    """Return every attribute's gaps between the groups of at least `minimum` rows.

    Parameters
    ----------
    counted : by attribute. supposed : the same if scores are calibrated alike in all groups.
    assumed : there are no labels at all; the decisions, and their gap, are known all the same.
    metrics : the gaps that are asked for.
    """
    others: Sequence[Counted | None] = supposed or [None] * len(counted)
    pairs = list(zip(counted, others, strict=True))
    bounds = Bounds(epsilon, minimum, len(counted) * len(metrics))
    return [
        _gap(each, other, metric, bounds, assumed and metric != NEEDS_NO_LABELS)
        for each, other in pairs
        for metric in metrics
    ]


@dataclass(frozen=True)
class Bounds:
    """What verdicts are given by: the gap that matters, rows that suffice, how many are given."""

    epsilon: float
    minimum: int
    questions: int

    @property
    def risk(self) -> float:
        """The probability with which one verdict may be wrong."""
        return (1 - CERTAIN) / self.questions


def _gap(
    counted: Counted, supposed: Counted | None, metric: str, bounds: Bounds, assumed: bool
) -> Gap:
    rate, names = RATE_OF[metric], counted.groups
    # Of labels a few will do: their interval says how little they are.
    few = isinstance(counted.intervals, LabelledIntervals)
    short = _short_of_labels(counted) if few and metric != NEEDS_NO_LABELS else ()
    enough = counted.sizes([rate])[0] >= (1 if few else bounds.minimum)
    compared = np.flatnonzero(enough).tolist()
    left_out = [name for name, has in zip(names, enough, strict=True) if not has]
    gap = Gap(counted.attribute, metric, compared, left_out, assumed, short_of_labels=short)
    if len(compared) < 2:
        return gap
    if isinstance(counted.intervals, CountIntervals):
        found = _of_counts(counted, counted.intervals, gap, bounds.epsilon)
        gap = _settled(found, counted.intervals, bounds)
    elif isinstance(counted.intervals, PosteriorIntervals):
        gap = _of_draws(counted, gap, bounds.epsilon)
    return gap if supposed is None else replace(gap, supposed=_supposed(supposed, gap))


def _short_of_labels(counted: Counted) -> Sequence[str]:
    labels = np.asarray(counted.counts).sum(axis=-1)
    return [name for name, n in zip(counted.groups, labels, strict=True) if n < FEWEST_LABELS]


def _of_counts(counted: Counted, intervals: CountIntervals, gap: Gap, epsilon: float) -> Gap:
    """Return a gap with its interval, the pairs that differ, and probabilities of its size."""
    metric, names = metrics_of(BINARY)[gap.metric], counted.groups
    raw = RATE_OF[gap.metric](intervals.counts_of(metric)[gap.compared])
    (found,) = intervals.gaps([metric], _among(gap, names)[None])
    lower, upper = float(found.lower), float(found.upper)
    if gap.signed:
        lower, upper = _signed_ends(intervals, gap)
        error = intervals.difference_error(RATE_OF[gap.metric], gap.compared[1], gap.compared[0])
        gap = replace(gap, standard_error=error)
    surely = np.argwhere(found.surely).tolist() if found.surely is not None else []
    pairs = [(names[high], names[low]) for high, low in surely]
    value = float(_size(raw, gap.signed))
    gap = replace(gap, value=value, lower=lower, upper=upper, pairs=pairs)
    gap = _with_probabilities(gap, names, intervals.posterior_counts(metric), epsilon)
    ends = float(found.lower), float(found.upper)
    small = probability_below(gap.small, *ends, epsilon, level=intervals.level)
    return replace(gap, small=float(small))


def _among(gap: Gap, names: Sequence[str]) -> NDArray[np.bool_]:
    return np.isin(np.arange(len(names)), gap.compared)


def _signed_ends(intervals: CountIntervals, gap: Gap) -> tuple[float, float]:
    """Return the interval of the second group's rate minus the first's."""
    rate, (one, other) = RATE_OF[gap.metric], gap.compared
    limits = intervals.limits([rate])
    groups = limits.value.shape[-1]
    shared = np.broadcast_to(intervals.correlation(rate), (groups, groups))
    ends = difference_limits(limits.take(other), limits.take(one), shared[other, one])
    return ends.lower.item(), ends.upper.item()


def _with_probabilities(gap: Gap, names: Sequence[str], draws: Floats, epsilon: float) -> Gap:
    """Return a gap with how probable it is that it is small, and between whom it is large."""
    if not len(draws):
        return gap
    rates = RATE_OF[gap.metric](draws[:, gap.compared])
    found = settle(rates, epsilon)
    return replace(
        gap,
        alike=NAN if gap.signed else _alike(rates),
        small=found.small,
        low=names[gap.compared[found.low]],
        high=names[gap.compared[found.high]],
        beyond=found.beyond,
        order=found.order,
        verdict=found.verdict,
    )


def _settled(gap: Gap, intervals: CountIntervals, bounds: Bounds) -> Gap:
    """Return a gap with the verdict that its intervals allow.

    That it is small is said where the interval's upper end is under epsilon, that it is large where
    the lower end is above. One of the two can be wrong, with at most the risk of one verdict. A
    group of few labels may still hold a surprise: with one, no gap is called small.
    """
    metric, groups = metrics_of(BINARY)[gap.metric], intervals.counts.shape[-2]
    among = np.isin(np.arange(groups), gap.compared)[None]
    (at_most,) = replace(intervals, level=1 - 2 * bounds.risk).gaps([metric], among)
    (at_least,) = replace(intervals, level=1 - bounds.risk).gaps([metric], among)
    small = at_most.upper < bounds.epsilon and not gap.short_of_labels
    large = at_least.lower > bounds.epsilon
    return replace(gap, verdict=SMALL if small else LARGE if large else OPEN)


def _of_draws(counted: Counted, gap: Gap, epsilon: float) -> Gap:
    """Return a gap from posterior draws of the counts."""
    value, lower, upper = _supposed(counted, gap)
    gap = replace(gap, value=value, lower=lower, upper=upper)
    return _with_probabilities(gap, counted.groups, counted.intervals.draws, epsilon)


def _supposed(counted: Counted, gap: Gap) -> tuple[float, float, float]:
    """Return mean and interval of a gap's posterior draws."""
    rates = RATE_OF[gap.metric](counted.intervals.draws[:, gap.compared])
    samples = _size(rates, gap.signed)
    lower, upper = map(float, central_interval(samples))
    return float(samples.mean()), lower, upper


def _size(rates: Floats, signed: bool) -> Floats:
    """Return the gap of rates (..., A)."""
    size: Floats = rates[..., 1] - rates[..., 0] if signed else np.ptp(rates, axis=-1)
    return size


def _alike(rates: Floats) -> float:
    """Return the mean gap of draws (T, A) moved to the same mean."""
    return float(np.ptp(rates - rates.mean(axis=0), axis=1).mean())


@dataclass(frozen=True)
class Settled:
    """Whether draws of the groups' rates show that a gap is large or small.

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
    """Return whether draws (T, A) of a rate show that its gap is large or small.

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
