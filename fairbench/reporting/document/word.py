"""A document as a Word file, by python-docx."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from fairbench.core.escaping import word
from fairbench.reporting.document.model import (
    Block,
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
    as_cell,
    plain,
)
from fairbench.reporting.document.values import cell_text

_WIDE = 90  # letters of a table, from which the pages lie on their long side
_MARGIN, _SMALL, _TINY = 1.8, 8.0, 6.5  # centimetres, points, points
_PICTURE = 15.0  # centimetres


def to_word(document: Document) -> bytes:
    """Return a document as the bytes of a ``.docx`` file; drawings in SVG are named only."""
    from docx import Document as new_file

    file = new_file()
    _page(file, document)
    _set_text(file.add_heading(level=0), document.title)
    _blocks(file, document.in_order, 1)
    content = io.BytesIO()
    file.save(content)
    return content.getvalue()


def _page(file: Any, document: Document) -> None:
    from docx.enum.section import WD_ORIENT
    from docx.shared import Cm

    page = file.sections[0]
    page.page_width, page.page_height = Cm(21.0), Cm(29.7)
    if any(_letters(table) > _WIDE for table in document.tables):
        page.orientation = WD_ORIENT.LANDSCAPE
        page.page_width, page.page_height = Cm(29.7), Cm(21.0)
    page.left_margin = page.right_margin = page.top_margin = page.bottom_margin = Cm(_MARGIN)


def _letters(table: Table) -> int:
    """Return how many letters a table is about wide."""
    return sum(
        max(map(len, [column.title, *_texts(table, place, 50)]))
        for place, column in enumerate(table.columns)
        if column.kind != "bar"
    )


def _texts(table: Table, place: int, most: int | None = None) -> list[str]:
    """Return the cells of a column as they are written."""
    return [_cell_text(row[place], table, place) for row in table.rows[:most]]


def _cell_text(value: Any, table: Table, place: int) -> str:
    note = as_cell(value).note
    text = cell_text(value, table.columns[place])
    return word(f"{text}\n{plain(note)}" if note else text)


def _set_text(place: Any, text: str, *, bold: bool = False) -> None:
    place.add_run(word(text)).bold = bold or None


def _paragraph(file: Any, text: str, *, bold: bool = False, style: str | None = None) -> None:
    if text:
        _set_text(file.add_paragraph(style=style), text, bold=bold)


def _blocks(file: Any, blocks: Iterable[Block], level: int) -> None:
    for each in blocks:
        _block(file, each, level)


def _block(file: Any, block: Block, level: int) -> None:
    match block:
        case Details():
            _block(file, block.on_paper, level)
        case Section():
            if block.title:
                _set_text(file.add_heading(level=min(level, 9)), block.title)
            _blocks(file, block.blocks, level + 1)
        case Table():
            if block.title:
                _set_text(file.add_heading(level=min(level, 9)), block.title)
            _table(file, block)
            _paragraph(file, block.explanation)
        case Paragraph():
            _paragraph(file, plain(block.text), bold=block.style == "warning")
        case Items():
            for each in block.items or ([block.nothing] if block.nothing else []):
                _paragraph(file, plain(each), style="List Bullet")
        case Definitions():
            for term, text in block.items:
                _paragraph(file, f"{term}: {plain(text)}", style="List Bullet")
        case Commands():
            _paragraph(file, "\n".join(block.lines))
        case Figure():
            _figure(file, block)
        case Gallery():
            _paragraph(file, block.caption)
            _blocks(file, list(block.figures), level)


def _figure(file: Any, figure: Figure) -> None:
    from docx.shared import Cm

    if figure.png:
        file.add_picture(io.BytesIO(figure.png), width=Cm(_PICTURE))
    _paragraph(file, f"Figure: {plain(figure.caption) or figure.title}", style="Caption")


def _table(file: Any, table: Table) -> None:
    """Add a table whose header stands again on every page, and whose rows are never cut."""
    places = [i for i, column in enumerate(table.columns) if column.kind != "bar"]
    drawn = file.add_table(rows=1 + len(table.rows), cols=len(places), style="Table Grid")
    size = _SMALL if _letters(table) <= 1.6 * _WIDE else _TINY
    columns = [[word(table.columns[i].title), *_texts(table, i)] for i in places]
    for number, (row, texts) in enumerate(zip(drawn.rows, zip(*columns, strict=True), strict=True)):
        head = number == 0
        for cell, text, place in zip(row.cells, texts, places, strict=True):
            right = table.columns[place].align == "right"
            _fill(cell.paragraphs[0], text, size, bold=head, right=right)
        _keep_together(row, head=head)


def _fill(paragraph: Any, text: str, size: float, *, bold: bool, right: bool) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Pt

    run = paragraph.add_run(text)
    run.font.size, run.bold = Pt(size), bold or None
    paragraph.paragraph_format.space_after = Pt(0)
    if right:
        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT


def _keep_together(row: Any, *, head: bool) -> None:
    from docx.oxml import OxmlElement

    properties = row._tr.get_or_add_trPr()
    properties.append(OxmlElement("w:cantSplit"))
    if head:
        properties.append(OxmlElement("w:tblHeader"))
