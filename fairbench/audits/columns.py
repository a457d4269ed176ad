"""A file of predictions, or a table in memory, read as text."""

from __future__ import annotations

from functools import partial

import pandas as pd

from fairbench.audits.question import PERCENT, Options
from fairbench.core.errors import UserError
from fairbench.core.formats import quoted
from fairbench.data.any_table import (
    check_columns,
    read_any_table,
    say_guessed,
    with_decimal_points,
)
from fairbench.data.bands import with_bands
from fairbench.data.columns import ColumnRef, check_ids, each_value, shares_of
from fairbench.data.distinct_rows import times_of
from fairbench.data.groups import with_rare_pooled, without_groups
from fairbench.data.in_memory import (
    Table,
    check_exact,
    frame_of,
    is_table,
    names_of_table,
    texts_of_table,
)
from fairbench.data.tabular import spelled


def _has_some_labels(frame: pd.DataFrame, target: str) -> bool:
    """Say whether some rows have a label and others none, so that each row counts by itself."""
    if not target:
        return False
    _, values = each_value(frame[target], spelled)
    return "" in values and len(set(values)) > 1


def read_frame(
    options: Options,
    *,
    every: bool = False,
    source: Table | None = None,
    distinct: bool = False,
) -> pd.DataFrame:
    """Read the columns that `options` name, or `every` column, as strings.

    Bands, shares of percents, and groups that are pooled or left out are made here; what a reader
    should know of them is in the frame's ``attrs["notes"]``.

    Parameters
    ----------
    options : options that name the columns and the file.
    every : whether to read all columns.
    source : the table, if it is in memory: a DataFrame of pandas or polars, or any other object
        that gives its columns as Arrow does. Messages then call it by the path of `options`; scores
        and weights that are numbers stay numbers. If it is None, the file is read.
    distinct : whether equal rows may be read as one, with the number of times that it comes given
        by :func:`fairbench.data.distinct_rows.times_of`. That is done for large Parquet files, if
        all that is asked for follows from how many rows there are of each kind.

    Raises
    ------
    UserError : if the file or a column is missing or cannot be read, or there are no rows.
    """
    file = options.path.name
    columns = options.columns
    banded = [cut.rpartition(":")[0] for cut in options.cuts]
    numeric = [*options.numeric_columns, *banded]
    numbers = (*numeric, options.target, options.prediction)
    if source is None:
        # Labels that differ in blanks are different groups.
        read = partial(
            read_any_table,
            options.path,
            columns,
            every=every,
            exact=(*options.group, *options.within),
            numeric=numbers,
            counts=bool(options.total),
        )
        frame = read(distinct=distinct and options.counts_alone)
        if times_of(frame) is not None and _has_some_labels(frame, options.target):
            frame = read()
    else:
        if is_table(source):
            check_columns(file, columns, names_of_table(source))
            source = frame_of(source)
            for name, column in source.items():
                if str(name) in (*options.group, *options.within):
                    check_exact(column, f"{file}: column {quoted(str(name))}")
        only = None if every else columns
        frame = texts_of_table(source, file, only=only, numeric=numeric)
        written = [name for name in numbers if name in frame]
        frame, commas = with_decimal_points(frame, written, file)
        say_guessed(options.path, commas)
    if not len(frame):
        raise UserError(f"{file}: no rows below the header")
    if options.id:
        check_ids(frame[options.id], ColumnRef(file, options.id))
    notes = frame.attrs.pop("notes", [])
    frame = with_bands(frame, options.cuts, file)
    if options.scale == PERCENT:
        frame = frame.assign(**{
            name: shares_of(frame[name], ColumnRef(file, name)) for name in options.score_columns
        })  # fmt: skip
    frame, left_out = without_groups(frame, options.leave_out, options.group)
    frame, pooled = with_rare_pooled(frame, options.group, options.rare)
    if notes := [*notes, *left_out, *pooled]:
        frame.attrs["notes"] = notes
    return frame
