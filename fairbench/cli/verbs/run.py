"""Run one configuration, or with -m a sweep of them: fit, evaluate, store and log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeAlias

from fairbench.cli import output
from fairbench.components import CHECKOUT, FOLDER
from fairbench.core.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from fairbench.cli.command_line import CommandLine
    from fairbench.results.runs import Run


def run(words: Sequence[str] = ()) -> Run:
    """Fit, evaluate and store one configuration, and return the finished run.

    The same words give the same run, from the store if it is there already. Like
    ``fairbench run``, it needs the part `benchmark` of the package.

    Parameters
    ----------
    words : what follows ``fairbench run`` on a command line, such as ``["dataset=adult",
        "method=ensemble"]``; ``results=FOLDER`` says where the run is kept.

    Returns
    -------
    The run, with its ``metrics`` (in the columns of `Catalogue.metrics`), ``predictions()``,
    ``summary()`` and ``path``.

    Raises
    ------
    UserError : a name or an option that is not there, data that are missing, or a combination
        that cannot work; the message says what would.
    RuntimeError : a component failed; the message holds its traceback.
    """
    from fairbench.cli.command_line import CommandLine, hydra_of
    from fairbench.cli.jobs import figure_drawer, log_runs, protect_from_collection
    from fairbench.experiments.execute import carry_out, processes
    from fairbench.results.runs import Run

    if isinstance(words, str):
        raise UserError(f"words is a text: give a list, such as {words.split()!r}")
    _set_up_workers()
    with hydra_of(), ExitStack() as locks:
        line = CommandLine(list(words), sweep=False)
        config = line.compose(line.jobs[0])
        if config["plan"]:
            raise UserError("plan=true returns no run: leave it out, or use the command line")
        protect_from_collection([config["results"]], locks, make=True)
        executor = processes(config["n_jobs"], config["timeout_min"])
        draw = figure_drawer(config)
        planned = carry_out(config, executor=executor, draw=draw).plan
        log_runs([planned], config["tracking"])
    return Run(planned.store.run_path(planned.id))


# Options that only show something; Hydra handles them itself.
_HYDRA_SHOWS = ("-c", "--cfg", "--resolve", "-p", "--package", "-i", "--info", "--version")


CarryOut: TypeAlias = "Callable[[Sequence[CommandLine], ExitStack], int]"


def run_words(arguments: Sequence[str], carry_out: CarryOut | None = None) -> int:
    """Carry out what words ask for: a run, a sweep, tuning or help; return the exit status.

    Parameters
    ----------
    arguments : words such as ``dataset=adult``, ``-m`` before those of a sweep.
    carry_out : what carries out the jobs of the command lines, under the locks that it takes, in
        place of fitting each of them once.

    Raises
    ------
    UserError : it cannot be done as it was asked.
    """
    set_up_process()
    options = [word for word in arguments if word.startswith("-")]
    if {*arguments} & {"-h", "--help", "help"}:
        from fairbench.cli.run_help import run_help

        output.print_line(run_help(arguments))
        return 0
    from fairbench.cli import command_line as composing
    from fairbench.cli.command import options_of_run

    if set(options) & set(_HYDRA_SHOWS):
        return composing.show_composed(arguments)
    several = bool(set(options) & {"-m", "--multirun"})
    if unknown := set(options) - {"-m", "--multirun"}:
        name = min(unknown).lstrip("-").partition("=")[0].replace("-", "_")
        hint = did_you_mean(name, options_of_run(), "{}=VALUE") or "--help lists them"
        raise UserError(f"unknown option '{min(unknown)}': options of a run have no dashes; {hint}")
    words = [word for word in arguments if word not in options]
    several |= carry_out is not None
    several |= any(len(composing.choices_in_brackets(word)) > 1 for word in words)
    with composing.hydra_of(), ExitStack() as locks:
        lines = composing.command_lines(words, sweep=several)
        if carry_out:
            return carry_out(lines, locks)
        if lines[0].tuned:
            from fairbench.cli.extensions import verb_module

            if len(lines) > 1:
                raise UserError("a folder of sweeps cannot be tuned: name one experiment")
            status: int = verb_module("tune").tune(lines[0], locks)
            return status
        from fairbench.cli import jobs

        return jobs.run_sweep(lines, words, locks) if several else jobs.run_single(lines[0], locks)


main = run_words  # the verb, whose words Hydra reads


def set_up_process() -> None:
    """Give this process and its workers one thread each, and the same components.

    Called before numpy is imported.
    """
    output.set_up_threads()
    source_folder = _set_up_workers()  # which comes before the current folder on the path
    os.environ["PYTHONSAFEPATH"] = "1"
    sys.path[:] = [source_folder, *(path for path in sys.path if path not in ("", source_folder))]


def _set_up_workers() -> str:
    """Let workers find this package and components, and Hydra raise its errors as exceptions.

    Returns
    -------
    The folder that the package lies in.
    """
    source_folder = str(CHECKOUT)
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if before[0] != source_folder:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [source_folder, *before]))
    os.environ.setdefault(FOLDER, os.getcwd())
    os.environ["HYDRA_FULL_ERROR"] = "1"
    return source_folder
