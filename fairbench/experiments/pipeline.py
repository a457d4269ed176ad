"""One run: config -> data set -> split -> cells -> readings -> metrics -> store -> tracking."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import fairbench.metrics
from fairbench.core.errors import check_choice
from fairbench.core.fingerprint import code_digest, describe
from fairbench.core.text import digest
from fairbench.data.dataset import Dataset, Task, feature_count
from fairbench.data.splits import Fold, Split
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.summary import summarise
from fairbench.evaluation.table import COSTS
from fairbench.experiments import build
from fairbench.experiments.compute import RunEvaluation, compute
from fairbench.experiments.configuration import Config, identity_of, plain
from fairbench.experiments.contracts import Cell, Method, Study, cells_of
from fairbench.metrics.registry import table_rows
from fairbench.results.record import PURPOSES, STUDY, check_part, run_name
from fairbench.results.runs import CorruptCellError, Run, RunWriter, Store, machine

if TYPE_CHECKING:
    from omegaconf import DictConfig

# Draws the figures of metrics, with a title and the protected attribute, into a folder.
DrawFigures = Callable[[pd.DataFrame, str, str, Path], None]


@dataclass(frozen=True)
class PlannedRun:
    """A composed run, checked and ready: nothing has been fitted yet.

    Attributes
    ----------
    choices, config : its identity, of :func:`fairbench.experiments.configuration.identity_of`.
    methods : variant -> the method that reads its cells; the run's own variant is empty.
    """

    choices: dict[str, str]
    config: dict[str, Any]
    study: Study
    cells: list[Cell]
    methods: dict[str, Method]
    evaluator: Evaluator
    store: Store
    family: str = ""
    purpose: str = STUDY

    @cached_property
    def id(self) -> str:
        """The run's id."""
        return digest(self.config, 12)

    @property
    def name(self) -> str:
        """A short name for people: data set, learner, intervention, method."""
        return run_name(self.choices)

    @cached_property
    def cell_of_id(self) -> dict[str, Cell]:
        """Its cells, each once, by the ids that they are stored under."""
        return {cell.id: cell for cell in self.cells}

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
        """The folder of the run, whether it is finished or not."""
        return Run(self.store.run_path(self.id))

    @property
    def writer(self) -> RunWriter:
        """The writer of the run's folder."""
        return RunWriter(self.store.run_path(self.id))

    @property
    def finished(self) -> bool:
        """Whether the run is stored completely, as it would be made now."""
        return self.writer.is_finished(self.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything the metrics depend on: cells, reading, evaluation, their code."""
        modules = ["fairbench.experiments.compute", type(self.method).__module__]
        # Metrics are found in their folder, and not imported by name: a new one is new code.
        metric_modules = pkgutil.iter_modules(fairbench.metrics.__path__, "fairbench.metrics.")
        modules += [module.name for module in metric_modules]
        parts: list[object] = [
            describe(self.method),
            describe(self.evaluator),
            self.study.protect,
            table_rows(),  # of metrics: what they say is computed, too
        ]
        if self.evaluator.weights:
            parts.append(self.dataset.weight_digest)
        cells = [[cell.id, cell.variant] for cell in self.cells]
        return digest([cells, parts, code_digest(modules)])


def prepare(cfg: DictConfig | Config) -> PlannedRun:
    """Build every component of a configuration and refuse what cannot work.

    Raises
    ------
    UserError : unknown names, bad values, missing data.
    IncompatibleError : a combination that cannot work.
    """
    config = plain(cfg)
    check_choice("purpose", purpose := str(config["purpose"]), PURPOSES)
    parts = build.components(config)
    choices, stored = identity_of(config, verified=parts.verified)
    for part, value in stored.items():
        check_part(part, value)
    build.check(parts)
    method, seed = parts.method, stored["seed"]
    study = Study(
        parts.dataset, parts.learner, parts.intervention, method.fitter, seed, parts.protect
    )
    folds = _folds(parts.split, parts.dataset, seed)
    cells, methods = cells_of(study, folds), {"": method}
    for label, varied, reading in parts.consistency.variants(study, method):
        cells += cells_of(varied, folds, label)
        methods[label] = reading
    store = Store(Path(config["results"]), float(config["wait_min"]))
    return PlannedRun(
        choices, stored, study, cells, methods, parts.evaluator, store, parts.family, purpose
    )


@lru_cache(maxsize=4)
def _folds(split: Split, dataset: Dataset, seed: int) -> list[Fold]:
    """Return the folds, drawn once for all jobs of a sweep on one data set."""
    return split.folds(dataset, seed)


def ensure(cell: Cell, store: Store, *, recompute: bool = False, wait: bool = True) -> bool:
    """Compute and store a cell unless it is stored undamaged; return whether it was computed.

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


def ensure_all(cells: Sequence[Cell], store: Store) -> int:
    """Ensure every cell, one after the other, and return how many were computed."""
    return sum(ensure(cell, store) for cell in cells)


def finish(run: PlannedRun, *, draw: DrawFigures | None = None, again: bool = False) -> int:
    """Evaluate a run whose cells are in the store, and write its folder.

    A run that is finished already is left as it is, unless `again`; its figures are drawn if there
    are none, and its purpose is the one of those it was asked for that counts for most.

    Returns
    -------
    int
        How many cells turned out to be damaged, and were computed again.
    """
    if not again and run.finished:
        run.writer.note_purpose(run.purpose)
        _draw(run, draw)
        return 0
    computed = 0
    try:
        metrics, predictions = evaluate_run(run)
    except CorruptCellError:
        computed = ensure_all(run.cells, run.store)
        metrics, predictions = evaluate_run(run)
    run.writer.remove_figures()
    _draw(run, draw, metrics)
    _write(run, metrics, predictions)
    return computed


def _draw(run: PlannedRun, draw: DrawFigures | None, metrics: pd.DataFrame | None = None) -> None:
    """Draw a run's figures, if it is to have any and has none; its stored metrics by default."""
    if draw and not run.writer.has_figures():
        with run.writer.drawing() as temporary:
            drawn_metrics = run.folder.all_metrics() if metrics is None else metrics
            draw(drawn_metrics, run.name, run.protect, temporary)


def evaluate_run(run: PlannedRun) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read every cell's raw outputs; return metrics and predictions. Fits nothing."""
    evaluation = RunEvaluation(
        run.dataset, run.methods, run.evaluator, run.study.protect, run.store, run.study.seed
    )
    return evaluation.evaluate(run.cells)


def _write(run: PlannedRun, metrics: pd.DataFrame, predictions: pd.DataFrame) -> None:
    """Write the folder of a run; nothing in it depends on when or how fast that is done."""
    per_cell = _seconds_per_cell(metrics)
    cells = list(run.cell_of_id)
    environment = {
        "fingerprint": run.fingerprint,
        "name": run.name,
        "choices": run.choices,
        "seed": run.study.seed,
        "protect": run.protect,
        "purpose": run.writer.highest_purpose(run.purpose),
        "task": task_facts(run),
        "group_at_prediction": run.study.group_at_prediction,
        "data_sha256": {source.path: source.sha256 for source in run.dataset.sources},
        "versions": run.study.identity()["versions"],
        "cost": {
            "key": run.study.cost_key,
            "seconds_per_cell": per_cell,
            "seconds": per_cell * len(cells),
        },
        **machine(),
    }
    summary = summarise(metrics, level=run.evaluator.level)
    tables = {"metrics": metrics, "summary": summary, "predictions": predictions}
    run.writer.write(run.config, cells, tables, run.dataset, environment)


def task_facts(run: PlannedRun) -> dict[str, Any]:
    """Return the facts about a task before anything is fitted, on the rows that the run uses.

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
    values = metrics["value"].to_numpy(float)
    names = metrics["metric"].to_numpy()
    return float(sum(values[names == name].mean() for name in COSTS))
