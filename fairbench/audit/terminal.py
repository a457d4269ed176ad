"""The audit's report on the terminal, in 100 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairbench.audit.assessment import Assessment
from fairbench.audit.conclusions import Conclusions, verdict_words
from fairbench.audit.gaps import Gap
from fairbench.audit.view import MAIN_RATES, GroupRow, group_rows, needed_words
from fairbench.audit.words import RATES, chance, count, interval, number, short, signed

WIDTH = 100
_MOST_GROUPS = 16


def print_report(assessment: Assessment, conclusions: Conclusions) -> None:
    """Print the report, no line of it longer than `WIDTH`."""
    console = opened_report(assessment.options.path.name, conclusions)
    console.print(_group_table(group_rows(assessment)))
    console.print(_gap_table(assessment))
    print_conclusions(console, conclusions)


def opened_report(name: str, conclusions: Conclusions) -> Console:
    """Print a report's title, warning and basis, and return where the rest is to be printed."""
    console = Console(width=WIDTH, highlight=False)
    console.print(Text(f"Audit of {name}", style="bold"))
    if conclusions.warning:
        console.print(Text(f"WARNING: {conclusions.warning}", style="bold red"))
    for sentence in conclusions.basis:
        console.print(Text(sentence))
    return console


def print_conclusions(console: Console, conclusions: Conclusions) -> None:
    """Print what can and what cannot be concluded, and the notes."""
    for title, sentences in (
        ("Can be concluded", conclusions.can),
        ("Cannot be concluded", conclusions.cannot),
        ("Notes", conclusions.notes),
    ):
        if sentences:
            console.print(Text(title, style="bold"))
            for sentence in sentences:
                console.print(Text(f"- {sentence}"))


def table_of(title: str, columns: Sequence[tuple[str, bool]]) -> Table:
    """Return an empty table with these columns and whether each is aligned to the right."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.caption_justify = "left"
    for name, right in columns:
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    return table


def _group_table(rows: Sequence[GroupRow]) -> Table:
    names = [name for name, _ in MAIN_RATES]
    columns = [("group", False), ("rows", True), ("labels", True), *((n, True) for n in names)]
    table = table_of("Rates by group, ± half the width of the 95 % interval", columns)
    for row in rows[:_MOST_GROUPS]:
        rates = [short(*row.rates[name]) for _, name in MAIN_RATES]
        table.add_row(Text(row.group), count(row.rows), count(row.labels), *rates)
    if len(rows) > _MOST_GROUPS:
        table.caption = f"{len(rows) - _MOST_GROUPS} more groups are on the page"
    return table


def _gap_table(assessment: Assessment) -> Table:
    small = f"P(<{assessment.options.epsilon:g})"
    columns = [("groups", False), ("gap in", False), ("size", True), ("95 % interval", True)]
    columns += [(small, True), ("verdict", False), ("more labels", True)]
    title = "Gaps between groups, posterior means; of two groups the second less the first"
    table = table_of(title, columns)
    needed = {id(each.gap): needed_words(each) for each in assessment.needed}
    for gap in assessment.gaps:
        table.add_row(*_gap_cells(gap), needed.get(id(gap), ""))
    return table


def _gap_cells(gap: Gap) -> Iterator[Text | str]:
    yield Text(gap.attribute)
    yield RATES[gap.metric]
    yield signed(gap.value) if gap.signed else number(gap.value)
    yield interval(gap.lower, gap.upper)
    yield chance(gap.small)
    yield verdict_words(gap)
