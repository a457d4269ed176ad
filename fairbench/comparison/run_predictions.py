"""The labels that finished runs predicted, repeat by repeat, ready to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.results.people import People
from fairbench.results.predictions import TEST
from fairbench.results.runs import Run


@dataclass(frozen=True, eq=False)
class FoldPredictions:
    """The test rows of one fold, the labels predicted for them, and the scores if there are any."""

    repeat: int
    rows: NDArray[np.intp]
    prediction: NDArray[np.int64]
    score: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class RunPredictions:
    """What a finished run of a binary task predicted, and of whom.

    `repeats` has the folds of each repeat: one of a hold-out split, K of a K-fold split.
    """

    id: str
    name: str
    people: People
    protect: tuple[str, ...]
    repeats: Mapping[int, list[FoldPredictions]]


def load_predictions(run: Run) -> RunPredictions:
    """Read what a finished run predicted of its test rows.

    Raises
    ------
    UserError : a task that is not binary, files that are missing or damaged, or a fold without
        predictions.
    """
    people = run.people()
    if people.task is not Task.BINARY:
        raise UserError(f"run {run.id} is of a regression; classifiers are compared")
    table = run.predictions(("prediction", "score"))
    table = table[table["part"] == TEST]
    repeats: dict[int, list[FoldPredictions]] = {}
    for (repeat, fold), rows in table.groupby(["repeat", "fold"]):
        repeats.setdefault(int(repeat), []).append(_fold(run, int(repeat), int(fold), rows))
    return RunPredictions(run.id, run.name, people, run.attributes, repeats)


def _fold(run: Run, repeat: int, fold: int, rows: pd.DataFrame) -> FoldPredictions:
    labels = rows["prediction"].to_numpy()
    if np.isnan(labels).any():
        raise UserError(
            f"run {run.id}, repeat {repeat}, fold {fold} has no predictions: its training rows "
            "held one class only, or its method gave none"
        )
    score = rows["score"].to_numpy() if "score" in rows else None
    positions = rows["row"].to_numpy(np.intp)
    return FoldPredictions(repeat, positions, labels.astype(np.int64), score)
