"""Watch predictions as they come: an alarm when a gap has grown, without crying wolf.

Give the same command after each batch of rows, such as by cron: on a file that grows, or on a new
file each week that has a column of periods (time=). Rows that were seen must be there unchanged and
first; labels that were empty may come later, and are counted then. A person or decision that comes
again is counted once: name the column that identifies it (id=). No matter how often you look, at
most one watch in twenty ever gives a false alarm, all gaps and scores together.
The exit status is 0 without an alarm, 1 once there was one, 2 where the file is not what was
watched; then nothing is changed. An alarm stays until another state is started.
With conditions on gaps (fail_if='statistical_parity>0.1') the last line is a verdict, which holds
no matter how often you look, and the status without an alarm is that of the verdict: 0 passes, 1
fails, 3 is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fairbench.audits.question import Gating
from fairbench.cli.command import EXPORTED, Asked, Command, Page, Results, check_predictions
from fairbench.cli.verbs import audit
from fairbench.core.options import option
from fairbench.core.text import count
from fairbench.evaluation import gate as gates
from fairbench.evaluation.gate import Condition, Statement, by_attribute
from fairbench.reporting.document.writing import check_forms
from fairbench_watch.alarms import WatchFile, look, quantities
from fairbench_watch.state import WatchOptions, WatchState, refusal

MADE_FOR = "0.1"

ALARM = 1


@dataclass(frozen=True)
class _State:
    """Where the state is.

    Attributes
    ----------
    state : The file in which everything is kept.
    """

    state: str = option("", shown="FILE.json", main=True)


def watch(options: Asked) -> int:
    """Look at the file, keep what was found, print and write it; return the exit status."""
    from fairbench_watch.page import watch_document

    check_forms(options.formats)
    options = audit.with_policy(options, _WatchGate)
    audit.check_asked(options)
    conditions = gates.conditions_of(options.fail_if, options.require)
    if not options.state:
        raise refusal("no_state_named")
    file = WatchFile(Path(options.state))
    if not file.exists() and options.path == Path():
        raise refusal("no_state", path=file.path)
    if options.path != Path():
        check_predictions(options.path, EXPORTED)
    if conditions:
        kept = file.read().options if file.exists() else options.taken_as(WatchOptions)
        _check_watched(conditions, kept)
    before, state = look(file, options, options.given)
    beside = options.results / "report" / f"watch-{file.path.stem}"
    folder = Path(options.out or beside)
    document = watch_document(state, before)
    more = f"; state: {options.state}"
    audit.print_and_write(document, lambda: folder, "watch", options.formats, more=more)
    if not conditions:
        return ALARM if state.alarms else 0
    # It costs no more of the error rate: the intervals of all gaps hold together, at every look.
    attributes = list(state.groups)
    single = by_attribute(conditions, attributes, attributes)
    gate = gates.Gate(tuple(_statement(one, state) for one in single), options.require)
    status = audit.settle(gate, options, state.options.path)
    return ALARM if state.alarms else status


COMMAND = Command(
    (_State, WatchOptions, Gating, audit.GateFiles, Page, Results),
    watch,
    examples=(
        "fairbench watch loans.csv target=repaid score=score 'group=[sex,race]' state=watch.json",
        "fairbench watch week-7.csv target=repaid score=score group=sex time=week state=watch.json",
        "fairbench watch state=watch.json",
        "fairbench watch state=watch.json 'fail_if=sex:statistical_parity>0.1'",
    ),
)


# The verdict of a gate on a watch: by the intervals that hold at every look together.


@dataclass(frozen=True)
class _WatchGate(Gating, WatchOptions):
    """What a policy may say of a watch."""


def _check_watched(conditions: Sequence[Condition], options: WatchOptions) -> None:
    """Refuse conditions that no look could judge, before there is one.

    Raises
    ------
    UserError : a condition on something that is not watched.
    """
    for condition in by_attribute(conditions, options.group, options.group):
        if condition.metric not in options.watched:
            watched = ", ".join(options.watched)
            raise refusal("not_watched", condition=condition, watched=watched)


def _statement(condition: Condition, state: WatchState) -> Statement:
    """Return what is known so far of the widest gap that a condition is about."""
    attribute, about = condition.attribute, (condition.attribute, condition.metric)
    gaps = [gap for gap in quantities(state)[0] if (gap.attribute, gap.metric) == about]
    limits = [state.marks[-1].limits[gap.name] for gap in gaps] if state.marks else []
    estimates = np.array(limits, float).reshape(-1, 3)  # None becomes NaN
    whose = f"{attribute}: "
    unwatched = {name: rows for name, rows in state.unwatched.items() if name.startswith(whose)}
    if np.isnan(estimates[:, 0]).all():
        no_values = (float("nan"),) * 3
        return condition.statement(no_values, n=state.rows, needs="no gap has a value yet")
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
    estimate = float(abs(value[widest])), lower, upper
    return condition.statement(estimate, groups=tuple(groups), n=state.rows, needs=needs)
