"""A file of predictions, read as text, and its columns turned into labels, scores and groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.derived import (
    as_shares,
    in_order,
    with_bands,
    with_rare_pooled,
    without_groups,
)
from fairbench.audits.named_columns import PERCENT
from fairbench.audits.question import Options
from fairbench.core.errors import UserError, unknown_name
from fairbench.core.formats import MISSING, is_number, quoted, shortened
from fairbench.data.any_table import check_columns, read_any_table
from fairbench.data.dataset import reference_first
from fairbench.data.in_memory import Table, is_table, names_of_table, texts_of_table
from fairbench.data.tabular import plain_pair, spelled

Floats = NDArray[np.float64]

MOST_GROUPS = 50
_MARKS = {"1": 1.0, "true": 1.0, "yes": 1.0, "0": 0.0, "false": 0.0, "no": 0.0, "": 0.0}
_MANY_NUMBERS = 10  # different ones, which are more than the names of classes
_FEW_CODES = 12  # different numbers, which may be codes of groups


def read_frame(
    options: Options, *, every: bool = False, source: Table | None = None
) -> pd.DataFrame:
    """Read the columns that `options` name, or `every` column, as strings.

    Parameters
    ----------
    source : the table, where it is in memory: a DataFrame of pandas or polars, or what else gives
        its columns as Arrow does; the path of `options` is then only what messages call it. Scores
        and weights that are numbers stay numbers. Without it the file is read.

    Raises
    ------
    UserError : a file or column that is not there, or that cannot be read, or no rows.
    """
    if source is None:
        frame = read_any_table(
            options.path,
            options.columns,
            every=every,
            exact=options.group,  # labels that differ in blanks are different groups
            numeric=(*_numeric(options), options.target, options.prediction),
        )
    else:
        frame = _of_table(source, options, every)
    if not len(frame):
        raise UserError(f"{options.path.name}: no rows below the header")
    return _derived(frame, options)


def _numeric(options: Options) -> list[str]:
    """Return the columns of numbers, of those that are named."""
    banded = (each.rpartition(":")[0] for each in options.cuts)
    named = (*options.score_columns, options.weight, *options.proxy, *banded)
    return [each for each in named if each]


def _of_table(source: Table, options: Options, every: bool) -> pd.DataFrame:
    if is_table(source):
        check_columns(options.path.name, options.columns, names_of_table(source))
    only = None if every else options.columns
    return texts_of_table(source, options.path.name, only=only, numeric=_numeric(options))


def _derived(frame: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Return the table with bands, shares and pooled groups, and notes on them."""
    frame = with_bands(frame, options.cuts, options.path.name)
    if options.scale == PERCENT:
        shares = {name: as_shares(frame[name]) for name in options.score_columns}
        frame = frame.assign(**shares)
    frame, left_out = without_groups(frame, options.leave_out, options.group)
    frame, pooled = with_rare_pooled(frame, options.group, options.rare)
    if left_out or pooled:
        frame.attrs["notes"] = [*left_out, *pooled]
    return frame


@dataclass(frozen=True)
class Place:
    """A column of a file, for messages."""

    file: str
    column: str

    def refuse(self, text: pd.Series, wrong: NDArray[np.bool_], expected: str) -> None:
        """Refuse the first value that is wrong, if there is one; rows count from 1."""
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise UserError(
                f"{self.file}: column '{self.column}', row {row + 1}: {quoted(text.iloc[row])} is "
                f"not {expected}"
            )


def each_value(
    text: pd.Series, function: Callable[[str], str]
) -> tuple[NDArray[np.int64], list[str]]:
    """Apply a function to the distinct values of a column; return codes into their results."""
    codes, values = pd.factorize(text)
    return codes.astype(np.int64), [function(str(value)) for value in values]


def labels_of(text: pd.Series, place: Place, positive: str) -> tuple[Floats, tuple[str, str]]:
    """Return 0, 1 or NaN for every row, and the names of labels 0 and 1.

    Parameters
    ----------
    positive : which label is 1, where that is not plain from their names.

    Raises
    ------
    UserError : a third label, an unknown positive one, or two of which neither is plainly 1.
    """
    codes, values = each_value(text, spelled)
    present = list(dict.fromkeys(value for value in values if value))
    if len(present) > 2:
        known = [value in ("", *present[:2]) for value in values]
        first, second = (quoted(each, 30) for each in present[:2])
        expected = f"{first} or {second}, and a label has two values{_hint(present)}"
        place.refuse(text, ~np.array(known)[codes], expected)
    names = _named(present, place, spelled(positive))
    meaning = {"": np.nan, names[0]: 0.0, names[1]: 1.0}
    return np.array([meaning[value] for value in values])[codes], names


def _hint(present: Sequence[str]) -> str:
    """Say what to do with labels of more than two values."""
    if len(present) > _MANY_NUMBERS and all(map(is_number, present)):
        return (
            f", here {len(present)} different numbers: make two classes of them, such as those "
            "above a limit; an audit of predicted numbers names their column by prediction="
        )
    return "; of several classes name prediction=, the column of predicted ones, too"


def _named(present: Sequence[str], place: Place, positive: str) -> tuple[str, str]:
    listed = " and ".join(quoted(value, 40) for value in sorted(present))
    if positive:
        others = [value for value in present if value != positive]
        if len(others) > 1:
            raise UserError(
                f"{place.file}: column '{place.column}' holds {listed}; positive={positive} is "
                "neither"
            )
        return (others[0] if others else _other(positive)), positive
    if pair := plain_pair(present):
        return pair
    raise UserError(
        f"{place.file}: column '{place.column}' holds {listed}; say which one the score is the "
        f"probability of, such as positive={shortened(max(present))}"
    )


def _other(label: str) -> str:
    pair = plain_pair([label])
    return next(value for value in pair if value != label) if pair else f"not {label}"


def marks_of(text: pd.Series, place: Place) -> NDArray[np.bool_]:
    """Return a column of true and false.

    Raises
    ------
    UserError : any other value.
    """
    codes, values = each_value(text, lambda value: spelled(value).lower())
    known = np.array([value in _MARKS for value in values])
    place.refuse(text, ~known[codes], "true or false")
    marks: NDArray[np.bool_] = np.array([_MARKS[value] for value in values])[codes] > 0
    return marks


def are_quantities(values: Sequence[str]) -> bool:
    """Say whether values are numbers of something, such as years of age, rather than codes.

    They are if some are not whole, or if nearly all whole numbers of a stretch up to 120 occur;
    codes begin at 0 or 1.
    """
    known = [value for value in values if value and value != MISSING]
    if len(known) <= _FEW_CODES or not all(map(is_number, known)):
        return False
    numbers = np.array([float(value) for value in known])
    if (numbers % 1 != 0).any():
        return True
    return bool(1 < numbers.min() <= numbers.max() <= 120) and (
        np.ptp(numbers) < 1.5 * len(numbers)
    )


def _bands_hint(column: str, names: Sequence[str]) -> str:
    if not are_quantities(names):
        return ""
    return f": make bands of them, such as group={column}:25,40,62 or {column}:quantiles(4)"


def groups_of(text: pd.Series, place: Place, most: int = MOST_GROUPS) -> pd.Series:
    """Return a column of groups, the largest first, bands in their order, ``unknown`` of no label.

    Parameters
    ----------
    most : how many groups there may be.

    Raises
    ------
    UserError : one group, which leaves nothing to compare, or too many to be groups.
    """
    codes, values = each_value(text, lambda value: value or MISSING)
    names = in_order(set(values))
    if not 2 <= len(names) <= most:
        only = f" ({quoted(names[0])})" if len(names) == 1 else ""
        raise UserError(
            f"{place.file}: column '{place.column}' holds {len(names)} different values{only}; "
            f"a group column has 2 to {most}{_bands_hint(place.column, names)}"
        )
    if len(names) > MOST_GROUPS and are_quantities(names):
        raise UserError(
            f"{place.file}: column '{place.column}' holds {len(names)} different numbers, which "
            f"are no groups yet{_bands_hint(place.column, names)}"
        )
    at = {name: place for place, name in enumerate(names)}
    places = np.array([at[value] for value in values])[codes]
    largest = names[int(np.bincount(places).argmax())]
    return reference_first(pd.Series(pd.Categorical.from_codes(places, names)), largest)


def references_of(groups: Mapping[str, pd.Series], asked: Sequence[str]) -> dict[str, str]:
    """Return attribute -> the group that others are to be compared with.

    Parameters
    ----------
    groups : attribute -> categorical labels. asked : ``LABEL``, or ``COLUMN:LABEL``.

    Raises
    ------
    UserError : no such group, one that two attributes have, or two groups of one attribute.
    """
    found: dict[str, str] = {}
    for text in asked:
        attribute, label = _reference(groups, text)
        if found.setdefault(attribute, label) != label:
            raise UserError(f"reference= names two groups of {attribute}: name one")
    return found


def _reference(groups: Mapping[str, pd.Series], text: str) -> tuple[str, str]:
    labels = {name: list(map(str, each.cat.categories)) for name, each in groups.items()}
    pairs = [(name, label) for name, names in labels.items() for label in names]
    fitting = [pair for pair in pairs if text in (pair[1], ":".join(pair))]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        ways = " or ".join(f"reference={name}:{label}" for name, label in fitting)
        raise UserError(f"two columns have a group '{text}': write {ways}")
    raise unknown_name("reference group", text, dict.fromkeys(label for _, label in pairs))


def codes_of(groups: pd.Series) -> tuple[NDArray[np.intp], list[str]]:
    """Return the codes (n,) of categorical labels, and the names of the groups that have rows."""
    codes, names = groups.cat.codes.to_numpy(np.intp), list(map(str, groups.cat.categories))
    present = np.bincount(codes, minlength=len(names)) > 0
    if present.all():
        return codes, names
    kept = [name for name, here in zip(names, present, strict=True) if here]
    return (np.cumsum(present) - 1)[codes], kept
