"""Collecting what a tree makes of runs: their metrics, comparisons and trade-offs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.golden.asking import Ask
from benchmarks.golden.cases.runs import RunCase
from benchmarks.golden.cases.tables import TableCase
from benchmarks.golden.dialect import Dialect
from benchmarks.golden.renames import without_seconds
from benchmarks.golden.replies import Answers, columns, failed, metric_columns, numbers_in, only

ALWAYS = ("tracking=none", "figures=false", "data.download=false")


def answer_runs(
    ask: Ask, dialect: Dialect, folder: Path, cases: Iterable[RunCase], say: Callable[[str], None]
) -> Answers:
    """Run the cases in the results folders they name; each run's folder gets its case's name."""
    answers: Answers = {}
    for case in cases:
        say(f"run {case.name}")
        results, pattern = folder / case.results, dialect.metrics
        before = set(results.glob(pattern))
        reply = ask(
            "run", (*case.words, *dialect.of_runs, *ALWAYS, f"results={case.results}"), folder
        )
        new = set(results.glob(pattern)) - before
        answers[case.name] = failed(reply) or _metrics(only(new).parent, case.name)
    return answers


def _metrics(run: Path, name: str) -> Any:
    """Call a run by its case's name from now on, as ids change; return its metrics."""
    named = run.rename(run.parent / name)
    table = pd.read_parquet(named / "metrics.parquet")
    return metric_columns(table[without_seconds(table["metric"].tolist())])


def answer_tables(ask: Ask, dialect: Dialect, folder: Path, cases: Iterable[TableCase]) -> Answers:
    """Compare finished runs and trade them off: the table, and the numbers that are printed."""
    patterns = {"compare": dialect.comparison, "tradeoff": dialect.tradeoff}
    answers: Answers = {}
    for case in cases:
        results = folder / case.results
        shutil.rmtree(results / "report", ignore_errors=True)
        reply = ask(case.task, (*case.words, f"results={case.results}"), folder)
        written = [
            columns(pd.read_csv(path, float_precision="round_trip", keep_default_na=False))
            for path in sorted(results.glob(patterns[case.task]))
        ]
        printed = numbers_in(reply.printed) if case.task == "compare" else []
        answers[case.name] = failed(reply) or {"table": written, "printed": printed}
    return answers
