"""What a question is about: a metric of every group, from the labels so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.assessment import labelled_counts, one_group
from fairbench.audits.findings import LEVEL
from fairbench.audits.labelling.session import Session
from fairbench.audits.table import AuditTable
from fairbench.core.errors import UserError, check_choice
from fairbench.core.seeds import rng
from fairbench.evaluation import regression, scores
from fairbench.evaluation.estimates import Batch, declared_batches
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.evaluation.predictions import Parts
from fairbench.inference.active.intervals import lasting_level
from fairbench.inference.beta import Beta, Normal, centred
from fairbench.inference.few_labels.assisted import needs_no_label
from fairbench.inference.rates import Limits, quantile
from fairbench.metrics.registry import BINARY, REGRESSION, Metric, metrics_of

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
REGRESSION_METRIC = "mae"
_OF_CLASSES = ("accuracy", "error_rate", "brier_score")
_SHARES = ("accuracy", "error_rate")  # rates in which every row of a group counts
# Labels that what is known before any label is worth. It steers which row is next, and has no part
# in the report.
PRIOR = 2.0


def askable(session: Session) -> Mapping[str, Metric]:
    """Return the metrics that labels of a table teach something about, by name."""
    columns = {"prediction"} | ({"score"} if session.table.score is not None else set())
    metrics = metrics_of(BINARY, "rate", "mean", "auc")
    if session.classes:
        return {name: metrics[name] for name in _OF_CLASSES}
    if session.predicted is not None:
        metrics = metrics_of(REGRESSION, "mean", "root_mean", "explained")
    return {
        name: metric
        for name, metric in metrics.items()
        if columns.issuperset(metric.needs)
        and name != "mean_prediction"
        and not (metric.rates and all(map(needs_no_label, metric.rates)))
    }


def metric_named(name: str, session: Session) -> str:
    """Return the metric of a name; of a gap in a rate, that rate.

    Raises
    ------
    UserError : none of that name can be asked about; lists those that can.
    """
    names = askable(session)
    gap = metrics_of(BINARY, "widest", "difference", "ratio").get(name)
    rates = [rate.name for rate in gap.rates] if gap is not None else []
    if len(rates) > 1:
        raise UserError(
            f"metric={name} is of {' and '.join(rates)}: ask about one of them, with question=gap"
        )
    if rates and rates[0] in names:
        return rates[0]
    check_choice("metric", name, names)
    return name


@dataclass(frozen=True, eq=False)
class RateMeasure:
    """A rate of the A groups that rows are chosen among, from labels that are helped by scores."""

    session: Session
    metric: Metric

    @cached_property
    def _intervals(self) -> LabelledIntervals:
        session = self.session
        return _labelled(replace(session.table, sampling=None), session.state.by, session.arms)

    @property
    def rows(self) -> Rows:
        """The labelled rows (A,) in the denominators of the metric's rates."""
        sizes = [rate.size(self._intervals.counts) for rate in self.metric.rates]
        return np.asarray(np.min(sizes, axis=0)).astype(np.int64)

    def limits(self, level: float, *, whenever: bool) -> Limits:
        """Return the rates (A,) with intervals, all that is possible of too few rows.

        They hold `whenever` one stops labelling, or at a number of labels said before.
        """
        return self._limits(replace(self._intervals, level=level, whenever=whenever))

    @property
    def everyone(self) -> tuple[float, float, float] | None:
        """The rate of all rows with its interval, as a report on the labels has it.

        Each label weighs as many rows of its group as it stands for. Joining the groups' intervals
        would not do: of ten groups with intervals that hold whenever one stops, the joined one
        missed at some number of labels in 10 to 38 % of runs. None of a rate of some rows alone,
        or if a group has no label.
        """
        if self.metric.name not in _SHARES or not self.session.labels.all():
            return None
        audited = self.session.audited()
        return self._limits(_labelled(audited, "", one_group(len(audited)))).at(0)

    def _limits(self, intervals: LabelledIntervals) -> Limits:
        lower, upper = (ends[0] for ends in intervals.rates([self.metric]))
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

    @property
    def posterior(self) -> Beta:
        """What is known (A,), of a prior that is centred on the scores (Ji et al. 2021)."""
        value = np.nan_to_num(np.asarray(self.metric(self._intervals.counts), float), nan=0.5)
        prior = centred(np.clip(self.expected, 0.01, 0.99), PRIOR)
        return prior.after(value * self.rows, (1 - value) * self.rows)


def _labelled(table: AuditTable, attribute: str, groups: pd.Series) -> LabelledIntervals:
    counted = labelled_counts(table, attribute, groups, rng(0, "measure"), LEVEL)
    assert isinstance(counted.intervals, LabelledIntervals)
    return counted.intervals


@dataclass(frozen=True, eq=False)
class MeanMeasure:
    """A mean, or an area, of every group, from its labelled rows."""

    session: Session
    metric: Metric

    @cached_property
    def _batch(self) -> Batch:
        """The mean of everyone who has a label and of each group, (1, 1 + A)."""
        session, table, known = self.session, self.session.table, self.session.table.known
        predicted = table.prediction.astype(float)
        columns = {"prediction": predicted if session.predicted is None else session.predicted}
        if table.score is not None:
            columns["score"] = table.score
        columns = {name: values[known] for name, values in columns.items()}
        groups = session.arms.iloc[known].reset_index(drop=True)
        parts, kinds = Parts.of(len(known), {"": groups}), {**scores.KINDS, **regression.KINDS}
        (batch,) = declared_batches([self.metric], table.label[known], columns, parts, kinds)
        return batch

    @property
    def rows(self) -> Rows:
        """The labelled rows (A,)."""
        return self.session.labels

    @property
    def _sizes(self) -> Floats:
        """The labelled rows of everyone and of each group (1 + A,)."""
        return np.append(self.rows.sum(), self.rows).astype(float)

    def limits(self, level: float, *, whenever: bool) -> Limits:
        """Return the means (A,) with intervals as those of rates, infinite of too few rows."""
        if not len(self.session.table.known):
            nothing = np.full(len(self.session.names), np.nan)
            return Limits(nothing, np.full_like(nothing, -np.inf), np.full_like(nothing, np.inf))
        value, lower, upper = self._limits(level, whenever).take(slice(1, None))
        lower = np.where(np.isnan(lower), self.metric.least, lower)
        return Limits(value, lower, np.where(np.isnan(upper), np.inf, upper))

    @property
    def everyone(self) -> tuple[float, float, float] | None:
        """The mean of all rows with an interval; None of an area, or without some label.

        It is the mean of the groups by their rows: the distances to the ends of independent
        intervals add as their squares (Zou and Donner 2008).
        """
        limits = self.limits(LEVEL, whenever=self.session.state.whenever)
        if self.metric.interval != "mean" or np.isnan(limits.value).any():
            return None
        share = self.session.sizes / self.session.sizes.sum()
        value = float(share @ limits.value)
        below, above = limits.value - limits.lower, limits.upper - limits.value
        down, up = (float(np.linalg.norm(share * distance)) for distance in (below, above))
        return value, value - down, value + up

    def _limits(self, level: float, whenever: bool) -> Limits:
        """Return the mean of everyone who has a label and of each group (1 + A,)."""
        sizes = self._sizes
        levels = lasting_level(level, sizes) if whenever else np.full(len(sizes), level)
        with np.errstate(invalid="ignore", divide="ignore"):
            _, lower, upper = self._batch.limits(levels[None])
        return Limits(self._batch.value[0], lower[0], upper[0])

    @property
    def posterior(self) -> Normal:
        """What is known (A,), of a prior that is the mean and spread of everyone with a label."""
        groups = len(self.session.names)
        if not len(self.session.table.known):
            return Normal.of(np.zeros(groups), 1.0, np.full(groups, PRIOR))
        value, lower, upper = self._limits(LEVEL, whenever=False)
        spread = ((upper - lower) / (2 * quantile(0.95))) ** 2 * self._sizes
        common = np.nanmean(spread) if np.isfinite(spread).any() else 1.0
        centre, strength = np.nan_to_num(value[0]), self.rows + PRIOR
        mean = self.rows * np.where(np.isfinite(value), value, centre)[1:] + PRIOR * centre
        spread = np.where(np.isfinite(spread), spread, common)[1:]
        return Normal.of(mean / strength, spread, strength)


Measure: TypeAlias = RateMeasure | MeanMeasure


def measure(session: Session, name: str = "") -> Measure:
    """Return a metric of a session, that of its question without a name."""
    metric = askable(session)[name or session.state.metric]
    kind = RateMeasure if metric.interval == "rate" else MeanMeasure
    return kind(session, metric)


def group_figures(about: Measure, limits: Callable[..., Limits]) -> pd.DataFrame:
    """Return a metric in every group.

    Parameters
    ----------
    limits : whenever= -> the metric (A,) with intervals, those that hold whenever one stops, or
        those of a number of labels that was said before the first.

    Returns
    -------
    A row a group: its labelled rows `labels`, of them the `rows` that the metric rests on, its
    value, the interval from `lower` to `upper` that holds for how labelling was stopped (NaN of too
    few labels), both intervals, and whether the group has too `few` labels to be called fine.
    """
    session, ends = about.session, {}
    for name in ("fixed", "whenever"):
        value, *both = limits(whenever=name == "whenever")
        none = ~np.isfinite(both[1] - both[0])
        ends[name] = list(zip(*(np.where(none, np.nan, end).tolist() for end in both), strict=True))
    lower, upper = zip(*ends["whenever" if session.state.whenever else "fixed"], strict=True)
    columns = {
        "group": session.names,
        "labels": session.labels,
        "rows": about.rows,
        "value": value,
        "lower": lower,
        "upper": upper,
        **ends,
        "few": session.few,
    }
    return pd.DataFrame(columns)
