"""Logging finished runs to MLflow from the command line; a server that is down costs a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from fairbench.cli.say import say


def log_runs(folders: Sequence[Path], config: DictConfig) -> str:
    """Log finished runs and say where; a server that is down costs a line, not the run."""
    from fairbench.results.runs import RunFolder
    from fairbench.tracking.importer import Tracking, TrackingError

    tracking = Tracking(config.enabled, config.uri, config.experiment)
    if not tracking.enabled:
        return "not logged to MLflow (tracking=none)"
    try:
        logged = tracking.sync([RunFolder(path) for path in folders])
    except TrackingError as error:
        say(f"warning: not logged: {error}; `make sync` logs it later")
        return "MLflow: not logged"
    runs = list(logged.values())
    return (
        f"MLflow: {tracking.address}, {'run ' + runs[0] if len(runs) == 1 else f'{len(runs)} runs'}"
    )
