"""Columns of a table's texts as numbers, categories, labels, marks, scores and classes.

A fault is named by file, column and row. From top to bottom: how texts are spelled and missing
(:func:`spelled`, :func:`to_numbers`), what loaders of data sets make of columns (:func:`numbers`,
:func:`labels`), what an audit reads (:class:`ColumnRef`), of several classes
(:class:`MulticlassScores`), and columns that hold the label by another name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Codes, Floats, Mask
from fairbench.core.errors import DataError, OpenQuestion, UserError, check_choice, did_you_mean
from fairbench.core.text import count, is_number, listed, quoted, said, shortened


def unique_names(names: Sequence[str]) -> list[str]:
    """Return what columns are called: a second x is ``x.1``, the third without name ``column 3``.

    No column takes the name that another has in the header. An index that pandas stored has none.
    """
    taken = {*names}
    unique: dict[str, None] = {}
    counts: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        named = name and not _INDEX.fullmatch(name)
        first = once = name if named else f"column {position}"
        while once in unique or (once in taken and once != name):
            counts[first] = counts.get(first, 0) + 1
            once = f"{first}.{counts[first]}"
        unique[once] = None
    return list(unique)


_INDEX = re.compile(r"__index_level_\d+__")


def check_columns(
    file: str,
    named: Sequence[str],
    found: Sequence[str],
    without: Collection[str] = (),
    *,
    every: bool = False,
) -> dict[str, str]:
    """Return the columns that are read of a table, and what each is called in its header.

    They are the `named` ones, and others of their names: see :func:`without_copies`.

    Parameters
    ----------
    found : the header; columns are called as :func:`unique_names` has it.
    without : names of columns that are left out, all columns of a name that is repeated.
    every : whether all others are read, too.

    Raises
    ------
    UserError : a name that no column has, or that is left out.
    """
    columns = unique_names(found)
    for name in (*without, *named):
        if name not in columns and name not in found:
            raise _missing_column(file, name, columns)
    headed = zip(columns, found, strict=True)
    kept = {column: name for column, name in headed if not {column, name} & {*without}}
    for name in named:
        if name not in kept:
            raise UserError(f"{file}: column {quoted(name)} is to be left out, and is asked for")
    return {column: name for column, name in kept.items() if every or {column, name} & {*named}}


def without_copies(
    frame: pd.DataFrame, columns: Mapping[str, str], named: Collection[str], file: str
) -> tuple[pd.DataFrame, Sequence[str]]:
    """Return a table with one of several equal columns of one name, and a note on these.

    Parameters
    ----------
    columns : what each column is called in the header.
    named : the columns that are asked for, which are kept.

    Raises
    ------
    DataError : another column has the name of a `named` one and is not equal to it.
    """
    equal: dict[str, str] = {}
    for column, name in columns.items():
        if column == name or name not in columns:
            continue
        first, later = frame[name], frame[column]
        differ = (~((first == later) | (first.isna() & later.isna()))).to_numpy(bool)
        if not differ.any():
            equal[name if column in named else column] = name
        elif name in named and column not in named:
            row = frame.index[int(differ.argmax())] + 1
            names = {"name": quoted(name), "later": quoted(column), "column": column}
            raise DataError(said("data", "two_of_a_name", file=file, row=row, **names))
    kept = [name for name in frame if name not in equal or name in named]
    notes = [f"equal columns {quoted(name)} as one" for name in dict.fromkeys(equal.values())]
    return frame[kept], notes


def _missing_column(file: str, name: str, found: Sequence[str]) -> UserError:
    """Return the error of a column that a table does not have, with the nearest or the first."""
    start = f"{file} has no column {quoted(name)}"
    if hint := did_you_mean(name, found, "'{}'"):
        return UserError(f"{start}; {hint}")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return UserError(f"{start}: its columns are {', '.join(map(quoted, found[:_SHOWN]))}{more}")


_SHOWN = 12  # columns that a message lists


def text_of(value: object) -> str:
    """Return a value as it would be written in a file."""
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return f"{float(value) + 0.0:.0f}"  # of -0.0 too: it equals 0
    return str(value)


def to_numbers(column: pd.Series) -> NDArray[np.float64]:
    """Return a column of texts or numbers as numbers, NaN where it has none.

    A text is the double that is nearest to it, whatever stands in the other rows.
    """
    if column.dtype == "str":
        from pyarrow import array, float64
        from pyarrow import compute as pc

        texts = pc.utf8_trim_whitespace(array(column))
        written = pc.if_else(pc.match_substring_regex(texts, _NUMBER), texts, None)
        return np.asarray(pc.cast(written, float64()), np.float64)
    return np.asarray(pd.to_numeric(column, errors="coerce"), np.float64)


_NUMBER = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf|infinity))$"


# A pattern of what somebody wrote as a number, such as $1,234.50 or 12 %, read as one or not.
_SIGN, _GAP = "[-+\u2212\u2013]?", " \u00a0\u202f"
AMOUNT = (
    rf"\(?{_SIGN} ?[$€£]? ?{_SIGN}(?:\d{{1,3}}(?:[.,'’{_GAP}]\d{{3}})+(?:[.,]\d+)?"
    rf"|\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE]{_SIGN}\d+)?[{_GAP}]?[%$€£]?\)?"
)


_MISSING = {"", "nan", "na", "n/a", "null", "none", "<na>"}
# Negative and positive label, where it is plain which is which.
_PLAIN = (("0", "1"), ("false", "true"), ("-1", "1"), ("no", "yes"), ("n", "y"), ("f", "t"))


def are_missing(texts: pd.Series) -> Mask:
    """Return which texts (n,) stand for no value, such as nothing, NA or null."""
    return np.asarray(texts.astype(str).str.strip().str.lower().isin(_MISSING), bool)


def spelled(text: str) -> str:
    """Return one spelling of a label: 1 for 1.0, true for True, nothing for NaN."""
    text = text.strip()
    if text.lower() in _MISSING:
        return ""
    if text.lower() in ("true", "false"):
        return text.lower()
    try:
        value = float(text)
    except ValueError:
        return text
    # Beyond 2**53 neighbours are one double, and digits tell them apart.
    if abs(value) >= 2**53:
        return text
    return str(int(value)) if value.is_integer() else repr(value)


def plain_pair(present: Collection[str]) -> tuple[str, str] | None:
    """Return the negative and the positive label where it is plain which is which.

    Parameters
    ----------
    present : one or two labels as they are written, such as ``No`` and ``Yes``.
    """
    written = {value.lower(): value for value in present}
    change = str.capitalize if any(value[:1].isupper() for value in present) else str
    if any(len(value) > 1 and value.isupper() for value in present):
        change = str.upper
    for pair in _PLAIN:
        if {*written} <= {*pair}:
            negative, positive = (written.get(label, change(label)) for label in pair)
            return negative, positive
    return None


# The label of a row that is of all levels of its column.
TOTALS = frozenset({"all", "total", "totals", "overall", "any", "both", "everyone"})

Times = NDArray[np.int64]
TIMES = "times"  # of a frame's attrs


def times_of(frame: pd.DataFrame) -> Times | None:
    """Return how often each row of a table occurs, (n,); None if no row is repeated."""
    times = frame.attrs.get(TIMES)
    return None if times is None else np.array(times, np.int64)


def tally(codes: NDArray[np.integer], times: Times | None = None, *, least: int = 0) -> Times:
    """Return how often each code comes (K,), K being `least` at least.

    Parameters
    ----------
    codes : (n,) from 0.
    times : (n,) how often each row comes; once by default.
    """
    # Sums of whole numbers are exact in floats up to 2**53.
    return np.bincount(codes, times, minlength=least).astype(np.int64)


def require_columns(
    frame: pd.DataFrame, columns: Collection[str], file: str, *, width: int | None = None
) -> None:
    """Refuse a table that lacks a column, or has more or fewer than `width`; names the first."""
    for column in columns:
        if column not in frame.columns:
            listed = ", ".join(map(str, frame.columns[:8]))
            raise DataError(f"{file}: no column '{column}' (found {listed} ...)")
    if width is not None and frame.shape[1] != width:
        found = {"found": frame.shape[1], "last": frame.columns[-1]}
        raise DataError(said("data", "other_width", file=file, width=width, **found))


def numbers(
    frame: pd.DataFrame, column: str, file: str, *, missing: str | None = None
) -> pd.Series:
    """Return a column as float64; `missing` and nothing else becomes NaN.

    Raises
    ------
    DataError : a field that is no number; names the first.
    """
    text = frame[column]
    values = pd.Series(to_numbers(text), index=text.index, name=text.name)
    wrong = ~np.isfinite(values.to_numpy())
    if missing is not None:
        wrong &= (text != missing).to_numpy()
    if wrong.any():
        written = text.astype(str).str.strip()
        # Decimal commas that others kept from being read are not what is wrong.
        strange = wrong & ~written.str.fullmatch(r"[+-]?\d*,\d{1,2}").to_numpy(bool)
        wrong = strange if strange.any() else wrong
        is_amount = re.fullmatch(rf"{AMOUNT}( ?[A-Z]{{3}})?", written[wrong].iloc[0])  # EUR
        reason = f"is no number{_PLAIN_NUMBER * bool(is_amount)}"
        ColumnRef(file, column).refuse_as(text, wrong, reason)
    return values


_PLAIN_NUMBER = ": leave out marks of thousands and signs such as €, and write a decimal point"


def labels(codes: pd.Series, names: Mapping[Any, str]) -> pd.Series:
    """Return codes as a categorical of human-readable names, in the order of `names`."""
    categories = list(dict.fromkeys(names.values()))
    return pd.Series(pd.Categorical(codes.map(names), categories), index=codes.index)


def at_least(values: pd.Series, cut: float, name: str, *, strict: bool = False) -> pd.Series:
    """Return ``name >= cut`` / ``name < cut`` (or ``>`` / ``<=``) as a categorical, above first."""
    above = values > cut if strict else values >= cut
    upper, lower = (">", "<=") if strict else (">=", "<")
    names = [f"{name} {upper} {cut:g}", f"{name} {lower} {cut:g}"]
    return pd.Series(pd.Categorical.from_codes((~above).astype(int), names), index=values.index)


def target_scale_of(values: pd.Series, how: str) -> tuple[float, float]:
    """Return `low` and `span` of a regression target's unit, ``scaled = (value - low) / span``.

    It is that of the ``minmax`` of all rows, or ``none``.
    """
    if one_of("target_scale", how, ("minmax", "none")) == "none":
        return 0.0, 1.0
    return float(values.min()), float(values.max() - values.min())


def scaled(values: pd.Series, how: str) -> pd.Series:
    """Return a regression target in the unit that `how` names."""
    low, span = target_scale_of(values, how)
    return (values - low) / span


def one_of(option: str, value: str, valid: Sequence[str]) -> str:
    """Return `value` of the loader's `option`, or refuse it with the valid ones."""
    check_choice(f"dataset.{option}", value, valid)
    return value


_TRUE, _FALSE = ("1", "true", "yes"), ("0", "false", "no", "")
_MANY_NUMBERS = 10  # more distinct numbers than this are hardly the names of classes


class _RowError(DataError):
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
    except _RowError as error:
        if not column:
            raise
        name = f"row {error.row} ({column} {shortened(str(frame[column].loc[error.row - 1]), 30)})"
        raise UserError(str(error).replace(f"row {error.row}", name, 1)) from error


@dataclass(frozen=True)
class ColumnRef:
    """A column by its file and its name: what it holds, and what is said where it holds none."""

    file: str
    name: str

    def fault(self, sentence: str) -> UserError:
        """Return an error about the column; its message ends with a sentence on what it holds."""
        return UserError(f"{self.file}: column '{self.name}' {sentence}")

    def question(self, sentence: str, *answers: str) -> OpenQuestion:
        """Return the same as a question that any of the `answers` settles."""
        return OpenQuestion(str(self.fault(sentence)), *answers)

    def refuse(self, text: pd.Series, is_refused: Mask, expected: str) -> None:
        """Raise an error on the first value that is refused, if any; rows count from 1.

        Parameters
        ----------
        expected : what a value has to be.

        Raises
        ------
        _RowError : names the row and the value.
        """
        self.refuse_as(text, is_refused, f"is not {expected}")

    def refuse_as(self, text: pd.Series, is_refused: Mask, reason: str) -> None:
        """Raise an error as :meth:`refuse` does, which says `reason` of the value."""
        if is_refused.any():
            index = int(np.flatnonzero(is_refused)[0])
            row = int(text.index[index]) + 1  # as the file counts, of whose rows these may be some
            value = quoted(text.iloc[index])
            raise _RowError(f"{self.file}: column '{self.name}', row {row}: {value} {reason}", row)

    def refuse_blank(self, text: pd.Series, expected: str) -> None:
        """Raise an error on the first value that is empty, if any."""
        self.refuse(text, (text.astype(str) == "").to_numpy(), expected)

    def check_ids(self, ids: pd.Series) -> None:
        """Refuse a row without an identifier, and two rows with the same identifier.

        Raises
        ------
        UserError : names the row or the two rows.
        """
        self.refuse_blank(ids, "an identifier")
        if (again := ids.duplicated().to_numpy()).any():
            later = int(again.argmax())
            earlier = int((ids == ids.iloc[later]).to_numpy().argmax())
            value, rows = quoted(ids.iloc[later], 40), 1 + ids.index[[earlier, later]]
            raise self.fault(said("data", "id_twice", value=value, rows=rows))

    def numbers(self, frame: pd.DataFrame) -> Floats:
        """Return a column of numbers.

        Raises
        ------
        UserError : a value that is no number; names the row.
        """
        return np.asarray(numbers(frame, self.name, self.file), np.float64)

    def scores(self, frame: pd.DataFrame, *, ratings: bool = False) -> Floats:
        """Return a column of probabilities.

        Parameters
        ----------
        ratings : whether ratings may be audited as well, and are advised where these are some.

        Raises
        ------
        UserError : a value that is no number; names the row.
        """
        text = frame[self.name]
        score: Floats = to_numbers(text)
        if (wrong := ~np.isfinite(score)).any():
            wrong_texts = text[wrong].astype(object).fillna("").astype(str).str.strip()
            hint = ": of percents give scale=percent" if wrong_texts.iloc[0].endswith("%") else ""
            if not wrong_texts.iloc[0]:
                rows = count(wrong.sum())
                hint = f": each row needs a score; add it, or delete the {rows} rows without"
            self.refuse_as(text.where(~wrong, wrong_texts), wrong, f"is no number{hint}")
        are_ratings = not (score % 1).any() and not 10 < score.max() <= 100
        are_percents = not are_ratings and score.min() >= 0 and 1 < score.max() <= 100
        mixed = mixes_scales(score)
        shares = (score > 0) & (score < 1)
        if are_percents and (score > 2).any() and (mixed or shares.mean() >= _MANY_SHARES):
            hint = "" if mixed else "; if all are percents, give scale=percent"
            raise mixed_scales(shares, score > 1, text, self, hint)
        hint = "; of percents give scale=percent" if are_percents else ""
        if are_ratings and ratings:
            hint = said("data", "if_ratings")
        try:
            self.refuse(text, (score < 0) | (score > 1), f"a probability between 0 and 1{hint}")
        except _RowError as error:
            if are_percents:
                raise OpenQuestion(str(error), "scale=percent") from error
            raise
        return score

    def shares(self, percents: pd.Series) -> pd.Series:
        """Return a column of percents as shares of 1; values that are no numbers stay as they are.

        Raises
        ------
        UserError : some values are percents and others shares; names a row of each kind.
        """
        if is_numeric := percents.dtype.kind in "iuf":
            text, values = percents, percents.to_numpy(np.float64)
        else:
            text = percents.astype(str)
            values = to_numbers(text.str.rstrip("% \u00a0"))
            has_sign = text.str.endswith("%").to_numpy(bool)
            is_bare = (text != "").to_numpy(bool) & ~has_sign
            if has_sign.any() and is_bare.any():
                raise mixed_scales(is_bare, has_sign, text, self)
        if mixes_scales(values):
            raise mixed_scales((values > 0) & (values < 1), values > 1, text, self)
        if is_numeric:
            return percents / 100
        shares = pd.Series(values / 100, percents.index)
        is_number = np.isfinite(shares)
        return shares if is_number.all() else percents.where(~is_number, shares.astype(str))

    def labels(
        self, text: pd.Series, positive: str, names: Sequence[str] = (), *, decisions: bool = False
    ) -> tuple[Floats, tuple[str, str]]:
        """Return 0, 1 or NaN for every row, and the names of labels 0 and 1.

        Parameters
        ----------
        positive : the label that is 1; needed if their names do not tell.
        names : those of labels 0 and 1, where they are known already.
        decisions : whether they are decisions that have the labels' names.

        Raises
        ------
        UserError : a third label, an unknown positive one, or two of which neither is plainly 1.
        """
        values = each_value(text, spelled)
        present = list(dict.fromkeys(value for value in values[1] if value))
        if len(present) > 2 and not names:
            raise self._third_label(text, values, present, "decision" if decisions else "label")
        first, second = names or self._label_names(present, spelled(positive))
        meaning = {"": np.nan, first: 0.0, second: 1.0}
        expected = f"'{first}' or '{second}', the labels there are"
        return self._meanings(text, values, meaning, expected), (first, second)

    def _third_label(
        self, text: pd.Series, values: Values, present: Sequence[str], what: str
    ) -> UserError:
        """Return the error of more than two labels; name a row where two are plainly right."""
        shown = listed([quoted(label, 20) for label in present], 5)
        hint = said("data", "third_label")
        if what == "decision":
            hint = "write one of two in each row, or leave out the rows of others"
        elif len(present) > _MANY_NUMBERS and all(map(is_number, present)):
            shown = f"{len(present)} different numbers"
            hint = said("data", "numbers_as_labels")
        has_two = f"a {what} has two values, here {shown}: {hint}"
        plain = [value for value in present if value.lower() in chain(*_PLAIN)]
        if len(plain) == 2 and (pair := plain_pair(plain)):
            expected = f"'{pair[0]}' or '{pair[1]}', and {has_two}"
            self._meanings(text, values, dict.fromkeys(("", *pair), 0), expected)
        return self.fault(f"has too many values: {has_two}")

    def _label_names(self, present: Sequence[str], positive: str) -> tuple[str, str]:
        """Return the names of labels 0 and 1, from the one or two that are present."""
        holds = "holds " + " and ".join(quoted(label, 40) for label in sorted(present))
        if not positive:
            if pair := plain_pair(present):
                return pair
            ways = [f"positive={label}" for label in sorted(present)]
            either = " or ".join(shortened(way, 49) for way in ways)
            which = "say which one the score is the probability of"
            raise self.question(f"{holds}; {which}: {either}", *ways)
        other_labels = [label for label in present if label != positive]
        near = positive not in present and positive.lower() in map(str.lower, present)
        if near or len(other_labels) > 1:  # near: another spelling of one, and no other label
            raise self.fault(f"{holds}; positive={positive} is none of them")
        pair = plain_pair([positive]) or (f"not {positive}", positive)
        return next(label for label in [*other_labels, *pair] if label != positive), positive

    def marks(self, text: pd.Series) -> Mask:
        """Return a column of true and false.

        Raises
        ------
        UserError : any other value.
        """
        values = each_value(text, lambda value: spelled(value).lower())
        meaning = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
        return self._meanings(text, values, meaning, "true or false")

    def decisions(
        self, text: pd.Series, names: tuple[str, str], others: Mapping[str, int]
    ) -> Codes:
        """Return decisions as 0 and 1.

        Parameters
        ----------
        names : the names of labels 0 and 1, by which decisions are spelled, too.
        others : name of a decision -> 0 or 1, if decisions have names of their own.

        Raises
        ------
        UserError : a decision that is no label; names the row.
        """
        values = each_value(text, spelled)
        called = _names_of_decisions(values[1], names)
        meaning = others or {name: code for code, name in enumerate(called)}
        first, second = (quoted(name, 40) for name in meaning)
        source = "the decisions that decision= names" if others else "the labels of the target"
        return self._meanings(text, values, meaning, f"{first} or {second}, {source}")

    def _meanings(
        self, text: pd.Series, values: Values, meaning: Mapping[str, float], expected: str
    ) -> NDArray[Any]:
        """Return what the values of a column mean; refuse the first that means nothing."""
        codes, distinct = values
        wrong = np.array([value not in meaning for value in distinct], bool)
        self.refuse(text, wrong[codes], expected)
        return np.array([meaning[value] for value in distinct])[codes]

    def weights(self, frame: pd.DataFrame) -> Floats:
        """Return a column of how many people each row stands for.

        Raises
        ------
        UserError : a value that is no number or is below 0; or all are 0.
        """
        weight = self.numbers(frame)
        self.refuse(frame[self.name], weight < 0, "a weight of 0 or more")
        if not weight.any():
            raise self.fault("is 0 in every row")
        return weight

    def clusters(self, frame: pd.DataFrame) -> pd.Series:
        """Return the cluster of each row, from a column of marks.

        Raises
        ------
        UserError : a row without a mark, or the same mark in all rows.
        """
        clusters = frame[self.name].astype(str)
        self.refuse_blank(clusters, "a mark of rows that belong together")
        if clusters.nunique() < 2:
            raise self.fault("has one mark in all rows: intervals need at least two clusters")
        return clusters


def each_value(text: pd.Series, function: Callable[[str], str]) -> Values:
    """Apply a function to the distinct values of a column; return codes into their results."""
    codes, values = pd.factorize(text)
    return codes.astype(np.int64), [function(str(value)) for value in values]


# If more of a column's values than this lie between 0 and 1, they are hardly small percents.
_MANY_SHARES = 0.2
# With this many values just under 1, it is no accident that few or none lie just above 1.
_FEWEST_APART = 8


def mixes_scales(values: Floats) -> bool:
    """Return whether some values (n,) are plainly shares of 1, and others percents.

    A column of percents has about as many values just under 1 as just above 1. A column that mixes
    shares and percents has many just under 1 and few just above.
    """
    under = ((values > 0.5) & (values < 1)).sum()
    above = ((values > 1) & (values < 1.5)).sum()
    percents = (values >= 1.5).any()
    return bool(percents and under >= _FEWEST_APART and under > _FEWEST_APART * above)


def mixed_scales(
    shares: Mask, percents: Mask, text: pd.Series, column: ColumnRef, hint: str = ""
) -> UserError:
    """Return the error that names the first row with a share, and the first with a percent."""
    rows = int(shares.argmax()), int(percents.argmax())
    first, other = (f"{quoted(text.iloc[row])} in row {text.index[row] + 1}" for row in rows)
    return column.fault(said("data", "mixed_scales", first=first, other=other, hint=hint))


Values = tuple[NDArray[np.int64], list[str]]  # codes, and the distinct values that they stand for


_NO = ("0", "no", "n", "false", "f", "nein", "non", "nej", "nee")


def _names_of_decisions(values: Collection[str], names: tuple[str, str]) -> tuple[str, str]:
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
    called = _names_of_decisions(values, names)
    if called == names or {*explained} == {*values} - {""}:
        return []
    pairs = (f"'{ours}' stands for '{label}'" for ours, label in zip(called, names, strict=True))
    return [f"Decisions are spelled otherwise than labels: in '{column}' {' and '.join(pairs)}."]


UNKNOWN = -1
_NO_CLASS = ("", "nan")
# Sums of rounded probabilities miss 1 by this much at most, even of a thousand classes.
_SLACK = 0.05
_GROUP_SLACK = 0.02  # the same for groups, which are few


@dataclass(frozen=True, eq=False)
class MulticlassScores:
    """A pool of rows with predicted classes and confidences; labels where they are known.

    Attributes
    ----------
    target : (n,) codes into `classes`, `UNKNOWN` where there is no label.
    prediction : (n,) codes of the predicted classes.
    confidence : (n,) probability that the classifier gave its prediction, in [0, 1].
    classes : names of the C classes.
    probabilities : (n, C) of all classes, or None.
    """

    target: Codes
    prediction: Codes
    confidence: Floats
    classes: tuple[str, ...]
    probabilities: Floats | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.prediction)

    @property
    def labelled(self) -> Codes:
        """Return the positions of the rows with a label."""
        return np.flatnonzero(self.target != UNKNOWN)

    @cached_property
    def correct(self) -> Floats:
        """(n,) 1 where the prediction is right, 0 where it is wrong, NaN without a label."""
        right = (self.target == self.prediction).astype(np.float64)
        return np.where(self.target == UNKNOWN, np.nan, right)

    def showing(self, rows: Codes) -> MulticlassScores:
        """Return this pool with only the labels of `rows`."""
        target = np.full(len(self), UNKNOWN)
        target[rows] = self.target[rows]
        return replace(self, target=target)

    def distribution(self) -> Floats:
        """Return (n, C) probabilities; what a lone confidence leaves is shared by the others."""
        if self.probabilities is not None:
            return self.probabilities
        of_others = (1 - self.confidence) / max(len(self.classes) - 1, 1)
        shares = np.repeat(of_others[:, None], len(self.classes), axis=1)
        shares[np.arange(len(self)), self.prediction] = self.confidence
        return shares


def read_class_scores(
    frame: pd.DataFrame,
    file: str,
    *,
    target: str,
    columns: Sequence[str],
    prediction: str = "",
    classes: Sequence[str] = (),
) -> MulticlassScores:
    """Return predictions of several classes.

    Parameters
    ----------
    frame : columns of strings, or numbers where they are probabilities; an empty label is unknown.
    file : the name for messages.
    columns : the column with the probability of the predicted class, or one for each of `classes`.
    prediction : column of predicted classes; if left out, the most probable of all is predicted.
    classes : their names in order; if left out, what the columns of all of them are called, or
        those that occur, in sorted order.

    Raises
    ------
    UserError : an unknown class, no prediction, or probabilities that are none or do not sum to 1.
    """
    shares = np.column_stack([ColumnRef(file, name).scores(frame) for name in columns])
    labels = class_names(frame[target])
    predicted = class_names(frame[prediction]) if prediction else labels
    if lone := len(columns) == 1:
        present = {*labels, *predicted} - {""}
        numeric = all(name.lstrip("-").isdigit() for name in present)
        names = tuple(classes) or tuple(sorted(present, key=int if numeric else str))
    else:
        _check_sums(pd.DataFrame(shares, frame.index, list(columns)), file, "classes", _SLACK)
        # The classes are the names of the columns without their shared beginning.
        start = len(os.path.commonprefix(list(columns)))
        ends = tuple(name[start:] for name in columns)
        plain = all(ends) and not {*labels} - {""} <= {*columns}
        names = tuple(classes) or (ends if plain else tuple(columns))
    targets = _codes(labels, names, ColumnRef(file, target), optional=True)
    chosen = shares.argmax(axis=1).astype(np.int64)
    if prediction:
        chosen = _codes(predicted, names, ColumnRef(file, prediction))
    confidence = shares[np.arange(len(shares)), 0 if lone else chosen]
    return MulticlassScores(targets, chosen, confidence, names, None if lone else shares)


def class_names(column: pd.Series) -> pd.Series:
    """Return labels with whole numbers in one spelling, 5 for 5.0; missing ones are empty."""
    text = column.astype(str).str.strip()
    text = text.mask(text.str.lower().isin(_NO_CLASS), "")
    value = pd.to_numeric(text, errors="coerce")
    whole = np.isfinite(value) & (value % 1 == 0) & (value.abs() < 1e15)
    return text.mask(whole, value.where(whole, 0).astype(np.int64).astype(str))


def _codes(
    names: pd.Series, classes: Sequence[str], column: ColumnRef, *, optional: bool = False
) -> Codes:
    """Return names as positions among the classes; `UNKNOWN` where there is no name."""
    codes = pd.Index(classes).get_indexer(pd.Index(names)).astype(np.int64)
    missing = (names == "").to_numpy()
    listed = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
    expected = f"one of the {len(classes)} classes ({listed})"
    column.refuse(names, (codes < 0) & ~(missing & optional), expected)
    return np.where(missing, UNKNOWN, codes)


def read_group_shares(
    frame: pd.DataFrame, file: str, columns: Sequence[str]
) -> tuple[list[str], Floats]:
    """Return the names of groups, and (n, G) the probability of each, which sum to 1.

    Parameters
    ----------
    file : the name of the file, for messages.
    columns : a column for each group, which gives the group its name; with one column, everybody
        else is the other group.

    Raises
    ------
    UserError : a probability that is none, or of a row that do not sum to 1.
    """
    places = [ColumnRef(file, name) for name in columns]
    shares = np.column_stack([place.numbers(frame) for place in places])
    for place, share in zip(places, shares.T, strict=True):
        is_outside = (share < 0) | (share > 1)
        place.refuse(frame[place.name], is_outside, "a probability between 0 and 1")
    if len(columns) == 1:
        return [f"not {columns[0]}", *columns], np.hstack([1 - shares, shares])
    table = pd.DataFrame(shares, frame.index, list(columns))
    _check_sums(table, file, "groups", _GROUP_SLACK, "; name a column for every group")
    return list(columns), shares / shares.sum(axis=1)[:, None]


def _check_sums(
    shares: pd.DataFrame, file: str, of_what: str, slack: float, hint: str = ""
) -> None:
    """Refuse the first row whose probabilities (n, K) miss the sum of 1 by more than `slack`."""
    total = shares.to_numpy().sum(axis=1)
    if (wrong := np.abs(total - 1) > slack).any():
        first = int(np.flatnonzero(wrong)[0])
        columns, row = list(shares), int(shares.index[first]) + 1
        about = {"first": columns[0], "last": columns[-1], "count": len(columns)}
        about |= {"row": row, "of_what": of_what, "total": total[first], "hint": hint}
        raise _RowError(said("data", "sum_not_1", file=file, **about), row)


# With so few labels of either kind, luck or a good classifier may separate them perfectly.
_FEWEST = 10
_ENOUGH = 50


def check_score(label: Floats, score: Floats, file: str, column: str) -> None:
    """Refuse a score that has one value for label 0 and another for label 1.

    Parameters
    ----------
    label : (n,) 0 or 1, NaN where unknown; nothing is refused if fewer than 50 are known, or
        fewer than 10 of either kind.

    Raises
    ------
    UserError : the column is the label, in other words.
    """
    if not enough_to_tell(label):
        return
    scores_of_0, scores_of_1 = (np.unique(score[label == value]) for value in (0, 1))
    if len(scores_of_0) == len(scores_of_1) == 1 and scores_of_0[0] != scores_of_1[0]:
        rows = count(np.isfinite(label).sum())
        each = {"of_0": scores_of_0[0], "of_1": scores_of_1[0]}
        raise UserError(said("data", "score_is_label", file=file, column=column, rows=rows, **each))


def enough_to_tell(label: Floats, times: Times | None = None) -> bool:
    """Return whether there are enough labels of both kinds to know a copy of them."""
    zeros, ones = (tally(label == value, times, least=2)[1] for value in (0, 1))
    return bool(zeros + ones >= _ENOUGH and min(zeros, ones) >= _FEWEST)
