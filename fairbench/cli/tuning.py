"""Tuning as a command line asks for it: its space, its progress, and the answer that is printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any

from fairbench.cli.command import read
from fairbench.cli.command_line import CommandLine, value_at
from fairbench.cli.jobs import figure_drawer, log_runs, protect_from_collection
from fairbench.cli.output import print_as, print_line
from fairbench.comparison.alternative import TuningResult, add_test_results, estimate_promise
from fairbench.core.errors import UserError
from fairbench.core.options import value_word
from fairbench.core.text import fixed, said
from fairbench.evaluation.tuning_goals import TuningOptions
from fairbench.experiments.execute import Execution, Plan, plan_run, prepared
from fairbench.experiments.tuning import Dimension, Family, Search, Trial
from fairbench.reporting.searches import tuning_document, value_text
from fairbench.results.record import TUNING

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


def tune(line: CommandLine, locks: ExitStack) -> int:
    """Search, judge what is chosen on test rows, print the answer; return the exit status."""
    search, options = search_of(line, locks)
    search.check()
    if search.default_plan.config["plan"]:
        cells = len(search.default_plan.cells)
        print_line(said("cli", "plan_of_tuning", trials=search.tuning.trials, cells=cells))
        return 0
    if options.format == "text":
        search.show = partial(_show_trial, search)
    answer, runs = carry_out_search(search)
    default, best = (prepared(run) for run in runs)
    print_as(tuning_document(answer, search, ids=(default.id, best.id)), options.format)
    if options.format == "text":
        logged = log_runs(runs, search.default_plan.config["tracking"])
        paths = {"default": default.folder.path, "best": best.folder.path}
        print_line(said("cli", "end_of_tuning", search=search, logged=logged, **paths))
    return 0


def search_of(line: CommandLine, locks: ExitStack) -> tuple[Search, TuningOptions]:
    """Return the search that a command line asks for, and how its answer is printed."""
    # The sweeper's options are read as those of the verb are: with the same refusals.
    values = line.of_hydra("sweeper")
    words = [f"{name}={value_word(values[name])}" for name in TuningOptions.__dataclass_fields__]
    options = read(TuningOptions, words)
    (fixed,) = line.jobs
    if not any(word.startswith("purpose=") for word in fixed):
        fixed = (*fixed, f"purpose={TUNING}")
    base = line.compose(fixed)
    protect_from_collection([base["results"]], locks, make=not base["plan"])
    search = Search(
        options,
        [Family({}, {}, tuple(dimension(space, base) for space in line.spaces.values()))],
        lambda values: line.compose([*fixed, *typed(values)]),
        line.executor(base),
    )
    return search, options


def carry_out_search(search: Search) -> tuple[TuningResult, tuple[Plan, Plan]]:
    """Search, and judge what is chosen; return the answer, and the runs of default and chosen."""
    trials = search.carry_out()
    people = len(prepared(search.default_plan).cells[0].fold.test)
    answer = estimate_promise(trials, search.goals, search.tuning, test_rows=people)
    runs = judged(search, answer.best)
    return add_test_results(answer, *map(prepared, runs)), runs


def judged(search: Search, chosen: Trial) -> tuple[Plan, Plan]:
    """Carry out the runs of the default and of the chosen trial, on all rows, and return them."""
    runs = search.default_plan, plan_run(search.compose(chosen.values))
    drawer = figure_drawer(search.default_plan.config)
    for end in Execution(runs, search.executor, drawer).carry_out():
        end.checked()
    return runs


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
        raise UserError(said("cli", "empty_interval", name=name, text=text))
    log = "log" in (value.tags or set())
    if log and low <= 0:
        raise UserError(f"'{name}={text}' begins at {low:g}: a logarithm needs a number above 0")
    base_value = value_at(base, name)
    whole = isinstance(base_value, int) and not isinstance(base_value, bool)
    whole = whole or isinstance(value.start, int)
    if whole and not (low.is_integer() and high.is_integer()):
        raise UserError(f"'{name}={text}': {name} is a whole number, and so are its bounds")
    return Dimension(name, text, low=low, high=high, whole=whole, log=log)


def typed(values: Mapping[str, Any]) -> list[str]:
    """Return values by name as the words of a command line."""
    return [f"{name}={value}" for name, value in values.items()]


def options_shown(values: Mapping[str, Any]) -> str:
    """Return the options of a trial as it is listed, each by the last part of its name."""
    return ", ".join(
        f"{name.rpartition('.')[2]}={value_text(value)}" for name, value in values.items()
    )


def show_end(name: str, trial: Trial, ended: Callable[[], str]) -> None:
    """Print how a trial ended, on standard error: what its name is, and its values if it has any.

    Parameters
    ----------
    ended : returns its values in words.
    """
    told = f"has no value: {trial.error}" if trial.error else ended()
    print(f"  {name}: {told}", file=sys.stderr, flush=True)


def _show_trial(search: Search, number: int, trial: Trial) -> None:
    """Print a trial as it ends."""

    def ended() -> str:
        numbers = (one.sign * one.value for one in trial.estimates(search.goals))
        stopped = f" (stopped after {trial.folds})" if trial.stopped else ""
        return f"{', '.join(fixed(number, 4) for number in numbers)}{stopped}"

    show_end(
        f"trial {number}: {options_shown(trial.values)}" if number else "untuned", trial, ended
    )
