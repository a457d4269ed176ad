"""The comparison of two classifiers from the table to its report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

import pandas as pd

from fairbench.audit.conclusions import Conclusions
from fairbench.audit.options import Options
from fairbench.audit.pair.comparison import Compared, compare_tables
from fairbench.audit.pair.conclusions import conclude_pair
from fairbench.audit.pair.page import render_pair
from fairbench.audit.pair.terminal import print_pair
from fairbench.audit.reading import AuditTable, read_audit_table
from fairbench.audit.record import finite
from fairbench.core.version import VERSION


def report_pair(options: Options, table: AuditTable, frame: pd.DataFrame) -> tuple[str, str]:
    """Print how two scores compare; return it as a page and as JSON."""
    other = read_audit_table(replace(options, score=options.against), frame=frame)
    rows = list(compare_tables(table, other, options.seed, options.epsilon))
    conclusions = conclude_pair(options, table, rows)
    print_pair(options, rows, conclusions)
    return (
        render_pair(options, table, rows, conclusions),
        _record(options, table, rows, conclusions),
    )


def _record(
    options: Options, table: AuditTable, rows: Sequence[Compared], conclusions: Conclusions
) -> str:
    """Return the comparison as JSON; numbers that do not exist are null."""
    content = {
        "version": VERSION,
        "options": {**asdict(options), "path": str(options.path)},
        "rows": len(table),
        "labels": len(table.known),
        "conclusions": asdict(conclusions),
        "comparison": [{**asdict(row), "verdict": row.verdict} for row in rows],
    }
    return json.dumps(finite(content), indent=1, ensure_ascii=False) + "\n"
