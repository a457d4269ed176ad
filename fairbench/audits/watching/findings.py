"""What a watch knows by now, and how late its alarms may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.findings import LARGE, OPEN, PASSED, SMALL, WATCHED, Finding
from fairbench.audits.watching.counting import (
    FALSE_ALARMS,
    Quantity,
    quantities,
    rate_parts,
    sums_now,
)
from fairbench.audits.watching.state import Alarm, WatchState
from fairbench.core.formats import count
from fairbench.inference.sequential.gaps import rows_until_apart
from fairbench.inference.sequential.means import Sums, labels_until_above, rate_sequence
from fairbench.inference.sequential.restarts import log_evidence_needed

BEYOND = 0.05  # how far beyond the limit a gap or scores are in statements on delays of alarms
NEVER = float("inf")


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
    limits = state.marks[-1].limits
    sums = sums_now(state)
    passed = {alarm.about for alarm in state.alarms if alarm.kind == PASSED}
    table_rows = []
    for gap in gaps:
        value, lower, upper = (np.nan if limit is None else limit for limit in limits[gap.name])
        small = SMALL if -epsilon < lower and upper < epsilon else OPEN
        verdict = LARGE if gap.name in passed else small
        which = {"gap": gap.name, "attribute": gap.attribute, "metric": gap.metric}
        now = {"value": value, "lower": lower, "upper": upper, "verdict": verdict}
        delays = _delays(gap, gap.of(sums[gap.attribute]), (lower, upper), state)
        table_rows.append(which | now | delays)
    return table_rows


def _delays(
    gap: Quantity, counts: NDArray[np.float64], limits: tuple[float, float], state: WatchState
) -> dict[str, float]:
    """Return the rows until each of a gap's alarms; never where a group has no rows yet.

    Parameters
    ----------
    counts : (2, 2) the rows and the successes of both groups.
    limits : both ends of the gap's interval so far.
    """
    n_rows, successes = counts.T
    if not n_rows.all():
        return dict.fromkeys(("first", "next", "change"), NEVER)
    epsilon = state.options.epsilon
    n_marks = len(state.marks)
    first, second = successes / n_rows
    rows_in_file_per_row = state.marks[-1].row / n_rows.sum()
    # A gap that grows is found sooner. Seen from the other group, the upper end is the lower one.
    limit = limits[1] if second >= first else -limits[0]

    def until(distance: float, bound: float, restart: int) -> float:
        """Return the rows until rates at this distance are surely further apart than a bound."""
        lower_rate = min(first, second)
        share = n_rows[0] / n_rows.sum()
        reach = log_evidence_needed(gap.risk, restart)
        rows = rows_until_apart(lower_rate, distance, share, bound, reach)
        return float(rows_in_file_per_row * rows)

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
    alarms = [alarm_finding(alarm, state) for alarm in state.alarms]
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


def alarm_finding(alarm: Alarm, state: WatchState) -> Finding:
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


def rates_now(state: WatchState) -> Iterator[dict[str, Any]]:
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


def scores_now(state: WatchState) -> Iterator[dict[str, Any]]:
    """Yield how far labels are from every group's scores, and the rows until a ``drift`` by 0.05.

    ``value`` is the mean of ``labels`` less their scores, with ``lower`` and ``upper``.
    """
    now = sums_now(state)
    marks = state.marks
    for scores in quantities(state)[1]:
        (sums,) = scores.of(now[scores.attribute])
        drift = NEVER
        value, lower, upper = map(float, Sums(*sums).limits(log_evidence_needed(scores.risk)))
        size, _, squares = sums.tolist()
        if size:
            reach = float(log_evidence_needed(scores.risk, len(marks)))
            labels = labels_until_above(value + BEYOND, squares / size, upper, reach)
            drift = labels * marks[-1].row / size
        which = {"scores": scores.name, "attribute": scores.attribute, "labels": size}
        yield {**which, "value": value, "lower": lower, "upper": upper, "drift": drift}
