"""One fit, which is a cell: its training rows are fitted, and the other rows predicted.

:func:`compute` fits on the training rows and keeps the raw outputs for the others, which
:func:`raw_outputs` returns of what is stored.
"""

from __future__ import annotations

import sys
import time
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import rng
from fairbench.core.errors import UserError
from fairbench.data.dataset import Dataset, Task, group_labels
from fairbench.data.features import (
    Encoder,
    Frame,
    single_keeps,
)
from fairbench.data.splits import Fold
from fairbench.experiments.contracts import (
    Model,
    RawOutputs,
    Study,
    TrainingSet,
    guarded,
    rows_digest,
)
from fairbench.results.tables import TEST, VALIDATION


def compute(study: Study, fold: Fold) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Fit on the training rows and return raw outputs for the others, with timings.

    Returns
    -------
    columns : ``part`` (1 validation, 2 test), ``row`` (position in the data set) and the outputs
        as float32 (float64 where that keeps too little of the target), an (n, M) output as M
        columns ``name.0`` ..., an (n, M, C) one as M C columns ``name.0.0`` ...
    notes : ``fit_seconds``, ``predict_seconds``, ``train_rows``, ``diagnostics``, the means of what
        the models say of their fits, and, where the training rows hold one class only, ``invalid``
        with the reason the outputs are NaN.
    """
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
    with _thread_pools(len(sys.modules)).limit(limits=1):
        outputs, notes = _fit_and_predict(study, fold)
    outputs = {name: np.asarray(values) for name, values in outputs.items()}
    for name, values in outputs.items():
        if len(values) != len(rows):
            raise UserError(
                f"{type(study.learner).__name__} gives {len(values)} values of '{name}' for "
                f"{len(rows)} rows: it must give one for each, in their order"
            )
    kept = single_keeps(study.dataset.target.to_numpy(np.float64))
    columns |= _flatten(outputs, np.float32 if kept else np.float64)
    return columns, {**notes, "train_rows": len(fold.train)}


@lru_cache(maxsize=1)
def _thread_pools(modules: int) -> Any:
    """Return what limits the thread pools of this process; looked for when modules were added."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _one_class(dataset: Dataset, fold: Fold) -> str:
    if dataset.task is Task.REGRESSION:
        return ""
    labels = np.unique(dataset.target.to_numpy()[fold.train])
    return (
        "" if len(labels) > 1 else f"only class {labels[0]} among {len(fold.train)} training rows"
    )


def _fit_and_predict(study: Study, fold: Fold) -> tuple[RawOutputs, dict[str, Any]]:
    """Return the raw outputs for the rows that are not trained on, with timings and diagnostics."""
    data = study.dataset
    keys: list[str | int] = [data.name, fold.repeat, fold.fold]
    if study.replicate:
        keys.append(study.replicate)
    classes = len(data.classes)
    groups, groups_of_rest = _groups(data, fold, study.protect)
    frame, frame_of_rest = _encoded(study, fold)
    training = TrainingSet(
        frame,
        data.target.to_numpy(np.float64)[fold.train],
        groups,
        data.task,
        study.learner.capabilities.seeded,
        classes,
    )
    loss = study.fitter.loss(data.task, classes)

    models: list[Model] = []

    def make_model(seed: int) -> Model:
        models.append(study.intervention.wrap(study.learner.estimator(loss, seed), seed))
        return models[-1]

    with guarded(study.components, frame, training.y, frame_of_rest, groups, groups_of_rest):
        started = time.process_time()
        fitted = study.fitter.fit(make_model, training, rng(study.seed, "fit", *keys))
        fit_seconds = time.process_time() - started
        started = time.process_time()
        outputs = fitted.outputs(
            frame_of_rest,
            groups_of_rest,
            rng(study.seed, "predict", *keys),
        )
        predict_seconds = time.process_time() - started
    seconds = {"fit_seconds": fit_seconds, "predict_seconds": predict_seconds}
    return outputs, {**seconds, "diagnostics": _diagnostics(models)}


def _parts(fold: Fold) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the training rows, and the others."""
    return fold.train, np.concatenate([fold.validation, fold.test])


@lru_cache(maxsize=1)
def _groups(data: Dataset, fold: Fold, protect: tuple[str, ...]) -> tuple[pd.Series, pd.Series]:
    """Return the groups of the training rows and of the others, kept for the last fold seen.

    Of combined attributes a part has the combinations that occur in it.
    """
    train, rest = (data.sensitive.take(rows) for rows in _parts(fold))
    return (
        group_labels(data.name, train, data.privileged, protect),
        group_labels(data.name, rest, data.privileged, protect),
    )


def _diagnostics(models: list[Model]) -> dict[str, float]:
    """Return the mean of each diagnostic over the models that have it."""
    values: dict[str, list[float]] = {}
    for model in models:
        for name, value in model.diagnostics.items():
            values.setdefault(name, []).append(value)
    return {name: float(np.mean(each)) for name, each in values.items()}


_frames: tuple[tuple[str, str, str], tuple[Frame, Frame]] | None = None


def _encoded(study: Study, fold: Fold) -> tuple[Frame, Frame]:
    """Return the encoded training rows and the others, kept for the last fold seen.

    Cells of one fold (variants, readings of different fitters) so share one frame object, and with
    it what a learner keeps of it.
    """
    global _frames
    encoding = study.learner.encoding
    key = (study.dataset.digest, rows_digest(fold), str(encoding))
    if _frames is None or _frames[0] != key:
        train, rest = (study.dataset.features.take(rows) for rows in _parts(fold))
        encoder = Encoder(encoding).fit(train)
        _frames = (key, (encoder.transform(train), encoder.transform(rest)))
    return _frames[1]


def _flatten(
    outputs: RawOutputs, kind: type[np.floating[Any]] = np.float32
) -> dict[str, NDArray[Any]]:
    return {
        ".".join(map(str, (name, *place))): values[:, *place].astype(kind)
        for name, values in outputs.items()
        for place in np.ndindex(values.shape[1:])
    }


def raw_outputs(columns: RawOutputs) -> dict[str, NDArray[np.float64]]:
    """Return stored columns as the float64 raw outputs a reading takes, members side by side."""
    parts: dict[str, list[NDArray[Any]]] = {}
    shapes: dict[str, tuple[int, ...]] = {}  # by the place of the last column, one less each
    for name, values in columns.items():
        if name not in ("part", "row"):
            output, *place = name.split(".")
            parts.setdefault(output, []).append(values.astype(np.float64))
            shapes[output] = tuple(int(each) + 1 for each in place)
    return {
        name: np.column_stack(arrays).reshape(-1, *shapes[name]) if shapes[name] else arrays[0]
        for name, arrays in parts.items()
    }
