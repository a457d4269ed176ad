"""Running what a command line asks for: one run or, with ``-m``, a sweep of them."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from fairbench.cli.budget import Resolving
from fairbench.cli.jobs import carry_out_jobs, figure_drawer, protect_from_collection
from fairbench.cli.output import explain_hydra_errors, print_failure, print_line
from fairbench.components import FOLDER
from fairbench.core.errors import UserError, did_you_mean
from fairbench.core.failures import failure
from fairbench.core.memory import check_address_space
from fairbench.core.processes import source_date

if TYPE_CHECKING:
    from fairbench.cli.command_line import CommandLine
    from fairbench.cli.summary import Outcome

INTERRUPTED = 130
# Options that only show something; Hydra handles them itself.
_HYDRA_SHOWS = (
    "--hydra-help", "-c", "--cfg", "--resolve", "-p", "--package", "-i", "--info",
    "-sc", "--shell-completion", "--version",
)  # fmt: skip


def run(arguments: Sequence[str], root: Path) -> int:
    """Do what ``python run.py ARGUMENTS`` does, and return the exit status.

    Parameters
    ----------
    arguments : words such as ``dataset=adult``, ``-m`` before those of a sweep.
    root : the folder that has ``conf``.

    Returns
    -------
    int
        0; 1 if something failed, 2 if it cannot be done as it was asked, 130 if interrupted.
    """
    set_up_process()
    from fairbench.cli.output import outputs

    with outputs() as written:
        return written.status(_run_words(arguments, root / "conf"))


def _run_words(arguments: Sequence[str], conf: Path) -> int:
    """Run a command line, and print in a line why it could not be done, if it could not."""
    try:
        check_address_space()
        source_date()
        with explain_hydra_errors(conf):
            return _run(arguments, conf)
    except KeyboardInterrupt:
        print("interrupted: finished cells are kept; the same command goes on", file=sys.stderr)
        return INTERRUPTED
    except BaseException as error:  # of a component, which may raise anything
        return print_failure(*failure(error))


def set_up_process() -> None:
    """Give this process and its workers one thread each, and the same components.

    Called before numpy is imported.
    """
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    # This package comes before the current folder on the path; Hydra raises errors as exceptions.
    source_folder = str(Path(__file__).resolve().parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join([source_folder, os.environ.get("PYTHONPATH", "")])
    os.environ.setdefault(FOLDER, os.getcwd())
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["HYDRA_FULL_ERROR"] = "1"
    # Importing allocates much and frees nothing: a tenth of the start is the collector looking.
    gc.set_threshold(1_000_000, 20, 100)
    sys.path[:] = [source_folder, *(path for path in sys.path if path not in ("", source_folder))]


def _run(arguments: Sequence[str], conf: Path) -> int:
    """Carry out what the words ask for (help, a run, a sweep, tuning); return the status."""
    from fairbench.cli.command_line import choices_in_brackets, command_lines, hydra_of

    options = [word for word in arguments if word.startswith("-")]
    if {*arguments} & {"-h", "--help", "help"}:
        from fairbench.cli.run_help import run_help

        print_line(run_help(arguments))
        return 0
    if set(options) & set(_HYDRA_SHOWS):
        return _show(arguments, conf)
    several = bool(set(options) & {"-m", "--multirun"})
    if unknown := set(options) - {"-m", "--multirun"}:
        raise _dashed(min(unknown), conf)
    resolving, words = Resolving.of([word for word in arguments if word not in options])
    several |= resolving is not None
    several |= any(len(choices_in_brackets(word, conf)) > 1 for word in words)
    with hydra_of(conf), ExitStack() as locks:
        lines = command_lines(words, conf, sweep=several)
        if resolving:
            from fairbench.cli.resolving import resolve

            return resolve(lines, resolving, locks)
        if lines[0].tuned:
            from fairbench.cli.tuning import tune

            if len(lines) > 1:
                raise UserError("a folder of sweeps cannot be tuned: name one experiment")
            return tune(lines[0], locks)
        return _sweep(lines, words, locks) if several else _single(lines[0], locks)


def _dashed(word: str, conf: Path) -> UserError:
    """Return the error for a word that begins with a dash and is no option of Hydra's."""
    from fairbench.cli.choices import options_of_run

    name = word.lstrip("-").partition("=")[0].replace("-", "_")
    hint = did_you_mean(name, options_of_run(conf), "{}=VALUE") or "--help lists them"
    return UserError(f"unknown option '{word}': options of a run have no dashes; {hint}")


def _show(arguments: Sequence[str], conf: Path) -> int:
    """Let Hydra show its help, or a composed configuration."""
    import hydra

    from fairbench.cli.command_line import own_folders, prefer_own_launchers

    prefer_own_launchers(conf)
    sys.argv = ["run.py", *own_folders(), *arguments]
    path = str(conf.resolve())
    try:
        hydra.main(version_base="1.3", config_path=path, config_name="config")(lambda cfg: None)()
    except SystemExit as ended:  # its way to end after --version
        return int(ended.code or 0)
    return 0


def _single(line: CommandLine, locks: ExitStack) -> int:
    """Plan a single run, carry it out and print its metrics; return the status."""
    from fairbench.cli.progress import SweepProgress
    from fairbench.cli.summary import log_runs, show_plan
    from fairbench.experiments.execute import Execution, plan_run, prepared
    from fairbench.experiments.executors import processes
    from fairbench.reporting.document.terminal import print_document
    from fairbench.reporting.runs import document_of

    config = line.compose(line.jobs[0])
    protect_from_collection([config["results"]], locks, make=not config["plan"])
    planned = plan_run(config)
    if config["plan"]:
        show_plan([planned])
        return 0
    executor = processes(config["n_jobs"], config["timeout_min"])
    with SweepProgress(planned.name) as progress:
        draw = figure_drawer(config["figures"])
        execution = Execution([planned], executor, draw, progress.cell)
        progress.add_planned(execution)
        (end,) = execution.carry_out()
    if end.error:
        return print_failure(end.error, end.trace)
    ready = prepared(planned)
    print_document(document_of(ready.folder))
    did = end.describe(progress.seconds)
    print_line(f"{did}; files: {ready.folder.path}; {log_runs([planned], config['tracking'])}")
    return 0


def _sweep(lines: Sequence[CommandLine], words: Sequence[str], locks: ExitStack) -> int:
    """Plan and carry out all jobs, and print how each ended.

    Several lines are the sweeps of a folder of experiments; they share their settings.

    Parameters
    ----------
    words : the words of the command.
    """
    from fairbench.cli.progress import SweepProgress
    from fairbench.cli.summary import show_planned_sweep, sum_up, varied_names

    settings = lines[0].settings()
    outcomes: list[Outcome] = []
    every = [(line, job) for line in lines for job in line.jobs]
    with SweepProgress(jobs=len(every)) as progress:
        # All are composed first: a wrong name refuses a sweep before hours are spent on it.
        jobs = [(job, line.compose(job)) for line, job in progress.show_composing(every)]
        folders = [config["results"] for _, config in jobs]
        protect_from_collection(folders, locks, make=not jobs[0][1]["plan"])
        size = settings.batch or len(jobs)
        varied = varied_names([job for job, _ in jobs])
        for start in range(0, len(jobs), size):
            part = jobs[start : start + size]
            whole = len(part) == len(jobs)
            outcomes += carry_out_jobs(part, settings, progress, varied, whole=whole)
    if jobs[0][1]["plan"]:
        return show_planned_sweep(outcomes)
    return sum_up(outcomes, jobs[0][1], settings, words)
