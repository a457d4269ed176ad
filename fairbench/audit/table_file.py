"""A user's file of predictions, as CSV, TSV or Parquet, read into columns of strings."""

from __future__ import annotations

import pandas as pd

from fairbench.audit.options import Options
from fairbench.core.errors import UserError, nearest, unknown_name
from fairbench.data.delimited import header, read_table


def read_frame(options: Options, *, every: bool = False) -> pd.DataFrame:
    """Read the columns that `options` name, or `every` column, as strings.

    Raises
    ------
    UserError : a file or column that is not there, or that cannot be read, or no rows.
    """
    frame = _read(options, every=every)
    if not len(frame):
        raise UserError(f"{options.path.name}: no rows below the header")
    return frame


def _read(options: Options, *, every: bool) -> pd.DataFrame:
    path = options.path
    if not path.is_file():
        near = nearest(path.name, [p.name for p in path.parent.glob("*") if p.is_file()])
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UserError(f"{path} is not a file{hint}")
    try:
        if path.suffix in (".parquet", ".pq"):
            return _parquet(options, every=every)
        content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    separator = "\t" if path.suffix == ".tsv" else ","
    _check_columns(options, header(content, path.name, separator))
    only = None if every else options.columns
    return read_table(content, path.name, separator=separator, only=only)


def _parquet(options: Options, *, every: bool) -> pd.DataFrame:
    from pyarrow import ArrowException, parquet, string
    from pyarrow import compute as pc

    try:
        names = parquet.read_schema(options.path).names
        _check_columns(options, names)
        names = names if every else options.columns
        table = parquet.read_table(options.path, columns=names)
        texts = {name: pc.cast(table[name], string()) for name in names}
    except ArrowException as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{options.path.name} is not a table in Parquet: {reason}") from error
    return pd.DataFrame({k: pc.fill_null(v, "").to_pandas() for k, v in texts.items()})


def _check_columns(options: Options, found: list[str]) -> None:
    for name in options.columns:
        if name not in found:
            raise unknown_name(f"column of {options.path.name}", name, found)
        if found.count(name) > 1:
            raise UserError(f"{options.path.name}: {found.count(name)} columns are named '{name}'")
