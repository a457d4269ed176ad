"""Asking a tree all cases, and its answers as plain columns, lists, texts and numbers."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.golden import cases as asked
from benchmarks.golden.frozen import Ask, Evaluate, GoldenError, Reply
from fairbench.evaluation.table import COSTS, SETTINGS, setting_text
from fairbench.results.runs import LAST, Run

# The answers of a tree: kind -> case -> answer.
Answers = dict[str, Any]
Say = Callable[[str], None]
FAILED = "failed"
_NUMBER = re.compile(r"(?<![\w.])[<>]?-?\d+(?:\.\d+)?%?")


def numbers_in(printed: str) -> list[str]:
    """Return the numbers of a printed text in order: the words and lines around them are free."""
    return _NUMBER.findall(printed)


def failed(reply: Reply) -> Any:
    """Return how a command failed that should not have, or None."""
    if not reply.status:
        return None
    return {FAILED: reply.status, "because": reply.errors.strip().splitlines()[-1:]}


def columns(table: pd.DataFrame) -> dict[str, list[Any]]:
    """Return a table as its columns, in order."""
    return {str(name): table[name].tolist() for name in table}


def metric_columns(table: pd.DataFrame) -> dict[str, list[Any]]:
    """Return the columns of a long table of metrics, its settings in words, in one of them."""
    setting = setting_text(table).astype(str)
    return columns(table.drop(columns=[*SETTINGS], errors="ignore").assign(setting=setting))


def only(paths: Iterable[Path]) -> Path:
    """Return the one file there is.

    Raises
    ------
    GoldenError : there is none, or several.
    """
    result = list(paths)
    if len(result) != 1:
        raise GoldenError(f"there are {len(result)} files where one is expected: {result}")
    return result[0]


# Collecting what a tree makes of runs: their metrics, comparisons and trade-offs.

RECORDS = f"runs/*/{LAST}"  # in a results folder
ALWAYS = ("tracking=none", "figures=false", "data.download=false")


def answer_runs(ask: Ask, folder: Path, cases: Iterable[asked.RunCase], say: Say) -> Answers:
    """Run the cases in the results folders they name; note each run's id by its case's name."""
    answers: Answers = {}
    ids: dict[str, str] = {}
    for case in cases:
        say(f"run {case.name}")
        results = folder / case.results
        before = set(results.glob(RECORDS))
        reply = ask("run", (*case.words, *ALWAYS, f"results={case.results}"), folder)
        new = set(results.glob(RECORDS)) - before
        answers[case.name] = failed(reply) or _metrics(only(new))
        if new:
            ids[case.name] = only(new).parent.name
    (folder / _IDS).write_text(json.dumps(ids))
    return answers


_IDS = "ids.json"  # of the runs, by the names of their cases: ids change


def _metrics(path: Path) -> Any:
    """Return the metrics of a run, without how long something took."""
    table = Run(path.parent).all_metrics()
    return metric_columns(table[~table["metric"].isin(COSTS)])


def answer_tables(ask: Ask, folder: Path, cases: Iterable[asked.TableCase]) -> Answers:
    """Compare finished runs and trade them off: the table, and the numbers that are printed."""
    written_to = {"compare": "report/comparison/*.csv", "tradeoff": "report/tradeoff/*.csv"}
    how: dict[str, Any] = {"float_precision": "round_trip", "keep_default_na": False}
    answers: Answers = {}
    ids = run_ids(folder)

    def named(text: str) -> str:
        """Return a text in which runs are called by their cases' names."""
        for name, run in ids.items():
            text = text.replace(run, name)
        return text

    for case in cases:
        results = folder / case.results
        shutil.rmtree(results / "report", ignore_errors=True)
        reply = ask(case.task, (*with_ids(case.words, ids), f"results={case.results}"), folder)
        texts = [named(path.read_text()) for path in sorted(results.glob(written_to[case.task]))]
        written = [columns(pd.read_csv(io.StringIO(text), **how)) for text in texts]
        printed = numbers_in(named(reply.printed)) if case.task == "compare" else []
        answers[case.name] = failed(reply) or {"table": written, "printed": printed}
    return answers


def run_ids(folder: Path) -> dict[str, str]:
    """Return the ids of the runs that were made in a folder, by the names of their cases."""
    return dict(json.loads((folder / _IDS).read_text()))


def with_ids(words: Iterable[str], ids: Mapping[str, str]) -> list[str]:
    """Return words of a command in which runs that are compared are called by their ids."""

    def called(word: str) -> str:
        return re.sub(r"\w+", lambda name: ids.get(name[0], name[0]), word)

    return [called(word) if word.startswith("runs=") else word for word in words]


# Collecting a tree's answers: plain columns, lists, texts and numbers, each with a name.


def collect(
    ask: Ask, evaluate: Evaluate, folder: Path, selection: asked.Selection, say: Say
) -> Answers:
    """Ask a tree all cases of a selection, in a folder of its own; return its answers by kind."""
    runs = answer_runs(ask, folder, selection.runs, say)
    say("tables, arrays, audits and refusals")
    return {
        "runs": runs,
        "tables": answer_tables(ask, folder, selection.tables),
        "arrays": answer_arrays(evaluate, folder, selection.arrays),
        "audits": answer_audits(ask, folder, selection.audits),
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


def answer_audits(ask: Ask, folder: Path, cases: Iterable[asked.AuditCase]) -> Answers:
    """Audit the tables: the record, and of labelling the numbers that are printed as well."""
    answers: Answers = {}
    for case in cases:
        place = folder / "audits" / case.name
        write_tables(place)
        replies = [ask(task, words, place) for task, words in case.steps]
        answers[case.name] = next(filter(None, map(failed, replies)), None)
        if not answers[case.name]:
            record = json.loads(only((place / "out").glob("*.json")).read_text())
            if "metrics" in record:
                record["metrics"] = metric_columns(pd.DataFrame(record["metrics"]))
            printed = [numbers_in(reply.printed) for reply in replies[:-1]]
            answers[case.name] = {"record": record, "printed": printed}
    return answers


def answer_refusals(ask: Ask, folder: Path, cases: Iterable[asked.RefusalCase]) -> Answers:
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


def answer_arrays(evaluate: Evaluate, folder: Path, cases: Sequence[asked.ArrayCase]) -> Answers:
    """Evaluate the arrays; of a refusal the causes that it leaves out are kept."""
    questions = [{"arguments": case.arguments, "evaluator": case.evaluator} for case in cases]
    answers: Answers = {}
    for case, answer in zip(cases, evaluate(questions, folder), strict=True):
        if isinstance(answer, pd.DataFrame):
            answers[case.name] = metric_columns(answer)
        else:
            missing = [word for word in case.cause if word not in answer]
            answers[case.name] = {"refused": True, "missing": missing}
    return answers


def write_tables(folder: Path) -> None:
    """Write the tables to be audited into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in asked.tables().items():
        table.to_csv(folder / name, index=False)
