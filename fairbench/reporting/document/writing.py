"""A document as files in a folder, and as Python code and notebooks hold it.

A page is one HTML file that needs nothing else, every text of it escaped; a PDF is the page printed
by a browser that is on this machine. `write_document` writes the forms that a command is asked for.
A `DocumentReport` is what a call returns: it is shown, printed, taken apart into data frames and
figures, and saved.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isnan
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fairbench.core.errors import UserError, check_choice, refused
from fairbench.core.files import is_file, opened, write_bytes, write_text
from fairbench.core.text import csv_text, file_name, interval, number
from fairbench.core.text import html as escape
from fairbench.data.columns import unique_names
from fairbench.reporting.charts import Drawing, file_of, png_of
from fairbench.reporting.document import model as doc
from fairbench.reporting.document.forms import to_json, to_latex, to_markdown, to_word
from fairbench.reporting.document.terminal import print_document, terminal
from fairbench.reporting.group_tables import sentence_of

_UNSORTED = ("text", "interval", "bar")


def to_html(document: doc.Document, *, on_paper: bool = False) -> str:
    """Return a document as a page without requests to anywhere; on paper all is unfolded."""
    pages = _environment()
    js = _source("document.js")
    # By its policy, the page may run its own script, and load nothing.
    script = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    return pages.get_template("document.html.jinja").render(
        document=document,
        on_paper=on_paper,
        css=_source("document.css"),
        js=js,
        script=script,
        letter_size=_letter_size(document),
    )


_LETTER_SIZE, _SMALLEST, _ROOM = 8.5, 4.5, 2600  # points, points, letters of the first in one page


def _letter_size(document: doc.Document) -> str:
    """Return how large the letters of the first page are on paper, so that they fit on one page."""
    parts = document.on_first_page.named_parts.values()
    sentences = [sentence for _, part in parts for sentence in part]
    audited_texts = [doc.plain(text) for _, text in document.audited]
    letters = sum(map(len, [document.title, document.warning, *sentences, *audited_texts]))
    return f"{max(_LETTER_SIZE * min(1, (_ROOM / max(letters, 1)) ** 0.5), _SMALLEST):.2g}"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """Return the environment of the templates, which refuses undefined names."""
    pages = Environment(
        loader=PackageLoader("fairbench.reporting.document"),
        autoescape=True,
        finalize=lambda value: escape(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"inline": _inline, "table": _table, "svg": Markup, "tagged": _tag_attributes}
    pages.tests |= {"kind": lambda block, name: type(block).__name__ == name}
    return pages


def _source(name: str) -> Markup:
    pages = _environment()
    return Markup(pages.loader.get_source(pages, name)[0])  # type: ignore[union-attr]


def _inline(text: doc.Text) -> Markup:
    """Return a text with its decoration."""
    if isinstance(text, str):
        return escape(text)
    return Markup("").join(map(_piece, text))


def _piece(piece: doc.Inline) -> Markup:
    """Return a piece of a text as HTML."""
    match piece:
        case doc.Code():
            return Markup("<code>{}</code>").format(escape(str(piece)))
        case doc.Mark():
            return Markup('<span class="mark {}">{}</span>').format(piece.style, escape(piece.text))
        case doc.Link():
            text = _piece(doc.Code(piece.text)) if piece.code else escape(piece.text)
            return Markup('<a href="{}">{}</a>').format(piece.target, text)
    return escape(piece)


def _tag_attributes(tags: doc.Tags) -> Markup:
    """Return tags as attributes, which the page's filters read."""
    one = Markup(' data-{}="{}"')
    return Markup("").join(one.format(name, escape(value)) for name, value in tags.items())


def _table(block: doc.Table) -> Markup:
    """Return a table; of thousands of cells, each is a few pieces of text put together."""
    caption = block.explanation
    kind = f' class="{block.style}"' if block.style else ""
    wide = _width(block)
    breaks = ";--break:normal" if wide > _WIDEST else ""
    parts = [f'<div class="wide"><table{kind} style="--w:{wide}{breaks}">']
    if caption:
        parts.append(f"<caption>{escape(caption)}</caption>")
    parts += ["<thead><tr>", *(_head(column, block) for column in block.columns)]
    parts.append("</tr></thead><tbody>\n")
    for row_index, row in enumerate(block.rows):
        row_class = ' class="first"' if row_index in block.rules else ""
        tags = _tag_attributes(block.tags[row_index]) if block.tags else ""
        parts.append(f"<tr{row_class}{tags}>")
        parts += [_cell(cell, c, block) for cell, c in zip(row, block.columns, strict=True)]
        parts.append("</tr>\n")
    return Markup("".join([*parts, "</tbody></table></div>"]))


_WIDEST = 180  # letters in a row that are still legible on paper
_TALLIED = 200  # rows from which the width of a table is estimated


def _width(block: doc.Table) -> int:
    """Return about how many letters a table is wide, by which it is made to fit on paper."""
    rows, columns = block.rows[:_TALLIED], enumerate(block.columns)
    return sum(max(_letters(column, [row[i] for row in rows])) for i, column in columns)


def _letters(column: doc.Column, cells: Sequence[Any]) -> Iterator[int]:
    """Yield how wide the title of a column and each of its cells is; words can be broken."""
    if column.kind == "bar":
        yield 16
        return
    yield 2 + max(map(len, column.title.split()), default=0)
    for value in cells:
        cell = doc.as_cell(value)
        if cell.value is None:
            continue
        if column.kind == "estimate":
            yield 2 + len(interval(cell.value[1], cell.value[2], column.decimals))
            continue
        text = doc.cell_text(cell, column)
        yield 2 + (min(len(text), _BROKEN) if column.kind == "text" else len(text))


_BROKEN = 16  # letters that a line of text has at least


def _head(column: doc.Column, block: doc.Table) -> str:
    kind = ' class="t"' if column.align == "left" else ""
    sort = " data-sort" if block.sortable and column.title and column.kind != "bar" else ""
    return f'<th{sort} scope="col"{kind}>{escape(column.title)}</th>'


def _cell(value: Any, column: doc.Column, block: doc.Table) -> str:
    """Return a cell as HTML, with those of its attributes that say anything."""
    cell = doc.as_cell(value)
    tag = "th" if column.heads else "td"
    kind = escape(cell.style or ("t" if column.align == "left" else "n"))
    is_sorted = block.sortable and column.kind not in _UNSORTED
    attributes = {
        "class": f"{kind} best" if cell.strong else kind,
        "data-label": escape(column.title) if column.title and not column.heads else None,
        "scope": "row" if column.heads else None,
        "id": escape(cell.name) if cell.name else None,
        "data-value": _exact(cell.value) if is_sorted else None,
        "style": None if cell.shade is None else f"--p:{cell.shade:.2g}",
        "title": escape(cell.hint) if cell.hint else None,
    }
    text = "".join(f' {name}="{said}"' for name, said in attributes.items() if said is not None)
    return f"<{tag}{text}>{_content(cell, column)}</{tag}>"


def _exact(value: Any) -> str:
    """Return the number by which a cell is sorted, the first of several; empty if undefined."""
    if isinstance(value, tuple):
        value = value[0]
    return "" if value is None or isnan(value) else f"{value:.8g}"


def _content(cell: doc.TableCell, column: doc.Column) -> str:
    """Return the content of a cell as HTML."""
    if cell.value is None:
        return ""
    if column.kind == "bar":
        return _bar(cell.value, narrow=column.narrow)
    if isinstance(cell.value, tuple) and column.kind == "text":
        text = str(_inline(cell.value))
    elif column.kind == "estimate":
        value, lower, upper = cell.value
        ends = interval(lower, upper, column.decimals)
        text = f'{number(value, column.decimals)}<br><span class="i">{ends}</span>'
    else:
        text = str(escape(f"{cell.before}{doc.value_text(cell.value, column)}"))
    if cell.mark:
        text = f'<span class="mark {escape(cell.mark)}">{text}</span>'
    if cell.link:
        text = f'<a href="{escape(cell.link)}">{text}</a>'
    note = f"<br><small>{_inline(cell.note)}</small>" if cell.note else ""
    return f"{text}{_inline(cell.after)}{note}"


def _bar(bar: doc.Bar, *, narrow: bool) -> str:
    """Return an interval as a small drawing; negligible values are shaded."""
    parts = []
    lower, value, upper = bar.ends
    if bar.band is not None:
        low, high = bar.band
        parts.append(f'<rect x="{low:g}" y="0" width="{high - low:g}" height="10"/>')
    if bar.zero is not None:
        parts.append(_line("zero", bar.zero, bar.zero, 0, 10))
    parts.append(_line("range", lower, upper, 5, 5))
    if bar.kind == "dot":
        parts.append(f'<circle cx="{value:g}" cy="5" r="3"/>')
    else:
        parts.append(_line("range", value, value, 2, 8))
    kind = "bar" if bar.kind == "dot" else "gap narrow" if narrow else "gap"
    about = 'viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="interval"'
    return f'<svg class="{kind}" {about}>{"".join(parts)}</svg>'


def _line(kind: str, x1: float, x2: float, y1: int, y2: int) -> str:
    ends = f'x1="{x1:g}" x2="{x2:g}" y1="{y1}" y2="{y2}"'
    return f'<line class="{kind}" vector-effect="non-scaling-stroke" {ends}/>'


_SCOPE = "fairbench-report"


def _to_fragment(document: doc.Document) -> str:
    """Return a document as a part of somebody else's page, such as a notebook.

    Its style is that of the page and holds within the part alone; there are no scripts.
    """
    content = to_html(document).partition("<body>")[2].partition("</body>")[0]
    content = re.sub(r"<script>.*?(?:</script>|\Z)", "", content, flags=re.DOTALL)
    style = re.sub(
        r"(?m)(^|[\s}{,])(?::root|html|body)(?=[\s{,])", r"\1:scope", _source("document.css")
    )
    style = f"@scope (.{_SCOPE}) {{\n{style}\n{_source('notebook.css')}}}"
    return f'<div class="{_SCOPE}"><style>{style}</style>{content}</div>'


BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
)
# Only the page itself is loaded, which allows neither scripts of others nor requests: no sandbox is
# needed, and none can be had by root or in a container.
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--no-pdf-header-footer",
)
_SECONDS = 120
_DATES = re.compile(rb"(/(?:CreationDate|ModDate) \(D:)\d{14}[^)]{0,20}\)")


def _browser() -> str | None:
    """Return the path of a browser that can print to PDF, if there is one."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def _no_browser() -> str:
    """Return a sentence on what is missing to make a PDF; empty if nothing is."""
    return "" if _browser() else sentence_of("pdf", "no_browser")


def _to_pdf(document: doc.Document) -> bytes:
    """Return a document as PDF, with everything unfolded.

    The same document is the same to the last byte with the same browser and fonts: the dates in
    the file are those of the document.

    Raises
    ------
    UserError : there is no browser, or it could not print.
    """
    path = _browser()
    if path is None:
        raise UserError(_no_browser())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        write_text(folder / "page.html", to_html(document, on_paper=True), mode=0o600)
        printed = folder / "page.pdf"
        paths = [f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={printed}"]
        line = [path, *_FLAGS, *paths, (folder / "page.html").as_uri()]
        try:
            subprocess.run(line, capture_output=True, timeout=_SECONDS, check=True)
            content = printed.read_bytes()
        except (OSError, subprocess.SubprocessError) as error:
            kind = type(error).__name__
            raise UserError(sentence_of("pdf", "not_printed", path=path, kind=kind)) from error
    return _DATES.sub(rb"\g<1>" + _date(document) + rb"+00'00')", content)


def _date(document: doc.Document) -> bytes:
    """Return the date of a document as PDF writes it; always of the same length."""
    digits = re.sub(r"\D", "", document.made.when) if document.made else ""
    return f"{digits:0<14.14}".encode() if digits else b"20000101000000"


# The forms that documents are written in: the ending of their files, and what makes their content.
FORMS: Mapping[str, tuple[str, Callable[[doc.Document], str | bytes]]] = {
    "html": ("html", to_html),
    "json": ("json", to_json),
    "latex": ("tex", to_latex),
    "markdown": ("md", to_markdown),
    "pdf": ("pdf", _to_pdf),
    "word": ("docx", to_word),
}
USUAL = ("html", "json")


def check_forms(forms: Sequence[str]) -> None:
    """Refuse a form that no document is written in, or that this machine cannot write.

    Raises
    ------
    UserError : an unknown form, which names those there are; or what is missing for one.
    """
    if not forms:
        raise UserError(f"formats=[] writes nothing: name some of {', '.join(FORMS)}")
    for form in forms:
        check_choice("form", form, FORMS)
        if form == "pdf" and (missing := _no_browser()):
            raise UserError(f"formats=[{form}]: {missing}")


def check_page(path: Path) -> None:
    """Refuse to write a page over a file that is none.

    Raises
    ------
    UserError : somebody else's file is there.
    """
    if is_file(path):
        with open(opened(path), "rb") as file:
            if file.read(len(_HEAD)) != _HEAD:
                raise UserError(f"{path} is no page of fairbench's: move it away, or rename it")


# The first line of every page, also of pages by earlier versions.
_HEAD = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
"""[:-1]


def write_document(
    document: doc.Document,
    folder: Path,
    name: str,
    forms: Sequence[str] = USUAL,
    *,
    mode: int = 0o666,
) -> list[str]:
    """Write ``<name>.<ending>`` for every form, and the further files; return their names.

    A page that would be long is written in two: one that is short, and ``<name>-all`` with all.

    Parameters
    ----------
    mode : the permissions of the files.

    Raises
    ------
    UserError : an unknown form.
    OSError : a place that cannot be written to.
    """
    check_forms(forms)
    documents = {}
    for form in dict.fromkeys(forms):
        ending = FORMS[form][0]
        documents[f"{name}.{ending}"] = form, document
        if form == "html" and document.is_long:
            whole = f"{name}-all.{ending}"
            short = document.shortened(whole)
            documents |= {f"{name}.{ending}": (form, short), whole: (form, document)}
    for file, (form, written) in documents.items():
        _write_content(folder / file, FORMS[form][1](written), mode)
    for file, text in document.files.items():
        write_text(folder / file, text, mode=mode)
    return [*documents, *document.files]


def _write_content(path: Path, content: str | bytes, mode: int) -> None:
    if isinstance(content, str):
        content = content.encode(errors="backslashreplace")
    write_bytes(path, content, mode=mode)


_PARTS = {
    "interval": ("lower", "upper"),
    "estimate": ("", "lower", "upper"),
    "spread": ("mean", "sd"),
}


def _table_frame(table: doc.Table) -> pd.DataFrame:
    """Return a table with a column for each part of an interval or an estimate.

    A title that several columns have is written after that of the column before it.
    """
    shown = [(index, one) for index, one in enumerate(table.columns) if one.kind != "bar"]
    titles = [column.title for _, column in shown]
    names = unique_names([
        (f"{titles[k - 1]} {title}" if k and titles.count(title) > 1 else title) or " "
        for k, title in enumerate(titles)
    ])  # fmt: skip
    columns: dict[str, list[Any]] = {}
    for (index, column), title in zip(shown, names, strict=True):
        values = [doc.as_cell(row[index]).value for row in table.rows]
        for part, name in enumerate(_PARTS.get(column.kind, ())):
            numbers = [float("nan") if value is None else value[part] for value in values]
            columns[f"{title} {name}".strip()] = numbers
        if column.kind not in _PARTS:
            texts = (doc.plain(value) if isinstance(value, tuple) else value for value in values)
            columns[title.strip()] = list(texts)
    return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class DocumentReport:
    """A report: a notebook shows it, ``print`` prints it, and it can be saved.

    Attributes
    ----------
    document : the report as headings, sentences, tables and figures.
    name : the name of its files in a folder.
    """

    document: doc.Document
    name: ClassVar[str] = "report"

    def __repr__(self) -> str:
        """Return the summary as a terminal shows it, and where the rest is."""
        console = terminal(100)
        console.file = io.StringIO()
        print_document(self.document, console)
        return f"{console.file.getvalue()}\n{self._rest}"

    def _repr_html_(self) -> str:
        """Return the summary as a notebook shows it; its style stays within it."""
        whole = self.document
        if whole.summary is None:
            return _to_fragment(whole)
        warning = [doc.Paragraph(whole.warning, "warning")] if whole.warning else []
        sections = [doc.Section("", warning)] if warning else []
        notes = [*(whole.verdict.basis if whole.verdict else ()), *whole.notes, self._rest]
        return _to_fragment(doc.Document(whole.title, sections, notes=notes, summary=whole.summary))

    @property
    def _rest(self) -> str:
        """A sentence on where all of the report is."""
        return sentence_of("report", "rest", name=self.name)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Every figure of the report in one tidy table, one per row; none by default."""
        return pd.DataFrame()

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the report as data frames, by their titles."""
        titled = self.document.titled_tables
        return {title: _table_frame(table) for title, table in titled.items()}

    @cached_property
    def figures(self) -> dict[str, Drawing]:
        """The figures of the report by their titles: save one with ``.savefig("gaps.png")``."""
        summary = self.document.summary
        first = [summary.chart] if summary and summary.chart else []
        shown = [figure for figure in [*first, *self.document.figures] if figure.drawings]
        return {one.name or one.title: file_of(one.drawings) for one in shown}

    def to_html(self) -> str:
        """Return the report as a page that needs no other file."""
        return to_html(self.document)

    def to_latex(self) -> str:
        """Return the report in LaTeX, as a file that can be typeset as it is."""
        return to_latex(self.document)

    def to_markdown(self) -> str:
        """Return the report in Markdown."""
        return to_markdown(self.document)

    def to_json(self) -> str:
        """Return everything that was computed, as JSON."""
        return to_json(self.document)

    def save(self, path: str | Path) -> Path:
        """Write the report, and return where.

        Parameters
        ----------
        path : a file, whose ending says what is written: ``.html``, ``.tex``, ``.md``, ``.docx``,
            ``.json``, ``.csv`` (the tidy table) or ``.pdf`` (printed by a browser); or a folder,
            which gets all of these that can be written, and every figure as PNG, SVG and PDF.

        Raises
        ------
        UserError : an ending that is none of these, or a place that cannot be written to.
        """
        path = Path(path)
        if path.suffix:
            check_choice("ending of a report", path.suffix, _ENDINGS)
        try:
            (self._write if path.suffix else self._write_folder)(path)
        except OSError as error:
            raise UserError(f"not written: {refused(error)}") from error
        return path

    def _write(self, path: Path) -> None:
        is_table = path.suffix == ".csv"
        content = csv_text(self.table) if is_table else _WRITERS[path.suffix](self.document)
        _write_content(path, content, _MODE)

    def _write_folder(self, folder: Path) -> None:
        """Write the report in every form, with its further files and figures."""
        forms = [form for form in FORMS if form != "pdf" or not _no_browser()]
        write_document(self.document, folder, self.name, forms, mode=_MODE)
        self._write(folder / f"{self.name}.csv")
        for name, figure in self.figures.items():
            stem = folder / file_name(name)
            write_text(stem.with_name(f"{stem.name}.svg"), figure, mode=_MODE)
            write_bytes(stem.with_name(f"{stem.name}.png"), png_of(figure), mode=_MODE)


_MODE = 0o600  # reports are about people: only their author may read them
_WRITERS = {f".{ending}": made_by for ending, made_by in FORMS.values()}
_ENDINGS = (*_WRITERS, ".csv")
