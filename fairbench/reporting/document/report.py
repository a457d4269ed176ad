"""A document as Python code and notebooks hold it: shown, printed, taken apart and saved."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from fairbench.core.errors import UserError, refused, unknown_name
from fairbench.core.escaping import file_name, latex_comment
from fairbench.core.files import write_bytes, write_text
from fairbench.core.formats import csv_text
from fairbench.reporting.document.frames import table_frame, titled_tables
from fairbench.reporting.document.html import to_fragment, to_html
from fairbench.reporting.document.json import to_json
from fairbench.reporting.document.model import Document, Paragraph, Section
from fairbench.reporting.document.pdf import no_browser, to_pdf
from fairbench.reporting.document.plain_text import latex_table, to_markdown
from fairbench.reporting.document.terminal import print_document, terminal
from fairbench.reporting.document.word import to_word

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class DocumentReport:
    """A report: a notebook shows it, ``print`` prints it, and it can be saved.

    Attributes
    ----------
    document : the report as headings, sentences, tables and figures.
    name : the name of its files in a folder.
    """

    document: Document
    name: ClassVar[str] = "report"

    def __str__(self) -> str:
        """Return the report as a terminal shows it."""
        return _as_text(self.document)

    def __repr__(self) -> str:
        """Return the summary, and how the whole can be seen."""
        return _as_text(self.summary)

    def _repr_html_(self) -> str:
        """Return the summary as a notebook shows it; its style stays within it."""
        return to_fragment(self.summary)

    @property
    def summary(self) -> Document:
        """The summary as a document of its own; the whole document if there is no summary."""
        whole = self.document
        if whole.summary is None:
            return whole
        warning = ""
        basis = [*whole.notes]
        if whole.verdict is not None:
            warning = whole.verdict.warning
            basis = [*whole.verdict.basis, *whole.notes]
        blocks = [Paragraph(warning, "warning")] if warning else []
        further = (
            f"print(report) shows all of it, and report.save('{self.name}.html') writes the page; "
            "report.findings and report.table are data frames, report.figures are drawings."
        )
        return Document(
            whole.title,
            ([Section("", blocks)] if blocks else []),
            notes=[*basis, further],
            summary=whole.summary,
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

    def to_latex(self, title: str = "") -> str:
        """Return the tables of the report in LaTeX, for the package booktabs.

        Parameters
        ----------
        title : the title of one of `tables`, such as ``"Rates by group"``; by default all tables.

        Raises
        ------
        UserError : no table has this title.
        """
        titled = titled_tables(self.document)
        if title and title not in titled:
            raise unknown_name("table of the report", title, titled)
        selected = {title: titled[title]} if title else titled
        return "\n".join(
            latex_comment(name) + latex_table(table) for name, table in selected.items()
        )

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
        content = _ENDINGS[path.suffix](self)
        write_bytes(path, content if isinstance(content, bytes) else content.encode(), mode=_MODE)

    def _write_folder(self, folder: Path) -> None:
        """Write the report in every form, with its further files and figures."""
        for ending in _ENDINGS:
            if ending != ".pdf" or not no_browser():
                self._write(folder / f"{self.name}{ending}")
        for name, text in self.document.files.items():
            write_text(folder / name, text, mode=_MODE)
        for name, figure in self.figures.items():
            for kind in ("png", "svg", "pdf"):
                buffer = io.BytesIO()
                figure.savefig(buffer, format=kind)
                write_bytes(folder / f"{file_name(name)}.{kind}", buffer.getvalue(), mode=_MODE)


def _as_text(document: Document) -> str:
    console = terminal(100)
    console.file = io.StringIO()
    print_document(document, console)
    return console.file.getvalue()


_MODE = 0o600  # reports are about people: only their author may read them
_ENDINGS: Mapping[str, Callable[[DocumentReport], Any]] = {
    ".html": DocumentReport.to_html,
    ".json": DocumentReport.to_json,
    ".md": DocumentReport.to_markdown,
    ".tex": DocumentReport.to_latex,
    ".docx": lambda report: to_word(report.document),
    ".csv": lambda report: csv_text(report.table),
    ".pdf": lambda report: to_pdf(report.document),
}
