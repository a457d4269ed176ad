"""Tune options on validation rows, and say what that truly gains.

Words such as dataset=german learner=xgboost choose what is tuned, as for a run. An option with an
interval or several values is searched: "learner.max_depth=interval(2,8)",
"learner.learning_rate=tag(log,interval(0.01,1))", learner.rounds=10,50,100. Quote them, or the
shell reads the brackets.

The split is split=tuning by default: one test part, and five draws of validation rows from the
others. Trials are judged on the validation rows alone. What is chosen, and the untuned default, are
then judged on the test rows, once, as ordinary runs. The best of many trials looks better than it
is; what is printed is corrected for that. A trial is stopped when another is better in every
objective by more than three standard errors on the rows that both have predicted. The same command
goes on where it was stopped, with more trials= as well.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from fairbench.cli.command import Results, command, options_of_run, read
from fairbench.cli.command_line import CommandLine, value_at
from fairbench.cli.jobs import figure_drawer, log_runs, protect_from_collection
from fairbench.cli.output import print_line
from fairbench.cli.verbs.run import run_words
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.options import hydra_word, option, value_word
from fairbench.core.text import fixed, said
from fairbench.experiments.configuration import Config
from fairbench.experiments.execute import prepared
from fairbench.results.record import TUNING
from fairbench_search.alternative import options_shown, tuned
from fairbench_search.goals import Tuning, refusal
from fairbench_search.pages import print_as, tuning_document
from fairbench_search.tuning import Dimension, Family, Search, Trial

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override


MADE_FOR = "0.1"


@dataclass(frozen=True)
class _TuneOptions(Results, Tuning):
    """What is tuned, and how.

    Attributes
    ----------
    words : What is run and what is tuned, as for fairbench run.
    """

    words: tuple[tuple[str, str], ...] = option(
        (),
        argument="NAME=VALUE",
        pairs=lambda name: True,
        needed="nothing to tune is named, such as dataset=german learner=xgboost "
        "'learner.max_depth=interval(2,8)'",
    )


def _tune(options: _TuneOptions) -> int:
    """Tune: the same as ``run.py -m hydra/sweeper=tune``.

    Examples
    --------
    fairbench tune dataset=german learner=xgboost 'learner.max_depth=interval(2,8)'
    fairbench tune dataset=german intervention=reweighing 'intervention.strength=0,0.5,1'
    fairbench tune dataset=adult learner=lightgbm learner.rounds=20,50,100 cpu_seconds=600
    """
    tuning_options = tuple(Tuning.__dataclass_fields__)
    check_run_words(dict(options.words), tuning_options)
    values = {f"hydra.sweeper.{name}": getattr(options, name) for name in tuning_options}
    values["results"] = str(options.results)
    own = [f"{name}={hydra_word(value)}" for name, value in values.items()]
    words = [f"{name}={text}" for name, text in options.words]
    return run_words(["-m", "hydra/sweeper=tune", *words, *own])


def check_run_words(names: Iterable[str], own: Sequence[str]) -> None:
    """Refuse words of a command that are no option of it, nor of a run.

    Parameters
    ----------
    own : the options of the command.

    Raises
    ------
    UserError : an unknown name; the message has the nearest.
    """
    valid = options_of_run()
    for name in names:
        group = re.split("[./]", name)[0]
        if group not in (*valid, "hydra"):
            raise unknown_name("option", group, [*own, *valid])


def tune(line: CommandLine, locks: ExitStack) -> int:
    """Search, judge what is chosen on test rows, print the answer; return the exit status."""
    search = search_of(line, locks)
    options = search.tuning
    search.check()
    if search.default_plan.config["plan"]:
        told = {"trials": search.tuning.trials, "cells": len(search.default_plan.cells)}
        print_line(said("fairbench_search", "plan_of_tuning", **told))
        return 0
    if options.format == "text":
        search.show = showing(search, options_shown)
    answer, runs = tuned(search, figure_drawer(search.default_plan.config))
    default, best = (prepared(run) for run in runs)
    print_as(tuning_document(answer, ids=(default.id, best.id)), options.format)
    if options.format == "text":
        logged = log_runs(runs, search.default_plan.config["tracking"])
        paths = {"default": default.folder.path, "best": best.folder.path}
        print_line(said("fairbench_search", "end_of_tuning", search=search, logged=logged, **paths))
    return 0


def search_of(line: CommandLine, locks: ExitStack) -> Search:
    """Return the search that a command line asks for."""
    # The sweeper's options are read as those of the verb are: with the same refusals.
    values = line.of_hydra("sweeper")
    words = [f"{name}={value_word(values[name])}" for name in Tuning.__dataclass_fields__]
    options = read(Tuning, words)
    (fixed,) = line.jobs
    if not any(word.startswith("purpose=") for word in fixed):
        fixed = (*fixed, f"purpose={TUNING}")
    base = line.compose(fixed)
    protect_from_collection([base["results"]], locks, make=not base["plan"])
    family = Family({}, {}, tuple(dimension(space, base) for space in line.spaces.values()))

    def compose(values: Mapping[str, Any]) -> Config:
        return line.compose([*fixed, *typed(values)])

    return Search(options, [family], compose, line.executor(base))


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
        raise refusal("empty_interval", name=name, text=text)
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


def showing(
    search: Search, label: Callable[[Mapping[str, Any]], str]
) -> Callable[[int, Trial], None]:
    """Return the function that prints on standard error how each trial of a search ended.

    Parameters
    ----------
    label : returns the values of a trial's options in words.
    """

    def show(number: int, trial: Trial) -> None:
        """Print how a trial ended: its name, and its objectives if it has any."""
        default, kind = search.names
        name = f"{kind} {number}: {label(trial.values)}" if number else default
        if trial.error:
            told = f"has no value: {trial.error}"
        else:
            ends = zip(search.goals, trial.estimates(search.goals), strict=True)
            told = ", ".join(f"{goal.label} {fixed(goal.sign * of.value, 4)}" for goal, of in ends)
            told += f" (stopped after {trial.folds})" if trial.stopped else ""
        print(f"  {name}: {told}", file=sys.stderr, flush=True)

    return show


COMMAND = command(_tune)
