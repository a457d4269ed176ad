"""Audit populations of which the truth is known: ``python -m benchmarks.statements``.

Options are written name=value: ``kind=pair``, ``only=alike``, ``replications=100``, ``short=true``,
``write=PAGE`` and ``workers=2``. Results do not depend on the number of workers. Each
population is written when it has been audited: it replaces its row of the CSV file beside the page,
and the page's tables are made of all rows that are there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from benchmarks.statements.kinds import KINDS, populations
from benchmarks.statements.page import line, rows_of, write
from benchmarks.statements.simulate import Population, Result, simulate
from fairbench.cli.command import read
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import option


@dataclass(frozen=True)
class Options:
    """What ``python -m benchmarks.statements`` takes."""

    short: bool = option(False, "Fewer populations and audits: a minute.")
    kind: str = option("", "The only kind of audit.")
    only: str = option("", "Only populations whose name contains this.")
    replications: int = option(
        0, "Audits of each population, if not as many as it takes to be sure.", least=0
    )
    workers: int = option(1, "How many populations are audited at the same time.", least=1)
    write: Path | None = option(None, "The page that is written; otherwise rows are printed.")


def main(words: Sequence[str]) -> int:
    """Audit what is asked for; return 1 if pages are surely wrong too often, or amiss."""
    try:
        options = read(Options, words)
        if options.write and (options.short or options.replications):
            raise UserError("write= needs whole audits: leave short= and replications= out")
        results = run(options)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.write:
        print(f"written: {options.write}")
    else:
        print(rows_of(results).to_string(index=False))
    for result in results:
        for said in result.amiss[:3]:
            print(f"amiss: {result.kind}, {result.name}: {said}")
        if result.failed:
            print(f"failed: {result.kind}, {result.name}: {100 * result.share:.1f} % of pages")
    return int(any(result.failed or result.amiss for result in results))


def run(options: Options) -> list[Result]:
    """Return the results of every population that is asked for."""
    if options.kind and options.kind not in KINDS:
        raise unknown_name("kind", options.kind, list(KINDS))
    asked = [
        place
        for place, population in enumerate(_populations(options.kind))
        if (population.short or not options.short) and options.only in population.name
    ]
    results = []
    with ProcessPoolExecutor(options.workers) as pool:
        for result in pool.map(partial(_result, options), asked):
            results.append(result)
            if options.write:
                write(options.write, [result])
            print(line(result), file=sys.stderr, flush=True)
    return results


@cache
def _populations(kind: str) -> Sequence[Population]:
    return tuple(populations(kind))


def _result(options: Options, place: int) -> Result:
    return simulate(
        _populations(options.kind)[place],
        replications=options.replications,
        short=options.short,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
