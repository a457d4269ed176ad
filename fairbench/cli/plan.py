"""What a run or a sweep would compute, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from fairbench.cli.outcome import Outcome
from fairbench.cli.say import console, say


def show_plan(outcomes: Sequence[Outcome]) -> None:
    """Print how many cells would be computed, each distinct cell counted once."""
    from rich.table import Table

    table = Table(title="plan", title_justify="left")
    for column in ("run", "cells", "in the store", "to compute", "estimated"):
        table.add_column(column, justify="left" if column == "run" else "right")
    seen: set[str] = set()
    total, unknown = 0.0, False
    for outcome in outcomes:
        if outcome.status == "skipped":
            table.add_row(outcome.name, "skipped", "", "", "")
            continue
        missing = {cell for cell, there in outcome.cells.items() if not there}
        new = missing - seen
        seen |= missing
        share = len(new) / len(missing) if missing else 0.0
        seconds = None if outcome.estimate is None else outcome.estimate * share
        total += seconds or 0.0
        unknown |= seconds is None and bool(new)
        guess = f"{seconds:.0f} s" if seconds is not None else "unknown" if new else "0 s"
        stored = len(outcome.cells) - len(missing)
        table.add_row(outcome.name, str(len(outcome.cells)), str(stored), str(len(new)), guess)
    console.print(table)
    cost = f"about {total:.0f} s on one core" if total or not unknown else ""
    more = "no earlier run tells what the others cost" if unknown else ""
    say("; ".join(filter(None, [f"{len(seen)} cells to compute", cost, more, "nothing was run"])))
