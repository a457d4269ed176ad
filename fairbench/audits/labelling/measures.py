"""What a question is about: a metric of every group, from the labels so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from fairbench.audits.assessment import rows_of
from fairbench.audits.findings import LEVEL
from fairbench.audits.labelling.session import Session
from fairbench.audits.table import AuditTable
from fairbench.core.errors import UserError, check_choice
from fairbench.core.seeds import rng
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.evaluation.labelled_measures import (
    LabelledMeans,
    LabelledMeasure,
    LabelledRates,
    expected_rates,
)
from fairbench.evaluation.some_labels import one_group
from fairbench.inference.few_labels.assisted import needs_no_label
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import BINARY, REGRESSION, Metric, metrics_of

REGRESSION_METRIC = "mae"
_OF_CLASSES = ("accuracy", "error_rate", "brier_score")
_SHARES = ("accuracy", "error_rate")  # rates in which every row of a group counts


def askable(session: Session) -> Mapping[str, Metric]:
    """Return the metrics about which labels of a table carry information, by name."""
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
    """Return the name of a metric that questions can be about; of a gap in a rate, that rate.

    Raises
    ------
    UserError : if no question can be about this metric; the message lists those that can.
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


def measure(session: Session, name: str = "") -> LabelledMeasure:
    """Return a metric in the groups among which rows are chosen; by default the question's."""
    metric = askable(session)[metric_named(name or session.state.metric, session)]
    table = session.table
    known = table.known
    if metric.interval == "rate":
        intervals = _label_intervals(replace(table, sampling=None), session.state.by, session.arms)
        expected = expected_rates(
            metric, table.score, table.prediction, session.codes, groups=len(session.names)
        )
        return LabelledRates(metric, intervals, expected)
    predicted = table.prediction.astype(float) if session.predicted is None else session.predicted
    columns = {"prediction": predicted[known]}
    if table.score is not None:
        columns["score"] = table.score[known]
    groups = session.arms.iloc[known].reset_index(drop=True)
    return LabelledMeans(metric, table.label[known], columns, groups)


def estimate_for_everyone(
    session: Session, about: LabelledMeasure
) -> tuple[float, float, float] | None:
    """Return a metric of all rows with its interval, as a report on the labels has it.

    Each label is weighted by how many rows of its group it stands for. The groups' anytime-valid
    intervals of rates cannot simply be combined: with ten groups, the combined interval missed at
    some number of labels in 10 to 38 % of runs. None for a rate whose denominator is not all rows,
    for an area, and if a group has no label.
    """
    anytime_valid = session.state.anytime_valid
    if isinstance(about, LabelledMeans):
        return about.everyone(session.sizes, LEVEL, anytime_valid=anytime_valid)
    if about.metric.name not in _SHARES or not session.labels.all():
        return None
    audited = session.audited()
    about = replace(about, intervals=_label_intervals(audited, "", one_group(len(audited))))
    return about.limits(LEVEL, anytime_valid=anytime_valid).at(0)


def _label_intervals(table: AuditTable, attribute: str, groups: pd.Series) -> LabelledIntervals:
    """Return the intervals of the groups of an attribute, from the labels so far."""
    counted = rows_of(table).labelled_counts(attribute, groups, rng(0, "measure"), LEVEL)
    assert isinstance(counted.intervals, LabelledIntervals)
    return counted.intervals


def group_figures(
    session: Session, about: LabelledMeasure, limits: Callable[..., Limits]
) -> pd.DataFrame:
    """Return a metric in every group.

    Parameters
    ----------
    limits : a function of ``anytime_valid=`` that returns the metric (A,) with intervals. If true,
        they hold whenever labelling stops; otherwise, at a number of labels that was fixed before
        the first one.

    Returns
    -------
    A row for each group: ``labels``, its number of labels; ``rows``, how many of these rows are in
    the metric's denominator; ``value``; ``lower`` and ``upper``, the interval that is valid for the
    way in which labelling was stopped (NaN if there are too few labels); ``fixed`` and
    ``whenever``, the intervals for a fixed number of labels and for any stopping time; and ``few``,
    whether the group has too few labels to be called fine.
    """
    intervals = {}
    for name in ("fixed", "whenever"):
        value, *interval = limits(anytime_valid=name == "whenever")
        lacks_interval = ~np.isfinite(interval[1] - interval[0])
        lower_and_upper = (np.where(lacks_interval, np.nan, limit).tolist() for limit in interval)
        intervals[name] = list(zip(*lower_and_upper, strict=True))
    valid_kind = "whenever" if session.state.anytime_valid else "fixed"
    lower, upper = zip(*intervals[valid_kind], strict=True)
    columns = {
        "group": session.names,
        "labels": session.labels,
        "rows": about.rows,
        "value": value,
        "lower": lower,
        "upper": upper,
        **intervals,
        "few": session.few,
    }
    return pd.DataFrame(columns)
