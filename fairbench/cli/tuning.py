"""Tuning by the command line: the search space, progress, and the printed answer."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbench.cli.jobs import drawing, hold
from fairbench.cli.options import read
from fairbench.cli.output import print_line
from fairbench.cli.progress import print_error
from fairbench.cli.summary import log_runs
from fairbench.comparison.tuned import Promise, Tested, Tuned, judged, promised
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.formats import interval, number, signed
from fairbench.experiments.execute import Execution, Plan, RunEnd, plan, prepared
from fairbench.experiments.executors import executor
from fairbench.experiments.tuning import Dimension, Search
from fairbench.experiments.tuning_settings import Tuning, TuningOptions
from fairbench.experiments.tuning_trials import Trial
from fairbench.reporting.document.html import to_html
from fairbench.reporting.document.json import to_json
from fairbench.reporting.document.model import Column, Document, Paragraph, Section, Table
from fairbench.reporting.document.plain_text import to_latex, to_markdown
from fairbench.reporting.document.terminal import print_document
from fairbench.results.record import TUNING

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

    from fairbench.cli.command_line import CommandLine

FAILED, USER_ERROR = 1, 2


def tune(line: CommandLine, held: ExitStack) -> int:
    """Search, judge what is chosen on test rows, print the answer; return the exit status."""
    search, options = search_of(line, held)
    search.check()
    if search.default_plan.config["plan"]:
        return _planned(search)
    if options.format == "text":
        search.show = partial(_show_trial, search)
    try:
        answer, runs = answered(search)
    except UnfinishedRunError as error:
        print_line(error.end.trace) if error.end.trace else None
        print_error(error.end.error)
        return FAILED if error.end.trace else USER_ERROR
    default, best = (prepared(run) for run in runs)
    _print(document(answer, search, ids=(default.id, best.id)), options.format)
    if options.format == "text":
        logged = log_runs(list(runs), search.default_plan.config["tracking"])
        print_line(
            f"fitted {search.fitted} cells; runs: {default.folder.path} (untuned), "
            f"{best.folder.path} (tuned); study: {search.record.folder}; {logged}"
        )
    return 0


class UnfinishedRunError(Exception):
    """The run of the default or of the chosen trial could not be finished."""

    def __init__(self, end: RunEnd) -> None:
        super().__init__(end.error)
        self.end = end


def search_of(line: CommandLine, held: ExitStack) -> tuple[Search, TuningOptions]:
    """Return the search that a command line asks for, and how its answer is printed."""
    options = _options(line.sweeper_options())
    (fixed,) = line.jobs
    if not any(word.startswith("purpose=") for word in fixed):
        fixed = (*fixed, f"purpose={TUNING}")
    base = line.compose(fixed)
    hold([base["results"]], held, make=not base["plan"])
    search = Search(
        Tuning(*(getattr(options, name) for name in Tuning.__dataclass_fields__)),
        [dimension(space, base) for space in line.spaces.values()],
        lambda values: line.compose([*fixed, *(f"{k}={v}" for k, v in values.items())]),
        executor(line.settings().launcher, base["n_jobs"], base["timeout_min"]),
    )
    return search, options


def _options(given: Mapping[str, Any]) -> TuningOptions:
    """Return the sweeper's options, read as those of the verb are: with the same refusals."""
    words = [f"{name}={_typed(given[name])}" for name in TuningOptions.__dataclass_fields__]
    return read(TuningOptions, words)


def _typed(value: object) -> str:
    """Return a value of the configuration as it is typed."""
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return "null" if value is None else str(value)


def answered(search: Search) -> tuple[Tuned, tuple[Plan, Plan]]:
    """Search, and judge what is chosen; return the answer, and the runs of default and chosen.

    Raises
    ------
    UnfinishedRunError : a run that could not be evaluated.
    """
    trials, config = search.carry_out(), search.default_plan.config
    people = len(prepared(search.default_plan).cells[0].fold.test)
    answer = promised(trials, search.goals, search.tuning, test_rows=people)
    runs = search.default_plan, plan(search.compose(answer.best.values))
    for end in Execution(runs, search.executor, drawing(config["figures"])).carry_out():
        if end.error:
            raise UnfinishedRunError(end)
    return judged(answer, search.goals, *(prepared(run) for run in runs)), runs


def dimension(space: Override, base: Mapping[str, Any]) -> Dimension:
    """Return the dimension that a word such as ``learner.max_depth=interval(2,8)`` means.

    Raises
    ------
    UserError : an empty interval, a logarithm of numbers not above 0, or fractional bounds of a
        whole number.
    """
    from hydra.core.override_parser.types import IntervalSweep

    name, text = space.get_key_element(), str(space.input_line).partition("=")[2]
    value = space.value()
    if not isinstance(value, IntervalSweep):
        values = tuple(dict.fromkeys(space.sweep_string_iterator()))
        if not values:
            raise UserError(f"'{name}={text}' has no values: give it some, such as {name}=1,2")
        return Dimension(name, text, values)
    low, high = float(value.start or 0), float(value.end or 0)
    if not np.isfinite([low, high]).all():
        raise UserError(f"'{name}={text}' is endless: an interval goes from a number to a number")
    if not low < high:
        raise UserError(
            f"'{name}={text}' is empty: an interval goes from a smaller number to a larger one"
        )
    log = "log" in (value.tags or set())
    if log and low <= 0:
        raise UserError(f"'{name}={text}' begins at {low:g}: a logarithm needs a number above 0")
    default: Any = base
    for key in name.split("."):
        default = default.get(key) if isinstance(default, Mapping) else None
    is_whole = isinstance(default, int) and not isinstance(default, bool)
    is_whole = is_whole or isinstance(value.start, int)
    if is_whole and not (low.is_integer() and high.is_integer()):
        raise UserError(f"'{name}={text}': {name} is a whole number, and so are its bounds")
    return Dimension(name, text, low=low, high=high, whole=is_whole, log=log)


def _show_trial(search: Search, number: int, trial: Trial) -> None:
    """Print a trial on standard error as it ends."""
    name = "untuned" if number == 0 else f"trial {number}"
    what = ", ".join(f"{key.rpartition('.')[2]}={_short(v)}" for key, v in trial.values.items())
    if trial.error:
        ended = f"has no value: {trial.error}"
    else:
        ended = ", ".join(
            f"{estimate.sign * estimate.value:.4f}" for estimate in trial.estimates(search.goals)
        )
        ended += f" (stopped after {trial.folds})" if trial.stopped else ""
    print(f"  {name}: {what}{': ' if what else ''}{ended}", file=sys.stderr, flush=True)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _planned(search: Search) -> int:
    """Print what would be done."""
    cells = len(search.default_plan.cells)
    print_line(
        f"at most {search.tuning.trials} trials and the untuned default, each of at most {cells} "
        "cells, which is one a repeat; what is surely worse is stopped before"
    )
    return 0


def _print(answer: Document, kind: str) -> None:
    if kind == "text":
        print_document(answer)
        return
    writers = {"json": to_json, "html": to_html, "markdown": to_markdown, "latex": to_latex}
    print(writers[kind](answer))


def document(answer: Tuned, search: Search, *, ids: tuple[str, str]) -> Document:
    """Return the answer of a study.

    Parameters
    ----------
    ids : of the run of the untuned default, and of that of the chosen trial.
    """
    run = prepared(search.default_plan)
    title = f"Tuning {run.name} by {run.protect}"
    lead = [Paragraph(_sentences(answer, ids))]
    lead += [
        Paragraph(_promise(*promise_and_test, answer))
        for promise_and_test in zip(answer.promises, answer.tested, strict=True)
    ]
    blocks = [_gains(answer), _values(answer), _trials(answer, search)]
    return Document(title, [Section("", blocks)], lead=lead, notes=_notes(answer, search))


def _sentences(answer: Tuned, ids: tuple[str, str]) -> str:
    """Return what was tried and what was chosen."""
    count = len(answer.trials) - 1
    failed = sum(bool(trial.error) for trial in answer.trials)
    stopped = sum(trial.stopped for trial in answer.trials)
    what = ", ".join(f"{key}={_short(value)}" for key, value in answer.best.values.items())
    remarks = [f"{stopped} stopped early as surely worse"] if stopped else []
    remarks += [f"{failed} without a value"] if failed else []
    tried = f"{count} trial{'s' * (count > 1)}{f' ({chr(44).join(remarks)})' if remarks else ''}"
    by = " plus ".join(f"the {promise.goal.label}" for promise in answer.promises)
    return (
        f"Of {tried}, {what} has the smallest {by.removeprefix('the ')} on the validation rows. "
        f"It is run {ids[1]}; the untuned default is run {ids[0]}."
    )


def _promise(promise: Promise, tested: Tested, answer: Tuned) -> str:
    """Return what is promised of one objective, and what the test rows show."""
    label, level = promise.goal.label, f"{answer.level:.0%}"
    verb = "larger" if promise.goal.sign < 0 else "smaller"
    return (
        f"{label[0].upper()}{label[1:]}: {number(promise.value)} on the validation rows, untuned "
        f"{number(promise.default)}. It was chosen because it looks good, which is partly luck: "
        f"corrected for that, its value is {interval(*promise.corrected)} ({level}), and it is "
        f"{verb} than untuned by {interval(*promise.expected)} on average over new people. On "
        f"{answer.test_rows} fresh rows, the gain should show as {interval(*promise.fresh)}. The "
        f"test rows, looked at once, show {signed(tested.gain)} ({interval(*tested.interval)}). "
        + _verdict(promise, tested)
    )


def _verdict(promise: Promise, tested: Tested) -> str:
    """Return what follows of one objective."""
    if tested.interval[0] > 0:
        return "Tuning helped."
    if tested.interval[1] < 0:
        return "Tuning did harm."
    if promise.expected[0] > 0:
        return "The validation rows show that tuning helped; the test rows alone do not."
    return "Whether tuning helped at all is not resolved."


def _gains(answer: Tuned) -> Table:
    columns = [Column("gain over untuned in"), Column("on validation rows", "number")]
    columns += [Column(f"{answer.level:.0%}, expected", "interval")]
    columns += [Column(f"on {answer.test_rows} fresh rows", "interval")]
    columns += [Column("on test rows", "number"), Column("its interval", "interval")]
    rows = [
        [
            promise.goal.label,
            promise.gain,
            promise.expected,
            promise.fresh,
            tested.gain,
            tested.interval,
        ]
        for promise, tested in zip(answer.promises, answer.tested, strict=True)
    ]
    caption = (
        "above 0 where tuning helped; the first two intervals are what validation promises, of the "
        "average over new people and of that many fresh rows, whose luck it counts; the last one "
        "is that of the test rows by themselves"
    )
    return Table(columns, rows, "what tuning gains", caption)


def _values(answer: Tuned) -> Table:
    columns = [Column("value of"), Column("untuned", "number"), Column("tuned", "number")]
    columns += [Column("by itself", "interval"), Column("corrected", "interval")]
    columns += [Column("untuned, test", "number"), Column("tuned, test", "number")]
    rows = [
        [
            promise.goal.label,
            promise.default,
            promise.value,
            promise.naive,
            promise.corrected,
            tested.default,
            tested.value,
        ]
        for promise, tested in zip(answer.promises, answer.tested, strict=True)
    ]
    caption = "the interval by itself would hold for a trial named before looking"
    return Table(columns, rows, "the values themselves", caption)


def _trials(answer: Tuned, search: Search) -> Table:
    """Return the table of the trials, the best first."""
    names = [dimension.name for dimension in search.space]
    columns = [Column("trial")] + [Column(name.rpartition(".")[2]) for name in names]
    columns += [Column(goal.label, "number") for goal in search.goals]
    columns += [Column("repeats", "count"), Column("standing")]
    scores = {
        place: np.array([estimate.value for estimate in trial.estimates(search.goals)])
        for place, trial in enumerate(answer.trials)
        if not trial.error
    }
    frontier = _frontier(scores) if len(search.goals) > 1 else set()
    rows = []
    for place in sorted(
        scores, key=lambda trial_place: float(search.tuning.score(scores[trial_place]))
    ):
        trial = answer.trials[place]
        values = [estimate.sign * estimate.value for estimate in trial.estimates(search.goals)]
        standing = (["untuned"] if place == 0 else []) + (
            ["chosen"] if place == answer.place else []
        )
        standing += ["frontier"] if place in frontier else []
        standing += ["stopped: surely worse"] if trial.stopped else []
        option_values = [_short(trial.values[name]) if trial.values else "" for name in names]
        rows.append([str(place), *option_values, *values, trial.folds, ", ".join(standing)])
    caption = "on validation rows; trial 0 is the untuned default"
    caption += "; frontier: no other trial looks better in every objective" if frontier else ""
    return Table(columns, rows, "the trials", caption, most=15)


def _frontier(scores: Mapping[int, Floats]) -> set[int]:
    """Return the places of the Pareto-optimal trials.

    Parameters
    ----------
    scores : place -> (M,) values, of which smaller ones are better.
    """
    return {
        place
        for place, own_scores in scores.items()
        if not any(
            (point <= own_scores).all() and (point < own_scores).any() for point in scores.values()
        )
    }


def _notes(answer: Tuned, search: Search) -> list[str]:
    """Return what a reader has to know beside."""
    notes = [f"{len(search.default_plan.cells)} repeats, each with validation rows of its own, and "
             "one test part that no trial was judged by"]  # fmt: skip
    limit = search.tuning.cpu_seconds
    if limit is not None:
        spent = sum(trial.seconds for trial in answer.trials)
        notes.append(f"{spent:.1f} of {limit:g} CPU seconds were spent on fits")
    if search.tried_all and len(search.trials) < search.tuning.trials:
        notes.append("the search ended early: there is no point of the space that was not tried")
    return notes
