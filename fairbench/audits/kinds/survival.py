"""The audit of times until an event, of which some are censored: whose risks are ordered worse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy import special, stats

from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.core.arrays import Codes, Floats, Mask
from fairbench.core.errors import UserError
from fairbench.core.text import count
from fairbench.data.columns import ColumnRef, marks_of, numbers_of, scores_of
from fairbench.data.groups import codes_of, notes_on_groups, read_groups
from fairbench.evaluation.findings import (
    GAP,
    LEVEL,
    NOT_MEASURED,
    ErrorBudget,
    Finding,
    Measure,
)
from fairbench.inference.gaps import GroupLimits, simultaneous_level
from fairbench.inference.means import Moments, loss_limits
from fairbench.inference.rates import Limits, quantile
from fairbench.reporting.document.model import Column, Section, Table

LimitsAt: TypeAlias = Callable[[float], GroupLimits]
CONCORDANCE, BRIER = "concordance", "Brier score at the horizon"
FEWEST_EVENTS = 20  # of a group whose concordance has an interval
_FEW = "there are too few rows or events of all but one of them"
_BLOCK = 1000  # rows that are compared with all others at once


class Survival(NamedTuple):
    """Times until an event or the end of observation, and predicted risks of the event.

    Attributes
    ----------
    time : (n,) the time of the event, or until which the row was observed.
    risk : (n,) the predicted risk.
    event : (n,) whether the event was seen; otherwise the row is censored at its time.
    """

    time: Floats
    event: Mask
    risk: Floats


def concordance(rows: Survival) -> tuple[float, float]:
    """Return Harrell's concordance of risks with times, and its standard error.

    It is the share of comparable pairs, those whose earlier time is that of an event, of which the
    earlier has the higher risk; equal risks count half (Harrell, Lee and Mark 1996). The standard
    error is that of the infinitesimal jackknife: each row's part in the pairs that it is in.

    Notes
    -----
    Let p_i be the number of comparable pairs that row i is in, and w_i the number of them that are
    in the right order. With P = sum p_i / 2 pairs, the concordance is C = sum w_i / 2 / P, and its
    standard error sqrt(sum (w_i - C p_i)^2) / P.
    """
    right = np.zeros(len(rows.time))  # w_i
    pairs = np.zeros(len(rows.time))  # p_i
    for start in range(0, len(rows.time), _BLOCK):
        block = slice(start, start + _BLOCK)
        time, event, risk = (column[block, None] for column in rows)
        later = (rows.time > time) | ((rows.time == time) & ~rows.event)
        comparable = event & later
        wins = comparable * ((risk > rows.risk) + 0.5 * (risk == rows.risk))
        for total, counted in ((right, wins), (pairs, comparable)):
            total[block] += counted.sum(axis=1)
            total += counted.sum(axis=0)
    n_pairs = pairs.sum() / 2
    if not n_pairs:
        return float("nan"), float("nan")
    share = float(right.sum() / 2 / n_pairs)
    return share, float(np.sqrt(((right - share * pairs) ** 2).sum()) / n_pairs)


def brier_losses(rows: Survival, horizon: float) -> Floats:
    """Return each row's part (n,) in the Brier score of the risk of an event by a horizon.

    Rows that are censored before it count through those that were observed as long, by the inverse
    probability of not being censored (Graf et al. 1999). NaN where no row is observed that long.
    """
    event = rows.event & (rows.time <= horizon)
    control = rows.time > horizon
    observed = uncensored(rows, np.minimum(rows.time, horizon))
    with np.errstate(invalid="ignore", divide="ignore"):
        losses: Floats = np.where(event | control, (event - rows.risk) ** 2 / observed, 0.0)
    return losses


def uncensored(rows: Survival, times: Floats) -> Floats:
    """Return the probability of not being censored up to times (k,), by Kaplan and Meier.

    At equal times events come first.
    """
    if rows.event.all():
        return np.ones(len(times))
    events = np.nextafter(rows.time[rows.event], -np.inf)
    sample = stats.CensoredData(rows.time[~rows.event], right=events)
    return np.asarray(stats.ecdf(sample).sf.evaluate(times), float)


def audit_survival(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit predicted risks of an event by group.

    Raises
    ------
    UserError : if a time is under 0, a risk is no probability, or no horizon is given.
    """
    if not options.horizon:
        raise UserError("event= needs horizon=: by which time the score is the risk of an event")
    file = options.path.name
    time_column = ColumnRef(file, options.target)
    time = numbers_of(frame, time_column)
    time_column.refuse(frame[options.target], time < 0, "a time of 0 or more")
    event = marks_of(frame[options.event], ColumnRef(file, options.event))
    rows = Survival(time, event, scores_of(frame, ColumnRef(file, options.score)))
    groups = read_groups(frame, file, options.group, options.reference)[0]
    risk = ErrorBudget(2 * len(groups)).risk
    findings: list[Finding] = []
    measured: list[pd.DataFrame] = []
    for attribute, labels in groups.items():
        codes, names = codes_of(labels)
        for name, at in _measures(rows, codes, len(names), options.horizon).items():
            asked = Finding(GAP, attribute, name, NOT_MEASURED, n=len(time), needs=_FEW)
            measure = Measure.of_limits(replace(asked, bound=options.epsilon), names, at)
            findings += measure.answered(risk).conclude()
            about = {"metric": name, "attribute": attribute, "group": names}
            limits = at(LEVEL).pointwise._asdict()
            measured.append(pd.DataFrame({**about, **limits, "n": np.bincount(codes)}))
    figures = pd.concat(measured).to_dict("records")
    return Audit(
        options,
        len(time),
        len(time),
        findings,
        [
            f"{count(len(time))} rows, of which {count(rows.event.sum())} had the event; the "
            "others were observed up to their time, and are censored there.",
            "This assumes that who is censored when does not depend, within a group, on the risk.",
        ],
        [Section("By group", [_table(figures)])],
        {},
        notes=notes_on_groups(frame, options.group),
        figures=figures,
    )


def _measures(rows: Survival, codes: Codes, groups: int, horizon: float) -> Mapping[str, LimitsAt]:
    """Return measure -> the function of a level that makes the limits of its groups."""
    by_group = [Survival(*(column[codes == group] for column in rows)) for group in range(groups)]
    shares, errors = np.transpose([concordance(of_group) for of_group in by_group])
    errors[[of_group.event.sum() < FEWEST_EVENTS for of_group in by_group]] = np.nan
    losses = np.empty(len(codes))
    for group, of_group in enumerate(by_group):
        losses[codes == group] = brier_losses(of_group, horizon)
    moments = Moments.of_groups(losses, codes, groups)

    def concordance_limits(level: float) -> Limits:
        """Return the concordances with intervals that are symmetric on the scale of log odds."""
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = quantile(level) * errors / (shares * (1 - shares))
            limits = (special.expit(special.logit(shares) + side * reach) for side in (-1, 1))
            return Limits(shares, *(np.where(np.isfinite(reach), end, np.nan) for end in limits))

    def brier_limits(level: float) -> Limits:
        return loss_limits(moments, level=level, least=0.0)

    def single_and_joint(make: Callable[[float], Limits]) -> LimitsAt:
        """Return a function of a level that makes limits by group, and for all groups together."""
        return lambda level: GroupLimits(make(level), make(simultaneous_level(level, groups)))

    return {
        CONCORDANCE: single_and_joint(concordance_limits),
        BRIER: single_and_joint(brier_limits),
    }


def _table(figures: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of each group's concordance and Brier score."""
    columns = [Column("measure"), Column("of"), Column("group"), Column("rows", "count")]
    columns += [Column("value", "number"), Column("95 % interval", "interval")]
    keys = ("metric", "attribute", "group", "n", "value")
    rows = [[*(row[key] for key in keys), (row["lower"], row["upper"])] for row in figures]
    caption = (
        "concordance: of two people of a group, how often the one with the earlier event has the "
        "higher score; Brier score: the mean squared distance of scores from who had the event by "
        "the horizon"
    )
    return Table(columns, rows, caption=caption)
