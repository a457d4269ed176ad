"""Log the finished runs that MLflow does not have yet."""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Results, command
from fairbench.core.options import option


@dataclass(frozen=True)
class _SyncOptions(Results):
    """Where runs are logged.

    Attributes
    ----------
    uri : MLflow's server or database; else MLFLOW_TRACKING_URI, or mlflow.db.
    experiment : The experiment in MLflow.
    """

    uri: str = option("")
    experiment: str = option("fairbench")


def _log_runs(options: _SyncOptions) -> int:
    """Log every finished run that is not logged yet, each once.

    Examples
    --------
    fairbench sync
    fairbench sync results=old uri=http://server:5000
    """
    from fairbench.tracking.importer import sync

    return sync(str(options.results), options.uri, options.experiment)


COMMAND = command(_log_runs)


@dataclass(frozen=True)
class _ServerOptions(Results):
    """Where the pages are served.

    Attributes
    ----------
    port : The port on 127.0.0.1.
    """

    port: int = option(5000)


def _serve(options: _ServerOptions) -> int:
    """Print where the runs are to be seen, and serve them until interrupted.

    Examples
    --------
    fairbench ui
    fairbench ui port=5001
    """
    from fairbench.tracking.importer import ui

    return ui(str(options.port), str(options.results))


class ui:
    """Serve MLflow's pages on this machine, with links to the runs."""

    COMMAND = command(_serve, holds=False)
