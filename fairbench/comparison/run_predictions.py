"""The labels that finished runs predicted, to be compared or written as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

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
    """The predictions of one fold: the numbers of its test rows, labels and, if any, scores.

    Those of a regression are numbers in place of labels.
    """

    repeat: int
    rows: NDArray[np.intp]
    prediction: NDArray[Any]
    score: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class RunPredictions:
    """The predictions of a finished run of a binary task or a regression, with labels and groups.

    `repeats` has the folds of each repeat: one of a hold-out split, K of a K-fold split.
    """

    id: str
    name: str
    people: People
    protect: tuple[str, ...]
    repeats: Mapping[int, list[FoldPredictions]]


_NOT_BINARY = {Task.REGRESSION: "of a regression", Task.MULTICLASS: "of several classes"}


def load_predictions(
    run: Run, *, participle: str = "compared", numbers: bool = False
) -> RunPredictions:
    """Read the predictions of a finished run for its test rows.

    Parameters
    ----------
    participle : what is done with the predictions, for the message of a refusal.
    numbers : whether predictions may be numbers, those of a regression.

    Raises
    ------
    UserError : a task that is not binary, or no regression where numbers may be; files that are
        missing or damaged, or a fold without predictions.
    """
    people = _binary_people(run, participle, numbers=numbers)
    table = _read_predictions(run, people, ("prediction", "score"))
    tested = (table["part"] == TEST).to_numpy()
    repeat, fold, row, label = (
        table[name].to_numpy()[tested] for name in ("repeat", "fold", "row", "prediction")
    )
    score = table["score"].to_numpy()[tested] if "score" in table else None
    order = np.lexsort((fold, repeat))  # a stable sort: rows of a fold keep their order
    starts = np.flatnonzero(np.diff(repeat[order], prepend=-1) | np.diff(fold[order], prepend=-1))
    repeats: dict[int, list[FoldPredictions]] = {}
    for indices in np.split(order, starts[1:]):
        repeat_number = int(repeat[indices[0]])
        if np.isnan(label[indices]).any():
            raise UserError(
                f"run {run.id}, repeat {repeat_number}, fold {int(fold[indices[0]])} has no "
                "predictions: its training rows held one class only, or its method gave none"
            )
        fold_predictions = FoldPredictions(
            repeat=repeat_number,
            rows=row[indices].astype(np.intp),
            prediction=label[indices].astype(_type_of(people)),
            score=None if score is None else score[indices],
        )
        repeats.setdefault(repeat_number, []).append(fold_predictions)
    return RunPredictions(run.id, run.name, people, run.attributes, repeats)


def _type_of(people: People) -> type[np.number[Any]]:
    """Return the type of targets and predictions: labels, or numbers of a regression."""
    return np.float64 if people.task is Task.REGRESSION else np.int64


def _binary_people(run: Run, participle: str, *, numbers: bool = False) -> People:
    """Return the people of a run, or refuse it if its task is not binary.

    Parameters
    ----------
    participle : what binary runs are, for the message, such as ``compared``.
    numbers : whether a regression will do, too.
    """
    people = run.people()
    if people.task is not Task.BINARY and not (numbers and people.task is Task.REGRESSION):
        others = " and regressions" if numbers else ""
        raise UserError(
            f"run {run.id} is {_NOT_BINARY[people.task]}; binary ones{others} are {participle}"
        )
    return people


def _read_predictions(run: Run, people: People, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns of a run's table of predictions, checked.

    Raises
    ------
    UserError : the rows are not those of `people`, or labels are not 0 and 1.
    """
    table = run.predictions(columns)
    with reading(run.path / "predictions.parquet"):
        check_columns(table, ["prediction"])
        labels = table["prediction"].to_numpy()
        is_label = np.isnan(labels) | np.isin(labels, (0, 1))
        if people.task is Task.BINARY and not is_label.all():
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
        "target": run.people.target.to_numpy()[rows].astype(_type_of(run.people)),
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
    names = unique_names([*_OTHER_COLUMNS, *map(str, run.people.sensitive.columns)])
    return names[len(_OTHER_COLUMNS) :]


_OTHER_COLUMNS = ("row", "fold", "target", "score", "prediction", "cluster")


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
    """The predictions of k runs for all test rows or all validation rows, with labels and groups.

    Attributes
    ----------
    repeat, fold : (n,) the split of each row.
    row : (n,) its number in the data set.
    target, group : (n,) its label and the code of its group.
    prediction : (n, k) labels 0 and 1.
    names : the names of the groups.
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
        """The kind of splits: how they share rows."""
        repeats = len(np.unique(self.repeat))
        folds = len(np.unique(self.fold))
        if folds > 1:
            return Splits(FOLDS, repeats, 1 / folds)
        if repeats == 1:
            return Splits(ONE)
        test_same_rows = len(np.unique(self.row)) * repeats == len(self.row)
        return Splits(SAME if test_same_rows else REPEATS, repeats, self.test_share)

    @cached_property
    def first_equal(self) -> NDArray[np.intp]:
        """The index of the first run with equal predictions, for each run, (k,)."""
        keys = [sha256(column.tobytes()) for column in self.prediction.T]
        return np.array([keys.index(key) for key in keys], np.intp)

    @cached_property
    def cells(self) -> NDArray[np.int64]:
        """Codes of TN, FP, FN and TP, (n, k)."""
        return np.asarray(2 * self.target[:, None] + self.prediction)

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Confusion counts of every split, (S, k, G, 4)."""
        repeat_and_fold = np.stack([self.repeat, self.fold], axis=1)
        split = np.unique(repeat_and_fold, axis=0, return_inverse=True)[1].reshape(-1)
        n_groups = len(self.names)
        n_splits = int(split.max()) + 1
        split_and_group = split * n_groups + self.group
        counts_of_runs = [
            confusion(self.target, prediction, split_and_group, n_groups=n_splits * n_groups)
            for prediction in self.prediction.T
        ]
        return (
            np.stack(counts_of_runs, axis=1)
            .reshape(n_splits, n_groups, -1, 4)
            .swapaxes(1, 2)
            .astype(float)
        )


@dataclass(frozen=True, eq=False)
class Shared:
    """Runs with their predictions for the rows that judge them and for those of the choice.

    Attributes
    ----------
    runs : the runs with predictions for all test rows.
    judging : their predictions for the test rows.
    choosing : their predictions for validation rows; None if these overlap with the test rows.
    notes : sentences on runs left out and on rows that belong together.
    """

    runs: Sequence[Run]
    judging: SharedRows
    choosing: SharedRows | None
    notes: list[str]


def read_shared(runs: Sequence[Run]) -> Shared:
    """Return the predictions of two runs or more, as `shared_rows` does."""
    if len(runs) < 2:
        matches = "1 finished run matches" if runs else "no finished run matches"
        which = "".join(f" ({run.name}, {run.id})" for run in runs)
        raise CannotChooseError(f"{matches}{which}; a choice needs at least two")
    return shared_rows(runs)


def shared_rows(runs: Sequence[Run]) -> Shared:
    """Return the predictions of runs for test rows, and for validation rows if kept apart."""
    check_comparable(runs)
    _check_not_weighted(runs)
    people = _binary_people(runs[0], "chosen from")
    groups = people.groups(runs[0].attributes)
    tables = {run: _read_predictions(run, people, ("prediction",)) for run in runs}
    table = tables[runs[0]]
    predictions = {run: run_table["prediction"].to_numpy() for run, run_table in tables.items()}
    is_test = table["part"].to_numpy() == TEST
    is_validation = table["part"].to_numpy() == VALIDATION
    complete = [run for run in runs if not np.isnan(predictions[run][is_test]).any()]
    if len(complete) < min(len(runs), 2):
        raise UserError("fewer than two of these runs predict all of their test rows")
    predicted = np.stack([predictions[run] for run in complete], axis=1)
    row = table["row"].to_numpy(np.int64)

    splits = len(np.unique(table[["repeat", "fold"]].to_numpy(), axis=0))
    test_share = float(is_test.sum() / (splits * len(people) - is_validation.sum()))

    def select_rows(is_selected: NDArray[np.bool_]) -> SharedRows:
        """Return the predictions for the selected rows of the table."""
        selected_row = row[is_selected]
        return SharedRows(
            repeat=table["repeat"].to_numpy(np.int64)[is_selected],
            fold=table["fold"].to_numpy(np.int64)[is_selected],
            row=selected_row,
            target=people.target.to_numpy(np.int64)[selected_row],
            group=groups.cat.codes.to_numpy(np.int64)[selected_row],
            prediction=predicted[is_selected].astype(np.int64),
            names=tuple(map(str, groups.cat.categories)),
            test_share=test_share,
        )

    is_apart = is_validation.any() and not np.isin(row[is_validation], row[is_test]).any()
    is_apart = is_apart and not np.isnan(predicted[is_validation]).any()
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
        runs=complete,
        judging=select_rows(is_test),
        choosing=select_rows(is_validation) if is_apart else None,
        notes=notes,
    )


def _check_not_weighted(runs: Sequence[Run]) -> None:
    """Refuse runs with weighted rows: every row counts as one here."""
    weighted = [run.id for run in runs if is_weighted(run)]
    if weighted:
        raise CannotChooseError(
            f"{len(weighted)} of these runs, such as {weighted[0]}, weigh their rows, which choose "
            "cannot: select runs of evaluator.weights=false (nothing is fitted again for them)"
        )
