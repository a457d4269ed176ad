"""Alarms of a watch: the rows that are new, what they count, and what they surely show.

Rows are read and counted once (:func:`read_watched`, :func:`events_of`); :func:`look` is one look
at the file. There is an alarm where a gap is beyond epsilon, where it has changed, and where scores
are off in another way than before. All quantities share what may go wrong: at most one watch in
twenty ever gives a false alarm, however long it goes on and no matter how often you look. A
quantity's share buys one family of intervals (:mod:`fairbench_watch.sequences`). While all of them
hold, no alarm about it is false: a gap is beyond epsilon where one of them is.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, combinations
from math import comb
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from pyarrow import compute

from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_OF, Direction
from fairbench.audits.question import Options, check_unchanged
from fairbench.audits.table import asked_at_once, read_decisions, read_frame
from fairbench.core.arrays import Floats, Mask, Rows
from fairbench.core.errors import note
from fairbench.core.files import unsealed_json
from fairbench.core.options import from_plain
from fairbench.core.processes import JsonFile
from fairbench.core.text import natural, quoted, shortened
from fairbench.data import columns
from fairbench.data.groups import CROSSED, MOST_GROUPS, cross_columns
from fairbench.evaluation.findings import CHANGED, DRIFTED, PASSED
from fairbench_watch import state as states
from fairbench_watch.sequences import Pair, Sums, first_beyond, log_evidence_needed
from fairbench_watch.state import Alarm, Milestone, WatchOptions, WatchState


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

    def read(audit_options: Options, frame: pd.DataFrame) -> WatchedRows:
        answers = {name: getattr(audit_options, name) for name in _ASKED}
        return _rows_of(replace(options, **answers), frame, names)

    frame = read_frame(options.audit, every=bool(options.time or options.id))
    return asked_at_once(options.audit, frame, read)


_ASKED = ("scale", "positive", "favourable", "decision")  # options that a table may leave open


def _rows_of(options: WatchOptions, frame: pd.DataFrame, names: tuple[str, ...]) -> WatchedRows:
    """Return what is watched of a table that is read."""
    audit_options, file = options.audit, options.path.name
    time, _ = states.period_asked(options.time)
    columns.check_columns(file, [*filter(None, (time, options.id))], list(map(str, frame.columns)))
    if time:
        frame = sort_by_period(frame, options.time, file)
    with columns.name_rows_in_errors(frame, options.id):
        label, label_names = _labels(frame, options, names)
        score = columns.ColumnRef(file, options.score).scores(frame) if options.score else None
        if score is not None:
            columns.check_score(label, score, file, options.score)
        direction = Direction.of(label_names, columns.spelled(options.favourable), options.decision)
        decision = read_decisions(frame, audit_options, direction, score)
    by_name = {name: cross_columns(frame, name.split(CROSSED)) for name in options.group}
    direction.check_said(audit_options, decision)
    if column := options.prediction:
        about = column, label_names, direction.decisions
        for sentence in columns.notes_on_decisions(frame[column], *about):
            note(sentence)
    columns_but_label = [name for name in audit_options.columns if name != options.target]
    if options.id:
        columns.ColumnRef(file, options.id).refuse_blank(frame[options.id], "an identifier")
        columns_but_label.append(options.id)
    parts = (pa.array(frame[name].astype(str)) for name in columns_but_label)
    separator = pa.scalar("\x1f", pa.large_string())
    text = compute.binary_join_element_wise(*parts, separator).to_pandas()
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
    return WatchedRows(rows, pd.DataFrame(by_name), label_names if {0, 1} <= {*label} else ())


def _labels(
    frame: pd.DataFrame, options: WatchOptions, names: tuple[str, ...]
) -> tuple[Floats, tuple[str, str]]:
    """Return the labels, NaN where unknown, and what 0 and 1 are called."""
    file, decided = options.path.name, options.prediction
    text = frame[options.target] if options.target else pd.Series("", frame.index)
    label_column = columns.ColumnRef(file, options.target or "label")
    present = {*map(columns.spelled, text.unique())} - {""}
    # Decisions tell what labels do not yet.
    if not names and decided and len(present) < 2 and not columns.plain_pair(present):
        positive = options.positive or options.decision.partition("/")[0]
        place = columns.ColumnRef(file, decided)
        _, names = place.labels(frame[decided], positive, decisions=True)
    return label_column.labels(text, options.positive, names)


# Dates as the periods they lie in, and the order of periods.

_ISO = r"^(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?:[T ].*)?$"
_DOTTED = r"^(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?:[T ].*)?$"


def periods_of(column: pd.Series, unit: str, file: str) -> pd.Series:
    """Return the period of each date, in names that sort by time: ``2024-03``, ``2024-W09``.

    Raises
    ------
    UserError : a value that is no date whose day and month are told apart by how it is written.
    """
    present = column.unique()
    text = pd.Series(present).astype(str).str.strip()
    parts = text.str.extract(_ISO).fillna(text.str.extract(_DOTTED))
    written = parts["year"] + "-" + parts["month"] + "-" + parts["day"]
    dates = pd.to_datetime(written, format="%Y-%m-%d", errors="coerce")
    if dates.isna().any():
        unread = dates.isna().idxmax()
        row = int((column == present[unread]).to_numpy().argmax())
        told = {"column": column.name, "row": row + 1, "text": quoted(text[unread])}
        raise states.refusal("no_date", file=file, **told)
    names = dates.dt.strftime(states.PERIODS[unit])
    if unit == "quarter":
        names += dates.dt.quarter.astype(str)
    return column.map(dict(zip(present, names, strict=True))).astype(str)


def sort_by_period(frame: pd.DataFrame, time: str, file: str) -> pd.DataFrame:
    """Return a table in the order of its periods, ``week 2`` before ``week 10``; dates as periods.

    Parameters
    ----------
    time : the column of periods, or of dates with a unit: ``date:month``.

    Raises
    ------
    UserError : a row without a period, or with a date that is none.
    """
    name, unit = states.period_asked(time)
    columns.ColumnRef(file, name).refuse_blank(frame[name], "a period")
    if unit:
        frame = frame.assign(**{name: periods_of(frame[name], unit, file)})
    ordered = pd.Index(sorted(frame[name].unique(), key=natural))
    return frame.sort_values(name, key=ordered.get_indexer, kind="stable", ignore_index=True)


def steps(period: NDArray[np.str_], block: int) -> Iterator[int]:
    """Yield the row numbers at which periods (n,) end, and even steps of about a block between."""
    ends = [*(np.flatnonzero(period[1:] != period[:-1]) + 1).tolist(), len(period)]
    for begin, end in zip([0, *ends], ends, strict=False):
        number = max(1, round((end - begin) / block))
        yield from (begin + (end - begin) * (i + 1) // number for i in range(number))


# How often each row came, and whether one had a label, by its checksum. As text, a tally is the
# checksum and a digit: twice the times that the row came, up to `_MOST`, and one more where it had
# a label.

_KEY = 8  # signs of the checksum of one row, which as bytes are one number
_TALLY = np.dtype([("key", np.uint64), ("digit", np.uint8)])
_MOST = 4  # larger numbers of occurrences of a row are counted as this one
_SURE = 3.0  # standard errors by which repeated rows must exceed what chance allows
_FEW = 5.0  # allowance for rows that might have occurred more often but did not


def _keys_of(rows: pd.Series) -> NDArray[np.uint64]:
    """Return the checksum of each row, 8 signs that stand for 48 bits, as a number (n,)."""
    codes, texts = pd.factorize(rows)
    plain = (text.encode(errors="backslashreplace") for text in texts.tolist())
    sums = [hashlib.blake2b(row, digest_size=_KEY * 3 // 4).digest() for row in plain]
    return np.frombuffer(base64.b64encode(b"".join(sums)), np.uint64)[codes]


def read_tallies(text: str) -> pd.DataFrame:
    """Return tallies that were kept as text: ``times`` and ``labelled`` by checksum."""
    kept = np.frombuffer(text.encode(), _TALLY)
    digits = kept["digit"].astype(int) - ord("0")
    return pd.DataFrame({"times": digits // 2, "labelled": digits % 2 == 1}, index=kept["key"])


def text_of(tallies: pd.DataFrame) -> str:
    """Return tallies as text."""
    kept = np.empty(len(tallies), _TALLY)
    digits = 2 * tallies["times"].clip(upper=_MOST) + tallies["labelled"]
    kept["key"], kept["digit"] = tallies.index, digits + ord("0")
    return kept.tobytes().decode()


def events_of(
    state: WatchState, table: WatchedRows, late: ArrayLike, new: ArrayLike
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
    events = table.rows.iloc[np.concatenate([late, new]).astype(np.intp)]
    is_new = np.arange(len(events)) >= np.size(late)
    row, labelled = state.rows + np.cumsum(is_new), events["label"].notna()
    return events.assign(row=row, counted=is_new, labelled=labelled)


def beyond_chance(times: ArrayLike) -> bool:
    """Return whether far more rows occur twice, or three times, than independent rows would.

    Parameters
    ----------
    times : how often each of the distinct rows occurs.

    Notes
    -----
    If people are independent, the numbers of occurrences are a mixture of Poisson numbers. Let f1,
    f2, f3 and f4 be the numbers of rows that occur once, twice, three and four times. On average
    (2 f2)² is then at most f1 · 6 f3, and (6 f3)² at most 2 f2 · 24 f4 (Cauchy and Schwarz),
    whatever the distribution of rows: if many occur twice by chance, some occur three times, and
    more occur once.
    """
    number = np.bincount(np.minimum(times, _MOST), minlength=_MOST + 1).astype(float)
    most = number + _SURE * np.sqrt(number) + _FEW
    least = number - _SURE * np.sqrt(number)
    twice = least[2] > np.sqrt(1.5 * number[1] * most[3])
    thrice = least[3] > np.sqrt(4 / 3 * number[2] * most[4])
    return bool(twice or thrice)


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
    key = _keys_of(events["key"])
    counted, labelled = events["counted"], events["labelled"]

    def first(which: pd.Series, seen: pd.Series) -> Mask:
        """Return which of some rows have a key that none before them has."""
        keys = pd.Series(key[which])
        is_first = which.to_numpy(copy=True)
        is_first[is_first] = ~(keys.isin(seen.index[seen]) | keys.duplicated())
        return is_first

    new, unknown = first(counted, tallies["times"] > 0), first(labelled, tallies["labelled"])
    added = pd.DataFrame({"times": counted.to_numpy(int), "labelled": labelled.to_numpy()}, key)
    tallies = pd.concat([tallies, added]).groupby(level=0, sort=False)
    tallies = tallies.agg({"times": "sum", "labelled": "any"})
    leaves_out_repeats = bool(state.options.id) or state.once or beyond_chance(tallies["times"])
    if leaves_out_repeats:
        events = events.assign(counted=new, labelled=unknown)
    repeats = state.repeats + int(counted.sum() - events["counted"].sum())
    once = leaves_out_repeats and not state.options.id
    state = replace(state, seen=text_of(tallies), once=once, repeats=repeats)
    return state, events[events["counted"] | events["labelled"]]


# What is watched, and its sums: of every group, row after row.

FALSE_ALARMS = 0.05  # the share of watches that may ever give a false alarm
OF_SCORES = 0.2  # the part of it that is left to scores, where they are watched

# A group's sums: labelled rows as TN, FP, FN, TP; all rows by decision; of labels less scores, by
# decision, how many, their sum and that of their squares.
WIDTH = 12
_DECISIONS = 4  # position of the first sum of decisions
_RESIDUALS = 6  # position of the first sum of residuals
_RESIDUAL_PARTS = {"negative": np.eye(WIDTH)[:, 6:9], "positive": np.eye(WIDTH)[:, 9:]}
BLOCK = 500  # rows after which at the latest counting begins anew, too


@dataclass(frozen=True, eq=False)
class Quantity:
    """What is watched: a gap between the rates of two groups, or how far a group's scores are off.

    Attributes
    ----------
    name : what it is called, in the state too.
    groups : the position of one group; for a gap, those of two, of which the gap is the second's
        rate less the first's.
    parts : (WIDTH, K) the matrix that takes a group's sums to the K numbers that are needed: the
        rows and the successes of a rate, or how many residuals there are, their sum and that of
        their squares.
    risk : the probability with which any alarm about it may ever be false.
    metric : the metric of a gap; empty for scores.
    """

    name: str
    attribute: str
    groups: Sequence[int]
    parts: Floats
    risk: float
    metric: str = ""

    def of(self, sums: Floats) -> Floats:
        """Return the K numbers (groups, K, ...) that it needs of sums (..., G, WIDTH)."""
        return np.asarray(np.moveaxis(sums[..., self.groups, :] @ self.parts, (-2, -1), (0, 1)))

    def counts(self, numbers: Floats, share: ArrayLike = np.nan) -> Pair | Sums:
        """Return numbers as `of` returns them as sums, or as the counts of both groups of a gap.

        Parameters
        ----------
        share : the share that the first group is to have, where evidence is asked of counts.
        """
        return Pair.of(numbers, share) if self.metric else Sums(*numbers[0])

    def value(self, numbers: Floats) -> Floats:
        """Return the gap, or the mean, of numbers as `of` returns them; NaN where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            means = numbers[:, 1] / numbers[:, 0]
        return np.asarray(means[-1] - means[0] if self.metric else means[0])

    def share(self, sums: Floats) -> Floats:
        """Return the first group's share of the groups' rows; about even where there are none."""
        sizes = self.of(sums)[:, 0]
        return np.asarray((sizes[0] + 1) / (sizes.sum(axis=0) + len(sizes)))


def rate_parts(metric: str) -> Floats:
    """Return the matrix (WIDTH, 2) that takes sums of a group to rows and successes of a rate."""
    parts = np.zeros((WIDTH, 2))
    if metric == NEEDS_NO_LABELS:
        parts[_DECISIONS : _DECISIONS + 2] = [[1, 0], [1, 1]]
    else:
        rate = RATE_OF[metric]
        parts[:_DECISIONS] = np.transpose([rate.denominator, rate.numerator]) > 0
    return parts


def risks(gaps: int, scores: int) -> tuple[float, float]:
    """Return the probability of a false alarm allowed to each gap, and to each group's scores.

    Parameters
    ----------
    gaps, scores : how many gaps, and how many groups' scores, are watched.
    """
    gaps_share = 1 - OF_SCORES if scores else 1
    return FALSE_ALARMS * gaps_share / max(gaps, 1), FALSE_ALARMS * OF_SCORES / max(scores, 1)


def quantities(state: WatchState) -> tuple[list[Quantity], list[Quantity]]:
    """Return every gap of every metric between two groups, and the scores of every group.

    Scores are watched by decision, where there are scores and labels.
    """
    groups = state.groups
    metrics = state.options.watched
    rate_names = state.options.rate_names
    residuals = _RESIDUAL_PARTS if state.options.score and state.options.target else {}
    pairs = sum(comb(len(names), 2) for names in groups.values())
    score_count = len(residuals) * sum(map(len, groups.values()))
    gap_risk, score_risk = risks(len(metrics) * pairs, score_count)
    gaps, scores = list[Quantity](), list[Quantity]()
    for attribute, names in groups.items():
        for metric in metrics:
            for pair in combinations(range(len(names)), 2):
                called = f"{names[pair[1]]} less {names[pair[0]]}, {rate_names[metric]}"
                of_pair = attribute, pair, rate_parts(metric), gap_risk, metric
                gaps.append(Quantity(f"{attribute}: {called}", *of_pair))
        for group, name in enumerate(names):
            for decided, parts in residuals.items():
                called = f"{attribute}: {name}, scores of {decided} decisions"
                scores.append(Quantity(called, attribute, (group,), parts, score_risk))
    return gaps, scores


class NewCounts(NamedTuple):
    """What is new, ready to be added up, of n events.

    Attributes
    ----------
    events : the events, with the number of labels so far as ``labels``.
    codes : attribute -> (n,) position of the group, -1 if it is not watched.
    increments : (n, WIDTH) what each event adds to the sums of its group.
    stops : how many events there are up to each new mark.
    look : the time of the look.
    """

    events: pd.DataFrame
    codes: Mapping[str, NDArray[np.intp]]
    increments: Floats
    stops: Rows
    look: str


def _counted(state: WatchState, table: WatchedRows, events: pd.DataFrame, look: str) -> NewCounts:
    """Return each event's increments to the sums of its groups, in the order of the events."""
    decision = events["decision"].to_numpy()
    labelled = events["labelled"].to_numpy(bool)
    label = events["label"].to_numpy(float)
    residual = np.where(labelled, label - events["score"].to_numpy(float), np.nan)
    scored = ~np.isnan(residual)
    index = np.arange(len(events))
    sums = np.zeros((len(events), WIDTH))
    sums[index[labelled], (2 * label + decision)[labelled].astype(int)] = 1
    sums[index, _DECISIONS + decision] = events["counted"]
    for power in range(3):
        sums[index, _RESIDUALS + 3 * decision + power] = np.where(scored, residual**power, 0)
    groups = table.groups.loc[events.index]
    codes = {of: pd.Index(names).get_indexer(groups[of]) for of, names in state.groups.items()}
    events = events.assign(labels=state.labels + np.cumsum(labelled))
    stops = np.array([*steps(events["period"].to_numpy(str), BLOCK)])
    return NewCounts(events, codes, sums, stops, look)


def sums_now(state: WatchState) -> dict[str, Floats]:
    """Return the sums of every attribute's groups (G, WIDTH) so far."""
    if state.marks:
        return _sums_at(state.marks[-1])
    return {name: np.zeros((len(groups), WIDTH)) for name, groups in state.groups.items()}


def _sums_at(mark: Milestone) -> dict[str, Floats]:
    """Return the sums of every attribute's groups (G, WIDTH) at a mark."""
    return {name: np.array(sums, float) for name, sums in mark.counts.items()}


def _new_marks(state: WatchState, new: NewCounts) -> list[Milestone]:
    """Return the sums at the end of every period and at least every so many rows."""
    sums = {}
    for name, now in sums_now(state).items():
        at = np.empty((len(new.stops), *now.shape))
        for group, so_far in enumerate(now):
            # Row after row, so that sums do not depend on when is looked.
            rows = np.flatnonzero(new.codes[name] == group)
            running = np.concatenate([so_far[None], new.increments[rows]]).cumsum(axis=0)
            at[:, group] = running[np.searchsorted(rows, new.stops)]
        sums[name] = at.tolist()
    last = new.events[["row", "labels", "period"]].iloc[new.stops - 1]
    return [
        Milestone(row, labels, period, new.look, {name: at[i] for name, at in sums.items()})
        for i, (row, labels, period) in enumerate(last.itertuples(index=False, name=None))
    ]


# The file of a watch's state: written whole, and checked when it is read.

SCHEMA = 1


def _check_shape(state: WatchState) -> None:
    """Refuse what only a stranger has sealed: its parts do not belong together."""
    named = [state.shares, *(mark.limits for mark in state.marks[-1:])]
    watched = {gap.name for gap in quantities(state)[0]} if any(named) else set()
    fits = (
        len(state.names) in (0, 2)
        and all({*names} == watched for names in named)
        and all(len(ends) == 3 for mark in state.marks for ends in mark.limits.values())
        and all(len(of.labels) == sum(part.rows for part in of.parts) for of in state.periods)
        and len(state.seen) % (_KEY + 1) == 0
        and all(map(str.isdecimal, state.seen[_KEY :: _KEY + 1]))
    )
    if not fits:
        raise ValueError("it is of another shape")
    for sums in chain(*(mark.counts.values() for mark in state.marks)):
        np.asarray(sums, float)  # ValueError where they are no numbers


class WatchFile(JsonFile[WatchState]):
    """The file of a watch's state."""

    of = "a watch"
    start = "fairbench watch PREDICTIONS"
    otherwise = "or start another state"

    def parse(self, content: bytes) -> WatchState:
        """Return the state that a file's content describes."""
        values = unsealed_json(content)
        if values["schema"] != SCHEMA:
            shown = shortened(str(values["schema"]))
            raise ValueError(f"its schema is {shown}; this version reads {SCHEMA}")
        plain = {part.name: values[part.name] for part in fields(WatchState)}
        options = {**plain["options"], "path": self.folder / plain["options"]["path"]}
        state: WatchState = from_plain(WatchState, {**plain, "options": options})
        _check_shape(state)
        return state

    def values(self, state: WatchState) -> Mapping[str, Any]:
        """Return a state as plain values; the path of the predictions is seen from its folder."""
        path = os.path.relpath(state.options.path.resolve(), self.folder.resolve())
        options = {**asdict(state.options), "path": Path(path).as_posix()}
        periods = [{**vars(of), "parts": [*map(vars, of.parts)]} for of in state.periods]
        parts = {"options": options, "periods": periods, "marks": [*map(vars, state.marks)]}
        parts["alarms"] = [*map(vars, state.alarms)]
        return {"schema": SCHEMA, **vars(state), **parts}


# Alarms, of all marks so far: each new one is compared with every one before it.


def _find_alarms(state: WatchState, new: NewCounts, marks: Sequence[Milestone]) -> list[Alarm]:
    """Return the alarms of what is new that were not given before.

    Every new mark is compared with every one before it.

    Parameters
    ----------
    state : the state before what is new.
    new : the new events.
    marks : all marks, of which what is new adds the last.
    """
    sums_of = {  # attribute -> (T, G, WIDTH) the sums at all marks
        name: np.array([mark.counts[name] for mark in marks], float) for name in state.groups
    }
    gaps, scores = quantities(state)
    already_given = {(alarm.kind, alarm.about) for alarm in state.alarms}
    epsilon = np.full(len(marks), state.options.epsilon)
    counts_of = {metric: new.increments @ rate_parts(metric) for metric in state.options.watched}
    alarms = []
    for quantity in (*gaps, *scores):
        sums = sums_of[quantity.attribute]
        bounds = {CHANGED if quantity.metric else DRIFTED: _bounds_so_far(quantity, state, sums)}
        if quantity.metric:
            bounds = {PASSED: Bounds(-epsilon, epsilon), **bounds}
        for kind in bounds.keys() - {of for of, about in already_given if about == quantity.name}:
            found = [_alarm_since_marks(kind, quantity, bounds[kind], state, marks, sums)]
            if kind == PASSED:
                rows = counts_of[quantity.metric]
                found = [_passed_from_start(quantity, state, new, rows, sums), *found]
            alarms += sorted(filter(None, found), key=attrgetter("row"))[:1]
    return sorted(alarms, key=attrgetter("row", "kind"))


@dataclass(frozen=True, eq=False)
class Bounds:
    """The bounds (T,) by mark beyond which the rows after it raise an alarm.

    Attributes
    ----------
    lower, upper : the bounds, or values between them where `exact` has to be asked.
    exact : returns the bounds of some marks, if they take long to find.
    """

    lower: Floats
    upper: Floats
    exact: Callable[[Rows], tuple[Floats, Floats]] | None = None

    def at(self, marks: Rows) -> tuple[Floats, Floats]:
        """Return the bounds of some marks."""
        return self.exact(marks) if self.exact else (self.lower[marks], self.upper[marks])


def _bounds_so_far(quantity: Quantity, state: WatchState, sums: Floats) -> Bounds:
    """Return the interval of a quantity of all rows up to each mark."""
    reach = log_evidence_needed(quantity.risk)
    if not quantity.metric:
        _, lower, upper = Sums(*quantity.of(sums)[0]).limits(reach)
        return Bounds(lower, upper)
    pair = Pair.of(quantity.of(sums), state.shares[quantity.name])
    found = np.full((2, len(sums)), np.nan)

    def exact(marks: Rows) -> tuple[Floats, Floats]:
        unknown = np.unique(marks[np.isnan(found[0, marks])])
        found[:, unknown] = np.round(pair.at(unknown).limits(reach)[1:], _DIGITS)
        return found[0, marks], found[1, marks]

    return Bounds(*pair.within_limits(reach), exact)


_DIGITS = 6  # of limits that are kept
_STOPS = 16  # marks that are compared with all before them at once
_PAIRS = 512  # pairs of marks of which evidence is computed at once


def _alarm_since_marks(
    kind: str,
    quantity: Quantity,
    bounds: Bounds,
    state: WatchState,
    marks: Sequence[Milestone],
    sums: Floats,
) -> Alarm | None:
    """Return the earliest alarm of a kind, if any, of the rows since a mark alone.

    Parameters
    ----------
    kind : ``passed``, ``changed`` or ``drifted``.
    marks, sums : all marks, and the sums (T, G, WIDTH) at each.
    """
    counts, every = quantity.of(sums), np.arange(len(marks))
    reach = log_evidence_needed(quantity.risk, every + 1)

    def first_of(start: Rows, stop: Rows) -> Alarm | None:
        """Return the alarm of the first of some pairs of marks (P,) that gives one."""
        added, share = sums[stop] - sums[start], quantity.share(sums[start])
        since = quantity.counts(quantity.of(added), share)
        lower, upper = bounds.at(start)
        for pair in np.flatnonzero(since.outside(lower, upper, reach[start]))[:1]:
            mark, limits = marks[stop[pair]], since.at(pair).limits(reach[start[pair]])
            before = None if kind == PASSED else (float(lower[pair]), float(upper[pair]))
            when = mark.row, mark.period, mark.look, marks[start[pair]].row
            ends = float(limits.lower), float(limits.upper)
            return Alarm(kind, quantity.name, *when, *ends, before)
        return None

    for begin in range(len(state.marks), len(marks), _STOPS):
        stops, before = every[begin : begin + _STOPS, None], every[: begin + _STOPS - 1]
        added = counts[..., stops] - counts[..., None, before]
        value = quantity.value(added)
        beyond = (value < bounds.lower[before]) | (value > bounds.upper[before])
        place, start = np.nonzero(beyond & (before < stops))
        since = quantity.counts(added[..., place, start])
        may_be = since.may_be_outside(bounds.lower[start], bounds.upper[start], reach[start])
        stop, start = begin + place[may_be], start[may_be]
        for first in range(0, len(start), _PAIRS):
            some = slice(first, first + _PAIRS)
            if alarm := first_of(start[some], stop[some]):
                return alarm
    return None


def _with_limits(state: WatchState, marks: Sequence[Milestone]) -> list[Milestone]:
    """Return marks with the value and the interval of each gap where charts show them.

    They are of all rows up to the mark; where nobody sees them, they would take most of a look.
    """
    gaps, _ = quantities(state)
    without = [mark for mark in states.drawn(marks) if not mark.limits]
    pairs = []
    for gap in gaps:
        sums = np.array([mark.counts[gap.attribute] for mark in without])
        pairs.append(Pair.of(gap.of(sums), state.shares[gap.name]))
    together = Pair(*np.moveaxis(np.array(pairs), 1, 0)).limits(log_evidence_needed(gaps[0].risk))
    limits = np.moveaxis(np.array(together), 0, -1)  # (N, T, 3)
    plain = limits.round(_DIGITS).astype(object)
    plain[np.isnan(limits)] = None
    names = [gap.name for gap in gaps]
    by_mark = zip(without, plain.swapaxes(0, 1).tolist(), strict=True)
    limits_of = {id(mark): dict(zip(names, ends, strict=True)) for mark, ends in by_mark}
    return [replace(mark, limits=limits_of.get(id(mark), mark.limits)) for mark in marks]


def _passed_from_start(
    gap: Quantity, state: WatchState, new: NewCounts, counts: Floats, sums: Floats
) -> Alarm | None:
    """Look after every row whether the gap of all rows so far is beyond epsilon.

    Parameters
    ----------
    counts : (n, 2) what each event adds to the rows and the successes of its group's rate.
    sums : (T, G, WIDTH) the sums at all marks, of which the new events add the last.
    """
    group, share = new.codes[gap.attribute], state.shares[gap.name]
    epsilon, reach = state.options.epsilon, float(log_evidence_needed(gap.risk))
    at_marks = np.moveaxis(gap.of(sums), -1, 0)[len(state.marks) :]  # (T, 2, 2)
    before = np.concatenate([gap.of(sums_now(state)[gap.attribute])[None], at_marks[:-1]])
    # Between two marks no rate is further out than where all that comes has the one label.
    with np.errstate(divide="ignore", invalid="ignore"):
        least, most = before[:, :, 1] / at_marks[:, :, 0], at_marks[:, :, 1] / before[:, :, 0]
    may_be = ~(most[:, ::-1] - least <= epsilon).all(axis=1)
    begins = np.concatenate([[0], new.stops[:-1]])
    for block in np.flatnonzero(may_be):
        rows = begins[block] + np.arange(new.stops[block] - begins[block])
        rows = rows[np.isin(group[rows], gap.groups) & (counts[rows, 0] > 0)]
        if not len(rows):
            continue
        is_first = (group[rows] == gap.groups[0])[:, None]
        added = [np.where(own, counts[rows], 0).cumsum(axis=0).T for own in (is_first, ~is_first)]
        pair = Pair.of(before[block, ..., None] + added, share)
        first_rows = (first_beyond(way, epsilon, reach) for way in (pair, pair.swapped()))
        index = min((row for row in first_rows if row is not None), default=None)
        if index is not None:
            event = new.events.iloc[rows[index]]
            when = int(event["row"]), str(event["period"]), new.look, 0
            _, lower, upper = pair.at(index).limits(reach)
            return Alarm(PASSED, gap.name, *when, float(lower), float(upper), None)
    return None


# A look at a file that is watched: what is new is counted, and the state goes on from there.


def look(
    file: WatchFile, options: Any, given: Collection[str]
) -> tuple[WatchState | None, WatchState]:
    """Look at a file, keep what was found, and return the state before, if any, and after it.

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
        if before := file.read() if file.exists() else None:
            check_unchanged(file.path, before.options, options, given)
            path = options.path if "path" in given else file.path_in_folder(before.options.path)
            state = replace(before, options=replace(before.options, path=path))
        else:
            plain = {field.name: getattr(options, field.name) for field in fields(WatchOptions)}
            state = WatchState(WatchOptions(**plain))
        after = _state_after_look(state)
        if file.swap(before, after):
            return before, after
        note(f"{file.path} was changed by another look meanwhile: looking again, from there on")


def _state_after_look(state: WatchState) -> WatchState:
    """Return the state after a look at its file; the same where there is nothing new."""
    table = read_watched(state.options, state.names)
    table = replace(table, groups=_as_watched(table.groups, state.groups))
    file_name = state.options.path.name
    now = datetime.now(UTC).isoformat(timespec="seconds")
    late, new, periods = states.find_additions(state.periods, table.rows, file_name, now)
    events = events_of(state, table, late, new)
    if events.empty:
        return state
    if not state.groups:
        state = replace(state, groups=_groups_of_first_look(table, file_name))
    periods_before = state.periods
    state, events = without_repeats(state, table, events)
    if not (state.options.id or state.once):
        states.check_copies(periods_before, periods, table.rows, file_name)
    state = replace(state, names=table.names or state.names, periods=periods)
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
    new = _counted(state, table, events, look)
    marks = _new_marks(state, new)
    if not state.shares:
        sums = _sums_at(marks[-1])
        shares = [(gap.name, gap.share(sums[gap.attribute])) for gap in quantities(state)[0]]
        state = replace(state, shares={name: round(float(share), 6) for name, share in shares})
    marks = _with_limits(state, [*state.marks, *marks])
    alarms = _find_alarms(state, new, marks)
    return replace(state, marks=tuple(marks), alarms=(*state.alarms, *alarms))


def _as_watched(groups: pd.DataFrame, watched: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Return groups by the names that they are watched by, where one is ``1.0`` and the other 1.

    Parameters
    ----------
    groups, watched : the groups of rows (n,), and those of the first look, of each attribute.
    """
    whole = partial(re.sub, r"(?<!\S)(-?\d+)\.0+(?!\S)", r"\1")

    def watched_name(name: str, names: Sequence[str]) -> str:
        alike = (other for other in names if whole(other) == whole(name))
        return name if name in names else next(alike, name)

    for attribute, names in watched.items():
        found = {name: watched_name(name, names) for name in groups[attribute].unique()}
        groups = groups.assign(**{attribute: groups[attribute].map(found)})
    return groups


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
            told = {"name": name, "values": len(sizes), "most": MOST_GROUPS}
            raise states.refusal("many_values", file=file, **told)
    return groups
