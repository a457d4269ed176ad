"""Listing the finished runs of a results folder, and showing where one comes from."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.table import Table

from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run

_WIDTH = 100
_SHOWN = ("dataset", "split", "learner", "intervention", "method", "protect", "seed")


def runs_lines(catalogue: Catalogue) -> list[str]:
    """Return a line for each run, of 100 characters at most, after what all have in common.

    Plain text: a rich table of 10,000 rows takes longer to lay out than the runs to find.
    """
    runs = sorted(catalogue, key=lambda run: (run.finished, run.id))
    chosen = [run.choices | {"protect": run.protect, "seed": str(run.seed)} for run in runs]
    telling = [key for key in _SHOWN if len({choices[key] for choices in chosen}) > 1]
    same = [f"{key}={chosen[0][key]}" for key in _SHOWN if key not in telling]
    rows = [("run", *telling, "finished")]
    rows += [
        (run.id, *(choices[key] for key in telling), f"{run.finished:%Y-%m-%d %H:%M}")
        for run, choices in zip(runs, chosen, strict=True)
    ]
    widths = _fitting([max(map(len, column)) for column in zip(*rows, strict=True)])
    return [*textwrap.wrap("  ".join(same), _WIDTH), *(_line(row, widths) for row in rows)]


def _fitting(widths: list[int]) -> list[int]:
    """Return widths of which the largest are cut until a line, two spaces between columns, fits."""
    while sum(widths) + 2 * (len(widths) - 1) > _WIDTH:
        widths[widths.index(max(widths))] -= 1
    return widths


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = zip(row, widths, strict=True)
    padded = ((cell if len(cell) <= n else f"{cell[: n - 1]}…").ljust(n) for cell, n in cells)
    return "  ".join(padded).rstrip()


def where_from(run: Run) -> Table:
    """Return what a run was made with: its machine, code, versions and data, as a table."""
    environment = run.environment
    dirty = " (with changes)" if environment.get("git_dirty") else ""
    versions = environment["versions"] | {"python": environment["python"]}
    rows = {
        "folder": str(run.path),
        "cells": str(len(run.cells())),
        "protects": run.protect,
        "seed": str(run.seed),
        "CPU": environment["cpu"],
        "commit": f"{environment.get('git_commit', 'unknown')}{dirty}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        **{f"sha256 of {name}": value for name, value in environment["data_sha256"].items()},
    }
    table = Table(show_header=False, title=run.name, title_justify="left")
    for name, value in rows.items():
        table.add_row(name, value)
    return table
