"""Serve MLflow's pages on this machine, with links to the runs."""

from __future__ import annotations

from dataclasses import dataclass

from fairbench.cli.command import Results, command
from fairbench.core.options import option


@dataclass(frozen=True)
class ServerOptions(Results):
    """Where the pages are served."""

    port: int = option(5000, "The port on 127.0.0.1.")


def serve(options: ServerOptions) -> int:
    """Print where the runs are to be seen, and serve them until interrupted.

    Examples
    --------
    fairbench ui
    fairbench ui port=5001
    """
    from fairbench.tracking.importer import ui

    return ui(str(options.port), str(options.results))


COMMAND = command(serve, holds=False)
