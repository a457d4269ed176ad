"""What follows for everyone, where labels exist only for those who were selected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import floor
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.assessment import Assessment, assess
from fairbench.audits.findings import GAP, LARGE, NOT_MEASURED, SMALL, ErrorBudget, Finding
from fairbench.audits.gaps import RATE_NAMES, RATE_OF, TOO_FEW
from fairbench.audits.kinds import binary
from fairbench.audits.pages.parts import table_of
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.table import AuditTable
from fairbench.audits.unknown import (
    RATES,
    TITLE,
    BoundedGap,
    bounded_gap,
    columns_of,
    groups_measured,
    verdict_cell,
)
from fairbench.core.formats import count
from fairbench.inference.partial.selected import NOTHING, SelectedLabels
from fairbench.metrics.rates import Rate
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import Column, Details, Paragraph, Section, Table

Floats = NDArray[np.float64]
Row: TypeAlias = Mapping[str, Any]

EVERYONE = "of everyone, whatever the labels are that cannot be known"
_BANDS = 5
_LABELS_OF_BAND = 30
_HALVINGS = 20
_LARGEST_FACTOR = 1e4


def audit_selected(table: AuditTable, options: Options) -> Audit:
    """Audit those who were selected, and say what follows for everyone."""
    assessment = _of_selected(table, options)
    findings, gaps, rates = of_everyone(table, options, assessment.budget)
    audit = binary.audit_of(assessment)
    first, *others = audit.sections
    people = f"{count(len(table))} people"
    of_whom = (
        f"Of {people}, {count(audit.rows)} were selected ('{options.selected}'), and only these "
        f"can have labels. What follows is of them; what that says of everyone stands under "
        f"'{TITLE}', and says 'of everyone'."
    )
    unknown = (
        f"{count(len(table) - audit.rows)} of {people} were not selected, and what their labels "
        "would have been is not in any data. Under 'whatever they are' nothing is assumed. Under "
        f"'odds within {options.odds:g}' the odds of label 1 of those who were not selected are at "
        f"most {options.odds:g} times higher or lower than those of the selected of the same "
        "group, decision and band of scores."
    )
    by_group = Details("Rates of everyone, by group", [_rate_table(rates, options)])
    section = Section(TITLE, [Paragraph(unknown), _gap_table(gaps, options), by_group])
    everyone = {"rows": len(table), "selected": audit.rows, "gaps": gaps, "rates": rates}
    return replace(
        audit,
        findings=[*audit.findings, *findings],
        basis=[of_whom, *audit.basis],
        sections=[first, section, *others],
        unseen=[of_whom, *audit.unseen],
        data={**audit.data, "of_everyone": everyone},
    )


def findings_of(table: AuditTable, options: Options) -> list[Finding]:
    """Return what the audit finds, of the selected and of everyone, without the rest of it."""
    assessment = _of_selected(table, options, only_findings=True)
    everyone, _, _ = of_everyone(table, options, assessment.budget)
    return [*binary.findings_of(assessment), *everyone]


def _of_selected(table: AuditTable, options: Options, *, only_findings: bool = False) -> Assessment:
    """Return the assessment of the selected; questions about everyone share its error rate."""
    questions = len(table.groups) * len(RATE_OF)
    return assess(table.of_selected(), options, others=questions, only_findings=only_findings)


def of_everyone(
    table: AuditTable, options: Options, budget: ErrorBudget
) -> tuple[list[Finding], list[Row], list[Row]]:
    """Return what follows for all rows of a table, selected or not.

    Returns
    -------
    The findings, on no assumption; a row for each gap; and one for each rate and group.
    """
    nothing = Finding(
        GAP, "", "", NOT_MEASURED, bound=options.epsilon, needs=TOO_FEW, scope=EVERYONE
    )
    findings, gaps, rates = [], [], []
    for attribute, groups in table.groups.items():
        names, labels = list(map(str, groups.cat.categories)), _counted(table, groups)
        for metric, rate in RATE_OF.items():
            template = replace(nothing, attribute=attribute, measure=RATE_NAMES[metric])
            finding, row = _gap(template, rate, names, labels, options.odds, budget.risk)
            findings.append(finding)
            gaps.append(row)
        for rate in RATES:
            rates += _rates(attribute, names, labels, rate, options.odds)
    return findings, gaps, rates


def _counted(table: AuditTable, groups: pd.Series) -> SelectedLabels:
    """Count rows by group, decision, and band of scores with labels enough to say something."""
    codes, known = groups.cat.codes.to_numpy(np.int64), np.isfinite(table.label)
    selected = np.ones(len(table), bool) if table.selected is None else table.selected
    shape = (len(groups.cat.categories), 2, _BANDS)
    band = np.zeros_like(codes)
    if table.score is not None:
        for group, decision in product(range(shape[0]), (0, 1)):
            rows = (codes == group) & (table.prediction == decision)
            band[rows] = _bands(table.score[rows], known[rows])
    cell = np.ravel_multi_index((codes, table.prediction, band), shape)
    parts = (~selected, selected, known, known & (table.label == 1))
    counts = [np.bincount(cell[part], minlength=np.prod(shape)) for part in parts]
    return SelectedLabels(*(count.reshape(shape).astype(np.float64) for count in counts))


def _bands(score: Floats, known: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return bands of scores, with as many labels in each."""
    bands = int(np.clip(known.sum() // _LABELS_OF_BAND, 1, _BANDS))
    edges = np.quantile(score[known], np.arange(1, bands) / bands) if bands > 1 else []
    return np.searchsorted(edges, score, side="right")


def _rates(
    attribute: str, names: Sequence[str], labels: SelectedLabels, rate: Rate, odds: float
) -> list[Row]:
    others, selected = (
        rows.sum(axis=(1, 2)).astype(int) for rows in (labels.others, labels.selected)
    )
    columns = {"attribute": attribute, "group": names, "rate": rate.name}
    columns |= {"rows": others + selected, "others": others, **columns_of(labels.ends(rate))}
    assumed = columns_of(labels.ends(rate, odds=odds))
    columns |= {f"assumed_{name}": values for name, values in assumed.items()}
    return pd.DataFrame(columns).to_dict("records")


def _gap(
    template: Finding,
    rate: Rate,
    names: Sequence[str],
    labels: SelectedLabels,
    odds: float,
    risk: float,
) -> tuple[Finding, Row]:
    """Return what is said of a gap of everyone, and what is known of it, in plain columns.

    Of missing labels that are `alike` those of similar selected people, `factor` is how far their
    odds may differ for the verdict to hold; None where there is none, or it holds all the same.
    """
    compared = groups_measured(labels.ends(rate))
    groups = [names[place] for place in compared]

    def at(factor: float) -> BoundedGap:
        return bounded_gap(template, groups, labels.ends(rate, odds=factor).take(compared), risk)

    plain, assumed, alike = map(at, (NOTHING, odds, 1.0))
    return plain.finding, {
        **plain.row,
        "groups": groups,
        "assumed": assumed.bounds.interval,
        "assumed_verdict": assumed.verdict,
        "alike": alike.verdict,
        "factor": _largest_factor(at, alike.verdict),
    }


def _largest_factor(at: Callable[[float], BoundedGap], verdict: str) -> float | None:
    """Return the largest factor between odds with which a verdict holds, None if all do."""
    if verdict not in (SMALL, LARGE) or at(NOTHING).verdict == verdict:
        return None
    low, high = 0.0, float(np.log(_LARGEST_FACTOR))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        holds = at(float(np.exp(middle))).verdict == verdict
        low, high = (middle, high) if holds else (low, middle)
    return float(np.exp(low))


def _gap_table(gaps: Sequence[Row], options: Options) -> Table:
    return table_of(
        (
            {
                **gap,
                "verdict": verdict_cell(gap["verdict"]),
                "assumed_verdict": verdict_cell(gap["assumed_verdict"]),
                "holds": _holds(gap["alike"], gap["factor"]),
            }
            for gap in gaps
        ),
        {
            "attribute": Column("groups"),
            "measure": Column("gap in"),
            "interval": Column("whatever they are", "interval"),
            "verdict": Column("verdict"),
            "assumed": Column(f"odds within {options.odds:g}", "interval"),
            "assumed_verdict": Column("verdict"),
            "holds": Column("holds up to", right=True),
        },
        title="Gaps of everyone, selected or not",
        caption=(
            "Intervals hold the gap in 95 % of samples, wherever it is between its bounds; of two "
            "groups, the second's rate minus the first's. cannot be known: no number of rows "
            "settles it. holds up to: the verdict that follows if missing labels are like those of "
            "similar selected people, and the factor between their odds up to which it holds."
        ),
    )


def _holds(verdict: str, factor: float | None) -> str:
    """Return a verdict on missing labels like others, and up to which factor it holds."""
    if verdict not in (SMALL, LARGE):
        return ""
    if factor is None:
        return f"{verdict}: any"
    # Never rounded up, as it would not hold there.
    return f"{verdict}: {floor(10 * factor) / 10 if factor < 10 else floor(factor):g}"


def _rate_table(rates: Sequence[Row], options: Options) -> Table:
    return table_of(
        ({**row, "rate": label(row["rate"])} for row in rates),
        {
            "attribute": Column("of"),
            "group": Column("group"),
            "rows": Column("rows", "count"),
            "others": Column("not selected", "count"),
            "rate": Column("rate"),
            ("lowest", "highest"): Column("bounds", "interval"),
            ("lower", "upper"): Column("95 % interval", "interval"),
            ("assumed_lowest", "assumed_highest"): Column(
                f"bounds, odds within {options.odds:g}", "interval"
            ),
            ("assumed_lower", "assumed_upper"): Column("95 % interval", "interval"),
        },
        by="",
    )
