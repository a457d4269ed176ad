"""A look at a file that is watched: what is new is counted, and the state goes on from there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from datetime import UTC, datetime

import numpy as np

from fairbench.audits.columns import MOST_GROUPS
from fairbench.audits.watching.alarms import find_alarms
from fairbench.audits.watching.counting import (
    events_of,
    gaps_watched,
    groups_of_first_look,
    new_marks,
)
from fairbench.audits.watching.repeats import once
from fairbench.audits.watching.state import Milestone, WatchFile, WatchOptions, WatchState
from fairbench.audits.watching.stream import New, WatchedRows, news, read_watched
from fairbench.core.errors import UserError


def look(file: WatchFile, options: WatchOptions, given: Collection[str]) -> WatchState:
    """Look at a file, and keep what was found; return the state after it.

    Parameters
    ----------
    given : the names of the options that the command line gave; the others are the state's.

    Raises
    ------
    UserError : the file is not what was watched, or cannot be read; the state is as it was.
    """
    if not file.exists():
        return file.create(looked(WatchState(options)))

    def change(state: WatchState) -> WatchState:
        return looked(_same(file, state, options, given))

    return file.change(change)


def _same(
    file: WatchFile, state: WatchState, options: WatchOptions, given: Collection[str]
) -> WatchState:
    names = {each.name for each in fields(WatchOptions)} & set(given) - {"path"}
    other = [each for each in names if getattr(options, each) != getattr(state.options, each)]
    if other:
        raise UserError(
            f"{file.path} was started with another {min(other)}: leave {min(other)}= out, or "
            "start another state"
        )
    if "path" not in given:
        return state
    return replace(state, options=replace(state.options, path=options.path))


def looked(state: WatchState) -> WatchState:
    """Return the state after a look at its file; the same where there is nothing new.

    Raises
    ------
    UserError : the file is not what was watched, or cannot be read.
    """
    table = read_watched(state.options, state.names)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    new = news(state, table, state.options.path, now)
    if not len(new.rows) and not len(new.late):
        return state
    if not state.groups:
        state = _begun(state, table)
    state, new = once(state, table, new)
    events = events_of(state, table, new)
    if not len(events):  # all that is new are repeats
        return replace(state, names=table.names or state.names, periods=new.periods)
    marks = new_marks(state, events, now)
    if not state.shares:
        state = replace(state, shares=shares_of(state, marks[-1]))
    alarms, marks = find_alarms(state, events, marks)
    return replace(
        state,
        names=table.names or state.names,
        periods=new.periods,
        marks=(*state.marks, *marks),
        alarms=(*state.alarms, *alarms),
        unwatched=_unwatched(state, table, new),
    )


def _unwatched(state: WatchState, table: WatchedRows, new: New) -> dict[str, int]:
    """Return the rows of groups that were not there at the first look."""
    found = dict(state.unwatched)
    for name, groups in state.groups.items():
        rows = new.rows if new.counted is None else new.rows[new.counted]
        values, sizes = np.unique(table.groups[name][rows], return_counts=True)
        for value, size in zip(values, sizes, strict=True):
            if value not in groups:
                found[f"{name}: {value}"] = found.get(f"{name}: {value}", 0) + int(size)
    return found


def _begun(state: WatchState, table: WatchedRows) -> WatchState:
    groups = groups_of_first_look(table)
    for name, found in groups.items():
        if not 2 <= len(found) <= MOST_GROUPS:
            raise UserError(
                f"{state.options.path.name}: column '{name}' holds {len(found)} different values "
                f"in the first look; a group column has 2 to {MOST_GROUPS}"
            )
    return replace(state, groups=groups)


def shares_of(state: WatchState, mark: Milestone) -> dict[str, float]:
    """Return the first group's share of each gap's rows, of what the first look has."""
    found = {}
    for gap in gaps_watched(state):
        pair = gap.pair(np.array(mark.counts[gap.attribute], float), 0.5)
        first, second = float(np.asarray(pair.first_size)), float(np.asarray(pair.second_size))
        found[gap.name] = round((first + 1) / (first + second + 2), 6)
    return found
