"""Measure how often the printed intervals hold the truth: ``python -m benchmarks.coverage``.

Options are written name=value: ``short=true``, ``family=rates``, ``write=PAGE``
and ``workers=2``. Results do not depend on the number of workers. Each
family is written when it has been simulated, so that a kill loses no other: it replaces its rows of
the CSV file beside the page, and the page's tables are made of all rows that are there.
``family=none`` simulates nothing, and makes them anew.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.page import failures, rows_of
from benchmarks.coverage.page import write as write_rows
from benchmarks.coverage.simulate import Cell, simulate
from benchmarks.measure import command
from fairbench.core.errors import UserError, unknown_name

NOTHING = "none"


def main(
    short: bool = False, family: str = "", workers: int = 1, write: Path | None = None
) -> bool:
    """Simulate what is asked for; say whether no cell of our own intervals failed.

    Parameters
    ----------
    short : fewer populations and replications: about two minutes.
    family : the only family of intervals that is simulated; none for nothing.
    workers : how many families are simulated at the same time.
    write : the page that is written; otherwise rows are printed.
    """
    if write and short:
        raise UserError("write= needs whole families: leave short= out")
    names = [each.name for each in FAMILIES]
    if family and family not in [*names, NOTHING]:
        raise unknown_name("family", family, [*names, NOTHING])
    asked = [place for place, name in enumerate(names) if family in ("", name)]
    found: dict[int, list[Cell]] = {}
    with ProcessPoolExecutor(workers) as pool:
        begun = {pool.submit(_simulated, place, short): place for place in asked}
        for done in as_completed(begun):
            place = begun[done]
            found[place] = done.result()
            if write:
                write_rows(write, rows_of(found[place]))
            print(f"{names[place]}: done", file=sys.stderr, flush=True)
    cells = [cell for place in asked for cell in found[place]]
    if not write:
        print(rows_of(cells).drop(columns="next_lowest").to_string(index=False))
    elif not asked:
        write_rows(write, rows_of([]))
    failed = failures(cells)
    for cell in failed:
        print(f"failed: {cell.metric}, {cell.population}: {100 * cell.coverage:.1f} %")
    return not failed


def _simulated(place: int, short: bool) -> list[Cell]:
    """Return the cells of the family at a place of `FAMILIES`."""
    return list(simulate(FAMILIES[place], short=short))


if __name__ == "__main__":
    sys.exit(command(main, sys.argv[1:]))
