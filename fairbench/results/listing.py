"""Listing the finished runs of a results folder, and showing one."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from fairbench.core.errors import UserError, unknown_name
from fairbench.results.options import with_options
from fairbench.results.runs import RunFolder

KEYS = ("dataset", "split", "learner", "intervention", "method", "evaluator", "protect", "seed")
_WIDTH = 100
_SHOWN = ("dataset", "split", "learner", "intervention", "method", "protect", "seed")


@dataclass(frozen=True)
class Listed:
    """A finished run in a list: its id, what was chosen, and when it was finished."""

    id: str
    choices: Mapping[str, str]
    finished: datetime


def list_runs(results: Path, words: Sequence[str] = ()) -> list[Listed]:
    """Return the finished runs that `words` describe, the oldest first.

    Parameters
    ----------
    words : ``key=value`` or ``key=value,value`` for any of `KEYS` and for any option of a run's
        configuration (``learner.max_depth=6``), and beginnings of ids; a run has to match every
        key, and one of the ids.

    Raises
    ------
    UserError : a key or an option that runs do not have.
    """
    wanted, prefixes = _wanted(words)
    found = (_listed(path) for path in (results / "runs").glob("*/environment.json"))
    chosen = {key: values for key, values in wanted.items() if "." not in key}
    runs = [run for run in found if run and _matches(run, chosen, prefixes)]
    options = {key: values for key, values in wanted.items() if "." in key}
    kept = with_options([results / "runs" / run.id for run in runs], options)
    kept_ids = {path.name for path in kept}
    return sorted(
        (run for run in runs if run.id in kept_ids), key=lambda run: (run.finished, run.id)
    )


def _wanted(words: Sequence[str]) -> tuple[dict[str, set[str]], tuple[str, ...]]:
    pairs = [word.partition("=") for word in words if "=" in word]
    for key, _, _ in pairs:
        if key not in KEYS and "." not in key:
            raise unknown_name("key", key, KEYS)
    wanted = {key: set(values.split(",")) for key, _, values in pairs}
    return wanted, tuple(word for word in words if "=" not in word)


def _listed(path: Path) -> Listed | None:
    environment = RunFolder(path.parent).environment()
    if "choices" not in environment:
        return None
    choices = environment["choices"] | {
        "protect": environment["protect"].replace(" ", ""),
        "seed": str(environment["seed"]),
    }
    return Listed(path.parent.name, choices, datetime.fromtimestamp(path.stat().st_mtime))


def _matches(run: Listed, wanted: Mapping[str, set[str]], prefixes: tuple[str, ...]) -> bool:
    if prefixes and not run.id.startswith(prefixes):
        return False
    return all(run.choices.get(key) in values for key, values in wanted.items())


def runs_lines(runs: Sequence[Listed]) -> list[str]:
    """Return a line for each run, of 100 characters at most, after what all have in common.

    Plain text: a rich table of 10,000 rows takes longer to lay out than the runs to find.
    """
    telling = [key for key in _SHOWN if len({run.choices.get(key) for run in runs}) > 1]
    same = [f"{key}={runs[0].choices[key]}" for key in _SHOWN if key not in telling]
    rows = [("run", *telling, "finished")]
    rows += [
        (run.id, *(run.choices[key] for key in telling), f"{run.finished:%Y-%m-%d %H:%M}")
        for run in runs
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


def where_from(folder: RunFolder, environment: Mapping[str, Any]) -> Table:
    """Return what a run was made with: its machine, code, versions and data, as a table."""
    dirty = " (with changes)" if environment.get("git_dirty") else ""
    versions = environment["versions"] | {"python": environment["python"]}
    rows = {
        "folder": str(folder.path),
        "cells": str(len(folder.cells())),
        "protects": environment["protect"],
        "seed": str(environment["seed"]),
        "CPU": environment["cpu"],
        "commit": f"{environment.get('git_commit', 'unknown')}{dirty}",
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        **{f"sha256 of {name}": value for name, value in environment["data_sha256"].items()},
    }
    table = Table(show_header=False, title=environment["name"], title_justify="left")
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def one_run(word: str, results: Path) -> RunFolder:
    """Return the finished run whose id begins with `word`.

    Raises
    ------
    UserError : there is none, or several.
    """
    folders = (path.parent for path in (results / "runs").glob("*/environment.json"))
    found = sorted(folder for folder in folders if folder.name.startswith(word))
    if len(found) != 1:
        several = f": {', '.join(path.name for path in found[:5])}" if found else ""
        raise UserError(
            f"{len(found)} finished runs of {results / 'runs'} begin with '{word}'{several}; "
            "fairbench store ls lists them"
        )
    return RunFolder(found[0])
