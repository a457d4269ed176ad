"""A document on a terminal, of any width from 80 columns."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import TypeAlias, TypeVar

from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table as RichTable
from rich.text import Text

from fairbench.core.text import terminal as shown_text
from fairbench.core.text import visible
from fairbench.reporting.document import model as doc

DEFAULT_WIDTH = 100  # columns, if the output is not a terminal
_NARROWEST = 80
_UNPRINTED = (doc.Details, doc.Figure, doc.Gallery)
_FOLDED = 18  # width to which a text column is wrapped if the table is too wide


def terminal(width: int = 0) -> Console:
    """Return a console as wide as the screen, or with this number of columns."""
    if not width and not sys.stdout.isatty():
        width = DEFAULT_WIDTH
    console = Console(width=width or None, highlight=False)
    return console if console.width >= _NARROWEST else Console(width=_NARROWEST, highlight=False)


Item = TypeVar("Item")


def progress(items: Sequence[Item], what: str) -> Iterable[Item]:
    """Yield items one by one; a terminal shows how far it has come, until it has all."""
    console = Console(stderr=True)
    hidden = not console.is_terminal
    return track(items, what, console=console, transient=True, disable=hidden)


MOST_LINES = 60  # of a summary, with the lines that the command prints after it
_LINES_AFTER = 3  # lines that the command prints after a summary: the path of the page


def print_document(document: doc.Document, console: Console | None = None) -> None:
    """Print the summary of a document in at most `MOST_LINES` lines; all of it without a summary.

    Parts of a summary that have no room are left out, what matters least first: they are on the
    page. Tables that are too wide leave out the columns that matter least.
    """
    console = console or terminal()
    if document.summary is None:
        _print_all(document, console)
        return
    parts = list(_summary_parts(document, console))
    printed: list[_Part] = []
    for part in sorted(parts, key=lambda part: part[0]):
        headings = {heading for _, heading, _ in [*printed, part] if heading}
        # Each heading has a blank line before it.
        lines = sum(len(lines) for *_, lines in [*printed, part]) + 2 * len(headings)
        if lines <= MOST_LINES - _LINES_AFTER:
            printed.append(part)
    last = ""
    for _, heading, lines_of_part in (part for part in parts if part in printed):
        if heading and heading != last:
            console.print()
            console.print(shown_text(heading, style="bold"))
        for line in lines_of_part:
            console.print(line, soft_wrap=True)
        last = heading


def _print_all(document: doc.Document, console: Console) -> None:
    """Print all of a document that has no summary."""
    if document.title:
        console.print(shown_text(document.title, style="bold"))
    verdict = document.verdict or doc.Verdict((), ())
    lists = {
        "Notes": document.notes,
        "Can be concluded": verdict.can,  # the end of an output is seen first
        "Cannot be concluded": verdict.cannot,
    }
    blocks: list[doc.Block] = [*map(doc.Paragraph, verdict.basis), *document.lead]
    blocks += document.sections
    blocks += [doc.Section(title, [doc.Items(said)]) for title, said in lists.items() if said]
    if document.warning:
        blocks.insert(0, doc.Paragraph(f"WARNING: {document.warning}", "warning"))
    for block in blocks:
        _print_block(console, block)


# Lines that a summary shows together, or leaves out together: how early they are left out (what has
# the smallest number stays longest), the heading before them, and the lines.
_Part: TypeAlias = tuple[tuple[int, int], str, Sequence[Text]]


_IMPORTANCE = (
    "title", "found", "key_figures", "todo", "still_open", "audited", "sure", "unseen",
)  # fmt: skip
_AT_ONCE = 2  # sentences of a part that matter more than the first of a less important part


def _summary_parts(document: doc.Document, console: Console) -> Iterator[_Part]:
    """Yield all that a summary can show, in the order of the page."""
    summary = document.on_first_page

    def part(name: str, place: int, heading: str, text: Text, later: int = 0) -> _Part:
        return (
            (_IMPORTANCE.index(name) + later, place),
            heading,
            list(text.wrap(console, console.width)),
        )

    title = [shown_text(document.title, style="bold")]
    if document.warning:
        title.append(shown_text(f"WARNING: {document.warning}", style="bold red"))
    yield (0, 0), "", [line for text in title for line in text.wrap(console, console.width)]
    figures = summary.key_figures
    for name, (heading, sentences) in summary.named_parts.items():
        for index, sentence in enumerate(sentences):
            later = len(_IMPORTANCE) if index >= _AT_ONCE and name != "found" else 0
            yield part(name, index, heading, shown_text(f"- {sentence}"), later)
        if figures is not None:
            lines = _figure_lines(figures, console)
            yield (_IMPORTANCE.index("key_figures"), 0), "Key figures", lines
            if figures.caption:
                explained = shown_text(figures.caption, style="dim")
                yield part("audited", 0, "Key figures", explained)
            figures = None
    for index, (term, text) in enumerate(document.audited):
        if term != doc.COMMAND:  # which stands a few lines above
            line = shown_text(f"{term}: {doc.plain(text)}")
            yield part("audited", index, summary.audited_title, line)


def _figure_lines(table: doc.Table, console: Console) -> list[Text]:
    """Return a small table in lines."""
    with console.capture() as captured:
        for part in _tables_that_fit(table, console.width):
            console.print(part)
    return [Text.from_ansi(line) for line in captured.get().splitlines()]


def _print_block(console: Console, block: doc.Block) -> None:
    """Print a block, unless it is of a kind that a terminal does not show."""
    match block:
        case doc.Section():
            if not all(isinstance(inner, _UNPRINTED) for inner in block.blocks):
                _print_section(console, block)
        case doc.Table():
            _print_table(console, block)
        case doc.Paragraph():
            style = {"note": "dim", "warning": "bold red"}.get(block.style, "")
            console.print(shown_text(doc.plain(block.text), style=style))
        case doc.Items():
            for item in block.items:
                console.print(shown_text(f"- {doc.plain(item)}"))


def _print_section(console: Console, section: doc.Section) -> None:
    """Print a section; if it holds one table only, the table has its title."""
    first = section.blocks[0]
    if len(section.blocks) == 1 and isinstance(first, doc.Table) and not first.title:
        _print_table(console, replace(first, title=section.title))
        return
    if section.title:
        console.print(shown_text(section.title, style="bold"))
    for block in section.blocks:
        _print_block(console, block)


def _print_table(console: Console, table: doc.Table) -> None:
    """Print a table, in parts that fit the width, between its title and its remarks."""
    if table.title:
        console.print(shown_text(table.title, style="italic"))
    parts = list(_tables_that_fit(table, console.width))
    for part in parts:
        console.print(part)
    remarks = "; ".join(_remarks(table, {str(of.header) for part in parts for of in part.columns}))
    if remarks:
        console.print(shown_text(remarks, style="dim"))
    console.print()


def _tables_that_fit(table: doc.Table, width: int) -> Iterator[RichTable]:
    """Yield a table with the columns that fit, or in several tables if none may be left out."""
    columns, repeated = table.columns, table.repeated
    widths, least = {}, {}  # words can be broken into lines, numbers cannot
    for i, column in enumerate(columns):
        if column.kind == "bar":
            continue
        texts = [str(_cell(row[i], column)) for row in table.rows]
        most = _FOLDED if column.kind == "text" else sys.maxsize
        least[i] = widths[i] = min(most, max(map(len, [column.title, *texts])))
        if column.kind == "text":
            words = (len(word) for text in texts for word in text.split())
            least[i] = min(most, max(words, default=1))
    while not repeated and _total_width(table, widths) > width:
        last = max(widths, key=lambda i: (columns[i].left_out, i))
        if not columns[last].left_out:
            break
        del widths[last]
    too_narrow = _total_width(table, {i: least[i] for i in widths}) > width
    if not repeated and too_narrow:  # for all columns side by side
        names = next((n for n, i in enumerate(widths) if columns[i].kind != "text"), 1)
        repeated = max(names, 1)
    if repeated:
        yield from _split_columns(table, widths, width, repeated)
    else:
        yield _rich_table(table, list(widths))


def _total_width(table: doc.Table, widths: Mapping[int, int]) -> int:
    gaps = sum(1 if table.columns[i].narrow else 2 for i in widths)
    return sum(widths.values()) + gaps


def _split_columns(
    table: doc.Table, widths: Mapping[int, int], width: int, repeated: int
) -> Iterator[RichTable]:
    """Yield parts of as many columns as fit beside the first ones, which each part has."""
    first, shown = list(widths)[:repeated], list[int]()
    for i in list(widths)[repeated:]:
        if shown and _total_width(table, {j: widths[j] for j in (*first, *shown, i)}) > width:
            yield _rich_table(table, [*first, *shown])
            shown = []
        shown.append(i)
    if shown:
        yield _rich_table(table, [*first, *shown])


def _rich_table(table: doc.Table, shown_columns: Sequence[int]) -> RichTable:
    """Return the columns of a table at some positions, for printing."""
    columns = [table.columns[i] for i in shown_columns]
    gap = 0 if any(column.narrow for column in columns) else 1
    rich_table = RichTable(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, gap, 0, 0))
    for column in columns:
        title, is_value = shown_text(column.title), column.kind != "text"
        rich_table.add_column(title, justify=column.align, overflow="fold", no_wrap=is_value)
    rows = table.rows[: table.most or None]
    for number, row in enumerate(rows):
        if number and number in table.rules:
            rich_table.add_section()
        rich_table.add_row(*(_cell(row[i], table.columns[i]) for i in shown_columns))
    return rich_table


def _cell(value: object, column: doc.Column) -> Text:
    """Return a cell as text, with what stands around its value and its note."""
    cell = doc.as_cell(value)
    if cell.value is not None and column.kind == "estimate":
        text = _half_width(*cell.value)
    else:
        text = doc.value_text(cell.value, column)
    text = visible(f"{cell.before}{text}{doc.plain(cell.after)}")
    return shown_text(f"{text} {doc.plain(cell.note)}" if cell.note else text)


def _remarks(table: doc.Table, shown: Collection[str]) -> Iterator[str]:
    """Yield the caption without explanations of columns that are not shown, and further remarks."""
    hidden = {f"{column.title}: " for column in table.columns if column.title not in shown}
    if table.caption:
        parts = table.caption.split("; ")
        yield "; ".join(part for part in parts if not part.startswith(tuple(hidden)))
    if any(column.kind == "estimate" for column in table.columns):
        yield "±: half the width of the 95 % interval"
    if table.most and len(table.rows) > table.most:
        yield f"{len(table.rows) - table.most} more are on the page"


def _half_width(value: float, lower: float, upper: float) -> str:
    """Return a share and half the width of its interval in nine characters."""
    if isnan(value):
        return "-"
    half = "" if isnan(lower) else f" ±{(upper - lower) / 2:.2f}".replace("0.", ".")
    return f"{value:.2f}{half}"
