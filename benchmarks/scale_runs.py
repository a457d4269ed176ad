"""What starting a sweep's job, importing runs into MLflow and listing runs cost."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measure import (
    ROOT,
    adult,
    configuration,
    cpu_of,
    cpu_of_process,
    german,
    wall_of,
)
from benchmarks.stored import configured, copied, run_of
from fairbench.cli.command_line import CommandLine, hydra_of
from fairbench.core.files import sealed_json
from fairbench.core.fingerprint import digest
from fairbench.evaluation.summary import summarise
from fairbench.experiments import pipeline
from fairbench.experiments.execute import carry_out
from fairbench.results.run_writer import RunTables, RunWriter
from fairbench.results.runs import LAST, Run
from fairbench.tracking.importer import Tracking

METHODS = ("ensemble", "selective_ensemble", "self_consistency", "binomial_nll")
LEARNERS = ("xgboost", "mlp", "random_forest", "lightgbm")
LISTED = {10_000: "< 1", 100_000: "< 10"}
IMPORTED, JOBS = 100, 10_000
STORED, DEPTHS = 20, list(range(5, 16))  # a grid of Tables 1 and 2 has as many runs and depths
SWEEP = (
    "dataset=german,adult,compas,insurance", "learner=xgboost,mlp,random_forest,lightgbm",
    "method=ensemble,binomial_nll,baseline", "intervention=none,threshold_optimizer",
    "seed=range(5)", "split.repeats=3",
)  # fmt: skip
GRID = (
    "split.repeats=1", "method=ensemble", "consistency.vary=learner.max_depth",
    f"consistency.values={DEPTHS}",
)  # fmt: skip
TEN = ("split.repeats=10", "method=baseline")
SMALL = ("dataset=simulated", "dataset.n_samples=300", "split.repeats=2")
Row = tuple[str, float, str]


def costs() -> Iterator[Row]:
    """Yield the rows of a table."""
    yield "CPU s, start of a job after the first", _start(), "< 0.15"
    yield f"CPU s to compose {JOBS:,} jobs", _compose() * JOBS, "< 600"
    yield from stored(*german()[1].split(), *GRID)
    yield from stored(*german()[1].split(), *TEN)
    with tempfile.TemporaryDirectory() as folder:
        run = carry_out(configuration(*SMALL, f"results={folder}")).prepared
        yield from _import(run.folder, Path(folder))
        yield from _list(run.folder, Path(folder))


def _start() -> float:
    """Return the most that composing and preparing a job takes, on a data set that is loaded."""
    words = adult()[1].split()
    _prepare(*words, "method=baseline")
    return max(cpu_of(partial(_prepare, *words, f"method={name}")) for name in METHODS)


def _compose() -> float:
    """Return the CPU seconds that a job of a sweep of a few hundred takes to compose."""
    with hydra_of(ROOT / "conf"):
        line = CommandLine(SWEEP, ROOT / "conf", sweep=True)
        return cpu_of(lambda: [line.compose(job) for job in line.jobs]) / len(line.jobs)


def _prepare(*words: str) -> None:
    pipeline.prepare(configuration(*words))


def stored(*words: str) -> Iterator[Row]:
    """Yield what storing runs takes that were computed, evaluated and summarised before."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        run = carry_out(configuration(*words, f"results={results}")).prepared
        cells = {cell.id: run.store.read(cell.id) for cell in run.cells}
        metrics, predictions = run.folder.all_metrics(), run.folder.predictions()
        summary = summarise(metrics, level=run.evaluator.level)
        tables, environment = RunTables(metrics, summary, predictions), run.folder.environment

        def store_all() -> None:
            for number in range(STORED):
                store(number)

        def store(number: int) -> None:
            ids = [digest([number, cell]) for cell in cells]
            for name, cell in zip(ids, cells.values(), strict=True):
                with run.store.lock(name):
                    run.store.write(name, cell.columns, cell.notes)
            for name in ids:
                run.store.read(name)
            record = configured(environment, {"seed": number})
            writer = RunWriter(run.store.run_path(run_of(record)))
            writer.write(record["config"], ids, tables, run.dataset, record)

        started = time.perf_counter()
        cpu = cpu_of(store_all)
        wall = time.perf_counter() - started
        size = sum(path.stat().st_size for path in results.rglob("*") if path.is_file())
    what = f"{STORED} runs of {len(cells)} cells, {len(metrics):,} rows"
    yield f"CPU s to store {what}", cpu, "< 0.7"
    yield "the same, s with waiting for the disk", wall, ""
    yield "the same, MB", size / 1e6, ""


def _import(folder: Run, results: Path) -> Iterator[Row]:
    records = (configured(folder.environment, {"seed": 10**6 + i}) for i in range(IMPORTED))
    copies = [Run(copied(folder.path, record)) for record in records]
    tracking = Tracking(uri=f"sqlite:///{results}/mlflow.db")
    tracking.sync([folder])  # imports MLflow
    started, cpu = time.perf_counter(), cpu_of(lambda: tracking.sync(copies))
    yield "runs imported a second", IMPORTED / (time.perf_counter() - started), "> 10"
    yield "CPU ms a run imported", 1000 * cpu / IMPORTED, ""
    yield f"s for {IMPORTED} runs imported already", wall_of(lambda: tracking.sync(copies)), ""


def _list(folder: Run, results: Path) -> Iterator[Row]:
    """Yield what listing 10,000 and 100,000 runs takes, at first, again, and by an option."""
    known, made = folder.environment, 0
    for number, target in LISTED.items():
        for seed in range(made, number):
            _record(results / "runs", known, seed)
        made = number
        for words, what in (
            ((), ", at first"),
            ((), ""),
            (("learner.max_depth=3",), ", by option"),
        ):
            command = [sys.executable, "-m", "fairbench", "store", "ls", f"results={results}"]
            started = time.perf_counter()
            cpu = cpu_of_process([*command, *words])
            wall = time.perf_counter() - started
            yield f"s to list {number:,} runs{what}", wall, target if "first" not in what else ""
            yield f"CPU s to list {number:,} runs{what}", cpu, ""


def _record(runs: Path, known: dict[str, Any], seed: int) -> None:
    """Write the record of a run with another seed, learner and depth."""
    options = {"learner": LEARNERS[seed % 4], "learner.max_depth": seed % 7, "seed": seed}
    record = configured(known, options)
    path = runs / run_of(record)
    path.mkdir()
    (path / LAST).write_text(sealed_json(record, indent=1))
