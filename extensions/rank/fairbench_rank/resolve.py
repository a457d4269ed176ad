"""Add splits to a sweep where they tell approaches apart, as long as there is time.

The sweep's own runs are made first. Then, round after round, the approaches that still may be the
best in the metric get further splits of the tasks whose splits scatter most for what they cost,
until the time is over (budget=2h), one approach is left, or no number of splits can tell the others
apart. The summary says what the rounds gained, and what only more tasks would tell.
A small file keeps the rounds, so that the same command goes on; all else is in the runs.
The other words are those of fairbench run, which need no -m.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from functools import cached_property, partial
from itertools import pairwise
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbench.cli.jobs import Job, carry_out_jobs, protect_from_collection
from fairbench.cli.output import print_line
from fairbench.cli.verbs.run import run_words
from fairbench.core import VERSION, files
from fairbench.core.errors import UserError, check_choice
from fairbench.core.text import digest, two_digits
from fairbench.metrics.registry import declared, find
from fairbench.reporting.document.model import Document, ExecutiveSummary
from fairbench.reporting.group_tables import sentence_of, sentences_of
from fairbench.results.runs import Run
from fairbench_rank import ranking, scores, sources
from fairbench_rank.approaches import approach_table
from fairbench_rank.scores import RankOptions, ScoreTable

if TYPE_CHECKING:
    from fairbench.cli.command_line import CommandLine
    from fairbench.cli.jobs import Outcome

MADE_FOR = "0.1"
_PAGE = "fairbench_rank:resolve"
SHRUNK = 0.8  # each round reduces the variance from splits to at most this share of it
_STEP = 5  # each step gives a task one fifth more splits
# Why there is no further round.
RESOLVED, BOUND, BUDGET = "resolved", "bound", "budget"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_USAGE = (
    "fairbench resolve METRIC budget=TIME experiment=NAME [GROUP=CHOICE ...] [OPTION=VALUE ...]"
)


def main(words: Sequence[str]) -> int:
    """Resolve the metric that the words name; Hydra reads those of the runs."""
    if {*words} & {"-h", "--help", "help"}:
        print(f"{_USAGE}\n\n{__doc__}\nfairbench run --help lists the options of the runs.")
        return 0
    others = [word for word in words if not word.startswith("budget=")]
    times = [word.removeprefix("budget=") for word in words if word.startswith("budget=")]
    metric = next((word for word in others if "=" not in word and word[:1] != "-"), "")
    if not metric or not times:
        missing = "budget= is missing" if metric else "no metric is named"
        raise UserError(f"{missing}: fairbench resolve error_rate budget=2h experiment=NAME")
    others.remove(metric)
    resolved = partial(_resolve, metric=_known(metric), seconds=seconds_of_text(times[-1]))
    return run_words(others, resolved)


def seconds_of_text(text: str) -> float:
    """Return the seconds of a text such as ``2h``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if not match or not float(match[1]) > 0:
        raise UserError(f"budget={text} is no time: write 90s, 30m, 2h or 1d")
    return float(match[1]) * _SECONDS[match[2]]


def _known(name: str) -> str:
    """Return the name of a metric; refuse an unknown one, or one without a better direction."""
    check_choice("metric", name, [metric.name for metric in declared()])
    if getattr(find(name), "better", "") not in ("higher", "lower"):
        raise UserError(f"{name} cannot be resolved: neither higher nor lower values are better")
    return name


def _resolve(lines: Sequence[CommandLine], locks: ExitStack, *, metric: str, seconds: float) -> int:
    """Carry out an experiment and further rounds of it, and print what the time bought."""
    from fairbench.cli.jobs import SweepProgress, varied_names

    jobs = [(line, job) for line in lines for job in line.jobs]
    if len(jobs) < 2:
        raise UserError(sentence_of(_PAGE, "one_run"))
    deadline = time.monotonic() + seconds
    with SweepProgress(jobs=len(jobs)) as progress:
        composed = [(job, line.compose(job)) for line, job in jobs]
        for _, config in composed:
            if config["plan"]:
                raise UserError("plan=true plans an experiment: give it to fairbench run")
            if (config["split"].get("repeats") or 1) < 2:
                raise UserError(sentence_of(_PAGE, "no_repeats"))
        protect_from_collection([config["results"] for _, config in composed], locks, make=True)
        varied = varied_names([job for job, _ in composed])

        def run(part: Sequence[Job]) -> Sequence[Outcome]:
            return carry_out_jobs(part, lines[0], progress, varied, whole=False)

        return _Race(metric, jobs, composed, run, deadline).show()


class _TimeIsOver(Exception):  # noqa: N818  (what it says is no error)
    """The budget is spent; finished fits are kept."""


@dataclass(frozen=True)
class Round:
    """A round, as the record keeps it.

    Attributes
    ----------
    number : the number of the round; 1 is the experiment as it stands.
    splits : task -> the number of its splits.
    best : the approaches that may be the best after it.
    fits, seconds : the number of fits that were made, and the seconds they took.
    """

    number: int
    splits: Mapping[str, int]
    best: Sequence[str]
    fits: int
    seconds: float


@dataclass
class _Race:
    """The race between the approaches of an experiment: its jobs, its runs, and its rounds.

    Attributes
    ----------
    runs : position of a job -> its run with the most splits so far.
    noise : the noise of the tasks in round 1, by which later rounds are planned.
    """

    metric: str
    jobs: Sequence[tuple[CommandLine, tuple[str, ...]]]
    composed: Sequence[Job]
    run: Callable[[Sequence[Job]], Sequence[Outcome]]
    deadline: float
    runs: dict[int, Run] = field(default_factory=dict)
    noise: list[TaskNoise] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)

    def show(self) -> int:
        """Carry out the experiment and its rounds, and show the page."""
        from fairbench.cli.verbs.audit import print_and_write

        began = time.monotonic()
        try:
            fits = self._carry_out(list(enumerate(self.composed)))
        except _TimeIsOver:
            done, all_runs = len(self.runs), len(self.composed)
            print_line(sentence_of(_PAGE, "time_is_over", done=done, runs=all_runs))
            return 0
        if not self.runs:
            raise UserError("no run of this experiment could be finished")
        _, table, options = self._answer(wrong_of_round(1))
        self.noise = noise_of_tasks(table, options)
        self._read()
        if not self.rounds:
            self._close({task.task: task.splits for task in self.noise}, fits, began)
        reason = self._go_on()
        answer, *_ = self._answer(wrong_of_round(len(self.rounds)))
        document = _resolving_document(answer, self.rounds, self.noise, reason)
        print_and_write(document, lambda: self._record.parent, "resolve")
        return 0

    @cached_property
    def _record(self) -> Path:
        """The file of the rounds, once the experiment's own runs are made."""
        key = digest([sorted(run.id for run in self.runs.values()), self.metric], 12)
        return Path(str(self.composed[0][1]["results"])) / "resolve" / key / "rounds.json"

    def _go_on(self) -> str:
        """Carry out rounds until one of them is the last, and return why it is."""
        try:
            for before, after in pairwise(self.rounds):
                self._at_least(after.splits, before.best)
            while True:
                last = self.rounds[-1]
                if len(last.best) < 2:
                    return RESOLVED
                answer, *_ = self._answer(wrong_of_round(last.number))
                noisy = any(task.noise > 0 for task in self.noise)
                if not noisy or all(map(is_out_of_reach, rivals_of(answer, last.best))):
                    return BOUND
                if time.monotonic() >= self.deadline:
                    return BUDGET
                splits = splits_of_round(self.noise, last.number + 1)
                began = time.monotonic()
                fits = self._at_least(splits, last.best)
                new = self._close(splits, fits, began)
                told = {"best": len(new.best), "before": len(last.best), "fits": fits}
                print_line(sentence_of(_PAGE, "round", round=new, **told))
        except _TimeIsOver:
            return BUDGET

    def _close(self, splits: Mapping[str, int], fits: int, began: float) -> Round:
        """Add a round whose runs are made to the record, and return it."""
        number = len(self.rounds) + 1
        may_be_best = self._answer(wrong_of_round(number))[0].best
        before = self.rounds[-1].best if self.rounds else may_be_best
        best = [name for name in before if name in may_be_best] or list(before)
        new = Round(number, splits, best, fits, time.monotonic() - began)
        self.rounds.append(new)
        files.make_folder(self._record.parent)
        content = files.sealed_json({"rounds": [*map(asdict, self.rounds)]})
        files.write_text(self._record, content)
        return new

    def _carry_out(self, jobs: Sequence[tuple[int, Job]]) -> int:
        """Carry out jobs, given with their indices; return how many cells were fitted.

        Raises
        ------
        _TimeIsOver : before the last of them.
        """
        fits, size = 0, max(2 * int(self.composed[0][1]["n_jobs"]), 8)
        for start in range(0, len(jobs), size):
            if time.monotonic() >= self.deadline:
                raise _TimeIsOver
            part = jobs[start : start + size]
            for (index, _), outcome in zip(part, self.run([job for _, job in part]), strict=True):
                if outcome.plan and outcome.status == "finished":
                    self.runs[index] = Run(outcome.plan.store.run_path(outcome.plan.id))
                fits += outcome.computed
        return fits

    def _at_least(self, splits: Mapping[str, int], approaches: Sequence[str]) -> int:
        """Run approaches on a number of splits of each task; return the number of fits."""
        further = list[tuple[int, Job]]()
        for index, (method, task) in self._named.items():
            needed, (line, job) = splits.get(task, 0), self.jobs[index]
            repeats = int(self.runs[index].config["split"]["repeats"])
            if method in approaches and needed > repeats:
                longer = (*job, f"split.repeats={needed}")
                further.append((index, (longer, line.compose(longer))))
        return self._carry_out(further)

    @cached_property
    def _named(self) -> dict[int, tuple[str, str]]:
        """Each job's approach and task, as the ranking calls them, before any has more splits."""
        wide = sources.with_methods_and_tasks(approach_table(list(self.runs.values())))
        about = wide.drop_duplicates("run").set_index("run")[["method", "task"]]
        return {
            index: (str(about.at[run.id, "method"]), str(about.at[run.id, "task"]))
            for index, run in self.runs.items()
            if run.id in about.index
        }

    def _answer(self, error_rate: float) -> tuple[ranking.Ranking, ScoreTable, RankOptions]:
        """Rank the approaches in all of their splits, with family-wise error rate `error_rate`."""
        wide = approach_table(list(self.runs.values()))
        read = sources.with_scores(sources.approaches_as_methods(wide), [self.metric])
        read = sources.select_approaches_with_enough_tasks(read)
        options = RankOptions(path=Path("experiment"), crashed=scores.LEFT_OUT)
        options = scores.as_read(options, read)
        table = scores.read_scores(options, None, read)
        every = len(table.methods)
        (answer,) = ranking.answers(table, options, error_rate=error_rate, most_planned=every)
        return answer, table, options

    def _read(self) -> None:
        """Read the record of earlier rounds, if there is one.

        Raises
        ------
        UserError : the file is damaged.
        """
        try:
            plain = files.unsealed_json(files.read_bytes(self._record, files.TEXT))
            self.rounds = [Round(**values) for values in plain["rounds"]]
        except FileNotFoundError:
            pass
        except (files.DamagedError, ValueError, TypeError, KeyError) as error:
            raise UserError(sentence_of(_PAGE, "damaged", path=self._record)) from error


# A round gives every approach that still may be the best further splits of some tasks; then all
# pairs of all approaches are compared again, and whatever is surely worse than another one is
# dropped for good. Round r may be wrong with chance 5 % / (r (r + 1)), which adds up to 5 % over
# all rounds, however many there are.
#
# Which tasks get splits in which round follows from the spread of the first round's splits around
# each approach's mean, and from what a split costs, and from no later score. Spreads say nothing of
# which approach is ahead, as long as splits scatter alike to either side: turning all deviations
# round leaves them as they are. So the number of splits behind a comparison does not depend on how
# it came out, and each round's comparison is what it would be of splits decided upon in advance.
# Dropping approaches changes no comparison of those that remain, and pairs of dropped ones count
# among those that are compared at once, so that levels do not depend on who is left.


def wrong_of_round(number: int) -> float:
    """Return the chance with which round `number`, from 1, may drop the best method."""
    return ranking.WRONG / (number * (number + 1))


@dataclass(frozen=True)
class TaskNoise:
    """How much of the variance of means is due to a task's splits, and what a split costs.

    Attributes
    ----------
    task : the name of the task.
    splits : the number of its splits in the first round.
    noise : variance of one split's score around the method's mean, without what all methods share.
    weight : the task's weight in the mean over families.
    seconds : the seconds that one split of one method takes, the mean over methods.
    """

    task: str
    splits: int
    noise: float
    weight: float
    seconds: float

    def variance(self, splits: int) -> float:
        """Return the variance that the task adds to a mean if it has so many splits."""
        return self.weight**2 * self.noise / splits

    def reduction(self, splits: int, further: int) -> float:
        """Return by how much further splits reduce that variance."""
        return self.variance(splits) - self.variance(splits + further)


def noise_of_tasks(table: ScoreTable, options: RankOptions) -> list[TaskNoise]:
    """Return the noise of every task that has two splits or more.

    Notes
    -----
    In M methods' scores of one task, split s deviates by d_ms from the mean over methods in that
    split. The noise is the mean over methods of the variance of d_ms over splits, times
    M / (M - 1) as the mean over methods holds each method itself.
    """
    (only,) = table.scores
    units = ranking.units_of(table, options)
    values, cost = only.larger_is_better, only.cost
    assert cost is not None  # of runs, the seconds of fits
    families = np.bincount(units.unit)
    weights = 1 / len(families) / families[units.unit]
    if not units.equal_weights:
        weights = np.full(len(units.unit), 1 / len(units.unit))
    noises = []
    for number, name in enumerate(table.tasks):
        task_values = values[:, units.group == number]
        task_values = task_values[:, np.isfinite(task_values).any(axis=0)]
        # Methods with every split of the first round.
        task_values = task_values[np.isfinite(task_values).all(axis=1)]
        if task_values.shape[1] < 2 or len(task_values) < 2:
            continue
        methods, splits = task_values.shape
        deviations = task_values - task_values.mean(axis=0)
        noise = float(deviations.var(axis=1, ddof=1).mean()) * methods / (methods - 1)
        seconds = float(np.nanmean(cost[:, units.group == number]))
        noises.append(TaskNoise(name, splits, noise, float(weights[number]), seconds))
    return noises


def splits_of_round(tasks: Sequence[TaskNoise], number: int) -> dict[str, int]:
    """Return the number of splits of each task after round `number`, counted from 1.

    Every round leaves 80 % of the variance that splits bring to a mean, at the least cost: the
    next splits are those that take most of it away for each second.
    """
    splits = {task.task: task.splits for task in tasks}
    variance_left = sum(task.variance(task.splits) for task in tasks)
    target = variance_left * SHRUNK ** (number - 1)
    noisy = [task for task in tasks if task.noise > 0]

    def gain(task: TaskNoise) -> float:
        further = ceil(splits[task.task] / _STEP)
        return task.reduction(splits[task.task], further) / (further * max(task.seconds, 1e-9))

    while variance_left > target * (1 + 1e-12) and noisy:
        best = max(noisy, key=gain)
        further = ceil(splits[best.task] / _STEP)
        variance_left -= best.reduction(splits[best.task], further)
        splits[best.task] += further
    return splits


def rivals_of(answer: ranking.Ranking, best: Collection[str]) -> list[Mapping[str, Any]]:
    """Return the plans of the leader and each rival that is left."""
    plans = [plan for plan in answer.plans if plan["first"] == answer.leader]
    return [plan for plan in plans if plan["second"] in best]


def is_out_of_reach(plan: Mapping[str, Any]) -> bool:
    """Return whether no number of splits tells two methods apart, if they differ as they seem to.

    What is left of the variance of their difference then makes each interval wider than it.
    """
    return bool(abs(plan["difference"]) < plan["floor"])


def _resolving_document(
    answer: ranking.Ranking, rounds: Sequence[Round], noise: Sequence[TaskNoise], reason: str
) -> Document:
    """Return a document on the rounds of further splits, and what they told apart.

    Parameters
    ----------
    answer : the ranking after the last round.
    reason : why there is no further round.
    """
    metric, best, further = answer.scores.score, rounds[-1].best, rounds[1:]
    rivals = [{**of, "is_out_of_reach": is_out_of_reach(of)} for of in rivals_of(answer, best)]
    beyond = [plan for plan in rivals if plan["is_out_of_reach"]]
    needed = sorted(filter(isfinite, (plan["units_needed"] for plan in beyond)))
    values = {
        "answer": answer,
        "units": ranking.units_in_words(answer),
        "least": "least" if answer.scores.better == "lower" else "largest",
        "best": len(best),
        "approaches": len(answer.methods),
        "before": len(rounds[0].best),
        "names": ranking.first_names(best),
        "fits": sum(each.fits for each in further),
        "time": timedelta(seconds=round(sum(each.seconds for each in further))),
        "wrong": ranking.WRONG,
        "beyond": len(beyond),
        "rivals": len(rivals),
        "left": len(rivals) - len(beyond),
        "half": two_digits(needed[(len(needed) - 1) // 2]) if needed else "",
    }
    found = {"found": True, "fits" if further else "no_fits": True}
    still_open = {
        "no_splits": reason != RESOLVED and beyond,
        "more_splits": reason == BUDGET and len(rivals) > len(beyond),
    }
    todo = {"again": reason == BUDGET, "more_units": needed}
    tell = partial(sentences_of, _PAGE, **values)
    summary = ExecutiveSummary(tell(found), tell({"sure": True}), todo=tell(todo))
    summary = replace(summary, still_open=tell(still_open), audited_title="What was compared")
    data = {
        "version": VERSION,
        "metric": metric,
        "reason": reason,
        "rounds": [*map(asdict, rounds)],
        "tasks": [*map(asdict, noise)],
        "rivals": rivals,
    }
    title = f"Where fits were spent: {metric}"
    return Document(title, [], origin=f"fairbench {VERSION}.", data=data, summary=summary)
