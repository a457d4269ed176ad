"""Atomic files: each is written whole or not at all, even if the process is killed."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from fairbench.core.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside `path` and rename it into place when the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def csv_text(table: pd.DataFrame, *, index_label: str = "") -> str:
    """Return a table as CSV that a spreadsheet shows as it is.

    A text that a spreadsheet would compute, such as ``=A1+1``, has an apostrophe before it, which
    spreadsheets take for "this is text"; :func:`read_csv` takes it away again.
    """
    safe = _renamed(table, _guarded)
    return str(safe.to_csv(index=bool(index_label), index_label=index_label or None))


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table that :func:`csv_text` wrote."""
    import pandas as pd

    return _renamed(pd.read_csv(path), _unguarded)


def _renamed(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Return a table with its texts, and the names of its columns, changed."""
    changed = {
        name: table[name].map({text: change(text) for text in texts})
        for name in table
        if (texts := _texts(table[name]))
    }
    return table.assign(**changed).rename(columns=change)


def _texts(column: pd.Series) -> list[str]:
    """Return the texts of a column that could be taken for a formula."""
    if column.dtype.kind in "biufcmM":
        return []
    texts = [each for each in column.unique() if isinstance(each, str)]
    return texts if any(map(_FORMULA.match, texts)) else []


def _guarded(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def _unguarded(text: str) -> str:
    return text[1:] if text[:1] == "'" and _FORMULA.match(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


MEMORY = "FAIRBENCH_MAX_MEMORY"


def check_memory(needed: float, file: str) -> None:
    """Refuse a file that would take more memory than a quarter of the machine's.

    A few megabytes can be made to unfold to any size, so this is asked before a file is unpacked.

    Parameters
    ----------
    needed : bytes that its content will take, or more.

    Raises
    ------
    UserError : it is more than is allowed, or the variable that says what is allowed is no number.
    """
    allowed = _allowed_memory()
    if needed > allowed:
        raise UserError(
            f"{file} would take about {needed / _GB:.1f} GB of memory, and {allowed / _GB:.1f} GB "
            f"are allowed: name fewer columns, or set {MEMORY}={ceil(needed / _GB)} (GB) if you "
            "trust the file"
        )


_GB = 2.0**30


def _allowed_memory() -> float:
    """Return bytes: what the environment says in GB, or a quarter of the machine's memory."""
    said = os.environ.get(MEMORY, "")
    if said:
        if not _is_number(said) or not 0 < float(said) < float("inf"):
            raise UserError(f"{MEMORY} is '{said}'; it must be a number of GB above 0")
        return float(said) * _GB
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 4
