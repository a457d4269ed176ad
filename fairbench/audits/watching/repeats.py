"""Rows that come more than once: each is counted once, and how many there were is said.

Evidence is of independent rows, and a row that comes again is none. Where a column of identifiers
is named, a row whose identifier was seen is a repeat. Without one, a row is told by all that is
read of it but its label; two people may then be alike, and rows are taken to be different people
unless far more of them come twice than chance can bring about. Which rows are left out has nothing
to do with their labels, so that alarms are as seldom false with them as without.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fairbench.audits.watching.state import KEY, WatchState
from fairbench.audits.watching.stream import UNKNOWN, WatchedRows
from fairbench.data.columns import each_value

_MOST = 4  # times that a row came, beyond which they are not told apart
_SURE = 3.0  # standard errors by which more rows must come twice than chance allows
_FEW = 5.0  # rows that may come three times, by chance, where none did


def once(
    state: WatchState, table: WatchedRows, events: pd.DataFrame
) -> tuple[WatchState, pd.DataFrame]:
    """Return the state with the keys of new rows, and what is left to count of what is new.

    Notes
    -----
    The label of a repeat counts, once, where the rows before it had none.
    """
    tallies = _read(state.seen)
    if tallies.empty and state.rows:  # an earlier version kept no keys: those that the file has
        before = table.rows.drop(events.index[events["counted"]])
        labelled = (before["label"] != UNKNOWN) & ~before.index.isin(events.index)
        tallies = _with(tallies, before.assign(counted=True, labelled=labelled))
    key, counted, labelled = _keys(events), events["counted"], events["labelled"]
    new = ~key.isin(tallies.index[tallies["times"] > 0]) & ~key.where(counted).duplicated()
    unknown = ~key.isin(tallies.index[tallies["labelled"]]) & ~key.where(labelled).duplicated()
    tallies = _with(tallies, events)
    apart = bool(state.options.id) or state.once or beyond_chance(tallies["times"])
    if apart:
        events = events.assign(counted=counted & new, labelled=labelled & unknown)
    state = replace(
        state,
        seen=_written(tallies),
        once=apart and not state.options.id,
        repeats=state.repeats + int(counted.sum() - events["counted"].sum()),
    )
    return state, events[events["counted"] | events["labelled"]]


def beyond_chance(times: ArrayLike) -> bool:
    """Say whether far more rows come twice, or three times, than independent rows would.

    Parameters
    ----------
    times : how often each of the different rows came.

    Notes
    -----
    How often rows of independent people are alike is a mixture of Poisson numbers. Of f1, f2, f3
    and f4 that come so many times, (2 f2)² is then at most f1 · 6 f3 on average, and (6 f3)² at
    most 2 f2 · 24 f4 (Cauchy and Schwarz), whatever the rows look like: where many come twice by
    chance, some come three times, and more come once.
    """
    number = np.bincount(np.minimum(times, _MOST), minlength=_MOST + 1).astype(float)
    most = number + _SURE * np.sqrt(number) + _FEW
    least = number - _SURE * np.sqrt(number)
    twice = least[2] > np.sqrt(1.5 * number[1] * most[3])
    thrice = least[3] > np.sqrt(4 / 3 * number[2] * most[4])
    return bool(twice or thrice)


def _keys(rows: pd.DataFrame) -> pd.Series:
    """Return what tells rows: a checksum of 48 bits of their identifier, or of what is read."""

    def checksum(text: str) -> str:
        plain = text.encode(errors="backslashreplace")
        digest = hashlib.blake2b(plain, digest_size=KEY * 3 // 4).digest()
        return base64.b64encode(digest).decode()

    codes, checksums = each_value(rows["key"], checksum)
    return pd.Series(np.array(checksums, dtype=object)[codes], rows.index)


def _with(tallies: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return how often rows came by key, and whether one had a label, after some more rows."""
    more = pd.DataFrame({"times": rows["counted"].astype(int), "labelled": rows["labelled"]})
    together = pd.concat([tallies, more.set_index(_keys(rows))])
    return together.groupby(level=0, sort=False).agg({"times": "sum", "labelled": "any"})


def _read(seen: str) -> pd.DataFrame:
    """Return the tallies that a state keeps: a key and a digit each."""
    starts = range(0, len(seen), KEY + 1)
    digits = np.array([int(seen[start + KEY]) for start in starts], int)
    keys = pd.Index([seen[start : start + KEY] for start in starts], dtype=object)
    return pd.DataFrame({"times": digits // 2, "labelled": digits % 2 == 1}, keys)


def _written(tallies: pd.DataFrame) -> str:
    digits = 2 * tallies["times"].clip(upper=_MOST) + tallies["labelled"]
    return "".join(f"{key}{digit}" for key, digit in digits.items())
