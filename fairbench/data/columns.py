"""Turn columns of text of a user's table into labels, marks and scores; errors name the row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import DataError, UserError
from fairbench.core.formats import count, is_number, quoted, shortened
from fairbench.data.tabular import plain_pair, spelled, to_numbers

_TRUE, _FALSE = ("1", "true", "yes"), ("0", "false", "no", "")
_MANY_NUMBERS = 10  # more distinct numbers than this are hardly the names of classes


class RowError(DataError):
    """A value of a row that is refused; `row` counts from 1."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


@contextmanager
def name_rows_in_errors(frame: pd.DataFrame, column: str) -> Iterator[None]:
    """Add the identifier of a row to messages about it.

    Parameters
    ----------
    column : the column of identifiers; messages stay as they are if it is empty.
    """
    try:
        yield
    except RowError as error:
        if not column:
            raise
        name = f"row {error.row} ({column} {shortened(str(frame[column].loc[error.row - 1]), 30)})"
        raise UserError(str(error).replace(f"row {error.row}", name, 1)) from error


def check_ids(ids: pd.Series, column: ColumnRef) -> None:
    """Refuse a row without an identifier, and two rows with the same identifier.

    Raises
    ------
    UserError : names the row or the two rows.
    """
    column.refuse_blank(ids, "an identifier")
    if (again := ids.duplicated().to_numpy()).any():
        later = int(again.argmax())
        earlier = int((ids == ids.iloc[later]).to_numpy().argmax())
        raise column.fault(
            f"holds {quoted(ids.iloc[later], 40)} in row {earlier + 1} and in row {later + 1}: a "
            "row is one person, and id= says who; of rows that belong together name cluster= "
            "instead"
        )


@dataclass(frozen=True)
class ColumnRef:
    """The file and the name of a column, for messages."""

    file: str
    name: str

    def fault(self, sentence: str) -> UserError:
        """Return an error about the column; its message ends with a sentence on what it holds."""
        return UserError(f"{self.file}: column '{self.name}' {sentence}")

    def refuse(
        self,
        text: pd.Series,
        is_refused: NDArray[np.bool_],
        expected: str,
        *,
        negation: str = "not",
    ) -> None:
        """Raise an error on the first value that is refused, if any; rows count from 1.

        Parameters
        ----------
        expected : what a value has to be.
        negation : ``not`` or ``no``, as `expected` needs it.

        Raises
        ------
        RowError : names the row and the value.
        """
        if is_refused.any():
            index = int(np.flatnonzero(is_refused)[0])
            row = int(text.index[index]) + 1  # as the file counts, of whose rows these may be some
            raise RowError(
                f"{self.file}: column '{self.name}', row {row}: {quoted(text.iloc[index])} is "
                f"{negation} {expected}",
                row,
            )

    def refuse_blank(self, text: pd.Series, expected: str) -> None:
        """Raise an error on the first value that is empty, if any."""
        self.refuse(text, (text.astype(str) == "").to_numpy(), expected)


def each_value(
    text: pd.Series, function: Callable[[str], str]
) -> tuple[NDArray[np.int64], list[str]]:
    """Apply a function to the distinct values of a column; return codes into their results."""
    codes, values = pd.factorize(text)
    return codes.astype(np.int64), [function(str(value)) for value in values]


def scores_of(frame: pd.DataFrame, column: ColumnRef, *, ratings: bool = False) -> Floats:
    """Return a column of probabilities.

    Parameters
    ----------
    ratings : whether ratings may be audited as well, and are advised where these are some.

    Raises
    ------
    UserError : a value that is no number; names the row.
    """
    text = frame[column.name]
    score: Floats = to_numbers(text)
    if (wrong := ~np.isfinite(score)).any():
        wrong_texts = text[wrong].astype(object).fillna("").astype(str).str.strip()
        hint = ": of percents give scale=percent" if wrong_texts.iloc[0].endswith("%") else ""
        if not wrong_texts.iloc[0]:
            rows = count(wrong.sum())
            hint = f": each row needs a score; add it, or delete the {rows} rows without"
        column.refuse(text.where(~wrong, wrong_texts), wrong, f"number{hint}", negation="no")
    are_ratings = not (score % 1).any() and not 10 < score.max() <= 100
    if are_ratings or score.min() < 0 or not 1 < score.max() <= 100:
        hint = ""
    elif (score > 2).any() and (
        within_one(score).mean() >= _MANY_SHARES or mixes_scales(score)
    ):  # fmt: skip
        hint = "" if mixes_scales(score) else "; if all are percents, give scale=percent"
        raise mixed_scales(score, text, column, hint)
    else:
        hint = "; of percents give scale=percent"
    if are_ratings and ratings:
        hint = (
            "; of ratings such as deciles give scale=rating, and as threshold= the one above which "
            "a decision is positive"
        )
    column.refuse(text, (score < 0) | (score > 1), f"a probability between 0 and 1{hint}")
    return score


def numbers_of(frame: pd.DataFrame, column: ColumnRef) -> Floats:
    """Return a column of numbers.

    Raises
    ------
    UserError : a value that is no number; names the row.
    """
    text = frame[column.name]
    values: Floats = to_numbers(text)
    column.refuse(text, ~np.isfinite(values), "number", negation="no")
    return values


def shares_of(percents: pd.Series, column: ColumnRef) -> pd.Series:
    """Return a column of percents as shares of 1; values that are no numbers stay as they are.

    Raises
    ------
    UserError : some values are percents and others shares; names a row of each kind.
    """
    if percents.dtype.kind in "iuf":
        if mixes_scales(percents.to_numpy(np.float64)):
            raise mixed_scales(percents.to_numpy(np.float64), percents, column)
        return percents / 100
    text = percents.astype(str)
    values = to_numbers(text.str.rstrip("% \u00a0"))
    has_sign = text.str.endswith("%").to_numpy(bool)
    is_present = (text != "").to_numpy(bool)
    is_bare = is_present & ~has_sign
    if (has_sign & is_present).any() and is_bare.any():
        rows = int(np.flatnonzero(is_bare)[0]), int(np.flatnonzero(has_sign)[0])
        raise _mixed_scales_error(rows, text, column)
    if mixes_scales(values):
        raise mixed_scales(values, text, column)
    shares = pd.Series(values / 100, percents.index)
    is_number = np.isfinite(shares)
    return shares if is_number.all() else percents.where(~is_number, shares.astype(str))


# If more of a column's values than this lie between 0 and 1, they are hardly small percents.
_MANY_SHARES = 0.2
# With this many values just under 1, it is no accident that few or none lie just above 1.
_FEWEST_APART = 8


def within_one(values: Floats) -> NDArray[np.bool_]:
    """Return which values (n,) lie strictly between 0 and 1."""
    return (values > 0) & (values < 1)


def mixes_scales(values: Floats) -> bool:
    """Return whether some values (n,) are plainly shares of 1, and others percents.

    A column of percents has about as many values just under 1 as just above 1. A column that mixes
    shares and percents has many just under 1 and few just above.
    """
    under = ((values > 0.5) & (values < 1)).sum()
    above = ((values > 1) & (values < 1.5)).sum()
    percents = (values >= 1.5).any()
    return bool(percents and under >= _FEWEST_APART and under > _FEWEST_APART * above)


def mixed_scales(values: Floats, text: pd.Series, column: ColumnRef, hint: str = "") -> UserError:
    """Return the error of a column that holds both shares and percents."""
    return _mixed_scales_error(
        (int(np.flatnonzero(within_one(values))[0]), int(np.flatnonzero(values > 1)[0])),
        text,
        column,
        hint,
    )


def _mixed_scales_error(
    rows: tuple[int, int], text: pd.Series, column: ColumnRef, hint: str = ""
) -> UserError:
    """Return the error that names a row with a share, and a row with a percent."""
    share, percent = text.iloc[list(rows)]
    share_row, percent_row = rows
    return column.fault(
        f"holds shares and percents, such as {quoted(share)} in row {share_row + 1} and "
        f"{quoted(percent)} in row {percent_row + 1}: write all in one way{hint}"
    )


def labels_of(text: pd.Series, column: ColumnRef, positive: str) -> tuple[Floats, tuple[str, str]]:
    """Return 0, 1 or NaN for every row, and the names of labels 0 and 1.

    Parameters
    ----------
    positive : the label that is 1; needed if their names do not tell.

    Raises
    ------
    UserError : a third label, an unknown positive one, or two of which neither is plainly 1.
    """
    codes, values = each_value(text, spelled)
    present = list(dict.fromkeys(value for value in values if value))
    if len(present) > 2:
        hint = "; of several classes name prediction=, the column of predicted ones, too"
        if len(present) > _MANY_NUMBERS and all(map(is_number, present)):
            hint = (
                f", here {len(present)} different numbers: make two classes of them, such as those "
                "above a limit; an audit of predicted numbers names their column by prediction="
            )
        first, second = (quoted(label, 30) for label in present[:2])
        wrong = np.array([value not in ("", *present[:2]) for value in values])
        column.refuse(text, wrong[codes], f"{first} or {second}, and a label has two values{hint}")
    names = _label_names(present, column, spelled(positive))
    return labels_with_names(text, column, names)


def labels_with_names(
    text: pd.Series, column: ColumnRef, names: Sequence[str]
) -> tuple[Floats, tuple[str, str]]:
    """Like :func:`labels_of`, but the names of labels 0 and 1 are given.

    Raises
    ------
    UserError : a third label; names the row.
    """
    first, second = names
    meaning = {"": np.nan, first: 0.0, second: 1.0}
    codes, values = each_value(text, spelled)
    wrong = np.array([value not in meaning for value in values], bool)
    column.refuse(text, wrong[codes], f"'{first}' or '{second}', the labels there are")
    return np.array([meaning[value] for value in values])[codes], (first, second)


def _label_names(present: Sequence[str], column: ColumnRef, positive: str) -> tuple[str, str]:
    """Return the names of labels 0 and 1, from the one or two that are present."""
    holds = "holds " + " and ".join(quoted(label, 40) for label in sorted(present))
    if not positive:
        if pair := plain_pair(present):
            return pair
        either = " or ".join(f"positive={shortened(label, 40)}" for label in sorted(present))
        raise column.fault(f"{holds}; say which one the score is the probability of: {either}")
    other_labels = [label for label in present if label != positive]
    if len(other_labels) > 1:
        raise column.fault(f"{holds}; positive={positive} is neither")
    pair = plain_pair([positive]) or (f"not {positive}", positive)
    return next(label for label in [*other_labels, *pair] if label != positive), positive


def marks_of(text: pd.Series, column: ColumnRef) -> NDArray[np.bool_]:
    """Return a column of true and false.

    Raises
    ------
    UserError : any other value.
    """
    codes, values = each_value(text, lambda value: spelled(value).lower())
    wrong = np.array([value not in _TRUE + _FALSE for value in values])
    column.refuse(text, wrong[codes], "true or false")
    marks: NDArray[np.bool_] = np.array([value in _TRUE for value in values])[codes]
    return marks


def decisions_of(
    frame: pd.DataFrame,
    column: ColumnRef,
    names: tuple[str, str],
    score: Floats | None,
    threshold: float,
    *,
    others: Mapping[str, int] | None = None,
) -> NDArray[np.int64]:
    """Return decisions as 0 and 1, from their column, or from the scores if none is named.

    Parameters
    ----------
    names : the names of labels 0 and 1, by which decisions are spelled, too.
    others : name of a decision -> 0 or 1, if decisions have names of their own.

    Raises
    ------
    UserError : a decision that is no label; names the row.
    """
    if score is not None and not column.name:
        return (score > threshold).astype(np.int64)
    text = frame[column.name]
    codes, values = each_value(text, spelled)
    meaning = others or {name: code for code, name in enumerate(names_of_decisions(values, names))}
    wrong = np.array([value not in meaning for value in values])
    first, second = (quoted(name, 40) for name in meaning)
    source = "the decisions that decision= names" if others else "the labels of the target"
    column.refuse(text, wrong[codes], f"{first} or {second}, {source}")
    decisions: NDArray[np.int64] = np.array([meaning.get(value, 0) for value in values], np.int64)
    return decisions[codes]


_NO = ("0", "no", "n", "false", "f", "nein", "non", "nej", "nee")


def names_of_decisions(values: Collection[str], names: tuple[str, str]) -> tuple[str, str]:
    """Return the names of decisions 0 and 1: those of labels, or a plain pair such as 0 and 1.

    Parameters
    ----------
    values : the decisions that occur.
    names : the names of labels 0 and 1.

    Returns
    -------
    The pair of names that decisions have, such as ``no`` and ``yes``, if it is plain that decision
    1 means label 1; else `names`. It is plain if the labels' own names are such a pair, or if
    decisions are 0 and 1 and label 1 is not called ``no``.
    """
    present = {*values} - {""}
    pair = plain_pair(present) if present and not present <= {*names} else None
    plain = plain_pair(names) == names or (pair == ("0", "1") and names[1].lower() not in _NO)
    return pair if pair and plain else names


def notes_on_decisions(
    text: pd.Series, column: str, names: tuple[str, str], explained: Sequence[str] = ()
) -> list[str]:
    """Return a note on which decision means which label, if names differ and are not explained.

    Parameters
    ----------
    explained : the names of decisions whose meaning the user gave.
    """
    values = each_value(text, spelled)[1]
    called = names_of_decisions(values, names)
    if called == names or {*explained} == {*values} - {""}:
        return []
    pairs = (f"'{ours}' stands for '{label}'" for ours, label in zip(called, names, strict=True))
    return [f"Decisions are spelled otherwise than labels: in '{column}' {' and '.join(pairs)}."]


def weights_of(frame: pd.DataFrame, column: ColumnRef) -> Floats:
    """Return a column of how many people each row stands for.

    Raises
    ------
    UserError : a value that is no number or is below 0; or all are 0.
    """
    weight = numbers_of(frame, column)
    column.refuse(frame[column.name], weight < 0, "a weight of 0 or more")
    if not weight.any():
        raise column.fault("is 0 in every row")
    return weight


def clusters_of(frame: pd.DataFrame, column: ColumnRef) -> pd.Series:
    """Return the cluster of each row, from a column of marks.

    Raises
    ------
    UserError : a row without a mark, or the same mark in all rows.
    """
    clusters = frame[column.name].astype(str)
    column.refuse(clusters, (clusters == "").to_numpy(), "a mark of rows that belong together")
    if clusters.nunique() < 2:
        raise column.fault("has one mark in all rows: intervals need at least two clusters")
    return clusters
