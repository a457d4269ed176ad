"""A watch as a document: its alarms, every gap, rate and score by now, and their history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fairbench.audits.direction import direction_of, reading
from fairbench.audits.sentences import can_be_concluded, cannot_be_concluded, sentence_of
from fairbench.audits.watching.counting import BLOCK
from fairbench.audits.watching.findings import (
    BEYOND,
    alarm_finding,
    findings_of,
    gaps_now,
    rates_now,
    scores_now,
)
from fairbench.audits.watching.state import WatchState
from fairbench.core import VERSION
from fairbench.core.formats import count, two_digits
from fairbench.data.periods import skipped
from fairbench.data.tabular import spelled
from fairbench.reporting.charts import track
from fairbench.reporting.document.model import (
    Column,
    Document,
    Figure,
    Gallery,
    Section,
    Table,
    TableCell,
    Verdict,
)
from fairbench.reporting.group_tables import bars, table_of

_MOST_POINTS = 200
_FAR = 1_000_000  # rows


def watch_document(state: WatchState, before: WatchState | None) -> Document:
    """Return what a watch knows by now.

    Parameters
    ----------
    state : the state after the last look.
    before : the state before the last look, if there was one.
    """
    gaps = gaps_now(state)
    rates = list(rates_now(state))
    scores = list(scores_now(state))
    rows_before, labels_before = (before.rows, before.labels) if before else (0, 0)
    new = state.rows - rows_before, state.labels - labels_before
    findings = findings_of(state, gaps)
    history = [
        {name: getattr(mark, name) for name in ("row", "labels", "period", "look")}
        | {"gaps": dict(mark.limits)}
        for mark in state.marks
    ]
    alarms = "1 alarm was given: it is the first sentence"
    if len(state.alarms) > 1:
        alarms = f"{count(len(state.alarms))} alarms were given: they are the first sentences"
    return Document(
        f"Watch of {state.options.path.name}",
        [
            Section("Gaps, and how late an alarm may be", [_gap_table(gaps, state)]),
            Section("History of gaps", [_history(gaps, state)]),
            *([Section("Scores", [_score_table(scores)])] if scores else []),
            Section("Rates by group", [_rate_table(rates, state.options.rate_names)]),
        ],
        Verdict(
            can_be_concluded(findings),
            cannot_be_concluded(findings),
            list(_basis(state, new, len(gaps), len(scores))),
            f"{alarms} under “Can be concluded”." if state.alarms else "",
        ),
        notes=list(_notes(state)),
        origin=f"fairbench {VERSION}.",
        data={
            "version": VERSION,
            "options": {**asdict(state.options), "path": str(state.options.path)},
            "rows": state.rows,
            "repeats": state.repeats,
            "labels": state.labels,
            "new": list(new),
            "findings": [
                {**asdict(finding), "sentence": sentence_of(finding)} for finding in findings
            ],
            "alarms": [asdict(alarm) for alarm in state.alarms],
            "gaps": gaps,
            "rates": rates,
            "scores": scores,
            "history": history,
        },
    )


def _basis(state: WatchState, new: tuple[int, int], gaps: int, scores: int) -> Iterator[str]:
    """Yield notes on the rows that were watched, and on the error rate of alarms."""
    if len(state.names) == 2:
        zero, one = state.names
        options = state.options
        yield from reading(
            direction_of((zero, one), spelled(options.favourable), options.decision),
            score=options.score,
            decided=options.prediction,
            threshold=options.threshold,
        )
    rows, labels = map(count, new)
    news = f"{rows} rows and {labels} labels are" if any(new) else "nothing is"
    yield (
        f"Watched: {count(state.rows)} rows, {count(state.labels)} of them with a label; "
        f"{news} new in {state.options.path.name}."
    )
    yield repeats_sentence(state)
    of_scores = f" and {count(scores)} mean errors of scores" if scores else ""
    yield (
        f"{count(gaps)} gaps{of_scores} are watched together: if none of them ever moves beyond "
        "its bound, at most one watch in twenty ever gives a false alarm, no matter how often you "
        "look. An alarm stays."
    )


def repeats_sentence(state: WatchState) -> str:
    """Say how many rows came again, and what tells them."""
    repeats = count(state.repeats)
    if state.options.id:
        return (
            f"Repeats: {repeats} rows had an identifier ({state.options.id}) that was seen before; "
            "each person or decision is counted once."
        )
    if state.once:
        return (
            f"Repeats: {repeats} rows are the same as an earlier one in every column that is read, "
            "far more than independent rows would be; they are counted once. If they are different "
            "people, name the column that tells them apart (id=) in another state."
        )
    return (
        "Repeats: no more rows are alike than chance brings about, so all are taken to be of "
        "different people; name a column of identifiers (id=) if one may come twice."
    )


def _notes(state: WatchState) -> Iterator[str]:
    """Yield what all of this assumes, and what it buys."""
    yield (
        "Assumed: rows are independent of each other, and within a group neither the order in "
        "which rows come nor which labels are known has to do with what the labels are. Then, and "
        "only then, alarms are as seldom false as is said. Where bad outcomes are known "
        "sooner than good ones, rates are those of what is known."
    )
    yield (
        "An interval of all rows so far is of a rate that stays as it is; once it moves, see what "
        "has changed. All gaps' intervals hold together at every look with 95 % confidence, and "
        "so do all rates'."
    )
    yield (
        "Compared from the first row on after every row, and from each mark on at every later mark "
        f"(the end of a look, of a period, and at least every {BLOCK} rows or so)."
    )
    if state.options.score and state.options.target:
        yield (
            "Scores drift where labels are off from them by another amount than before, on "
            "average over a group's rows that are decided one way. If scores are off by the same "
            "amount for the same people, and other people come, that is found as well."
        )
    if skips := skipped([period.name for period in state.periods]):
        skipped_text = ", ".join(
            f"'{first}' and '{last}' ({count(periods)})" for first, last, periods in skips[:5]
        )
        more = f", and {count(len(skips) - 5)} more" if len(skips) > 5 else ""
        yield (
            f"Periods of which no row came, between {skipped_text}{more}: they are counted nowhere."
            " A watch goes forward: rows of them are refused by now."
        )
    if state.unwatched:
        rows = ", ".join(f"{name} ({count(n)} rows)" for name, n in state.unwatched.items())
        yield (
            f"Came after the first look, and are not watched: {rows}. Start another state to watch "
            "them, too."
        )


def _gap_table(gaps: Sequence[Mapping[str, Any]], state: WatchState) -> Table:
    """Return the table of the gaps that are watched, with what is known of each so far."""
    epsilon = state.options.epsilon
    drawn = bars([(gap["lower"], gap["value"], gap["upper"]) for gap in gaps], epsilon)
    return table_of(
        [{**gap, "bar": bar} for gap, bar in zip(gaps, drawn, strict=True)],
        [
            ("gap", Column("gap")),
            ("value", Column("so far", "signed")),
            (("lower", "upper"), Column("at every look", "interval")),
            ("bar", Column("", "bar")),
            (lambda gap: TableCell(gap["verdict"], mark=gap["verdict"]), Column("verdict")),
            (lambda gap: _rows(gap["first"]), Column("found in", right=True)),
            (lambda gap: _rows(gap["next"]), Column("from now", right=True, left_out=1)),
            (lambda gap: _rows(gap["change"]), Column("change", right=True, left_out=2)),
        ],
        caption=(
            "found in: how many rows an alarm takes on average, if the gap is "
            f"{epsilon + BEYOND:g} (epsilon and {BEYOND:g} more) from the first row on; from now: "
            "how many further rows it takes, if the gap becomes as large now; change: how many it "
            f"takes, if the gap moves by {BEYOND:g} now; never: there are too few rows so far to "
            "notice a change."
        ),
        reading=(
            "Rows of the file, of all groups together, at the shares and rates seen so far, "
            "computed by counting on with rates as expected. at every look: the interval of all "
            f"rows so far, which holds no matter how often you look. Shaded: under "
            f"{epsilon:g} either way."
        ),
    )


def _rows(rows: float) -> str:
    """Return a number of rows with two digits; beyond a million it is not told exactly."""
    if np.isinf(rows):
        return "never"
    if rows > _FAR:
        return f"over {count(_FAR)}"
    return two_digits(rows)


def _history(gaps: Sequence[Mapping[str, Any]], state: WatchState) -> Gallery:
    """Return the charts of all gaps, those with an alarm first."""
    alarmed = {alarm.about for alarm in state.alarms}
    ordered = sorted((gap["gap"] for gap in gaps), key=lambda name: name not in alarmed)
    return Gallery(
        [Figure(name, svg=_chart(name, state)) for name in ordered],
        "The gap of all rows so far with the interval that holds at every look; dashed: "
        f"{state.options.epsilon:g} either way; squares: rows at which an alarm was given.",
    )


def _chart(gap: str, state: WatchState) -> str:
    """Draw a gap and its interval at the marks, and where alarms were given."""
    marks = [mark for mark in state.marks if mark.limits[gap][0] is not None]
    marks = marks[:: max(1, len(marks) // _MOST_POINTS)] + marks[-1:]
    limits = np.array([mark.limits[gap] for mark in marks], float).reshape(-1, 3)
    alarms = [alarm for alarm in state.alarms if alarm.about == gap]
    events = [(alarm.row, sentence_of(alarm_finding(alarm, state))) for alarm in alarms]
    rows = [mark.row for mark in marks]
    return track(rows, limits, ("rows", "gap"), bound=state.options.epsilon, events=events)


def _score_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of how far labels are from the scores of each group."""
    return table_of(
        rows,
        [
            ("scores", Column("scores of")),
            ("labels", Column("labels", "count")),
            ("value", Column("label less score", "signed")),
            (("lower", "upper"), Column("at every look", "interval")),
            (lambda row: _rows(row["drift"]), Column("drift found in", right=True)),
        ],
        caption="label less score: mean over labelled rows; 0 where scores are probabilities; "
        "drift found in: further rows of the file until an alarm if it moves by "
        f"{BEYOND:g} from now on",
    )


def _rate_table(rates: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Table:
    """Return the table of each rate of every group, of all rows so far."""
    return table_of(
        rates,
        [
            (lambda rate: f"{rate['attribute']}: {rate['group']}", Column("group")),
            (lambda rate: names[rate["metric"]], Column("rate")),
            ("rows", Column("rows", "count")),
            ("value", Column("so far", "number")),
            (("lower", "upper"), Column("at every look", "interval")),
        ],
        by="metric",
        most=60,
    )
