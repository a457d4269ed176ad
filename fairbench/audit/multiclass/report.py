"""The audit of multi-class predictions from the table to its report."""

from __future__ import annotations

import pandas as pd

from fairbench.audit.multiclass.assessment import assess_multiclass
from fairbench.audit.multiclass.conclusions import conclude_multiclass
from fairbench.audit.multiclass.page import render_multiclass
from fairbench.audit.multiclass.reading import read_multiclass_table
from fairbench.audit.multiclass.record import record_multiclass
from fairbench.audit.multiclass.terminal import print_multiclass
from fairbench.audit.options import Options


def report_multiclass(options: Options, frame: pd.DataFrame) -> tuple[str, str]:
    """Print the report; return it as a page and as JSON."""
    assessment = assess_multiclass(read_multiclass_table(options, frame), options)
    conclusions = conclude_multiclass(assessment)
    print_multiclass(assessment, conclusions)
    return (
        render_multiclass(assessment, conclusions),
        record_multiclass(assessment, conclusions),
    )
