"""The entry of a run in MLflow, without its metrics: name and tags, options, times and data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fairbench.experiments.configuration import full_name
from fairbench.results.runs import Run

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

RUN, FINGERPRINT, BEGUN = "fairbench.run_id", "fairbench.fingerprint", "fairbench.logged_at"
# The version of what is logged of a run: an entry of another one is completed by the next sync.
VERSION_TAG, VERSION = "fairbench.version", "2"
# Which sweeps a run is of. A run can be of several, and would have one parent alone; and MLflow
# shows children below their parent only as long as nothing is filtered, nor ordered by a metric.
SWEEP = "sweep"
COLOUR = "mlflow.runColor"  # in which MLflow draws a run
_LONGEST_VALUE = 6000


def shown_name(folder: Run) -> str:
    """Return a run's name in MLflow: its components, and every option that is not a default."""
    return full_name(folder.name, folder.config)


def tags(folder: Run, environment: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags of a run, with its origin; without them MLflow notes the importer's."""
    return {
        RUN: folder.id,
        VERSION_TAG: VERSION,
        FINGERPRINT: environment["fingerprint"],
        "fairbench.data_sha256": " ".join(environment["data_sha256"].values()),
        "mlflow.source.name": "run.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": environment.get("git_commit", ""),
        "mlflow.note.content": shown_name(folder),
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
    digest_ = str(folder.environment["data"])
    name = folder.choices["dataset"]
    return DatasetInput(
        Dataset(name, digest_, "fairbench", files),
        [InputTag("mlflow.data.context", "training and test")],
    )
