"""Evaluating a run's cells: raw outputs from the store, readings, metrics; fits nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.seeds import rng
from fairbench.data.dataset import Dataset
from fairbench.data.encoding import Encoder, Encoding, SequenceEncoding
from fairbench.data.sequences import Sequences
from fairbench.data.splits import Fold
from fairbench.evaluation.evaluator import Evaluator, design_of, group_columns
from fairbench.evaluation.predictions import Labelled, read_predictions
from fairbench.evaluation.sequences import FrameCounts, evaluate_truncation
from fairbench.evaluation.table import KeyedTable, MetricTable, concatenate
from fairbench.evaluation.uncertainties import evaluate_consistency
from fairbench.experiments.compute import raw_outputs
from fairbench.experiments.contracts import Method
from fairbench.experiments.study import Cell
from fairbench.inference.posterior import FREQUENTIST
from fairbench.results.cells import Store
from fairbench.results.predictions import TEST, VALIDATION

COSTS = ("fit_seconds", "predict_seconds")
Part: TypeAlias = "dict[str, NDArray[Any]]"  # columns of some rows


@dataclass(frozen=True)
class Reading:
    """One cell read: the predictions of its test and validation rows.

    `rows` are the tested rows of the data set; `notes` are costs and diagnostics of its fits:
    values, and the rows they are about.
    """

    rows: NDArray[np.intp]
    test: Labelled
    validation: Labelled | None
    invalid: str
    notes: dict[str, tuple[float, int]]

    def predictions(self, fold: Fold) -> Iterator[Part]:
        """Yield what was predicted of the validation and of the test rows."""
        test = None if self.invalid else self.test
        parts = [(VALIDATION, fold.validation, self.validation), (TEST, self.rows, test)]
        return (_part(fold, part, rows, of) for part, rows, of in parts if len(rows))


def _part(fold: Fold, part: int, rows: NDArray[np.intp], labelled: Labelled | None) -> Part:
    keys = {"repeat": fold.repeat, "fold": fold.fold, "part": part}
    columns: Part = {name: np.full(len(rows), key) for name, key in keys.items()} | {"row": rows}
    if labelled is None:
        return columns | {"prediction": np.full(len(rows), np.nan)}
    return columns | {str(name): labelled.column(name) for name in labelled.predictions}


def _joined(parts: Sequence[Part]) -> pd.DataFrame:
    """Return parts as one table, with NaN where a column is missing."""

    def column(name: str) -> NDArray[Any]:
        return np.concatenate(
            [each[name] if name in each else np.full(len(each["row"]), np.nan) for each in parts]
        )

    names = dict.fromkeys(chain.from_iterable(parts))
    return pd.DataFrame({name: column(name) for name in names})


@dataclass(frozen=True)
class RunEvaluation:
    """Evaluates the cells of a run: raw outputs become predictions, and these metrics.

    Attributes
    ----------
    methods : variant -> method that reads its cells; the run's own variant is the empty string.
    protect : the attributes of the headline metrics.
    """

    dataset: Dataset
    methods: Mapping[str, Method]
    evaluator: Evaluator
    protect: tuple[str, ...]
    store: Store
    seed: int

    def evaluate(self, cells: Sequence[Cell]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the long table of all cells, fold by fold, and the run's own predictions."""
        groups = group_columns(
            self.dataset.sensitive, self.dataset.privileged, self.evaluator.intersections
        )
        name = " x ".join(self.protect)
        groups.setdefault(name, self.dataset.groups(self.protect))
        ordered = sorted(cells, key=lambda cell: (cell.fold.repeat, cell.fold.fold))
        tables: list[KeyedTable] = []
        predictions: list[Part] = []
        for _, of_fold in groupby(ordered, key=lambda cell: (cell.fold.repeat, cell.fold.fold)):
            tables += self._fold(list(of_fold), groups, predictions)
        return concatenate(tables), _joined(predictions)

    def _fold(
        self, cells: list[Cell], groups: dict[str, pd.Series], predictions: list[Part]
    ) -> list[KeyedTable]:
        """Evaluate the run's own cell in full, variants overall, and all of them together."""
        tables, uncertainty, fold = [], {}, cells[0].fold
        for cell in cells:
            reading = self.read(cell, {} if cell.variant else groups)
            tables.append(((fold.repeat, fold.fold, cell.variant), self._evaluate(cell, reading)))
            if not cell.variant:
                predictions += reading.predictions(cell.fold)
            if cell.variant and not reading.invalid and "uncertainty" in reading.test.predictions:
                uncertainty[cell.variant] = reading.test.predictions["uncertainty"].to_numpy()
        consistency = MetricTable(frequentist=self.evaluator.interval == FREQUENTIST)
        evaluate_consistency(consistency, uncertainty)
        return [*tables, ((fold.repeat, fold.fold, ""), consistency)]

    def read(self, cell: Cell, groups: dict[str, pd.Series]) -> Reading:
        """Return a cell's predictions, with the labels of `groups` (attribute -> all rows')."""
        stored = self.store.read(cell.id)
        parts = stored.columns["part"]
        sizes = {"fit_seconds": stored.notes["train_rows"], "predict_seconds": len(parts)}
        notes = {name: (float(stored.notes[name]), int(sizes[name])) for name in COSTS}
        for name, value in stored.notes.get("diagnostics", {}).items():
            notes[name] = float(value), int(stored.notes["train_rows"])
        invalid = stored.notes.get("invalid", "")
        rows = stored.columns["row"][parts == TEST].astype(np.intp)
        test = self._part(cell, stored.columns, parts == TEST, groups, invalid)
        if not cell.variant:
            test = self._described(test, cell, rows)
        held_out = parts == VALIDATION
        validation = None
        if held_out.any() and not invalid:
            validation = self._part(cell, stored.columns, held_out, groups, invalid)
        return Reading(rows, test, validation, invalid, notes)

    def _described(self, test: Labelled, cell: Cell, rows: NDArray[np.intp]) -> Labelled:
        """Add what the evaluator asks for of what the rows were predicted from."""
        features = self.dataset.features
        if isinstance(features, Sequences):
            return test
        if self.evaluator.feature_shift_rates:
            test = replace(test, features=features.take(rows))
        if self.evaluator.neighbours:
            encoder = Encoder(Encoding.STANDARD).fit(features.take(cell.fold.train))
            encoded = np.asarray(encoder.transform(features.take(rows)))
            test = replace(test, encoded=encoded)
        return test

    def _part(
        self,
        cell: Cell,
        columns: Mapping[str, NDArray[np.generic]],
        chosen: NDArray[np.bool_],
        groups: dict[str, pd.Series],
        invalid: str,
    ) -> Labelled:
        rows = columns["row"][chosen].astype(np.intp)
        if invalid:
            predictions = pd.DataFrame({"prediction": np.zeros(len(rows))})
        else:
            method = self.methods[cell.variant]
            raw = raw_outputs({name: values[chosen] for name, values in columns.items()})
            read = method.read(raw, self.dataset.task, rng(self.seed, "read", *self._keys(cell)))
            predictions = read_predictions(
                read,
                self.dataset.task,
                type(method).__name__,
                keep_invalid=method.capabilities.keep_invalid,
                classes=len(self.dataset.classes),
            )
        truth, design = self.dataset.truth, None
        if self.evaluator.interval == FREQUENTIST:
            weight = self.dataset.weight if self.evaluator.weights else None
            parts = (
                None if each is None else each.to_numpy()[rows]
                for each in (weight, self.dataset.clusters)
            )
            design = design_of(len(rows), *parts)
        return Labelled(
            self.dataset.target.to_numpy(np.float64)[rows],
            predictions,
            {name: pd.Series(labels.array.take(rows)) for name, labels in groups.items()},
            self.dataset.task,
            None if truth is None else truth.iloc[rows],
            design=design,
            classes=self.dataset.classes,
        )

    def _evaluate(self, cell: Cell, reading: Reading) -> MetricTable:
        generator = rng(self.seed, "posterior", *self._keys(cell))
        table = self.evaluator.rows(
            reading.test, generator, validation=reading.validation, protect=" x ".join(self.protect)
        )
        features, encoding = self.dataset.features, cell.study.learner.encoding
        if isinstance(features, Sequences) and isinstance(encoding, SequenceEncoding):
            chosen = features.select(encoding.modalities or features.names)
            limits = encoding.limits(features.take(cell.fold.train))
            frames = FrameCounts(chosen.take(reading.rows).lengths, limits)
            minimum = self.evaluator.minimum_group_size
            evaluate_truncation(table, reading.test, frames, minimum=minimum)
        if reading.invalid:
            table = table.invalidated(reading.invalid)
        for name, (value, rows) in reading.notes.items():
            table.add(name, value, rows)
        return table

    def _keys(self, cell: Cell) -> tuple[str, int, int]:
        return self.dataset.name, cell.fold.repeat, cell.fold.fold
