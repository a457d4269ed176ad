"""A document as a Word file, by python-docx.

Word files hold no SVG: the resvg library draws it as PNG, with the letters that matplotlib brings
along, so that the same drawing looks the same on every machine.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from fairbench.core.text import word
from fairbench.reporting.charts import png_of
from fairbench.reporting.document import model as doc
from fairbench.reporting.document.plain_text import on_the_page

_WIDE = 90  # letters in a row; wider tables get landscape pages
_MARGIN, _SMALL, _TINY = 1.8, 8.0, 6.5  # centimetres, points, points
_WIDEST, _LETTER = 34, 0.2  # letters of a column, centimetres
_PICTURE, _DRAWING, _GAP, _HIGHEST = 15.0, 8.4, 0.6, 12.5  # centimetres


def to_word(document: doc.Document) -> bytes:
    """Return a document as the bytes of a ``.docx`` file."""
    from docx import Document as new_file

    file = new_file()
    lies = any(_letters(table) > _WIDE for table in document.tables)
    own_page = document.made is not None
    _page(file.sections[0], lies=lies and not own_page)
    _set_text(file.add_heading(level=0), document.title)
    _blocks(file, document.first_page, 1)
    appendix = list(document.appendix)
    if own_page:
        _tighten(file)
        if appendix:
            _page(file.add_section(), lies=lies)
    _blocks(file, appendix, 1)
    content = io.BytesIO()
    file.save(content)
    return content.getvalue()


def _page(section: Any, *, lies: bool) -> None:
    """Set the paper of a section, which lies on its long side or stands."""
    from docx.enum.section import WD_ORIENT
    from docx.shared import Cm

    section.orientation = WD_ORIENT.LANDSCAPE if lies else WD_ORIENT.PORTRAIT
    sides = (Cm(29.7), Cm(21.0)) if lies else (Cm(21.0), Cm(29.7))
    section.page_width, section.page_height = sides
    section.left_margin = section.right_margin = Cm(_MARGIN)
    section.top_margin = section.bottom_margin = Cm(_MARGIN)


def _tighten(file: Any) -> None:
    """Shrink what was written so far so that it fits on one page."""
    from docx.shared import Pt

    for paragraph in file.paragraphs:
        style = paragraph.style.name
        heading = style == "Title" or style.startswith("Heading")
        paragraph.paragraph_format.space_before = Pt(6 if heading else 0)
        paragraph.paragraph_format.space_after = Pt(2)
        paragraph.paragraph_format.line_spacing = 1.0
        for run in paragraph.runs:
            run.font.size = Pt(16 if style == "Title" else 11 if heading else 9)


def _letters(table: doc.Table) -> int:
    """Return how many letters a table is about wide."""
    columns = _columns(replace(table, rows=table.rows[:50]))
    return sum(max(map(len, texts)) for texts in columns)


def _columns(table: doc.Table) -> list[list[str]]:
    """Return the title and the cells of each column as they are written."""
    table = table.without_bars
    return [
        [word(column.title), *(_cell_text(row[i], column) for row in table.rows)]
        for i, column in enumerate(table.columns)
    ]


def _cell_text(value: Any, column: doc.Column) -> str:
    note = doc.as_cell(value).note
    text = doc.cell_text(value, column)
    return word(f"{text}\n{doc.plain(note)}" if note else text)


def _set_text(paragraph: Any, text: str, *, bold: bool = False) -> None:
    paragraph.add_run(word(text)).bold = bold or None


def _paragraph(file: Any, text: str, *, bold: bool = False, style: str | None = None) -> None:
    if text:
        _set_text(file.add_paragraph(style=style), text, bold=bold)


def _blocks(file: Any, blocks: Iterable[doc.Block], level: int) -> None:
    for block in blocks:
        _block(file, block, level)


def _block(file: Any, block: doc.Block, level: int) -> None:
    """Add a block to a Word document; `level` is that of its headings."""
    match block:
        case doc.Details():
            _block(file, block.on_paper, level)
        case doc.Section():
            if block.title:
                _set_text(file.add_heading(level=min(level, 9)), block.title)
            _blocks(file, block.blocks, level + 1)
        case doc.Table():
            if block.title:
                _set_text(file.add_heading(level=min(level, 9)), block.title)
            _table(file, block)
            _paragraph(file, block.explanation)
        case doc.Paragraph():
            _paragraph(file, doc.plain(block.text), bold=block.style == "warning")
        case doc.Items():
            for item in block.shown:
                _paragraph(file, doc.plain(item), style="List Bullet")
        case doc.Definitions():
            for term, text in block.items:
                _paragraph(file, f"{term}: {doc.plain(text)}", style="List Bullet")
        case doc.Commands():
            _paragraph(file, "\n".join(block.lines))
        case doc.Figure():
            _figure(file, block)
        case doc.Gallery():
            _paragraph(file, block.caption)
            _gallery(file, block.figures)


def _figure(file: Any, figure: doc.Figure) -> None:
    """Add the pictures of a figure side by side, and its caption."""
    pictures = _pictures(figure)
    caption = doc.plain(figure.caption) or figure.title
    if not pictures:
        _paragraph(file, f"{on_the_page(figure, str)}. {caption}", style="Caption")
        return
    text_run = file.add_paragraph().add_run()
    for picture in pictures:
        _picture(text_run, figure, picture, _PICTURE if figure.png else _DRAWING)
    _paragraph(file, f"Figure: {caption}", style="Caption")


def _gallery(file: Any, figures: Sequence[doc.Figure]) -> None:
    """Add small figures side by side, each over its caption, in a table without lines."""
    if not figures:
        return
    across = max(int(_text_width(file) / _DRAWING), 1)
    table = file.add_table(rows=-(-len(figures) // across), cols=across)
    for number, figure in enumerate(figures):
        cell = table.cell(number // across, number % across)
        text_run = cell.paragraphs[0].add_run()
        for picture in _pictures(figure):
            _picture(text_run, figure, picture, _DRAWING - _GAP)
        _fill(cell.add_paragraph(), word(doc.plain(figure.caption) or figure.title), _SMALL)
    for row in table.rows:
        _keep_together(row, head=False)


def _pictures(figure: doc.Figure) -> list[bytes]:
    """Return the pictures of a figure; none if its drawings cannot be drawn on this machine."""
    try:
        return [figure.png] if figure.png else [png_of(drawing) for drawing in figure.drawings]
    except ValueError:
        return []


def _picture(text_run: Any, figure: doc.Figure, content: bytes, width: float) -> None:
    """Add a picture of this width in centimetres, or smaller if it is higher than a page."""
    from docx.shared import Cm

    shape = text_run.add_picture(io.BytesIO(content), width=Cm(width))
    if shape.height > Cm(_HIGHEST):
        shape.width = int(shape.width * Cm(_HIGHEST) / shape.height)
        shape.height = Cm(_HIGHEST)
    shape._inline.docPr.set("descr", word(figure.title))


def _text_width(file: Any) -> float:
    """Return how wide the text of the last page is, in centimetres."""
    return float(file.sections[-1].page_width.cm) - 2 * _MARGIN


def _table(file: Any, table: doc.Table) -> None:
    """Add a table that repeats its header on every page and never splits a row."""
    columns = _columns(table)
    aligned = [column.align for column in table.without_bars.columns]
    word_table = file.add_table(rows=1 + len(table.rows), cols=len(columns), style="Table Grid")
    size = _SMALL if _letters(table) <= 1.6 * _WIDE else _TINY
    _share_width(file, word_table, columns)
    for number, (row, texts) in enumerate(
        zip(word_table.rows, zip(*columns, strict=True), strict=True)
    ):
        head = number == 0
        for cell, text, side in zip(row.cells, texts, aligned, strict=True):
            _fill(cell.paragraphs[0], text, size, bold=head, right=side == "right")
        _keep_together(row, head=head)


def _share_width(file: Any, word_table: Any, columns: Sequence[Sequence[str]]) -> None:
    """Give every column of a table as much of the page as its texts need."""
    from docx.shared import Cm

    letters = [2 + min(max(map(len, texts)), _WIDEST) for texts in columns]
    width = min(_text_width(file), _LETTER * sum(letters))
    for column, size in zip(word_table.columns, letters, strict=True):
        column.width = Cm(width * size / sum(letters))


def _fill(
    paragraph: Any, text: str, size: float, *, bold: bool = False, right: bool = False
) -> None:
    """Add a text to a paragraph, in a size and alignment."""
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Pt

    run = paragraph.add_run(text)
    run.font.size = Pt(size)
    run.bold = bold or None
    paragraph.paragraph_format.space_after = Pt(0)
    if right:
        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT


def _keep_together(row: Any, *, head: bool) -> None:
    from docx.oxml import OxmlElement

    properties = row._tr.get_or_add_trPr()
    properties.append(OxmlElement("w:cantSplit"))
    if head:
        properties.append(OxmlElement("w:tblHeader"))
