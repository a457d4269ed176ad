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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.watching.state import KEY, WatchState
from fairbench.audits.watching.stream import UNKNOWN, New, WatchedRows

Floats = NDArray[np.float64]
_MOST = 4  # times that a row came, beyond which they are not told apart
_SURE = 3.0  # standard errors by which more rows must come twice than chance allows
_FEW = 5.0  # rows that may come three times, by chance, where none did


@dataclass
class _Tally:
    """What is known of the rows of one key: how often they came, and whether one had a label."""

    times: int = 0
    labelled: bool = False


def once(state: WatchState, table: WatchedRows, new: New) -> tuple[WatchState, New]:
    """Return the state with the keys of new rows, and what is left to count of what is new.

    Notes
    -----
    The label of a repeat counts, once, where the rows before it had none.
    """
    keys = _keys(table)
    tallies = _read(state.seen)
    if not tallies and state.rows:
        _of_earlier_versions(tallies, keys, table, new)
    first = np.array([_came(tallies, keys[row]) for row in new.rows], bool)
    apart = (
        bool(state.options.id)
        or state.once
        or beyond_chance([each.times for each in tallies.values()])
    )
    late = [row for row in new.late if _labelled(tallies, keys[row]) or not apart]
    known = table.label[new.rows] != UNKNOWN
    labels = np.array(
        [has and (_labelled(tallies, keys[row]) or not apart)
         for row, has in zip(new.rows, known, strict=True)], bool,
    )  # fmt: skip
    counted = first | (not apart)
    state = replace(
        state,
        seen=_written(tallies),
        once=apart and not state.options.id,
        repeats=state.repeats + int((~counted).sum()),
    )
    return state, replace(new, late=np.array(late, np.int64), counted=counted, labels=labels)


def beyond_chance(times: Sequence[int]) -> bool:
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


def _keys(table: WatchedRows) -> list[str]:
    """Return what tells rows: a checksum of 48 bits of their identifier, or of what is read."""
    found: dict[str, str] = {}
    for text in table.key:
        if text not in found:
            plain = text.encode(errors="backslashreplace")
            digest = hashlib.blake2b(plain, digest_size=KEY * 3 // 4).digest()
            found[text] = base64.b64encode(digest).decode()
    return [found[text] for text in table.key]


def _came(tallies: dict[str, _Tally], key: str) -> bool:
    """Note that a row came, and say whether it is the first of its key."""
    tally = tallies.setdefault(key, _Tally())
    tally.times += 1
    return tally.times == 1


def _labelled(tallies: dict[str, _Tally], key: str) -> bool:
    """Note that a row has a label, and say whether it is the first of its key."""
    tally = tallies.setdefault(key, _Tally())
    before, tally.labelled = tally.labelled, True
    return not before


def _of_earlier_versions(
    tallies: dict[str, _Tally], keys: Sequence[str], table: WatchedRows, new: New
) -> None:
    """Take in the rows that were seen before states kept keys, as far as the file has them."""
    before = np.ones(len(table), bool)
    before[new.rows] = False
    had_label = table.label != UNKNOWN
    had_label[new.late] = False
    for row in np.flatnonzero(before).tolist():
        _came(tallies, keys[row])
        tallies[keys[row]].labelled |= bool(had_label[row])


def _read(seen: str) -> dict[str, _Tally]:
    """Return the tallies that a state keeps: a key and a digit each."""
    tallies = {}
    for start in range(0, len(seen), KEY + 1):
        times, labelled = divmod(int(seen[start + KEY]), 2)
        tallies[seen[start : start + KEY]] = _Tally(times, bool(labelled))
    return tallies


def _written(tallies: Mapping[str, _Tally]) -> str:
    return "".join(
        f"{key}{2 * min(each.times, _MOST) + each.labelled}" for key, each in tallies.items()
    )
