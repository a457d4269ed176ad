"""One job: a composed configuration, run alone or as part of a sweep."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from fairbench.cli.launching import end_with_launcher, processes
from fairbench.cli.log_runs import log_runs
from fairbench.cli.outcome import Outcome
from fairbench.cli.plan import show_plan
from fairbench.cli.progress import JobProgress, counter
from fairbench.cli.say import say, say_error
from fairbench.core.errors import IncompatibleError, UserError

USER_ERROR = 2


def job(cfg: DictConfig) -> None:
    """Run one composed configuration, alone or as a job of a sweep."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    hydra = HydraConfig.get()
    if hydra.mode is RunMode.MULTIRUN:
        _sweep_job(cfg, Path(hydra.runtime.output_dir))
        return
    try:
        _single(cfg)
    except UserError as error:
        # Leaving Hydra by SystemExit keeps it from printing a line of its own.
        say_error(error)
        raise SystemExit(USER_ERROR) from None


def _single(cfg: DictConfig) -> None:
    from fairbench.experiments import pipeline
    from fairbench.reporting.document.terminal import print_document
    from fairbench.reporting.runs import run_document

    if cfg.plan:
        show_plan([_plan(cfg)])
        return
    run = pipeline.prepare(cfg)
    with counter(run.name, len(run.cells)) as done:
        result = _execute(run, cfg, n_jobs=cfg.n_jobs, done=done)
    print_document(run_document(result.summary, run.name, run.protect))
    where = log_runs([run.folder.path], cfg.tracking)
    say(f"{_did(result)}; files: {run.folder.path}; {where}")


def _execute(run: Any, cfg: DictConfig, *, n_jobs: int, done: Callable[[bool], None]) -> Any:
    from fairbench.experiments import pipeline

    draw = _draw_figures if cfg.figures else None
    return pipeline.execute(run, n_jobs=n_jobs, resume=cfg.resume, draw=draw, done=done)


def _draw_figures(*arguments: Any) -> None:
    from fairbench.reporting.figures import draw_figures  # half a second, which most runs save

    draw_figures(*arguments)


def _did(result: Any) -> str:
    cells = len(result.run.cells)
    if result.computed == 0:
        return f"nothing to fit: all {cells} cells were in the store ({result.seconds:.1f} s)"
    return f"fitted {result.computed} of {cells} cells in {result.seconds:.1f} s"


def _sweep_job(cfg: DictConfig, folder: Path) -> None:
    """Run one job; whatever happens becomes an outcome, so the others go on."""
    from hydra.core.hydra_config import HydraConfig

    from fairbench.experiments import build

    end_with_launcher()
    name = build.run_name(build.choices(cfg))
    try:
        outcome = _plan(cfg) if cfg.plan else _finish(cfg, folder)
    except IncompatibleError as error:
        outcome = Outcome("skipped", name, message=str(error))
    except UserError as error:
        outcome = Outcome("failed", name, message=str(error))
    except Exception:  # a sweep outlives any one of its jobs
        say(traceback.format_exc())
        outcome = Outcome("failed", name, message=traceback.format_exc().splitlines()[-1])
    outcome = replace(outcome, overrides=tuple(HydraConfig.get().overrides.task))
    outcome.write(folder)
    if not (cfg.plan or sys.stderr.isatty()):  # on a terminal, who watches the sweep says it
        say(f"  {outcome.line}")


def _finish(cfg: DictConfig, folder: Path) -> Outcome:
    from hydra.core.hydra_config import HydraConfig

    from fairbench.experiments import pipeline

    progress = JobProgress(folder)
    run = pipeline.prepare(cfg)
    progress.prepared(len(run.cells))
    n_jobs = processes(cfg.n_jobs, HydraConfig.get().launcher)
    result = _execute(run, cfg, n_jobs=n_jobs, done=progress.cell)
    return Outcome(
        "finished",
        run.name,
        run.id,
        _did(result),
        result.computed,
        result.seconds,
        cells={cell.id: True for cell in run.cells},
    )


def _plan(cfg: DictConfig) -> Outcome:
    from fairbench.experiments import pipeline

    run = pipeline.prepare(cfg)
    cached = run.cached()
    estimate = pipeline.estimated_seconds(run, cached.count(False))
    cells = {cell.id: there for cell, there in zip(run.cells, cached, strict=True)}
    return Outcome("planned", run.name, run.id, estimate=estimate, cells=cells)
