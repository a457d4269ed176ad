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
from fairbench.experiments.configuration import IDENTITY
from fairbench.results.sweeps import Sweep, read_sweeps
from fairbench.tracking.database import TrackingError
from fairbench.tracking.importer import LoggedRun, Tracking, entries, experiment_id, set_view
from fairbench.tracking.run_entry import sweep_mark
from fairbench.tracking.views import SWEEP_VIEW, VIEW, view, view_address, view_tag

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
    if not served and _is_taken(port):
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
        """Set the columns of the page of runs; return the experiment and its logged runs."""
        experiment = experiment_id(client, tracking.experiment)
        progress()
        view_columns = set_view(client, experiment)
        if sweep.name:
            client.set_experiment_tag(
                experiment, view_tag(SWEEP_VIEW), view(view_columns, sweep.name)
            )
        progress()
        return experiment, entries(client, experiment, sweep.runs, progress)

    experiment, logged = tracking.ask(found)
    runs = f"{site}/#/experiments/{experiment}/runs?"
    lines = [f"runs: {runs}{view_address(VIEW)}"]
    entries_of_sweep = [logged[run][0] for run in sweep.runs if run in logged]
    if len(entries_of_sweep) > 1:
        shown = min(len(entries_of_sweep), _COMPARED)
        address = comparison(site, [entry.id for entry in entries_of_sweep[:shown]], experiment)
        lines.append(f"the latest sweep, {shown} of {len(sweep.runs)} runs compared: {address}")
        if sweep.name and all(sweep_mark(sweep.name) in entry.sweeps for entry in entries_of_sweep):
            lines.append(
                f"the latest sweep in charts: {runs}{view_address(SWEEP_VIEW, charts=True)}"
            )
    return lines


def comparison(site: str, runs: Sequence[str], experiment: str) -> str:
    """Return the address of the page that compares runs."""
    return f"{site}/#/compare-runs?runs={_encoded(runs)}&experiments={_encoded([experiment])}"


def _encoded(values: Sequence[str]) -> str:
    return quote(json.dumps(list(values), separators=(",", ":")))


def latest_sweep(results: Path) -> Sweep:
    """Return the latest sweep that finished any run; one without a name or a run if none did."""
    return next(reversed(read_sweeps(results, IDENTITY)), Sweep("", ()))


def _is_taken(port: str) -> bool:
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
