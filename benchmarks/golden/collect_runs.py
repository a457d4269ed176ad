"""Collecting what a tree makes of runs: their metrics, comparisons and trade-offs."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
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
    """Run the cases in the results folders they name; note each run's id by its case's name."""
    answers: Answers = {}
    ids: dict[str, str] = {}
    for case in cases:
        say(f"run {case.name}")
        results, pattern = folder / case.results, dialect.metrics
        before = set(results.glob(pattern))
        reply = ask(
            "run", (*case.words, *dialect.of_runs, *ALWAYS, f"results={case.results}"), folder
        )
        new = set(results.glob(pattern)) - before
        answers[case.name] = failed(reply) or _metrics(only(new))
        if new:
            ids[case.name] = only(new).parent.name
    (folder / _IDS).write_text(json.dumps(ids))
    return answers


_IDS = "ids.json"  # of the runs, by the names of their cases: ids change


def _metrics(path: Path) -> Any:
    table = pd.read_parquet(path)
    return metric_columns(table[without_seconds(table["metric"].tolist())])


def answer_tables(ask: Ask, dialect: Dialect, folder: Path, cases: Iterable[TableCase]) -> Answers:
    """Compare finished runs and trade them off: the table, and the numbers that are printed."""
    patterns = {"compare": dialect.comparison, "tradeoff": dialect.tradeoff}
    answers: Answers = {}
    ids = run_ids(folder)
    for case in cases:
        results = folder / case.results
        shutil.rmtree(results / "report", ignore_errors=True)
        reply = ask(case.task, (*with_ids(case.words, ids), f"results={case.results}"), folder)
        written = [
            columns(
                pd.read_csv(
                    io.StringIO(_named(path.read_text(), ids)),
                    float_precision="round_trip",
                    keep_default_na=False,
                )
            )
            for path in sorted(results.glob(patterns[case.task]))
        ]
        printed = numbers_in(_named(reply.printed, ids)) if case.task == "compare" else []
        answers[case.name] = failed(reply) or {"table": written, "printed": printed}
    return answers


def run_ids(folder: Path) -> dict[str, str]:
    """Return the ids of the runs that were made in a folder, by the names of their cases."""
    ids: dict[str, str] = json.loads((folder / _IDS).read_text())
    return ids


def with_ids(words: Iterable[str], ids: Mapping[str, str]) -> list[str]:
    """Return words of a command in which runs that are compared are called by their ids."""
    return [
        re.sub(r"\w+", lambda name: ids.get(name[0], name[0]), word)
        if word.startswith("compare=")
        else word
        for word in words
    ]


def _named(text: str, ids: Mapping[str, str]) -> str:
    """Return a text in which runs are called by their cases' names."""
    for name, run in ids.items():
        text = text.replace(run, name)
    return text
