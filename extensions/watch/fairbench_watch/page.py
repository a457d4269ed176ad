"""What a watch knows by now, and how late its alarms may be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import date
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fairbench.audits import sentences
from fairbench.audits.direction import Direction
from fairbench.core import VERSION
from fairbench.core.arrays import Floats, divide
from fairbench.core.text import count, counted, two_digits
from fairbench.data.columns import spelled
from fairbench.evaluation.findings import LARGE, OPEN, PASSED, SMALL, WATCHED, Finding
from fairbench.inference.rates import rate_sequence
from fairbench.reporting.charts import BLUE, GREY, ORANGE, Panel, Series, chart
from fairbench.reporting.document import model
from fairbench.reporting.group_tables import bars, named_table, sentence_of, sentences_of
from fairbench_watch import sequences
from fairbench_watch.alarms import BLOCK, FALSE_ALARMS, Quantity, quantities, rate_parts, sums_now
from fairbench_watch.sequences import Sums, log_evidence_needed
from fairbench_watch.state import Alarm, WatchState, drawn

BEYOND = 0.05  # how far beyond the limit a gap or scores are in statements on delays of alarms
NEVER = float("inf")
_PAGE = "fairbench_watch:watch"
_said = partial(sentence_of, _PAGE)


def gaps_now(state: WatchState) -> list[dict[str, Any]]:
    """Return every gap that is watched, of all rows so far, and the rows until alarms about it.

    Returns
    -------
    The name as ``gap``, ``attribute`` and ``metric``; ``value`` (the second group's rate less the
    first's), ``lower`` and ``upper``; the ``verdict`` of the interval, ``large`` after an alarm.
    Rows until one 0.05 beyond epsilon is found, if it is there from the ``first`` row on; further
    ones until it is found if it begins now (``next``), and until a ``change`` by 0.05 is.
    """
    gaps, _ = quantities(state)
    epsilon = state.options.epsilon
    passed = {alarm.about for alarm in state.alarms if alarm.kind == PASSED}
    limits = np.array([state.marks[-1].limits[gap.name] for gap in gaps], float)  # None: NaN
    delays = _delays(gaps, limits, state)
    table_rows = []
    for i, gap in enumerate(gaps):
        value, lower, upper = limits[i].tolist()
        small = SMALL if -epsilon < lower and upper < epsilon else OPEN
        verdict = LARGE if gap.name in passed else small
        which = {"gap": gap.name, "attribute": gap.attribute, "metric": gap.metric}
        now = {"value": value, "lower": lower, "upper": upper, "verdict": verdict}
        table_rows.append(which | now | {kind: float(rows[i]) for kind, rows in delays.items()})
    return table_rows


def _delays(gaps: Sequence[Quantity], limits: Floats, state: WatchState) -> dict[str, Floats]:
    """Return the rows until each alarm of gaps (N,); never where a group has no rows yet.

    Parameters
    ----------
    limits : (N, 3) each gap's value and interval so far.
    """
    sums, n_marks = sums_now(state), len(state.marks)
    n_rows, successes = np.moveaxis(np.array([gap.of(sums[gap.attribute]) for gap in gaps]), 2, 0)
    first, second = divide(successes, n_rows).T
    rows_in_file_per_row = divide(np.array(float(state.marks[-1].row)), n_rows.sum(axis=1))
    share = divide(n_rows[:, 0], n_rows.sum(axis=1))
    # A gap that grows is found sooner. Seen from the other group, the upper end is the lower one.
    limit = np.where(second >= first, limits[:, 2], -limits[:, 1])

    def until(distance: float | Floats, bound: ArrayLike, restart: int) -> Floats:
        """Return the rows until rates at this distance are surely further apart than a bound.

        The lower rate is lowered where the other would be above 1.
        """
        low = np.maximum(np.minimum(np.minimum(first, second), 1 - distance), 0.0)
        reach = log_evidence_needed(gaps[0].risk, restart)
        rows = sequences.rows_until_beyond(low, low + distance, share, bound, reach)
        return np.where(n_rows.all(axis=1), rows_in_file_per_row * rows, NEVER)

    epsilon = state.options.epsilon
    return {
        "first": until(epsilon + BEYOND, epsilon, 0),
        "next": until(epsilon + BEYOND, epsilon, n_marks),
        "change": until(abs(second - first) + BEYOND, limit, n_marks),
    }


def findings_of(state: WatchState, gaps: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Return what is said: every alarm so far, then the gaps that gave none.

    Alarms share an error rate over all looks; the intervals of gaps hold together at every look.

    Parameters
    ----------
    gaps : the rows that :func:`gaps_now` returns.
    """
    alarms = [_alarm_finding(alarm, state) for alarm in state.alarms]
    names = state.options.rate_names
    others = [
        Finding(
            WATCHED, gap["attribute"], names[gap["metric"]], gap["verdict"], (gap["gap"],),
            value=gap["value"], lower=gap["lower"], upper=gap["upper"],
            bound=state.options.epsilon, n=state.rows, scope=_of_rows(0),
        )
        for gap in gaps
        if gap["verdict"] != LARGE
    ]  # fmt: skip
    return alarms + others


def _alarm_finding(alarm: Alarm, state: WatchState) -> Finding:
    """Return what an alarm says."""
    when = f"row {count(alarm.row)}" + (f", {alarm.period}" if alarm.period else "")
    return Finding(
        alarm.kind, "", alarm.about, LARGE,
        lower=alarm.lower, upper=alarm.upper, values=alarm.before or (),
        bound=state.options.epsilon, n=alarm.row,
        scope=f"{_of_rows(alarm.since)}, found at {when}",
    )  # fmt: skip


def _of_rows(since: int) -> str:
    return f"of the rows after row {count(since)}" if since else "of all rows so far"


def _rates_now(state: WatchState) -> Iterator[dict[str, Any]]:
    """Yield every rate of every group, of all rows so far; all intervals hold together."""
    metrics = state.options.watched
    n_rates = sum(map(len, state.groups.values())) * len(metrics)
    for attribute, sums in sums_now(state).items():
        for metric in metrics:
            size, successes = (sums @ rate_parts(metric)).T
            limits = rate_sequence(successes, size, np.log(n_rates / FALSE_ALARMS))
            for index, group in enumerate(state.groups[attribute]):
                which = {"attribute": attribute, "group": group, "metric": metric}
                estimate = zip(("value", "lower", "upper"), limits.at(index), strict=True)
                yield {**which, "rows": float(size[index]), **dict(estimate)}


def _scores_now(state: WatchState) -> Iterator[dict[str, Any]]:
    """Yield every group's mean of ``labels`` less their scores, with ``lower`` and ``upper``."""
    now = sums_now(state)
    for scores in quantities(state)[1]:
        (sums,) = scores.of(now[scores.attribute])
        value, lower, upper = map(float, Sums(*sums).limits(log_evidence_needed(scores.risk)))
        which = {"scores": scores.name, "attribute": scores.attribute, "labels": float(sums[0])}
        yield {**which, "value": value, "lower": lower, "upper": upper}


# A watch as a document: its alarms, every gap, rate and score by now, and their history.

_FAR = 1_000_000  # rows


def watch_document(state: WatchState, before: WatchState | None) -> model.Document:
    """Return what a watch knows by now.

    Parameters
    ----------
    state : the state after the last look.
    before : the state before the last look, if there was one.
    """
    gaps, rates, scores = gaps_now(state), [*_rates_now(state)], [*_scores_now(state)]
    begun = before or WatchState(state.options)
    new = state.rows - begun.rows, state.labels - begun.labels
    findings = findings_of(state, gaps)
    kept = ("row", "labels", "period", "look")
    history = [
        {**{name: getattr(mark, name) for name in kept}, "gaps": dict(mark.limits)}
        for mark in drawn(state.marks)
    ]
    can, cannot = sentences.concluded(findings)
    basis = list(_basis(state, new, len(gaps), len(scores)))
    gap_table = _gap_table(gaps, state)
    alarms = f"{counted(len(state.alarms), 'alarm')} so far" if state.alarms else ""
    return model.Document(
        f"Watch of {state.options.path.name}",
        [
            model.Section("Gaps, and how late an alarm may be", [gap_table]),
            model.Section("History of gaps", [_history(gaps, state)]),
            *([model.Section("Scores", [named_table(_PAGE, "scores", scores)])] if scores else []),
            model.Section("Rates by group", [_rate_table(rates, state.options.rate_names)]),
        ],
        model.Verdict(can, cannot, basis, alarms),
        summary=model.ExecutiveSummary(
            can, basis, list(_unseen(state)), still_open=cannot, key_figures=gap_table
        ),
        notes=_notes(state),
        origin=f"fairbench {VERSION}.",
        data={
            "version": VERSION,
            "options": {**asdict(state.options), "path": str(state.options.path)},
            **{name: getattr(state, name) for name in ("rows", "repeats", "labels")},
            "new": list(new),
            "findings": [
                asdict(said) | {"sentence": sentences.sentence_of(said)} for said in findings
            ],
            "alarms": [*map(asdict, state.alarms)],
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
        direction = Direction.of((zero, one), spelled(options.favourable), options.decision)
        yield from direction.reading(options.audit)
    rows, labels = map(count, new)
    news = f"{rows} rows and {labels} labels are" if any(new) else "nothing is"
    yield _said("watched", state=state, news=news)
    yield repeats_sentence(state)
    of_scores = f" and {count(scores)} mean errors of scores" if scores else ""
    yield _said("together", gaps=gaps, of_scores=of_scores)


def repeats_sentence(state: WatchState) -> str:
    """Say how many rows came again, and what tells them."""
    of_rows = "repeats_of_rows" if state.once else "no_repeats"
    return _said("repeats_by_id" if state.options.id else of_rows, state=state)


def _notes(state: WatchState) -> list[str]:
    """Return what all of this assumes, and what it buys."""
    drift = state.options.score and state.options.target
    told = {"assumed": True, "intervals": True, "compared": True, "drift": drift}
    return sentences_of(_PAGE, told, block=BLOCK)


def _unseen(state: WatchState) -> Iterator[str]:
    """Yield what no comparison is about: periods without rows, and groups that came later."""
    if skips := list(skipped([period.name for period in state.periods])):
        told = [f"'{first}' and '{last}' ({count(periods)})" for first, last, periods in skips]
        between = ", ".join(told[:5])
        more = f", and {count(len(skips) - 5)} more" if len(skips) > 5 else ""
        yield _said("skipped", between=between, more=more)
    if state.unwatched:
        rows = ", ".join(f"{name} ({count(n)} rows)" for name, n in state.unwatched.items())
        yield _said("unwatched", rows=rows)


def _gap_table(gaps: Sequence[Mapping[str, Any]], state: WatchState) -> model.Table:
    """Return the table of the gaps that are watched, with what is known of each so far."""
    epsilon = state.options.epsilon
    drawn = bars([(gap["lower"], gap["value"], gap["upper"]) for gap in gaps], epsilon)
    delays = {"found_in": "first", "from_now": "next", "if_changed": "change"}
    rows = []
    for gap, bar in zip(gaps, drawn, strict=True):
        cells = {"bar": bar, "shown": model.TableCell(gap["verdict"], mark=gap["verdict"])}
        rows.append({**gap, **cells, **{of: _rows(gap[kind]) for of, kind in delays.items()}})
    far = epsilon + BEYOND
    return named_table(_PAGE, "gaps", rows, epsilon=epsilon, far=far, beyond=BEYOND)


def _rows(rows: float) -> str:
    """Return a number of rows with two digits; beyond a million it is not told exactly."""
    if np.isinf(rows):
        return "never"
    return f"over {count(_FAR)}" if rows > _FAR else two_digits(rows)


def _history(gaps: Sequence[Mapping[str, Any]], state: WatchState) -> model.Gallery:
    """Return the charts of all gaps, those with an alarm first."""
    alarmed = {alarm.about for alarm in state.alarms}
    ordered = sorted((gap["gap"] for gap in gaps), key=lambda name: name not in alarmed)
    figures = [model.Figure(name, [_chart(name, state)]) for name in ordered]
    return model.Gallery(figures, _said("history", epsilon=state.options.epsilon))


def _chart(gap: str, state: WatchState) -> str:
    """Draw a gap and its interval at the marks, the bounds, and where alarms were given."""
    marks = [mark for mark in drawn(state.marks) if mark.limits[gap][0] is not None]
    value, lower, upper = np.array([mark.limits[gap] for mark in marks], float).reshape(-1, 3).T
    rows = [float(mark.row) for mark in marks]
    across, epsilon = [0.0, rows[-1] if rows else 1.0], state.options.epsilon
    series = [
        *(Series("", across, [y, y], GREY, dashed=1, marked=False) for y in (-epsilon, epsilon)),
        Series("", rows, value, BLUE, marked=False, band=np.array([value - lower, upper - value])),
    ]
    for alarm in state.alarms:
        if alarm.about == gap:
            place, said = [float(alarm.row)], sentences.sentence_of(_alarm_finding(alarm, state))
            height = np.interp(place, rows, value)
            series.append(Series("", place, height, ORANGE, shape=1, filled=True, hint=said))
    return chart([Panel(series, "rows", "gap", from_zero="x")])[0]


def _rate_table(rates: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> model.Table:
    """Return the table of each rate of every group, of all rows so far."""
    shown = [
        {**rate, "who": f"{rate['attribute']}: {rate['group']}", "rate": names[rate["metric"]]}
        for rate in rates
    ]
    return named_table(_PAGE, "rates", shown)


# Periods that are missing.

_NAMES = {
    "day": r"(\d{4})-(\d\d)-(\d\d)",
    "week": r"(\d{4})-W(\d\d)",
    "month": r"(\d{4})-(0[1-9]|1[0-2])",
    "quarter": r"(\d{4})-Q([1-4])",
}
_DIGITS = 15
_OF_YEAR = {"month": 12, "quarter": 4}


def skipped(names: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Yield the periods that are missing, as the names around them and how many they are.

    Names are compared that are numbered, or dates: ``week 7``, ``2024-W52``, ``2024-03``,
    ``2024-Q1``, ``2024``. Days are missing where more of them are than ever before, so that weeks
    without Sundays are whole.

    Parameters
    ----------
    names : the names of periods, in order.
    """
    usual = 1
    for first, last in pairwise(names):
        (kind, start), (other, stop) = _place(first), _place(last)
        if kind != other or stop - start <= (usual if kind == "day" else 1):
            continue
        yield first, last, stop - start - 1
        usual = stop - start


def _place(name: str) -> tuple[str, int]:
    """Return the kind of a period, and its number among all periods of that kind."""
    for unit, written in _NAMES.items():
        if match := re.fullmatch(written, name):
            year, *parts = map(int, match.groups())
            with suppress(ValueError):  # the 30th of February is a name as any other
                if unit == "day":
                    return unit, date(year, *parts).toordinal()
                if unit == "week":
                    return unit, date.fromisocalendar(year, parts[0], 1).toordinal() // 7
                return unit, year * _OF_YEAR[unit] + parts[0]
    *start, number, end = "", *re.split(r"(\d+)", name)
    # More digits than any number of a period has are a part of its name.
    return f"{''.join(start)}{number[:-_DIGITS]} {end}", int(number[-_DIGITS:] or 0)
