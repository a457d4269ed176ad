"""Prints what a plan would do, how the jobs of a sweep ended, and how to repeat failed ones."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fairbench.cli.output import print_line
from fairbench.cli.progress import console
from fairbench.core.errors import UserError, refused
from fairbench.experiments.configuration import IDENTITY
from fairbench.experiments.execute import Plan, RunEnd
from fairbench.results.sweeps import keep_sweep, sweep_name

if TYPE_CHECKING:
    from fairbench.cli.command_line import SweepSettings
    from fairbench.results.catalogue import Catalogue

FAILED = 1  # the exit status if a run failed
Words = tuple[str, ...]  # the words of a job, such as "dataset=german", "method=ensemble"


@dataclass(frozen=True)
class Outcome:
    """How one job of a sweep ended: finished, planned, skipped or failed."""

    status: str
    name: str
    words: Words = ()
    message: str = ""
    trace: str = ""
    plan: Plan | None = None
    computed: int = 0

    @classmethod
    def of(cls, end: RunEnd, words: Words = ()) -> Outcome:
        """Return the outcome of a job that was carried out."""
        if end.error:
            return cls("failed", end.plan.name, words, end.error, end.trace, end.plan)
        did = end.describe(end.seconds)
        return cls("finished", end.plan.name, words, did, "", end.plan, end.computed)

    @property
    def row(self) -> dict[str, str | None]:
        """The outcome as the folder of a sweep keeps it."""
        run_id = self.plan.id if self.plan else None
        job = shlex.join(self.words)
        return {"job": job, "status": self.status, "run": run_id, "message": self.message}

    @property
    def line(self) -> str:
        """The outcome in one line."""
        return f"{self.status}: {self.name}{': ' if self.message else ''}{self.message}"


# The name of every run has these choices; `experiment` is not an option of a run.
_NAMED = ("dataset", "learner", "intervention", "method", "experiment")


def varied_names(jobs: Sequence[Words]) -> list[str]:
    """Return the options in which the jobs of a sweep differ, except those in a run's name."""
    shared = set.intersection(*map(set, jobs)) if jobs else set()
    names = dict.fromkeys(word.partition("=")[0] for job in jobs for word in job
                          if word not in shared)  # fmt: skip
    return [name for name in names if name not in _NAMED]


def job_name(name: str, words: Words, varied: Sequence[str]) -> str:
    """Return the name of a job with its values of the `varied` options.

    An option is called by its last part, if that is unique.
    """
    lasts = [option.rpartition(".")[2] for option in varied]
    short = {
        option: last for option, last in zip(varied, lasts, strict=True) if lasts.count(last) == 1
    }
    pairs = [word.partition("=") for word in words]
    assignments = [f"{short.get(key, key)}={value}" for key, _, value in pairs if key in varied]
    return ", ".join([name, *assignments])


@dataclass
class _Priced:
    """The cells of some runs: all, stored, to compute; and their estimated CPU seconds."""

    runs: int = 0
    cells: int = 0
    stored: int = 0
    new: int = 0
    seconds: float = 0.0
    unpriced: int = 0

    def __iadd__(self, other: _Priced) -> Self:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self

    @property
    def price(self) -> str:
        """The CPU seconds as text, marked if some fits have no estimate."""
        if not self.unpriced:
            return f"{self.seconds:.0f} s"
        return "unknown" if self.unpriced == self.new else f"{self.seconds:.0f} s and more"


def show_plan(runs: Sequence[Plan], skipped: Sequence[Outcome] = ()) -> None:
    """Print how many cells would be computed and what that costs, each distinct cell counted once.

    Many runs are summed up by learner and intervention.
    """
    from rich.table import Table

    many = len(runs) > _MOST
    total = _Priced()
    rows: dict[tuple[str, ...], _Priced] = {}
    for run, priced in _with_costs(runs):
        row_key = _choices(run) if many else (run.id, run.name)
        rows.setdefault(row_key, _Priced())
        rows[row_key] += priced
        total += priced
    first = ("learner", "intervention", "runs") if many else ("run",)
    table = Table(title="plan", title_justify="left")
    for column in (*first, "cells", "in the store", "to compute", "estimated CPU"):
        words = column in ("run", "learner", "intervention")
        table.add_column(column, justify="left" if words else "right", no_wrap=words and many)
    for first_cells, priced_row in rows.items():
        names = [*first_cells, str(priced_row.runs)] if many else [*first_cells[1:]]
        table.add_row(
            *names,
            str(priced_row.cells),
            str(priced_row.stored),
            str(priced_row.new),
            priced_row.price,
        )
    for outcome in () if many else skipped:
        table.add_row(outcome.name, outcome.status, "", "", "")
    console.print(table)
    _print_price(total)


def _with_costs(runs: Sequence[Plan]) -> Iterator[tuple[Plan, _Priced]]:
    """Yield each run with the cells and costs that it adds to those of earlier runs."""
    from fairbench.experiments.prices import Prices
    from fairbench.results.catalogue import Catalogue

    folders = {run.store.root for run in runs}
    prices = {root: Prices.of(Catalogue(root)) for root in folders}
    counted: set[str] = set()
    for run in runs:
        missing = {cell for cell in run.cells if not run.store.has(cell)}
        new = missing - counted
        counted |= missing
        prices_of_folder, chosen = prices[run.store.root], run.config["hydra"]["runtime"]["choices"]
        seconds_each = prices_of_folder.seconds(run.cost_key, run.rows, chosen) if new else 0.0
        unpriced = len(new) if seconds_each is None else 0
        stored = len(run.cells) - len(missing)
        yield (
            run,
            _Priced(
                1, len(run.cells), stored, len(new), len(new) * (seconds_each or 0.0), unpriced
            ),
        )


def _choices(run: Plan) -> tuple[str, str]:
    chosen = run.config["hydra"]["runtime"]["choices"]
    return str(chosen["learner"]), str(chosen["intervention"])


def _print_price(total: _Priced) -> None:
    """Print the CPU time of all fits, and how to measure those without an estimate."""
    parts = [f"{total.new} cells to compute"]
    if total.new > total.unpriced:
        seconds = total.seconds
        hours = f" ({seconds / 3600:.2f} core-hours)" if seconds >= 360 else ""
        parts.append(f"about {seconds:.0f} s of CPU{hours}, and evaluation beside it")
    if total.unpriced:
        parts.append(f"no earlier run tells what {total.unpriced} of them cost")
    print_line("; ".join([*parts, "nothing was run"]))
    if total.unpriced > _MOST:
        words = [word for word in sys.argv[1:] if word not in ("run", "plan=true")]
        pilot = shlex.join([*_program(), *words, "split.repeats=1"])
        print_line(f"one repeat tells it, and its cells count: {pilot}")


def show_planned_sweep(outcomes: Sequence[Outcome]) -> int:
    """Print the plan of a sweep and return the exit status."""
    without_run = [outcome for outcome in outcomes if not outcome.plan]
    show_plan([outcome.plan for outcome in outcomes if outcome.plan], without_run)
    for outcome in without_run:
        print_line(outcome.line)
    return FAILED if any(outcome.status == "failed" for outcome in without_run) else 0


def sum_up(
    outcomes: Sequence[Outcome],
    config: Mapping[str, Any],
    settings: SweepSettings,
    words: Sequence[str],
) -> int:
    """Print how a sweep's jobs ended, log its runs to MLflow, and return the exit status.

    Parameters
    ----------
    words : the words of the command line.
    """
    by_status = {
        status: [job for job in outcomes if job.status == status]
        for status in ("finished", "skipped", "failed")
    }
    finished, failed = by_status["finished"], by_status["failed"]
    for job in by_status["skipped"]:
        print_line(job.line)
    name = sweep_name(words, IDENTITY)
    try:
        keep_sweep(settings.folder, name, [outcome.row for outcome in outcomes])
    except OSError as error:
        print_line(f"warning: this list is not kept: {refused(error)}")
    computed = {outcome.plan.id: outcome.computed for outcome in finished if outcome.plan}
    runs = list({outcome.plan.id: outcome.plan for outcome in finished if outcome.plan}.values())
    cells = len({cell for run in runs for cell in run.cells})
    fitted = sum(computed.values())
    counts = f"{len(finished)} runs finished, {len(by_status['skipped'])} skipped"
    parts = [f"{counts}, {len(failed)} failed", f"fitted {fitted} of {cells} cells"]
    if runs:
        folder = runs[0].store.run_path(runs[0].id).parent
        parts += [f"files: {folder}", log_runs(runs, config["tracking"], name)]
    print_line("; ".join(parts))
    if runs:
        show_table(runs)
    if failed:
        _show_failures(failed, outcomes, settings.words)
    return FAILED if failed else 0


_MOST, _NAMED_RUNS = 40, 6  # rows of a table, and runs that a command names


def show_table(runs: Sequence[Plan]) -> None:
    """Print the table of a sweep's runs, and the commands for page, table and comparison."""
    from fairbench.reporting.document.terminal import print_document
    from fairbench.reporting.run_tables import runs_document
    from fairbench.results.catalogue import Catalogue
    from fairbench.results.runs import Run

    results = runs[0].store.root
    catalogue = Catalogue(
        results, {run.id: Run(run.store.run_path(run.id)) for run in runs[:_MOST]}
    )
    try:
        print_document(runs_document(catalogue))
    except UserError as error:  # a file was damaged meanwhile; the runs themselves have finished
        print_line(f"no table: {error}")
    if len(runs) > _MOST:
        print_line(f"the first {_MOST} of {len(runs)} runs; the command of the table has them all")
    for command in next_commands([run.id for run in runs], catalogue, results):
        print_line(f"  {shlex.join(command)}")


def next_commands(ids: Sequence[str], runs: Catalogue, results: Path) -> list[list[str]]:
    """Return the commands that show some runs: a page, a table in a file, and a comparison.

    Parameters
    ----------
    runs : the runs to search for comparable ones.
    """
    folder_option = [] if str(results) == "results" else [f"results={results}"]
    ids_or_all = [id_[:6] for id_ in ids] if len(ids) <= _NAMED_RUNS else ["all"]
    commands = [["report"], ["table", *ids_or_all, "out=runs.csv"]]
    largest_set = max(runs.comparable(), key=len, default=None)
    if largest_set is not None:
        short_ids = [id_[:6] for id_ in largest_set.runs]
        commands.append(["compare", *(short_ids if len(short_ids) <= _NAMED_RUNS else ["all"])])
    return [["fairbench", *command, *folder_option] for command in commands]


def _show_failures(
    failed: Sequence[Outcome], outcomes: Sequence[Outcome], launcher: Sequence[str]
) -> None:
    """Print the failed jobs with the words that identify them, reasons, and commands to repeat."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from fairbench.core.escaping import terminal

    table = Table(title="failed", title_justify="left", box=box.SIMPLE)
    table.add_column("job")
    table.add_column("reason", overflow="fold")
    shared = set.intersection(*(set(outcome.words) for outcome in outcomes))
    for outcome in failed:
        telling_words = [word for word in outcome.words if word not in shared]
        table.add_row(terminal(" ".join(telling_words) or outcome.name), terminal(outcome.message))
    for trace in dict.fromkeys(outcome.trace for outcome in failed if outcome.trace):
        print_line(trace)
    # Lines are wrapped only on a terminal.
    Console(width=None if sys.stdout.isatty() else 10_000).print(table, highlight=False)
    print_line("what failed is run again, and nothing else, by:")
    by_sweep: dict[tuple[str, ...], list[Words]] = {}  # those of a folder name other options
    for outcome in failed:
        names = tuple(word.partition("=")[0] for word in outcome.words)
        by_sweep.setdefault(names, []).append(outcome.words)
    for jobs in by_sweep.values():
        for command in commands(jobs, program=_program(), first=launcher):
            print_line(f"  {command}")


def _program() -> list[str]:
    name = sys.argv[0]
    return ["python", name] if Path(name).name == "run.py" else ["fairbench", "run"]


def commands(
    jobs: Sequence[Words], *, program: Sequence[str], first: Sequence[str] = ()
) -> list[str]:
    """Return a few commands that together run exactly these jobs.

    Parameters
    ----------
    jobs : the words of each job; in a sweep all name the same options in the same order.
    program : the words that every command starts with.
    first : words that all commands share, such as the launcher.
    """
    return [shlex.join([*program, "-m", *first, *words]) for words in sweeps(jobs)]


def sweeps(jobs: Sequence[Words]) -> list[list[str]]:
    """Split jobs into sweeps, each the product of its options' values; one if possible."""
    columns = [list(dict.fromkeys(column)) for column in zip(*jobs, strict=True)]
    if prod(map(len, columns)) == len(set(jobs)):
        return [[_join_assignments(values) for values in columns]]
    varying = next(index for index, values in enumerate(columns) if len(values) > 1)
    parts = groupby(sorted(jobs, key=lambda job: columns[varying].index(job[varying])),
                    key=lambda job: job[varying])  # fmt: skip
    return [sweep for _, part in parts for sweep in sweeps(list(part))]


def _join_assignments(words: Sequence[str]) -> str:
    """Return ``"a=1,2"`` for ``["a=1", "a=2"]``."""
    name = words[0].partition("=")[0]
    return f"{name}={','.join(word.partition('=')[2] for word in words)}"


def log_runs(runs: Sequence[Plan], config: Any, sweep: str = "") -> str:
    """Log finished runs and say where; a server that is down costs a line, not the run.

    Parameters
    ----------
    sweep : the name of their sweep.
    """
    from fairbench.results.runs import Run
    from fairbench.results.sweeps import Sweep
    from fairbench.tracking.database import TrackingError
    from fairbench.tracking.importer import Tracking

    tracking = Tracking(config["enabled"], config["uri"], config["experiment"])
    if not tracking.enabled:
        return "not logged to MLflow (tracking=none)"
    folders = [Run(run.store.run_path(run.id)) for run in runs]
    try:
        sweeps = [Sweep(sweep, tuple(run.id for run in runs))]
        logged = tracking.sync(folders, sweeps, ask=False)
    except TrackingError as error:
        later = tracking.later(folders[0].results)
        print_line(f"warning: not logged: {error}; `{later}` logs it later")
        return "MLflow: not logged"
    ids = list(logged.values())
    return f"MLflow: {tracking.address}, {'run ' + ids[0] if len(ids) == 1 else f'{len(ids)} runs'}"
