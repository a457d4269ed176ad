"""Tuning as a command line asks for it: its space, its progress, and the answer that is printed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from fairbench.cli.jobs import figure_drawer, protect_from_collection
from fairbench.cli.options import read
from fairbench.cli.output import print_as, print_failure, print_line
from fairbench.cli.summary import log_runs
from fairbench.comparison.tuning_result import TuningResult, add_test_results, estimate_promise
from fairbench.core.errors import UserError
from fairbench.core.formats import fixed
from fairbench.experiments.execute import Execution, Plan, RunEnd, plan_run, prepared
from fairbench.experiments.executors import executor
from fairbench.experiments.tuning import Dimension, Search
from fairbench.experiments.tuning_settings import Tuning, TuningOptions
from fairbench.experiments.tuning_trials import Trial
from fairbench.reporting.tuning import tuning_document, value_text
from fairbench.results.record import TUNING

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

    from fairbench.cli.command_line import CommandLine


def tune(line: CommandLine, locks: ExitStack) -> int:
    """Search, judge what is chosen on test rows, print the answer; return the exit status."""
    search, options = search_of(line, locks)
    search.check()
    if search.default_plan.config["plan"]:
        return _show_plan(search)
    if options.format == "text":
        search.show = partial(_show_trial, search)
    try:
        answer, runs = carry_out_search(search)
    except UnfinishedRunError as error:
        return print_failure(error.end.error, error.end.trace)
    default, best = (prepared(run) for run in runs)
    print_as(tuning_document(answer, search, ids=(default.id, best.id)), options.format)
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


def search_of(line: CommandLine, locks: ExitStack) -> tuple[Search, TuningOptions]:
    """Return the search that a command line asks for, and how its answer is printed."""
    options = _options(line.sweeper_options())
    (fixed,) = line.jobs
    if not any(word.startswith("purpose=") for word in fixed):
        fixed = (*fixed, f"purpose={TUNING}")
    base = line.compose(fixed)
    protect_from_collection([base["results"]], locks, make=not base["plan"])
    search = Search(
        Tuning(*(getattr(options, name) for name in Tuning.__dataclass_fields__)),
        [dimension(space, base) for space in line.spaces.values()],
        lambda values: line.compose([*fixed, *(f"{k}={v}" for k, v in values.items())]),
        executor(line.settings().launcher, base["n_jobs"], base["timeout_min"]),
    )
    return search, options


def _options(values: Mapping[str, Any]) -> TuningOptions:
    """Return the sweeper's options, read as those of the verb are: with the same refusals."""
    words = [f"{name}={_as_word(values[name])}" for name in TuningOptions.__dataclass_fields__]
    return read(TuningOptions, words)


def _as_word(value: object) -> str:
    """Return a value of the configuration as it is typed."""
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return "null" if value is None else str(value)


def carry_out_search(search: Search) -> tuple[TuningResult, tuple[Plan, Plan]]:
    """Search, and judge what is chosen; return the answer, and the runs of default and chosen.

    Raises
    ------
    UnfinishedRunError : a run that could not be evaluated.
    """
    trials = search.carry_out()
    config = search.default_plan.config
    people = len(prepared(search.default_plan).cells[0].fold.test)
    answer = estimate_promise(trials, search.goals, search.tuning, test_rows=people)
    runs = search.default_plan, plan_run(search.compose(answer.best.values))
    for end in Execution(runs, search.executor, figure_drawer(config["figures"])).carry_out():
        if end.error:
            raise UnfinishedRunError(end)
    return add_test_results(answer, search.goals, *(prepared(run) for run in runs)), runs


def dimension(space: Override, base: Mapping[str, Any]) -> Dimension:
    """Return the dimension that a word such as ``learner.max_depth=interval(2,8)`` tunes.

    Raises
    ------
    UserError : an empty interval, a logarithm of what is not above 0, or bounds of a whole number
        that are none.
    """
    from hydra.core.override_parser.types import IntervalSweep

    name = space.get_key_element()
    text = str(space.input_line).partition("=")[2]
    value = space.value()
    if not isinstance(value, IntervalSweep):
        values = tuple(dict.fromkeys(space.sweep_string_iterator()))
        if not values:
            raise UserError(f"'{name}={text}' has no values: give it some, such as {name}=1,2")
        return Dimension(name, text, values)
    low, high = float(value.start or 0), float(value.end or 0)
    if not (isfinite(low) and isfinite(high)):
        raise UserError(f"'{name}={text}' is endless: an interval goes from a number to a number")
    if not low < high:
        raise UserError(
            f"'{name}={text}' is empty: an interval goes from a smaller number to a larger one"
        )
    log = "log" in (value.tags or set())
    if log and low <= 0:
        raise UserError(f"'{name}={text}' begins at {low:g}: a logarithm needs a number above 0")
    base_value: Any = base
    for key in name.split("."):
        base_value = base_value.get(key) if isinstance(base_value, Mapping) else None
    whole = isinstance(base_value, int) and not isinstance(base_value, bool)
    whole = whole or isinstance(value.start, int)
    if whole and not (low.is_integer() and high.is_integer()):
        raise UserError(f"'{name}={text}': {name} is a whole number, and so are its bounds")
    return Dimension(name, text, low=low, high=high, whole=whole, log=log)


def _show_trial(search: Search, number: int, trial: Trial) -> None:
    """Print a trial on standard error as it ends."""
    name = "untuned" if number == 0 else f"trial {number}"
    values_text = ", ".join(
        f"{key.rpartition('.')[2]}={value_text(v)}" for key, v in trial.values.items()
    )
    if trial.error:
        ended = f"has no value: {trial.error}"
    else:
        ended = ", ".join(
            fixed(estimate.sign * estimate.value, 4) for estimate in trial.estimates(search.goals)
        )
        ended += f" (stopped after {trial.folds})" if trial.stopped else ""
    print(
        f"  {name}: {values_text}{': ' if values_text else ''}{ended}", file=sys.stderr, flush=True
    )


def _show_plan(search: Search) -> int:
    """Print what would be done."""
    cells = len(search.default_plan.cells)
    print_line(
        f"at most {search.tuning.trials} trials and the untuned default, each of at most {cells} "
        "cells, which is one a repeat; what is surely worse is stopped before"
    )
    return 0
