"""The command line: running a job, showing progress and results, and turning errors into words."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from rich.console import Console
from rich.markup import escape

from fairbench.errors import IncompatibleError, UserError, unknown_name
from fairbench.launching import end_with_launcher, guard_launchers, processes
from fairbench.progress import JobProgress, counter
from fairbench.rerun import commands
from fairbench.sweep import Outcome, compose_once

USER_ERROR, FAILURE = 2, 1
_console = Console(width=None if sys.stdout.isatty() else 100, soft_wrap=False)


def say(text: str) -> None:
    """Print a line as it is, wrapped nowhere."""
    print(text, flush=True)


def say_error(error: Exception | str) -> None:
    """Print why something could not be done."""
    print(f"error: {error}", file=sys.stderr, flush=True)


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
    from fairbench import pipeline
    from fairbench.report.terminal import metrics_table

    if cfg.plan:
        show_plan([_plan(cfg)])
        return
    run = pipeline.prepare(cfg)
    with counter(run.name, len(run.cells)) as done:
        result = _execute(run, cfg, n_jobs=cfg.n_jobs, done=done)
    _console.print(metrics_table(result.summary, run.name, run.protect))
    where = _track([run.folder.path], cfg.tracking)
    say(f"{_did(result)}; files: {run.folder.path}; {where}")


def _execute(run: Any, cfg: DictConfig, *, n_jobs: int, done: Callable[[bool], None]) -> Any:
    from fairbench import pipeline

    return pipeline.execute(run, n_jobs=n_jobs, resume=cfg.resume, draw=cfg.figures, done=done)


def _did(result: Any) -> str:
    cells = len(result.run.cells)
    if result.computed == 0:
        return f"nothing to fit: all {cells} cells were in the store ({result.seconds:.1f} s)"
    return f"fitted {result.computed} of {cells} cells in {result.seconds:.1f} s"


def _sweep_job(cfg: DictConfig, folder: Path) -> None:
    """Run one job; whatever happens becomes an outcome, so the others go on."""
    from hydra.core.hydra_config import HydraConfig

    from fairbench import build

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

    from fairbench import pipeline

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
    from fairbench import pipeline

    run = pipeline.prepare(cfg)
    cached = run.cached()
    estimate = pipeline.estimated_seconds(run, cached.count(False))
    cells = {cell.id: there for cell, there in zip(run.cells, cached, strict=True)}
    return Outcome("planned", run.name, run.id, estimate=estimate, cells=cells)


def show_plan(outcomes: Sequence[Outcome]) -> None:
    """Print how many cells would be computed, each distinct cell counted once."""
    from rich.table import Table

    table = Table(title="plan", title_justify="left")
    for column in ("run", "cells", "in the store", "to compute", "estimated"):
        table.add_column(column, justify="left" if column == "run" else "right")
    seen: set[str] = set()
    total, unknown = 0.0, False
    for outcome in outcomes:
        if outcome.status == "skipped":
            table.add_row(outcome.name, "skipped", "", "", "")
            continue
        missing = {cell for cell, there in outcome.cells.items() if not there}
        new = missing - seen
        seen |= missing
        share = len(new) / len(missing) if missing else 0.0
        seconds = None if outcome.estimate is None else outcome.estimate * share
        total += seconds or 0.0
        unknown |= seconds is None and bool(new)
        guess = f"{seconds:.0f} s" if seconds is not None else "unknown" if new else "0 s"
        stored = len(outcome.cells) - len(missing)
        table.add_row(outcome.name, str(len(outcome.cells)), str(stored), str(len(new)), guess)
    _console.print(table)
    cost = f"about {total:.0f} s on one core" if total or not unknown else ""
    more = "no earlier run tells what the others cost" if unknown else ""
    say("; ".join(filter(None, [f"{len(seen)} cells to compute", cost, more, "nothing was run"])))


def sum_up(outcomes: Sequence[Outcome], config: DictConfig) -> int:
    """Print what became of a sweep's jobs, log its runs to MLflow, and return the exit status."""
    planned = [o for o in outcomes if o.status == "planned"]
    failed = [o for o in outcomes if o.status == "failed"]
    skipped = [o for o in outcomes if o.status == "skipped"]
    finished = [o for o in outcomes if o.status == "finished"]
    if planned:
        show_plan([*planned, *skipped])
    for outcome in skipped:
        say(outcome.line)
    if not planned:
        runs = Path(config.results) / "runs"
        where = _track([runs / o.run_id for o in finished], config.tracking) if finished else ""
        fitted = sum(o.computed for o in finished)
        cells = len({cell for o in finished for cell in o.cells})
        counts = f"{len(finished)} runs finished, {len(skipped)} skipped, {len(failed)} failed"
        files = f"files: {runs}" if finished else ""
        say("; ".join(filter(None, [counts, f"fitted {fitted} of {cells} cells", files, where])))
    if failed:
        _show_failures(failed, outcomes, config)
    return FAILURE if failed or not outcomes else 0


def _show_failures(
    failed: Sequence[Outcome], outcomes: Sequence[Outcome], config: DictConfig
) -> None:
    """Print which jobs failed, by what sets them apart, why, and how to run them again."""
    from rich import box
    from rich.table import Table

    table = Table(title="failed", title_justify="left", box=box.SIMPLE)
    table.add_column("job")
    table.add_column("reason", overflow="fold")
    shared = set.intersection(*(set(outcome.overrides) for outcome in outcomes))
    for outcome in failed:
        own = [word for word in outcome.overrides if word not in shared]
        table.add_row(escape(" ".join(own) or outcome.name), escape(outcome.message))
    # Not wrapped where nobody reads it on a screen.
    Console(width=None if sys.stdout.isatty() else 10_000).print(table, highlight=False)
    hydra = [word for word in config.hydra.overrides.hydra if not word.startswith("hydra.mode=")]
    say("what failed is run again, and nothing else, by:")
    for command in commands([o.overrides for o in failed], script=sys.argv[0], hydra=hydra):
        say(f"  {command}")


def _track(folders: Sequence[Path], config: DictConfig) -> str:
    """Log finished runs and say where; a server that is down costs a line, not the run."""
    from fairbench.runs import RunFolder
    from fairbench.tracking.importer import Tracking, TrackingError

    tracking = Tracking(config.enabled, config.uri, config.experiment)
    if not tracking.enabled:
        return "not logged to MLflow (tracking=none)"
    try:
        logged = tracking.sync([RunFolder(path) for path in folders])
    except TrackingError as error:
        say(f"warning: not logged: {error}; `make sync` logs it later")
        return "MLflow: not logged"
    runs = list(logged.values())
    return (
        f"MLflow: {tracking.address}, {'run ' + runs[0] if len(runs) == 1 else f'{len(runs)} runs'}"
    )


def main(entry: Callable[[], None], conf: Path) -> int:
    """Run a Hydra entry point and return the exit status: 0, 1 (failed) or 2 (cannot be done)."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    compose_once()
    guard_launchers(conf)
    try:
        entry()
    except UserError as error:
        say_error(error)
        return USER_ERROR
    except (HydraException, OmegaConfBaseException) as error:
        say_error(in_words(error, conf))
        return USER_ERROR
    except KeyboardInterrupt:
        print("interrupted: finished cells are kept; the same command goes on", file=sys.stderr)
        return 130
    return 0


def in_words(error: Exception, conf: Path) -> str:
    """Return one sentence for what Hydra found wrong with a command line."""
    text = str(error)
    missing = getattr(error, "missing_cfg_file", None)
    if missing:
        group, _, name = str(missing).rpartition("/")
        return str(unknown_name(group, name, _options(conf, group)))
    key = re.search(r"[Kk]ey '([^']+)' is not in struct\n\s+full_key: (\S+)", text)
    override = re.search(r"Could not override '([^']+)'", text)
    option = key.group(2) if key else override.group(1) if override else ""
    if option:
        return str(unknown_name("option", option, _valid_keys(conf, option)))
    return " ".join(text.split())


def _options(conf: Path, group: str) -> list[str]:
    return [path.stem for path in (conf / group).glob("*.yaml")]


def _valid_keys(conf: Path, name: str) -> set[str]:
    """Return option names of the part of the configuration that `name` seems to mean."""
    import yaml

    groups = sorted(path.name for path in conf.iterdir() if path.is_dir() and path.name != "hydra")
    config = yaml.safe_load((conf / "config.yaml").read_text())
    top = {key for key in config if key not in ("defaults", "hydra")} | set(groups)
    group = name.partition(".")[0]
    if "." not in name or group not in top:
        return top
    if group not in groups:
        return {f"{group}.{key}" for key in config[group]}
    defaults = {key: each for line in config["defaults"] for key, each in _items(line)}
    chosen = [word.partition("=")[2] for word in sys.argv if word.startswith(f"{group}=")]
    names = chosen[-1].split(",") if chosen else [defaults[group]]
    options = [yaml.safe_load((conf / group / f"{each}.yaml").read_text()) for each in names]
    return {f"{group}.{key}" for option in options for key in option if key != "_target_"}


def _items(line: Any) -> list[tuple[str, str]]:
    return list(line.items()) if isinstance(line, dict) else []
