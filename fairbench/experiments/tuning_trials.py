"""The trials of a tuning study, and the files in which they are kept.

What a trial is judged by is read here, from the validation rows of its cells and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.core.files import (
    UNREADABLE,
    sealed_json,
    set_aside,
    unsealed_json,
    write_bytes,
    write_text,
)
from fairbench.core.safe_open import TEXT, is_file, make_folder, opened, read_bytes, remove
from fairbench.core.seeds import rng
from fairbench.data.dataset import Dataset
from fairbench.evaluation.predictions import read_predictions
from fairbench.evaluation.tuning_goals import Goal, GoalRows
from fairbench.experiments.compute import raw_outputs
from fairbench.experiments.execute import Plan
from fairbench.experiments.pipeline import PlannedRun, ensure
from fairbench.experiments.study import Cell
from fairbench.inference.comparing.tuned_gain import GoalEstimate
from fairbench.results.cells import CorruptCellError, StoredCell
from fairbench.results.predictions import VALIDATION

Values = dict[str, Any]


@dataclass(eq=False)
class Trial:
    """A trial: its values of the options, and what its cells predict of validation rows.

    Attributes
    ----------
    folds : the number of repeats that were fitted; fewer than all if it was stopped.
    error : the reason why it has no value; empty if it has one.
    """

    values: Values
    rows: GoalRows | None = None
    folds: int = 0
    stopped: bool = False
    seconds: float = 0.0
    error: str = ""
    plan: Plan | None = None
    _made: dict[int, list[GoalEstimate]] = field(default_factory=dict)

    def estimates(self, wanted: Sequence[Goal], folds: int = 0) -> list[GoalEstimate]:
        """Return the metrics of the first folds, or of all."""
        at = folds or self.folds
        if at not in self._made:
            assert self.rows is not None
            rows = self.rows.first(at)
            self._made[at] = [goal.estimate(rows) for goal in wanted]
        return self._made[at]

    def line(self, values: Sequence[float]) -> str:
        """Return the trial as a sealed line of JSON."""
        judged = {"values": self.values, "objectives": list(values), "folds": self.folds}
        outcome = {"stopped": self.stopped, "seconds": round(self.seconds, 4), "error": self.error}
        return sealed_json({**judged, **outcome})


@dataclass(frozen=True)
class StudyRecord:
    """The folder of a study: what it searches, and its trials."""

    folder: Path

    def trials(self, is_candidate: Callable[[Values], bool]) -> list[dict[str, Any]]:
        """Return the trials that ended, up to the first that is not as it was written.

        Each is proposed by those before it: what comes after a damaged line, or one that a kill
        broke off, is judged again, from the cells that are stored.

        Parameters
        ----------
        is_candidate : says whether values are in the space that is searched.
        """
        path = self.folder / "trials.jsonl"
        lines = read_bytes(path, TEXT).splitlines(keepends=True) if is_file(path) else []
        kept = list(
            takewhile(
                lambda trial: _is_trial(trial) and is_candidate(trial["values"]),
                map(_read_line, lines),
            )
        )
        if len(kept) < len(lines):
            if b"\n" in b"".join(lines[len(kept) :]):  # more than a kill breaks off
                set_aside(path, "trials from the damaged one on are judged again")
            write_bytes(path, b"".join(lines[: len(kept)]))
        return kept

    def add(self, line: str) -> None:
        """Add a trial, for good."""
        handle = opened(self.folder / "trials.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with open(handle, "a", encoding="utf-8") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def begin(self, space: Mapping[str, str], *, again: bool) -> None:
        """Write down what is searched, or compare it with what was written down before.

        Raises
        ------
        UserError : the study was begun with another space, or what it noted is damaged.
        """
        path = self.folder / "study.json"
        if again or not is_file(path):
            make_folder(self.folder)
            remove(self.folder / "trials.jsonl")
            write_text(path, sealed_json({"space": dict(space)}, indent=1))
            return
        try:
            before = dict(unsealed_json(read_bytes(path))["space"])
        except UNREADABLE as error:
            raise UserError(
                f"{path} is not as it was written: begin the study anew with resume=false, which "
                "fits nothing that is in the store, or another beside it with study=NAME"
            ) from error
        if before != dict(space):
            differing = [k for k in {**before, **space} if before.get(k) != space.get(k)]
            was, now = (
                ", ".join(f"{k}={side[k]}" for k in differing if k in side) or "nothing of it"
                for side in (before, space)
            )
            raise UserError(
                f"the study in {self.folder} was begun with {was}, which is now {now}: go on with "
                "the same, or begin another beside it with study=NAME"
            )


def _read_line(line: bytes) -> dict[str, Any]:
    """Return the trial of a line; None if the line is damaged."""
    try:
        return unsealed_json(line)
    except ValueError:
        return {}


def _is_trial(found: Mapping[str, Any]) -> bool:
    values, folds = found.get("values"), found.get("folds")
    is_whole = type(folds) is int and folds >= 0
    return isinstance(values, dict) and is_whole and type(found.get("stopped")) is bool


def check_split(run: PlannedRun) -> None:
    """Refuse a split without validation rows, or one that tests rows by which trials are chosen.

    Raises
    ------
    UserError : either, with the word that mends it.
    """
    folds = [cell.fold for cell in run.cells if not cell.variant]
    if not all(len(fold.validation) for fold in folds):
        raise UserError(
            "there are no validation rows to choose by: add split.validation=0.2, or take "
            "split=tuning"
        )
    chosen_by = np.unique(np.concatenate([fold.validation for fold in folds]))
    if any(np.isin(fold.test, chosen_by).any() for fold in folds):
        raise UserError(
            "rows that one repeat tests are validation rows of another, so that none would be left "
            "to judge what is chosen: take split=tuning, or split.repeats=1"
        )


def stored_cell(run: PlannedRun, cell: Cell) -> StoredCell:
    """Return a cell, fitted again if its file is damaged."""
    try:
        return run.store.read(cell.id)
    except CorruptCellError:
        ensure(cell, run.store)
        return run.store.read(cell.id)


def validation_rows(run: PlannedRun, cell: Cell, stored: StoredCell, fold: int) -> GoalRows:
    """Return a cell's predictions for its validation rows; test rows are dropped before any use."""
    held_out = stored.columns["part"] == VALIDATION
    columns = {name: values[held_out] for name, values in stored.columns.items()}
    rows = columns["row"].astype(np.intp)
    if reason := stored.notes.get("invalid"):
        raise UserError(f"repeat {cell.fold.repeat} predicts nothing: {reason}")
    method, data = run.method, run.dataset
    generator = rng(run.study.seed, "read", data.name, cell.fold.repeat, cell.fold.fold)
    predicted = read_predictions(
        method.read(raw_outputs(columns), data.task, generator),
        data.task,
        type(method).__name__,
        keep_invalid=method.capabilities.keep_invalid,
        classes=len(data.classes),
    )
    numbers = {str(name): predicted[name].to_numpy(float) for name in predicted}
    return label_rows(data, run.study.protect, rows, numbers, fold)


def label_rows(
    data: Dataset,
    protect: tuple[str, ...],
    rows: NDArray[np.intp],
    columns: Mapping[str, NDArray[np.float64]],
    fold: int,
) -> GoalRows:
    """Return some rows of a data set with their predictions; no other row is read."""
    part = data.take(rows)
    group = part.groups(protect)
    if np.isnan(columns["prediction"]).any():
        raise UserError("the method predicts nothing of some rows")
    unit = rows.astype(np.int64)
    if data.clusters is not None:
        unit = np.unique(data.clusters.to_numpy(), return_inverse=True)[1][rows].astype(np.int64)
    return GoalRows(
        np.full(len(rows), fold),
        unit,
        part.target.to_numpy(float),
        group.cat.codes.to_numpy(np.int64),
        columns,
        len(group.cat.categories),
    )
