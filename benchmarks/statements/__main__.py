"""Audit populations of which the truth is known: ``python -m benchmarks.statements``.

Options are written name=value: ``only=pair``, ``replications=100``, ``short=true``,
``write=PAGE`` and ``workers=2``. Results do not depend on the number of workers. Each
population is written when it has been audited: it replaces its row of the CSV file beside the page,
and the page's tables are made of all rows that are there.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.measure import command
from benchmarks.statements.kinds import populations
from benchmarks.statements.page import rows_of
from benchmarks.statements.page import write as write_rows
from benchmarks.statements.simulate import Result, simulate
from fairbench.core.errors import UserError


def main(
    short: bool = False,
    only: str = "",
    replications: int = 0,
    workers: int = 1,
    write: Path | None = None,
) -> bool:
    """Audit what is asked for; say whether no pages are surely wrong too often, or amiss.

    Parameters
    ----------
    short : fewer populations and audits: a minute.
    only : only populations whose kind of audit, or name, contains this.
    replications : audits of each population, if not as many as it takes to be sure.
    workers : how many populations are audited at the same time.
    write : the page that is written; otherwise rows are printed.
    """
    if write and (short or replications):
        raise UserError("write= needs whole audits: leave short= and replications= out")
    asked = [
        place
        for place, population in enumerate(populations())
        if (population.short or not short) and only in f"{population.kind}, {population.name}"
    ]
    results = []
    audits = partial(_result, replications=replications, short=short)
    with ProcessPoolExecutor(workers) as pool:
        for result in pool.map(audits, asked):
            results.append(result)
            if write:
                write_rows(write, [result])
            print(f"{result.kind}, {result.name}: done", file=sys.stderr, flush=True)
    if not write:
        print(rows_of(results).to_string(index=False))
    for result in results:
        for said in result.amiss[:3]:
            print(f"amiss: {result.kind}, {result.name}: {said}")
        if result.failed:
            print(f"failed: {result.kind}, {result.name}: {100 * result.share:.1f} % of pages")
    return not any(result.failed or result.amiss for result in results)


def _result(place: int, *, replications: int, short: bool) -> Result:
    """Return what comes of the audits of the population at a place among all."""
    return simulate(populations()[place], replications=replications, short=short)


if __name__ == "__main__":
    sys.exit(command(main, sys.argv[1:]))
