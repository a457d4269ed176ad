"""``fairbench run experiment=NAME resolve=METRIC budget=TIME``: fits where they resolve most.

The experiment's own jobs are carried out first. Then, round after round, the approaches that still
may be the best get further splits of the tasks whose splits scatter most for what they cost, until
the time is over, one approach is left, or no number of splits can tell the others apart;
:mod:`fairbench.comparison.rank.further_splits` says why that changes no error rate. A small file
keeps the rounds, so that the same command goes on; all else is in the runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fairbench.cli.budget import Resolving
from fairbench.cli.jobs import Job, carry_out_jobs, protect_from_collection
from fairbench.cli.output import print_line
from fairbench.comparison.rank.further_splits import (
    noise_of_tasks,
    rival_bounds,
    seconds_of,
    splits_of_round,
    wrong_of_round,
)
from fairbench.comparison.rank.rounds import (
    BOUND,
    BUDGET,
    ONE_SPLIT,
    RESOLVED,
    ApproachRuns,
    Record,
    Round,
)
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.fingerprint import digest
from fairbench.metrics.registry import declared, find
from fairbench.results.runs import Run

if TYPE_CHECKING:
    from fairbench.cli.command_line import CommandLine
    from fairbench.cli.summary import Outcome


class _TimeIsOver(Exception):  # noqa: N818  (what it says is no error)
    """The budget is spent; finished fits are kept."""


@dataclass
class _Experiment:
    """The jobs of an experiment, and how they are carried out while there is time."""

    jobs: Sequence[tuple[CommandLine, tuple[str, ...]]]
    composed: Sequence[Job]
    run: Callable[[Sequence[Job]], Sequence[Outcome]]
    deadline: float
    runs: ApproachRuns

    @property
    def workers(self) -> int:
        """How many fits are made at once."""
        return max(int(self.composed[0][1]["n_jobs"]), 1)

    @property
    def seconds_left(self) -> float:
        """How much of the budget is left."""
        return self.deadline - time.monotonic()

    def carry_out(self, jobs: Sequence[tuple[int, Job]]) -> int:
        """Carry out jobs, given with their indices; return how many cells were fitted.

        Raises
        ------
        _TimeIsOver : before the last of them.
        """
        fits = 0
        size = max(2 * self.workers, 8)
        for start in range(0, len(jobs), size):
            if self.seconds_left <= 0:
                raise _TimeIsOver
            part = jobs[start : start + size]
            for (index, _), outcome in zip(part, self.run([job for _, job in part]), strict=True):
                if outcome.plan and outcome.status == "finished":
                    self.runs.keep(index, Run(outcome.plan.store.run_path(outcome.plan.id)))
                fits += outcome.computed
        return fits

    def at_least(self, splits: Mapping[str, int], approaches: Sequence[str]) -> int:
        """Run approaches on a number of splits of each task; return the number of fits."""
        kept_methods = set(approaches)
        further = list[tuple[int, Job]]()
        for index, (method, task) in self.runs.named.items():
            splits_needed = splits.get(task, 0)
            repeats = int(self.runs.longest[index].config["split"]["repeats"])
            if method in kept_methods and splits_needed > repeats:
                line, job = self.jobs[index]
                longer = (*job, f"split.repeats={splits_needed}")
                further.append((index, (longer, line.compose(longer))))
        return self.carry_out(further)


def resolve(lines: Sequence[CommandLine], resolving: Resolving, locks: ExitStack) -> int:
    """Carry out an experiment and further rounds of it, and print what the time bought."""
    from fairbench.cli.progress import SweepProgress
    from fairbench.cli.summary import varied_names

    jobs = [(line, job) for line in lines for job in line.jobs]
    if len(jobs) < 2:
        raise UserError("resolve= compares the runs of a sweep, and this is one run: add -m")
    _check_metric(resolving.metric)
    deadline = time.monotonic() + resolving.seconds
    settings = lines[0].settings()
    with SweepProgress(jobs=len(jobs)) as progress:
        composed: list[Job] = [
            (job, line.compose(job)) for line, job in progress.show_composing(jobs)
        ]
        _check(composed)
        folders = [config["results"] for _, config in composed]
        protect_from_collection(folders, locks, make=not composed[0][1]["plan"])
        varied = varied_names([job for job, _ in composed])

        def run(part: Sequence[Job]) -> Sequence[Outcome]:
            return carry_out_jobs(part, settings, progress, varied, whole=False)

        runs = ApproachRuns(resolving.metric)
        return _race(_Experiment(jobs, composed, run, deadline, runs))


def _check_metric(name: str) -> None:
    """Refuse an unknown metric, or one without a better direction."""
    declared_metric = find(name)
    if declared_metric is None:
        raise unknown_name("metric", name, [metric.name for metric in declared()])
    if declared_metric.better not in ("higher", "lower"):
        raise UserError(f"resolve={name}: neither higher nor lower values of {name} are better")


def _check(jobs: Sequence[Job]) -> None:
    for _, config in jobs:
        if config["plan"]:
            raise UserError("plan=true plans an experiment: leave resolve= and budget= out")
        if "repeats" not in config["split"]:
            raise UserError("resolve= adds splits, and the split of this experiment has no repeats")


def _race(experiment: _Experiment) -> int:
    """Carry out the experiment and rounds, and show the page."""
    from fairbench.cli.verbs.audit import print_and_write
    from fairbench.reporting.resolving import resolving_document

    runs = experiment.runs
    began = time.monotonic()
    try:
        fits = experiment.carry_out(list(enumerate(experiment.composed)))
    except _TimeIsOver:
        print_line(
            f"the time is over after {len(runs.first)} of {len(experiment.composed)} runs of the "
            "experiment itself: the same command goes on"
        )
        return 0
    if not runs.first:
        raise UserError("no run of this experiment could be finished")
    results = Path(str(experiment.composed[0][1]["results"]))
    key = digest([sorted(run.id for run in runs.first.values()), runs.metric], 12)
    folder = results / "resolve" / key
    file = folder / "rounds.json"
    record = Record.read(file)
    if not record.rounds:
        wrong = wrong_of_round(1)
        answer, table, options = runs.answer(wrong)
        noise = noise_of_tasks(table, options, runs.seconds_of_splits())
        splits = {task.task: task.splits for task in noise}
        seconds = time.monotonic() - began
        record = Record(noise, [Round(1, wrong, splits, answer.best, fits, seconds)])
        record.write(file)
    reason = _rounds(experiment, record, file)
    record = Record.read(file)
    last = record.rounds[-1]
    answer, table, options = runs.answer(last.wrong)
    bounds = rival_bounds(answer, table, options, last.best)
    document = resolving_document(
        answer, record.rounds, record.noise, bounds, reason, methods=len(table.methods)
    )
    print_and_write(document, lambda: folder, "resolve")
    return 0


def _rounds(experiment: _Experiment, record: Record, file: Path) -> str:
    """Carry out rounds until one of them is the last, and return why it is."""
    runs = experiment.runs
    try:
        for before, after in zip(record.rounds, record.rounds[1:], strict=False):
            experiment.at_least(after.splits, before.best)
        while True:
            last = record.rounds[-1]
            if len(last.best) < 2:
                return RESOLVED
            if not record.noise:
                return ONE_SPLIT
            answer, table, options = runs.answer(last.wrong)
            bounds = rival_bounds(answer, table, options, last.best)
            if all(bound.is_out_of_reach for bound in bounds):
                return BOUND
            number = last.number + 1
            splits = splits_of_round(record.noise, number)
            needed = seconds_of(record.noise, last.splits, splits, len(last.best))
            if experiment.seconds_left < needed / experiment.workers:
                return BUDGET
            began = time.monotonic()
            fits = experiment.at_least(splits, last.best)
            answer, *_ = runs.answer(wrong_of_round(number))
            best = [name for name in last.best if name in set(answer.best)] or list(last.best)
            seconds = time.monotonic() - began
            ended = Round(number, wrong_of_round(number), splits, best, fits, seconds)
            record = replace(record, rounds=[*record.rounds, ended])
            record.write(file)
            print_line(
                f"round {number}: {len(best)} of {len(last.best)} may still be the best "
                f"({fits} fits, {seconds:.0f} s)"
            )
    except _TimeIsOver:
        return BUDGET
