"""All that a paper takes: sweeps, computations, figures and studies, run one after the other.

What is finished is not run again, so that a night's run that was ended goes on. A part that fails
is reported, and the others are run. Each part's CPU time is added up in ``papers/costs.csv`` of the
results folder.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_type_hints

import pandas as pd

from fairbench.components import imported
from fairbench.core.errors import UserError
from fairbench.core.failures import failure
from fairbench.core.files import atomic, write_text
from fairbench.reporting.papers.contents import Row, contents
from fairbench.reporting.papers.figures import draw_figure
from fairbench.reporting.papers.mapping import Paper
from fairbench.reporting.papers.running import (
    Effort,
    figure_sweeps,
    is_computed,
    python,
    run_computation,
    run_sweep,
    sweeps,
)
from fairbench.results.packs import written_beside

COSTS = ["paper", "part", "effort", "cpu_seconds"]


@dataclass(frozen=True)
class PaperPart:
    """One thing to run for a paper.

    Attributes
    ----------
    name : the name of the part, such as ``figure 9``.
    run : does it, and returns a list of the files to name, if any; raises UserError where it
        cannot be done.
    """

    paper: str
    name: str
    run: Callable[[], object]


@dataclass(frozen=True)
class Failure:
    """A part that could not be done, and why; a traceback where the fault is ours."""

    part: PaperPart
    reason: str
    trace: str = ""


def table_parts(
    paper: Paper, root: Path, results: Path, tables: Sequence[str], effort: Effort
) -> Iterator[PaperPart]:
    """Yield the parts that some tables need, by default all of them; sweeps come first."""
    words = sweeps(paper, root / "conf", tables, effort)
    yield from _sweep_parts(paper, words, results, effort)
    for table in tables or paper.tables:
        for name in paper.computed(table):
            again = paper.computations[name].get("again", False)
            if again or not is_computed(paper, name, table, results, effort):
                yield PaperPart(
                    paper.name,
                    f"table {table}: {paper.computations[name]['sentence']}",
                    partial(run_computation, paper, name, table, results, effort),
                )


def figure_parts(
    paper: Paper, root: Path, results: Path, figures: Sequence[str], effort: Effort
) -> Iterator[PaperPart]:
    """Yield the parts that some figures need, by default all of them; sweeps come first."""
    words = figure_sweeps(paper, root / "conf", figures, effort)
    yield from _sweep_parts(paper, words, results, effort)
    for figure in figures or paper.figures:
        yield PaperPart(
            paper.name,
            f"figure {figure}",
            partial(draw_figure, paper, figure, root / "conf", results, effort),
        )


def _sweep_parts(
    paper: Paper, sweeps: Iterator[list[str]], results: Path, effort: Effort
) -> Iterator[PaperPart]:
    """Yield the parts that carry out sweeps, each given by the words of its command."""
    for words in sweeps:
        yield PaperPart(
            paper.name,
            " ".join(words),
            partial(run_sweep, words, results, effort),
        )


def study_parts(paper: Paper, results: Path, effort: Effort) -> Iterator[PaperPart]:
    """Yield the studies of a paper's contents that have no text yet."""
    rows = {row.command: row for row in contents(paper) if row.kind == "command"}
    for row in rows.values():
        words = row.arguments(quick=effort is not Effort.WHOLE)
        if words is not None and _takes_results(words):
            words.append(f"results={results.resolve()}")
        path = study_path(paper, row, results, effort)
        if words is not None and not _is_whole(path, paper, words):
            yield PaperPart(
                paper.name,
                f"python {shlex.join(words)}",
                partial(run_study, paper, words, path),
            )


def _takes_results(words: Sequence[str]) -> bool:
    """Return whether the module in words such as ``-m papers.PAPER.MODULE`` takes results=."""
    flag, module, *_ = words
    if flag != "-m":
        return False
    options = get_type_hints(imported(module).main)
    return any("results" in getattr(kind, "__dataclass_fields__", ()) for kind in options.values())


def study_path(paper: Paper, row: Row, results: Path, effort: Effort) -> Path:
    """Return the path of a study's text."""
    name = row.command.removeprefix("python -m ").replace(" ", "-").replace("/", "-")
    stem = "-".join(filter(None, [name, effort.value]))
    return written_beside(results) / paper.name / "studies" / f"{stem}.txt"


def run_study(paper: Paper, words: Sequence[str], path: Path) -> None:
    """Run a study as its own process and keep what it prints.

    Raises
    ------
    UserError : it failed; its last line says why.
    """
    process = python(words, keep=True)
    if process.returncode:
        lines = process.stderr.strip().splitlines() or ["it printed no reason"]
        raise UserError(lines[-1].removeprefix("error: "))
    write_text(path, f"{_digest(paper, words)}\n{process.stdout}")


def _is_whole(path: Path, paper: Paper, words: Sequence[str]) -> bool:
    """Return whether a study's text exists and was made by the present code."""
    if not path.is_file():
        return False
    with path.open(encoding="utf-8") as file:
        return file.readline().strip() == _digest(paper, words)


def _digest(paper: Paper, words: Sequence[str]) -> str:
    digest = hashlib.sha256(shlex.join(words).encode())
    for module in sorted(paper.folder.rglob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()


def carry_out(parts: Sequence[PaperPart], results: Path, effort: Effort) -> list[Failure]:
    """Run parts one after the other, whatever happens to one, and return those that failed."""
    failures = []
    for number, part in enumerate(parts, 1):
        print(f"[{number} of {len(parts)}] {part.paper}, {part.name}", flush=True)
        before = _cpu_seconds()
        try:
            result = part.run()
            if isinstance(result, list):
                print(f"  written: {', '.join(map(str, result))}", flush=True)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # one failing part must not end a night's run
            failures.append(Failure(part, *failure(error)))
            print(f"  not done: {failures[-1].reason}", flush=True)
            print(failures[-1].trace, end="\n" * bool(failures[-1].trace), file=sys.stderr)
        _add_cost(results, part, effort, _cpu_seconds() - before)
    return failures


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its finished child processes."""
    return sum(os.times()[:4])


def costs(results: Path) -> pd.DataFrame:
    """Return the CPU seconds that each part has taken so far, with the columns `COSTS`."""
    path = _costs_path(results)
    return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=COSTS)


def _costs_path(results: Path) -> Path:
    return results / "papers" / "costs.csv"


def _add_cost(results: Path, part: PaperPart, effort: Effort, seconds: float) -> None:
    label = effort.name.lower()
    new = pd.DataFrame([[part.paper, part.name, label, round(seconds, 2)]], columns=COSTS)
    every = [frame for frame in (costs(results), new) if len(frame)]
    total = pd.concat(every).groupby(COSTS[:3], sort=False, as_index=False)["cpu_seconds"].sum()
    with atomic(_costs_path(results)) as file:
        total.to_csv(file, index=False)
