"""The document of one run: its headline metrics."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from fairbench.evaluation.columns import status_text
from fairbench.metrics.registry import declared, label
from fairbench.reporting.document.model import Column, Document, Section, Table

_FITS = ("constraint_active", "fit_seconds", "predict_seconds")
_COLUMNS = (
    Column("metric"),
    Column("of"),
    Column("mean", "number", decimals=4),
    Column("sd", "number", decimals=4, left_out=2),
    Column("95 % interval", "interval", left_out=1),
    Column("rows", "count", left_out=3),
    Column("status"),
)
_CAPTION = (
    "sd: over repeats; interval: median 95 % posterior (or normal) interval of one repeat; all "
    "metrics are in metrics.parquet"
)


def headline(summary: pd.DataFrame, protect: str) -> pd.DataFrame:
    """Return the rows worth showing first: overall, gaps of `protect`, its groups, the fits."""
    summary = summary[summary["variant"] == ""]
    overall = summary["attribute"] == ""
    gaps = (summary["attribute"] == protect) & (summary["group"] == "")
    groups = (summary["attribute"] == protect) & (summary["group"] != "")
    mass = (summary["binning"] == "mass").to_numpy(bool)

    def shown(where: str) -> pd.Series:
        return summary["metric"].isin([each.name for each in declared() if where in each.shown])

    parts = [
        summary[overall & shown("everyone") & ~mass],
        summary[gaps & shown("gaps")],
        summary[groups & shown("groups")],
        summary[overall & summary["metric"].isin(_FITS)],
    ]
    return pd.concat(parts, ignore_index=True)


def run_document(summary: pd.DataFrame, name: str, protect: str) -> Document:
    """Return the headline metrics of a run as a document.

    Parameters
    ----------
    summary : of :func:`fairbench.evaluation.summary.summarise`.
    protect : the attribute whose gaps and groups are shown.
    """
    shown = headline(summary, protect)
    parts = list(zip(shown["attribute"], shown["group"] != "", strict=True))
    rules = frozenset(i for i in range(1, len(parts)) if parts[i] != parts[i - 1])
    table = Table(_COLUMNS, list(_rows(shown)), caption=_CAPTION, rules=rules)
    return Document(name, [Section("", [table])])


def _rows(shown: pd.DataFrame) -> Iterator[list[object]]:
    for row in shown.itertuples():
        where = f"{row.attribute}: {row.group}" if row.group else str(row.attribute)
        status = "" if row.status == "ok" else status_text(str(row.status), str(row.reason))
        ends = row.lower, row.upper
        yield [label(str(row.metric)), where, row.mean, row.sd, ends, row.n, status]
