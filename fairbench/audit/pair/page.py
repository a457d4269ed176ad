"""The comparison of two classifiers as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from fairbench.audit.conclusions import Conclusions
from fairbench.audit.options import Options
from fairbench.audit.page import environment, on_scale, stylesheet
from fairbench.audit.pair.comparison import ALIKE, Compared
from fairbench.audit.pair.conclusions import measured, verdict_words
from fairbench.audit.reading import AuditTable
from fairbench.core.version import VERSION


def render_pair(
    options: Options, table: AuditTable, rows: Sequence[Compared], conclusions: Conclusions
) -> str:
    """Return the page; every text of the user's file is escaped."""
    placed = on_scale([(row.lower, row.difference, row.upper) for row in rows], options.epsilon)
    shown = [
        {
            "row": row,
            "measured": measured(row),
            "verdict": verdict_words(row),
            "kind": _kind(row),
            "bar": bar,
        }
        for row, bar in zip(rows, placed, strict=True)
    ]
    return (
        environment()
        .get_template("pair.html.jinja")
        .render(
            options=options,
            labels=table.labels,
            conclusions=conclusions,
            rows=shown,
            version=VERSION,
            css=stylesheet(),
        )
    )


def _kind(row: Compared) -> str:
    """Return the style of a verdict."""
    if row.assumed:
        return "assumed"
    return {ALIKE: "small", "open": "open"}.get(row.verdict, "large")
