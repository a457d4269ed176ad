"""The view that MLflow's page of runs opens on: columns, charts, and the runs of a sweep.

A view is a tag of the experiment, which the page reads where an address names its key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fairbench.metrics.registry import BINARY, MULTICLASS, REGRESSION
from fairbench.tracking.metrics import PARITY, curve_names, opening_names
from fairbench.tracking.run_entry import SWEEP, sweep_mark

# The metric that is drawn first.
PRIMARY = "mlflow.experiment.primaryMetric.name"
VIEW, SWEEP_VIEW = "fairbench", "fairbench-sweep"
_SECTION = "comparison"
_UNSMOOTHED = {"lineSmoothness": 0, "useGlobalLineSmoothing": False}  # points are means, not noise
_WIDEST = 20  # runs in a chart


def view_tag(key: str) -> str:
    """Return the experiment's tag that holds a view."""
    return f"mlflow.sharedViewState.{key}"


def view_address(key: str, *, charts: bool = False) -> str:
    """Return the end of an address that opens a view, as a table or as charts."""
    return f"viewStateShareKey={key}{'&compareRunsMode=CHART' if charts else ''}"


def columns(logged: Iterable[str], before: str = "") -> list[str]:
    """Return the metrics that the page shows first, from those that any run has.

    Parameters
    ----------
    logged : names of metrics that were logged now.
    before : the view so far, whose columns stay; empty or unreadable if there is none.
    """
    available = {*logged, *_selected(before)}
    order = dict.fromkeys(
        name for task in (BINARY, MULTICLASS, REGRESSION) for name in opening_names(task)
    )
    selected = [name for name in order if name in available or _column(name) in available]
    return sorted(selected or opening_names(BINARY), key=lambda name: name.partition("/")[0])


def _selected(text: str) -> list[str]:
    try:
        return [str(column) for column in json.loads(text)["selectedColumns"]]
    except (ValueError, KeyError, TypeError):
        return []


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
    return json.dumps(state | _sweep_filter(sweep), separators=(",", ":"))


def _sweep_filter(name: str) -> dict[str, str]:
    """Return the filter of the runs of a sweep; nothing without a name."""
    if not name:
        return {}
    # A filter's text knows no escape: "_" is any character, and so a quote.
    mark = sweep_mark(name).replace("'", "_")
    return {"searchFilter": f"tags.{SWEEP} LIKE '%{mark}%'"}


def _charts(metrics: list[str]) -> list[dict[str, Any]]:
    """Return the charts that come first: error and gap, then curves, three in a row of the page."""
    error, *other_metrics = metrics
    *other_gaps, gap = [metric for metric in other_metrics if metric.startswith(PARITY)]
    charts: list[dict[str, Any]] = [
        {"type": "SCATTER", "xaxis": _axis(error), "yaxis": _axis(gap)},
        *({"type": "BAR", "metricKey": metric} for metric in (error, gap)),
        *({"type": "LINE", "metricKey": curve, **_UNSMOOTHED} for curve in curve_names()),
        *({"type": "BAR", "metricKey": metric} for metric in other_gaps),
    ]
    shared = {
        "metricSectionId": _SECTION,
        "runsCountToCompare": _WIDEST,
        "deleted": False,
        "isGenerated": False,
    }
    return [{"uuid": f"{_SECTION}-{i}", **shared, **chart} for i, chart in enumerate(charts)]


def _axis(metric: str) -> dict[str, str]:
    return {"key": metric, "type": "METRIC"}
