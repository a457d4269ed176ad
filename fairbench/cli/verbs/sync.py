"""Log the finished runs that MLflow does not have yet."""

from __future__ import annotations

from pathlib import Path

from fairbench.cli.command import RESULTS, command
from fairbench.core.options import option


def _log_runs(
    results: Path = RESULTS, uri: str = option(""), experiment: str = option("fairbench")
) -> int:
    """Log every finished run that is not logged yet, each once.

    Parameters
    ----------
    uri : MLflow's server or database; else MLFLOW_TRACKING_URI, or mlflow.db.
    experiment : The experiment in MLflow.

    Examples
    --------
    fairbench sync
    fairbench sync results=old uri=http://server:5000
    """
    from fairbench.tracking.importer import sync

    return sync(str(results), uri, experiment)


COMMAND = command(_log_runs)


def _serve(results: Path = RESULTS, port: int = option(5000)) -> int:
    """Print where the runs are to be seen, and serve them until interrupted.

    Parameters
    ----------
    port : The port on 127.0.0.1.

    Examples
    --------
    fairbench ui
    fairbench ui port=5001
    """
    from fairbench.tracking.importer import ui

    return ui(str(port), str(results))


class ui:
    """Serve MLflow's pages on this machine, with links to the runs."""

    COMMAND = command(_serve, holds=False)
