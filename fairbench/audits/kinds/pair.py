"""The audit of two classifiers on the same rows: whose gaps between groups are smaller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.audits.findings import (
    COMPARISON,
    LARGE,
    NOT_MEASURED,
    OPEN,
    SMALL,
    ErrorBudget,
    Finding,
)
from fairbench.audits.gaps import NEEDS_NO_LABELS, RATE_NAMES, RATE_OF
from fairbench.audits.pages.parts import bars, starts
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.audits.table import AuditTable, read_audit_table
from fairbench.core.formats import count
from fairbench.inference.paired import cells_of, difference, gap_change, rates_of
from fairbench.inference.rates import Limits
from fairbench.metrics.rates import Rate, accuracy
from fairbench.reporting.document.model import Column, Section, Table, TableCell

Floats = NDArray[np.float64]
FEWEST_ROWS = 30  # of a group that is compared
ACCURACY = "accuracy"
NO_LABELS = "there are no labels"
_FEW = "there are not two groups of enough rows"


@dataclass(frozen=True)
class Compared:
    """A measure of two classifiers, and the second's less the first's.

    Attributes
    ----------
    attribute : empty for the accuracy of everyone. metric : a gap's size, or the accuracy.
    first, second : of the rows. difference, lower, upper : with its 95 % interval.
    rows : how many they are of.
    verdict : `SMALL` if they differ by less than epsilon, `LARGE` if one is surely the larger.
    needs : why nothing is measured.
    """

    attribute: str
    metric: str
    first: float
    second: float
    difference: float
    lower: float
    upper: float
    rows: int
    verdict: str
    needs: str = ""

    @property
    def measure(self) -> str:
        """What is measured, in words."""
        return RATE_NAMES.get(self.metric, self.metric)


def audit_pair(table: AuditTable, frame: pd.DataFrame, options: Options) -> Audit:
    """Audit the classifier that a table is of against that of the column ``against=`` names.

    Parameters
    ----------
    frame : the table as it was read.
    """
    other = read_audit_table(replace(options, score=options.against), frame=frame)
    rows = list(compare_tables(table, other, options.epsilon))
    return Audit(
        options,
        len(table),
        len(table.known),
        findings_of(rows, options),
        list(_basis(options, table)),
        [Section("Gaps between groups, of both", [_table(rows, options)])],
        {"comparison": [asdict(row) for row in rows]},
        notes=list(_notes(table)),
        todo=["Label more rows for what stays open and matters most."]
        * any(row.verdict == OPEN for row in rows),
        title=f"{options.against} against {options.score}",
        label_names=table.labels,
        figures=[asdict(row) for row in rows],
    )


def compare_tables(first: AuditTable, second: AuditTable, epsilon: float) -> Iterator[Compared]:
    """Yield the accuracies, and the gaps of every attribute.

    Parameters
    ----------
    epsilon : a difference under this makes no practical difference.
    """
    budget = ErrorBudget(1 + len(first.groups) * len(RATE_OF))
    everyone = np.zeros(len(first), np.int64)
    yield _compared(_Rows(first, second, "", everyone, 1), ACCURACY, accuracy, epsilon, budget)
    for attribute, groups in first.groups.items():
        rows = _Rows.of_groups(first, second, attribute, groups)
        for metric, rate in RATE_OF.items():
            yield _compared(rows, metric, rate, epsilon, budget)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Both classifiers' rows, with groups (n,) of which there are so many; -1 is in none."""

    first: AuditTable
    second: AuditTable
    attribute: str
    code: NDArray[np.int64]
    groups: int

    @classmethod
    def of_groups(
        cls, first: AuditTable, second: AuditTable, attribute: str, groups: pd.Series
    ) -> _Rows:
        """Return the rows of the groups of an attribute that are large enough."""
        enough = large_enough(groups)
        place = np.where(enough, np.cumsum(enough) - 1, -1)
        code = place[groups.cat.codes.to_numpy()]
        return cls(first, second, attribute, code, int(enough.sum()))

    def cells(self, metric: str) -> Floats:
        """Return the cells (G, 8): of all rows, or of those with labels where a rate needs them."""
        needs_none = metric == NEEDS_NO_LABELS
        rows = np.arange(len(self.code)) if needs_none else self.first.known
        rows = rows[self.code[rows] >= 0]
        label = np.zeros(len(rows)) if needs_none else self.first.label[rows]
        first, second = self.first.prediction[rows], self.second.prediction[rows]
        return cells_of(label, first, second, self.code[rows], groups=self.groups)


def _compared(
    rows: _Rows, metric: str, rate: Rate, epsilon: float, budget: ErrorBudget
) -> Compared:
    cells = rows.cells(metric)
    size = int(cells.sum())
    nothing = Compared(rows.attribute, metric, *(np.nan,) * 5, size, NOT_MEASURED)
    if not size:
        return replace(nothing, needs=NO_LABELS)
    both = rates_of(cells, rate, level=0.95)
    known = np.isfinite(both[0].value + both[1].value)
    if known.sum() < 1 + bool(rows.attribute):
        return replace(nothing, needs=_FEW)
    cells = cells[known]

    def at(level: float) -> Limits:
        if rows.attribute:
            return gap_change(cells, rate, level=level)
        return difference(cells, rate, level=level).take(0)

    shown, near, apart = (at(level) for level in (0.95, 1 - 2 * budget.risk, 1 - budget.risk))
    verdict = OPEN
    if -epsilon < near.lower and near.upper < epsilon:
        verdict = SMALL
    elif apart.lower > 0 or apart.upper < 0:
        verdict = LARGE
    values = (each.value[known] for each in both)
    first, second = (np.ptp(each) if rows.attribute else each[0] for each in values)
    difference_and_ends = (float(shown.value), float(shown.lower), float(shown.upper))
    return Compared(
        rows.attribute, metric, float(first), float(second), *difference_and_ends, size, verdict
    )


def large_enough(groups: pd.Series) -> NDArray[np.bool_]:
    """Say of each category whether its rows are enough to be compared."""
    size = np.bincount(groups.cat.codes, minlength=len(groups.cat.categories))
    return size >= FEWEST_ROWS


def findings_of(rows: Sequence[Compared], options: Options) -> list[Finding]:
    """Return what measures of two classifiers say of them."""
    names = (options.score, options.against)
    return [_finding(row, names, options.epsilon) for row in rows]


def _finding(row: Compared, names: tuple[str, str], epsilon: float) -> Finding:
    return Finding(
        COMPARISON,
        row.attribute,
        row.measure,
        row.verdict,
        names,
        value=row.difference,
        lower=row.lower,
        upper=row.upper,
        values=(row.first, row.second),
        bound=epsilon,
        n=row.rows,
        needs=row.needs,
    )


def _basis(options: Options, table: AuditTable) -> Iterator[str]:
    rows, labels = len(table), len(table.known)
    yield (
        f"{options.against} against {options.score} on the {count(rows)} rows of "
        f"{options.path.name}, {count(labels)} of them with a label ({labels / rows:.2%})."
    )
    yield "Intervals say how far off the population may be that these rows are a sample of."
    if 0 < labels < rows:
        yield (
            "What needs labels is of the rows that have one. This assumes that rows were chosen "
            "for labelling at random."
        )
    if not labels:
        yield "Without labels, only who is selected is compared; nothing of errors is."


def _notes(table: AuditTable) -> Iterator[str]:
    yield from table.notes
    for attribute, groups in table.groups.items():
        few = ", ".join(map(str, groups.cat.categories[~large_enough(groups)]))
        if few:
            yield f"{attribute}: left out for under {FEWEST_ROWS} rows: {few}."


def verdict_text(row: Compared) -> str:
    """Return the verdict of a row on the second classifier in a word; accuracies are no gaps."""
    if row.verdict == SMALL:
        return "alike"
    if row.verdict == LARGE:
        words = ("smaller", "larger") if row.attribute else ("lower", "higher")
        return words[row.difference > 0]
    return row.verdict


def _table(rows: Sequence[Compared], options: Options) -> Table:
    columns = [
        Column("groups"),
        Column("gap in"),
        Column(options.score, "number"),
        Column(options.against, "number"),
        Column("difference", "signed"),
        Column("95 % interval", "interval"),
        Column("", "bar", narrow=True),
        Column("verdict"),
    ]
    placed = bars([(row.lower, row.difference, row.upper) for row in rows], options.epsilon)
    cells = [
        [
            row.attribute or "everyone",
            row.measure,
            row.first,
            row.second,
            row.difference,
            (row.lower, row.upper),
            bar,
            TableCell(verdict_text(row), mark=row.verdict),
        ]
        for row, bar in zip(rows, placed, strict=True)
    ]
    return Table(
        columns,
        cells,
        caption=f"Difference: {options.against} less {options.score}.",
        reading=(
            "Sizes of the largest difference between two groups. Shaded: less than "
            f"{options.epsilon:g} either way. Verdict: on {options.against}, under the error rate "
            f"of the page; alike where the difference is surely under {options.epsilon:g}."
        ),
        rules=starts([row.attribute for row in rows]),
    )
