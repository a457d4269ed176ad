"""Jobs of a command line: planned, carried out, and held while they last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.core.errors import IncompatibleError, UserError
from fairbench.core.failures import failure

if TYPE_CHECKING:
    from fairbench.cli.command_line import SweepSettings
    from fairbench.cli.progress import SweepProgress
    from fairbench.cli.summary import Outcome
    from fairbench.experiments.execute import Plan

Job = tuple[tuple[str, ...], dict[str, Any]]  # the words that make it, and its configuration


def protect_from_collection(folders: Iterable[str], locks: ExitStack, *, make: bool) -> None:
    """Protect cells and runs from garbage collection until these runs have ended.

    Parameters
    ----------
    make : whether missing folders are made; a plan makes none.
    """
    from fairbench.core.locks import using
    from fairbench.results.packs import refuse_pack

    for folder in map(Path, dict.fromkeys(folders)):
        refuse_pack(folder)
        locks.enter_context(using(folder, make=make))


def figure_drawer(wanted: bool) -> Any:
    """Return the function that draws the figures of a run; None if none are wanted."""
    return draw_figures if wanted else None


def draw_figures(*arguments: Any) -> None:
    """Draw the figures of a run; matplotlib takes half a second, which most runs save."""
    from fairbench.reporting import figures

    figures.draw_figures(*arguments)


def carry_out_jobs(
    jobs: Sequence[Job],
    settings: SweepSettings,
    progress: SweepProgress,
    varied: Sequence[str],
    *,
    whole: bool,
) -> list[Outcome]:
    """Plan jobs and carry them out; if one fails, the others go on.

    Parameters
    ----------
    whole : whether these are all jobs of the sweep.
    """
    from fairbench.cli.summary import Outcome
    from fairbench.experiments.execute import Execution
    from fairbench.experiments.executors import executor

    config = jobs[0][1]
    planned = [_plan_job(job, varied) for job in jobs]
    if whole:
        _refuse_common_failure(planned)
    for outcome in planned:
        progress.outcome(outcome)
    if config["plan"]:
        return planned
    execution = Execution(
        [outcome.plan for outcome in planned if outcome.plan],
        executor(settings.launcher, config["n_jobs"], config["timeout_min"]),
        figure_drawer(config["figures"]),
        progress.cell,
        lambda end: progress.outcome(Outcome.of(end)),
    )
    progress.add_planned(execution)
    ends = iter(execution.carry_out())
    return [
        Outcome.of(next(ends), outcome.words) if outcome.plan else outcome for outcome in planned
    ]


def _refuse_common_failure(planned: Sequence[Outcome]) -> None:
    """Refuse a sweep if all of its jobs fail for the same reason, with one message.

    Raises
    ------
    UserError : the reason.
    """
    reasons = {(outcome.status, outcome.message, outcome.trace) for outcome in planned}
    (status, message, trace), *other_reasons = reasons
    if len(planned) > 1 and not other_reasons and status == "failed" and not trace:
        raise UserError(f"all {len(planned)} jobs of this sweep: {message}")


def _plan_job(job: Job, varied: Sequence[str]) -> Outcome:
    """Return the outcome of planning a job: planned, skipped or failed.

    Parameters
    ----------
    varied : the options in which the jobs of the sweep differ; they are part of its name.
    """
    from fairbench.cli.summary import Outcome, job_name
    from fairbench.experiments.execute import plan_run
    from fairbench.results.record import run_name

    words, config = job
    name = job_name(run_name(config["hydra"]["runtime"]["choices"]), words, varied)
    try:
        planned: Plan = plan_run(config)
        named_plan = replace(planned, name=job_name(planned.name, words, varied))
        return Outcome("planned", named_plan.name, words, plan=named_plan)
    except IncompatibleError as error:
        return Outcome("skipped", name, words, message=str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # one failing job must not end a sweep
        return Outcome("failed", name, words, *failure(error))
