"""An audit of so many groups that they are estimated together, and not compared pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.direction import Direction
from fairbench.audits.gaps import RATE_OF, TOO_FEW
from fairbench.audits.question import Options
from fairbench.audits.report import Audit, on_labels
from fairbench.audits.table import AuditTable
from fairbench.core.arrays import Floats, rng
from fairbench.core.text import count, csv_text
from fairbench.data.groups import codes_of
from fairbench.evaluation.findings import (
    GAP,
    LARGE,
    LEVEL,
    NOT_MEASURED,
    OPEN,
    UNLIKE,
    ErrorBudget,
    Finding,
    Measure,
)
from fairbench.evaluation.intervals import GapInterval
from fairbench.evaluation.many_groups import (
    BEYOND,
    UNSURE,
    WITHIN,
    counts_of_rates,
    estimates_of_rates,
)
from fairbench.inference.gaps import GroupLimits, gap_of_noise, surest_gap
from fairbench.inference.rates import Limits, rate_limits
from fairbench.reporting.document.model import Block, Column, Paragraph, Section, Table
from fairbench.reporting.group_tables import bars, table_of

Row: TypeAlias = Mapping[str, Any]

FEWEST_ROWS = 10  # of a group that gaps are taken between
_MOST, _MOST_PRINTED, _MOST_UNKNOWN = 40, 16, 10
TABLE = "groups.csv"
_NO_LABELS = "Without labels nothing is said of errors: scores are not taken at their word here."


def audit_many(table: AuditTable, options: Options) -> Audit:
    """Audit so many groups that they are estimated together; all of them are in a file."""
    codes, groups = codes_of(table.cells)
    sizes = np.bincount(codes)
    rows = len(table)
    labels = len(table.known)
    frame, rates, findings = estimate_groups(table, options, codes, groups)
    return Audit(
        options,
        rows,
        labels,
        findings,
        [
            *table.read_as,
            f"{count(rows)} rows, {count(labels)} of them with a label ({labels / rows:.2%}).",
            f"{count(len(sizes))} groups of {' x '.join(options.group)}, half of them with "
            f"{count(int(np.median(sizes)))} rows or fewer: they are estimated together. A group "
            "is drawn towards what the others, and those that share a value with it, lead one to "
            "expect, the more the fewer its rows.",
            *on_labels(rows, labels, _NO_LABELS),
        ],
        _sections(frame, rates, table.direction, options.epsilon),
        {"rates": rates},
        notes=[*table.notes, *_notes(frame, sizes)],
        todo=["Name fewer columns, or coarser groups, to compare each two of them."],
        warning=" ".join(table.warnings),
        audited=table.read_as,
        label_names=table.labels,
        files={TABLE: csv_text(frame)},
        figures=frame.to_dict("records"),
    )


def estimate_groups(
    table: AuditTable, options: Options, codes: NDArray[np.intp], groups: Sequence[str]
) -> tuple[pd.DataFrame, list[Row], list[Finding]]:
    """Estimate the rates of groups together, and find those that stand out.

    Half of the error rate is for which groups are unlike everyone else, half for the largest gaps.

    Parameters
    ----------
    codes : (n,) the position of each row's group in `groups`.
    groups : the names of the groups.

    Returns
    -------
    groups : a row for each rate and group: counts, its raw rate, the pooled estimate, and what is
        sure.
    rates : a row for each rate: that of everyone, how many groups are flagged, which share of the
        groups is surely within epsilon of everyone, beyond it, or neither, and the largest gap.
    findings : which groups are unlike everyone else, and the largest gap of each rate.
    """
    attribute = " x ".join(options.group)
    names, successes, sizes = counts_of_rates(table.label, table.prediction, codes)
    frame = estimates_of_rates(
        names,
        successes,
        sizes,
        attribute,
        groups,
        generator=rng(options.seed, "posterior"),
        epsilon=options.epsilon,
    )
    half = ErrorBudget(2).risk  # one half for the tests of single groups, one for the gaps
    test_risk, gap_risk = (ErrorBudget(n, half).risk for n in (len(frame), len(names)))
    fixed = {RATE_OF[metric].name: why for metric, why in table.fixed.items()}
    rates: list[Row] = []
    findings: list[Finding] = []
    for index, name in enumerate(names):
        rate_rows = frame[frame["rate"] == name]
        total = int(sizes[index].sum())
        template = Finding(GAP, attribute, table.direction.rate_name(name), NOT_MEASURED, n=total)
        if name not in fixed:
            findings += _unlike(rate_rows, test_risk, template)
        template = replace(template, bound=options.epsilon, needs=fixed.get(name, TOO_FEW))
        surest, gaps = (
            ([], [template])
            if name in fixed
            else _gap(successes[index], sizes[index], groups, template, gap_risk)
        )
        verdicts = rate_rows["verdict"].value_counts(normalize=True)
        rates.append(
            {
                "rate": name,
                "everyone": tuple(map(float, rate_limits(successes[index].sum(), total))),
                "flagged": int(rate_rows["unlike_everyone"].sum()),
                **verdicts.reindex([WITHIN, BEYOND, UNSURE], fill_value=0.0).to_dict(),
                "gap": gaps[0].value,
                "interval": gaps[0].interval,
                "surest_pair": surest,
            }
        )
        findings += gaps
    return frame, rates, findings


def _unlike(frame: pd.DataFrame, risk: float, template: Finding) -> Iterator[Finding]:
    """Yield which groups are unlike everyone else, the surest first."""
    template = replace(template, about=UNLIKE, bound=float(frame["everyone"].iloc[0]))
    surely = frame[frame["p_value"] <= risk].sort_values("p_value", kind="stable")
    if surely.empty:
        yield replace(template, verdict=OPEN)
    for row in surely.itertuples():
        unlike = replace(template, verdict=LARGE, groups=(row.group,), n=row.rows)
        yield replace(unlike, value=row.pooled, lower=row.lower, upper=row.upper)


def _gap(
    successes: Floats, sizes: Floats, groups: Sequence[str], template: Finding, risk: float
) -> tuple[list[str], list[Finding]]:
    """Return the finding on the two large enough groups that differ most surely."""
    large_enough = np.flatnonzero(sizes >= FEWEST_ROWS)
    if len(large_enough) < 2:
        return [], [template]

    @cache
    def at_level(level: float) -> tuple[Limits, int, int]:
        return surest_gap(GroupLimits.of(successes[large_enough], sizes[large_enough], level=level))

    def of_surest(level: float) -> GapInterval:
        """Return the interval with the lead of these two only: all pairs would be too many."""
        gap = at_level(level)[0]
        return GapInterval(gap.lower, gap.upper, np.array([[0, gap.lower], [0, 0]]))

    low, high = large_enough[list(at_level(1 - risk)[1:])]
    names = [groups[high], groups[low]]
    few = list(compress(groups, sizes < FEWEST_ROWS))
    value, lower, upper = map(float, at_level(LEVEL)[0])
    measure = Measure(
        template,
        names,
        of_surest,
        [successes[group] / sizes[group] for group in (high, low)],
        (value, lower, upper),
        few=few,
        may_be_small=not few,
        noise=gap_of_noise(rate_limits(successes[large_enough], sizes[large_enough])),
    )
    return names, measure.answered(risk).conclude()


def _notes(frame: pd.DataFrame, sizes: NDArray[np.int64]) -> Iterator[str]:
    """Yield how so many groups were compared, and which of them are to be read with care."""
    groups = len(sizes)
    pairs = groups * (groups - 1) // 2
    yield (
        f"Gaps between every two groups are not shown: {count(groups)} groups make {count(pairs)} "
        f"pairs, of which {count(round(0.05 * pairs))} would seem to differ by chance alone. For "
        "gaps between a few groups name fewer columns, or coarser groups."
    )
    yield (
        "Groups are flagged in the table (unlike_everyone) by an exact test of each rate and "
        f"group, so chosen from all {count(len(frame))} tests that one in ten of the "
        "flagged is wrong on average. Those named as unlike everyone else are surer than that."
    )
    exceptions = int(frame["exception"].sum())
    if exceptions:
        yield (
            "Of groups whose rate is surprising among the others, the raw rate is the one to read: "
            f"{count(exceptions)} of all (exception in the table)."
        )
    small = int((sizes < FEWEST_ROWS).sum())
    if small:
        yield (
            f"Groups of fewer than {FEWEST_ROWS} rows ({count(small)}) are left out of the widest "
            "gap, and their estimates rest on the other groups."
        )


def _sections(
    frame: pd.DataFrame, rates: Sequence[Row], direction: Direction, epsilon: float
) -> list[Section]:
    """Return the sections on everyone, on groups that stand out, and on those least is known of."""
    from_everyone = frame[["lower", "pooled", "upper"]].sub(frame["everyone"], axis=0)
    differences = frame.assign(**from_everyone)
    flagged = differences[frame["unlike_everyone"]]
    flagged = flagged.iloc[np.lexsort([-flagged["pooled"].abs(), flagged["adjusted"]])]
    least_known = differences.iloc[np.argsort(frame["lower"] - frame["upper"], kind="stable")]
    title = f"{count(len(flagged))} rates of groups"
    if len(flagged) > _MOST:
        title += f"; the {count(_MOST)} surest are shown"
    stand_out: Block = Paragraph("No group is flagged as unlike everyone else in any rate.")
    if len(flagged):
        stand_out = _groups(flagged.head(_MOST), direction, epsilon, title)
    unknown = _groups(least_known.head(_MOST_UNKNOWN), direction, epsilon, "")
    note = Paragraph(f"Every group and rate, {count(len(frame))} rows: {TABLE}.", "note")
    return [
        Section("Everyone, and how far groups are from it", [_everyone(rates, direction, epsilon)]),
        Section("Groups that stand out", [stand_out]),
        Section("Groups of which least is known", [unknown]),
        Section("", [note]),
    ]


def _everyone(rates: Sequence[Row], direction: Direction, epsilon: float) -> Table:
    """Return the table of everyone's rates, and of how many groups are near to them or far away."""
    return table_of(
        rates,
        [
            (lambda row: direction.rate_name(row["rate"]), Column("rate")),
            ("everyone", Column("everyone", "estimate")),
            ("flagged", Column("flagged", "count")),
            (WITHIN, Column(f"within {epsilon:g}", "percent")),
            (BEYOND, Column("beyond", "percent")),
            (UNSURE, Column("open", "percent")),
            ("gap", Column("widest gap", "number", left_out=1)),
            ("interval", Column("95 % interval", "interval")),
        ],
        by="",
        caption=(
            f"within, beyond: share of the groups that are less than {epsilon:g} from everyone, or "
            "further, with a probability of 95 % or more by the posterior of all groups; widest "
            f"gap: of the counts, between two groups of {FEWEST_ROWS} rows or more, from the "
            "largest proven to the largest possible difference"
        ),
    )


def _groups(rows: pd.DataFrame, direction: Direction, epsilon: float, title: str) -> Table:
    """Return the table of some groups, with their pooled intervals drawn on one scale."""
    intervals = list(zip(rows["lower"], rows["pooled"], rows["upper"], strict=True))
    return table_of(
        rows.assign(bar=list(bars(intervals, epsilon))).to_dict("records"),
        [
            (lambda row: direction.rate_name(row["rate"]), Column("rate")),
            ("group", Column("group")),
            ("rows", Column("rows", "count")),
            ("raw", Column("raw", "number")),
            ("everyone", Column("everyone", "number", left_out=1)),
            ("pooled", Column("pooled less everyone", "signed")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            ("bar", Column("", "bar")),
        ],
        by="",
        title=title,
        reading=(
            "Drawn: the pooled estimate of each group less the rate of everyone, with its 95 % "
            f"interval. Shaded: less than {epsilon:g} either way."
        ),
        most=_MOST_PRINTED,
    )
