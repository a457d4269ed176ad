"""What the reports of all kinds of audits have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from fairbench.audits.conclusions import Conclusions
from fairbench.audits.pages.summary import summary_of
from fairbench.audits.question import Options
from fairbench.core import VERSION
from fairbench.evaluation.columns import records, setting_text, status_text
from fairbench.reporting.document.model import (
    Bar,
    Column,
    Details,
    Document,
    ExecutiveSummary,
    Paragraph,
    Section,
    Table,
    Verdict,
)

MOST_ROWS = 16  # of a table by group, on a terminal
MOST_LINES = 8  # groups in a figure


def audit_of(
    options: Options,
    conclusions: Conclusions,
    sections: Iterable[Section],
    data: Mapping[str, Any],
    *,
    title: str = "",
    labels: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    summary: ExecutiveSummary | None = None,
    pictures: Sequence[Section] = (),
) -> Document:
    """Return the document of any audit: what can and cannot be concluded, and what that rests on.

    Parameters
    ----------
    title : what it is called; after the file without one.
    labels : what label 0 and label 1 are called, where there are two.
    files : name -> text of further files beside the page.
    summary : what a page opens with; made of the conclusions where it is not given.
    """
    verdict = Verdict(
        conclusions.can, conclusions.cannot, basis=conclusions.basis, warning=conclusions.warning
    )
    return Document(
        title or f"Audit of {options.path.name}",
        list(sections),
        verdict,
        notes=conclusions.notes,
        lead=pictures,
        summary=summary or summary_of(options, conclusions),
        origin=origin(options, labels),
        data=data,
        files=files or {},
    )


def origin(options: Options, labels: Sequence[str] = ()) -> str:
    """Return the version and the options that an audit was made with, as a sentence."""
    names = f"label 1 is '{labels[1]}', label 0 '{labels[0]}'; " if labels else ""
    return f"fairbench {VERSION}; {names}seed {options.seed}."


def header(options: Options, **content: Any) -> Mapping[str, Any]:
    """Return the start of an audit's data: version, options, and what is given."""
    return {
        "version": VERSION,
        "options": {**asdict(options), "path": str(options.path)},
        **content,
    }


def starts(names: Sequence[str]) -> frozenset[int]:
    """Return the positions where a name differs from the one before."""
    return frozenset(i for i in range(len(names)) if i == 0 or names[i] != names[i - 1])


def bars(ends: Sequence[tuple[float, float, float]], epsilon: float) -> Iterator[Bar | None]:
    """Yield (lower, value, upper) placed on a scale that all share; None of what is undefined."""
    shown = [each for triple in ends for each in triple if not np.isnan(each)]
    low, high = min([-epsilon, *shown]), max([epsilon, *shown])

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 1)

    band, zero = (place(-epsilon), place(epsilon)), place(0)
    for triple in ends:
        if np.isnan(triple).any():
            yield None
        else:
            lower, value, upper = map(place, triple)
            yield Bar(lower, value, upper, band=band, zero=zero)


def all_metrics(found: pd.DataFrame, note: str = "") -> Details:
    """Return every metric in a table that is folded away."""
    metrics = found.assign(setting=setting_text(found))
    everyone = metrics["attribute"] == ""
    ordered = [*records(metrics[everyone]), *records(metrics[~everyone])]
    columns = [Column("metric"), Column("statistic"), Column("of"), Column("group")]
    columns += [Column("setting")]
    columns += [Column("value", "number"), Column("95 % interval", "interval")]
    columns += [Column("n", "count"), Column("status")]
    rows = [
        [
            row["metric"].replace("_", " "),
            row["statistic"].replace("_", " "),
            row["attribute"],
            row["group"],
            row["setting"],
            row["value"],
            (row["lower"], row["upper"]),
            row["n"],
            "" if row["status"] == "ok" else status_text(row["status"], row["reason"]),
        ]
        for row in ordered
    ]
    table = Table(columns, rows)
    notes = [Paragraph(note, "note")] if note else []
    return Details(f"All metrics ({len(rows)})", [*notes, table])
