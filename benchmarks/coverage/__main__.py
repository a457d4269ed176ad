"""Measure how often the printed intervals hold the truth: ``python -m benchmarks.coverage``.

Options are written name=value: ``short=true``, ``family=rates``, ``construction=ours``,
``write=FILE`` and ``seed=0``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.coverage.families import FAMILIES
from benchmarks.coverage.report import failures, summary, written
from benchmarks.coverage.simulate import Cell, simulate
from fairbench.cli.options import read
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import option


@dataclass(frozen=True)
class Options:
    """What ``python -m benchmarks.coverage`` takes."""

    short: bool = option(False, "Fewer populations and replications: about two minutes.")
    family: str = option("", "The only family of intervals that is simulated.")
    construction: str = option("", "The only construction that is simulated, such as ours.")
    seed: int = option(0, "Of everything that is drawn.")
    write: Path | None = option(None, "Where the report is written; otherwise it is printed.")


def main(words: Sequence[str]) -> int:
    """Simulate what is asked for; return 1 if a cell of our own intervals failed."""
    try:
        options = read(Options, words)
        cells = run(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.write:
        options.write.write_text(written(cells, short=options.short), encoding="utf-8")
        print(f"written: {options.write}")
    else:
        print(summary(cells))
    failed = failures(cells)
    for cell in failed:
        print(f"failed: {cell.metric}, {cell.population}: {100 * cell.coverage:.1f} %")
    return int(bool(failed))


def run(options: Options) -> list[Cell]:
    """Return the cells of every family that is asked for."""
    names = [family.name for family in FAMILIES]
    if options.family and options.family not in names:
        raise unknown_name("family", options.family, names)
    known = {each.name for family in FAMILIES for each in family.constructions}
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
