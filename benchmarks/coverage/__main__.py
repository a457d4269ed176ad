"""Measure how often the printed intervals hold the truth: ``python -m benchmarks.coverage``.

Options are written name=value: ``short=true``, ``family=rates``, ``construction=ours``,
``write=FILE`` and ``seed=0``. Written are the families that were simulated: the page keeps what it
has of others. ``family=none`` simulates nothing, and makes the page's first tables anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.page import failures, sections, summary, write_sections
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
    construction: str = option("", "The only construction that is simulated, such as ours.")
    seed: int = option(0, "Of everything that is drawn.")
    write: Path | None = option(
        None, "The page whose sections are written; otherwise they are printed."
    )


def main(words: Sequence[str]) -> int:
    """Simulate what is asked for; return 1 if a cell of our own intervals failed."""
    try:
        options = read(Options, words)
        if options.write and options.construction:
            raise UserError("write= needs all constructions of a family: leave construction= out")
        cells = run(options)
        if options.write:
            write_sections(options.write, sections(cells, short=options.short))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.write:
        print(f"written: {options.write}")
    else:
        print(summary(cells))
    failed = failures(cells)
    for cell in failed:
        print(f"failed: {cell.metric}, {cell.population}: {100 * cell.coverage:.1f} %")
    return int(bool(failed))


def run(options: Options) -> list[Cell]:
    """Return the cells of every family that is asked for."""
    names = [family.name for family in FAMILIES] + [NOTHING]
    if options.family and options.family not in names:
        raise unknown_name("family", options.family, names)
    known = {construction.name for family in FAMILIES for construction in family.constructions}
    if options.construction and options.construction not in known:
        raise unknown_name("construction", options.construction, sorted(known))
    cells: list[Cell] = []
    for family in FAMILIES:
        if options.family in ("", family.name):
            print(f"{family.title} ...", file=sys.stderr, flush=True)
            cells += simulate(
                family,
                short=options.short,
                construction=options.construction,
                seed=options.seed,
            )
    return cells


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
