"""A document, or one of its tables, as text: Markdown, LaTeX and JSON.

LaTeX is a file that can be typeset as it is. JSON is the data that a document was made of, or its
own sentences, tables and titles.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields, is_dataclass
from importlib.resources import files
from typing import Any

from fairbench.core.text import (
    latex,
    markdown,
    markdown_code,
    markdown_paragraph,
    markdown_strong,
    one_line,
)
from fairbench.reporting.document import model as doc


def markdown_table(table: doc.Table) -> str:
    """Return a table in Markdown."""
    header, *rows = lines_of(table, markdown)
    columns = table.without_bars.columns
    rule = [":---" if column.align == "left" else "---:" for column in columns]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *rows))


def to_markdown(document: doc.Document) -> str:
    """Return a document in Markdown; figures are named only."""
    parts = [f"# {markdown(document.title)}"]
    for block in document.in_order:
        parts += _markdown_block(block, 2)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def lines_of(table: doc.Table, escape: Callable[[str], str]) -> Iterator[list[str]]:
    """Yield the titles and then the cells of each row of a table, as escaped texts."""
    table = table.without_bars
    yield [escape(column.title) for column in table.columns]
    for row in table.rows:
        yield [escape(doc.cell_text(*pair)) for pair in zip(row, table.columns, strict=True)]


def _markdown_block(block: doc.Block, level: int) -> Iterator[str]:
    """Yield the Markdown paragraphs of a block; `level` is that of its headings."""
    match block:
        case doc.Section():
            if block.title:
                yield f"{'#' * level} {markdown(block.title)}"
            for inner in block.blocks:
                yield from _markdown_block(inner, level + 1)
        case doc.Details():
            yield from _markdown_block(doc.Section(doc.plain(block.summary), block.blocks), level)
        case doc.Table():
            if block.title:
                yield markdown_strong(block.title)
            yield markdown_table(block)
            if block.caption:
                yield markdown(block.caption)
        case doc.Paragraph(style="warning"):
            yield markdown_strong(doc.plain(block.text))
        case doc.Paragraph():
            yield markdown_paragraph(doc.plain(block.text))
        case doc.Items():
            yield "\n".join(f"- {markdown_paragraph(doc.plain(item))}" for item in block.shown)
        case doc.Definitions():
            yield "\n".join(
                f"- {markdown_strong(t)}: {markdown(doc.plain(x))}" for t, x in block.items
            )
        case doc.Commands():
            yield markdown_code(block.lines)
        case doc.Figure():
            yield _figure_name(block)
        case doc.Gallery():
            yield from map(_figure_name, block.figures)


def _figure_name(figure: doc.Figure) -> str:
    return f"({on_the_page(figure, markdown)})"


def on_the_page(figure: doc.Figure, escape: Callable[[str], str]) -> str:
    """Return a sentence on the file of a figure, for a form without pictures."""
    return f"The figure “{escape(' '.join(figure.title.split()))}” is on the HTML page"


_PREAMBLE = r"""% Typeset it with lualatex or xelatex, which know the letters of every language.
\documentclass[10pt]{article}
\usepackage[a4paper,margin=2cm]{geometry}
\usepackage{iftex}
\ifPDFTeX\usepackage[T1]{fontenc}\fi
\usepackage{booktabs,graphicx,longtable}
\setlength{\parindent}{0pt}
\setlength{\parskip}{4pt}
\newsavebox{\fittedbox}
\newcommand{\fitted}[1]{\sbox{\fittedbox}{#1}%
  \ifdim\wd\fittedbox>\linewidth\resizebox{\linewidth}{!}{\usebox{\fittedbox}}%
  \else\usebox{\fittedbox}\fi}
"""
_HEADINGS = ("section", "subsection", "subsubsection", "paragraph")
_LONGEST = 40  # rows that fit on a page; longer tables are split


def to_latex(document: doc.Document) -> str:
    """Return a document as one LaTeX file, which names the files of its figures."""
    title = latex(one_line(document.title))
    parts = [_PREAMBLE, rf"\title{{{title}}}", r"\date{}", r"\begin{document}", r"\maketitle"]
    parts += _latex_blocks(document.first_page, 0)
    parts += [r"\clearpage"] if document.made is not None else []
    parts += _latex_blocks(document.appendix, 0)
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def _latex_heading(level: int, title: str) -> str:
    kind = _HEADINGS[min(level, len(_HEADINGS) - 1)]
    return rf"\{kind}*{{{latex(one_line(title))}}}"


def _latex_blocks(blocks: Iterable[doc.Block], level: int) -> Iterator[str]:
    for block in blocks:
        yield from _latex_block(block, level)


def _latex_block(block: doc.Block, level: int) -> Iterator[str]:
    """Yield the LaTeX paragraphs of a block; `level` is that of its headings."""
    match block:
        case doc.Details():
            yield from _latex_block(block.on_paper, level)
        case doc.Section():
            if block.title:
                yield _latex_heading(level, block.title)
            yield from _latex_blocks(block.blocks, level + 1)
        case doc.Table():
            if block.title:
                yield _latex_heading(level, block.title)
            yield from _latex_tables(block)
            caption = block.explanation
            if caption:
                yield rf"{{\small {latex(one_line(caption))}}}"
        case doc.Paragraph(style="warning"):
            yield rf"\textbf{{{latex(one_line(doc.plain(block.text)))}}}"
        case doc.Paragraph():
            yield latex(one_line(doc.plain(block.text)))
        case doc.Items():
            lines = [rf"\item {latex(one_line(doc.plain(item)))}" for item in block.shown]
            if lines:
                yield "\n".join([r"\begin{itemize}", *lines, r"\end{itemize}"])
        case doc.Definitions():
            lines = [
                rf"\item[{{{latex(one_line(t))}}}] {latex(one_line(doc.plain(x)))}"
                for t, x in block.items
            ]
            yield "\n".join([r"\begin{description}", *lines, r"\end{description}"])
        case doc.Commands():
            for line in block.lines:
                yield rf"\texttt{{{latex(one_line(line))}}}"
        case doc.Figure():
            caption = doc.plain(block.caption) or block.title
            text = f"{on_the_page(block, latex)}. {latex(one_line(caption))}"
            yield rf"\emph{{{text}}}"
        case doc.Gallery():
            if block.caption:
                yield latex(one_line(block.caption))
            yield from _latex_blocks(list(block.figures), level)


def _latex_tables(table: doc.Table) -> Iterator[str]:
    """Yield a table no wider than the page, in parts if it is longer than a page."""
    for start in range(0, max(len(table.rows), 1), _LONGEST):
        rows = [
            [doc.as_cell(value) for value in row] for row in table.rows[start : start + _LONGEST]
        ]
        rules = frozenset(rule - start for rule in table.rules if rule > start)
        part = doc.Table(table.columns, rows, rules=rules)
        yield rf"\fitted{{{latex_table(part).rstrip()}}}"


def latex_table(table: doc.Table) -> str:
    """Return a table in LaTeX, for the package booktabs."""
    header, *rows = lines_of(table, latex)
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
        content["summary"] = _json_summary(document.summary, first_page=document.made is not None)
    if document.made is not None:
        content["made"] = asdict(document.made)
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"


def _json_summary(summary: doc.ExecutiveSummary, *, first_page: bool) -> dict[str, Any]:
    """Return the parts of a summary as lists of sentences, and what else a first page has."""
    parts: dict[str, Any] = {"found": [*summary.found, *summary.still_open]}
    parts |= {name: getattr(summary, name) for name in ("sure", "unseen", "todo")}
    if not first_page:
        return parts
    figures = summary.key_figures
    return {
        **parts,
        "still_open": summary.still_open,
        "audited": {term: doc.plain(text) for term, text in summary.audited},
        "key_figures": None if figures is None else _json_table(figures),
    }


def schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a ``document`` without data of its own."""
    text = files("fairbench.reporting.document").joinpath("templates", f"{name}.schema.json")
    parsed: dict[str, Any] = json.loads(text.read_text(encoding="utf-8"))
    return parsed


def finite(value: Any) -> Any:
    """Return a value in plain types, with null for every number that is none."""
    if is_dataclass(value):
        return {field.name: finite(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
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
            return {"items": [doc.plain(item) for item in block.items]}
        case doc.Definitions():
            return {"items": {term: doc.plain(text) for term, text in block.items}}
        case doc.Commands():
            return {"lines": list(block.lines)}
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
