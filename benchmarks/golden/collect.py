"""Collecting a tree's answers: plain columns, lists, texts and numbers, each with a name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.golden.asking import Ask, Evaluate
from benchmarks.golden.cases.arrays import ArrayCase
from benchmarks.golden.cases.audits import AuditCase, tables
from benchmarks.golden.cases.refusals import RefusalCase
from benchmarks.golden.collect_runs import answer_runs, answer_tables, run_ids, with_ids
from benchmarks.golden.dialect import Dialect
from benchmarks.golden.replies import FAILED, Answers, failed, metric_columns, numbers_in, only
from benchmarks.golden.selection import Selection


def collect(
    ask: Ask,
    evaluate: Evaluate,
    dialect: Dialect,
    folder: Path,
    selection: Selection,
    say: Callable[[str], None],
) -> Answers:
    """Ask a tree all cases of a selection, in a folder of its own; return its answers by kind."""
    runs = answer_runs(ask, dialect, folder, selection.runs, say)
    say("tables, arrays, audits and refusals")
    return {
        "runs": runs,
        "tables": answer_tables(ask, dialect, folder, selection.tables),
        "arrays": answer_arrays(evaluate, dialect, folder, selection.arrays),
        "audits": answer_audits(ask, dialect, folder, selection.audits),
        "refusals": answer_refusals(ask, folder, selection.refusals),
    }


def failures(answers: Answers) -> list[str]:
    """Return a sentence for every command that failed though it should not have."""
    return [
        f"{kind}, {name} failed with exit status {answer[FAILED]}: {' '.join(answer['because'])}"
        for kind, of_kind in answers.items()
        for name, answer in of_kind.items()
        if FAILED in answer
    ]


def answer_audits(ask: Ask, dialect: Dialect, folder: Path, cases: Iterable[AuditCase]) -> Answers:
    """Audit the tables: the record, and of labelling the numbers that are printed as well."""
    answers: Answers = {}
    for case in cases:
        place = folder / "audits" / case.name
        write_tables(place)
        replies = [ask(step.task, step.words, place) for step in case.steps]
        failure = next(filter(None, map(failed, replies)), None)
        printed = [numbers_in(reply.printed) for reply in replies[:-1]]
        answers[case.name] = failure or {
            "record": _record(only((place / "out").glob(dialect.record))),
            "printed": printed,
        }
    return answers


def _record(path: Path) -> Any:
    """Return the record of an audit, its metrics as the columns of their table."""
    record = json.loads(path.read_text())
    if "metrics" in record:
        record["metrics"] = metric_columns(pd.DataFrame(record["metrics"]))
    return record


def answer_refusals(ask: Ask, folder: Path, cases: Iterable[RefusalCase]) -> Answers:
    """Ask what is to be refused: the exit status, the causes left out, and any traceback."""
    answers: Answers = {}
    write_tables(folder)
    ids = run_ids(folder)
    for case in cases:
        reply = ask(case.task, with_ids(case.words, ids), folder)
        missing = [word for word in case.cause if word not in reply.errors]
        traceback = "Traceback" in reply.printed + reply.errors
        answers[case.name] = {"status": reply.status, "missing": missing, "traceback": traceback}
    return answers


def answer_arrays(
    evaluate: Evaluate, dialect: Dialect, folder: Path, cases: Sequence[ArrayCase]
) -> Answers:
    """Evaluate the arrays; of a refusal the causes that it leaves out are kept."""
    renamed = dict(dialect.arguments)
    questions = [
        {
            "arguments": {renamed.get(name, name): value for name, value in case.arguments.items()},
            "evaluator": {**case.evaluator, **dict(dialect.evaluator)},
        }
        for case in cases
    ]
    answers = evaluate(questions, folder)
    return {case.name: _unworded(case, answer) for case, answer in zip(cases, answers, strict=True)}


def _unworded(case: ArrayCase, answer: Any) -> Any:
    if isinstance(answer, pd.DataFrame):
        return metric_columns(answer)
    return {"refused": True, "missing": [w for w in case.cause if w not in answer]}


def write_tables(folder: Path) -> None:
    """Write the tables to be audited into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables().items():
        table.to_csv(folder / name, index=False)
