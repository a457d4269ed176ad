"""The audit of two classifiers on the same rows: whose gaps between groups are smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits import question
from fairbench.audits.direction import NEEDS_NO_LABELS, RATE_OF
from fairbench.audits.question import Options
from fairbench.audits.report import OF_POPULATION, Audit, counted_rows, more_for_open, on_labels
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.core.arrays import Floats
from fairbench.evaluation import findings
from fairbench.evaluation.findings import Finding, risk_of
from fairbench.inference.gaps import cells_of, difference, gap_change, rates_of
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import Rate, accuracy
from fairbench.reporting.document.model import Section, Table, TableCell
from fairbench.reporting.group_tables import bars, named_table, sentence_of

_said = partial(sentence_of, "binary")
ACCURACY = "accuracy"
NO_LABELS = "there are no labels"
_ONLY_DECISIONS = "Without labels, only decisions are compared; nothing is said of errors."
_FEW_GROUPS = "there are not two groups of enough rows"


def _audit_pair(options: Options, frame: pd.DataFrame) -> Audit:
    """Compare the classifier of the column ``score=`` with that of the column ``against=``."""
    table = read_audit_table(options, frame=frame)
    other = read_audit_table(replace(options, score=options.against, against=""), frame=frame)
    found = compare_tables(table, other, options)
    figures = [_figures(finding, table.direction.rate_names) for finding in found]
    rows = len(table)
    labels = len(table.known)
    title = f"{options.against} against {options.score}"
    return Audit.of(
        table,
        options,
        [
            f"{title} on the {counted_rows(rows, labels, f' of {options.path.name}')}",
            OF_POPULATION,
            *on_labels(rows, labels, _ONLY_DECISIONS),
        ],
        findings=found,
        sections=[
            Section(
                "Gaps between groups, of both",
                [_table(found, options, table.direction.rate_names)],
            )
        ],
        data={"comparison": figures},
        notes=[
            *table.notes,
            *(
                _said("pair_open", finding=finding)
                for finding in found
                if finding.verdict == findings.OPEN and finding.needs
            ),
        ],
        todo_if_open=more_for_open(rows, labels),
        title=title,
        figures=figures,
    )


def compare_tables(first: AuditTable, second: AuditTable, options: Options) -> list[Finding]:
    """Return the findings on the accuracies, and on the gaps of every attribute.

    The value of each is the second classifier's less the first's. It is `SMALL` if they differ by
    less than epsilon, and `LARGE` if one of them is surely the larger.
    """
    risk = risk_of(1 + len(first.groups) * len(RATE_OF))
    names = options.score, options.against
    accuracies = Finding(findings.COMPARISON, "", ACCURACY, groups=names, bound=options.epsilon)
    everyone = _cells(first, second, np.zeros(len(first), np.intp), needs_labels=True)
    found = [_compare(accuracies, accuracy, everyone, risk)]
    fixed = {name: why for name, why in first.fixed.items() if name in second.fixed}
    for attribute, groups in first.groups.items():
        codes = groups.cat.codes.to_numpy(np.intp)
        for metric, rate in RATE_OF.items():
            gaps = replace(
                accuracies, attribute=attribute, measure=first.direction.rate_names[metric]
            )
            if metric in fixed:
                found.append(replace(gaps, needs=fixed[metric]))
                continue
            cells = _cells(first, second, codes, needs_labels=metric != NEEDS_NO_LABELS)
            found.append(_compare(gaps, rate, cells, risk, groups.cat.categories))
    return found


def _cells(
    first: AuditTable, second: AuditTable, codes: NDArray[np.intp], *, needs_labels: bool
) -> Floats:
    """Return the cells (G, 8) of groups with codes (n,)."""
    rows = np.flatnonzero(~(needs_labels & np.isnan(first.label)))
    label = first.label[rows] if needs_labels else np.zeros(len(rows))
    groups = int(codes.max(initial=-1)) + 1
    return cells_of(
        label, first.prediction[rows], second.prediction[rows], codes[rows], groups=groups
    )


def _compare(
    template: Finding, rate: Rate, cells: Floats, risk: float, groups: Sequence[str] = ()
) -> Finding:
    """Compare a rate, or its gaps, between both classifiers.

    Parameters
    ----------
    template : the finding to fill in.
    cells : (G, 8) the counts of the groups, or (1, 8) those of everyone.
    risk : the error rate of the answer.
    groups : (G,) their names. Where one has people and no rows of the rate, which may differ by
        anything, it is open whose gap is smaller.
    """
    template = replace(template, n=int(cells.sum()))
    is_gap = bool(template.attribute)
    if not template.n:
        return replace(template, needs=NO_LABELS)
    limits_of_both = rates_of(cells, rate, level=findings.LEVEL)
    has_rate = np.isfinite(limits_of_both[0].value + limits_of_both[1].value)
    if has_rate.sum() < (2 if is_gap else 1):
        return replace(template, needs=_FEW_GROUPS)

    def at_level(level: float) -> Limits:
        if is_gap:
            return gap_change(cells[has_rate], rate, level=level)
        return difference(cells, rate, level=level).take(0)

    few = list(compress(groups, ~has_rate))
    verdict = findings.OPEN if few else findings.answer_difference(at_level, template.bound, risk)
    values = tuple(
        float(np.ptp(limits.value[has_rate]) if is_gap else limits.value[0])
        for limits in limits_of_both
    )
    value, lower, upper = map(float, at_level(findings.LEVEL))
    return replace(
        template,
        verdict=verdict,
        value=value,
        lower=lower,
        upper=upper,
        values=values,
        needs=findings.too_few_of(few),
    )


def _verdict(finding: Finding) -> str:
    """Return the verdict on the second classifier in a word; accuracies are no gaps."""
    if finding.verdict == findings.LARGE:
        ways = ("smaller", "larger") if finding.attribute else ("lower", "higher")
        return ways[finding.value > 0]
    return "alike" if finding.verdict == findings.SMALL else finding.verdict


def _figures(finding: Finding, names: Mapping[str, str]) -> dict[str, Any]:
    """Return what is measured, in plain columns."""
    metrics = {measure: metric for metric, measure in names.items()}
    first, second = finding.values or (np.nan, np.nan)
    return {
        "attribute": finding.attribute,
        "metric": metrics[finding.measure] if finding.attribute else finding.measure,
        "first": first,
        "second": second,
        "difference": finding.value,
        "lower": finding.lower,
        "upper": finding.upper,
        "rows": finding.n,
        "verdict": finding.verdict,
        "needs": finding.needs,
    }


def _table(found: Sequence[Finding], options: Options, names: Mapping[str, str]) -> Table:
    """Return the table of both classifiers' accuracies and gaps, and of their differences."""
    intervals = [(finding.lower, finding.value, finding.upper) for finding in found]
    rows = []
    for finding, bar in zip(found, bars(intervals, options.epsilon), strict=True):
        shown = {
            "of": finding.attribute or "everyone",
            "measure": finding.measure,
            "bar": bar,
            "verdict": TableCell(_verdict(finding), mark=finding.verdict),
        }
        rows.append({**_figures(finding, names), **shown})
    return named_table("binary", "pair", rows, options=options)


AUDITS = {question.PAIR: _audit_pair}
