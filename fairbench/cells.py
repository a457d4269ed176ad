"""Cells: fitting one (data set, split, learner, intervention, fitter) once, whoever asks."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.contracts import Fitter, Intervention, Learner, RawOutputs, TrainingSet
from fairbench.data import Dataset, Task
from fairbench.encoding import Encoder
from fairbench.errors import UserError
from fairbench.fingerprint import code_digest, describe, digest, versions
from fairbench.seeds import rng
from fairbench.splits import Fold
from fairbench.store import Store

VALIDATION, TEST = 1, 2
_PACKAGES = ("numpy", "pandas", "scikit-learn")


@dataclass(frozen=True)
class Study:
    """What is common to the cells of a run: everything that can affect raw outputs."""

    dataset: Dataset
    dataset_config: dict[str, Any]
    learner: Learner
    intervention: Intervention
    fitter: Fitter
    seed: int
    protect: tuple[str, ...] = ()

    def identity(self) -> dict[str, Any]:
        """Return what, with the rows, determines the raw outputs."""
        components = (self.learner, self.intervention, self.fitter)
        loader = str(self.dataset_config["_target_"]).rpartition(".")[0]
        modules = [loader, __name__, *(type(component).__module__ for component in components)]
        reads_groups = self.learner.reads_groups or self.intervention.reads_groups
        return {
            "dataset": self.dataset_config,
            "sources": [source.sha256 for source in self.dataset.sources],
            "seed": self.seed,
            "protect": self.protect if reads_groups else (),
            "components": [describe(component) for component in components],
            "code": code_digest(modules),
            "versions": versions((*_PACKAGES, *self.learner.packages, *self.intervention.packages)),
        }


@dataclass(frozen=True)
class Cell:
    """One fold of a study, and the id its outputs are stored under."""

    fold: Fold
    id: str
    variant: str = field(default="")


def cells_of(study: Study, folds: Sequence[Fold]) -> list[Cell]:
    """Return the cells of a study; an id is a hash of the study and of the rows themselves."""
    identity = study.identity()
    return [
        Cell(fold, digest([identity, fold.repeat, fold.fold, _rows_digest(fold)])) for fold in folds
    ]


def _rows_digest(fold: Fold) -> str:
    total = hashlib.sha256()
    for rows in (fold.train, fold.validation, fold.test):
        total.update(np.ascontiguousarray(rows, np.int64).data)
        total.update(b"|")
    return total.hexdigest()


def ensure(study: Study, cell: Cell, store: Store, *, recompute: bool = False) -> bool:
    """Compute and store a cell unless it is there and whole; return whether it was computed."""
    with store.lock(cell.id):
        if not recompute and store.intact(cell.id):
            return False
        columns, notes = compute(study, cell.fold)
        store.write(cell.id, columns, notes)
        return True


def ensure_all(
    study: Study,
    cells: Sequence[Cell],
    store: Store,
    *,
    n_jobs: int = 1,
    recompute: bool = False,
    done: Callable[[bool], None] = lambda computed: None,
) -> int:
    """Ensure every cell, on `n_jobs` processes; call `done` after each; return how many were fits.

    Raises
    ------
    UserError : a worker process died (killed, or out of memory).
    """
    computed = 0
    for fresh in _outcomes(study, cells, store, n_jobs, recompute):
        computed += fresh
        done(fresh)
    return computed


def _outcomes(
    study: Study, cells: Sequence[Cell], store: Store, n_jobs: int, recompute: bool
) -> Iterator[bool]:
    if n_jobs == 1 or len(cells) == 1:
        yield from (ensure(study, cell, store, recompute=recompute) for cell in cells)
        return
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    tasks = (joblib.delayed(ensure)(study, cell, store, recompute=recompute) for cell in cells)
    try:
        yield from joblib.Parallel(n_jobs, return_as="generator_unordered")(tasks)
    except TerminatedWorkerError as error:
        raise UserError(
            "a worker process was killed (out of memory?): finished cells are kept; run the same "
            "command again, with a smaller n_jobs if memory is short"
        ) from error


def compute(study: Study, fold: Fold) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Fit on the training rows and return raw outputs for the others, with timings.

    Returns
    -------
    columns : ``part`` (1 validation, 2 test), ``row`` (position in the data set) and the outputs
        as float32, an (n, M) output as M columns ``name.0`` ...
    notes : ``fit_seconds``, ``predict_seconds``, ``train_rows`` and, where the training rows hold
        one class only, ``invalid`` with the reason the outputs are NaN.
    """
    from threadpoolctl import threadpool_limits

    rows = np.concatenate([fold.validation, fold.test])
    parts = np.repeat([VALIDATION, TEST], [len(fold.validation), len(fold.test)])
    columns: dict[str, NDArray[Any]] = {
        "part": parts.astype(np.int8),
        "row": rows.astype(np.int32),
    }
    invalid = _one_class(study.dataset, fold)
    if invalid:
        columns["score"] = np.full(len(rows), np.nan, np.float32)
        notes = {"invalid": invalid, "fit_seconds": 0.0, "predict_seconds": 0.0}
        return columns, {**notes, "train_rows": len(fold.train)}
    with threadpool_limits(1):
        outputs, seconds = _fit_and_predict(study, fold, rows)
    return {**columns, **_flatten(outputs)}, {**seconds, "train_rows": len(fold.train)}


def _one_class(dataset: Dataset, fold: Fold) -> str:
    if dataset.task is not Task.BINARY:
        return ""
    labels = np.unique(dataset.target.to_numpy()[fold.train])
    return (
        "" if len(labels) == 2 else f"only class {labels[0]} among {len(fold.train)} training rows"
    )


def _fit_and_predict(
    study: Study, fold: Fold, rows: NDArray[np.intp]
) -> tuple[RawOutputs, dict[str, float]]:
    data, keys = study.dataset, (study.dataset.name, fold.repeat, fold.fold)
    train, rest = data.take(fold.train), data.take(rows)
    encoder = Encoder(study.learner.encoding).fit(train.features)
    frame = encoder.transform(train.features)
    training = TrainingSet(
        frame, train.target.to_numpy(np.float64), train.groups(study.protect), data.task
    )
    loss = study.fitter.loss(data.task)

    def make_model(seed: int) -> Any:
        return study.intervention.wrap(study.learner.estimator(loss, seed), seed)

    started = time.perf_counter()
    fitted = study.fitter.fit(make_model, training, rng(study.seed, "fit", *keys))
    fit_seconds = time.perf_counter() - started
    started = time.perf_counter()
    outputs = fitted.outputs(
        encoder.transform(rest.features),
        rest.groups(study.protect),
        rng(study.seed, "predict", *keys),
    )
    predict_seconds = time.perf_counter() - started
    return outputs, {"fit_seconds": fit_seconds, "predict_seconds": predict_seconds}


def _flatten(outputs: RawOutputs) -> dict[str, NDArray[np.float32]]:
    columns = {}
    for name, values in outputs.items():
        if values.ndim == 1:
            columns[name] = values.astype(np.float32)
        else:
            for member in range(values.shape[1]):
                columns[f"{name}.{member}"] = values[:, member].astype(np.float32)
    return columns


def raw_outputs(columns: RawOutputs) -> dict[str, NDArray[np.float64]]:
    """Return stored columns as the float64 raw outputs a reading takes, members side by side."""
    members: dict[str, list[NDArray[Any]]] = {}
    for name, values in columns.items():
        if name not in ("part", "row"):
            members.setdefault(name.partition(".")[0], []).append(values.astype(np.float64))
    single = {name for name in members if name in columns}
    return {
        name: arrays[0] if name in single else np.column_stack(arrays)
        for name, arrays in members.items()
    }
