"""A document as files in a folder, and as Python code and notebooks hold it.

`write_document` writes the forms that a command is asked for. A `DocumentReport` is what a call
returns: it is shown, printed, taken apart into data frames and figures, and saved.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from fairbench.core.errors import UserError, refused, unknown_name
from fairbench.core.files import is_file, opened, write_bytes, write_text
from fairbench.core.text import csv_text, file_name, one_line
from fairbench.reporting.document import model as doc
from fairbench.reporting.document.forms import to_json, to_latex, to_markdown, to_word
from fairbench.reporting.document.html import no_browser, to_fragment, to_html, to_pdf
from fairbench.reporting.document.terminal import print_document, terminal

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The forms that documents are written in: the ending of their files, and what makes their content.
FORMS: Mapping[str, tuple[str, Callable[[doc.Document], str | bytes]]] = MappingProxyType(
    {
        "html": ("html", to_html),
        "json": ("json", to_json),
        "latex": ("tex", to_latex),
        "markdown": ("md", to_markdown),
        "pdf": ("pdf", to_pdf),
        "word": ("docx", to_word),
    }
)
USUAL = ("html", "json")


def check_forms(forms: Sequence[str]) -> None:
    """Refuse a form that no document is written in, or that this machine cannot write.

    Raises
    ------
    UserError : an unknown form, which names those there are; or what is missing for one.
    """
    for form in forms:
        if form not in FORMS:
            raise unknown_name("form", form, list(FORMS))
        if form == "pdf" and (missing := no_browser()):
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

    Parameters
    ----------
    mode : the permissions of the files.

    Raises
    ------
    UserError : an unknown form.
    OSError : a place that cannot be written to.
    """
    check_forms(forms)
    names = []
    for form in dict.fromkeys(forms):
        ending, made_by = FORMS[form]
        content = made_by(document)
        names.append(f"{name}.{ending}")
        content = (
            content if isinstance(content, bytes) else content.encode(errors="backslashreplace")
        )
        write_bytes(folder / names[-1], content, mode=mode)
    for file, text in document.files.items():
        write_text(folder / file, text, mode=mode)
    return [*names, *document.files]


_PARTS = {
    "interval": ("lower", "upper"),
    "estimate": ("", "lower", "upper"),
    "spread": ("mean", "sd"),
}


def titled_tables(document: doc.Document) -> dict[str, doc.Table]:
    """Return the tables by their titles, or by the titles of their sections."""
    titled: dict[str, doc.Table] = {}
    for title, table in _tables(document.sections, document.title):
        title = one_line(title)
        again = sum(name.partition(" (")[0] == title for name in titled)
        titled[f"{title} ({again + 1})" if again else title] = table
    return titled


def _tables(blocks: Sequence[doc.Block], title: str) -> Iterator[tuple[str, doc.Table]]:
    """Yield the tables of blocks, each with its own title or that of its section."""
    for block in blocks:
        if isinstance(block, doc.Table):
            yield block.title or title, block
        elif isinstance(block, doc.Section):
            yield from _tables(block.blocks, block.title or title)
        elif isinstance(block, doc.Details):
            yield from _tables(block.blocks, doc.plain(block.summary))


def table_frame(table: doc.Table) -> pd.DataFrame:
    """Return a table with a column for each part of an interval or an estimate."""
    columns: dict[str, list[Any]] = {}
    for column_index, column in enumerate(table.columns):
        values = [doc.as_cell(row[column_index]).value for row in table.rows]
        for part, name in enumerate(_PARTS.get(column.kind, ())):
            numbers = [float("nan") if value is None else value[part] for value in values]
            columns[f"{column.title} {name}".strip()] = numbers
        if column.kind != "bar" and column.kind not in _PARTS:
            columns[column.title] = [
                doc.plain(value) if isinstance(value, tuple) else value for value in values
            ]
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
            return to_fragment(whole)
        warning = [doc.Paragraph(whole.warning, "warning")] if whole.warning else []
        sections = [doc.Section("", warning)] if warning else []
        notes = [*(whole.verdict.basis if whole.verdict else ()), *whole.notes, self._rest]
        return to_fragment(doc.Document(whole.title, sections, notes=notes, summary=whole.summary))

    @property
    def _rest(self) -> str:
        """A sentence on where all of the report is."""
        return (
            f"report.save('{self.name}.html') writes all of it; report.findings and report.table "
            "are data frames, report.figures are drawings."
        )

    @cached_property
    def table(self) -> pd.DataFrame:
        """Every figure of the report in one tidy table, one per row; none by default."""
        return pd.DataFrame()

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the report as data frames, by their titles."""
        titled = titled_tables(self.document)
        return {title: table_frame(table) for title, table in titled.items()}

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """Figures for a paper, drawn with matplotlib, by their names; none by default."""
        return {}

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
        if path.suffix and path.suffix not in _ENDINGS:
            raise unknown_name("ending of a report", path.suffix, _ENDINGS)
        try:
            (self._write if path.suffix else self._write_folder)(path)
        except OSError as error:
            raise UserError(f"not written: {refused(error)}") from error
        return path

    def _write(self, path: Path) -> None:
        is_table = path.suffix == ".csv"
        content = csv_text(self.table) if is_table else _WRITERS[path.suffix](self.document)
        write_bytes(path, content if isinstance(content, bytes) else content.encode(), mode=_MODE)

    def _write_folder(self, folder: Path) -> None:
        """Write the report in every form, with its further files and figures."""
        forms = [form for form in FORMS if form != "pdf" or not no_browser()]
        write_document(self.document, folder, self.name, forms, mode=_MODE)
        self._write(folder / f"{self.name}.csv")
        for name, figure in self.figures.items():
            for kind in ("png", "svg", "pdf"):
                buffer = io.BytesIO()
                figure.savefig(buffer, format=kind)
                write_bytes(folder / f"{file_name(name)}.{kind}", buffer.getvalue(), mode=_MODE)


_MODE = 0o600  # reports are about people: only their author may read them
_WRITERS = {f".{ending}": made_by for ending, made_by in FORMS.values()}
_ENDINGS = (*_WRITERS, ".csv")
