"""Finished runs read back from a results folder: found by id or name, with their predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from hydra import compose, initialize_config_dir
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf

from fairbench.core.errors import UserError, unknown_name
from fairbench.core.fingerprint import digest
from fairbench.data.dataset import Dataset, Task
from fairbench.experiments import build, pipeline
from fairbench.experiments.run_evaluation import RunEvaluation
from fairbench.experiments.study import Cell
from fairbench.results.cells import CorruptCellError
from fairbench.results.runs import RunFolder


@dataclass(frozen=True, eq=False)
class FoldPredictions:
    """The test rows of one fold, the labels predicted for them, and the scores if there are any."""

    repeat: int
    rows: NDArray[np.intp]
    prediction: NDArray[np.int64]
    score: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A finished run of a binary task: its predictions, repeat by repeat.

    `repeats` has the folds of each repeat: one of a hold-out split, K of a K-fold split.
    """

    id: str
    name: str
    dataset: Dataset
    protect: tuple[str, ...]
    repeats: Mapping[int, list[FoldPredictions]]


def finished_runs(results: Path) -> Iterator[RunFolder]:
    """Yield every finished run of a results folder."""
    for path in sorted((results / "runs").glob("*/environment.json")):
        folder = RunFolder(path.parent)
        if "name" in folder.environment():
            yield folder


def find_run(word: str, results: Path) -> RunFolder:
    """Return the run that `word` means: the beginning of its id, or its name.

    Raises
    ------
    UserError : no run, or several, of that id or name.
    """
    runs = list(finished_runs(results))
    names = {run.path.name: str(run.environment()["name"]) for run in runs}
    found = [run for run in runs if run.path.name.startswith(word)]
    found = found or [run for run in runs if names[run.path.name] == word]
    if not found:
        raise unknown_name(f"run in {results / 'runs'}", word, {*names, *names.values()})
    if len(found) > 1:
        ids = ", ".join(f"{run.path.name} ({names[run.path.name]})" for run in found)
        raise UserError(f"'{word}' means {len(found)} runs: {ids}; name one by its id")
    return found[0]


def comparable_runs(results: Path) -> list[list[RunFolder]]:
    """Return the runs that predict the same rows, in groups of at least two."""
    groups: dict[str, list[RunFolder]] = {}
    for run in finished_runs(results):
        stored = run.config()
        same = [stored.get(name) for name in ("dataset", "split", "seed")]
        groups.setdefault(digest(same), []).append(run)
    return [group for group in groups.values() if len(group) > 1]


def load_run(folder: RunFolder, conf: Path) -> StoredRun:
    """Read the predictions of a finished run from its cells; fits nothing.

    Parameters
    ----------
    conf : the folder of configurations, for what a run does not keep (where data are found).

    Raises
    ------
    UserError : a task that is not binary, or cells that are missing, corrupt or undefined.
    """
    run = pipeline.prepare(configuration(folder, conf))
    if run.dataset.task is not Task.BINARY:
        raise UserError(f"run {folder.path.name} is of a regression; classifiers are compared")
    evaluation = RunEvaluation(
        run.dataset, run.methods, run.evaluator, run.study.protect, run.store, run.study.seed
    )
    repeats: dict[int, list[FoldPredictions]] = {}
    for cell in _stored_cells(run, folder):
        repeats.setdefault(cell.fold.repeat, []).append(_predictions(cell, evaluation, folder))
    return StoredRun(folder.path.name, run.name, run.dataset, run.study.protect, repeats)


def configuration(folder: RunFolder, conf: Path) -> DictConfig:
    """Return the run's own configuration; where data and results are is taken from `conf`."""
    stored = folder.config()
    own = {name: stored[name] for name in build.IDENTITY if name in stored}
    results = str(folder.path.parents[1])
    return OmegaConf.create({**_composed(conf.resolve()), **own, "results": results})


@lru_cache(maxsize=1)
def _composed(conf: Path) -> dict[str, Any]:
    """Return the default configuration; composing it costs more than reading a run."""
    with initialize_config_dir(str(conf), version_base="1.3"):
        values: Any = OmegaConf.to_container(compose("config"))
    return dict(values)


def _stored_cells(run: pipeline.Run, folder: RunFolder) -> list[Cell]:
    """Return the run's own cells under the ids it was finished with, whatever changed since."""
    own = [cell for cell in run.cells if not cell.variant]
    return [replace(cell, id=id_) for cell, id_ in zip(own, folder.cells(), strict=False)]


def _predictions(cell: Cell, evaluation: RunEvaluation, folder: RunFolder) -> FoldPredictions:
    where = f"run {folder.path.name}, repeat {cell.fold.repeat}, fold {cell.fold.fold}"
    try:
        reading = evaluation.read(cell, {})
    except CorruptCellError as error:
        raise UserError(f"{where}: its cell is missing or corrupt; run it again") from error
    if not np.array_equal(np.sort(reading.rows), cell.fold.test):
        raise UserError(f"{where} tested other rows than its configuration gives now; run it again")
    labels = reading.test.column("prediction")
    if reading.invalid or np.isnan(labels).any():
        raise UserError(f"{where} has no predictions: {reading.invalid or 'some are NaN'}")
    table = reading.test.predictions
    score = table["score"].to_numpy() if "score" in table else None
    return FoldPredictions(cell.fold.repeat, reading.rows, labels.astype(np.int64), score)
