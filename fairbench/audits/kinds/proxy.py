"""What follows where nobody's group is known, only how probable each is for everyone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.columns import Place
from fairbench.audits.findings import GAP, NOT_MEASURED, ErrorBudget, Finding
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_NAMES, RATE_OF, TOO_FEW
from fairbench.audits.pages.parts import table_of
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.audits.unknown import (
    RATES,
    TITLE,
    BoundedGap,
    bounded_gap,
    columns_of,
    groups_measured,
    verdict_cell,
)
from fairbench.core.errors import UserError
from fairbench.core.formats import count
from fairbench.core.seeds import rng
from fairbench.data.tabular import numbers
from fairbench.inference.partial.ends import Ends
from fairbench.inference.partial.proxy import ProxyRows, alike
from fairbench.metrics.rates import Rate
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import Column, Section, Table

Floats = NDArray[np.float64]

PROXY = "proxy"  # what the groups are an attribute of
SCOPE = "whoever belongs to which group"
_SLACK = 0.02  # by which sums of rounded probabilities miss 1
_ROWS_OF_CELL = 50
_MOST_CELLS = 50
_FEWEST = 20  # rows of a rate that anything is said of


def audit_proxy(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit groups that are known through probabilities alone.

    Raises
    ------
    UserError : a probability that is none, or of a row that do not sum to 1.
    """
    table = read_audit_table(options, frame=frame)
    names, group = read_proxy(frame, options)
    people = dict(zip(names, group.sum(axis=0).tolist(), strict=True))
    fold = rng(options.seed, PROXY).integers(0, 2, len(table))
    rows = {rate.name: _rows(table, group, fold, rate) for rate in RATES}
    ends = {rate.name: _ends(rows[rate.name], rate) for rate in RATES}
    rates = pd.concat(_rate(rate, names, rows[rate.name], ends[rate.name]) for rate in RATES)
    risk = ErrorBudget(len(RATE_OF)).risk
    nothing = Finding(GAP, "", "", NOT_MEASURED, bound=options.epsilon, needs=TOO_FEW, scope=SCOPE)
    gaps = []
    for metric, rate in RATE_OF.items():
        compared = groups_measured(ends[rate.name])
        template = replace(nothing, measure=RATE_NAMES[metric])
        groups = [names[place] for place in compared]
        gaps.append(bounded_gap(template, groups, ends[rate.name].take(compared), risk))
    return Audit(
        options,
        len(table),
        len(table.known),
        [gap.finding for gap in gaps],
        list(_basis(table, people)),
        [Section(TITLE, [_gap_table(gaps, names), _rate_table(rates, names)])],
        {"groups": people, "gaps": [gap.row for gap in gaps]},
        notes=table.notes,
        todo=["Probabilities nearer to 0 and 1 would make bounds narrower."],
        figures=rates.to_dict("records"),
    )


def read_proxy(frame: pd.DataFrame, options: Options) -> tuple[list[str], Floats]:
    """Return the names of groups, and (n, G) the probability of each, which sum to 1.

    Of one column alone, the other group is everybody else.
    """
    file, names = options.path.name, list(options.proxy)
    group = np.stack([numbers(frame, name, file).to_numpy() for name in names], axis=1)
    for name, share in zip(names, group.T, strict=True):
        wrong = (share < 0) | (share > 1)
        Place(file, name).refuse(frame[name], wrong, "a probability between 0 and 1")
    if len(names) == 1:
        return [f"not {names[0]}", *names], np.hstack([1 - group, group])
    total = group.sum(axis=1)
    if (off := np.abs(total - 1) > _SLACK).any():
        row = int(np.flatnonzero(off)[0])
        raise UserError(
            f"{file}: columns '{names[0]}' to '{names[-1]}', row {row + 1}: the probabilities of "
            f"the {len(names)} groups sum to {total[row]:.3g}, not 1; name a column for every group"
        )
    return names, group / total[:, None]


def _rows(table: AuditTable, group: Floats, fold: NDArray[np.int64], rate: Rate) -> ProxyRows:
    """Return the rows that a rate is counted in: those with labels, where it needs them."""
    rows = np.arange(len(table)) if rate is RATE_OF[NEEDS_NO_LABELS] else table.known
    label = np.nan_to_num(table.label[rows]).astype(np.int64)
    most = int(np.clip(len(rows) // _ROWS_OF_CELL, 1, _MOST_CELLS))
    cell = 2 * label + table.prediction[rows]
    return ProxyRows(group[rows], cell, alike(group[rows], most=most), fold[rows])


def _ends(rows: ProxyRows, rate: Rate) -> Ends:
    if (np.array(rate.denominator) > 0)[rows.cell].sum() < _FEWEST:
        groups = rows.group.shape[1]
        return Ends(*np.full((2, groups), np.nan), *np.zeros((2, groups)))
    return rows.ends(rate)


def _rate(rate: Rate, names: Sequence[str], rows: ProxyRows, ends: Ends) -> pd.DataFrame:
    """Return what is measured of a rate, a row for each group."""
    return pd.DataFrame(
        {
            "metric": rate.name,
            "attribute": PROXY,
            "group": names,
            **columns_of(ends),
            "weighted": rows.weighted(rate),
            "n": rows.group.sum(axis=0).round().astype(int),
        }
    )


def _basis(table: AuditTable, people: dict[str, float]) -> Iterator[str]:
    sizes = ", ".join(f"{count(round(size))} of {name}" for name, size in people.items())
    yield (
        f"{count(len(table))} rows, {count(len(table.known))} of them with a label. Nobody's group "
        f"is known; by the probabilities there are about {sizes}."
    )
    yield (
        "Bounds hold whoever belongs to which group, as long as the probabilities are right: of "
        "people with a probability of 0.3, three in ten belong to the group."
    )


def _gap_table(gaps: Sequence[BoundedGap], names: Sequence[str]) -> Table:
    size = (
        f"{names[1]}'s rate minus that of {names[0]}"
        if len(names) == 2
        else "the largest difference between two groups"
    )
    return table_of(
        ({**gap.row, "verdict": verdict_cell(gap.verdict)} for gap in gaps),
        {
            "measure": Column("gap in"),
            ("lower", "upper"): Column("bounds", "interval"),
            "interval": Column("95 % interval", "interval"),
            "verdict": Column("verdict"),
        },
        by="",
        title="Gaps between groups",
        caption=(
            f"Gaps are {size}. Bounds: no number of rows makes them narrower. The interval holds "
            "them in 95 % of samples. cannot be known: both a small and a large gap are possible."
        ),
    )


def _rate_table(rates: pd.DataFrame, names: Sequence[str]) -> Table:
    by_group = rates.dropna(subset="lowest").sort_values(
        "group", key=lambda groups: groups.map(names.index), kind="stable"
    )
    return table_of(
        by_group.assign(metric=by_group["metric"].map(label)).to_dict("records"),
        {
            "group": Column("group"),
            "n": Column("people", "count"),
            "metric": Column("rate"),
            ("lowest", "highest"): Column("bounds", "interval"),
            ("lower", "upper"): Column("95 % interval", "interval"),
            "weighted": Column("weighted", "number"),
        },
        by="group",
        title="Rates by group",
        caption=(
            "weighted: the rate with everyone counted by their probability; it is right only if, "
            "among people of equal probabilities, labels and decisions do not depend on the group."
        ),
    )
