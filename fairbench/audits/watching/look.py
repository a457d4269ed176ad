"""A look at a file that is watched: what is new is counted, and the state goes on from there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime

import pandas as pd

from fairbench.audits.question import check_unchanged
from fairbench.audits.watching.alarms import find_alarms, with_limits
from fairbench.audits.watching.appended_file import check_copies, find_additions
from fairbench.audits.watching.counting import count_events, new_marks, quantities, sums_at
from fairbench.audits.watching.state import WatchOptions, WatchState
from fairbench.audits.watching.state_file import WatchFile
from fairbench.audits.watching.stream import (
    WatchedRows,
    events_of,
    read_watched,
    without_repeats,
)
from fairbench.core.errors import UserError, note
from fairbench.data.groups import MOST_GROUPS


@dataclass(frozen=True)
class Look:
    """A look at a file: the state that was there, if any, and the state after it."""

    before: WatchState | None
    state: WatchState


def look(file: WatchFile, options: WatchOptions, given: Collection[str]) -> Look:
    """Look at a file, and keep what was found.

    Others may look meanwhile; what they have counted is then not counted again.

    Parameters
    ----------
    file : the file of the watch's state.
    options : the options of this command.
    given : the names of the options that the command line gave; the others are the state's.

    Raises
    ------
    UserError : the file is not what was watched, or cannot be read; the state is as it was.
    """
    while True:
        before = file.read() if file.exists() else None
        after = _state_after_look(_state_to_begin_with(file, before, options, given))
        if file.swap(before, after):
            return Look(before, after)
        note(f"{file.path} was changed by another look meanwhile: looking again, from there on")


def _state_to_begin_with(
    file: WatchFile, state: WatchState | None, options: WatchOptions, given: Collection[str]
) -> WatchState:
    """Return the state that a look begins with."""
    if state is None:
        plain = {field.name: getattr(options, field.name) for field in fields(WatchOptions)}
        return WatchState(WatchOptions(**plain))
    check_unchanged(file.path, state.options, options, given)
    path = options.path if "path" in given else file.path_in_folder(state.options.path)
    return replace(state, options=replace(state.options, path=path))


def _state_after_look(state: WatchState) -> WatchState:
    """Return the state after a look at its file; the same where there is nothing new."""
    table = read_watched(state.options, state.names)
    file_name = state.options.path.name
    now = datetime.now(UTC).isoformat(timespec="seconds")
    additions = find_additions(state.periods, table.rows, file_name, now)
    events = events_of(state, table, additions.late_labels, additions.new_rows)
    if events.empty:
        return state
    if not state.groups:
        state = replace(state, groups=_groups_of_first_look(table, file_name))
    periods_before = state.periods
    state, events = without_repeats(state, table, events)
    if not (state.options.id or state.once):
        check_copies(periods_before, additions.periods, table.rows, file_name)
    state = replace(state, names=table.names or state.names, periods=additions.periods)
    if events.empty:  # all that is new are repeats
        return state
    state = replace(state, unwatched=_unwatched(state, table, events))
    return with_events(state, table, events, now)


def with_events(
    state: WatchState, table: WatchedRows, events: pd.DataFrame, look: str
) -> WatchState:
    """Return the state after events of a look were counted, with the alarms that they give.

    Parameters
    ----------
    events : the new rows and late labels, as :func:`without_repeats` returns them.
    look : the time of the look.
    """
    new = count_events(state, table, events)
    marks = new_marks(state, new, look)
    if not state.shares:
        sums = sums_at(marks[-1])
        shares = [(gap.name, gap.share(sums[gap.attribute])) for gap in quantities(state)[0]]
        state = replace(state, shares={name: round(float(share), 6) for name, share in shares})
    marks = with_limits(state, marks)
    alarms = find_alarms(state, new, marks)
    return replace(state, marks=(*state.marks, *marks), alarms=(*state.alarms, *alarms))


def _unwatched(state: WatchState, table: WatchedRows, events: pd.DataFrame) -> dict[str, int]:
    """Return the rows of groups that were not there at the first look."""
    unwatched = Counter(state.unwatched)
    groups = table.groups.loc[events.index[events["counted"]]]
    for attribute, watched in state.groups.items():
        later = groups[attribute][~groups[attribute].isin(watched)]
        unwatched.update(f"{attribute}: {group}" for group in sorted(later))
    return dict(unwatched)


def _groups_of_first_look(table: WatchedRows, file: str) -> dict[str, tuple[str, ...]]:
    """Return the groups that are watched from now on, the largest first."""
    groups = {}
    for name, column in table.groups.items():
        sizes = column.value_counts().sort_index().sort_values(ascending=False, kind="stable")
        groups[str(name)] = tuple(map(str, sizes.index))
        if not 2 <= len(sizes) <= MOST_GROUPS:
            raise UserError(
                f"{file}: column '{name}' holds {len(sizes)} different values in the first look; "
                f"a group column has 2 to {MOST_GROUPS}"
            )
    return groups
