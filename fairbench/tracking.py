"""Logging finished runs to MLflow; the files are the truth, MLflow a view of them.

``python -m fairbench.tracking sync`` logs every finished run that is not there yet; ``... ui``
serves the UI.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairbench.fingerprint import digest
from fairbench.mlflow_database import exclusive, quiet
from fairbench.report.summary import summarise
from fairbench.runs import RunFolder

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_RUN, _FINGERPRINT = "fairbench.run_id", "fairbench.fingerprint"
_BATCH = 1000
_LONGEST = 250


class TrackingError(Exception):
    """MLflow could not be reached or written; results are not affected."""


@dataclass(frozen=True)
class Tracking:
    """Where runs are logged.

    Attributes
    ----------
    enabled : false logs nothing.
    uri : the tracking server; None takes ``MLFLOW_TRACKING_URI`` or ``sqlite:///mlflow.db``.
    experiment : the experiment's name.
    """

    enabled: bool = True
    uri: str | None = None
    experiment: str = "fairbench"

    @property
    def address(self) -> str:
        """The tracking URI in use."""
        return self.uri or os.environ.get("MLFLOW_TRACKING_URI") or "sqlite:///mlflow.db"

    def sync(self, folders: Iterable[RunFolder]) -> dict[str, str]:
        """Log the finished runs among `folders` that are not logged; return run id -> MLflow id.

        Logging a run twice logs it once; a run whose metrics were recomputed replaces its entry.

        Raises
        ------
        TrackingError : the server is down, or the database locked.
        """
        quiet()
        from mlflow.tracking import MlflowClient

        try:
            with exclusive(self.address):
                client = MlflowClient(tracking_uri=self.address)
                experiment = _experiment_id(client, self.experiment)
                logged = _logged(client, experiment)
                return {
                    folder.path.name: _log_once(client, experiment, folder, logged)
                    for folder in folders
                    if folder.environment()
                }
        except Exception as error:  # MLflow raises requests', SQLAlchemy's and its own
            raise TrackingError(f"MLflow at {self.address}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return "no connection" if "Max retries" in text else text.splitlines()[0][:200]


def _experiment_id(client: MlflowClient, name: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    local = client.tracking_uri.startswith("sqlite")
    # Without a location MLflow would note the creator's working directory, relative.
    location = (Path.cwd() / "mlartifacts").as_uri() if local else None
    return str(client.create_experiment(name, artifact_location=location))


def _logged(client: MlflowClient, experiment: str) -> dict[str, tuple[str, str]]:
    """Return fairbench run id -> (MLflow run id, fingerprint) of what is logged already."""
    logged, token = {}, None
    while True:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        for run in page:
            if run.info.status == "FINISHED" and _RUN in run.data.tags:
                mine = (str(run.info.run_id), run.data.tags.get(_FINGERPRINT, ""))
                logged[run.data.tags[_RUN]] = mine
        token = page.token
        if not token:
            return logged


def _log_once(
    client: MlflowClient, experiment: str, folder: RunFolder, logged: dict[str, tuple[str, str]]
) -> str:
    run_id, environment = folder.path.name, folder.environment()
    if run_id in logged:
        known, fingerprint = logged[run_id]
        if fingerprint == environment["fingerprint"]:
            return known
        client.delete_run(known)
    return _log(client, experiment, folder, environment)


def _log(
    client: MlflowClient, experiment: str, folder: RunFolder, environment: dict[str, Any]
) -> str:
    from mlflow.entities import Metric, Param

    tags = {
        _RUN: folder.path.name,
        _FINGERPRINT: environment["fingerprint"],
        "fairbench.data_sha256": " ".join(environment["data_sha256"].values()),
        "mlflow.source.name": "run.py",
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": environment.get("git_commit", ""),
        "mlflow.note.content": environment["name"],
    }
    run = client.create_run(experiment, tags=tags, run_name=environment["name"])
    now = int(time.time() * 1000)
    metrics = [Metric(name, value, now, 0) for name, value in metric_values(folder.metrics())]
    params = [Param(name, value[:6000]) for name, value in parameters(folder)]
    for start in range(0, max(len(metrics), 1), _BATCH):
        batch = metrics[start : start + _BATCH]
        client.log_batch(run.info.run_id, batch, params if start == 0 else [])
    _log_artifacts(client, str(run.info.run_id), folder)
    client.set_terminated(run.info.run_id)
    return str(run.info.run_id)


def _log_artifacts(client: MlflowClient, run_id: str, folder: RunFolder) -> None:
    for name in ("config.yaml", "metrics.parquet", "summary.csv", "environment.json", "cells.txt"):
        client.log_artifact(run_id, str(folder.path / name))
    for figure in sorted(folder.figures.glob("*.png")):
        client.log_artifact(run_id, str(figure), "figures")


def metric_values(metrics: pd.DataFrame) -> Iterator[tuple[str, float]]:
    """Yield (MLflow metric name, mean over repeats) of every defined metric worth comparing.

    Points of diagrams are left to the figures and the metrics file.
    """
    summary = summarise(metrics)
    diagrams = summary["metric"].str.match("reliability_|spread_predicted|spread_empirical")
    for row in summary[~diagrams & summary["mean"].notna()].itertuples():
        parts = [row.variant, row.attribute, row.group, row.metric, row.setting]
        yield _metric_name([str(part) for part in parts if part]), float(row.mean)


def _metric_name(parts: Sequence[str]) -> str:
    """Spell a path with the characters MLflow allows, in at most the 250 it allows."""
    name = "/".join(map(_spelled, parts))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9]}-{digest(name, 8)}"


def _spelled(part: str) -> str:
    for symbol, word in ((">=", "at least"), ("<=", "at most"), (">", "over"), ("<", "under")):
        part = part.replace(symbol, word)
    spelled = "".join(c if c.isalnum() or c in "_-. " else "-" for c in part)
    return spelled if spelled.strip(".") else "-" * len(spelled)


def parameters(folder: RunFolder) -> Iterator[tuple[str, str]]:
    """Yield (dotted name, value) of every option of a run."""
    from omegaconf import OmegaConf

    yield from folder.environment()["choices"].items()
    config: Any = OmegaConf.to_container(OmegaConf.load(folder.path / "config.yaml"))
    for name, value in config.items():
        if isinstance(value, dict):
            options = {key: option for key, option in value.items() if key != "_target_"}
            yield from ((f"{name}.{key}", str(option)) for key, option in options.items())
        else:
            yield name, str(value)


def sync(results: str = "results") -> int:
    """Log every finished run under `results` that is not logged yet."""
    folders = [RunFolder(path.parent) for path in Path(results).glob("runs/*/environment.json")]
    tracking = Tracking()
    try:
        logged = tracking.sync(folders)
    except TrackingError as error:
        print(f"not synchronised: {error}")
        return 1
    print(f"{len(logged)} runs of {results} are in MLflow at {tracking.address}")
    return 0


def ui(port: str = "5000") -> int:
    """Serve the UI on this machine alone, and say where the runs are."""
    tracking = Tracking()
    quiet()
    from mlflow.tracking import MlflowClient

    with exclusive(tracking.address):
        experiment = _experiment_id(MlflowClient(tracking.address), tracking.experiment)
    print(f"MLflow UI: http://127.0.0.1:{port}/#/experiments/{experiment}/runs (stop with Ctrl-C)")
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", port]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    try:
        return subprocess.call(
            [*command, "--workers", "1", "--backend-store-uri", tracking.address], env=environment
        )
    except KeyboardInterrupt:
        return 0


def main(arguments: list[str]) -> int:
    """Run ``sync [RESULTS]`` or ``ui [PORT]``."""
    commands = {"sync": sync, "ui": ui}
    name, *rest = arguments or ["sync"]
    if name not in commands or len(rest) > 1:
        print("usage: python -m fairbench.tracking sync [RESULTS] | ui [PORT]", file=sys.stderr)
        return 2
    return commands[name](*rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
