"""Runs what a paper's tables still need: sweeps of runs, and extra computations.

A computation is a function of the paper's folder, ``numbers(rows, results, effort)``. It is given
the published rows that it answers, and returns a row for each number of ours: `row`, the place of
the published one, `mean`, `sd`, `repeats`, and where they are needed `label` (which of our
answers), `cause` (the one of the mapping that it stands for), `error` (the standard error of the
difference) and `reason` (why it cannot be compared).
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from fairbench.components import imported, module_named
from fairbench.core.errors import UserError
from fairbench.core.files import atomic, write_text
from fairbench.experiments.presets import REPEATS, Presets
from fairbench.reporting.papers.mapping import Paper, computations_of, rule_of
from fairbench.results.record import DEMO, PAPER

_TEXTS = ("label", "cause", "reason")
T = TypeVar("T")


class Effort(Enum):
    """The size of a computation: the paper's own, a quick look, or one pass through the code.

    The value is what the names of stored numbers end with.
    """

    WHOLE = ""
    QUICK = "quick"
    FIRST = "first"

    def choose(self, whole: T, quick: T, first: T) -> T:
        """Return the one of three values that is this effort's."""
        return {Effort.WHOLE: whole, Effort.QUICK: quick, Effort.FIRST: first}[self]


def sweeps(
    paper: Paper, conf: Path, tables: Sequence[str] = (), effort: Effort = Effort.WHOLE
) -> Iterator[list[str]]:
    """Yield the words of each sweep that some tables need, every experiment once.

    A quick look has few repeats, and of each sweep the data sets that the paper's mapping calls
    quick, where it has any of them, and the values of other options that it names; experiments
    that it names are left out, or all where it says so.

    Parameters
    ----------
    tables : all of the paper's if empty.
    """
    names = [name for table in tables or paper.tables for name in _experiments(paper, table)]
    yield from _sweeps(paper, conf, names, effort)


def figure_sweeps(
    paper: Paper, conf: Path, figures: Sequence[str] = (), effort: Effort = Effort.WHOLE
) -> Iterator[list[str]]:
    """Yield the words of each sweep that some figures need, all of the paper's if none is named."""
    entries = [paper.figure(figure) for figure in figures or paper.figures]
    yield from _sweeps(paper, conf, [f["experiment"] for f in entries if "experiment" in f], effort)


def _sweeps(
    paper: Paper, conf: Path, experiments: Sequence[str], effort: Effort
) -> Iterator[list[str]]:
    """Yield the words of each sweep of the experiments, smaller where the effort is not whole."""
    small = effort is not Effort.WHOLE
    if small and not paper.quick.get("sweeps", True):
        return
    presets = Presets(conf)
    left_out = paper.quick.get("leave_out", ()) if small else ()
    for name in dict.fromkeys(name for name in experiments if name not in left_out):
        words = [f"experiment={name}"]
        if small and "repeats" in paper.quick:
            words.append(f"{REPEATS}={effort.choose(0, paper.quick['repeats'], 1)}")
        if small:
            datasets = presets.experiment(name).varied.get("dataset", ())
            quick = [dataset for dataset in datasets if dataset in paper.quick.get("datasets", ())]
            words += [f"dataset={','.join(quick)}"] if quick else []
            varied = presets.experiment(name).varied
            fewer = paper.quick.get("vary", {})
            words += [f"{option}={values}" for option, values in fewer.items() if option in varied]
        yield words


def _experiments(paper: Paper, table: str) -> list[str]:
    """Return the experiments behind a table, those that its computations read among them."""
    read = [paper.computations[name].get("experiments", []) for name in paper.computed(table)]
    return [*paper.experiments(table), *(name for names in read for name in names)]


def run_sweep(words: Sequence[str], results: Path, effort: Effort) -> None:
    """Run one sweep in a process of its own; finished runs and stored cells are reused.

    A quick look counts as a demo.

    Raises
    ------
    UserError : it failed; its own output says why.
    """
    purpose = PAPER if effort is Effort.WHOLE else DEMO
    words = [*words, "hydra/launcher=joblib", f"results={results.resolve()}", f"purpose={purpose}"]
    if python(["-m", "fairbench", "run", "-m", *words]).returncode:
        raise UserError(f"a sweep failed, see above: fairbench run -m {shlex.join(words)}")


def python(words: Sequence[str], *, keep: bool = False) -> subprocess.CompletedProcess[str]:
    """Run Python as its own process, in the folder that one is in.

    Parameters
    ----------
    words : such as ``-m papers.PAPER.MODULE``: modules are found in a checkout and in an installed
        package, wherever that lies.
    keep : whether what it prints is returned instead of shown.
    """
    flag, name, *rest = words
    words = [flag, module_named(name), *rest] if flag == "-m" else words
    source = str(Path(__file__).resolve().parents[3])  # the folder that has `fairbench`
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-P", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=keep,
        text=True,
        check=False,
    )


def function_of(name: str) -> Callable[..., Any]:
    """Return the function that a mapping names as ``papers.PAPER.MODULE:FUNCTION``."""
    module, _, function = name.partition(":")
    return getattr(imported(module), function)  # type: ignore[no-any-return]


def run_computation(
    paper: Paper, name: str, table: str, results: Path, effort: Effort = Effort.WHOLE
) -> None:
    """Compute what a computation answers of a table, and store it in the results folder.

    A smaller effort's numbers are kept beside the whole; a quick look's are shown where there is
    no whole.
    """
    rows = _rows_of(paper, name, table)
    numbers = function_of(str(paper.computations[name]["function"]))(rows, results, effort)
    frame = pd.DataFrame(numbers, columns=["row", "mean", "sd", "repeats", *_TEXTS, "error"])
    path = _path(paper, name, table, results, effort)
    with atomic(path) as file:
        frame.to_csv(file, index=False)
    write_text(path.with_suffix(".json"), json.dumps({"published": _digest(rows)}))


def computed_numbers(paper: Paper, name: str, table: str, results: Path) -> pd.DataFrame:
    """Return the numbers of a computation, with columns of texts and ``quick``.

    That is what the results folder has of it, else what the paper's folder keeps, else what a quick
    look found.
    """
    if is_computed(paper, name, table, results):
        return _read(_path(paper, name, table, results))
    kept_file = paper.computations[name].get("kept")
    if kept_file:
        numbers = _read(paper.folder / str(kept_file))
        return numbers[numbers["row"].isin(_rows_of(paper, name, table).index)]
    if is_computed(paper, name, table, results, Effort.QUICK):
        return _read(_path(paper, name, table, results, Effort.QUICK)).assign(quick=True)
    return pd.DataFrame(columns=["row"])


def _read(path: Path) -> pd.DataFrame:
    numbers = pd.read_csv(path, float_precision="round_trip")
    texts = {name: numbers.get(name, pd.Series("", numbers.index)) for name in _TEXTS}
    sd = numbers.get("sd", pd.Series(float("nan"), numbers.index))
    numbers = numbers.assign(**texts, sd=sd, quick=False).astype(dict.fromkeys(_TEXTS, object))
    return numbers.fillna(dict.fromkeys(_TEXTS, ""))


def is_computed(
    paper: Paper, name: str, table: str, results: Path, effort: Effort = Effort.WHOLE
) -> bool:
    """Return whether a computation is stored, for the published numbers as they are."""
    notes = _path(paper, name, table, results, effort).with_suffix(".json")
    if not notes.is_file():
        return False
    stored = json.loads(notes.read_text(encoding="utf-8"))
    return bool(stored.get("published") == _digest(_rows_of(paper, name, table)))


def _rows_of(paper: Paper, name: str, table: str) -> pd.DataFrame:
    """Return the published rows of a table that a computation answers."""
    rows = paper.published(table)
    rules = paper.table(table)["rules"]
    return rows[[name in computations_of(rule_of(rules, row)) for row in rows.to_dict("records")]]


def _path(
    paper: Paper, name: str, table: str, results: Path, effort: Effort = Effort.WHOLE
) -> Path:
    stem = "-".join(filter(None, [f"table{table}", name, effort.value]))
    return results / "papers" / paper.name / f"{stem}.csv"


def _digest(rows: pd.DataFrame) -> str:
    return hashlib.sha256(rows.to_csv().encode()).hexdigest()
