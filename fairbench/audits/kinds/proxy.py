"""What follows where nobody's group is known, only how probable each is for everyone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import Place
from fairbench.audits.findings import NOT_MEASURED, ErrorBudget, Finding
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_NAMES, RATE_OF, Bounds
from fairbench.audits.kinds.selected import (
    RATES,
    TITLE,
    BoundedGap,
    BoundedRate,
    ahead,
    both_ends,
    bounded_findings,
    verdict_cell,
    verdict_of,
)
from fairbench.audits.pages.parts import starts
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.core.errors import UserError
from fairbench.core.formats import count
from fairbench.core.seeds import rng
from fairbench.data.tabular import numbers
from fairbench.inference.partial.ends import Ends, GapBounds, gap_bounds
from fairbench.inference.partial.proxy import ProxyRows, alike
from fairbench.metrics.rates import Rate
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import Column, Section, Table

Floats = NDArray[np.float64]

PROXY = "proxy"  # what the groups are an attribute of
_SLACK = 0.02  # by which sums of rounded probabilities miss 1
_ROWS_OF_CELL = 50
_MOST_CELLS = 50
_FEWEST = 20  # rows of a rate that anything is said of


SCOPE = "whoever belongs to which group"


@dataclass(frozen=True, eq=False)
class ProxyAudit:
    """What can be said of groups from probabilities of them.

    Attributes
    ----------
    names : of the groups. people : of how many people each is, by the probabilities.
    """

    options: Options
    table: AuditTable
    names: Sequence[str]
    people: Sequence[float]
    rates: Sequence[BoundedRate]
    gaps: Sequence[BoundedGap]


def assess_proxy(options: Options, frame: pd.DataFrame) -> ProxyAudit:
    """Return bounds of every rate and gap of groups that `options.proxy` has probabilities of.

    Raises
    ------
    UserError : a probability that is none, or of a row that do not sum to 1.
    """
    table = read_audit_table(options, frame=frame)
    names, group = read_proxy(frame, options)
    everyone = np.arange(len(table))
    fold = rng(options.seed, PROXY).integers(0, 2, len(table))
    rows = {rate.name: _rows(table, group, fold, _of(rate, table, everyone)) for rate in RATES}
    ends = {rate.name: _ends(rows[rate.name], rate, len(names)) for rate in RATES}
    bounds = Bounds(options.epsilon, 1, ErrorBudget(len(RATE_OF)))
    return ProxyAudit(
        options,
        table,
        names,
        group.sum(axis=0).tolist(),
        list(_rates(names, group, rows, ends)),
        [_gap(metric, names, ends[RATE_OF[metric].name], bounds) for metric in RATE_OF],
    )


def findings_of(audit: ProxyAudit) -> list[Finding]:
    """Return what bounds of the gaps say, whoever belongs to which group."""
    return bounded_findings(audit.gaps, audit.options.epsilon, SCOPE, attribute="")


def read_proxy(frame: pd.DataFrame, options: Options) -> tuple[list[str], Floats]:
    """Return the names of groups, and (n, G) the probability of each, which sum to 1.

    Of one column alone, the other group is everybody else.
    """
    file = options.path.name
    columns = []
    for name in options.proxy:
        share = numbers(frame, name, file).to_numpy()
        wrong = (share < 0) | (share > 1)
        Place(file, name).refuse(frame[name], wrong, "a probability between 0 and 1")
        columns.append(share)
    if len(columns) == 1:
        return [f"not {options.proxy[0]}", options.proxy[0]], np.stack(
            [1 - columns[0], columns[0]], axis=1
        )
    group = np.stack(columns, axis=1)
    total = group.sum(axis=1)
    if (off := np.abs(total - 1) > _SLACK).any():
        row = int(np.flatnonzero(off)[0])
        raise UserError(
            f"{file}: columns '{options.proxy[0]}' to '{options.proxy[-1]}', row {row + 1}: the "
            f"probabilities of the {len(columns)} groups sum to {total[row]:.3g}, not 1; name a "
            "column for every group"
        )
    return list(options.proxy), group / total[:, None]


def _of(rate: Rate, table: AuditTable, everyone: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows that a rate is counted in: those with labels, where it needs them."""
    return everyone if rate is RATE_OF[NEEDS_NO_LABELS] else table.known


def _rows(
    table: AuditTable, group: Floats, fold: NDArray[np.int64], rows: NDArray[np.int64]
) -> ProxyRows:
    label = np.nan_to_num(table.label[rows]).astype(np.int64)
    most = int(np.clip(len(rows) // _ROWS_OF_CELL, 1, _MOST_CELLS))
    return ProxyRows(
        group[rows], 2 * label + table.prediction[rows], alike(group[rows], most=most), fold[rows]
    )


def _ends(rows: ProxyRows, rate: Rate, groups: int) -> Ends:
    whole = np.array(rate.denominator) > 0
    if whole[rows.cell].sum() < _FEWEST:
        nothing = np.full(groups, np.nan)
        return Ends(nothing, nothing, np.zeros(groups), np.zeros(groups))
    return rows.ends(rate)


def _rates(
    names: Sequence[str], group: Floats, rows: dict[str, ProxyRows], ends: dict[str, Ends]
) -> Iterator[BoundedRate]:
    for rate in RATES:
        mine = rows[rate.name]
        weighted = mine.weighted(rate)
        people = mine.group.sum(axis=0)
        for g, name in enumerate(names):
            found = ends[rate.name]
            point = float(weighted[g]), float(weighted[g])
            yield BoundedRate(
                PROXY, name, rate.name, round(people[g]), 0, *both_ends(found, g), point
            )


def _gap(metric: str, names: Sequence[str], ends: Ends, bounds: Bounds) -> BoundedGap:
    compared = np.flatnonzero(~np.isnan(ends.lower + ends.upper)).tolist()
    groups = [names[g] for g in compared]
    if len(compared) < 2:
        nothing = GapBounds(np.nan, np.nan, (np.nan, np.nan), np.nan, np.nan)
        return BoundedGap(PROXY, metric, groups, nothing, NOT_MEASURED)
    found = gap_bounds(ends.take(compared), risk=bounds.risk)
    low, high = ahead(ends.take(compared))
    verdict = verdict_of(found, bounds.epsilon)
    return BoundedGap(PROXY, metric, groups, found, verdict, groups[low], groups[high])


def audit_proxy(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit groups that are known through probabilities alone."""
    audit = assess_proxy(options, frame)
    return Audit(
        options,
        len(audit.table),
        len(audit.table.known),
        findings_of(audit),
        list(_basis(audit)),
        [Section(TITLE, [_gaps(audit), _rates_table(audit)])],
        _data(audit),
        notes=audit.table.notes,
        figures=[
            {
                "metric": rate.rate,
                "attribute": PROXY,
                "group": rate.group,
                "lowest": rate.bounds[0],
                "highest": rate.bounds[1],
                "lower": rate.interval[0],
                "upper": rate.interval[1],
                "n": rate.rows,
            }
            for rate in audit.rates
        ],
        todo=["Probabilities nearer to 0 and 1 would make bounds narrower."],
    )


def _basis(audit: ProxyAudit) -> Iterator[str]:
    labels = len(audit.table.known)
    people = ", ".join(
        f"{count(round(size))} of {name}"
        for name, size in zip(audit.names, audit.people, strict=True)
    )
    yield (
        f"{count(len(audit.table))} rows, {count(labels)} of them with a label. Nobody's group is "
        f"known; by the probabilities there are about {people}."
    )
    yield (
        "Bounds hold whoever belongs to which group, as long as the probabilities are right: of "
        "people with a probability of 0.3, three in ten belong to the group."
    )


def _gaps(audit: ProxyAudit) -> Table:
    columns = [
        Column("gap in"),
        Column("bounds", "interval"),
        Column("95 % interval", "interval"),
        Column("verdict"),
    ]
    rows = [
        [
            RATE_NAMES[gap.metric],
            (gap.bounds.lower, gap.bounds.upper),
            gap.bounds.interval,
            verdict_cell(gap.verdict),
        ]
        for gap in audit.gaps
    ]
    size = (
        f"{audit.names[1]}'s rate minus that of {audit.names[0]}"
        if len(audit.names) == 2
        else "the largest difference between two groups"
    )
    return Table(
        columns,
        rows,
        title="Gaps between groups",
        caption=(
            f"Gaps are {size}. Bounds: no number of rows makes them narrower. The interval holds "
            "them in 95 % of samples. cannot be known: both a small and a large gap are possible."
        ),
    )


def _rates_table(audit: ProxyAudit) -> Table:
    columns = [
        Column("group"),
        Column("people", "count"),
        Column("rate"),
        Column("bounds", "interval"),
        Column("95 % interval", "interval"),
        Column("weighted", "number"),
    ]
    rows = [
        [
            each.group,
            each.rows,
            label(each.rate),
            each.bounds,
            each.interval,
            None if each.assumed is None else each.assumed[0],
        ]
        for each in sorted(audit.rates, key=lambda each: audit.names.index(each.group))
        if not isnan(each.bounds[0])
    ]
    return Table(
        columns,
        rows,
        title="Rates by group",
        caption=(
            "weighted: the rate with everyone counted by their probability; it is right only if, "
            "among people of equal probabilities, labels and decisions do not depend on the group."
        ),
        rules=starts([str(row[0]) for row in rows]),
    )


def _data(audit: ProxyAudit) -> Mapping[str, Any]:
    return {
        "groups": dict(zip(audit.names, audit.people, strict=True)),
        "gaps": [_without_assumption(asdict(gap)) for gap in audit.gaps],
        "rates": [
            {**_without_assumption(asdict(rate)), "weighted": (rate.assumed or (None,))[0]}
            for rate in audit.rates
        ],
    }


def _without_assumption(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of groups known through probabilities."""
    left_out = ("assumed", "assumed_interval", "assumed_verdict", "factor", "factor_verdict")
    return {name: each for name, each in values.items() if name not in (*left_out, "others")}
