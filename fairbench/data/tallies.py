"""Counts of rows, identified by checksums, and whether one of them had a label.

As text, a tally is the checksum and a digit: twice the times that the row came, up to :data:`MOST`,
and one more where it had a label.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairbench.data.checksums import KEY

MOST = 4  # larger numbers of occurrences of a row are counted as this one


def check_tallies(text: str) -> None:
    """Refuse a text with a ValueError that is cut off, or has been something else."""
    if len(text) % (KEY + 1) or not all(map(str.isdecimal, text[KEY :: KEY + 1])):
        raise ValueError("what it has of the rows that were seen is cut off")


def read_tallies(text: str) -> pd.DataFrame:
    """Return tallies that were kept as text: ``times`` and ``labelled`` by checksum."""
    keys = [text[start : start + KEY] for start in range(0, len(text), KEY + 1)]
    digits = np.array([*map(int, text[KEY :: KEY + 1])], int)
    index = pd.Index(keys, dtype=object)
    return pd.DataFrame({"times": digits // 2, "labelled": digits % 2 == 1}, index)


def with_rows(tallies: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return tallies after some more rows.

    Parameters
    ----------
    rows : with their checksum as ``key``, and whether the row counts and has a label as ``counted``
        and ``labelled``.
    """
    added = rows.set_index("key")[["counted", "labelled"]].astype({"counted": int})
    together = pd.concat([tallies, added.rename(columns={"counted": "times"})])
    return together.groupby(level=0, sort=False).agg({"times": "sum", "labelled": "any"})


def text_of(tallies: pd.DataFrame) -> str:
    """Return tallies as text."""
    digits = 2 * tallies["times"].clip(upper=MOST) + tallies["labelled"]
    return "".join(f"{key}{digit}" for key, digit in digits.items())
