"""Rows that come more than once: each is counted once, and how many there were is said.

Evidence is of independent rows, and a row that comes again is none. Where a column of identifiers
is named, a row whose identifier was seen is a repeat. Without one, a row is told by all that is
read of it but its label; two people may then be alike, and rows are taken to be different people
unless far more of them come twice than chance can bring about. Which rows are left out has nothing
to do with their labels, so that alarms are as seldom false with them as without.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from fairbench.audits.watching.state import WatchState
from fairbench.audits.watching.stream import WatchedRows
from fairbench.data.checksums import keys_of
from fairbench.data.tallies import read_tallies, text_of, with_rows
from fairbench.inference.duplicates import beyond_chance


def once(
    state: WatchState, table: WatchedRows, events: pd.DataFrame
) -> tuple[WatchState, pd.DataFrame]:
    """Return the state with the keys of new rows, and what is left to count of what is new.

    Notes
    -----
    The label of a repeat counts, once, where the rows before it had none.
    """
    tallies = read_tallies(state.seen)
    if tallies.empty and state.rows:  # an earlier version kept no keys: those that the file has
        before = table.rows.drop(events.index[events["counted"]])
        labelled = before["label"].notna() & ~before.index.isin(events.index)
        key = keys_of(before["key"])
        tallies = with_rows(tallies, before.assign(key=key, counted=True, labelled=labelled))
    key, counted, labelled = keys_of(events["key"]), events["counted"], events["labelled"]
    new = ~key.isin(tallies.index[tallies["times"] > 0]) & ~key.where(counted).duplicated()
    unknown = ~key.isin(tallies.index[tallies["labelled"]]) & ~key.where(labelled).duplicated()
    tallies = with_rows(tallies, events.assign(key=key))
    apart = bool(state.options.id) or state.once or beyond_chance(tallies["times"])
    if apart:
        events = events.assign(counted=counted & new, labelled=labelled & unknown)
    state = replace(
        state,
        seen=text_of(tallies),
        once=apart and not state.options.id,
        repeats=state.repeats + int(counted.sum() - events["counted"].sum()),
    )
    return state, events[events["counted"] | events["labelled"]]
