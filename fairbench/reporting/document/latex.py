"""A document as a LaTeX file that can be typeset as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairbench.core.escaping import latex, one_line
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
from fairbench.reporting.document.plain_text import latex_table, on_the_page

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


def to_latex_document(document: Document) -> str:
    """Return a document as one LaTeX file, which names the files of its figures."""
    title = latex(one_line(document.title))
    parts = [_PREAMBLE, rf"\title{{{title}}}", r"\date{}", r"\begin{document}", r"\maketitle"]
    parts += _blocks(document.first_page, 0)
    parts += [r"\clearpage"] if document.made is not None else []
    parts += _blocks(document.appendix, 0)
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def _heading(level: int, title: str) -> str:
    kind = _HEADINGS[min(level, len(_HEADINGS) - 1)]
    return rf"\{kind}*{{{latex(one_line(title))}}}"


def _items(sentences: Sequence[str]) -> str:
    lines = [rf"\item {latex(one_line(sentence))}" for sentence in sentences]
    return "\n".join([r"\begin{itemize}", *lines, r"\end{itemize}"])


def _blocks(blocks: Iterable[Block], level: int) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, level)


def _block(block: Block, level: int) -> Iterator[str]:
    """Yield the LaTeX paragraphs of a block; `level` is that of its headings."""
    match block:
        case Details():
            yield from _block(block.on_paper, level)
        case Section():
            if block.title:
                yield _heading(level, block.title)
            yield from _blocks(block.blocks, level + 1)
        case Table():
            if block.title:
                yield _heading(level, block.title)
            yield from _tables(block)
            caption = block.explanation
            if caption:
                yield rf"{{\small {latex(one_line(caption))}}}"
        case Paragraph(style="warning"):
            yield rf"\textbf{{{latex(one_line(plain(block.text)))}}}"
        case Paragraph():
            yield latex(one_line(plain(block.text)))
        case Items():
            sentences = [plain(item) for item in block.items] or (
                [block.nothing] if block.nothing else []
            )
            if sentences:
                yield _items(sentences)
        case Definitions():
            lines = (
                rf"\item[{{{latex(one_line(t))}}}] {latex(one_line(plain(x)))}"
                for t, x in block.items
            )
            yield "\n".join([r"\begin{description}", *lines, r"\end{description}"])
        case Commands():
            for line in block.lines:
                yield rf"\texttt{{{latex(one_line(line))}}}"
        case Figure():
            caption = plain(block.caption) or block.title
            text = f"{on_the_page(block, latex)}. {latex(one_line(caption))}"
            yield rf"\emph{{{text}}}"
        case Gallery():
            if block.caption:
                yield latex(one_line(block.caption))
            yield from _blocks(list(block.figures), level)


def _tables(table: Table) -> Iterator[str]:
    """Yield a table no wider than the page, in parts if it is longer than a page."""
    for start in range(0, max(len(table.rows), 1), _LONGEST):
        rows = [[as_cell(value) for value in row] for row in table.rows[start : start + _LONGEST]]
        rules = frozenset(rule - start for rule in table.rules if rule > start)
        part = Table(table.columns, rows, rules=rules)
        yield rf"\fitted{{{latex_table(part).rstrip()}}}"
