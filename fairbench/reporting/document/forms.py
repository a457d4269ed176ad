"""A document, or one of its tables, as Markdown, LaTeX, JSON and Word.

LaTeX is a file that can be typeset as it is. JSON is the data that a document was made of, or its
own sentences, tables and titles. Word files, by python-docx, hold no SVG: the resvg library draws
it as PNG, with the letters that matplotlib brings along, so that the same drawing looks the same on
every machine.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fairbench.core.text import latex, markdown, one_line, visible
from fairbench.reporting.charts import png_of
from fairbench.reporting.document import model as doc

_word = partial(visible, lines=True)  # for a word processor, its lines as lines


def _strong(text: str) -> str:
    """Return a text in bold letters, which blanks at its ends would undo; nothing of none."""
    return f"**{escaped}**" if (escaped := markdown(text).strip()) else ""


def _markdown_table(table: doc.Table) -> str:
    """Return a table in Markdown."""
    header, *rows = _lines_of(table, markdown)
    columns = table.without_bars.columns
    rule = [":---" if column.align == "left" else "---:" for column in columns]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *rows))


def to_markdown(document: doc.Document) -> str:
    """Return a document in Markdown; figures are named only."""
    parts = [f"# {markdown(document.title)}"]
    every = [*document.first_page, *document.appendix]
    for level, block in _unfolded(every, 2, on_paper=False):
        parts += _markdown_block(block, level)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _unfolded(
    blocks: Iterable[doc.Block], level: int, *, on_paper: bool = True
) -> Iterator[tuple[int, doc.Block]]:
    """Yield simple blocks one after another, with the level of their headings.

    A heading is a section without blocks; on paper, the titles of tables are headings too.
    """
    for block in blocks:
        if isinstance(block, doc.Details):
            unfolded = doc.Section(doc.plain(block.summary), block.blocks)
            block = block.on_paper if on_paper else unfolded
        headed = on_paper or isinstance(block, doc.Section)
        if headed and isinstance(block, doc.Section | doc.Table) and block.title:
            yield level, doc.Section(block.title, [])
        if isinstance(block, doc.Section):
            yield from _unfolded(block.blocks, level + 1, on_paper=on_paper)
        else:
            yield level, block


def _lines_of(table: doc.Table, escape: Callable[[str], str]) -> Iterator[list[str]]:
    """Yield the titles and then the cells of each row of a table, as escaped texts."""
    table = table.without_bars
    yield [escape(column.title) for column in table.columns]
    for row in table.rows:
        yield [escape(doc.cell_text(*pair)) for pair in zip(row, table.columns, strict=True)]


# Lists, quotations, lines under headings, and rules.
_BEGINS = re.compile(r"^(\d*)([-+.)](?=\s|$)|[>=]|-(?=[-\s]+$))")


def _markdown_paragraph(text: str) -> str:
    """Return a text that is a paragraph or an item of Markdown, and no other kind of block."""
    # Four blanks would make it code.
    return _BEGINS.sub(r"\1\\\2", markdown(text).lstrip(" "), count=1)


def _markdown_block(block: doc.Block, level: int) -> Iterator[str]:
    """Yield the Markdown paragraphs of a block; `level` is that of its headings."""
    match block:
        case doc.Section():
            yield f"{'#' * level} {markdown(block.title)}"
        case doc.Table():
            if block.title:
                yield _strong(block.title)
            yield _markdown_table(block)
            if block.caption:
                yield markdown(block.caption)
        case doc.Paragraph(style="warning"):
            yield _strong(doc.plain(block.text))
        case doc.Paragraph():
            yield _markdown_paragraph(doc.plain(block.text))
        case doc.Items():
            yield "\n".join(f"- {_markdown_paragraph(doc.plain(item))}" for item in block.items)
        case doc.Figure():
            yield _figure_name(block)
        case doc.Gallery():
            yield from map(_figure_name, block.figures)


def _figure_name(figure: doc.Figure) -> str:
    return f"({_on_the_page(figure, markdown)})"


def _on_the_page(figure: doc.Figure, escape: Callable[[str], str]) -> str:
    """Return a sentence on the file of a figure, for a form without pictures."""
    return f"The figure “{escape(' '.join(figure.title.split()))}” is on the HTML page"


_HEADINGS = ("section", "subsection", "subsubsection", "paragraph")
_LONGEST = 40  # rows that fit on a page; longer tables are split


def to_latex(document: doc.Document) -> str:
    """Return a document as one LaTeX file, which names the files of its figures."""
    title = _tex(document.title)
    preamble = (Path(__file__).with_name("templates") / "document.tex").read_text("utf-8")
    parts = [preamble, rf"\title{{{title}}}", r"\date{}", r"\begin{document}", r"\maketitle"]
    first, appendix = (
        [part for level, block in _unfolded(page, 0) for part in _latex_block(block, level)]
        for page in (document.first_page, document.appendix)
    )
    between = [r"\clearpage"] if document.made is not None else []
    parts += [*first, *between, *appendix]
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def _latex_block(block: doc.Block, level: int) -> Iterator[str]:
    """Yield the LaTeX paragraphs of a block; `level` is that of its headings."""
    match block:
        case doc.Section():
            kind = _HEADINGS[min(level, len(_HEADINGS) - 1)]
            yield rf"\{kind}*{{{_tex(block.title)}}}"
        case doc.Table():
            yield from _latex_tables(block)
            if block.explanation:
                yield rf"{{\small {_tex(block.explanation)}}}"
        case doc.Paragraph(style="warning"):
            yield rf"\textbf{{{_tex(block.text)}}}"
        case doc.Paragraph():
            yield _tex(block.text)
        case doc.Items():
            lines = [rf"\item {_tex(item)}" for item in block.items]
            if lines:
                yield "\n".join([r"\begin{itemize}", *lines, r"\end{itemize}"])
        case doc.Figure():
            caption = doc.plain(block.caption) or block.title
            text = f"{_on_the_page(block, latex)}. {_tex(caption)}"
            yield rf"\emph{{{text}}}"
        case doc.Gallery():
            if block.caption:
                yield _tex(block.caption)
            for figure in block.figures:
                yield from _latex_block(figure, level)


def _tex(text: doc.Text) -> str:
    """Return a text in one line of LaTeX."""
    return latex(one_line(doc.plain(text)))


def _latex_tables(table: doc.Table) -> Iterator[str]:
    """Yield a table no wider than the page, in parts if it is longer than a page."""
    for start in range(0, max(len(table.rows), 1), _LONGEST):
        rules = frozenset(rule - start for rule in table.rules if rule > start)
        part = doc.Table(table.columns, table.rows[start : start + _LONGEST], rules=rules)
        yield rf"\fitted{{{_latex_table(part).rstrip()}}}"


def _latex_table(table: doc.Table) -> str:
    """Return a table in LaTeX, for the package booktabs."""
    header, *rows = _lines_of(table, latex)
    alignment = "".join(column.align[0] for column in table.without_bars.columns)
    body = [r"\toprule", _latex_row(header), r"\midrule"]
    for number, cells in enumerate(rows):
        body += [r"\midrule"] if number > 0 and number in table.rules else []
        body.append(_latex_row(cells))
    lines = "\n".join([*body, r"\bottomrule"])
    return f"\\begin{{tabular}}{{{alignment}}}\n{lines}\n\\end{{tabular}}\n"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def to_json(document: doc.Document) -> str:
    """Return a document as JSON; numbers that do not exist are null."""
    content = dict(document.data) or _json_of(document)
    if document.summary is not None:
        content["summary"] = _json_summary(document.summary)
    if document.made is not None:
        content["made"] = asdict(document.made)
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"


def _json_summary(summary: doc.ExecutiveSummary) -> dict[str, Any]:
    """Return the parts of a summary as lists of sentences, and what else a first page has."""
    figures = summary.key_figures
    return {
        "found": [*summary.found, *summary.still_open],
        **{name: getattr(summary, name) for name in ("sure", "unseen", "todo")},
        "still_open": summary.still_open,
        "audited": {term: doc.plain(text) for term, text in summary.audited},
        "key_figures": None if figures is None else _json_table(figures),
    }


def finite(value: Any, shown: Callable[[str], str] = str) -> Any:
    """Return a value in plain types, with null for every number that is none.

    Parameters
    ----------
    shown : how texts are shown.
    """
    if is_dataclass(value):
        return {field.name: finite(getattr(value, field.name), shown) for field in fields(value)}
    if isinstance(value, dict):
        return {finite(key, shown): finite(entry, shown) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item, shown) for item in value]
    if isinstance(value, str):
        return shown(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json_of(document: doc.Document) -> dict[str, Any]:
    """Return a document as nested dictionaries and lists."""
    return {
        "title": document.title,
        "verdict": asdict(document.verdict) if document.verdict else None,
        "sections": _json_blocks([*document.lead, *document.sections]),
        "notes": list(document.notes),
        "origin": document.origin,
    }


def _json_blocks(blocks: Sequence[doc.Block]) -> list[dict[str, Any]]:
    return [{"kind": type(block).__name__.lower(), **_json_block(block)} for block in blocks]


def _json_block(block: doc.Block) -> dict[str, Any]:
    """Return a block as plain values."""
    match block:
        case doc.Section():
            return {"title": block.title, "name": block.name, "blocks": _json_blocks(block.blocks)}
        case doc.Details():
            return {"title": doc.plain(block.summary), "blocks": _json_blocks(block.blocks)}
        case doc.Table():
            return _json_table(block)
        case doc.Paragraph():
            return {"text": doc.plain(block.text)}
        case doc.Items():
            return {"items": list(map(doc.plain, block.items))}
        case doc.Figure():
            return {"title": block.title, "caption": doc.plain(block.caption)}
        case doc.Gallery():
            return {"blocks": _json_blocks(list(block.figures))}


def _json_table(table: doc.Table) -> dict[str, Any]:
    table = table.without_bars
    columns = [{"title": column.title, "kind": column.kind} for column in table.columns]
    rows = [list(map(_json_value, row)) for row in table.rows]
    return {"title": table.title, "caption": table.caption, "columns": columns, "rows": rows}


def _json_value(value: Any) -> Any:
    value = doc.as_cell(value).value
    if isinstance(value, tuple) and any(not isinstance(item, float | int) for item in value):
        return doc.plain(value)
    return value.item() if hasattr(value, "item") else value


# Word.

_WIDE = 90  # letters in a row; wider tables get landscape pages
_MARGIN, _SMALL, _TINY = 1.8, 8.0, 6.5  # centimetres, points, points
_WIDEST, _LETTER = 34, 0.2  # letters of a column, centimetres
_DRAWING, _HIGHEST = 8.4, 12.5  # centimetres


def to_word(document: doc.Document) -> bytes:
    """Return a document as the bytes of a ``.docx`` file."""
    from docx import Document as new_file

    file = new_file()
    lies = any(_letters(table) > _WIDE for table in document.tables)
    own_page = document.made is not None
    _page(file.sections[0], lies=lies and not own_page)
    _set_text(file.add_heading(level=0), document.title)
    _blocks(file, document.first_page)
    appendix = list(document.appendix)
    if own_page:
        _tighten(file)
        if appendix:
            _page(file.add_section(), lies=lies)
    _blocks(file, appendix)
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
        [_word(column.title), *(_cell_text(row[i], column) for row in table.rows)]
        for i, column in enumerate(table.columns)
    ]


def _cell_text(value: Any, column: doc.Column) -> str:
    note = doc.as_cell(value).note
    text = doc.cell_text(value, column)
    return _word(f"{text}\n{doc.plain(note)}" if note else text)


def _set_text(paragraph: Any, text: str, *, bold: bool = False) -> None:
    paragraph.add_run(_word(text)).bold = bold or None


def _paragraph(file: Any, text: str, *, bold: bool = False, style: str | None = None) -> None:
    if text:
        _set_text(file.add_paragraph(style=style), text, bold=bold)


def _blocks(file: Any, blocks: Iterable[doc.Block]) -> None:
    """Add blocks to a Word document."""
    for level, block in _unfolded(blocks, 1):
        _word_block(file, block, level)


def _word_block(file: Any, block: doc.Block, level: int) -> None:
    """Add a block to a Word document; `level` is that of its headings."""
    match block:
        case doc.Section():
            _set_text(file.add_heading(level=min(level, 9)), block.title)
        case doc.Table():
            _table(file, block)
            _paragraph(file, block.explanation)
        case doc.Paragraph():
            _paragraph(file, doc.plain(block.text), bold=block.style == "warning")
        case doc.Items():
            for item in block.items:
                _paragraph(file, doc.plain(item), style="List Bullet")
        case doc.Figure():
            _figure(file, block)
        case doc.Gallery():
            _paragraph(file, block.caption)
            for figure in block.figures:
                _figure(file, figure)


def _figure(file: Any, figure: doc.Figure) -> None:
    """Add the pictures of a figure side by side, and its caption."""
    try:
        pictures = [png_of(drawing) for drawing in figure.drawings]
    except ValueError:  # what this machine cannot draw
        pictures = []
    caption = doc.plain(figure.caption) or figure.title
    if not pictures:
        _paragraph(file, f"{_on_the_page(figure, str)}. {caption}", style="Caption")
        return
    text_run = file.add_paragraph().add_run()
    for picture in pictures:
        _picture(text_run, figure, picture)
    _paragraph(file, f"Figure: {caption}", style="Caption")


def _picture(text_run: Any, figure: doc.Figure, content: bytes) -> None:
    """Add a picture of the usual width, or smaller if it is higher than a page."""
    from docx.shared import Cm

    shape = text_run.add_picture(io.BytesIO(content), width=Cm(_DRAWING))
    if shape.height > Cm(_HIGHEST):
        shape.width = int(shape.width * Cm(_HIGHEST) / shape.height)
        shape.height = Cm(_HIGHEST)
    shape._inline.docPr.set("descr", _word(figure.title))


def _text_width(file: Any) -> float:
    """Return how wide the text of the last page is, in centimetres."""
    return float(file.sections[-1].page_width.cm) - 2 * _MARGIN


def _table(file: Any, table: doc.Table) -> None:
    """Add a table that repeats its header on every page and never splits a row."""
    from docx.oxml import OxmlElement

    columns = _columns(table)
    aligned = [column.align for column in table.without_bars.columns]
    word_table = file.add_table(rows=1 + len(table.rows), cols=len(columns), style="Table Grid")
    size = _SMALL if _letters(table) <= 1.6 * _WIDE else _TINY
    _share_width(file, word_table, columns)
    lines = zip(*columns, strict=True)
    for number, (row, texts) in enumerate(zip(word_table.rows, lines, strict=True)):
        head = number == 0
        for cell, text, side in zip(row.cells, texts, aligned, strict=True):
            _fill(cell.paragraphs[0], text, size, bold=head, right=side == "right")
        properties = row._tr.get_or_add_trPr()
        for kept in ("w:cantSplit", "w:tblHeader")[: 1 + head]:
            properties.append(OxmlElement(kept))


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
