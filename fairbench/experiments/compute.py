"""Computing a cell, and evaluating the cells of a run.

:func:`compute` fits on the training rows and keeps the raw outputs for the others;
:func:`evaluate_run` reads them into predictions and metrics, and fits nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import rng
from fairbench.core.errors import UserError
from fairbench.data.dataset import Dataset, Task, group_labels
from fairbench.data.features import (
    Encoder,
    Encoding,
    Frame,
    SequenceEncoding,
    Sequences,
    single_keeps,
)
from fairbench.data.groups import group_columns
from fairbench.data.splits import Fold
from fairbench.evaluation.predictions import Labelled, read_predictions
from fairbench.evaluation.regression import FrameCounts, evaluate_truncation
from fairbench.evaluation.table import COSTS, MetricTable, concatenate
from fairbench.evaluation.uncertainties import evaluate_consistency
from fairbench.experiments.contracts import (
    Cell,
    Method,
    Model,
    RawOutputs,
    Study,
    TrainingSet,
    rows_digest,
)
from fairbench.inference.posterior import FREQUENTIST
from fairbench.inference.survey import Design, design_of
from fairbench.results.tables import TEST, VALIDATION

if TYPE_CHECKING:
    from fairbench.experiments.pipeline import PlannedRun


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


# Evaluating a run's cells: raw outputs from the store, readings, metrics; fits nothing.


@dataclass(frozen=True, eq=False)
class Reading:
    """One cell read: the predictions of its test and validation rows.

    Attributes
    ----------
    rows : the numbers of the tested rows in the data set.
    test, validation : the predictions of both parts, with labels; no validation rows are None.
    invalid : why the cell has no predictions; empty if it has.
    notes : costs and diagnostics of its fits: the value, and the number of rows it is about.
    """

    cell: Cell
    rows: NDArray[np.intp]
    test: Labelled
    validation: Labelled | None
    invalid: str
    notes: dict[str, tuple[float, int]]

    def predictions(self) -> Iterator[pd.DataFrame]:
        """Yield the predictions of the validation rows and of the test rows; NaN without any."""
        fold = self.cell.fold
        test = None if self.invalid else self.test
        parts = [(VALIDATION, fold.validation, self.validation), (TEST, self.rows, test)]
        for part, rows, labelled in parts:
            columns: dict[str, Any] = {"prediction": np.nan}
            if labelled is not None:
                columns = {str(name): labelled.column(name) for name in labelled.predictions}
            if len(rows):
                keys = {"repeat": fold.repeat, "fold": fold.fold, "part": part}
                yield pd.DataFrame({**keys, "row": rows, **columns})


def read_cell(
    cell: Cell, method: Method, columns: Mapping[str, NDArray[np.generic]]
) -> pd.DataFrame:
    """Return the predictions that a method reads from stored outputs of a cell."""
    data = cell.study.dataset
    generator = rng(cell.study.seed, "read", data.name, *cell.repeat_and_fold)
    return read_predictions(
        method.read(raw_outputs(columns), data.task, generator),
        data.task,
        type(method).__name__,
        keep_invalid=method.capabilities.keep_invalid,
        classes=len(data.classes),
    )


def evaluate_run(run: PlannedRun) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read every cell's raw outputs; return metrics, fold by fold, and predictions. Fits nothing.

    The predictions are those of the run's own variant.
    """
    data, evaluator = run.dataset, run.evaluator
    groups = group_columns(data.sensitive, data.privileged, evaluator.intersections)
    groups.setdefault(run.protect, data.groups(run.study.protect))
    ordered = sorted(run.cells, key=lambda cell: (cell.fold.repeat, cell.fold.fold))
    # The rows of a fold: the run's own, then each variant's, then those of all variants
    # together, whose number has the variant None.
    folds = list(dict.fromkeys(cell.repeat_and_fold for cell in ordered))
    variants = list(dict.fromkeys(cell.variant for cell in ordered if cell.variant))
    splits = [(*fold, variant) for fold in folds for variant in ("", *variants, "")]
    number = {
        (*fold, variant): fold_number * (len(variants) + 2) + variant_number
        for fold_number, fold in enumerate(folds)
        for variant_number, variant in enumerate(("", *variants, None))
    }
    readings = [read(run, cell, {} if cell.variant else groups) for cell in ordered]
    own_readings = [reading for reading in readings if not reading.cell.variant]
    variant_readings = [reading for reading in readings if reading.cell.variant]
    tables = [*_tables(run, own_readings, number), *_tables(run, variant_readings, number)]
    for fold in folds:
        consistency = MetricTable(
            frequentist=evaluator.interval == FREQUENTIST, splits=(number[*fold, None],)
        )
        uncertainties = {  # of the same rows, by the variant that has any
            reading.cell.variant: reading.test.column("uncertainty")
            for reading in variant_readings
            if reading.cell.repeat_and_fold == fold
            and not reading.invalid
            and "uncertainty" in reading.test.predictions
        }
        evaluate_consistency(consistency, uncertainties)
        tables.append(consistency)
    parts = [part for reading in own_readings for part in reading.predictions()]
    return concatenate(tables, splits), pd.concat(parts, ignore_index=True)


def read(run: PlannedRun, cell: Cell, groups: dict[str, pd.Series]) -> Reading:
    """Return a cell's predictions, with the labels of `groups` (attribute -> all rows')."""
    stored = run.store.read(cell.id)
    parts = stored.columns["part"]
    sizes = {"fit_seconds": stored.notes["train_rows"], "predict_seconds": len(parts)}
    notes = {name: (float(stored.notes[name]), int(sizes[name])) for name in COSTS}
    for name, value in stored.notes.get("diagnostics", {}).items():
        notes[name] = float(value), int(stored.notes["train_rows"])
    invalid = stored.notes.get("invalid", "")
    rows = stored.columns["row"][parts == TEST].astype(np.intp)
    test = _select_rows(run, cell, stored.columns, parts == TEST, groups, invalid)
    if not cell.variant:
        test = _add_features(run, test, cell, rows)
    held_out = parts == VALIDATION
    validation = None
    if held_out.any() and not invalid:
        validation = _select_rows(run, cell, stored.columns, held_out, groups, invalid)
    return Reading(cell, rows, test, validation, invalid, notes)


def _add_features(run: PlannedRun, test: Labelled, cell: Cell, rows: NDArray[np.intp]) -> Labelled:
    """Return test rows with the features that the evaluator's settings need."""
    features = run.dataset.features
    if isinstance(features, Sequences):
        return test
    if run.evaluator.feature_shift_rates:
        test = replace(test, features=features.take(rows))
    if run.evaluator.neighbours:
        encoder = Encoder(Encoding.STANDARD).fit(features.take(cell.fold.train))
        encoded = np.asarray(encoder.transform(features.take(rows)))
        test = replace(test, encoded=encoded)
    return test


def _select_rows(
    run: PlannedRun,
    cell: Cell,
    columns: Mapping[str, NDArray[np.generic]],
    is_selected: NDArray[np.bool_],
    groups: dict[str, pd.Series],
    invalid: str,
) -> Labelled:
    """Return the selected rows of a cell, with their predictions, labels and groups.

    Parameters
    ----------
    columns : the stored outputs of the cell.
    is_selected : which of these rows to return, such as the tested ones.
    invalid : why the cell has no predictions, which are then 0; empty if it has.
    """
    rows = columns["row"][is_selected].astype(np.intp)
    if invalid:
        predictions = pd.DataFrame({"prediction": np.zeros(len(rows))})
    else:
        selected = {name: values[is_selected] for name, values in columns.items()}
        predictions = read_cell(cell, run.methods[cell.variant], selected)
    truth = run.dataset.truth
    return Labelled(
        run.dataset.target.to_numpy(np.float64)[rows],
        predictions,
        {name: pd.Series(labels.array.take(rows)) for name, labels in groups.items()},
        run.dataset.task,
        None if truth is None else truth.iloc[rows],
        design=_design(run, rows),
        classes=run.dataset.classes,
    )


def _design(run: PlannedRun, rows: NDArray[np.intp]) -> Design | None:
    """Return the weights and clusters of rows, if they have any that count."""
    if run.evaluator.interval != FREQUENTIST:
        return None
    weight = run.dataset.weight if run.evaluator.weights else None
    weights_and_clusters = (
        None if column is None else column.to_numpy()[rows]
        for column in (weight, run.dataset.clusters)
    )
    return design_of(len(rows), *weights_and_clusters)


def _tables(
    run: PlannedRun, readings: Sequence[Reading], number: Mapping[Any, int]
) -> Iterator[MetricTable]:
    """Yield tables of metrics; cells that are evaluated in the same way share a table.

    Parameters
    ----------
    number : (repeat, fold, variant) -> the number of the split.
    """
    readings_by_key: dict[Any, list[Reading]] = {}
    for reading in readings:
        columns = tuple(reading.test.predictions)
        held_out = reading.validation is not None
        encoding = repr(reading.cell.study.learner.encoding)  # what sequences are cut to
        # Clusters are those of one split, so that sampled rows are evaluated split by split.
        split = reading.cell.id if reading.test.design is not None else ""
        key = reading.invalid, held_out, columns, encoding, split
        readings_by_key.setdefault(key, []).append(reading)
    for similar_readings in readings_by_key.values():
        cells = [reading.cell for reading in similar_readings]
        splits = [number[*cell.repeat_and_fold, cell.variant] for cell in cells]
        table = _evaluate(run, similar_readings, splits)
        names = dict.fromkeys(name for reading in similar_readings for name in reading.notes)
        for name in names:
            notes = [reading.notes.get(name) for reading in similar_readings]
            value, n_rows = zip(*(note or (np.nan, 0) for note in notes), strict=True)
            has_note = [[note is not None] for note in notes]
            arrays = np.reshape(value, (-1, 1)), np.reshape(n_rows, (-1, 1))
            table.add(name, *arrays, is_row=np.array(has_note))
        yield table


def _evaluate(run: PlannedRun, readings: Sequence[Reading], splits: Sequence[int]) -> MetricTable:
    """Return the metrics of cells whose predictions have the same columns."""
    test = Labelled.joined([reading.test for reading in readings])
    held_out = [reading.validation for reading in readings if reading.validation is not None]
    cells = [reading.cell for reading in readings]
    table = run.evaluator.table(
        test,
        [
            rng(run.study.seed, "posterior", run.dataset.name, *cell.repeat_and_fold)
            for cell in cells
        ],
        validation=Labelled.joined(held_out) if held_out else None,
        protect=run.protect,
        splits=splits,
    )
    features, encoding = run.dataset.features, cells[0].study.learner.encoding
    if isinstance(features, Sequences) and isinstance(encoding, SequenceEncoding):
        chosen = features.select(encoding.modalities or features.names)
        limits = [encoding.limits(features.take(cell.fold.train)) for cell in cells]
        rows = [reading.rows for reading in readings]
        frames = FrameCounts(
            chosen.take(np.concatenate(rows)).lengths,
            np.repeat(limits, [len(of_cell) for of_cell in rows], axis=0),
        )
        evaluate_truncation(table, test, frames)
    invalid = readings[0].invalid
    return table.without_values(invalid) if invalid else table
