"""What a question is about: a metric of every group, from the labels so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.assessment import labelled_counts, one_group
from fairbench.audits.labelling.session import Session
from fairbench.audits.table import AuditTable
from fairbench.core.errors import UserError, check_choice
from fairbench.core.seeds import rng
from fairbench.evaluation import regression, scores
from fairbench.evaluation.estimates import Batch, Kinds, declared_batches
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.evaluation.predictions import Parts
from fairbench.inference.active.arms import BetaArms, NormalArms
from fairbench.inference.active.intervals import lasting_level
from fairbench.inference.beta import Beta, Normal
from fairbench.inference.few_labels.assisted import needs_no_label
from fairbench.inference.rates import Limits, quantile
from fairbench.metrics.rates import binary_confusion
from fairbench.metrics.registry import BINARY, REGRESSION, Metric, metrics_of

Floats = NDArray[np.float64]
REGRESSION_METRIC = "mae"
_OF_CLASSES = ("accuracy", "error_rate", "brier_score")
_KINDS: Kinds = {**scores.KINDS, **regression.KINDS}
LEVEL = 0.95
PRIOR = 2.0  # labels that what is known before any label is worth


class Measure(Protocol):
    """A metric of the A groups that rows are chosen among."""

    @property
    def metric(self) -> Metric:
        """The metric."""

    @property
    def rows(self) -> NDArray[np.int64]:
        """The labelled rows (A,) that it rests on."""

    def limits(self, level: float, *, whenever: bool) -> Limits:
        """Return it with its intervals (A,): all that is possible where there are too few rows.

        Parameters
        ----------
        whenever : whether they are to hold whenever one stops labelling.
        """

    def arms(self, left: NDArray[np.int64]) -> BetaArms | NormalArms:
        """Return what is known of it, with the rows (A,) that are left to label.

        What is assumed before any label steers which row is next, and has no part in the report.
        """


def measure(session: Session) -> Measure:
    """Return what a session's question is about."""
    metric = askable(session)[session.state.metric]
    return RateMeasure(session, metric) if metric.interval == "rate" else Means(session, metric)


def askable(session: Session) -> Mapping[str, Metric]:
    """Return the metrics that labels of a table teach something about, by name."""
    columns = {"prediction"} | ({"score"} if session.table.score is not None else set())
    if session.subject.predicted is not None:
        found = metrics_of(REGRESSION, "mean", "root_mean", "explained")
        known = metrics_of(REGRESSION)["mean_prediction"]
        return {n: m for n, m in found.items() if m is not known and columns.issuperset(m.needs)}
    found = metrics_of(BINARY, "rate", "mean", "auc")
    if session.subject.classes:
        return {name: found[name] for name in _OF_CLASSES}
    return {
        name: metric
        for name, metric in found.items()
        if columns.issuperset(metric.needs)
        and not (metric.rates and all(needs_no_label(rate) for rate in metric.rates))
    }


def metric_named(name: str, session: Session) -> str:
    """Return the metric of a name; of a gap in a rate, that rate.

    Raises
    ------
    UserError : none of that name can be asked about; lists those that can.
    """
    names = askable(session)
    gap = metrics_of(BINARY, "widest", "difference", "ratio").get(name)
    if gap is not None and len(gap.rates) == 1 and gap.rates[0].name in names:
        return gap.rates[0].name
    if gap is not None and len(gap.rates) > 1:
        rates = " and ".join(rate.name for rate in gap.rates)
        raise UserError(f"metric={name} is of {rates}: ask about one of them, with question=gap")
    check_choice("metric", name, names)
    return name


@dataclass(frozen=True, eq=False)
class RateMeasure:
    """A rate of every group, from labels that are helped by scores."""

    session: Session
    metric: Metric

    @cached_property
    def _intervals(self) -> LabelledIntervals:
        session = self.session
        return _labelled(replace(session.table, sampling=None), session.state.by, session.arms)

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        table, known = self.session.table, self.session.table.known
        label, decided, group = table.label[known], table.prediction[known], self.session.codes
        return binary_confusion(label, decided, group[known], n_groups=len(self.session.names))

    @property
    def rows(self) -> NDArray[np.int64]:
        """The labelled rows (A,) in the denominators of the metric's rates."""
        sizes = [rate.size(self._counts) for rate in self.metric.rates]
        return np.asarray(np.min(sizes, axis=0)).astype(np.int64)

    def limits(self, level: float, *, whenever: bool) -> Limits:
        """Return the rates with their intervals."""
        return self._limits(replace(self._intervals, level=level, whenever=whenever))

    def everyone(self, level: float, *, whenever: bool) -> Limits:
        """Return the rate of all rows (1,) with its interval, as a report on the labels has it.

        Each label weighs as many rows of its group as it stands for. Joining the groups' intervals
        would not do: of ten groups with intervals that hold whenever one stops, the joined one
        missed at some number of labels in 10 to 38 % of runs.
        """
        found = _labelled(self.session.audited(), "", one_group(len(self.session.table)))
        return self._limits(replace(found, level=level, whenever=whenever))

    def _limits(self, intervals: LabelledIntervals) -> Limits:
        lower, upper = (each[0] for each in intervals.rates([self.metric]))
        with np.errstate(invalid="ignore"):
            value = self.metric(intervals.counts_of(self.metric))
        return Limits(value, np.nan_to_num(lower, nan=0.0), np.nan_to_num(upper, nan=1.0))

    @cached_property
    def expected(self) -> Floats:
        """The rates, (A,), that the scores lead one to expect; a half without scores."""
        table, groups = self.session.table, len(self.session.names)
        if table.score is None:
            return np.full(groups, 0.5)
        cell = 4 * self.session.codes + table.prediction
        counts = np.bincount(cell, 1 - table.score, 4 * groups)
        counts += np.bincount(cell + 2, table.score, 4 * groups)
        return np.asarray(np.nan_to_num(self.metric(counts.reshape(groups, 4)), nan=0.5))

    def arms(self, left: NDArray[np.int64]) -> BetaArms:
        """Return Beta posteriors, of a prior that is centred on the scores (Ji et al. 2021)."""
        found = np.nan_to_num(np.asarray(self.metric(self._counts), float), nan=0.5)
        prior = np.clip(self.expected, 0.01, 0.99) * PRIOR
        won, lost = found * self.rows, (1 - found) * self.rows
        return BetaArms(Beta((prior + won)[None], (PRIOR - prior + lost)[None]), left[None].copy())


def _labelled(table: AuditTable, attribute: str, groups: pd.Series) -> LabelledIntervals:
    counted = labelled_counts(table, attribute, groups, rng(0, "measure"), LEVEL)
    assert isinstance(counted.intervals, LabelledIntervals)
    return counted.intervals


@dataclass(frozen=True, eq=False)
class Means:
    """A mean, or an area, of every group, from its labelled rows."""

    session: Session
    metric: Metric

    @cached_property
    def _parts(self) -> Parts:
        known = self.session.table.known
        groups = self.session.arms.iloc[known].reset_index(drop=True)
        return Parts.of(len(known), {self.session.state.by: groups})

    @cached_property
    def _batch(self) -> Batch:
        table = self.session.table
        known, score = table.known, table.score
        predicted = self.session.subject.predicted
        predicted = table.prediction.astype(float) if predicted is None else predicted
        columns = {"prediction": predicted[known]}
        if score is not None:
            columns["score"] = score[known]
        (batch,) = declared_batches(
            [self.metric],
            table.label[known],
            columns,
            self._parts,
            {**scores.KINDS, **regression.KINDS},
        )
        return batch

    @property
    def rows(self) -> NDArray[np.int64]:
        """The labelled rows (A,)."""
        return self._parts.size[1:]

    def limits(self, level: float, *, whenever: bool) -> Limits:
        """Return the means with their intervals, infinite where they are of too few rows."""
        if not len(self.session.table.known):
            nothing = np.full(len(self.session.names), np.nan)
            return Limits(nothing, np.full_like(nothing, -np.inf), np.full_like(nothing, np.inf))
        found = self._limits(level, whenever=whenever).take(slice(1, None))
        least = self.metric.least
        lower = np.where(np.isnan(found.lower), least, found.lower)
        return Limits(found.value, lower, np.where(np.isnan(found.upper), np.inf, found.upper))

    def _limits(self, level: float, *, whenever: bool) -> Limits:
        levels = np.full(len(self._parts.size), level)
        if whenever:
            levels = lasting_level(level, self._parts.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            found = self._batch.limits(levels[None])
        return Limits(self._batch.value[0], found.lower[0], found.upper[0])

    def arms(self, left: NDArray[np.int64]) -> NormalArms:
        """Return normal posteriors, of a prior that is everyone's mean and spread."""
        groups, unlabelled = len(self.session.names), left[None].copy()
        if not len(self.session.table.known):
            nothing = Normal.of(np.zeros((1, groups)), 1.0, np.full((1, groups), PRIOR))
            return NormalArms(nothing, unlabelled)
        found, n = self._limits(LEVEL, whenever=False), np.array(self._parts.size, float)
        error = (found.upper - found.lower) / (2 * quantile(0.95))
        spread = error**2 * n
        common = np.nanmean(spread) if np.isfinite(spread).any() else 1.0
        centre = np.nan_to_num(found.value[0])
        value = np.where(np.isfinite(found.value), found.value, centre)
        strength = n[1:] + PRIOR
        mean = (n[1:] * value[1:] + PRIOR * centre) / strength
        own = np.where(np.isfinite(spread[1:]), spread[1:], common)
        return NormalArms(Normal.of(mean[None], own, strength[None]), unlabelled)
