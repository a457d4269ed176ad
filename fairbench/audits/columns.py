"""A file of predictions, read as text, and its columns of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fairbench.audits.question import PERCENT, Options
from fairbench.audits.sentences import listed
from fairbench.core.errors import UserError, check_choice, unknown_name
from fairbench.core.formats import MISSING, quoted
from fairbench.data.any_table import check_columns, read_any_table
from fairbench.data.bands import are_quantities, in_order, with_bands
from fairbench.data.columns import Place, codes_of, each_value, labels_of, marks_of
from fairbench.data.dataset import reference_first
from fairbench.data.in_memory import Table, is_table, names_of_table, texts_of_table
from fairbench.data.tabular import to_numbers

__all__ = ["Place", "codes_of", "each_value", "groups_of", "labels_of", "marks_of", "read_frame"]

MOST_GROUPS = 50
_POOLED = "other groups"


def read_frame(
    options: Options, *, every: bool = False, source: Table | None = None
) -> pd.DataFrame:
    """Read the columns that `options` name, or `every` column, as strings.

    Bands, shares of percents, and groups that are pooled or left out are made here; what a reader
    should know of them is in the frame's ``attrs["notes"]``.

    Parameters
    ----------
    source : the table, where it is in memory: a DataFrame of pandas or polars, or what else gives
        its columns as Arrow does; the path of `options` is then only what messages call it. Scores
        and weights that are numbers stay numbers. Without it the file is read.

    Raises
    ------
    UserError : a file or column that is not there, or that cannot be read, or no rows.
    """
    file, columns = options.path.name, options.columns
    banded = [cut.rpartition(":")[0] for cut in options.cuts]
    numeric = [*options.score_columns, *options.proxy, *banded, options.weight]
    if source is None:
        frame = read_any_table(
            options.path,
            columns,
            every=every,
            exact=options.group,  # labels that differ in blanks are different groups
            numeric=(*numeric, options.target, options.prediction),
        )
    else:
        if is_table(source):
            check_columns(file, columns, names_of_table(source))
        only = None if every else columns
        frame = texts_of_table(source, file, only=only, numeric=numeric)
    if not len(frame):
        raise UserError(f"{file}: no rows below the header")
    frame = with_bands(frame, options.cuts, file)
    if options.scale == PERCENT:
        frame = frame.assign(**{name: _shares(frame[name]) for name in options.score_columns})
    frame, left_out = _without_groups(frame, options.leave_out, options.group)
    frame, pooled = _with_rare_pooled(frame, options.group, options.rare)
    if left_out or pooled:
        frame.attrs["notes"] = [*left_out, *pooled]
    return frame


def _shares(column: pd.Series) -> pd.Series:
    """Return percents as shares of 1; what is no number stays as it is."""
    if column.dtype.kind in "iuf":
        return column / 100
    shares = pd.Series(to_numbers(column.astype(str).str.rstrip("% \u00a0")) / 100, column.index)
    fine = np.isfinite(shares)
    return shares if fine.all() else column.where(~fine, shares.astype(str))


def _without_groups(
    frame: pd.DataFrame, left_out: Sequence[str], groups: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table without the rows of some groups, each as ``race=Other``, and notes on it."""
    keep, notes = np.ones(len(frame), bool), []
    for asked in left_out:
        name, equals, label = asked.partition("=")
        if not equals:
            raise UserError(f"leave_out={asked}: name column and group, such as race=Other")
        check_choice("column of leave_out", name, groups)
        labels = frame[name].replace("", MISSING)
        check_choice(f"group of '{name}' in leave_out", label, labels.unique())
        rows = (labels == label).to_numpy()
        keep &= ~rows
        notes.append(f"{name}: the {rows.sum()} rows of {quoted(label)} are left out, as asked")
    return frame if keep.all() else frame[keep].reset_index(drop=True), notes


def _with_rare_pooled(
    frame: pd.DataFrame, groups: Sequence[str], rare: int
) -> tuple[pd.DataFrame, list[str]]:
    """Return a table whose groups of fewer rows than `rare` are one group, and notes on it.

    Each attribute is pooled by itself. One rare group alone stays as it is: it would only lose its
    name.
    """
    notes, changed = [], {}
    for name in groups:
        sizes = frame[name].value_counts()
        small = sorted(sizes.index[sizes < rare].astype(str))
        if len(small) > 1:
            changed[name] = frame[name].where(~frame[name].isin(small), _POOLED)
            shown = listed([quoted(label or MISSING) for label in small], 5)
            notes.append(f"{name}: {shown} have fewer than {rare} rows, and are '{_POOLED}' here")
    return frame.assign(**changed), notes


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
    column, hint = place.column, ""
    holds = f"{place.file}: column '{column}' holds {len(names)} different"
    if are_quantities(names):
        hint = f": make bands of them, such as group={column}:25,40,62 or {column}:quantiles(4)"
    if not 2 <= len(names) <= most:
        only = f" ({quoted(names[0])})" if len(names) == 1 else ""
        raise UserError(f"{holds} values{only}; a group column has 2 to {most}{hint}")
    if len(names) > MOST_GROUPS and hint:
        raise UserError(f"{holds} numbers, which are no groups yet{hint}")
    places = pd.Index(names).get_indexer(values)[codes]
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
    pairs = [(name, str(label)) for name in groups for label in groups[name].cat.categories]
    references: dict[str, str] = {}
    for text in asked:
        fitting = [pair for pair in pairs if text in (pair[1], ":".join(pair))]
        if not fitting:
            raise unknown_name("reference group", text, {label for _, label in pairs})
        if len(fitting) > 1:
            ways = " or ".join(f"reference={':'.join(pair)}" for pair in fitting)
            raise UserError(f"two columns have a group '{text}': write {ways}")
        attribute, label = fitting[0]
        if references.setdefault(attribute, label) != label:
            raise UserError(f"reference= names two groups of {attribute}: name one")
    return references
