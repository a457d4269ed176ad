"""A run's test predictions as a table that ``fairbench audit`` and others read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from fairbench.comparison.run_predictions import RunPredictions
from fairbench.core.errors import UserError
from fairbench.core.files import write_text


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
