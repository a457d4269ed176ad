"""Which cases are asked: all of them, or those whose answers are committed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.golden.cases.arrays import ARRAYS, ArrayCase
from benchmarks.golden.cases.audits import AUDITS, AuditCase
from benchmarks.golden.cases.refusals import REFUSALS, RefusalCase
from benchmarks.golden.cases.runs import RUNS, RunCase
from benchmarks.golden.cases.tables import COMMITTED_TRADEOFF, TABLES, TableCase


@dataclass(frozen=True)
class Selection:
    """The cases that a tree is asked, kind by kind."""

    runs: tuple[RunCase, ...]
    tables: tuple[TableCase, ...]
    arrays: tuple[ArrayCase, ...]
    audits: tuple[AuditCase, ...]
    refusals: tuple[RefusalCase, ...]

    def at_hand(self, raw: Path, say: Callable[[str], None]) -> Selection:
        """Return the cases whose raw files are in a folder; the others are said to be left out."""
        there = {name for name in self.raw_files if (raw / name).is_file()}
        if missing := sorted(self.raw_files - there):
            say(f"left out, as not found in {raw}: the cases of {', '.join(missing)}")
        runs = tuple(case for case in self.runs if case.raw in there | {""})
        tables = tuple(case for case in self.tables if case.raw in there | {""})
        return Selection(runs, tables, self.arrays, self.audits, self.refusals)

    @property
    def raw_files(self) -> set[str]:
        """The raw data files that the cases need."""
        runs, tables = ({case.raw for case in cases} for cases in (self.runs, self.tables))
        return (runs | tables) - {""}


ALL = Selection(RUNS, TABLES, ARRAYS, AUDITS, REFUSALS)


def committed() -> Selection:
    """Return the cases that are quick and give ten equal digits on every machine."""
    runs = tuple(case for case in RUNS if case.committed)
    names = {case.name for case in runs}
    tables = tuple(case for case in TABLES if case.runs and set(case.runs) <= names)
    return Selection(
        runs,
        (*tables, COMMITTED_TRADEOFF),
        ARRAYS,
        tuple(case for case in AUDITS if case.committed),
        # What a run is refused for has tests of its own, a process each.
        tuple(case for case in REFUSALS if case.task != "run"),
    )


COMMITTED = committed()
