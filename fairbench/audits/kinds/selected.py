"""What follows for everyone, where labels exist only for those who were selected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import floor

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.assessment import Assessment, assess
from fairbench.audits.findings import GAP, LARGE, NOT_MEASURED, OPEN, SMALL, ErrorBudget, Finding
from fairbench.audits.gaps import RATE_NAMES, RATE_OF, TOO_FEW, Bounds
from fairbench.audits.kinds.binary import audit_of
from fairbench.audits.kinds.binary import findings_of as findings_of_assessment
from fairbench.audits.pages.parts import starts
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.table import AuditTable
from fairbench.core.formats import count, interval
from fairbench.inference.partial.ends import Ends, GapBounds, gap_bounds
from fairbench.inference.partial.selected import NOTHING, SelectedLabels
from fairbench.metrics.rates import Rate, base_rate
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import (
    Column,
    Details,
    Paragraph,
    Section,
    Table,
    TableCell,
)

Codes = NDArray[np.int64]

CANNOT = "cannot be known"  # however many rows and labels there are
RATES: tuple[Rate, ...] = (*RATE_OF.values(), base_rate)
TITLE = "What cannot be known"
EVERYONE = "of everyone, whatever the labels are that cannot be known"
_BANDS = 5
_LABELS_OF_BAND = 30
_HALVINGS = 20
_LARGEST_FACTOR = 1e4


@dataclass(frozen=True)
class BoundedRate:
    """A rate of a group among everyone: its bounds and an interval that holds them.

    Attributes
    ----------
    rows, others : how many rows the group has, and how many of them were not selected.
    bounds, interval : whatever the labels of the others are.
    assumed, assumed_interval : if they resemble those of the selected as far as is assumed.
    """

    attribute: str
    group: str
    rate: str
    rows: int
    others: int
    bounds: tuple[float, float]
    interval: tuple[float, float]
    assumed: tuple[float, float] | None = None
    assumed_interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class BoundedGap:
    """A gap among everyone.

    Attributes
    ----------
    groups : those that are compared. low, high : of a large gap, who is surely ahead of whom.
    bounds, verdict : whatever is not known. assumed, assumed_verdict : as far as is assumed.
    factor_verdict : the verdict if missing labels are like those of similar selected people.
    factor : the factor between their odds up to which that verdict, if it is one, holds; None where
        it holds whatever the missing labels are.
    """

    attribute: str
    metric: str
    groups: Sequence[str]
    bounds: GapBounds
    verdict: str
    low: str = ""
    high: str = ""
    assumed: GapBounds | None = None
    assumed_verdict: str = ""
    factor_verdict: str = ""
    factor: float | None = None


@dataclass(frozen=True, eq=False)
class UnknownLabels:
    """What can be said of everyone from the labels of those who were selected."""

    options: Options
    rows: int
    selected: int
    rates: Sequence[BoundedRate]
    gaps: Sequence[BoundedGap]


def audit_selected(table: AuditTable, options: Options) -> Audit:
    """Audit those who were selected, and say what follows for everyone.

    Gaps of the selected and of everyone share one error rate.
    """
    assessment = _of_selected(table, options)
    unknown = unknown_labels(table, options, assessment.budget)
    of_whom = (
        f"Of {count(unknown.rows)} people, {count(unknown.selected)} were selected "
        f"('{options.selected}'), and only these can have labels. What follows is of them; "
        f"what that says of everyone stands under '{TITLE}', and says 'of everyone'."
    )
    audit = audit_of(assessment)
    first, *others = audit.sections
    everyone = {
        "rows": unknown.rows,
        "selected": unknown.selected,
        "gaps": [asdict(gap) for gap in unknown.gaps],
        "rates": [asdict(rate) for rate in unknown.rates],
    }
    return replace(
        audit,
        findings=[*audit.findings, *_of_everyone(unknown)],
        basis=[of_whom, *audit.basis],
        sections=[first, _section(unknown), *others],
        unseen=[of_whom, *audit.unseen],
        data={**audit.data, "of_everyone": everyone},
    )


def findings_of(table: AuditTable, options: Options) -> list[Finding]:
    """Return what the audit finds, of the selected and of everyone, without the rest of it."""
    assessment = _of_selected(table, options, only_findings=True)
    unknown = unknown_labels(table, options, assessment.budget)
    return [*findings_of_assessment(assessment), *_of_everyone(unknown)]


def _of_selected(table: AuditTable, options: Options, *, only_findings: bool = False) -> Assessment:
    """Return the assessment of the selected; questions about everyone share its error rate."""
    questions = len(table.groups) * len(RATE_OF)
    return assess(table.of_selected(), options, others=questions, only_findings=only_findings)


def _of_everyone(unknown: UnknownLabels) -> list[Finding]:
    return bounded_findings(unknown.gaps, unknown.options.epsilon, EVERYONE)


def bounded_findings(
    gaps: Sequence[BoundedGap], epsilon: float, scope: str, *, attribute: str | None = None
) -> list[Finding]:
    """Return what bounds of gaps say, whatever it is that cannot be known.

    Parameters
    ----------
    scope : whom the gaps are of, and whatever of them cannot be known.
    attribute : what the groups are called, if not after the gap's attribute.
    """
    return [
        Finding(
            GAP,
            gap.attribute if attribute is None else attribute,
            RATE_NAMES[gap.metric],
            OPEN if gap.verdict == CANNOT else gap.verdict,
            (gap.high, gap.low) if gap.verdict == LARGE else (),
            lower=gap.bounds.interval[0],
            upper=gap.bounds.interval[1],
            bound=epsilon,
            needs=_needs(gap),
            scope=scope,
        )
        for gap in gaps
    ]


def _needs(gap: BoundedGap) -> str:
    if gap.verdict == NOT_MEASURED:
        return TOO_FEW
    if gap.verdict == CANNOT:
        return f"no number of rows settles it: anything in {interval(*gap.bounds.size)} is possible"
    return "more rows may settle it" if gap.verdict == OPEN else ""


def unknown_labels(table: AuditTable, options: Options, budget: ErrorBudget) -> UnknownLabels:
    """Return bounds of every rate and gap among all rows of a table, selected or not."""
    selected = np.ones(len(table), bool) if table.selected is None else table.selected
    bounds = Bounds(options.epsilon, 1, budget)
    rates: list[BoundedRate] = []
    gaps: list[BoundedGap] = []
    for attribute, groups in table.groups.items():
        counted = _counted(table, groups, selected)
        names = list(map(str, groups.cat.categories))
        rates += _rates(attribute, names, counted, options.odds)
        gaps += [
            _gap(attribute, metric, names, counted, options.odds, bounds) for metric in RATE_OF
        ]
    return UnknownLabels(options, len(table), int(selected.sum()), rates, gaps)


def _counted(table: AuditTable, groups: pd.Series, selected: NDArray[np.bool_]) -> SelectedLabels:
    """Count rows by group, decision, and band of scores with labels enough to say something."""
    codes = groups.cat.codes.to_numpy(np.int64)
    known = np.isfinite(table.label)
    place = np.stack([codes, table.prediction, np.zeros_like(codes)])
    if table.score is not None:
        for group in range(len(groups.cat.categories)):
            for decision in (0, 1):
                mine = (codes == group) & (table.prediction == decision)
                place[2, mine] = _bands(table.score[mine], known[mine])
    shape = (len(groups.cat.categories), 2, _BANDS)

    def count(rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        counts = np.zeros(shape)
        np.add.at(counts, tuple(place[:, rows]), 1.0)
        return counts

    return SelectedLabels(
        count(~selected), count(selected), count(known), count(known & (table.label == 1))
    )


def _bands(score: NDArray[np.float64], known: NDArray[np.bool_]) -> Codes:
    """Return bands of scores, with as many labels in each."""
    bands = int(np.clip(known.sum() // _LABELS_OF_BAND, 1, _BANDS))
    if bands == 1:
        return np.zeros(len(score), np.int64)
    edges = np.quantile(score[known], np.arange(1, bands) / bands)
    return np.searchsorted(edges, score, side="right").astype(np.int64)


def _rates(
    attribute: str, names: Sequence[str], counted: SelectedLabels, odds: float
) -> Iterator[BoundedRate]:
    others, rows = (
        each.sum(axis=(1, 2)).astype(int)
        for each in (counted.others, counted.others + counted.selected)
    )
    for rate in RATES:
        plain, assumed = counted.ends(rate), counted.ends(rate, odds=odds)
        for g, name in enumerate(names):
            yield BoundedRate(
                attribute,
                name,
                rate.name,
                int(rows[g]),
                int(others[g]),
                *both_ends(plain, g),
                *both_ends(assumed, g),
            )


def both_ends(ends: Ends, group: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the bounds of a group and an interval that holds them."""
    lower, upper = ends.interval()
    return (
        (float(ends.lower[group]), float(ends.upper[group])),
        (float(lower[group]), float(upper[group])),
    )


def _gap(
    attribute: str,
    metric: str,
    names: Sequence[str],
    counted: SelectedLabels,
    odds: float,
    bounds: Bounds,
) -> BoundedGap:
    rate = RATE_OF[metric]
    compared = np.flatnonzero(~np.isnan(counted.ends(rate).lower)).tolist()
    groups = [names[g] for g in compared]
    if len(compared) < 2:
        nothing = GapBounds(np.nan, np.nan, (np.nan, np.nan), np.nan, np.nan)
        return BoundedGap(attribute, metric, groups, nothing, NOT_MEASURED)

    def at(factor: float) -> tuple[Ends, GapBounds, str]:
        ends = counted.ends(rate, odds=factor).take(compared)
        found = gap_bounds(ends, risk=bounds.risk)
        return ends, found, verdict_of(found, bounds.epsilon)

    ends, plain, verdict = at(NOTHING)
    _, assumed, assumed_verdict = at(odds)
    first = at(1.0)[2]
    low, high = ahead(ends)
    return BoundedGap(
        attribute,
        metric,
        groups,
        plain,
        verdict,
        groups[low],
        groups[high],
        assumed,
        assumed_verdict,
        first,
        _largest_factor(lambda factor: at(factor)[2] == first, first),
    )


def ahead(ends: Ends) -> tuple[int, int]:
    """Return the groups of which the second is the most surely ahead, whatever is not known."""
    low, high = int(np.argmin(ends.upper)), int(np.argmax(ends.lower))
    return low, high


def verdict_of(found: GapBounds, epsilon: float) -> str:
    """Return the verdict that bounds allow; of some, no number of rows would change it."""
    if found.at_most < epsilon:
        return SMALL
    if found.at_least > epsilon:
        return LARGE
    least, most = found.size
    return OPEN if most < epsilon or least > epsilon else CANNOT


def _largest_factor(holds: Callable[[float], bool], verdict: str) -> float | None:
    """Return the largest factor between odds with which a verdict holds, None if all do."""
    if verdict not in (SMALL, LARGE) or holds(NOTHING):
        return None
    low, high = 0.0, float(np.log(_LARGEST_FACTOR))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(float(np.exp(middle))) else (low, middle)
    return float(np.exp(low))


def _section(unknown: UnknownLabels) -> Section:
    others = unknown.rows - unknown.selected
    odds = unknown.options.odds
    text = (
        f"{count(others)} of {count(unknown.rows)} people were not selected, and what their labels "
        "would have been is not in any data. Under 'whatever they are' nothing is assumed. Under "
        f"'odds within {odds:g}' the odds of label 1 of those who were not selected are at most "
        f"{odds:g} times higher or lower than those of the selected of the same group, decision "
        "and band of scores."
    )
    return Section(TITLE, [Paragraph(text), _gaps(unknown), _rates_table(unknown)])


def _gaps(unknown: UnknownLabels) -> Table:
    gaps, odds = unknown.gaps, unknown.options.odds
    columns = [
        Column("groups"),
        Column("gap in"),
        Column("whatever they are", "interval"),
        Column("verdict"),
        Column(f"odds within {odds:g}", "interval"),
        Column("verdict"),
        Column("holds up to", right=True),
    ]
    rows = [
        [
            gap.attribute,
            RATE_NAMES[gap.metric],
            gap.bounds.interval,
            verdict_cell(gap.verdict),
            None if gap.assumed is None else gap.assumed.interval,
            verdict_cell(gap.assumed_verdict),
            _factor(gap),
        ]
        for gap in gaps
    ]
    return Table(
        columns,
        rows,
        title="Gaps of everyone, selected or not",
        caption=(
            "Intervals hold the gap in 95 % of samples, wherever it is between its bounds; of two "
            "groups, the second's rate minus the first's. cannot be known: no number of rows "
            "settles it. holds up to: the verdict that follows if missing labels are like those of "
            "similar selected people, and the factor between their odds up to which it holds."
        ),
        rules=starts([gap.attribute for gap in gaps]),
    )


def verdict_cell(verdict: str) -> TableCell:
    """Return the verdict of a bounded gap."""
    return TableCell(verdict, mark=OPEN if verdict == CANNOT else verdict)


def _factor(gap: BoundedGap) -> str:
    if gap.factor_verdict not in (SMALL, LARGE):
        return ""
    if gap.factor is None:
        return f"{gap.factor_verdict}: any"
    # Never rounded up, as it would not hold there.
    shown = floor(10 * gap.factor) / 10 if gap.factor < 10 else floor(gap.factor)
    return f"{gap.factor_verdict}: {shown:g}"


def _rates_table(unknown: UnknownLabels) -> Details:
    odds = unknown.options.odds
    columns = [
        Column("of"),
        Column("group"),
        Column("rows", "count"),
        Column("not selected", "count"),
        Column("rate"),
        Column("bounds", "interval"),
        Column("95 % interval", "interval"),
        Column(f"bounds, odds within {odds:g}", "interval"),
        Column("95 % interval", "interval"),
    ]
    rows = [_rate(each) for each in unknown.rates]
    return Details("Rates of everyone, by group", [Table(columns, rows)])


def _rate(each: BoundedRate) -> list[object]:
    return [
        each.attribute,
        each.group,
        each.rows,
        each.others,
        label(each.rate),
        each.bounds,
        each.interval,
        each.assumed,
        each.assumed_interval,
    ]
