"""The end of a sweep: what became of its jobs, and the command that runs the failed ones again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from rich.console import Console
from rich.markup import escape

from fairbench.cli.log_runs import log_runs
from fairbench.cli.outcome import OUTCOME, Outcome
from fairbench.cli.plan import show_plan
from fairbench.cli.rerun import commands
from fairbench.cli.say import say

FAILED = 1  # the exit status


class SweepSummary(Callback):
    """Hydra's hook at the end of a sweep: print the summary, log to MLflow in one process."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Sum up; exit with 1 if a job failed, or none left an outcome."""
        folder = Path(config.hydra.sweep.dir)
        jobs = sorted((p.parent for p in folder.glob(f"*/{OUTCOME}")), key=lambda p: int(p.name))
        outcomes = [outcome for job in jobs if (outcome := Outcome.read(job))]
        status = sum_up(outcomes, config)
        if status:
            raise SystemExit(status)


def sum_up(outcomes: Sequence[Outcome], config: DictConfig) -> int:
    """Print what became of a sweep's jobs, log its runs to MLflow, and return the exit status."""
    planned = [o for o in outcomes if o.status == "planned"]
    failed = [o for o in outcomes if o.status == "failed"]
    skipped = [o for o in outcomes if o.status == "skipped"]
    finished = [o for o in outcomes if o.status == "finished"]
    if planned:
        show_plan([*planned, *skipped])
    for outcome in skipped:
        say(outcome.line)
    if not planned:
        runs = Path(config.results) / "runs"
        where = log_runs([runs / o.run_id for o in finished], config.tracking) if finished else ""
        fitted = sum(o.computed for o in finished)
        cells = len({cell for o in finished for cell in o.cells})
        counts = f"{len(finished)} runs finished, {len(skipped)} skipped, {len(failed)} failed"
        files = f"files: {runs}" if finished else ""
        say("; ".join(filter(None, [counts, f"fitted {fitted} of {cells} cells", files, where])))
    if failed:
        _show_failures(failed, outcomes, config)
    return FAILED if failed or not outcomes else 0


def _show_failures(
    failed: Sequence[Outcome], outcomes: Sequence[Outcome], config: DictConfig
) -> None:
    """Print which jobs failed, by what sets them apart, why, and how to run them again."""
    from rich import box
    from rich.table import Table

    table = Table(title="failed", title_justify="left", box=box.SIMPLE)
    table.add_column("job")
    table.add_column("reason", overflow="fold")
    shared = set.intersection(*(set(outcome.overrides) for outcome in outcomes))
    for outcome in failed:
        own = [word for word in outcome.overrides if word not in shared]
        table.add_row(escape(" ".join(own) or outcome.name), escape(outcome.message))
    # Not wrapped where nobody reads it on a screen.
    Console(width=None if sys.stdout.isatty() else 10_000).print(table, highlight=False)
    hydra = [word for word in config.hydra.overrides.hydra if not word.startswith("hydra.mode=")]
    say("what failed is run again, and nothing else, by:")
    for command in commands([o.overrides for o in failed], script=sys.argv[0], hydra=hydra):
        say(f"  {command}")
