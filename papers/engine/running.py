"""All that a paper takes: sweeps, computations, figures and studies, run one after the other.

What is finished is not run again, so that a night's run that was ended goes on. A part that fails
is reported, and the others are run.

A computation is a function of the paper's folder, ``numbers(rows, results, effort)``. It is given
the published rows that it answers, and returns a row for each number of ours: `row`, the place of
the published one, `mean`, `sd`, `repeats`, and where they are needed `label` (which of our
answers), `cause` (the one of the mapping that it stands for), `error` (the standard error of the
difference) and `reason` (why it cannot be compared). A figure is drawn of an experiment's finished
runs, or by a function ``figure(results, effort)``, which yields the end of each picture's name (""
of a single one) and the picture.

Begin with `table_parts`, `figure_parts` and `study_parts`, and `carry_out`, which runs them.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from fairbench.components import CHECKOUT, imported, module_named
from fairbench.components.papers import options_of_study
from fairbench.components.papers.engine.mapping import ALL, Paper, PaperOptions, contents
from fairbench.components.papers.engine.matching import (
    Computation,
    Effort,
    runs_needed,
)
from fairbench.core.errors import UserError
from fairbench.core.files import atomic, write_text
from fairbench.core.processes import failure
from fairbench.experiments.configuration import REPEATS, Presets
from fairbench.results.record import DEMO, PAPER


def sweeps(
    paper: Paper, tables: Sequence[str] = (), effort: Effort = Effort.WHOLE
) -> Iterator[list[str]]:
    """Yield the words of each sweep that some tables need, every experiment once.

    Those that a table's computations read are among them.

    Parameters
    ----------
    tables : all of the paper's if empty.
    """
    names: list[str] = []
    for table in tables or paper.tables:
        names += paper.experiments(table)
        for name in paper.computed(table):
            names += paper.computations[name].get("experiments", [])
    yield from _sweeps(paper, names, effort)


def figure_sweeps(
    paper: Paper, figures: Sequence[str] = (), effort: Effort = Effort.WHOLE
) -> Iterator[list[str]]:
    """Yield the words of each sweep that some figures need, all of the paper's if none is named."""
    entries = [paper.figures[figure] for figure in figures or paper.figures]
    yield from _sweeps(paper, [f["experiment"] for f in entries if "experiment" in f], effort)


def _sweeps(paper: Paper, experiments: Sequence[str], effort: Effort) -> Iterator[list[str]]:
    """Yield the words of each sweep of the experiments, smaller where the effort is not whole.

    A quick look has few repeats, and of each sweep the data sets that the paper's mapping calls
    quick, where it has any of them, and the values of other options that it names; experiments
    that it names are left out.
    """
    quick = {} if effort is Effort.WHOLE else paper.quick
    presets, left_out = Presets(), quick.get("leave_out", ())
    for name in dict.fromkeys(name for name in experiments if name not in left_out):
        words = [f"experiment={name}"]
        if "repeats" in quick:
            words.append(f"{REPEATS}={effort.choose(0, quick['repeats'], 1)}")
        varied = presets.experiment(name)[1] if quick else {}
        datasets = [each for each in varied.get("dataset", ()) if each in quick.get("datasets", ())]
        fewer = {"dataset": ",".join(datasets)} if datasets else {}
        fewer |= {each: values for each, values in quick.get("vary", {}).items() if each in varied}
        yield [*words, *(f"{option}={values}" for option, values in fewer.items())]


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
    paths = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
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
    return getattr(imported(module), function)


def run_computation(computation: Computation, effort: Effort = Effort.WHOLE) -> None:
    """Compute what a computation answers of a table, and store it in the results folder."""
    function = function_of(str(computation.entry["function"]))
    computation.store(function(computation.rows, computation.results, effort), effort)


# Figures.


def draw_figure(
    paper: Paper, figure: str, results: Path, effort: Effort = Effort.WHOLE
) -> list[Path]:
    """Draw one figure and return the PNG files, in ``report/PAPER/figures`` of the results folder.

    Raises
    ------
    UserError : runs or data that are missing.
    """
    entry = paper.figures[figure]
    if "function" in entry:
        figures = function_of(entry["function"])(results, effort)
    else:
        from fairbench.reporting.panels import figures_of_methods

        parts = [
            metrics.assign(**{name: choice[name] for name in ("dataset", "method")})
            for choice, _, metrics in runs_needed(entry["experiment"], results)
        ]
        figures = figures_of_methods(pd.concat(parts, ignore_index=True), entry["draw"])
    folder = results / "report" / paper.name / "figures"
    paths = []
    for name, picture in figures:
        path = folder / ("_".join([f"figure{figure}", *filter(None, [name])]) + ".png")
        with atomic(path) as file:
            picture.savefig(file, format="png")
        paths.append(path)
    if not paths:
        raise UserError(f"{paper.name}, figure {figure}: there is nothing to draw")
    return paths


# The parts of a paper.


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
class _Failure:
    """A part that could not be done, and why; a traceback where the fault is ours."""

    part: PaperPart
    reason: str
    trace: str = ""


def table_parts(
    paper: Paper, results: Path, tables: Sequence[str], effort: Effort
) -> Iterator[PaperPart]:
    """Yield the parts that some tables need, by default all of them; sweeps come first."""
    for words in sweeps(paper, tables, effort):
        yield PaperPart(paper.name, " ".join(words), partial(run_sweep, words, results, effort))
    for table in tables or paper.tables:
        for name in paper.computed(table):
            computation = Computation(paper, name, table, results)
            if computation.entry.get("again", False) or not computation.is_stored(effort):
                sentence = f"table {table}: {computation.entry['sentence']}"
                yield PaperPart(paper.name, sentence, partial(run_computation, computation, effort))


def figure_parts(
    paper: Paper, results: Path, figures: Sequence[str], effort: Effort
) -> Iterator[PaperPart]:
    """Yield the parts that some figures need, by default all of them; sweeps come first."""
    for words in figure_sweeps(paper, figures, effort):
        yield PaperPart(paper.name, " ".join(words), partial(run_sweep, words, results, effort))
    for figure in figures or paper.figures:
        run = partial(draw_figure, paper, figure, results, effort)
        yield PaperPart(paper.name, f"figure {figure}", run)


def study_parts(paper: Paper, results: Path, effort: Effort) -> Iterator[PaperPart]:
    """Yield the studies of a paper's contents that have no text yet."""
    rows = {row.command: row for row in contents(paper) if row.kind == "command"}
    for row in rows.values():
        words = row.arguments(quick=effort is not Effort.WHOLE)
        if words is None:
            continue
        flag, module, *rest = words
        if flag == "-m":
            study = getattr(imported(module), rest[0] if rest and "=" not in rest[0] else "main")
            if "results" in options_of_study(study).__dataclass_fields__:
                words.append(f"results={results.resolve()}")
        name = row.command.removeprefix("python -m ").replace(" ", "-").replace("/", "-")
        stem = "-".join(filter(None, [name, effort.value]))
        path = results / "report" / paper.name / "studies" / f"{stem}.txt"
        made = path.read_text(encoding="utf-8") if path.is_file() else ""
        # A text that was made by the present code is not made again.
        if made.partition("\n")[0].strip() != _digest(paper, words):
            run = partial(run_study, paper, words, path)
            yield PaperPart(paper.name, f"python {shlex.join(words)}", run)


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


def _digest(paper: Paper, words: Sequence[str]) -> str:
    digest = hashlib.sha256(shlex.join(words).encode())
    for module in sorted(paper.folder.rglob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()


def carry_out(parts: Sequence[PaperPart]) -> list[_Failure]:
    """Run parts one after the other, whatever happens to one, and return those that failed."""
    failures = []
    for number, part in enumerate(parts, 1):
        print(f"[{number} of {len(parts)}] {part.paper}, {part.name}", flush=True)
        try:
            result = part.run()
            if isinstance(result, list):
                print(f"  written: {', '.join(map(str, result))}", flush=True)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # one failing part must not end a night's run
            failures.append(_Failure(part, *failure(error)))
            print(f"  not done: {failures[-1].reason}", flush=True)
            print(failures[-1].trace, end="\n" * bool(failures[-1].trace), file=sys.stderr)
    return failures


def run_asked(papers: Sequence[Paper], options: PaperOptions) -> list[_Failure]:
    """Run what the options ask for, and say at the end what could not be done.

    Raises
    ------
    UserError : nothing of what was asked for can be done.
    """
    effort = Effort.QUICK if options.quick else Effort.WHOLE
    parts = [part for paper in papers for part in _parts(paper, options, effort)]
    failures = carry_out(parts)
    if failures and len(failures) == len(parts) and not any(part.trace for part in failures):
        reasons = "; ".join(dict.fromkeys(part.reason for part in failures))
        rest = f"fairbench paper {options.name} run=true"
        raise UserError(f"{reasons}; {rest} runs all that can be run without it")
    for each in failures:
        print(f"not done: {each.part.paper}, {each.part.name}: {each.reason}")
    return failures


def _parts(paper: Paper, options: PaperOptions, effort: Effort) -> list[PaperPart]:
    """Return the tables, figures and studies of a paper that the options ask for."""
    tables = [] if options.table in ("", ALL) else [options.table]
    figures = [options.figure] if options.figure else []
    parts: list[PaperPart] = []
    only_figures, everything = (
        options.figure or options.figures,
        options.name == ALL and options.run,
    )
    if options.run and not only_figures:
        parts += table_parts(paper, options.results, tables, effort)
    if only_figures or everything:
        parts += figure_parts(paper, options.results, figures, effort)
        if not options.run:  # what is drawn of runs is drawn of those that are there
            parts = [part for part in parts if part.name.startswith("figure ")]
    if everything:
        parts += study_parts(paper, options.results, effort)
    return parts
