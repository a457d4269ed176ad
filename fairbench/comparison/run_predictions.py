"""The labels that finished runs predicted, to be compared or written as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.core.files import write_text
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
    """The predictions of a finished run of a binary task, with labels and groups.

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


def predictions_frame(run: RunPredictions, repeat: int) -> pd.DataFrame:
    """Return one repeat's test rows: row, fold, target, score, prediction, sensitive columns.

    There is no score where the method gives none. The folds of a K-fold split are one below the
    other. Other repeats test some of the same people again; a table has each of them once.

    Raises
    ------
    UserError : a repeat that the run does not have.
    """
    if repeat not in run.repeats:
        raise UserError(
            f"run {run.id} has repeats {', '.join(map(str, run.repeats))}, not {repeat}"
        )
    folds = run.repeats[repeat]
    rows = np.concatenate([fold.rows for fold in folds])
    scores = [fold.score for fold in folds if fold.score is not None]
    table = {
        "row": rows,
        "fold": np.repeat(np.arange(len(folds)), [len(fold.rows) for fold in folds]),
        "target": run.people.target.to_numpy()[rows].astype(np.int64),
        **({"score": np.concatenate(scores)} if scores else {}),
        "prediction": np.concatenate([fold.prediction for fold in folds]),
    }
    sensitive = run.people.sensitive.iloc[rows].reset_index(drop=True)
    return pd.concat([pd.DataFrame(table), sensitive.astype(str)], axis="columns")


def export(run: RunPredictions, path: Path, repeat: int, *, people: bool = False) -> pd.DataFrame:
    """Write the predictions of one repeat as CSV, or as Parquet by the file's ending.

    Parameters
    ----------
    people : whether target and groups are written although the data set does not say that they may
        be passed on.

    Raises
    ------
    UserError : an ending that is neither, a place that cannot be written, or no such repeat.
    """
    frame = predictions_frame(run, repeat)
    if not (people or run.people.about.redistributable):
        frame = frame.drop(columns=["target", *run.people.sensitive.columns])
    try:
        if path.suffix == ".parquet":
            frame.to_parquet(path, index=False)
        elif path.suffix == ".csv":
            write_text(path, frame.to_csv(index=False))
        else:
            raise UserError(f"{path} ends in neither .csv nor .parquet: name a file of either kind")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error}") from error
    return frame
