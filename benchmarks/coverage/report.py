"""The report of the battery: a table for each family, ours beside what others print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import isnan

import numpy as np

from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.page import LOWEST
from benchmarks.coverage.simulate import BEFORE, LEVEL, OURS, Cell, Family

HEADER = (
    *("intervals", "settings", "failed", "lowest coverage", "mean coverage"),
    *("truth below", "truth above", "printed", "mean width", "width relative to ours"),
)
WORST, ENOUGH = 3, 80  # cells named; printed intervals from which on a cell's coverage is shown
_SHORT = "This is a short run: fewer settings, and a fifth of the replications."


def failures(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells of our own intervals that failed."""
    return [cell for cell in cells if cell.construction == OURS and cell.failed]


def sections(cells: Sequence[Cell], *, short: bool = False) -> dict[str, str]:
    """Return what the page says of each family that was simulated, under its title."""
    known = {family.name: family for family in FAMILIES}
    note = f"\n\n{_SHORT}" * short
    return {
        known[name].title: _section(known[name], list(of_family)) + note
        for name, of_family in groupby(cells, key=lambda cell: cell.family)
    }


def summary(cells: Sequence[Cell]) -> str:
    """Return a section for each family that was simulated."""
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in sections(cells).items())


def _section(family: Family, cells: Sequence[Cell]) -> str:
    populations = len({cell.population for cell in cells})
    many = "" if family.one_row_each else f" Simulated in {populations} settings."
    lines = [f"{family.sentence}{many}", ""]
    if family.one_row_each:
        return "\n".join([*lines, *_of_metrics(cells)])
    metrics = list(dict.fromkeys(cell.metric for cell in cells))
    for metric in metrics:
        of_metric = [cell for cell in cells if cell.metric == metric]
        if len(metrics) > 1:
            lines += [f"### {metric}", ""]
        lines += [*_table(of_metric), "", *_lowest(of_metric)]
    return "\n".join(lines).rstrip("\n")


def _table(cells: Sequence[Cell]) -> list[str]:
    names = list(dict.fromkeys(cell.construction for cell in cells))
    ours = {cell.population: cell for cell in cells if cell.construction == OURS}
    rows = [
        _row(name, [cell for cell in cells if cell.construction == name], ours) for name in names
    ]
    rule = ["---", *["--:"] * (len(HEADER) - 1)]
    return [f"| {' | '.join(row)} |" for row in (HEADER, rule, *rows)]


def _of_metrics(cells: Sequence[Cell]) -> list[str]:
    """Return a table with a row for each metric, and the coverage of each construction.

    Where there are several populations, coverage is over all of them, and the lowest of one stands
    beside it.
    """
    names = list(dict.fromkeys(cell.construction for cell in cells))
    several = len({cell.population for cell in cells}) > 1
    columns = [
        f"{name}: {what}"
        for name in names
        for what in ("coverage", *["lowest coverage"] * several, "printed")
    ]
    rows = [["metric", "rows", *columns], ["---", *["--:"] * (1 + len(columns))]]
    for metric in dict.fromkeys(cell.metric for cell in cells):
        mine = [cell for cell in cells if cell.metric == metric]
        of = [[cell for cell in mine if cell.construction == name] for name in names]
        trials = max(sum(cell.trials for cell in each) for each in of)
        texts = [text for each in of for text in _counted(each, several=several)]
        rows.append([metric, str(trials), *texts])
    return [f"| {' | '.join(row)} |" for row in rows]


def _counted(cells: Sequence[Cell], *, several: bool) -> Iterator[str]:
    """Yield coverage, with a mark where a cell failed, the lowest, and the share printed."""
    there = [cell for cell in cells if cell.printed]
    if not there:
        yield from ["-"] * (2 + several)
        return
    printed = sum(cell.printed for cell in there)
    missed = sum(cell.below + cell.above for cell in there)
    mark = " (failed)" if any(cell.failed for cell in there) else ""
    yield f"{100 * (1 - missed / printed):.1f} %{mark}"
    if several:
        lowest = min(_of_many(there), key=lambda cell: cell.coverage)
        yield f"{100 * lowest.coverage:.1f} %: {lowest.population}"
    yield f"{100 * printed / sum(cell.trials for cell in cells):.1f} %"


def _row(name: str, cells: Sequence[Cell], ours: dict[str, Cell]) -> list[str]:
    there = [cell for cell in cells if cell.printed]
    if not there:
        return [name, str(len(cells)), *["-"] * 6, *["-"] * 2]
    printed = sum(cell.printed for cell in there)
    failed = sum(cell.failed for cell in there)
    shared = [(cell, ours[cell.population]) for cell in there if cell.population in ours]
    shared = [(cell, our) for cell, our in shared if our.printed]
    mean = np.mean([cell.coverage for cell in there])
    relative = np.mean([cell.width for cell, _ in shared]) if shared else float("nan")
    relative /= np.mean([our.width for _, our in shared]) if shared else float("nan")
    return [
        name,
        str(len(cells)),
        f"{100 * failed / len(there):.1f} %" if failed else "0",
        f"{100 * min(cell.coverage for cell in _of_many(there)):.1f} %",
        f"{100 * mean:.1f} %",
        f"{100 * sum(cell.below for cell in there) / printed:.1f} %",
        f"{100 * sum(cell.above for cell in there) / printed:.1f} %",
        f"{100 * printed / sum(cell.trials for cell in cells):.1f} %",
        f"{np.mean([cell.width for cell in there]):.4g}",
        "-" if isnan(relative) else f"{relative:.2f}",
    ]


def _of_many(cells: Sequence[Cell]) -> Sequence[Cell]:
    """Return the cells with enough intervals to say how low their coverage is, or all if none."""
    return [cell for cell in cells if cell.printed >= ENOUGH] or cells


def _lowest(cells: Sequence[Cell]) -> list[str]:
    """Return lines on where our own intervals and those of the earlier default cover least."""
    lines = []
    for name in (OURS, BEFORE):
        result = [cell for cell in cells if cell.construction == name and cell.printed]
        lowest = sorted(_of_many(result), key=lambda cell: (cell.coverage, cell.population))[:WORST]
        if line := lowest_line(name, [(100 * cell.coverage, cell.population) for cell in lowest]):
            lines += [line, ""]
    return lines


def lowest_line(construction: str, lowest: Sequence[tuple[float, str]]) -> str:
    """Return a line that names those of some coverages, in percent, that lie under the level.

    Empty where none does. What counts is the figure that is printed.
    """
    percents = [(f"{percent:.1f}", population) for percent, population in lowest]
    under = [(text, name) for text, name in percents if float(text) < 100 * LEVEL]
    named = "; ".join(f"{text} % with {name}" for text, name in under)
    return f"{LOWEST[construction]} {named}." if named else ""
