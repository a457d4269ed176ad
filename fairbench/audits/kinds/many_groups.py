"""An audit of so many groups that they are estimated together, and not compared pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.findings import (
    GAP,
    LARGE,
    NOT_MEASURED,
    PAIR,
    SMALL,
    UNLIKE,
    ErrorBudget,
    Finding,
)
from fairbench.audits.findings import OPEN as IS_OPEN
from fairbench.audits.gaps import TOO_FEW
from fairbench.audits.pages.parts import bars
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.table import AuditTable
from fairbench.core.formats import count, csv_text
from fairbench.core.seeds import rng
from fairbench.evaluation.many_groups import DRAWS, EXCEPTIONAL, SHOWN, parts_of
from fairbench.inference.flags import adjusted, differs_from_rest
from fairbench.inference.gaps import GroupLimits, surest_gap
from fairbench.inference.pooled import Pooled, pool_rates
from fairbench.inference.rates import Limits, rate_limits
from fairbench.metrics.rates import selection_rate, shares_of
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import Block, Column, Paragraph, Section, Table

Floats = NDArray[np.float64]

CERTAIN = 0.95
FALSE_DISCOVERIES = 0.1  # share of the groups called unlike everyone else that may not be
FEWEST_ROWS = 10  # of a group that gaps are taken between
WITHIN, BEYOND, OPEN = "within", "beyond", "open"
_MOST, _MOST_PRINTED, _MOST_UNKNOWN = 40, 16, 10
TABLE = "groups.csv"


@dataclass(frozen=True, eq=False)
class RateOfGroups:
    """One rate in all groups.

    Attributes
    ----------
    successes, sizes : (G,) counts; a group may have no rows that the rate is of.
    overall : the rate of everyone.
    pooled : the posterior of all groups together.
    unlike : (G,) the p-value of an exact test that a group has the rate of everyone else.
    adjusted : (G,) the false discovery rate at which a group would be called unlike everyone else.
    gap : the largest difference between two groups of `FEWEST_ROWS`; all pairs hold together.
    low, high : the two groups that are most surely apart, by position.
    """

    name: str
    successes: Floats
    sizes: Floats
    overall: Limits
    pooled: Pooled
    unlike: Floats
    adjusted: Floats
    gap: Limits
    low: int
    high: int

    @property
    def label(self) -> str:
        """What the rate is called."""
        return label(self.name)

    def within(self, epsilon: float) -> Floats:
        """Return the probability (G,) of each group that it is under `epsilon` from everyone."""
        draws = self.pooled.draws
        everyone = draws @ self.sizes / self.sizes.sum()
        near: Floats = (np.abs(draws - everyone[:, None]) < epsilon).mean(axis=0)
        return near


@dataclass(frozen=True, eq=False)
class ManyGroups:
    """The audit of many groups.

    Attributes
    ----------
    attribute, groups : names; those of combinations join the names of their parts.
    rows : (G,) rows of each group.
    """

    options: Options
    table: AuditTable
    attribute: str
    groups: Sequence[str]
    rows: NDArray[np.int64]
    rates: Sequence[RateOfGroups]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each rate and group: counts, own rate, pooled estimate, and what is sure."""
        return pd.concat([self._of(rate) for rate in self.rates], ignore_index=True)

    def _of(self, rate: RateOfGroups) -> pd.DataFrame:
        raw = rate_limits(rate.successes, rate.sizes)
        lower, upper = rate.pooled.interval()
        within = rate.within(self.options.epsilon)
        verdict = np.select([within >= CERTAIN, within <= 1 - CERTAIN], [WITHIN, BEYOND], OPEN)
        return pd.DataFrame(
            {
                "rate": rate.name,
                "group": self.groups,
                "rows": rate.sizes.astype(int),
                "raw": raw.value,
                "raw_lower": raw.lower,
                "raw_upper": raw.upper,
                "pooled": rate.pooled.mean,
                "lower": lower,
                "upper": upper,
                "everyone": float(rate.overall.value),
                "within_epsilon": within,
                "verdict": verdict,
                "adjusted": rate.adjusted,
                "unlike_everyone": rate.adjusted <= FALSE_DISCOVERIES,
                "exception": adjusted(rate.pooled.surprise) < EXCEPTIONAL,
            }
        )

    @cached_property
    def unlike(self) -> pd.DataFrame:
        """The rows of groups that are unlike everyone else, the surest first."""
        found = self.frame[self.frame["unlike_everyone"]]
        nearer = -(found["pooled"] - found["everyone"]).abs()
        return found.iloc[np.lexsort([nearer, found["adjusted"]])]

    @property
    def least_known(self) -> pd.DataFrame:
        """All rows, those of the widest pooled intervals first."""
        narrower = self.frame["lower"] - self.frame["upper"]
        return self.frame.iloc[np.argsort(narrower, kind="stable")]


def assess_many(table: AuditTable, options: Options) -> ManyGroups:
    """Assess a table of many groups.

    The selection rate is of all rows. Rates that need labels are of the rows that have one.

    """
    attribute, cells = " x ".join(options.group), table.cells.cat.remove_unused_categories()
    codes, groups = cells.cat.codes.to_numpy(np.int64), list(map(str, cells.cat.categories))
    names, successes, sizes = _counts(table, codes, len(groups))
    posteriors = pool_rates(
        successes[:, None],
        sizes[:, None],
        [rng(options.seed, "posterior")],
        attributes=parts_of(attribute, groups),
        draws=DRAWS,
    )
    pooled = [posteriors.take(r).take(0) for r in range(len(names))]
    unlike = differs_from_rest(successes, sizes)
    rate_of_discoveries = adjusted(unlike, overlapping=True)
    columns = (names, successes, sizes, pooled, unlike, rate_of_discoveries)
    rates = [_rate(*each) for each in zip(*columns, strict=True)]
    rows = np.bincount(codes, minlength=len(groups))
    return ManyGroups(options, table, attribute, groups, rows, rates)


def _counts(
    table: AuditTable, codes: NDArray[np.int64], n_groups: int
) -> tuple[list[str], Floats, Floats]:
    """Return the names of the rates, and their counts (R, G); without labels, of decisions."""
    rows = np.bincount(codes, minlength=n_groups).astype(np.float64)
    selected = np.bincount(codes, table.prediction, n_groups).astype(np.float64)
    known = table.known
    if not len(known):
        return [selection_rate.name], selected[None], rows[None]
    outcome = 2 * table.label[known].astype(np.int64) + table.prediction[known]
    counts = np.bincount(4 * codes[known] + outcome, minlength=4 * n_groups)
    successes, sizes = shares_of(list(SHOWN), counts.reshape(n_groups, 4))
    at = list(SHOWN).index(selection_rate)
    successes[at], sizes[at] = selected, rows
    some = sizes.sum(axis=1) > 0
    names = [rate.name for rate, has in zip(SHOWN, some, strict=True) if has]
    return names, successes[some], sizes[some]


def _rate(
    name: str,
    successes: Floats,
    sizes: Floats,
    pooled: Pooled,
    unlike: Floats,
    rate_of_discoveries: Floats,
) -> RateOfGroups:
    gap, low, high = _surest_gap(successes, sizes)
    overall = rate_limits(successes.sum(), sizes.sum())
    return RateOfGroups(
        name, successes, sizes, overall, pooled, unlike, rate_of_discoveries, gap, low, high
    )


def _surest_gap(successes: Floats, sizes: Floats, level: float = 0.95) -> tuple[Limits, int, int]:
    """Return the largest gap between groups of enough rows, and the two most surely apart."""
    enough = np.flatnonzero(sizes >= FEWEST_ROWS)
    if len(enough) < 2:
        nan = np.asarray(np.nan)
        return Limits(nan, nan, nan), -1, -1
    limits = GroupLimits.of(successes[enough], sizes[enough], level=level)
    gap, low, high = surest_gap(limits)
    return gap, int(enough[low]), int(enough[high])


def audit_many(table: AuditTable, options: Options) -> Audit:
    """Audit so many groups that they are estimated together."""
    return audit_of(assess_many(table, options))


def audit_of(groups: ManyGroups) -> Audit:
    """Return the audit of many groups; the table of all of them is a file beside the page."""
    return Audit(
        groups.options,
        len(groups.table),
        len(groups.table.known),
        findings_of(groups),
        list(_basis(groups)),
        list(_sections(groups)),
        _data(groups),
        notes=list(_notes(groups)),
        todo=["Name fewer columns, or coarser groups, to compare each two of them."],
        label_names=groups.table.labels,
        files={TABLE: csv_text(groups.frame)},
        figures=groups.frame.to_dict("records"),
    )


def findings_of(groups: ManyGroups) -> list[Finding]:
    """Return which groups are unlike everyone else, and the largest gap of each rate.

    Half of the error rate is for either.
    """
    half = ErrorBudget(2).risk
    tests = ErrorBudget(len(groups.rates) * len(groups.groups), half)
    gaps = ErrorBudget(len(groups.rates), half)
    findings: list[Finding] = []
    for rate in groups.rates:
        findings += _unlike(groups, rate, tests.risk)
        findings += _gap(groups, rate, gaps.risk)
    return findings


def _unlike(groups: ManyGroups, rate: RateOfGroups, risk: float) -> Iterator[Finding]:
    everyone = float(rate.overall.value)
    surely = np.flatnonzero(rate.unlike <= risk)
    if not len(surely):
        yield Finding(
            UNLIKE, groups.attribute, rate.label, IS_OPEN, bound=everyone, n=int(rate.sizes.sum())
        )
    lower, upper = rate.pooled.interval()
    for place in surely[np.argsort(rate.unlike[surely], kind="stable")]:
        yield Finding(
            UNLIKE,
            groups.attribute,
            rate.label,
            LARGE,
            (groups.groups[place],),
            value=float(rate.pooled.mean[place]),
            lower=float(lower[place]),
            upper=float(upper[place]),
            bound=everyone,
            n=int(rate.sizes[place]),
        )


def _gap(groups: ManyGroups, rate: RateOfGroups, risk: float) -> Iterator[Finding]:
    value, lower, upper = map(float, rate.gap)
    finding = Finding(
        GAP,
        groups.attribute,
        rate.label,
        NOT_MEASURED,
        value=value,
        lower=lower,
        upper=upper,
        bound=groups.options.epsilon,
        n=int(rate.sizes.sum()),
        needs=TOO_FEW,
    )
    if rate.low < 0:
        yield finding
        return
    at_most = _surest_gap(rate.successes, rate.sizes, 1 - 2 * risk)[0]
    at_least, low, high = _surest_gap(rate.successes, rate.sizes, 1 - risk)
    named = groups.groups[high], groups.groups[low]
    values = tuple(float(rate.successes[g] / rate.sizes[g]) for g in (high, low))
    if at_most.upper < finding.bound:
        yield replace(finding, verdict=SMALL, needs="")
    elif at_least.lower > finding.bound:
        yield replace(finding, verdict=LARGE, groups=named, values=values, needs="")
    else:
        yield replace(finding, verdict=IS_OPEN, needs="")
        if at_least.lower > 0:
            yield replace(finding, about=PAIR, verdict=LARGE, groups=named, values=values, needs="")


def shares(found: ManyGroups, rate: RateOfGroups) -> dict[str, float]:
    """Return which share of the groups is surely within epsilon of everyone, beyond it, or open."""
    verdicts = found.frame.loc[found.frame["rate"] == rate.name, "verdict"]
    return {each: float((verdicts == each).mean()) for each in (WITHIN, BEYOND, OPEN)}


def _basis(found: ManyGroups) -> Iterator[str]:
    rows, labels = len(found.table), len(found.table.known)
    yield f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%})."
    yield (
        f"{count(len(found.groups))} groups of {found.attribute}, half of them with "
        f"{count(int(np.median(found.rows)))} rows or fewer: they are estimated together. A group "
        "is drawn towards what the others, and those that share a value with it, lead one to "
        "expect, the more the fewer its rows."
    )
    if labels < rows and labels:
        yield (
            "Rates that need labels are of the rows that have one. This assumes that rows were "
            "chosen for labelling at random."
        )
    if not labels:
        yield "Without labels nothing is said of errors: scores are not taken at their word here."


def _notes(found: ManyGroups) -> Iterator[str]:
    yield from found.table.notes
    groups = len(found.groups)
    pairs = groups * (groups - 1) // 2
    yield (
        f"Gaps between every two groups are not shown: {count(groups)} groups make {count(pairs)} "
        f"pairs, of which {count(round(0.05 * pairs))} would seem to differ by chance alone. For "
        "gaps between a few groups name fewer columns, or coarser groups."
    )
    yield (
        "Groups are flagged in the table (unlike_everyone) by an exact test of each rate and "
        f"group, so chosen from all {count(len(found.frame))} tests that one in ten of the "
        "flagged is wrong on average. Those named as unlike everyone else are surer than that."
    )
    exceptions = int(found.frame["exception"].sum())
    if exceptions:
        yield (
            "Of groups whose rate is surprising among the others, the raw rate is the one to read: "
            f"{count(exceptions)} of all (exception in the table)."
        )
    small = int((found.rows < FEWEST_ROWS).sum())
    if small:
        yield (
            f"Groups of fewer than {FEWEST_ROWS} rows ({count(small)}) are left out of the widest "
            "gap, and their estimates rest on the other groups."
        )


def _sections(found: ManyGroups) -> Iterator[Section]:
    yield Section("Everyone, and how far groups are from it", [_everyone(found)])
    yield Section("Groups that stand out", list(_stand_out(found)))
    table = _groups(found, found.least_known.head(_MOST_UNKNOWN), "")
    yield Section("Groups of which least is known", [table])
    yield Section(
        "", [Paragraph(f"Every group and rate, {count(len(found.frame))} rows: {TABLE}.", "note")]
    )


def _everyone(found: ManyGroups) -> Table:
    epsilon = found.options.epsilon
    columns = [
        Column("rate"),
        Column("everyone", "estimate"),
        Column("flagged", "count"),
        Column(f"within {epsilon:g}", "percent"),
        Column("beyond", "percent"),
        Column("open", "percent"),
        Column("widest gap", "number", left_out=1),
        Column("95 % interval", "interval"),
    ]
    rows = []
    for rate in found.rates:
        share = shares(found, rate)
        unlike = int((found.unlike["rate"] == rate.name).sum())
        gap = tuple(map(float, rate.gap))
        everyone = tuple(map(float, rate.overall))
        parts = [share[each] for each in (WITHIN, BEYOND, OPEN)]
        rows.append([rate.label, everyone, unlike, *parts, gap[0], gap[1:]])
    return Table(
        columns,
        rows,
        caption=(
            f"within, beyond: share of the groups that are less than {epsilon:g} from everyone, or "
            "further, with a probability of 95 % or more by the posterior of all groups; widest "
            f"gap: of the counts, between two groups of {FEWEST_ROWS} rows or more, from the "
            "largest proven to the largest possible difference"
        ),
    )


def _stand_out(found: ManyGroups) -> Iterator[Block]:
    if not len(found.unlike):
        yield Paragraph("No group is flagged as unlike everyone else in any rate.")
        return
    shown = found.unlike.head(_MOST)
    more = f"; the {count(len(shown))} surest are shown" if len(found.unlike) > len(shown) else ""
    yield _groups(found, shown, f"{count(len(found.unlike))} rates of groups{more}")


def _groups(found: ManyGroups, rows: pd.DataFrame, title: str) -> Table:
    """Return rows of the table of groups, with their pooled intervals drawn on one scale."""
    columns = [
        Column("rate"),
        Column("group"),
        Column("rows", "count"),
        Column("raw", "number"),
        Column("everyone", "number", left_out=1),
        Column("pooled less everyone", "signed"),
        Column("95 % interval", "interval"),
        Column("", "bar"),
    ]
    ends = [
        (row.lower - row.everyone, row.pooled - row.everyone, row.upper - row.everyone)
        for row in rows.itertuples()
    ]
    cells = [
        [
            label(str(row.rate)),
            row.group,
            row.rows,
            row.raw,
            row.everyone,
            at[1],
            (at[0], at[2]),
            bar,
        ]
        for row, at, bar in zip(
            rows.itertuples(), ends, bars(ends, found.options.epsilon), strict=True
        )
    ]
    reading = (
        "Drawn: the pooled estimate of each group less the rate of everyone, with its 95 % "
        f"interval. Shaded: less than {found.options.epsilon:g} either way."
    )
    return Table(columns, cells, title, reading=reading, most=_MOST_PRINTED)


def _data(found: ManyGroups) -> Mapping[str, Any]:
    names = found.groups
    return {
        "rates": [
            {
                "rate": rate.name,
                "everyone": [float(each) for each in rate.overall],
                "gap": [float(each) for each in rate.gap],
                "surest_pair": [names[rate.high], names[rate.low]] if rate.high >= 0 else [],
                "shares": shares(found, rate),
            }
            for rate in found.rates
        ],
    }
