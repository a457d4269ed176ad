"""Aligns a user's arrays and makes them numbers: pandas, polars, NumPy or lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.formats import quoted
from fairbench.data.dataset import Task, as_groups
from fairbench.data.in_memory import frame_of, is_table
from fairbench.data.tabular import plain_pair, spelled

SensitiveFeatures: TypeAlias = pd.Series | pd.DataFrame | Mapping[str, ArrayLike] | ArrayLike
_SLACK = 0.01  # by which two probabilities may miss a sum of 1


@dataclass(frozen=True)
class Aligned:
    """The arrays of a user, all with their rows in one order.

    Attributes
    ----------
    arrays : name -> values, without the arrays that are None.
    features : the sensitive features.
    within : the features within whose values groups are compared, if any.
    """

    arrays: Mapping[str, Any]
    features: Any
    within: Any = None


def align(
    given: Mapping[str, Any], features: SensitiveFeatures, within: SensitiveFeatures | None = None
) -> Aligned:
    """Return arrays and groups, with pandas objects reordered to one index.

    Raises
    ------
    UserError : if two arrays have different rows, or an index that has duplicates; or if the target
        has no index, and two others have different orders.
    """
    arrays = {name: values for name, values in given.items() if values is not None}
    columns = [
        *arrays.items(),
        *_columns("sensitive_features", features).items(),
        *_columns("within", within).items(),
    ]
    indexed = [(name, values.index) for name, values in columns if _is_pandas(values)]
    if not indexed:
        return Aligned(arrays, features, within)
    first, order = indexed[0]
    without_index = any(values is not None and not _is_pandas(values) for _, values in columns)
    for name, index in indexed:
        _check_index(name, index, first, order, by_position=without_index and first != "target")
    return Aligned(
        {name: _reorder(values, order) for name, values in arrays.items()},
        _reorder_features(features, order),
        _reorder_features(within, order),
    )


def _columns(role: str, features: SensitiveFeatures | None) -> Mapping[str, Any]:
    """Return features by their names; those without names by what they are for."""
    return features if isinstance(features, Mapping) else {role: features}


def _is_pandas(values: Any) -> bool:
    return isinstance(values, pd.Series | pd.DataFrame)


def _reorder(values: Any, order: pd.Index) -> Any:
    """Return values with their rows in an order, as they are where they have no index."""
    if _is_pandas(values) and not values.index.equals(order):
        return values.reindex(order)
    return values


def _reorder_features(features: SensitiveFeatures | None, order: pd.Index) -> Any:
    if isinstance(features, Mapping):
        return {name: _reorder(values, order) for name, values in features.items()}
    return _reorder(features, order)


def _check_index(
    name: str, index: pd.Index, first: str, order: pd.Index, *, by_position: bool
) -> None:
    """Refuse rows that are not the first array's, or that plain arrays are in one order with.

    Parameters
    ----------
    by_position : whether arrays without an index are given, too.
    """
    if index.equals(order) or len(index) != len(order):
        return  # `check_lengths` refuses unequal lengths, in its own words
    same_rows = index.is_unique and order.is_unique and index.isin(order).all()
    if not same_rows:
        raise UserError(
            f"the rows of {name} and of {first} have different names (index): give both with one "
            "index, or as arrays (.to_numpy()) where their rows are in one order"
        )
    if by_position:
        raise UserError(
            f"the rows of {name} are in another order than those of {first}, and arrays without an "
            "index are given too: give all with an index, or none (.to_numpy())"
        )


def labels_and_columns(
    given: Mapping[str, Any], task: Task, positive: object = None
) -> tuple[Floats, dict[str, Floats]]:
    """Return the target and the other columns as numbers, labels as 0 and 1.

    Parameters
    ----------
    given : name -> values: ``target``, ``prediction``, ``score`` and others.
    positive : which label counts as 1; needed if the labels do not tell.

    Raises
    ------
    UserError : if a value is not a number, or there are more than two labels, or two labels that do
        not tell which of them counts as 1.
    """
    given = {name: values for name, values in given.items() if name not in _NOT_NUMBERS}
    names = _label_names(given, positive) if task is Task.BINARY else None
    labels = ("target", "prediction")
    columns = {
        name: _codes(name, values, names)
        if names and name in labels
        else _numbers(name, _positive_scores(values, names) if name == "score" else values)
        for name, values in given.items()
    }
    return columns.pop("target"), columns


def classes_and_columns(
    given: Mapping[str, Any], classes: Sequence[object] | None = None
) -> tuple[tuple[str, ...], Floats, dict[str, Floats]]:
    """Return the names of the classes, the codes of the target, and the other columns as numbers.

    Parameters
    ----------
    given : name -> values: ``target``, ``prediction``, ``score`` (n, C) and others.
    classes : all classes in their order; by default those that occur, in the order of their
        numbers or of the alphabet.

    Raises
    ------
    UserError : fewer than two classes, one given twice, a label that is none of them, or scores
        that are not one for each.
    """
    given = {name: values for name, values in given.items() if name not in _NOT_NUMBERS}
    labels = {name: _texts(name, given.pop(name)) for name in ("target", "prediction")}
    present = {text for texts in labels.values() for text in texts}
    names = _in_order(present - {""}) if classes is None else tuple(map(_spelling, classes))
    if len(names) < 2 or len(set(names)) < len(names):
        listed = ", ".join(map(quoted, names))
        raise UserError(f"classes are {listed or 'none'}: several classes are two or more, once")
    codes = {name: _class_codes(name, texts, names) for name, texts in labels.items()}
    columns = {"prediction": codes["prediction"]}
    if "score" in given:
        columns |= _class_scores(given.pop("score"), names)
    columns |= {name: _numbers(name, values) for name, values in given.items()}
    return names, codes["target"], columns


def _texts(name: str, values: Any) -> list[str]:
    array = _one_dimensional(name, np.asarray(values, object))
    codes, distinct = pd.factorize(pd.Series(array), use_na_sentinel=False)
    spellings = [_spelling(label) for label in distinct]
    return [spellings[code] for code in codes]


def _in_order(names: set[str]) -> tuple[str, ...]:
    """Return names in the order of their numbers where all are numbers, or of the alphabet."""
    try:
        return tuple(sorted(names, key=float))
    except ValueError:
        return tuple(sorted(names))


def _class_codes(name: str, texts: Sequence[str], names: Sequence[str]) -> Floats:
    """Return the index of each label among the names of the classes."""
    code = {label: float(k) for k, label in enumerate(names)}
    codes = np.array([code.get(text, np.nan) for text in texts])
    if np.isnan(codes).any():
        row = int(np.flatnonzero(np.isnan(codes))[0])
        listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise UserError(
            f"{name} is {quoted(texts[row])} in row {row}, none of the classes {listed}"
        )
    return codes


def _class_scores(score: Any, names: Sequence[str]) -> dict[str, Floats]:
    """Return one column for each class, in their order; a table's columns may be named by them."""
    shares = frame_of(score) if is_table(score) and not isinstance(score, pd.Series) else score
    if isinstance(shares, pd.DataFrame):
        titles = [_spelling(column) for column in shares.columns]
        if set(titles) == set(names):
            shares = shares.iloc[:, [titles.index(name) for name in names]]
    array = np.asarray(shares, float)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise UserError(
            f"score has shape {array.shape}: of {len(names)} classes ({', '.join(names)}) it has a "
            "column each"
        )
    return {f"score_{k}": array[:, k] for k in range(len(names))}


_NOT_NUMBERS = ("sample_weight", "clusters")


def _label_names(given: Mapping[str, Any], positive: object) -> tuple[str, str] | None:
    """Return the labels that are 0 and 1; None where they are numbers 0 and 1 as they are."""
    target = np.asarray(given["target"])
    if positive is None and target.dtype.kind in "biuf":
        return None
    texts = [_spelling(label) for label in pd.unique(pd.Series(target.ravel()))]
    labels = sorted({*texts} - {""})
    label_1 = _spelling(positive) if positive is not None else ""
    if len(labels) > 2 or "" in texts:
        which = "a missing label" if "" in texts else f"{len(labels)} labels"
        raise UserError(f"target holds {which}, and needs one of two in each row")
    if label_1 and label_1 not in labels:
        listed = " and ".join(map(quoted, labels))
        raise UserError(f"positive is {quoted(positive)}, and target holds {listed}")
    if label_1:
        return next((label for label in labels if label != label_1), f"not {label_1}"), label_1
    if pair := plain_pair(labels):
        return pair
    listed = " and ".join(map(quoted, labels))
    either = " or ".join(f"positive={name!r}" for name in labels)
    raise UserError(f"target holds {listed}: say which of them scores foretell: {either}")


def _spelling(value: object) -> str:
    return spelled(str(value))


def _codes(name: str, values: Any, names: tuple[str, str]) -> Floats:
    """Return labels as 0 and 1, given the names of both."""
    array = _one_dimensional(name, np.asarray(values, object))
    codes, distinct = pd.factorize(pd.Series(array), use_na_sentinel=False)
    meaning = dict(zip(names, (0.0, 1.0), strict=True))
    code_of_distinct = [meaning.get(_spelling(label), np.nan) for label in distinct]
    coded: Floats = np.array(code_of_distinct)[codes]
    if np.isnan(coded).any():
        row = int(np.flatnonzero(np.isnan(coded))[0])
        raise UserError(
            f"{name} is {quoted(array[row])} in row {row}, not {quoted(names[0])} or "
            f"{quoted(names[1])}"
        )
    return coded


def _positive_scores(score: Any, names: tuple[str, str] | None) -> Any:
    """Return the probabilities of label 1, also where those of both labels are given."""
    shares = frame_of(score) if is_table(score) and not isinstance(score, pd.Series) else score
    array = np.asarray(shares)
    if array.ndim != 2 or array.shape[1] != 2:
        return score
    column = 1 if names is None else sorted(names).index(names[1])
    if isinstance(shares, pd.DataFrame):
        titles = [_spelling(title) for title in shares.columns]
        column = titles.index(names[1]) if names and names[1] in titles else column
    if not np.allclose(array.astype(float).sum(axis=1), 1, atol=_SLACK):
        raise UserError("score has two columns that do not add up to 1: give one of label 1")
    return array[:, column]


def _numbers(name: str, values: ArrayLike) -> Floats:
    try:
        column = np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name} is not numeric: {error}") from error
    return _one_dimensional(name, column)


def _one_dimensional(name: str, column: NDArray[Any]) -> NDArray[Any]:
    if column.ndim != 1:
        raise UserError(f"{name} has shape {column.shape}; it must have one dimension")
    if not len(column):
        raise UserError(f"{name} has no rows")
    return column


def check_lengths(target: Floats, columns: Mapping[str, object]) -> None:
    """Refuse the first column that has not the rows of the target."""
    for name, column in columns.items():
        length = len(column)  # type: ignore[arg-type]
        if length != len(target):
            raise UserError(f"{name} has {length} rows, the target {len(target)}")


def sensitive_frame(
    features: SensitiveFeatures, *, what: str = "sensitive feature", name: str = "group"
) -> pd.DataFrame:
    """Return groups as categorical columns, one per attribute.

    Parameters
    ----------
    what : what a column is called in errors.
    name : what a column without a name is called.

    Raises
    ------
    UserError : unequal lengths, more than one dimension, or no rows.
    """
    if is_table(features) and not isinstance(features, pd.DataFrame | pd.Series):
        features = frame_of(features)
    if isinstance(features, pd.DataFrame | Mapping):
        columns = {str(name): column for name, column in features.items()}
    elif hasattr(features, "name"):
        columns = {str(features.name or name): features}
    else:
        columns = {name: features}
    arrays = {
        title: _one_dimensional(f"{what} {title}", _array_of_labels(column))
        for title, column in columns.items()
    }
    lengths = {title: len(column) for title, column in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise UserError(f"{what}s have unequal lengths: {lengths}")
    return pd.DataFrame({title: as_groups(title, column) for title, column in arrays.items()})


def _array_of_labels(column: ArrayLike) -> NDArray[Any]:
    # NumPy would make a missing label in a list of texts the text "nan".
    return np.asarray(column, None if hasattr(column, "dtype") else object)
