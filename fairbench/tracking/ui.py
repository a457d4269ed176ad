"""Serving MLflow's UI on this machine, with links to the runs and to the latest sweep compared."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from fairbench.core.deadline import Progress
from fairbench.core.formats import visible
from fairbench.tracking.database import TrackingError
from fairbench.tracking.importer import LoggedRun, Tracking, entries, experiment_id
from fairbench.tracking.run_entry import VIEW

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_HOST = "127.0.0.1"
_COMPARED = 50


def ui(port: str = "5000", results: str = "results") -> int:
    """Print where the runs are to be seen, and serve the UI unless a server does already."""
    tracking = Tracking()
    served = tracking.address.startswith("http")
    site = tracking.address if served else f"http://{_HOST}:{port}"
    if not (port.isdecimal() and int(port) < 2**16):
        print(f"error: '{port}' is no port", file=sys.stderr)
        return 2
    if not served and _taken(port):
        print(f"error: port {port} is in use; another one: fairbench ui port=5001", file=sys.stderr)
        return 2
    try:
        lines = links(tracking, site, Path(results))
    except TrackingError as error:
        print(f"error: {visible(str(error))}", file=sys.stderr)
        return 2
    print(*lines, sep="\n", flush=True)
    return 0 if served else _serve(tracking.address, port)


def links(tracking: Tracking, site: str, results: Path) -> list[str]:
    """Return lines with the addresses of the experiment and of the latest sweep's comparison.

    Raises
    ------
    TrackingError : MLflow is down, or does not get on.
    """
    sweep = latest_sweep(results)

    def found(client: MlflowClient, progress: Progress) -> tuple[str, dict[str, list[LoggedRun]]]:
        experiment = experiment_id(client, tracking.experiment)
        progress()
        return experiment, entries(client, experiment, sweep, progress)

    experiment, logged = tracking.ask(found)
    lines = [f"runs: {site}/#/experiments/{experiment}/runs?viewStateShareKey={VIEW}"]
    compared = [logged[run][0].id for run in sweep if run in logged]
    if len(compared) > 1:
        shown = min(len(compared), _COMPARED)
        address = comparison(site, compared[:shown], experiment)
        lines.append(f"the latest sweep, {shown} of {len(sweep)} runs compared: {address}")
    return lines


def comparison(site: str, runs: Sequence[str], experiment: str) -> str:
    """Return the address of the page that compares runs."""
    return f"{site}/#/compare-runs?runs={_encoded(runs)}&experiments={_encoded([experiment])}"


def _encoded(values: Sequence[str]) -> str:
    return quote(json.dumps(list(values), separators=(",", ":")))


def latest_sweep(results: Path) -> list[str]:
    """Return the ids of the distinct runs that the latest sweep finished, in its order."""
    for sweep in sorted((results / "sweeps").glob("*"), reverse=True):
        path = sweep / "outcomes.json"
        outcomes = json.loads(path.read_text()) if path.exists() else []
        runs = [each["run"] for each in outcomes if each["status"] == "finished"]
        if runs:
            return list(dict.fromkeys(runs))
    return []


def _taken(port: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_HOST, int(port))) == 0


def _serve(address: str, port: str) -> int:
    """Serve until interrupted."""
    print("stop with Ctrl-C", flush=True)
    command = [sys.executable, "-m", "mlflow", "server", "--host", _HOST, "--port", port]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    try:
        return subprocess.call(
            [*command, "--workers", "1", "--backend-store-uri", address], env=environment
        )
    except KeyboardInterrupt:
        return 0
