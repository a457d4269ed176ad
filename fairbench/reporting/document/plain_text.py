"""A document, or one of its tables, as Markdown and as LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairbench.core.escaping import (
    latex,
    latex_comment,
    markdown,
    markdown_code,
    markdown_paragraph,
    markdown_strong,
)
from fairbench.reporting.document.model import (
    Block,
    Column,
    Commands,
    Definitions,
    Details,
    Document,
    Figure,
    Gallery,
    Items,
    Paragraph,
    Section,
    Table,
    plain,
)
from fairbench.reporting.document.values import cell_text


def markdown_table(table: Table) -> str:
    """Return a table in Markdown."""
    header, *rows = _lines(table, markdown)
    rule = [":---" if column.align == "left" else "---:" for column in _columns(table)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *rows))


def latex_table(table: Table) -> str:
    """Return a table in LaTeX, for the package booktabs."""
    header, *rows = _lines(table, latex)
    alignment = "".join(column.align[0] for column in _columns(table))
    body = [r"\toprule", _line(header), r"\midrule"]
    for number, cells in enumerate(rows):
        body += [r"\midrule"] if number > 0 and number in table.rules else []
        body.append(_line(cells))
    lines = "\n".join([*body, r"\bottomrule"])
    return f"\\begin{{tabular}}{{{alignment}}}\n{lines}\n\\end{{tabular}}\n"


def to_markdown(document: Document) -> str:
    """Return a document in Markdown; figures are named only."""
    parts = [f"# {markdown(document.title)}"]
    for block in document.in_order:
        parts += _markdown_block(block, 2)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def to_latex(document: Document) -> str:
    """Return the tables of a document in LaTeX, each after a comment with its title."""
    tables = []
    for table in document.tables:
        tables.append(latex_comment(table.title or document.title) + latex_table(table))
    return "\n".join(tables)


def _columns(table: Table) -> list[Column]:
    return [column for column in table.columns if column.kind != "bar"]


def _lines(table: Table, escape: Callable[[str], str]) -> Iterator[list[str]]:
    shown_columns = [i for i, column in enumerate(table.columns) if column.kind != "bar"]
    yield [escape(table.columns[i].title) for i in shown_columns]
    for row in table.rows:
        yield [escape(cell_text(row[i], table.columns[i])) for i in shown_columns]


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _bullets(items: Sequence[str]) -> str:
    return "\n".join(f"- {markdown_paragraph(item)}" for item in items)


def _markdown_block(block: Block, level: int) -> Iterator[str]:
    """Yield the Markdown paragraphs of a block; `level` is that of its headings."""
    match block:
        case Section():
            if block.title:
                yield f"{'#' * level} {markdown(block.title)}"
            for inner in block.blocks:
                yield from _markdown_block(inner, level + 1)
        case Details():
            yield f"{'#' * level} {markdown(plain(block.summary))}"
            for inner in block.blocks:
                yield from _markdown_block(inner, level + 1)
        case Table():
            if block.title:
                yield markdown_strong(block.title)
            yield markdown_table(block)
            if block.caption:
                yield markdown(block.caption)
        case Paragraph(style="warning"):
            yield markdown_strong(plain(block.text))
        case Paragraph():
            yield markdown_paragraph(plain(block.text))
        case Items():
            yield _bullets([plain(item) for item in block.items] or [block.nothing])
        case Definitions():
            yield "\n".join(f"- {markdown_strong(t)}: {markdown(plain(x))}" for t, x in block.items)
        case Commands():
            yield markdown_code(block.lines)
        case Figure():
            yield _figure_name(block)
        case Gallery():
            yield from map(_figure_name, block.figures)


def _figure_name(figure: Figure) -> str:
    return f"({on_the_page(figure, markdown)})"


def on_the_page(figure: Figure, escape: Callable[[str], str]) -> str:
    """Return a sentence on the file of a figure, for a form without pictures."""
    return f"The figure “{escape(' '.join(figure.title.split()))}” is on the HTML page"
