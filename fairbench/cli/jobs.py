"""The jobs of a run or a sweep: planned, carried out, shown while they last, and summed up.

Begin with :func:`run_single` and :func:`run_sweep`. :func:`carry_out_jobs` has some of them planned
and computed, and :class:`SweepProgress` shows how far they are.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import progress as bars
from rich.console import Console

from fairbench.cli.output import FAILED, print_failure, print_line
from fairbench.comparison.runs import is_weighted
from fairbench.core.errors import IncompatibleError, UserError, refused
from fairbench.core.processes import failure, using
from fairbench.core.text import digest
from fairbench.evaluation.summary import task_of
from fairbench.experiments import execute
from fairbench.experiments.configuration import IDENTITY
from fairbench.experiments.execute import Plan
from fairbench.metrics.registry import BINARY
from fairbench.reporting.document.model import Column, Document, Section, Table
from fairbench.reporting.document.terminal import print_document, terminal
from fairbench.reporting.panels import draw_figures
from fairbench.reporting.runs import document_of, runs_document
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import refuse_pack, run_name
from fairbench.results.runs import Run
from fairbench.results.upkeep import keep_sweep

if TYPE_CHECKING:
    from fairbench.cli.command_line import CommandLine
    from fairbench.tracking.importer import Tracking

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
    def of(cls, end: execute.UnitResult, words: Words = ()) -> Outcome:
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


def _job_name(name: str, words: Words, varied: Sequence[str]) -> str:
    """Return the name of a job with its values of the `varied` options."""
    return ", ".join([name, *(word for word in words if word.partition("=")[0] in varied)])


def _show_plan(runs: Sequence[Plan], skipped: Sequence[Outcome] = ()) -> None:
    """Print how many cells would be computed and what that costs, each distinct cell counted once.

    Many runs are summed up by learner and intervention.
    """
    many = len(runs) > _MOST
    heads = ("learner", "intervention") if many else ("run",)
    figures = (*["runs"] * many, "cells", "in the store", "to compute")
    rows: dict[tuple[str, ...], Counter[str]] = {}
    for run, costs in _with_costs(runs):
        chosen = {**run.config["hydra"]["runtime"]["choices"], "run": run.name, "id": run.id}
        key = tuple(chosen[name] for name in (*heads, *["id"] * (not many)))
        rows.setdefault(key, Counter()).update(costs)
    columns = [*map(Column, heads), *(Column(name, "count") for name in figures)]
    columns.append(Column("estimated CPU", right=True))
    cells = [
        [*key[: len(heads)], *(costs[name] for name in figures), _price(costs)]
        for key, costs in rows.items()
    ]
    without = [None] * len(figures)
    cells += [[one.name, *without, one.status] for one in (() if many else skipped)]
    print_document(Document("", [Section("plan", [Table(columns, cells)])]))
    _print_price(sum(rows.values(), Counter()))


def _price(costs: Counter[str]) -> str:
    """Return CPU seconds as text, marked if some fits have no estimate."""
    if costs["unpriced"] and costs["unpriced"] == costs["to compute"]:
        return "unknown"
    return f"{costs['seconds']:.0f} s{' and more' if costs['unpriced'] else ''}"


def _with_costs(runs: Sequence[Plan]) -> Iterator[tuple[Plan, dict[str, Any]]]:
    """Yield each run with the cells and CPU seconds that it adds to those of earlier runs."""
    prices = {root: execute.prices_of(Catalogue(root)) for root in {run.store.root for run in runs}}
    counted: set[str] = set()
    for run in runs:
        missing = {cell for cell in run.cells if not run.store.has(cell)}
        new = len(missing - counted)
        counted |= missing
        chosen, paid = run.config["hydra"]["runtime"]["choices"], prices[run.store.root]
        each = execute.seconds_of_fit(paid, run.cost_key, run.rows, chosen) if new else 0.0
        costs = {"runs": 1, "cells": len(run.cells), "in the store": len(run.cells) - len(missing)}
        costs |= {"to compute": new, "unpriced": new if each is None else 0}
        yield run, {**costs, "seconds": new * (each or 0.0)}


def _print_price(total: Counter[str]) -> None:
    """Print the CPU time of all fits, and how many have no estimate."""
    new, unpriced, seconds = (total[name] for name in ("to compute", "unpriced", "seconds"))
    parts = [f"{new} cells to compute"]
    if new > unpriced:
        hours = f" ({seconds / 3600:.2f} core-hours)" if seconds >= 360 else ""
        parts.append(f"about {seconds:.0f} s of CPU{hours}, and evaluation beside it")
    if unpriced:
        parts.append(f"no earlier run tells what {unpriced} of them cost")
    print_line("; ".join([*parts, "nothing was run"]))


def _show_planned_sweep(outcomes: Sequence[Outcome]) -> int:
    """Print the plan of a sweep and return the exit status."""
    without_run = [outcome for outcome in outcomes if not outcome.plan]
    _show_plan([outcome.plan for outcome in outcomes if outcome.plan], without_run)
    for outcome in without_run:
        print_line(outcome.line)
    return FAILED if any(outcome.status == "failed" for outcome in without_run) else 0


def _sum_up(
    outcomes: Sequence[Outcome], config: Mapping[str, Any], line: CommandLine, name: str
) -> int:
    """Print how a sweep's jobs ended, log its runs to MLflow, and return the exit status.

    Parameters
    ----------
    name : the name of the sweep.
    """
    finished, skipped, failed = (
        [job for job in outcomes if job.status == status]
        for status in ("finished", "skipped", "failed")
    )
    for job in skipped:
        print_line(job.line)
    try:
        keep_sweep(Path(line.of_hydra("sweep.dir")), name, [outcome.row for outcome in outcomes])
    except OSError as error:
        print_line(f"warning: this list is not kept: {refused(error)}")
    ends = {job.plan.id: (job.plan, job.computed) for job in finished if job.plan}
    runs = [run for run, _ in ends.values()]
    cells = len({cell for run in runs for cell in run.cells})
    fitted = sum(computed for _, computed in ends.values())
    counts = f"{len(finished)} runs finished, {len(skipped)} skipped, {len(failed)} failed"
    parts = [counts, f"fitted {fitted} of {cells} cells"]
    if runs:
        folder = runs[0].store.run_path(runs[0].id).parent
        parts += [f"files: {folder}", log_runs(runs, config["tracking"], name)]
    print_line("; ".join(parts))
    if runs:
        _show_table(runs)
    if failed:
        _show_failures(failed, outcomes)
    return FAILED if failed else 0


_MOST, _NAMED_RUNS = 40, 6  # rows of a table, and runs that a command names


def _show_table(runs: Sequence[Plan]) -> None:
    """Print the table of a sweep's runs, and the commands for page, table and comparison."""
    results = runs[0].store.root
    catalogue = Catalogue(results, {run.id: _folder_of(run) for run in runs[:_MOST]})
    try:
        print_document(runs_document(catalogue))
    except UserError as error:  # a file was damaged meanwhile; the runs themselves have finished
        print_line(f"no table: {error}")
    if len(runs) > _MOST:
        print_line(f"the first {_MOST} of {len(runs)} runs; the command of the table has them all")
    for command in _next_commands([run.id for run in runs], catalogue, results):
        print_line(f"  {shlex.join(command)}")


def _next_commands(ids: Sequence[str], runs: Catalogue, results: Path) -> list[list[str]]:
    """Return the commands that show some runs: a page, a table in a file, and a comparison.

    Parameters
    ----------
    runs : the runs to search for comparable ones.
    """
    folder_option = [] if str(results) == "results" else [f"results={results}"]
    commands = [["report"], ["table", *_named(ids), "out=runs.csv"]]
    # Counts, by which labels are compared, know no weights.
    sets = [
        [run.id for run in of if not is_weighted(run) or task_of(run.summary()) != BINARY]
        for of in runs.comparable()
    ]
    if len(largest := max(sets, key=len, default=[])) > 1:
        commands.append(["compare", *_named(largest)])
    return [["fairbench", *command, *folder_option] for command in commands]


def _named(ids: Sequence[str]) -> list[str]:
    """Return the words that name some runs, or all where they are many."""
    return [id_[:6] for id_ in ids] if len(ids) <= _NAMED_RUNS else ["all"]


def _show_failures(failed: Sequence[Outcome], outcomes: Sequence[Outcome]) -> None:
    """Print the failed jobs with the words that identify them, and reasons."""
    shared = set.intersection(*(set(outcome.words) for outcome in outcomes))
    telling = [" ".join(word for word in job.words if word not in shared) for job in failed]
    rows = [[words or job.name, job.message] for words, job in zip(telling, failed, strict=True)]
    table = Table([Column("job"), Column("reason")], rows)
    for trace in dict.fromkeys(outcome.trace for outcome in failed if outcome.trace):
        print_line(trace)
    # Lines are wrapped only on a terminal.
    console = terminal(0 if sys.stdout.isatty() else 10_000)
    print_document(Document("", [Section("failed", [table])]), console)
    print_line("the same command runs what failed again, and nothing else")


def _folder_of(plan: Plan) -> Run:
    """Return the run that is made by a plan, as its folder has it."""
    return Run(plan.store.run_path(plan.id))


def _tracking(config: Any) -> Tracking:
    from fairbench.tracking.importer import Tracking

    return Tracking(config["uri"], config["experiment"])


def log_runs(runs: Sequence[Plan], config: Any, sweep: str = "") -> str:
    """Log finished runs and say where; a server that is down costs a line, not the run.

    Parameters
    ----------
    sweep : the name of their sweep.
    """
    from fairbench.tracking.importer import TrackingError

    if not config["enabled"]:
        return "not logged to MLflow (tracking=none)"
    tracking = _tracking(config)
    folders = list(map(_folder_of, runs))
    try:
        sweeps = [(sweep, tuple(run.id for run in runs))]
        logged = tracking.sync(folders, sweeps)
    except TrackingError as error:
        later = tracking.later(folders[0].results)
        print_line(f"warning: not logged: {error}; `{later}` logs it later")
        return "MLflow: not logged"
    ids = list(logged.values())
    return f"MLflow: {tracking.address}, {'run ' + ids[0] if len(ids) == 1 else f'{len(ids)} runs'}"


# Shows the progress of a run or a sweep: a line on a terminal, and how each job ended.


class SweepProgress:
    """Counts cells and jobs, and shows them where there is a terminal.

    Parameters
    ----------
    name : the name of a single run, shown instead of the counts of jobs.
    jobs : the number of jobs of a sweep.
    """

    def __init__(self, name: str = "", *, jobs: int = 0, shown: bool | None = None) -> None:
        self.name, self.jobs = name, jobs
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.counts: Counter[str] = Counter()
        self.total = 0
        self._started = time.perf_counter()
        self._display = bars.Progress(
            bars.MofNCompleteColumn(),
            bars.TextColumn("cells"),
            bars.TimeRemainingColumn(),
            bars.TextColumn("left; {task.description}"),
            console=Console(stderr=True),
            transient=True,
            disable=not self.shown,
            redirect_stdout=sys.stdout.isatty(),
            # The time left is judged by the last five minutes: cells may take one each.
            speed_estimate_period=300,
        )
        self._task = self._display.add_task(name, total=None)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._started

    def __enter__(self) -> SweepProgress:
        """Show the line."""
        self._display.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Take the line away."""
        self._display.stop()

    def add_planned(self, execution: execute.Execution) -> None:
        """Add the cells of a planned sweep, or of a part of one."""
        self.total += execution.cells
        self.counts["cached"] += len(execution.stored)
        self._show()

    def cell(self, fresh: bool | None) -> None:
        """Count a cell: fitted, found in the store after all, or failed."""
        self.counts["failed cells" if fresh is None else "fitted" if fresh else "cached"] += 1
        self._show()

    def outcome(self, outcome: Outcome) -> None:
        """Count a job that ended, and say how."""
        if outcome.status == "planned":
            return
        self.counts[outcome.status] += 1
        if self.shown:
            self._display.console.print(outcome.line, markup=False, highlight=False)
        else:
            print_line(f"  {outcome.line}")
        self._show()

    @property
    def line(self) -> str:
        """The counts in words."""
        count = self.counts
        cells = (
            f"{count['fitted']} fitted, {count['cached']} cached, {count['failed cells']} failed"
        )
        jobs = f"{count['finished']} of {self.jobs}, {count['skipped']} skipped"
        return self.name or f"{cells}; jobs: {jobs}, {count['failed']} failed"

    def _show(self) -> None:
        completed = self.counts["fitted"] + self.counts["cached"] + self.counts["failed cells"]
        self._display.update(
            self._task, completed=completed, total=self.total or None, description=self.line
        )


# Jobs of a command line: planned, carried out, and held while they last.

Job = tuple[tuple[str, ...], dict[str, Any]]  # the words that make it, and its configuration


def protect_from_collection(folders: Iterable[str], locks: ExitStack, *, make: bool) -> None:
    """Protect cells and runs from garbage collection until these runs have ended.

    Parameters
    ----------
    make : whether missing folders are made; a plan makes none.
    """
    for folder in map(Path, dict.fromkeys(folders)):
        refuse_pack(folder)
        locks.enter_context(using(folder, make=make))


def figure_drawer(config: Mapping[str, Any]) -> Any:
    """Return the function that draws the figures of a run; None if none are wanted."""
    return draw_figures if config["figures"] else None


def carry_out_jobs(
    jobs: Sequence[Job],
    line: CommandLine,
    progress: SweepProgress,
    varied: Sequence[str],
    *,
    whole: bool,
    sweep: str = "",
) -> list[Outcome]:
    """Plan jobs and carry them out; if one fails, the others go on.

    Parameters
    ----------
    whole : whether these are all jobs of the sweep.
    sweep : the name of the sweep, by which its runs are logged while others are fitted; without
        one they are not.

    Raises
    ------
    UserError : the reason why all jobs of the sweep fail, if it is one.
    """
    config = jobs[0][1]
    planned = [_plan_job(job, varied) for job in jobs]
    reasons = {(outcome.status, outcome.message, outcome.trace) for outcome in planned}
    (status, message, trace), *other_reasons = reasons
    if whole and planned[1:] and not other_reasons and status == "failed" and not trace:
        raise UserError(f"all {len(planned)} jobs of this sweep: {message}")
    for outcome in planned:
        progress.outcome(outcome)
    if config["plan"]:
        return planned
    plans = [outcome.plan for outcome in planned if outcome.plan]
    executor = line.executor(config)
    # In one process, logging would take turns with fitting, which takes longer than one by one.
    aside = sweep and plans and executor is not execute.in_process
    logger = None
    if aside and config["tracking"]["enabled"]:
        from fairbench.tracking.importer import Logger

        logger = Logger(_tracking(config["tracking"]), (sweep, tuple(plan.id for plan in plans)))

    def ended(end: execute.UnitResult) -> None:
        progress.outcome(Outcome.of(end))
        if logger and not end.error:
            logger.add(_folder_of(end.plan))

    execution = execute.Execution(plans, executor, figure_drawer(config), progress.cell, ended)
    progress.add_planned(execution)
    ends = iter(execution.carry_out())
    if logger:
        logger.end()
    return [
        Outcome.of(next(ends), outcome.words) if outcome.plan else outcome for outcome in planned
    ]


def _plan_job(job: Job, varied: Sequence[str]) -> Outcome:
    """Return the outcome of planning a job: planned, skipped or failed.

    Parameters
    ----------
    varied : the options in which the jobs of the sweep differ; they are part of its name.
    """
    words, config = job
    name = _job_name(run_name(config["hydra"]["runtime"]["choices"]), words, varied)
    try:
        planned: Plan = execute.plan_run(config)
        named_plan = replace(planned, name=_job_name(planned.name, words, varied))
        return Outcome("planned", named_plan.name, words, plan=named_plan)
    except IncompatibleError as error:
        return Outcome("skipped", name, words, message=str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # one failing job must not end a sweep
        return Outcome("failed", name, words, *failure(error))


def run_single(line: CommandLine, locks: ExitStack) -> int:
    """Plan a single run, carry it out and print its metrics; return the status."""
    config = line.compose(line.jobs[0])
    protect_from_collection([config["results"]], locks, make=not config["plan"])
    planned = execute.plan_run(config)
    if config["plan"]:
        _show_plan([planned])
        return 0
    executor = execute.processes(config["n_jobs"], config["timeout_min"])
    with SweepProgress(planned.name) as progress:
        execution = execute.Execution([planned], executor, figure_drawer(config), progress.cell)
        progress.add_planned(execution)
        (end,) = execution.carry_out()
    if end.error:
        return print_failure(end.error, end.trace)
    print_document(document_of(_folder_of(planned)))
    logged = log_runs([planned], config["tracking"])
    print_line(f"{end.describe(progress.seconds)}; files: {_folder_of(planned).path}; {logged}")
    return 0


_LONGEST = 400  # letters of a sweep's name


def _sweep_name(words: Sequence[str]) -> str:
    """Return the name of the sweep that words of a command line ask for.

    Words that change no run, such as ``n_jobs=4``, and the order of words do not count. A very long
    name is cut, and ends in a digest of the whole.
    """
    order = ["experiment", *IDENTITY]
    groups = {word: word.partition("=")[0].partition(".")[0] for word in words}
    named = [word for word in words if groups[word] in order]
    name = shlex.join(sorted(named, key=lambda word: order.index(groups[word])))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 12]}... {digest(name, 8)}"


def run_sweep(lines: Sequence[CommandLine], words: Sequence[str], locks: ExitStack) -> int:
    """Plan and carry out all jobs, and print how each ended.

    Several lines are the sweeps of a folder of experiments; they share their settings.

    Parameters
    ----------
    words : the words of the command.
    """
    name = _sweep_name(words)
    outcomes: list[Outcome] = []
    every = [(line, job) for line in lines for job in line.jobs]
    with SweepProgress(jobs=len(every)) as progress:
        # All are composed first: a wrong name refuses a sweep before hours are spent on it.
        composed = [(job, line.compose(job)) for line, job in every]
        folders = [config["results"] for _, config in composed]
        protect_from_collection(folders, locks, make=not composed[0][1]["plan"])
        size = lines[0].of_hydra("sweeper.max_batch_size") or len(composed)
        varied = varied_names([job for job, _ in composed])
        for start in range(0, len(composed), size):
            part = composed[start : start + size]
            whole = len(part) == len(composed)
            outcomes += carry_out_jobs(part, lines[0], progress, varied, whole=whole, sweep=name)
    if composed[0][1]["plan"]:
        return _show_planned_sweep(outcomes)
    return _sum_up(outcomes, composed[0][1], lines[0], name)
