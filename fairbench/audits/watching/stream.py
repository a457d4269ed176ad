"""The rows of a file that is watched, and what is counted, once, of those that are new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fairbench.audits.columns import read_frame
from fairbench.audits.direction import Decided, check_said, direction_of
from fairbench.audits.table import read_decisions
from fairbench.audits.watching.state import WatchOptions, WatchState
from fairbench.core.arrays import Floats
from fairbench.core.errors import note
from fairbench.data.any_table import check_columns
from fairbench.data.checksums import keys_of, texts_of
from fairbench.data.columns import (
    ColumnRef,
    labels_of,
    labels_with_names,
    name_rows_in_errors,
    notes_on_decisions,
    scores_of,
)
from fairbench.data.groups import cross_groups
from fairbench.data.leakage import check_score
from fairbench.data.periods import period_asked, sort_by_period
from fairbench.data.tabular import plain_pair, spelled
from fairbench.data.tallies import read_tallies, text_of, with_rows
from fairbench.inference.duplicates import beyond_chance


@dataclass(frozen=True, eq=False)
class WatchedRows:
    """The rows of a file, by period and within it as they are in the file.

    Attributes
    ----------
    rows : ``period``, a name; ``text``, all that is read of a row but its label; ``key``, what
        tells one row from another, its identifier or ``text``; ``decision``; ``score``, NaN
        without scores; ``label``, NaN where it is not known. The index counts from 0.
    groups : a column of names for each attribute.
    names : what labels 0 and 1 are called, where the file has both.
    """

    rows: pd.DataFrame
    groups: pd.DataFrame
    names: tuple[str, ...] = ()


def read_watched(options: WatchOptions, names: tuple[str, ...]) -> WatchedRows:
    """Read a file that is watched.

    Parameters
    ----------
    options : what is watched, and of which columns.
    names : what labels 0 and 1 are called, where both were seen before; otherwise empty.

    Raises
    ------
    UserError : if the file or a column is missing, or a value is invalid; names the row.
    """
    audit_options = options.audit
    file = options.path.name
    frame = read_frame(audit_options, every=bool(options.time or options.id))
    time, _ = period_asked(options.time)
    check_columns(file, [*filter(None, (time, options.id))], list(map(str, frame.columns)))
    if time:
        frame = sort_by_period(frame, options.time, file)
    with name_rows_in_errors(frame, options.id):
        label, label_names = _labels(frame, options, names)
        score = scores_of(frame, ColumnRef(file, options.score)) if options.score else None
        if score is not None:
            check_score(label, score, file, options.score)
        direction = direction_of(label_names, spelled(options.favourable), options.decision)
        decision = read_decisions(frame, audit_options, direction, score)
    decided = Decided(file, cross_groups(frame, options.group[0]), decision)
    columns = [name for name in (options.score, options.target, options.prediction) if name]
    side = "" if options.prediction else f"{options.score} above {options.threshold:g}"
    check_said(direction, [*columns, label_names[1]], decided, side)
    if column := options.prediction:
        for sentence in notes_on_decisions(frame[column], column, label_names, direction.decisions):
            note(sentence)
    columns_but_label = [name for name in audit_options.columns if name != options.target]
    if options.id:
        ColumnRef(file, options.id).refuse_blank(frame[options.id], "an identifier")
        columns_but_label.append(options.id)
    text = texts_of(frame, columns_but_label)
    rows = pd.DataFrame(
        {
            "period": frame[time] if time else "",
            "text": text,
            "key": frame[options.id].astype(str) if options.id else text,
            "decision": decision,
            "score": np.nan if score is None else score,
            "label": label,
        }
    )
    groups = pd.DataFrame({name: cross_groups(frame, name) for name in options.group})
    return WatchedRows(rows, groups, label_names if {0, 1} <= {*label} else ())


def _labels(
    frame: pd.DataFrame, options: WatchOptions, names: tuple[str, ...]
) -> tuple[Floats, tuple[str, str]]:
    """Return the labels, NaN where unknown, and what 0 and 1 are called."""
    file = options.path.name
    decided = options.prediction
    text = frame[options.target] if options.target else pd.Series("", frame.index)
    label_column = ColumnRef(file, options.target or "label")
    present = {*map(spelled, text.unique())} - {""}
    # Decisions tell what labels do not yet.
    if not names and decided and len(present) < 2 and not plain_pair(present):
        positive = options.positive or options.decision.partition("/")[0]
        _, names = labels_of(frame[decided], ColumnRef(file, decided), positive)
    if not names:
        return labels_of(text, label_column, options.positive)
    return labels_with_names(text, label_column, names)


def events_of(
    state: WatchState, table: WatchedRows, late: Sequence[int], new: Iterable[int]
) -> pd.DataFrame:
    """Return what is counted one after the other: labels that came late, then new rows.

    Parameters
    ----------
    late, new : positions in the table of the rows with a late label, and of the new rows.

    Returns
    -------
    These rows of the table, with further columns: ``row``, how many rows there are so far;
    ``counted``, whether the row itself is counted; and ``labelled``, whether its label is.
    """
    events = table.rows.loc[[*late, *new]]
    is_new = np.arange(len(events)) >= len(late)
    return events.assign(
        row=state.rows + np.cumsum(is_new), counted=is_new, labelled=events["label"].notna()
    )


def without_repeats(
    state: WatchState, table: WatchedRows, events: pd.DataFrame
) -> tuple[WatchState, pd.DataFrame]:
    """Return the state with the keys of new rows, and the events that are left without repeats.

    Notes
    -----
    The evidence needs independent rows, so that a repeated row must not count again. With a column
    of identifiers, a row whose identifier was seen is a repeat. Without one, a row is recognised by
    all that is read of it but its label; two people may then be alike, and rows are taken to be
    different people unless far more of them come twice than chance can bring about. The label of a
    repeat counts, once, where the rows before it had none. Which rows are left out has nothing to
    do with their labels, so that alarms are as seldom false with them as without.
    """
    tallies = read_tallies(state.seen)
    if tallies.empty and state.rows:  # an earlier version kept no keys: those that the file has
        before = table.rows.drop(events.index[events["counted"]])
        labelled = before["label"].notna() & ~before.index.isin(events.index)
        key = keys_of(before["key"])
        tallies = with_rows(tallies, before.assign(key=key, counted=True, labelled=labelled))
    key = keys_of(events["key"])
    counted = events["counted"]
    labelled = events["labelled"]
    new = ~key.isin(tallies.index[tallies["times"] > 0]) & ~key.where(counted).duplicated()
    unknown = ~key.isin(tallies.index[tallies["labelled"]]) & ~key.where(labelled).duplicated()
    tallies = with_rows(tallies, events.assign(key=key))
    leaves_out_repeats = bool(state.options.id) or state.once or beyond_chance(tallies["times"])
    if leaves_out_repeats:
        events = events.assign(counted=counted & new, labelled=labelled & unknown)
    state = replace(
        state,
        seen=text_of(tallies),
        once=leaves_out_repeats and not state.options.id,
        repeats=state.repeats + int(counted.sum() - events["counted"].sum()),
    )
    return state, events[events["counted"] | events["labelled"]]
