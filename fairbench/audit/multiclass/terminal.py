"""The audit of a multi-class classifier on the terminal, in 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from fairbench.audit.conclusions import Conclusions
from fairbench.audit.multiclass.assessment import Estimate, MulticlassAssessment, Part
from fairbench.audit.terminal import opened_report, print_conclusions, table_of
from fairbench.audit.words import chance, count, interval, number, short

_MOST = 12


def print_multiclass(assessment: MulticlassAssessment, conclusions: Conclusions) -> None:
    """Print the report, no line of it longer than `WIDTH`."""
    console = opened_report(assessment.options.path.name, conclusions)
    for kind, parts in (("class", assessment.classes), *assessment.groups.items()):
        console.print(_parts(kind, parts))
    console.print(_mistakes(assessment))
    print_conclusions(console, conclusions)


def _parts(kind: str, parts: Sequence[Part]) -> Table:
    shown = by_accuracy(parts)[:_MOST]
    columns = [(kind, False), ("rows", True), ("labels", True), ("accuracy", True)]
    columns += [("P(worst)", True), ("rank", True), ("ECE", True), ("P(worst)", True)]
    if parts[0].cost is not None:
        columns += [("cost", True), ("P(worst)", True)]
    title = f"By {kind}, the least accurate first, ± half the width of the 95 % interval"
    table = table_of(title, columns)
    for part in shown:
        table.add_row(Text(part.name), count(part.rows), count(part.labels), *_cells(part))
    if len(parts) > _MOST:
        table.caption = f"{len(parts) - _MOST} more are on the page"
    return table


def _cells(part: Part) -> Iterator[str]:
    yield _short(part.accuracy)
    yield chance(part.accuracy.extreme)
    yield f"{part.accuracy.worst_rank:.0f}-{part.accuracy.best_rank:.0f}"
    yield _short(part.calibration)
    yield chance(part.calibration.extreme)
    if part.cost is not None:
        yield _short(part.cost)
        yield chance(part.cost.extreme)


def _short(estimate: Estimate) -> str:
    return short(estimate.value, estimate.lower, estimate.upper)


def _mistakes(assessment: MulticlassAssessment) -> Table:
    columns = [("true class", False), ("predicted", False), ("labels", True)]
    columns += [("share of those predicted so", True), ("95 % interval", True)]
    table = table_of("Most frequent mistakes", columns)
    for each in assessment.mistakes[:_MOST]:
        ends = interval(each.share.lower, each.share.upper)
        names = Text(each.target), Text(each.prediction)
        table.add_row(*names, count(each.count), number(each.share.value), ends)
    return table


def by_accuracy(parts: Sequence[Part]) -> list[Part]:
    """Return parts with the least accurate first."""
    return sorted(parts, key=lambda part: part.accuracy.value)
