"""The audit of a data frame, as Python code and notebooks ask for it: ``fairbench.audit(...)``."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pandas as pd

from fairbench.audits.columns import read_frame
from fairbench.audits.findings import frame_of
from fairbench.audits.kinds import document_of
from fairbench.audits.question import Options
from fairbench.core.errors import UserError, refused, unknown_name
from fairbench.core.formats import csv_text
from fairbench.reporting.document.frames import table_frame, titled_tables
from fairbench.reporting.document.html import to_fragment, to_html
from fairbench.reporting.document.json import to_json
from fairbench.reporting.document.model import Document
from fairbench.reporting.document.plain_text import latex_table, to_markdown
from fairbench.reporting.document.terminal import print_document, terminal
from fairbench.reporting.document.word import to_word

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def audit(
    frame: Any,
    *,
    target: str = "",
    score: str | Sequence[str] = "",
    prediction: str = "",
    groups: str | Sequence[str] = (),
    name: str = "predictions",
    **options: Any,
) -> AuditReport:
    """Say which groups predictions treat worse, and how sure that is.

    Parameters
    ----------
    frame : a row a person: a pandas, polars or Arrow table, or the path of a file.
    target : the column of labels, empty where a label is unknown.
    score : the column of the predicted probability of the positive label; of three classes and
        more, a list with one column for each class.
    prediction : the column of decisions, where they are not ``score > threshold``.
    groups : the column of groups, or several; their combinations are assessed too.
    name : what the report calls the table.
    options : any other option of ``fairbench audit``, which ``fairbench audit --help`` lists, such
        as ``positive="yes"``, ``threshold=0.4``, ``epsilon=0.02`` or ``weight="weight"``.

    Returns
    -------
    A report that a notebook shows as a page, and that can be saved as a whole or in parts.

    Raises
    ------
    UserError : a column that is not there, or values that cannot be what they are said to be; the
        message names the column and the row.

    Examples
    --------
    >>> import fairbench, numpy as np, pandas as pd
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame({"sex": random.choice(["women", "men"], 500)})
    >>> people["score"] = random.uniform(size=500).round(3)
    >>> people["label"] = (random.uniform(size=500) < people["score"]).astype(int)
    >>> report = fairbench.audit(people, target="label", score="score", groups="sex")
    >>> values = report.table.query("statistic == 'value'")
    >>> rates = values.query("metric == 'selection_rate' and attribute == 'sex'")
    >>> rates[["group", "value", "lower", "upper"]].round(2).values.tolist()
    [['men', 0.54, 0.48, 0.6], ['women', 0.49, 0.42, 0.55]]
    """
    named = ("path", "target", "score", "scores", "prediction", "group", "out")
    shown = [field.name for field in fields(Options) if not field.metadata.get("hidden")]
    further = [option for option in shown if option not in named]
    for option in options:
        if option not in further:
            raise unknown_name("option of audit", option, [*further, "groups", "target", "score"])
    columns = {"target": target, "prediction": prediction, "group": groups}
    columns["score" if isinstance(score, str) else "scores"] = score
    kinds = get_type_hints(Options)
    given = {key: _value(key, value, kinds[key]) for key, value in {**columns, **options}.items()}
    file = Path(frame) if isinstance(frame, str | Path) else None
    asked = Options(path=file or Path(name), **given)
    table = read_frame(asked, source=None if file else frame)
    return AuditReport(document_of(asked, table))


def _value(name: str, value: Any, kind: Any) -> Any:
    """Return an option as an audit takes it: a text, a number, or a tuple of these."""
    if get_args(kind) and get_args(kind)[-1] is Ellipsis:
        several = [value] * bool(value) if isinstance(value, str) else list(value)
        return tuple(_value(name, item, get_args(kind)[0]) for item in several)
    if kind not in (str, int, float):
        return value
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise UserError(f"{name} is {value!r}; it must be a number") from None


@dataclass(frozen=True, eq=False)
class AuditReport:
    """What an audit found: a notebook shows it, ``print`` prints it, and it can be saved.

    Attributes
    ----------
    document : the report as headings, sentences, tables and figures.
    """

    document: Document

    def __str__(self) -> str:
        """Return the report as a terminal shows it."""
        console = terminal(100)
        console.file = io.StringIO()
        print_document(self.document, console)
        return console.file.getvalue()

    def __repr__(self) -> str:
        """Return what was audited, and how it can be seen."""
        title = self.document.title
        return f"<{title}; print it, or save it: report.save('audit.html')>"

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it; its style stays within it."""
        return to_fragment(self.document)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Every figure of the report in one tidy table, a row each.

        Of two classes and of numbers, in the columns that `fairbench.evaluate` returns: metric,
        attribute, group, value, lower and upper end of the 95 % interval, n, status and reason.
        """
        data = self.document.data
        return pd.DataFrame(data.get("metrics") or data.get("figures") or [])

    @cached_property
    def findings(self) -> pd.DataFrame:
        """What the report says of the people that its rows are a sample of, a row each.

        Columns are those of :class:`fairbench.audits.findings.Finding`: about, attribute, measure,
        verdict, groups, value, lower, upper, bound, n, needs and others, and the sentence.
        """
        return frame_of(self.document.data.get("findings", []))

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the report as data frames, by their titles."""
        titled = titled_tables(self.document)
        return {title: table_frame(table) for title, table in titled.items()}

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """Figures for a paper, drawn with matplotlib: save one with ``.savefig("gaps.pdf")``."""
        from fairbench.audits.pages.figures import figures_of

        return dict(figures_of(self.document.data))

    def to_html(self) -> str:
        """Return the report as a page that needs no other file."""
        return to_html(self.document)

    def to_latex(self, title: str = "") -> str:
        """Return the tables of the report in LaTeX, for the package booktabs.

        Parameters
        ----------
        title : of one of `tables`, such as ``"Rates by group"``; all of them by default.

        Raises
        ------
        UserError : no table has this title.
        """
        titled = titled_tables(self.document)
        if title and title not in titled:
            raise unknown_name("table of the report", title, titled)
        shown = {title: titled[title]} if title else titled
        return "\n".join(f"% {name}\n{latex_table(each)}" for name, each in shown.items())

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
            ``.json`` or ``.csv`` (the tidy table); or a folder, which gets all of these, and every
            figure as PNG, SVG and PDF.

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
        path.parent.mkdir(parents=True, exist_ok=True)
        content = _ENDINGS[path.suffix](self)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def _write_folder(self, folder: Path) -> None:
        for ending in _ENDINGS:
            self._write(folder / f"audit{ending}")
        for name, text in self.document.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        for name, figure in self.figures.items():
            for kind in ("png", "svg", "pdf"):
                figure.savefig(folder / f"{name}.{kind}", format=kind)


_ENDINGS: Mapping[str, Callable[[AuditReport], str | bytes]] = {
    ".html": AuditReport.to_html,
    ".json": AuditReport.to_json,
    ".md": AuditReport.to_markdown,
    ".tex": AuditReport.to_latex,
    ".docx": lambda report: to_word(report.document),
    ".csv": lambda report: csv_text(report.table),
}
