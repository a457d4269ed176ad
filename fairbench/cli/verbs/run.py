"""Run one configuration, or with -m a sweep of them: fit, evaluate, store and log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from fairbench.cli import run as running
from fairbench.cli.command import components_folder
from fairbench.core.errors import UserError

if TYPE_CHECKING:
    from fairbench.results.runs import Run


def main(words: Sequence[str]) -> int:
    """Run what the words configure; Hydra reads them."""
    return running.run(words, components_folder())


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
    conf = components_folder() / "conf"
    running.set_up_workers()
    with hydra_of(conf), ExitStack() as locks:
        line = CommandLine(list(words), conf, sweep=False)
        config = line.compose(line.jobs[0])
        if config["plan"]:
            raise UserError("plan=true returns no run: leave it out, or use the command line")
        protect_from_collection([config["results"]], locks, make=True)
        executor = processes(config["n_jobs"], config["timeout_min"])
        draw = figure_drawer(config)
        planned = carry_out(config, executor=executor, draw=draw).plan
        log_runs([planned], config["tracking"])
    return Run(planned.store.run_path(planned.id))
