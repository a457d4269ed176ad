"""The labels that finished runs predicted, to be compared or written as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.differences import CannotChooseError, check_comparable, is_weighted
from fairbench.core.errors import UserError, refused
from fairbench.core.files import DamagedError, sha256, write_bytes, write_text
from fairbench.core.formats import csv_text
from fairbench.data.dataset import Task
from fairbench.data.delimited import unique_names
from fairbench.inference.repeats import FOLDS, ONE, REPEATS, SAME, Splits
from fairbench.metrics.rates import confusion
from fairbench.results.labels_and_groups import People
from fairbench.results.predictions import TEST, VALIDATION
from fairbench.results.record import reading
from fairbench.results.runs import Run
from fairbench.results.shapes import check_columns


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


_NOT_BINARY = {Task.REGRESSION: "of a regression", Task.MULTICLASS: "of several classes"}


def load_predictions(run: Run) -> RunPredictions:
    """Read what a finished run predicted of its test rows.

    Raises
    ------
    UserError : a task that is not binary, files that are missing or damaged, or a fold without
        predictions.
    """
    people = _binary_people(run, "compared")
    table = _labels_of(run, people, ("prediction", "score"))
    tested = (table["part"] == TEST).to_numpy()
    repeat, fold, row, label = (
        table[name].to_numpy()[tested] for name in ("repeat", "fold", "row", "prediction")
    )
    score = table["score"].to_numpy()[tested] if "score" in table else None
    order = np.lexsort((fold, repeat))  # rows of a fold keep theirs
    starts = np.flatnonzero(np.diff(repeat[order], prepend=-1) | np.diff(fold[order], prepend=-1))
    repeats: dict[int, list[FoldPredictions]] = {}
    for rows in np.split(order, starts[1:]):
        key = int(repeat[rows[0]]), int(fold[rows[0]])
        if np.isnan(label[rows]).any():
            raise UserError(
                f"run {run.id}, repeat {key[0]}, fold {key[1]} has no predictions: its training "
                "rows held one class only, or its method gave none"
            )
        rows_and_labels = row[rows].astype(np.intp), label[rows].astype(np.int64)
        fold_predictions = FoldPredictions(
            key[0], *rows_and_labels, None if score is None else score[rows]
        )
        repeats.setdefault(key[0], []).append(fold_predictions)
    return RunPredictions(run.id, run.name, people, run.attributes, repeats)


def _binary_people(run: Run, participle: str) -> People:
    """Return the people of a run, or refuse it if its task is not binary."""
    people = run.people()
    if people.task is not Task.BINARY:
        raise UserError(f"run {run.id} is {_NOT_BINARY[people.task]}; binary ones are {participle}")
    return people


def _labels_of(run: Run, people: People, columns: Sequence[str]) -> pd.DataFrame:
    """Return the predictions of a run for these people: labels, and other columns if asked for.

    Raises
    ------
    UserError : the rows are not those of these people, or labels are not 0 and 1.
    """
    table = run.predictions(columns)
    with reading(run.path / "predictions.parquet"):
        check_columns(table, ["prediction"])
        labels = table["prediction"].to_numpy()
        if not (np.isnan(labels) | np.isin(labels, (0, 1))).all():
            raise DamagedError("it predicts other labels than 0 and 1")
        if not len(table) or table["row"].max() >= len(people):
            raise DamagedError("its rows are not those of the data set")
    return table


def predictions_frame(run: RunPredictions, repeat: int) -> pd.DataFrame:
    """Return one repeat's test rows: row, fold, target, score, prediction, sensitive columns.

    There is a score only if the method gives one, and a cluster only if the data set has clusters.
    The folds of a K-fold split are concatenated. A table has one repeat, as others test some of the
    same people again.

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
    if run.people.clusters is not None:
        table["cluster"] = run.people.clusters.to_numpy()[rows]
    sensitive = run.people.sensitive.iloc[rows].reset_index(drop=True).astype(str)
    sensitive.columns = group_columns(run)
    return pd.concat([pd.DataFrame(table), sensitive], axis="columns")


def group_columns(run: RunPredictions) -> list[str]:
    """Return the columns of groups in the table of a run's predictions.

    An attribute with the name of another column, such as ``target``, becomes ``target.1``.
    """
    names = unique_names([*_OWN, *map(str, run.people.sensitive.columns)])
    return names[len(_OWN) :]


_OWN = ("row", "fold", "target", "score", "prediction", "cluster")


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
        frame = frame.drop(columns=["target", "cluster", *group_columns(run)], errors="ignore")
    try:
        if path.suffix == ".parquet":
            write_bytes(path, frame.to_parquet(index=False), mode=0o600)
        elif path.suffix == ".csv":
            write_text(path, csv_text(frame), mode=0o600)
        else:
            raise UserError(f"{path} ends in neither .csv nor .parquet: name a file of either kind")
    except OSError as error:
        raise UserError(f"not written: {refused(error)}") from error
    return frame


@dataclass(frozen=True, eq=False)
class SharedRows:
    """The predictions of k runs for the rows of one part, with labels and groups.

    Attributes
    ----------
    repeat, fold, row, target, group : (n,).
    prediction : (n, k) of 0 and 1.
    names : of the groups.
    test_share : the share of the rows trained on or tested that a hold-out tests.
    """

    repeat: NDArray[np.int64]
    fold: NDArray[np.int64]
    row: NDArray[np.int64]
    target: NDArray[np.int64]
    group: NDArray[np.int64]
    prediction: NDArray[np.int64]
    names: tuple[str, ...]
    test_share: float = 0.5

    @cached_property
    def splits(self) -> Splits:
        """How the splits share rows."""
        repeats = len(np.unique(self.repeat))
        folds = len(np.unique(self.fold))
        if folds > 1:
            return Splits(FOLDS, repeats, 1 / folds)
        if repeats == 1:
            return Splits(ONE)
        same = len(np.unique(self.row)) * repeats == len(self.row)
        return Splits(SAME if same else REPEATS, repeats, self.test_share)

    @cached_property
    def same(self) -> NDArray[np.intp]:
        """For each run, the first run with equal predictions, (k,)."""
        keys = [sha256(column.tobytes()) for column in self.prediction.T]
        return np.array([keys.index(key) for key in keys], np.intp)

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Codes of TN, FP, FN and TP, (n, k)."""
        return np.asarray(2 * self.target[:, None] + self.prediction)

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Confusion counts of every split, (S, k, G, 4)."""
        places = np.stack([self.repeat, self.fold], axis=1)
        split = np.unique(places, axis=0, return_inverse=True)[1].reshape(-1)
        groups, count = len(self.names), int(split.max()) + 1
        part = split * groups + self.group
        split_counts = [
            confusion(self.target, prediction, part, n_groups=count * groups)
            for prediction in self.prediction.T
        ]
        return (
            np.stack(split_counts, axis=1)
            .reshape(count, groups, -1, 4)
            .swapaxes(1, 2)
            .astype(float)
        )


@dataclass(frozen=True, eq=False)
class Shared:
    """Runs with the rows that judge them, and the rows used for the choice if they are others."""

    runs: Sequence[Run]
    judging: SharedRows
    choosing: SharedRows | None
    notes: list[str]


def read_shared(runs: Sequence[Run]) -> Shared:
    """Return the predictions of runs for test rows, and for validation rows if kept apart."""
    if len(runs) < 2:
        which = "".join(f" ({run.name}, {run.id})" for run in runs)
        raise CannotChooseError(
            f"{len(runs)} finished run matches{which}; a choice needs at least two"
        )
    return shared_rows(runs)


def shared_rows(runs: Sequence[Run]) -> Shared:
    """Return the same as `read_shared`, also for a single run."""
    check_comparable(runs)
    _check_not_weighted(runs)
    people = _binary_people(runs[0], "chosen from")
    groups = people.groups(runs[0].attributes)
    tables = {run: _labels_of(run, people, ("prediction",)) for run in runs}
    table = tables[runs[0]]
    predictions = {run: run_table["prediction"].to_numpy() for run, run_table in tables.items()}
    part = table["part"].to_numpy()
    complete = [run for run in runs if not np.isnan(predictions[run][part == TEST]).any()]
    if len(complete) < min(len(runs), 2):
        raise UserError("fewer than two of these runs predict all of their test rows")
    predicted = np.stack([predictions[run] for run in complete], axis=1)
    row = table["row"].to_numpy(np.int64)

    test, validation = part == TEST, part == VALIDATION
    splits = len(np.unique(table[["repeat", "fold"]].to_numpy(), axis=0))
    share = float(test.sum() / (splits * len(people) - validation.sum()))

    def rows_of_part(mask: NDArray[np.bool_]) -> SharedRows:
        return SharedRows(
            table["repeat"].to_numpy(np.int64)[mask],
            table["fold"].to_numpy(np.int64)[mask],
            row[mask],
            people.target.to_numpy(np.int64)[row[mask]],
            groups.cat.codes.to_numpy(np.int64)[row[mask]],
            predicted[mask].astype(np.int64),
            tuple(map(str, groups.cat.categories)),
            share,
        )

    is_apart = validation.any() and not np.isin(row[validation], row[test]).any()
    is_apart = is_apart and not np.isnan(predicted[validation]).any()
    notes = [
        f"{run.name} ({run.id}) is left out: it predicts nothing"
        for run in runs
        if run not in complete
    ]
    if people.clusters is not None:
        notes.append(
            "rows that belong together count as independent here, which may make intervals too "
            "narrow"
        )
    return Shared(
        complete, rows_of_part(test), rows_of_part(validation) if is_apart else None, notes
    )


def _check_not_weighted(runs: Sequence[Run]) -> None:
    """Refuse runs with weighted rows: every row counts as one here."""
    weighted = [run.id for run in runs if is_weighted(run)]
    if weighted:
        raise CannotChooseError(
            f"{len(weighted)} of these runs, such as {weighted[0]}, weigh their rows, which choose "
            "cannot: select runs of evaluator.weights=false (nothing is fitted again for them)"
        )
