"""Checksums of rows of text: in their order, in any order, and of each by itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from fairbench.core.files import sha256
from fairbench.data.columns import each_value

KEY = 8  # signs of the checksum of one row
_MASK = (1 << 64) - 1


def texts_of(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return each row's values in these columns as one text."""
    parts = (frame[name].astype(str) for name in columns)
    return ["\x1f".join(row) for row in zip(*parts, strict=True)]


def ordered_checksum(rows: Iterable[str]) -> str:
    """Return the checksum of rows in their order, 32 signs."""
    return sha256(b"".join(_lines(rows)))[:32]


def unordered_checksum(rows: Iterable[str]) -> str:
    """Return the checksum of rows in any order, 16 signs."""
    parts = (hashlib.blake2b(line, digest_size=8).digest() for line in _lines(rows))
    return f"{sum(map(int.from_bytes, parts)) & _MASK:016x}"


def _lines(rows: Iterable[str]) -> Iterator[bytes]:
    return (f"{row}\x1e".encode(errors="backslashreplace") for row in rows)


def keys_of(rows: pd.Series) -> pd.Series:
    """Return the checksum of each row, :data:`KEY` signs that stand for 48 bits."""

    def key(row: str) -> str:
        plain = row.encode(errors="backslashreplace")
        return base64.b64encode(hashlib.blake2b(plain, digest_size=KEY * 3 // 4).digest()).decode()

    codes, keys = each_value(rows, key)
    return pd.Series(np.array(keys, dtype=object)[codes], rows.index)
