"""The verdict of a gate on a watch: by the intervals that hold at every look together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairbench.audits.gate.options import Gating
from fairbench.audits.watching.counting import quantities
from fairbench.audits.watching.state import WatchOptions, WatchState
from fairbench.core.errors import UserError
from fairbench.core.formats import count
from fairbench.evaluation.conditions import VERDICT, Condition, by_attribute, check_gate
from fairbench.evaluation.gate import Gate, Statement, statement_of


@dataclass(frozen=True)
class WatchGate(Gating, WatchOptions):
    """What a policy may say of a watch."""


def gate_of_watch(
    state: WatchState, conditions: Sequence[Condition], require: str = VERDICT
) -> Gate:
    """Return the statements on conditions about the gaps of all rows so far.

    It costs no more of the error rate: the intervals of all gaps hold together, at every look.
    """
    single = by_attribute(conditions, list(state.groups), list(state.groups))
    return Gate(tuple(_statement(condition, state) for condition in single), require)


def check_watched(conditions: Sequence[Condition], options: WatchOptions, require: str) -> None:
    """Refuse conditions that no look could judge, before there is one.

    Raises
    ------
    UserError : a condition on something that is not watched.
    """
    check_gate(require)
    for condition in by_attribute(conditions, options.group, options.group):
        if condition.metric not in options.watched:
            raise UserError(
                f"fail_if={condition}: {condition.metric} is not watched, but "
                f"{', '.join(options.watched)}"
            )


def _statement(condition: Condition, state: WatchState) -> Statement:
    """Return what is known so far of the widest gap that a condition is about."""
    attribute = condition.attribute
    metric = condition.metric
    gaps = [
        gap for gap in quantities(state)[0] if (gap.attribute, gap.metric) == (attribute, metric)
    ]
    limits = [state.marks[-1].limits[gap.name] for gap in gaps] if state.marks else []
    estimates = np.array(
        [[np.nan if number is None else number for number in of_gap] for of_gap in limits]
    ).reshape(-1, 3)
    unwatched = {
        name: rows for name, rows in state.unwatched.items() if name.startswith(f"{attribute}: ")
    }
    if np.isnan(estimates[:, 0]).all():
        no_values = (float("nan"),) * 3
        return statement_of(condition, no_values, n=state.rows, needs="no gap has a value yet")
    value, low, high = estimates.T
    widest = int(np.nanargmax(np.abs(value)))
    lower = float(np.nanmax([np.zeros_like(low), low, -high]))
    upper = float(np.maximum(np.abs(low), np.abs(high)).max())
    if unwatched or np.isnan(upper):  # a gap to a group that is not watched may have any size
        upper = 1.0
    needs = ""
    if unwatched:
        listed = ", ".join(f"{name} ({count(rows)} rows)" for name, rows in unwatched.items())
        needs = f"came after the first look, and are not watched: {listed}"
    names = state.groups[attribute]
    groups = [names[index] for index in gaps[widest].groups]
    if value[widest] < 0:
        groups.reverse()
    return statement_of(
        condition,
        (float(abs(value[widest])), lower, upper),
        groups=tuple(groups),
        n=state.rows,
        needs=needs,
    )
