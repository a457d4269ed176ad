"""The tables of a document as data frames, by their titles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from fairbench.core.escaping import one_line
from fairbench.reporting.document.model import (
    Block,
    Details,
    Document,
    Section,
    Table,
    as_cell,
    plain,
)

_PARTS = {
    "interval": ("lower", "upper"),
    "estimate": ("", "lower", "upper"),
    "spread": ("mean", "sd"),
}


def titled_tables(document: Document) -> dict[str, Table]:
    """Return the tables by their titles, or by the titles of their sections."""
    titled: dict[str, Table] = {}
    for title, table in _tables(document.sections, document.title):
        title = one_line(title)
        again = sum(name.partition(" (")[0] == title for name in titled)
        titled[f"{title} ({again + 1})" if again else title] = table
    return titled


def _tables(blocks: Sequence[Block], title: str) -> Iterator[tuple[str, Table]]:
    """Yield the tables of blocks, each with its own title or that of its section."""
    for block in blocks:
        if isinstance(block, Table):
            yield block.title or title, block
        elif isinstance(block, Section):
            yield from _tables(block.blocks, block.title or title)
        elif isinstance(block, Details):
            yield from _tables(block.blocks, plain(block.summary))


def table_frame(table: Table) -> pd.DataFrame:
    """Return a table with a column for each part of an interval or an estimate."""
    columns: dict[str, list[Any]] = {}
    for column_index, column in enumerate(table.columns):
        values = [as_cell(row[column_index]).value for row in table.rows]
        for part, name in enumerate(_PARTS.get(column.kind, ())):
            numbers = [float("nan") if value is None else value[part] for value in values]
            columns[f"{column.title} {name}".strip()] = numbers
        if column.kind != "bar" and column.kind not in _PARTS:
            columns[column.title] = [
                plain(value) if isinstance(value, tuple) else value for value in values
            ]
    return pd.DataFrame(columns)
