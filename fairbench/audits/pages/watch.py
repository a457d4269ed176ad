"""A watch as a document: its alarms, every gap, rate and score by now, and their history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fairbench.audits.findings import OPEN, SMALL
from fairbench.audits.gaps import RATE_NAMES
from fairbench.audits.pages.parts import bars, starts
from fairbench.audits.watching.findings import (
    BEYOND,
    Findings,
    GapNow,
    alarm_sentence,
    basis,
    notes,
    open_sentences,
    small_sentences,
)
from fairbench.audits.watching.state import WatchState
from fairbench.core import VERSION
from fairbench.core.formats import count
from fairbench.reporting.charts import BLUE, GREY, ORANGE, Panel, Series, chart
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

_MOST_POINTS = 200


def watch_document(found: Findings) -> Document:
    """Return what a watch knows by now."""
    state = found.state
    alarms = [alarm_sentence(each, state) for each in state.alarms]
    number = len(alarms)
    given = (
        "1 alarm was given; it begins"
        if number == 1
        else f"{count(number)} alarms were given; they begin"
    )
    warning = f"{given} what can be concluded." if alarms else ""
    verdict = Verdict(
        [*alarms, *small_sentences(found)], list(open_sentences(found)), basis(found), warning
    )
    return Document(
        f"Watch of {state.options.path.name}",
        list(_sections(found)),
        verdict,
        notes=notes(found),
        origin=f"fairbench {VERSION}.",
        data=_data(found),
    )


def _sections(found: Findings) -> Iterator[Section]:
    yield Section("Gaps, and how late an alarm may be", [_gaps(found)])
    yield Section("History of gaps", [_history(found)])
    if found.scores:
        yield Section("Scores", [_scores(found)])
    yield Section("Rates by group", [_rates(found)])


def _gaps(found: Findings) -> Table:
    epsilon = found.state.options.epsilon
    columns = [
        Column("gap"),
        Column("so far", "signed"),
        Column("at every look", "interval"),
        Column("", "bar"),
        Column("verdict"),
        Column("found in", right=True),
        Column("from now", right=True, left_out=1),
        Column("change", right=True, left_out=2),
    ]
    ends = [(each.lower, each.value, each.upper) for each in found.gaps]
    rows = [
        [
            each.gap.name,
            each.value,
            (each.lower, each.upper),
            bar,
            TableCell(each.verdict, mark={SMALL: "small", OPEN: "open"}.get(each.verdict, "large")),
            *map(_rows, (each.first, each.next, each.change)),
        ]
        for each, bar in zip(found.gaps, bars(ends, epsilon), strict=True)
    ]
    return Table(
        columns,
        rows,
        caption=(
            f"found in: mean rows until an alarm if the gap is {epsilon + BEYOND:g} from the first "
            f"row on; from now: further rows if it becomes so now; change: if it moves by "
            f"{BEYOND:g} from now on; never: rows so far say too little of what was before."
        ),
        reading=(
            "Rows of the file, of all groups together, at the shares and rates seen so far, "
            "computed by counting on with rates as expected. at every look: the interval of all "
            f"rows so far, which may be looked at as often as one likes. Shaded: under "
            f"{epsilon:g} either way."
        ),
        rules=starts([each.gap.attribute for each in found.gaps]),
    )


_FAR = 1_000_000


def _rows(rows: float) -> str:
    """Return rows with two digits; beyond a million they are as good as never."""
    if not np.isfinite(rows):
        return "never"
    if rows > _FAR:
        return f"over {count(_FAR)}"
    digits = max(len(str(int(rows))) - 2, 0)
    return count(round(rows, -digits))


def _history(found: Findings) -> Gallery:
    alarms = {each.about for each in found.state.alarms}
    ordered = sorted(found.gaps, key=lambda each: each.gap.name not in alarms)
    figures = [Figure(each.gap.name, svg=_chart(each, found.state)) for each in ordered]
    return Gallery(
        figures,
        "The gap of all rows so far with the interval that holds at every look; dashed: "
        f"{found.state.options.epsilon:g} either way; squares: rows at which an alarm was given.",
    )


def _chart(each: GapNow, state: WatchState) -> str:
    marks = [mark for mark in state.marks if mark.limits[each.gap.name][0] is not None]
    marks = marks[:: max(1, len(marks) // _MOST_POINTS)] + marks[-1:]
    limits = np.array([mark.limits[each.gap.name] for mark in marks], float).reshape(-1, 3)
    rows = np.array([mark.row for mark in marks], float)
    value, lower, upper = limits.T
    middle = (lower + upper) / 2
    across = np.array([0.0, rows[-1] if len(rows) else 1.0])
    epsilon = state.options.epsilon
    bound = [
        Series(f"{sign * epsilon:+g}", across, np.full(2, sign * epsilon), GREY, dashed=True,
               marked=False)
        for sign in (-1, 1)
    ]  # fmt: skip
    band = Series("interval", rows, middle, BLUE, lined=False, marked=False,
                  band=(upper - lower) / 2)  # fmt: skip
    line = Series("gap so far", rows, value, BLUE, marked=False)
    series = [*bound, band, line, *_alarms(each, state, rows, value)]
    return chart([Panel(series, "rows", "gap", from_zero="x")])[0]


def _alarms(
    each: GapNow, state: WatchState, rows: Sequence[float] | Any, value: Any
) -> Iterator[Series]:
    for alarm in state.alarms:
        if alarm.about == each.gap.name:
            height = np.interp([alarm.row], rows, value)
            hint = alarm_sentence(alarm, state)
            yield Series(alarm.kind, [alarm.row], height, ORANGE, shape=1, filled=True, hint=hint)


def _scores(found: Findings) -> Table:
    columns = [
        Column("scores of"),
        Column("labels", "count"),
        Column("label less score", "signed"),
        Column("at every look", "interval"),
        Column("drift found in", right=True),
    ]
    rows = [
        [each.scores.name, each.labels, each.value, (each.lower, each.upper), _rows(each.drift)]
        for each in found.scores
    ]
    caption = (
        "label less score: mean over labelled rows; 0 where scores are probabilities; drift found "
        f"in: further rows of the file until an alarm if it moves by {BEYOND:g} from now on"
    )
    return Table(
        columns,
        rows,
        caption=caption,
        rules=starts([each.scores.attribute for each in found.scores]),
    )


def _rates(found: Findings) -> Table:
    columns = [
        Column("group"),
        Column("rate"),
        Column("rows", "count"),
        Column("so far", "number"),
        Column("at every look", "interval"),
    ]
    rows = [
        [
            f"{each.attribute}: {each.group}",
            RATE_NAMES[each.metric],
            each.rows,
            each.value,
            (each.lower, each.upper),
        ]
        for each in found.rates
    ]
    return Table(columns, rows, rules=starts([each.metric for each in found.rates]), most=60)


def _data(found: Findings) -> Mapping[str, Any]:
    state = found.state
    return {
        "version": VERSION,
        "options": {**asdict(state.options), "path": str(state.options.path)},
        "rows": state.rows,
        "repeats": state.repeats,
        "labels": state.marks[-1].labels,
        "new": list(found.new),
        "alarms": [asdict(each) for each in state.alarms],
        "gaps": [{**asdict(each), "gap": each.gap.name} for each in found.gaps],
        "rates": [asdict(each) for each in found.rates],
        "scores": [{**asdict(each), "scores": each.scores.name} for each in found.scores],
        "history": [
            {"row": mark.row, "labels": mark.labels, "period": mark.period, "look": mark.look,
             "gaps": dict(mark.limits)}
            for mark in state.marks
        ],
    }  # fmt: skip
