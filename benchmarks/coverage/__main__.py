"""Measure how often the printed intervals hold the truth: ``python -m benchmarks.coverage``.

Options are written name=value: ``short=true``, ``family=rates``, ``write=PAGE``
and ``workers=2``. Results do not depend on the number of workers. Each
family is written when it has been simulated, so that a kill loses no other: it replaces its rows of
the CSV file beside the page, and the page's tables are made of all rows that are there.
``family=none`` simulates nothing, and makes them anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.page import failures, rows_of, write
from benchmarks.coverage.simulate import Cell, simulate
from fairbench.cli.command import read
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import option

NOTHING = "none"


@dataclass(frozen=True)
class Options:
    """What ``python -m benchmarks.coverage`` takes."""

    short: bool = option(False, "Fewer populations and replications: about two minutes.")
    family: str = option("", "The only family of intervals that is simulated; none for nothing.")
    workers: int = option(1, "How many families are simulated at the same time.", least=1)
    write: Path | None = option(None, "The page that is written; otherwise rows are printed.")


def main(words: Sequence[str]) -> int:
    """Simulate what is asked for; return 1 if a cell of our own intervals failed."""
    try:
        options = read(Options, words)
        if options.write and options.short:
            raise UserError("write= needs whole families: leave short= out")
        cells = run(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.write:
        print(f"written: {options.write}")
    else:
        print(rows_of(cells).drop(columns="next_lowest").to_string(index=False))
    failed = failures(cells)
    for cell in failed:
        print(f"failed: {cell.metric}, {cell.population}: {100 * cell.coverage:.1f} %")
    return int(bool(failed))


def run(options: Options) -> list[Cell]:
    """Return the cells of every family that is asked for."""
    names = [family.name for family in FAMILIES]
    if options.family and options.family not in [*names, NOTHING]:
        raise unknown_name("family", options.family, [*names, NOTHING])
    asked = [place for place, name in enumerate(names) if options.family in ("", name)]
    found: dict[int, list[Cell]] = {}
    with ProcessPoolExecutor(options.workers) as pool:
        begun = {pool.submit(_simulated, options, place): place for place in asked}
        for done in as_completed(begun):
            place = begun[done]
            found[place] = done.result()
            if options.write:
                write(options.write, rows_of(found[place]))
            print(f"{FAMILIES[place].title}: done", file=sys.stderr, flush=True)
    if options.write and not asked:
        write(options.write, rows_of([]))
    return [cell for place in asked for cell in found[place]]


def _simulated(options: Options, place: int) -> list[Cell]:
    """Return the cells of the family at a place of `FAMILIES`."""
    return list(simulate(FAMILIES[place], short=options.short))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
