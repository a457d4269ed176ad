"""Gaps between groups, and whether their posterior settles that they are small or large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audit.reading import AuditTable
from fairbench.evaluation.group_intervals import CountIntervals
from fairbench.evaluation.groups import Counted
from fairbench.inference.few_labels.frequentist import prediction_powered, summarise_normal
from fairbench.inference.few_labels.pool import plug_in
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import central_interval
from fairbench.inference.rates import difference_limits
from fairbench.metrics.rates import Rate
from fairbench.metrics.registry import BINARY, label, metrics_of

Floats = NDArray[np.float64]

CERTAIN, NAN = 0.95, float("nan")
NEEDS_NO_LABELS = "statistical_parity"  # decisions, and their gap, are known without any
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
    assumed : it rests on scores that no label has confirmed.
    value, lower, upper : the gap and its interval: of complete labels, of the counts; otherwise
        the mean and the interval of its posterior. For two groups the gap is the second one's rate
        minus the first's.
    raw : the gap of the counts themselves. Among many groups the posterior's is wider, by what is
        not known of each, and its interval may leave this one out.
    pairs : of complete labels, the pairs of groups that surely differ at all, the one of the higher
        rate first; all of them together are said with 95 % confidence.
    alike : of more groups than two, the value if all had the same estimate: noise alone.
    small : probability that the gap's size is under epsilon.
    low, high : the groups of which the second is most probably ahead by more than epsilon.
    beyond, order : the probabilities that it is, and that it is ahead at all.
    verdict : `SMALL`, `LARGE`, `OPEN`, or `UNKNOWN` with under two groups of enough rows.
    """

    attribute: str
    metric: str
    compared: Sequence[int]
    left_out: Sequence[str]
    assumed: bool
    value: float = NAN
    lower: float = NAN
    upper: float = NAN
    raw: float = NAN
    alike: float = NAN
    small: float = NAN
    low: str = ""
    high: str = ""
    beyond: float = NAN
    order: float = NAN
    pairs: Sequence[tuple[str, str]] = ()
    verdict: str = UNKNOWN

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
        _gap(each, metric, epsilon, minimum, assumed and metric != NEEDS_NO_LABELS)
        for each in counted
        for metric in RATE_OF
    ]


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


def _gap(counted: Counted, metric: str, epsilon: float, minimum: int, assumed: bool) -> Gap:
    rate, names = RATE_OF[metric], counted.groups
    rows = counted.counts if counted.rows is None else counted.rows
    enough = rate.size(rows) >= minimum
    compared = np.flatnonzero(enough).tolist()
    left_out = [name for name, has in zip(names, enough, strict=True) if not has]
    unknown = Gap(counted.attribute, metric, compared, left_out, assumed)
    if len(compared) < 2:
        return unknown
    counts, rates = counted.counts[compared], rate(counted.intervals.draws[:, compared])
    samples, raw = (_size(each, unknown.signed) for each in (rates, rate(counts)))
    settled = settle(rates, epsilon)
    if isinstance(counted.intervals, CountIntervals):
        gap = _of_counts(counted, counted.intervals, unknown, raw)
    else:
        lower, upper = map(float, central_interval(samples))
        gap = replace(unknown, value=float(samples.mean()), lower=lower, upper=upper)
    return replace(
        gap,
        raw=float(raw),
        alike=NAN if unknown.signed else _alike(rates),
        small=settled.small,
        low=names[compared[settled.low]],
        high=names[compared[settled.high]],
        beyond=settled.beyond,
        order=settled.order,
        verdict=settled.verdict,
    )


def _of_counts(counted: Counted, intervals: CountIntervals, gap: Gap, raw: Floats) -> Gap:
    """Return a gap with the interval that the counts alone give it, and the pairs that differ."""
    metric, names = metrics_of(BINARY)[gap.metric], counted.groups
    among = np.isin(np.arange(len(names)), gap.compared)
    (found,) = intervals.gaps([metric], among[None])
    lower, upper = float(found.lower), float(found.upper)
    if gap.signed:
        rate, (one, other) = metric.rates[0], gap.compared
        shared = np.broadcast_to(intervals.correlation(rate), (len(names),) * 2)
        limits = intervals.limits([rate])
        ends = difference_limits(limits.take(other), limits.take(one), shared[other, one])
        lower, upper = ends.lower.item(), ends.upper.item()
    surely = np.argwhere(found.surely).tolist() if found.surely is not None else []
    pairs = [(names[high], names[low]) for high, low in surely]
    return replace(gap, value=float(raw), lower=lower, upper=upper, pairs=pairs)


def _size(rates: Floats, signed: bool) -> Floats:
    """Return the gap of rates (..., A)."""
    size: Floats = rates[..., 1] - rates[..., 0] if signed else np.ptp(rates, axis=-1)
    return size


def _alike(rates: Floats) -> float:
    """Return the mean gap of draws (T, A) moved to the same mean."""
    return float(np.ptp(rates - rates.mean(axis=0), axis=1).mean())


FEW, MANY = 40, 500


@dataclass(frozen=True, eq=False)
class Check:
    """Another estimate of a gap: the highest group's rate minus the lowest's, or as signed.

    Attributes
    ----------
    method : ``scores as they are`` or ``prediction-powered``.
    lower, upper : interval of the latter.
    agrees : whether that interval and the gap's have anything in common.
    """

    gap: Gap
    method: str
    value: float
    lower: float
    upper: float

    @property
    def agrees(self) -> bool:
        """Whether the two intervals overlap; an estimate without one has to lie in the gap's."""
        low = self.value if np.isnan(self.lower) else self.lower
        high = self.value if np.isnan(self.upper) else self.upper
        return bool(low <= self.gap.upper and high >= self.gap.lower)


def checks(table: AuditTable, gaps: Sequence[Gap]) -> Iterator[Check]:
    """Yield the plug-in under 40 labels, and the prediction-powered interval above 500.

    Nothing where there are no scores, no labels, or labels for all rows. Prediction-powered
    intervals ask for labels at random within each group: where rows were chosen by group, those
    of other groups are left out.
    """
    labels = len(table.known)
    few, many = 0 < labels < FEW, MANY < labels < len(table)
    if table.score is None or not (few or many):
        return
    for attribute, groups in table.groups.items():
        mine = [gap for gap in gaps if gap.attribute == attribute and len(gap.compared) > 1]
        partly = table.partly_labelled(groups)
        for gap in mine:
            if gap.metric != NEEDS_NO_LABELS and (few or _is_random(table, groups, gap)):
                yield _plug_in(partly, gap) if few else _prediction_powered(partly, gap)


def _is_random(table: AuditTable, groups: pd.Series, gap: Gap) -> bool:
    """Say whether labelled rows are a random sample of each of the two groups compared."""
    if table.sampling is None:
        return True
    pair = _pair(table.partly_labelled(groups), gap)
    return bool(table.sampling.separates(groups)[list(pair)].all())


def _plug_in(table: PartlyLabelled, gap: Gap) -> Check:
    first, second = _pair(table, gap)
    rates = RATE_OF[gap.metric](plug_in(table))
    nan = float("nan")
    return Check(gap, "scores as they are", float(rates[second] - rates[first]), nan, nan)


def _prediction_powered(table: PartlyLabelled, gap: Gap) -> Check:
    pair = _pair(table, gap)
    rows = np.isin(table.group, pair)
    code = (table.group[rows] == pair[1]).astype(np.int64)
    two = PartlyLabelled(
        table.score[rows], table.prediction[rows], code, table.label[rows], ("first", "second")
    )
    difference = prediction_powered(two, RATE_OF[gap.metric]).differences()
    summary = summarise_normal(float(difference.value[0]), float(difference.error[0]))
    return Check(gap, "prediction-powered", summary.estimate, summary.lower, summary.upper)


def _pair(table: PartlyLabelled, gap: Gap) -> tuple[int, int]:
    """Return the groups whose difference the gap is, first and second."""
    if gap.signed:
        return gap.compared[0], gap.compared[1]
    names = list(table.groups)
    return names.index(gap.low), names.index(gap.high)
