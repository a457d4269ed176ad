"""Your own table: a CSV, Excel, Parquet or Arrow file with a target and sensitive columns."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import DataError, UserError, check_choice, note, unknown_name, warn
from fairbench.core.text import count, label_notes, missing_name, quoted
from fairbench.data.columns import (
    AMOUNT,
    ColumnRef,
    are_missing,
    each_value,
    spelled,
    to_numbers,
)
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.download import Archive
from fairbench.data.tables import TablePart, read_any_table

DATASHEET = Datasheet(
    title="Your own table",
    source="Your own CSV, Excel, Parquet or Arrow file, which dataset.path names",
    licence="Yours",
    paper_differences="Text columns become categorical features. Missing features stay missing. "
    "People whose sensitive label is missing are a group of their own, 'unknown'.",
    criticism="The privileged group is the most frequent one unless `dataset.privileged` names it. "
    "Name identifiers in `dataset.drop`: a model would memorise them.",
)


def load(
    archive: Archive,
    *,
    path: str | None,
    target: str | None,
    sensitive: Sequence[str],
    positive: str | float | None = None,
    privileged: dict[str, str] | None = None,
    task: str | None = None,
    classes: Sequence[str | float] | None = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    clusters: str | None = None,
    keep_sensitive: bool = True,
    rows: str | None = None,
    sheet: str | None = None,
) -> Dataset:
    """Return the table at `path` as a data set.

    Text columns become categorical features. Missing features stay missing. People whose sensitive
    label is missing are a group ``unknown``. The privileged group is the most frequent one unless
    `privileged` names it.

    Parameters
    ----------
    archive : unused; the file is named by `path`.
    target : the column to predict: 0 / 1 or two labels (`positive` is then the one that is 1), or
        numbers for ``task=regression``.
    sensitive : columns of group labels.
    task : ``binary``, ``multiclass`` or ``regression``. Without it, a target with two distinct
        values is binary, and any other a regression.
    classes : all classes of a multiclass task, in an order that matters. Without it, the classes
        that occur, in numeric or alphabetical order, and the order is not used.
    drop : columns to leave out (identifiers).
    weight : the column of survey weights, which evaluator.weights=true uses. It is not a feature.
    clusters : the column whose equal values mark rows that belong together, such as a household.
        They stay on one side of a split, and intervals take them into account. The column is not
        a feature.
    keep_sensitive : keep the sensitive columns among the features.
    rows : the rows that are read, counted from 1 below the header, such as ``1:200``. Without it,
        a last row that may be a total or a note is refused.
    sheet : of an Excel file the sheet that is read; by default the first with the columns.
    """
    if not path or not target or not sensitive:
        raise UserError(
            "dataset=table needs dataset.path=FILE dataset.target=COLUMN "
            "dataset.sensitive=[COLUMN,...]"
        )
    file = Path(path)
    sensitive = [sensitive] if isinstance(sensitive, str) else sensitive
    marks = [name for name in (weight, clusters) if name]
    part = TablePart(rows or "", sheet or "")
    if any("\ud800" <= sign <= "\udfff" for sign in str(file)):
        raise DataError(f"{file}: the name of the file is no text: rename it")
    if not file.is_file():
        raise DataError(f"dataset.path: no file {file}")
    named, without = [target, *sensitive, *marks], set(drop) - {*sensitive}
    # Only features are read as numbers, so the labels 01, 1 and 1.0 are three labels.
    frame = read_any_table(
        file, named, every=True, exact=sensitive, numeric=None, without=without, part=part
    )
    if frame.empty:
        raise DataError(f"{file}: no rows")
    kind = _task(frame[target], task, file)
    labels = {}
    for name in sensitive:
        called = missing_name(frame[name].unique())
        labels[name] = frame[name].replace("", called).astype("category")
        if (frame[name] == "").all():
            raise ColumnRef(file.name, name).fault("has no value in any row, and names no group")
        for sentence in label_notes(name, frame[name].unique()):
            warn(sentence)
    left_out = {target, *drop, *([] if keep_sensitive else sensitive), *({*marks} - {*sensitive})}
    features = _features(
        frame[[name for name in frame if name not in left_out]], sensitive, file.name
    )
    names: tuple[str, ...] = ()
    if kind is Task.MULTICLASS:
        values, names, positive_label = *_classes(frame[target], classes, file), ""
    elif classes is not None:
        raise UserError(f"dataset.classes is of dataset.task=multiclass, and the task is {kind}")
    else:
        values, positive_label = _target(frame[target], kind, positive, file)
    for name in privileged or {}:
        check_choice("sensitive column in dataset.privileged", name, labels)
    weights = _numbers(ColumnRef(file.name, weight).weights(frame)) if weight else None
    marked = ColumnRef(file.name, clusters).clusters(frame) if clusters else None
    most_frequent = {name: str(column.mode()[0]) for name, column in labels.items()}
    return Dataset(
        name=file.stem,
        task=kind,
        # Rows were counted as the file counts them; from here on they are counted from 0.
        features=features.reset_index(drop=True),
        target=values.reset_index(drop=True),
        sensitive=pd.DataFrame(labels).reset_index(drop=True),
        privileged=most_frequent | dict(privileged or {}),
        target_name=target,
        positive_label=positive_label,
        classes=names,
        ordered=kind is Task.MULTICLASS and classes is not None,
        sources=(Source(file.name, hashlib.sha256(file.read_bytes()).hexdigest()),),
        weight=weights,
        clusters=None if marked is None else marked.reset_index(drop=True),
    )


def _features(frame: pd.DataFrame, sensitive: Sequence[str], file: str) -> pd.DataFrame:
    """Return columns as numbers, truths or categories, without those that say nothing of a person.

    Raises
    ------
    DataError : a text among numbers, or a text column that is no categories; or none is left.
    """
    features: dict[str, pd.Series] = {}
    empty, numbered, nameless, absent, crowded = [], [], [], [], []
    for name in frame:
        text, is_group = frame[name], name in sensitive
        missing = text.isna() if text.dtype.kind == "f" else text.str.strip() == ""
        if text.dtype.kind != "f" and not is_group:
            missing = pd.Series(are_missing(text), text.index)
        if missing.all():
            empty.append(name)
            continue
        feature = _feature(text, missing, ColumnRef(file, name), is_group=is_group)
        if _NAMELESS.fullmatch(name):
            if _counts_rows(feature):
                numbered.append(name)
                continue
            nameless.append(name)
        if feature.dtype != "category":
            words = sorted({*text[missing].dropna()} - {""})
            absent += [f"{name} ({', '.join(words)})"] if words else []
        elif not is_group and _are_no_categories(feature):
            crowded.append(name)
        features[name] = feature
    if crowded:
        example = quoted(features[crowded[0]].cat.categories[0], 30)
        raise DataError(
            f"{file}: {_listed(crowded)} would be a feature for each different text, such as "
            f"{example}: dates, names and free texts are no categories; write numbers, or leave "
            f"them out with dataset.drop=[{','.join(crowded)}]"
        )
    if not features:
        raise DataError(f"{file}: no column is left as a feature")
    if empty:
        note(f"{file}: {_listed(empty)} left out: every cell is empty")
    if numbered:
        note(f"{file}: {_listed(numbered)} left out: it has no name, and numbers the rows")
    if nameless:
        note(
            f"{file}: {_listed(nameless)} without a name is a feature; "
            f"dataset.drop=[{','.join(nameless)}] leaves it out"
        )
    if absent:
        note(f"{file}: read as missing: {', '.join(absent)}")
    return pd.DataFrame(features)


_NAMELESS = re.compile(r"(column |Unnamed: )\d+(\.\d+)?")  # as this project and pandas call them
_DATE = r"(\d{4}[-/.]\d\d?[-/.]\d\d?|\d\d?[-/.]\d\d?[-/.](\d{4}|\d\d))([ T].*)?"
_FEW_CATEGORIES = 20


def _feature(
    column: pd.Series, missing: pd.Series, place: ColumnRef, *, is_group: bool
) -> pd.Series:
    """Return a column as numbers where most of its values are written as such, else as categories.

    Parameters
    ----------
    missing : (n,) where it has no value.
    is_group : whether its texts are labels of groups, which may be anything.

    Raises
    ------
    DataError : a text among numbers.
    """
    values = to_numbers(column)
    wrong = ~np.isfinite(values) & ~missing.to_numpy()
    if is_group:  # a label of so many digits is a name
        wrong |= np.abs(values) >= 2**53
    if not wrong.any():
        return _numbers(values, column.index)
    is_typed = column.dtype.kind == "f"
    written = column.astype(str).str.strip()
    amounts = written.str.fullmatch(AMOUNT).to_numpy(bool)
    if not is_group and (is_typed or 2 * amounts.sum() > (~missing).sum()):
        strange = wrong & ~amounts
        place.refuse_as(
            column, strange if strange.any() else wrong,
            f"is no number, as most of the column are: write one, or nothing where none is known; "
            f"dataset.drop=[{place.name}] leaves the column out",
        )  # fmt: skip
    if not missing.any() and set(written.str.lower()) <= {"true", "false"}:
        return written.str.lower() == "true"
    return column.where(written != "").astype("category")


def _numbers(values: NDArray[np.float64], index: pd.Index | None = None) -> pd.Series:
    """Return numbers as whole ones if all are, so that 1 and 1.0 are one feature."""
    is_whole = (abs(values) < 2**53).all() and (values == np.floor(values)).all()
    return pd.Series(values.astype(np.int64) if is_whole else values, index)


def _counts_rows(feature: pd.Series) -> bool:
    """Return whether a feature is 0, 1, 2, ... or 1, 2, 3, ..."""
    return (
        feature.dtype.kind == "i" and feature.iloc[0] in (0, 1) and (feature.diff()[1:] == 1).all()
    )


def _are_no_categories(feature: pd.Series) -> bool:
    """Return whether texts are dates, or too many for so many rows to be categories.

    Too many are over 100 of 1,000 rows, 1,000 of 100,000: the square root of ten times the rows.
    """
    number = len(feature.cat.categories)
    texts = feature.cat.categories.astype(str).str
    return number > _FEW_CATEGORIES and (
        number**2 > 10 * feature.count() or texts.fullmatch(_DATE).mean() > 0.5
    )


def _listed(names: Sequence[str]) -> str:
    """Return columns as a list of words, at most a dozen by name."""
    more = f" and {count(len(names) - 12)} more" if len(names) > 12 else ""
    return f"{', '.join(map(quoted, names[:12]))}{more}"


def _label(value: object) -> str:
    """Return one spelling of a label, as an audit has it: 1 for 1.0, nothing for NA."""
    text = spelled(str(value))
    return text.capitalize() if text in ("true", "false") else text


def _task(column: pd.Series, task: str | None, file: Path) -> Task:
    codes, values = each_value(column, _label)
    missing = np.array([not value for value in values])[codes]
    if missing.any():
        row = int(missing.argmax())
        text = f" ({quoted(column.iloc[row], 20)})" if column.iloc[row] else ""
        raise DataError(
            f"{file}: target '{column.name}' is missing in row {column.index[row] + 1}{text}"
        )
    if task is None:
        return Task.BINARY if len({*values}) == 2 else Task.REGRESSION
    if task not in list(Task):
        raise UserError(f"dataset.task is '{task}'; valid: {', '.join(Task)}")
    return Task(task)


def _classes(
    column: pd.Series, classes: Sequence[str | float] | None, file: Path
) -> tuple[pd.Series, tuple[str, ...]]:
    """Return codes of the labels, and the names of the classes."""
    text = column.map(_label)
    found = sorted(text.unique())
    if classes is None:
        numeric = pd.to_numeric(pd.Series(found), errors="coerce").notna().all()
        names = tuple(sorted(found, key=float) if numeric else found)
    else:
        names = tuple(map(_label, classes))
    unnamed = ~text.isin(names)
    if unnamed.any():
        row = int(np.flatnonzero(unnamed)[0])
        raise DataError(
            f"{file}: target '{column.name}' is {text.iloc[row]!r} in row "
            f"{text.index[row] + 1}, which dataset.classes does not name"
        )
    if len(names) > _MOST_CLASSES:
        raise DataError(
            f"{file}: target '{column.name}' has {len(names)} values; several classes are at most "
            f"{_MOST_CLASSES} (a number to predict is dataset.task=regression)"
        )
    return text.map({name: code for code, name in enumerate(names)}).astype(np.int64), names


_MOST_CLASSES = 100


def _target(
    column: pd.Series, task: Task, positive: str | float | None, file: Path
) -> tuple[pd.Series, str]:
    if task is Task.REGRESSION:
        values = pd.Series(to_numbers(column), column.index)
        if (wrong := ~np.isfinite(values)).any():
            row = int(wrong.to_numpy().argmax())
            raise DataError(
                f"{file}: target '{column.name}' is {column.iloc[row]!r} in row "
                f"{column.index[row] + 1}; a regression needs numbers, a classification two "
                "labels, or several classes with dataset.task=multiclass"
            )
        return values, ""
    text = column.map(_label)
    found = sorted(text.unique())
    if len(found) != 2:
        place = int(np.flatnonzero(~text.isin(text.unique()[:2]))[0]) if len(found) > 2 else 0
        third = text.index[place] + 1
        raise DataError(
            f"{file}: target '{column.name}' has {len(found)} values ({', '.join(found[:5])}); a "
            f"binary target has two (see row {third})"
        )
    if positive is None and set(found) not in ({"0", "1"}, {"False", "True"}):
        raise UserError(
            f"dataset.positive must say which of {', '.join(found)} in '{column.name}' is label 1"
        )
    chosen = found[1] if positive is None else _label(positive)
    if chosen not in found:
        raise unknown_name(f"label of target '{column.name}'", chosen, found)
    return (text == chosen).astype(np.int64), chosen
