"""Pages of figures: words that are written by hand, and tables of a CSV file beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from fairbench.core.errors import UserError
from fairbench.core.files import write_text


def markdown(rows: Sequence[Sequence[str]], rule: Sequence[str] = ()) -> str:
    """Return a table in Markdown, of a header and rows; all columns but the first to the right."""
    rule = rule or ("---", *["--:"] * (len(rows[0]) - 1))
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:]))


def read_rows(path: Path, texts: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a CSV file, none of one that is not there.

    Parameters
    ----------
    texts : its columns that are texts, whatever they look like; all others are numbers.
    """
    if not path.is_file():
        return pd.DataFrame(columns=list(texts))
    return pd.read_csv(path, dtype=dict.fromkeys(texts, str), keep_default_na=False, na_values=[""])


def replaced(
    there: pd.DataFrame, rows: pd.DataFrame, key: str, order: Sequence[str]
) -> pd.DataFrame:
    """Return rows with new ones in place of those of the same keys, in the keys' order.

    Those of keys that are not in that order are left out: nothing writes them any more.
    """
    kept = there[~there[key].isin(rows[key])]
    every = pd.concat([each for each in (kept, rows) if len(each)] or [rows])
    every = every[every[key].isin(order)]
    return every.sort_values(key, key=lambda of: of.map(order.index), kind="stable")


def fill(page: Path, parts: Mapping[str, str], *, words: Path | None = None) -> None:
    """Put tables in their places on a page, between two comments with their names.

    Parameters
    ----------
    words : the page that another one begins as, where that is not there yet.

    Raises
    ------
    UserError : the page has no place for a table.
    """
    source = page if page.is_file() or words is None else words
    text = source.read_text(encoding="utf-8")
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise UserError(f"{source} has no place for a table: a line '{begin}', and '{end}'")
        start, stop = text.index(begin), text.index(end)
        text = f"{text[:start]}{begin}\n\n{part}\n\n{text[stop:]}"
    write_text(page, text)
