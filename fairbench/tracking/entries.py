"""What a run is in MLflow: its name and tags, its options and its metrics.

An entry has the run's name and tags, options, times and data. What each metric is called is decided
here alone:

====================== =============================================================================
``headline/...``       error and log loss, under the name of the metric that they are
``parity/...``         gaps between the groups of the protected attribute, whichever it is
``abstention/...``     curves; the step is the percentage of people abstained on
``consistency/...``    how people's uncertainties vary; the step is a percentile of people
``<metric>``           of everyone
``<attribute>/...``    of the protected attribute: further gaps, and each group's metrics
====================== =============================================================================
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairbench.core.text import digest, told_apart
from fairbench.evaluation.abstention import OBJECTIVES
from fairbench.evaluation.summary import HEADLINES, task_of
from fairbench.evaluation.table import DEBIASED, SETTINGS, VALUE, setting_words
from fairbench.experiments.configuration import full_name
from fairbench.metrics.registry import BINARY, MULTICLASS, REGRESSION, declared
from fairbench.results.runs import Run

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput


RUN, FINGERPRINT, BEGUN = "fairbench.run_id", "fairbench.fingerprint", "fairbench.logged_at"
# The version of what is logged of a run: an entry of another one is replaced by the next sync.
VERSION_TAG, VERSION = "fairbench.version", "3"
# Which sweeps a run is of. A run can be of several, and would have one parent alone; and MLflow
# shows children below their parent only as long as nothing is filtered, nor ordered by a metric.
SWEEP = "sweep"
COLOUR = "mlflow.runColor"  # in which MLflow draws a run
NOTE = "mlflow.note.content"  # a run's components, and every option that is not a default
_LONGEST_VALUE = 6000


def tags(folder: Run) -> dict[str, str]:
    """Return the tags of a run, with its origin; without them MLflow notes the importer's."""
    environment = folder.environment
    return {
        RUN: folder.id,
        VERSION_TAG: VERSION,
        FINGERPRINT: environment["fingerprint"],
        "fairbench.data_sha256": " ".join(environment["data_sha256"].values()),
        "mlflow.source.name": "run.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": environment.get("git_commit", ""),
        NOTE: full_name(folder.name, folder.config),
    }


def with_sweeps(before: str, names: Iterable[str]) -> str:
    """Return the tag of a run's sweeps with further ones, each once, as many as a tag can hold."""
    tag = before
    for mark in map(sweep_mark, names):
        longer = f"{tag} {mark}".strip()
        if mark not in tag and len(longer) <= _LONGEST_VALUE:
            tag = longer
    return tag


def sweep_mark(name: str) -> str:
    """Return a sweep's name as the tag has it: no mark is part of another one."""
    return f"[{name}]"


def parameters(folder: Run) -> Iterator[tuple[str, str]]:
    """Yield (dotted name, value) of every option of a run."""
    yield from folder.environment["choices"].items()
    for name, value in folder.config.items():
        options = value if isinstance(value, dict) else {"": value}
        for key, option in options.items():
            if key != "name":
                yield f"{name}.{key}" if key else name, str(option)[:_LONGEST_VALUE]


def times(folder: Run) -> tuple[int, int]:
    """Return when a run began and ended, in milliseconds since 1970.

    It ended when its folder was written. It began as long before as its cells took to be fitted and
    to predict: cells that other runs had computed count as well.
    """
    ended = folder.finished.timestamp()
    seconds = folder.environment.get("cost", {}).get("seconds", 0.0)
    return int(1000 * (ended - seconds)), int(1000 * ended)


def data_set(folder: Run) -> DatasetInput:
    """Return the data set of a run as MLflow knows data sets: name and digest, and no row of it."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    record = folder.environment
    files = json.dumps({"files": record["data_sha256"]})
    data = Dataset(folder.choices["dataset"], str(record["data"]), "fairbench", files)
    return DatasetInput(data, [InputTag("mlflow.data.context", "training and test")])


_LONGEST = 250
HEADLINE, PARITY, ABSTENTION, CONSISTENCY = "headline", "parity", "abstention", "consistency"
_FIRST_GAP = "statistical_parity"


class LoggedMetric(NamedTuple):
    """A value that MLflow is told; one of several steps is a point of a curve."""

    name: str
    value: float
    step: int = 0


def _headline_name(metric: str) -> str:
    """Return the name under which MLflow shows the error or the log loss of a run."""
    return f"{HEADLINE}/{metric}"


def _parity_name(gap: str) -> str:
    """Return the name of a gap of the protected attribute, the same for every data set."""
    return f"{PARITY}/{gap.removesuffix('_parity')}"


def _opening_names(task: str) -> list[str]:
    """Return which metrics MLflow opens on for runs of a task, in the order of its columns."""
    meant = HEADLINES[task]
    gaps = [_parity_name(gap) for gap in _shown("gaps", task) if gap in (_FIRST_GAP, meant["gap"])]
    return [_headline_name(meant["error"]), _headline_name(meant["log loss"]), *gaps]


def latest_values(points: Sequence[LoggedMetric]) -> dict[str, float]:
    """Return the metrics that MLflow shows in tables; of a curve, the value of its last step."""
    return {point.name: point.value for point in sorted(points, key=lambda point: point.step)}


_NONE = pd.Series(dtype=object)
# What MLflow is told of a row of a run's summary, and its settings.
_Mean = namedtuple("_Mean", "variant metric statistic attribute group mean lower upper settings")  # noqa: PYI024


def _means_of(summary: pd.DataFrame) -> list[Any]:
    """Return the rows of a summary as named tuples, faster to select from than a data frame.

    Each has, as ``settings``, the values of those of `SETTINGS` at which the metric was
    measured, by their names.

    Two groups of an attribute, or two classes, that MLflow's characters cannot tell apart, such as
    A+ and A-, have their labels changed so that they can: the metrics of one would be lost.

    Parameters
    ----------
    summary : the result of :func:`fairbench.evaluation.summary.summarise`.
    """
    columns = {name: summary[name].to_numpy(object).tolist() for name in _Mean._fields[:-1]}
    pairs = list(zip(columns["attribute"], columns["group"], strict=True))
    groups: dict[str, dict[str, None]] = {}
    for attribute, group in pairs:
        groups.setdefault(attribute, {})[group] = None
    labels = {attribute: told_apart([*of_it], _spelled) for attribute, of_it in groups.items()}
    columns["group"] = [labels[attribute][group] for attribute, group in pairs]
    settings: list[dict[str, Any]] = [{} for _ in range(len(summary))]
    for name in SETTINGS:
        column = summary.get(name, _NONE)
        given = np.flatnonzero(column.notna())
        values = column.to_numpy(object)[given]
        if name in ("feature", "outcome"):
            told = told_apart(list(dict.fromkeys(values)), _spelled)
            values = [told[value] for value in values]
        for place, value in zip(given, values, strict=True):
            settings[place][name] = value
    return list(map(_Mean._make, zip(*columns.values(), settings, strict=True)))


def logged_metrics(folder: Run, summary: pd.DataFrame | None = None) -> list[LoggedMetric]:
    """Return the metrics of a run to log: means over repeats, their intervals, and curves.

    A gap stands under its name of ``parity/`` alone, and probabilities are left to the files: a
    metric takes MLflow a tenth of a millisecond of CPU.

    Parameters
    ----------
    summary : that of the run, if it has been read.
    """
    summary = folder.summary() if summary is None else summary
    protect = folder.protect
    task = task_of(summary)
    means = [row for row in _means_of(summary) if row.statistic in (VALUE, DEBIASED)]
    values = dict(_values(means, protect))
    aligned, gaps = dict(_aligned_values(values, protect, task)), _gap_names(protect, task)
    single = {name: value for name, value in values.items() if name not in gaps} | aligned
    points = (LoggedMetric(name, value) for name, value in single.items())
    return [*points, *_curves(means, protect)]


def values_of_evaluation(table: pd.DataFrame) -> dict[str, float]:
    """Return the metrics to log of a table of :func:`fairbench.evaluate`, as for a run.

    Every attribute is told in full; under ``parity/`` stands the first one.
    """
    summary = table.rename(columns={"value": "mean"}).assign(variant="")
    task = task_of(summary)
    names = told_apart(summary["attribute"].unique(), _spelled)
    means = _means_of(summary.assign(attribute=summary["attribute"].astype(object).map(names)))
    attributes = [name for name in dict.fromkeys(row.attribute for row in means) if name]
    values: dict[str, float] = {}
    for attribute in attributes:
        values |= dict(_values(means, attribute))
    return values | dict(_aligned_values(values, attributes[0], task))


def _aligned_values(
    values: Mapping[str, float], protect: str, task: str
) -> Iterator[tuple[str, float]]:
    """Yield headlines and gaps once more, under names that no attribute is part of."""
    meant = HEADLINES[task]
    names = {name: _headline_name(name) for name in (meant["error"], meant["log loss"])}
    names |= _gap_names(protect, task)
    yield from ((names[name], values[name]) for name in names if name in values)


def _gap_names(protect: str, task: str) -> dict[str, str]:
    """Return the name of each gap, and of each end of its interval -> that of any attribute's."""
    names = {_path(protect, gap): _parity_name(gap) for gap in _shown("gaps", task)}
    ends = {
        _end_name(own, end): _end_name(shared, end)
        for own, shared in names.items()
        for end in _ENDS
    }
    return names | ends


@lru_cache(maxsize=16)
def _shown(part: str = "", task: str = "") -> Mapping[str, None]:
    """Return the names of metrics that the table of a run shows, in one part of it or anywhere.

    Parameters
    ----------
    task : the task whose metrics these are; empty for every one.
    """
    return dict.fromkeys(
        metric.name
        for metric in declared()
        if metric.shown and part in (*metric.shown, "") and task in (metric.task, "")
    )


def _values(means: Sequence[Any], protect: str) -> Iterator[tuple[str, float]]:
    """Yield (MLflow metric name, mean over repeats) of every defined metric that is one number.

    Those of everyone and of the protected attribute, and of its groups those that the table of a
    run shows. The rest, variants, other attributes and points of diagrams are left to the files: a
    metric takes MLflow a tenth of a millisecond of CPU. Points of curves are others' to give. With
    everyone's metrics and gaps that the table of a run shows are the ends of their intervals.

    Parameters
    ----------
    protect : the attribute, or combination, of the headline metrics.
    """
    for row in _own_means(means, protect):
        is_value = row.statistic == VALUE
        if row.group and not (is_value and row.metric in _shown("groups")):
            continue
        if not _POINTS & row.settings.keys() and isfinite(row.mean):
            # The value has the name of the metric.
            statistic = "" if is_value else f" {row.statistic.replace('_', ' ')}"
            name = f"{row.metric}{statistic}"
            yield _path(row.attribute, row.group, name, setting_words(row.settings)), row.mean
        if row.group or not is_value or row.metric not in _shown():
            continue
        if row.settings.get("binning") != "mass" and "outcome" not in row.settings:
            for end in _ENDS:
                if isfinite(value := getattr(row, end)):
                    yield _end_name(_path(row.attribute, row.metric), end), value


_POINTS = {"bin", "rate", "quantile"}  # settings of a point of a diagram or a curve


def _own_means(means: Sequence[Any], protect: str) -> Iterator[Any]:
    """Yield the rows of the run itself, not of its variants: overall and by protected attribute."""
    return (row for row in means if not row.variant and row.attribute in ("", protect))


_ENDS = ("lower", "upper")


def _end_name(name: str, end: str) -> str:
    longest = _LONGEST - 6
    return f"{name if len(name) <= longest else _shortened(name, longest)} {end}"


def _curves(means: Sequence[Any], protect: str) -> Iterator[LoggedMetric]:
    """Yield error and gaps of the people who are left, and how much people's uncertainties vary.

    The former by the percentage abstained on, the latter by the percentile of people. A step of
    MLflow is a whole number: points between two are left to the file.
    """
    for row in _own_means(means, protect):
        if not row.group and "rate" in row.settings and "feature" not in row.settings:
            yield from _point(ABSTENTION, row, "rate")
        if not row.attribute and "quantile" in row.settings:
            yield from _point(CONSISTENCY, row, "quantile")


def _point(kind: str, row: Any, at: str) -> Iterator[LoggedMetric]:
    """Yield a point of a curve if its place is a whole percentage, and its value is defined."""
    percentage = 100 * row.settings[at]
    if abs(percentage - (step := round(percentage))) < 1e-6 and isfinite(row.mean):
        name = _metric_name([kind, row.metric.removeprefix(f"{kind}_")])
        yield LoggedMetric(name, row.mean, step)


def _path(attribute: str, *parts: str) -> str:
    """Return the path of a metric; an attribute that is called as a kind of metrics is told so."""
    kinds = (HEADLINE, PARITY, ABSTENTION, CONSISTENCY)
    first = f"attribute {attribute}" if attribute in kinds else attribute
    return _metric_name([part for part in (first, *parts) if part])


def _metric_name(parts: Sequence[str]) -> str:
    """Spell a path with the characters MLflow allows, in at most the 250 it allows."""
    name = "/".join(map(_spelled, parts))
    return name if len(name) <= _LONGEST else _shortened(name, _LONGEST)


def _shortened(name: str, length: int) -> str:
    return f"{name[: length - 9]}-{digest(name, 8)}"


@lru_cache(maxsize=10_000)
def _spelled(part: str) -> str:
    for symbol, word in ((">=", "at least"), ("<=", "at most"), (">", "over"), ("<", "under")):
        part = part.replace(symbol, word)
    spelled = "".join(c if c.isalnum() or c in "_-. " else "-" for c in part)
    return spelled if spelled.strip(".") else "-" * len(spelled)


# A view is a tag of the experiment, which the page of runs reads where an address names its key:
# its columns, its charts, and the runs of a sweep.

# The metric that is drawn first.
PRIMARY = "mlflow.experiment.primaryMetric.name"
SHARED = "mlflow.sharedViewState."  # begins the tag of a view
VIEW, SWEEP_VIEW = "fairbench", "fairbench-sweep"
_SECTION = "comparison"
_UNSMOOTHED = {"lineSmoothness": 0, "useGlobalLineSmoothing": False}  # points are means, not noise
_WIDEST = 20  # runs in a chart
_CURVES = (*((ABSTENTION, name) for name in OBJECTIVES), (CONSISTENCY, "sd"))


def columns(logged: Iterable[str], before: str = "") -> list[str]:
    """Return the metrics that the page shows first, from those that any run has.

    Parameters
    ----------
    logged : names of metrics that were logged now.
    before : the view so far, whose columns stay; empty or unreadable if there is none.
    """
    try:
        kept = {str(column) for column in json.loads(before)["selectedColumns"]}
    except (ValueError, KeyError, TypeError):
        kept = set()
    available = {*logged, *kept}
    order = dict.fromkeys(
        name for task in (BINARY, MULTICLASS, REGRESSION) for name in _opening_names(task)
    )
    selected = [name for name in order if name in available or _column(name) in available]
    return sorted(selected or _opening_names(BINARY), key=lambda name: name.partition("/")[0])


def _column(metric: str) -> str:
    return f"metrics.`{metric}`"


def view(metrics: list[str], sweep: str = "") -> str:
    """Return which columns and charts the page shows, by which it is ordered, and of which runs.

    Parameters
    ----------
    metrics : the result of :func:`columns`.
    sweep : the name of a sweep, to show its runs only.
    """
    name = "attributes.`Run Name`"
    data = "attributes.`Dataset`"
    swept = f"tags.`{SWEEP}`"
    metric_columns = [_column(metric) for metric in metrics]
    state = {
        "selectedColumns": [*metric_columns, data, swept],
        "columnOrder": [name, *metric_columns, data, swept],
        "columnWidths": {name: 340, **dict.fromkeys(metric_columns, 170), data: 150, swept: 300},
        "orderByKey": metric_columns[0],
        "orderByAsc": True,
        "compareRunCharts": _charts(metrics),
        "compareRunSections": [{"uuid": _SECTION, "name": _SECTION, "display": True}],
        "isAccordionReordered": True,  # or the section would go behind those of all metrics
    }
    if sweep:
        # A filter's text knows no escape: "_" is any character, and so a quote.
        mark = sweep_mark(sweep).replace("'", "_")
        state["searchFilter"] = f"tags.{SWEEP} LIKE '%{mark}%'"
    return json.dumps(state, separators=(",", ":"))


def _charts(metrics: list[str]) -> list[dict[str, Any]]:
    """Return the charts that come first: error and gap, then curves, three in a row of the page."""
    error, *other_metrics = metrics
    *other_gaps, gap = [metric for metric in other_metrics if metric.startswith(PARITY)]
    axes = [{"key": metric, "type": "METRIC"} for metric in (error, gap)]
    charts: list[dict[str, Any]] = [
        {"type": "SCATTER", "xaxis": axes[0], "yaxis": axes[1]},
        *({"type": "BAR", "metricKey": metric} for metric in (error, gap)),
        *({"type": "LINE", "metricKey": _metric_name(curve), **_UNSMOOTHED} for curve in _CURVES),
        *({"type": "BAR", "metricKey": metric} for metric in other_gaps),
    ]
    shared = {"metricSectionId": _SECTION, "runsCountToCompare": _WIDEST}
    shared |= {"deleted": False, "isGenerated": False}
    return [{"uuid": f"{_SECTION}-{i}", **shared, **chart} for i, chart in enumerate(charts)]
