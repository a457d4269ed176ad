"""Your own table: a CSV, Excel, Parquet or Arrow file with a target and sensitive columns."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fairbench.core.errors import DataError, UserError, check_choice, unknown_name, warn
from fairbench.core.formats import MISSING, label_notes
from fairbench.data.any_table import check_columns, read_arrow, say_guessed, text_table
from fairbench.data.dataset import Dataset, Datasheet, Source, Task
from fairbench.data.delimited import as_texts, read_table, unique_names
from fairbench.data.download import Archive
from fairbench.data.tabular import spelled
from fairbench.data.unpacking import ARROW, PARQUET, Content, content_of

DATASHEET = Datasheet(
    title="Your own table",
    source="Your own CSV, Excel, Parquet or Arrow file, which dataset.path names",
    licence="Yours",
    paper_differences="Text columns become categorical features. Missing features stay missing. "
    "People whose sensitive label is missing are a group of their own, 'unknown'.",
    criticism="The privileged group is the most frequent one unless `dataset.privileged` names "
    "it. Name identifiers in `dataset.drop`: a model memorises a column that has a different "
    "value in each row.",
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
    """
    if not path or not target or not sensitive:
        raise UserError(
            "dataset=table needs dataset.path=FILE dataset.target=COLUMN "
            "dataset.sensitive=[COLUMN,...]"
        )
    file = Path(path)
    extra = {"weight": weight, "clusters": clusters}
    named = [name for name in extra.values() if name]
    sensitive = [sensitive] if isinstance(sensitive, str) else sensitive
    frame, texts = _read(file, sensitive, [target, *sensitive, *drop, *named])
    own = {part: frame[name] for part, name in extra.items() if name}
    frame = frame.drop(columns=[*drop, *(name for name in named if name not in sensitive)])
    kind = _task(frame[target], task, file)
    labels = {name: texts[name].replace("", MISSING).astype("category") for name in sensitive}
    for name in sensitive:
        for sentence in label_notes(name, texts[name].unique()):
            warn(sentence)
    _check_marks(own.get("clusters"), file)
    features = frame.drop(columns=[target, *([] if keep_sensitive else sensitive)])
    text = features.select_dtypes(include=["object", "string"]).columns
    names: tuple[str, ...] = ()
    if kind is Task.MULTICLASS:
        values, names, positive_label = *_classes(frame[target], classes, file), ""
    elif classes is not None:
        raise UserError(f"dataset.classes is of dataset.task=multiclass, and the task is {kind}")
    else:
        values, positive_label = _target(frame[target], kind, positive, file)
    for name in privileged or {}:
        check_choice("sensitive column in dataset.privileged", name, labels)
    most_frequent = {name: str(column.mode()[0]) for name, column in labels.items()}
    return Dataset(
        name=file.stem,
        task=kind,
        features=features.astype(dict.fromkeys(text, "category")),
        target=values,
        sensitive=pd.DataFrame(labels),
        privileged=most_frequent | dict(privileged or {}),
        target_name=target,
        positive_label=positive_label,
        classes=names,
        ordered=kind is Task.MULTICLASS and classes is not None,
        sources=(Source(file.name, hashlib.sha256(file.read_bytes()).hexdigest()),),
        **own,
    )


def _check_marks(clusters: pd.Series | None, file: Path) -> None:
    if clusters is not None and clusters.isna().any():
        row = int(np.flatnonzero(clusters.isna())[0])
        raise DataError(f"{file}: clusters '{clusters.name}' is missing in row {row + 1}")


def _read(
    file: Path, sensitive: Sequence[str], named: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the table, and its sensitive columns as texts, exactly as they are in the file.

    Only features are read as numbers, so the labels 01, 1 and 1.0 are three labels.
    """
    if any("\ud800" <= sign <= "\udfff" for sign in str(file)):
        raise DataError(f"{file}: the name of the file is no text: rename it")
    try:
        if not file.is_file():
            raise DataError(f"dataset.path: no file {file}")
        content = content_of(file)
        read = _arrow if content.kind in (PARQUET, ARROW) else _text
        frame, texts = read(file, content, sensitive, named)
    except (ValueError, OSError) as error:
        raise DataError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from error
    if frame.empty:
        raise DataError(f"{file}: no rows")
    return frame.reset_index(drop=True), texts


def _arrow(
    file: Path, content: Content, sensitive: Sequence[str], named: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    from pyarrow import float64, schema, types

    table = read_arrow(file, content, None)
    check_columns(str(file), named, table.column_names)
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if kind.num_fields:
            raise DataError(f"{file}: column '{name}' is of type {kind}, not a value in each row")
    texts = as_texts(table.select(list(sensitive)), str(file))
    kinds = [float64() if types.is_decimal(kind) else kind for kind in table.schema.types]
    numeric = schema(list(zip(table.column_names, kinds, strict=True)))
    return table.cast(numeric).to_pandas(), texts


def _text(
    file: Path, content: Content, sensitive: Sequence[str], named: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    table = text_table(file, content, named)
    check_columns(str(file), named, table.names)
    # Refuses rows with fields too few or too many, too.
    texts = read_table(
        table.data, str(file), separator=table.separator, only=sensitive, exact=sensitive
    )
    # Only empty fields are missing: "NA" and "None" may well be labels.
    frame = pd.read_csv(
        io.BytesIO(table.data), sep=table.separator, keep_default_na=False, na_values=[""],
        index_col=False, low_memory=False,  # types are of whole columns
    )  # fmt: skip
    if len(frame) != len(texts):
        raise DataError(f"{file}: it is not plain where rows end ({len(frame)}, {len(texts)})")
    frame.columns = unique_names([name or f"column {i}" for i, name in enumerate(table.names, 1)])
    commas = _with_decimal_commas(frame)
    frame = frame.assign(**{
        name: pd.to_numeric(frame[name].str.replace(",", ".", regex=False)) for name in commas
    })  # fmt: skip
    said = (f"numbers with a decimal comma in {', '.join(commas)}",) if commas else ()
    say_guessed(file, (*table.guessed, *said))
    return frame, texts


def _with_decimal_commas(frame: pd.DataFrame) -> list[str]:
    """Return the text columns that hold only numbers, some of them with a decimal comma."""
    found = []
    for name, column in frame.select_dtypes(include=["object", "string"]).items():
        known = column.dropna()
        if (
            pd.api.types.infer_dtype(known) == "string"
            and known.str.fullmatch(_DECIMAL_COMMA).all()
            and known.str.contains(",", regex=False).any()
        ):
            found.append(str(name))
    return found


_DECIMAL_COMMA = r"\s*[+-]?\d+(,\d+)?\s*"


def _task(column: pd.Series, task: str | None, file: Path) -> Task:
    if column.isna().any():
        row = int(np.flatnonzero(column.isna())[0])
        raise DataError(f"{file}: target '{column.name}' is missing in row {row + 1}")
    if task is None:
        return Task.BINARY if column.nunique() == 2 else Task.REGRESSION
    if task not in list(Task):
        raise UserError(f"dataset.task is '{task}'; valid: {', '.join(Task)}")
    return Task(task)


def _classes(
    column: pd.Series, classes: Sequence[str | float] | None, file: Path
) -> tuple[pd.Series, tuple[str, ...]]:
    """Return codes of the labels, and the names of the classes."""
    text = column.map(lambda value: spelled(str(value)))
    found = sorted(text.unique())
    if classes is None:
        numeric = pd.to_numeric(pd.Series(found), errors="coerce").notna().all()
        names = tuple(sorted(found, key=float) if numeric else found)
    else:
        names = tuple(spelled(str(each)) for each in classes)
    unnamed = ~text.isin(names)
    if unnamed.any():
        row = int(np.flatnonzero(unnamed)[0])
        raise DataError(
            f"{file}: target '{column.name}' is {text.iloc[row]!r} in row {row + 1}, which "
            f"dataset.classes does not name"
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
        values = pd.to_numeric(column, errors="coerce")
        if values.isna().any():
            row = int(np.flatnonzero(values.isna())[0])
            raise DataError(
                f"{file}: target '{column.name}' is {column.iloc[row]!r} in row {row + 1}; a "
                "regression needs numbers, a classification exactly two labels"
            )
        return values.astype(np.float64), ""
    text = column.astype(str)
    found = sorted(text.unique())
    if len(found) != 2:
        third = int(np.flatnonzero(~text.isin(text.unique()[:2]))[0]) + 1 if len(found) > 2 else 1
        raise DataError(
            f"{file}: target '{column.name}' has {len(found)} values ({', '.join(found[:5])}); a "
            f"binary target has two (see row {third})"
        )
    if positive is None and set(found) not in ({"0", "1"}, {"0.0", "1.0"}, {"False", "True"}):
        raise UserError(
            f"dataset.positive must say which of {', '.join(found)} in '{column.name}' is label 1"
        )
    chosen = found[1] if positive is None else str(positive)
    if chosen not in found:
        raise unknown_name(f"label of target '{column.name}'", chosen, found)
    return (text == chosen).astype(np.int64), chosen
