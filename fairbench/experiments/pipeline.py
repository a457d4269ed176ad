"""One run: config -> data set -> split -> cells -> readings -> metrics -> store -> tracking."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from omegaconf import DictConfig

from fairbench.core.fingerprint import code_digest, describe, digest
from fairbench.data.dataset import Dataset, Task, feature_count
from fairbench.data.splits import Fold, Split
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.summary import summarise
from fairbench.experiments import build
from fairbench.experiments.compatibility import Combination, check, check_options, check_weights
from fairbench.experiments.compute import compute
from fairbench.experiments.contracts import Method
from fairbench.experiments.prices import cost_key
from fairbench.experiments.run_evaluation import COSTS, RunEvaluation
from fairbench.experiments.study import Cell, Study, cells_of
from fairbench.results.cells import BusyCellError, CorruptCellError, Store
from fairbench.results.run_writer import RunTables, RunWriter, machine
from fairbench.results.runs import UNVERIFIED, VERIFIED, Run

# Draws the figures of metrics, with a title and the protected attribute, into a folder.
DrawFigures = Callable[[pd.DataFrame, str, str, Path], None]


@dataclass(frozen=True)
class PlannedRun:
    """A composed run, checked and ready: nothing has been fitted yet."""

    id: str
    choices: dict[str, str]
    config: dict[str, Any]
    study: Study
    cells: list[Cell]
    methods: dict[str, Method]
    evaluator: Evaluator
    store: Store
    family: str = ""

    @property
    def name(self) -> str:
        """A short name for people: data set, learner, intervention, method."""
        return build.run_name(self.choices)

    @property
    def dataset(self) -> Dataset:
        """The data set of the run."""
        return self.study.dataset

    @property
    def method(self) -> Method:
        """The method of the run's own configuration."""
        return self.methods[""]

    @property
    def protect(self) -> str:
        """The attribute, or combination, of the headline metrics."""
        return " x ".join(self.study.protect)

    @property
    def folder(self) -> Run:
        """The run once it is finished, or the place where it will be."""
        return Run(self.store.run_path(self.id))

    @property
    def writer(self) -> RunWriter:
        """The writer of the run's folder."""
        return RunWriter(self.store.run_path(self.id))

    @property
    def fingerprint(self) -> str:
        """A hash of everything the metrics depend on: cells, reading, evaluation, their code."""
        modules = ["fairbench.experiments.run_evaluation", type(self.method).__module__]
        parts = [describe(self.method), describe(self.evaluator), self.study.protect]
        if self.evaluator.weights:
            parts.append(self.dataset.weight_digest)
        cells = [[cell.id, cell.variant] for cell in self.cells]
        return digest([cells, parts, code_digest(modules)])

    def cached(self) -> list[bool]:
        """Say of each cell whether it is in the store."""
        return [self.store.has(cell.id) for cell in self.cells]


@dataclass(frozen=True)
class Result:
    """A finished run and what it took."""

    run: PlannedRun
    metrics: pd.DataFrame
    computed: int
    seconds: float

    @property
    def summary(self) -> pd.DataFrame:
        """Means over repeats."""
        return summarise(self.metrics, level=self.run.evaluator.level)


def prepare(cfg: DictConfig | build.Config) -> PlannedRun:
    """Build every component of a configuration and refuse what cannot work.

    Raises
    ------
    UserError : unknown names, bad values, missing data.
    IncompatibleError : a combination that cannot work.
    """
    config = build.plain(cfg)
    components = build.components(config)
    dataset, learner, intervention = (
        components.dataset,
        components.learner,
        components.intervention,
    )
    method, seed = components.method, int(config["seed"])
    protect = build.protected_attributes(config, dataset)
    chosen = build.choices(config)
    check(Combination(dataset, learner, intervention, method, protect, chosen))
    check_options(dataset, learner, components.evaluator)
    if components.evaluator.weights:
        check_weights(dataset)
    study = Study(dataset, learner, intervention, method.fitter, seed, protect)
    folds = _folds(components.split, dataset, seed)
    cells, methods = cells_of(study, folds), {"": method}
    for variant in components.consistency.variants(study, method):
        cells += cells_of(variant.study, folds, variant.label)
        methods[variant.label] = variant.method
    stored = build.stored_configuration(config)
    if not verified(config, dataset):
        # Another run, and by another name wherever it is listed, compared or shown.
        stored["dataset"][VERIFIED] = False
        chosen["dataset"] += UNVERIFIED
    return PlannedRun(
        build.run_id(stored),
        chosen,
        stored,
        study,
        cells,
        methods,
        components.evaluator,
        Store(Path(config["results"]), float(config["wait_min"])),
        build.family(config, dataset),
    )


def verified(config: build.Config, dataset: Dataset) -> bool:
    """Say whether the raw files of a data set were compared with the checksums that are known.

    A table of the user's has none, nor has what is simulated.
    """
    own = bool(config["dataset"].get("path")) or not dataset.sources
    return own or bool(config["data"]["verify"])


@lru_cache(maxsize=4)
def _folds(split: Split, dataset: Dataset, seed: int) -> list[Fold]:
    """Return the folds, drawn once for all jobs of a sweep on one data set."""
    return split.folds(dataset, seed)


def ensure(cell: Cell, store: Store, *, recompute: bool = False, wait: bool = True) -> bool:
    """Compute and store a cell unless it is there and whole; return whether it was computed.

    Raises
    ------
    BusyCellError : another process is computing it, and `wait` is false.
    """
    with store.lock(cell.id, wait=wait):
        if not recompute and store.intact(cell.id):
            return False
        columns, notes = compute(cell.study, cell.fold)
        store.write(cell.id, columns, notes)
        return True


def ensure_all(
    cells: Sequence[Cell],
    store: Store,
    *,
    recompute: bool = False,
    done: Callable[[bool], None] = lambda computed: None,
) -> int:
    """Ensure every cell, call `done` after each, and return how many were computed.

    Cells that other processes are computing come last, so that processes share the work.
    """
    waiting = deque(cells)
    computed = busy = 0
    while waiting:
        cell = waiting.popleft()
        try:
            fresh = ensure(cell, store, recompute=recompute, wait=busy >= len(waiting) + 1)
        except BusyCellError:
            waiting.append(cell)
            busy += 1
            continue
        busy = 0
        computed += fresh
        done(fresh)
    return computed


def execute(
    run: PlannedRun,
    *,
    resume: bool = True,
    draw: DrawFigures | None = None,
    done: Callable[[bool], None] = lambda fresh: None,
) -> Result:
    """Compute what is missing of a run, evaluate it, and write its folder, in this process.

    `done` is called after each cell, with whether it was computed. Without `draw` the run has no
    figures until the same command asks for them.
    """
    started, computed = time.perf_counter(), 0
    if not (resume and run.writer.finished(run.fingerprint)):
        computed = ensure_all(run.cells, run.store, recompute=not resume, done=done)
    result = finish(run, draw=draw, again=not resume)
    return replace(
        result, computed=computed + result.computed, seconds=time.perf_counter() - started
    )


def finish(run: PlannedRun, *, draw: DrawFigures | None = None, again: bool = False) -> Result:
    """Evaluate a run whose cells are in the store, and write its folder.

    A run that is finished already is left as it is, unless `again`; its figures are drawn if there
    are none. A cell that turns out to be damaged is computed again.
    """
    started, computed = time.perf_counter(), 0
    finished = not again and run.writer.finished(run.fingerprint)
    if finished:
        metrics = run.folder.metrics()
    else:
        try:
            metrics, predictions = evaluate_run(run)
        except CorruptCellError:
            computed = ensure_all(run.cells, run.store)
            metrics, predictions = evaluate_run(run)
        shutil.rmtree(run.folder.figures, ignore_errors=True)
    if draw and not run.writer.has_figures():
        with run.writer.drawing() as temporary:
            draw(metrics, run.name, run.protect, temporary)
    if not finished:
        _write(run, metrics, predictions)
    return Result(run, metrics, computed, time.perf_counter() - started)


def evaluate_run(run: PlannedRun) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read every cell's raw outputs; return metrics and predictions. Fits nothing."""
    evaluation = RunEvaluation(
        run.dataset, run.methods, run.evaluator, run.study.protect, run.store, run.study.seed
    )
    return evaluation.evaluate(run.cells)


def _write(run: PlannedRun, metrics: pd.DataFrame, predictions: pd.DataFrame) -> None:
    """Write the folder of a run; nothing in it depends on when or how fast that is done."""
    each, cells = _seconds_per_cell(metrics), list(dict.fromkeys(cell.id for cell in run.cells))
    environment = {
        "fingerprint": run.fingerprint,
        "name": run.name,
        "choices": run.choices,
        "seed": run.study.seed,
        "protect": run.protect,
        "task": task_facts(run),
        "group_at_prediction": run.study.group_at_prediction,
        "data_sha256": {source.path: source.sha256 for source in run.dataset.sources},
        "versions": run.study.identity()["versions"],
        "cost": {
            "key": cost_key(run.study),
            "seconds_per_cell": each,
            "seconds": each * len(cells),
        },
        **machine(),
    }
    tables = RunTables(metrics, summarise(metrics, level=run.evaluator.level), predictions)
    run.writer.write(run.config, cells, tables, run.dataset, environment)


def task_facts(run: PlannedRun) -> dict[str, Any]:
    """Return what is known of a task before anything is fitted: of the rows that the run uses.

    Returns
    -------
    dict
        ``family`` of the data set; ``rows``; ``features``, before encoding; ``positive_share``, of
        label 1, None where the task is not binary; ``smallest_group_share``, of the protected
        attribute; and ``groups``, how many have rows.
    """
    dataset, fold = run.dataset, run.cells[0].fold
    rows = np.concatenate([fold.train, fold.validation, fold.test])
    sizes = dataset.groups(run.study.protect).iloc[rows].value_counts()
    sizes = sizes[sizes > 0]
    binary = dataset.task is Task.BINARY
    return {
        "family": run.family,
        "rows": len(rows),
        "features": feature_count(dataset.features),
        "positive_share": float(dataset.target.iloc[rows].mean()) if binary else None,
        "smallest_group_share": float(sizes.min()) / len(rows),
        "groups": len(sizes),
    }


def _seconds_per_cell(metrics: pd.DataFrame) -> float:
    costs = metrics[metrics["metric"].isin(COSTS)]
    return float(costs.groupby("metric")["value"].mean().sum())
