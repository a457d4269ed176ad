"""Log the finished runs that MLflow does not have yet."""

from __future__ import annotations

from fairbench.cli.command import Command, Results


def log_runs(options: Results) -> int:
    """Log every finished run that is not logged yet, each once."""
    from fairbench.tracking.importer import sync

    return sync(str(options.results))


COMMAND = Command(Results, log_runs, examples=("fairbench sync", "fairbench sync results=old"))
