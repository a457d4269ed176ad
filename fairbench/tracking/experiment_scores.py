"""Scores of the runs of an MLflow experiment, through MLflow's own client.

A run is of one method on one task, which parameters, tags or the run's data set say; its metrics
are scores. fairbench's own runs are ranked from their folder, which has all of them.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.core.deadline import Progress
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.formats import shortened
from fairbench.data.benchmark_logs.table import BenchmarkTable, Better, Score, tidy, with_scores
from fairbench.metrics.registry import find
from fairbench.tracking.database import SCHEME, TrackingError, ask

if TYPE_CHECKING:
    from mlflow.entities import Run as LoggedRun
    from mlflow.tracking import MlflowClient

FORMAT = "MLflow runs"
_IDLE_S, _TOTAL_S = 60.0, 600.0
_PAGE = 1000
_FINISHED = "FINISHED"
_DATASET = "dataset of the run"  # what MLflow's log_input says, in place of a parameter
# Usual names of the parameters and tags that describe a run, the likeliest first.
_USUAL: Mapping[str, tuple[str, ...]] = {
    "method": ("method", "model", "model_name", "model_type", "learner", "estimator", "algorithm",
               "classifier", "solver"),
    "task": ("task", "dataset", "dataset_name", "data", _DATASET),
    "split": ("split", "fold", "cv_fold", "repeat", "seed", "random_state"),
    "family": ("family",),
}  # fmt: skip


@dataclass(frozen=True)
class _Logged:
    """A run in MLflow: its parameters, tags and metrics."""

    id: str
    status: str
    said: Mapping[str, str]
    metrics: Mapping[str, float]


def experiment_table(
    address: str,
    experiment: str,
    scores: Sequence[str] = (),
    *,
    named: Mapping[str, str] | None = None,
) -> BenchmarkTable:
    """Return the metrics of an experiment's runs.

    Parameters
    ----------
    address : the address of a server or a database, such as ``sqlite:///mlflow.db``.
    scores : the metrics to keep; if there are several, some must be named.
    named : the parameter or tag that holds the ``method``, ``task``, ``split`` and ``family`` of a
        run; those with a usual name are found without it.

    Raises
    ------
    UserError : there is no such experiment, no parameter says the method or the task, or MLflow
        does not answer.
    """
    if address.startswith(SCHEME):
        _check_database(Path(address.removeprefix(SCHEME)))

    def work(client: MlflowClient, progress: Progress) -> list[_Logged]:
        return list(_runs(client, experiment, progress))

    try:
        logged = ask(address, work, idle_s=_IDLE_S, total_s=_TOTAL_S, reading=True)
    except TrackingError as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from None
        raise UserError(str(error)) from error
    return with_scores(_table(logged, experiment, dict(named or {})), scores)


def _check_database(path: Path) -> None:
    """Refuse a file that is no database of MLflow's, which MLflow would make one of."""
    if not path.is_file():
        raise UserError(f"{path} is not a file")
    try:
        address = f"{path.resolve().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
            database.execute("SELECT count(*) FROM experiments").fetchone()
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path} is no database of MLflow's that can be read: {error}") from error


def _runs(client: MlflowClient, experiment: str, progress: Progress) -> Iterator[_Logged]:
    """Yield the runs of an experiment, page by page."""
    about = client.get_experiment_by_name(experiment)
    progress()
    if about is None:
        names = [
            found_experiment.name
            for found_experiment in client.search_experiments(max_results=_PAGE)
        ]
        raise unknown_name("experiment of MLflow", experiment, names)
    token = None
    while True:
        page = client.search_runs([about.experiment_id], max_results=_PAGE, page_token=token)
        progress()
        yield from map(_facts_of_run, page)
        token = page.token
        if not token:
            return


def _facts_of_run(run: LoggedRun) -> _Logged:
    """Return the facts of a run; its own parameters and tags override those of MLflow."""
    tags = {name: text for name, text in run.data.tags.items() if not name.startswith("mlflow.")}
    inputs = run.inputs.dataset_inputs if run.inputs else ()
    data = {_DATASET: inputs[0].dataset.name} if len(inputs) == 1 else {}
    said_by_run = {**data, **tags, **run.data.params}
    return _Logged(run.info.run_id, run.info.status, said_by_run, dict(run.data.metrics))


def _table(
    logged: Sequence[_Logged], experiment: str, named_parts: Mapping[str, str]
) -> BenchmarkTable:
    """Return the table of scores of runs; parameters or tags say method, task, split and family."""
    where = f"experiment '{shortened(experiment)}'"
    scored = [run for run in logged if run.metrics or run.status != _FINISHED]
    if not scored:
        raise UserError(f"{where} of MLflow has no runs with metrics")
    names = {name for run in scored for name in run.said}
    for part, name in named_parts.items():
        if part not in _USUAL:
            raise unknown_name("part of a run", part, _USUAL)
        if name not in names:
            raise unknown_name(f"parameter or tag of {where}", name, names)
    name_of_part = {part: named_parts.get(part) or _usual(part, names) for part in _USUAL}
    for part in ("method", "task"):
        if not name_of_part[part]:
            listed = ", ".join(map(shortened, sorted(names)[:8])) or "it has none"
            raise UserError(
                f"no parameter or tag of {where} is called as usual for the {part}: name one by "
                f"{part}=NAME ({listed})"
            )
    metrics = list(dict.fromkeys(name for run in scored for name in run.metrics))
    rows = []
    lacking = 0
    for run in scored:
        if not all(run.said.get(name_of_part[part]) for part in ("method", "task")):
            lacking += 1
            continue
        keys = {part: run.said.get(name, "none") for part, name in name_of_part.items() if name}
        rows.append({**keys, **run.metrics})
    frame = tidy(rows, f"{FORMAT} of {where}")
    notes = [_understood(name_of_part)]
    failed = sum(run.status != _FINISHED for run in scored)
    if failed:
        notes.append(f"{failed} of {len(scored)} runs have not finished")
    if lacking:
        notes.append(
            f"{lacking} runs do not say their {name_of_part['method']} or {name_of_part['task']}: "
            "left out"
        )
    described = tuple(Score(name, _direction(name)) for name in metrics if name in frame)
    return BenchmarkTable(frame, FORMAT, described, notes=tuple(notes))


def _usual(part: str, names: set[str]) -> str:
    lower = {name.lower(): name for name in sorted(names, reverse=True)}
    return next((lower[name] for name in _USUAL[part] if name in lower), "")


def _understood(says: Mapping[str, str]) -> str:
    listed = ", ".join(f"{part}={name}" for part, name in says.items() if name)
    return f"read as {listed}"


def _direction(name: str) -> Better:
    metric: Any = find(name)
    return metric.better if metric and metric.better in ("higher", "lower") else ""
