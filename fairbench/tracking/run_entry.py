"""What MLflow is told of a run: its name and tags, options, headline metrics, times and data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairbench.core.fingerprint import digest
from fairbench.evaluation.columns import setting_text
from fairbench.evaluation.headlines import HEADLINES, headlines, task_of
from fairbench.experiments.build import telling_name
from fairbench.metrics.registry import declared
from fairbench.results.runs import Run

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

RUN, FINGERPRINT, BEGUN = "fairbench.run_id", "fairbench.fingerprint", "fairbench.logged_at"
_BY = ["attribute", "group", "metric"]
_LONGEST = 250
_LONGEST_VALUE = 6000


def shown_name(folder: Run) -> str:
    """Return what MLflow calls a run: what was chosen, and every option that is not the usual."""
    return telling_name(folder.name, folder.config)


def tags(folder: Run, environment: Mapping[str, Any]) -> dict[str, str]:
    """Return what says where a run's results come from; MLflow would note the importer's."""
    meant = HEADLINES[task_of(folder.summary())]
    return {
        RUN: folder.id,
        **{f"fairbench.{name.replace(' ', '_')}": metric for name, metric in meant.items()},
        FINGERPRINT: environment["fingerprint"],
        "fairbench.data_sha256": " ".join(environment["data_sha256"].values()),
        "mlflow.source.name": "run.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": environment.get("git_commit", ""),
        "mlflow.note.content": shown_name(folder),
    }


def parameters(folder: Run, environment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (dotted name, value) of every option of a run."""
    yield from environment["choices"].items()
    for name, value in folder.config.items():
        if isinstance(value, dict):
            options = {key: option for key, option in value.items() if key != "name"}
            yield from ((f"{name}.{key}", _value(option)) for key, option in options.items())
        else:
            yield name, _value(value)


def _value(option: Any) -> str:
    return str(option)[:_LONGEST_VALUE]


def metric_values(metrics: pd.DataFrame, protect: str) -> Iterator[tuple[str, float]]:
    """Yield (MLflow metric name, mean over repeats) of every defined headline metric.

    A metric of everyone, or of the protected attribute and its groups, is one; variants, other
    attributes and points of curves and diagrams are left to the metrics file, since a row of
    MLflow's database costs about half a millisecond.

    Parameters
    ----------
    protect : the attribute, or combination, of the headline metrics.
    """
    headline = (metrics["variant"] == "") & metrics["attribute"].isin(["", protect])
    points = metrics["bin"].notna() | metrics["rate"].notna()
    shown = metrics[headline & ~points & metrics["value"].notna()]
    values: dict[tuple[str, ...], list[float]] = {}
    named = zip(*(shown[name] for name in _BY), setting_text(shown), strict=True)
    for parts, value in zip(named, shown["value"], strict=True):
        values.setdefault(parts, []).append(value)
    for parts, several in values.items():
        yield _metric_name([part for part in parts if part]), fmean(several)


# What MLflow opens on, of every run alike; what each is of a run is told by a tag.
OPENING = {"error": "headline/error", "log loss": "headline/log loss", "gap": "headline/gap"}


def logged_values(folder: Run) -> dict[str, float]:
    """Return what MLflow shows of a run: headline metrics, and the intervals of their means."""
    summary = folder.summary()
    ends = interval_values(summary, folder.protect)
    first = headlines(summary, folder.protect)
    opening = {OPENING[name]: value for name, (value, _, _) in first.items() if isfinite(value)}
    return opening | dict([*metric_values(folder.metrics(), folder.protect), *ends])


def interval_values(summary: pd.DataFrame, protect: str) -> Iterator[tuple[str, float]]:
    """Yield (MLflow metric name, end) of the intervals that the table of a run shows.

    Parameters
    ----------
    summary : of :func:`fairbench.evaluation.summary.summarise`.
    """
    shown = summary["metric"].isin([each.name for each in declared() if each.shown])
    shown &= (summary["variant"] == "") & summary["attribute"].isin(["", protect])
    shown &= (summary["binning"] != "mass") & summary["outcome"].isna()
    for row in summary[shown].to_dict("records"):
        parts = [str(row[name]) for name in ("attribute", "group", "metric") if row[name]]
        for end in ("lower", "upper"):
            if isfinite(row[end]):
                yield f"{_metric_name(parts)[: _LONGEST - 6]} {end}", float(row[end])


def _metric_name(parts: Sequence[str]) -> str:
    """Spell a path with the characters MLflow allows, in at most the 250 it allows."""
    name = "/".join(map(_spelled, parts))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9]}-{digest(name, 8)}"


@lru_cache(maxsize=10_000)
def _spelled(part: str) -> str:
    for symbol, word in ((">=", "at least"), ("<=", "at most"), (">", "over"), ("<", "under")):
        part = part.replace(symbol, word)
    spelled = "".join(c if c.isalnum() or c in "_-. " else "-" for c in part)
    return spelled if spelled.strip(".") else "-" * len(spelled)


# Experiment tags that MLflow's page heeds: which metric is drawn first, and a view by its key.
PRIMARY, VIEW = "mlflow.experiment.primaryMetric.name", "fairbench"
VIEW_TAG = f"mlflow.sharedViewState.{VIEW}"


def opening_view() -> str:
    """Return which columns MLflow's table of runs shows, and by which it is ordered."""
    name, data = "attributes.`Run Name`", "attributes.`Dataset`"
    shown = [f"metrics.`{metric}`" for metric in OPENING.values()]
    view = {
        "selectedColumns": [*shown, data],
        "columnOrder": [name, *shown, data],
        "columnWidths": {name: 360, **dict.fromkeys(shown, 130), data: 180},
        "orderByKey": shown[0],
        "orderByAsc": True,
    }
    return json.dumps(view, separators=(",", ":"))


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

    files = json.dumps({"files": folder.environment["data_sha256"]})
    digest_, name = str(folder.environment["data"]), folder.choices["dataset"]
    return DatasetInput(
        Dataset(name, digest_, "fairbench", files),
        [InputTag("mlflow.data.context", "training and test")],
    )
