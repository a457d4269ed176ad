"""The audit of predicted intervals: whom they cover less often, and for whom they are wider.

Intervals may cover all groups alike and still be far wider for one of them, so that both are
compared: the share of the true numbers that lie between the ends, and the mean width.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from fairbench.audits.kinds import numbers
from fairbench.audits.question import Options
from fairbench.audits.report import Audit
from fairbench.core.errors import UserError
from fairbench.evaluation.table import records
from fairbench.reporting.document.model import Section
from fairbench.reporting.group_tables import all_metrics, sentence_of

WIDTH = "interval_width"
COMPARED = (numbers.COVERAGE, WIDTH)
_said = partial(sentence_of, "intervals")


def audit_intervals(options: Options, frame: pd.DataFrame) -> Audit:
    """Audit intervals in which true numbers were predicted to lie.

    Raises
    ------
    UserError : no true numbers, or ends that are the wrong way round.
    """
    if not options.target:
        raise UserError(_said("no_target"))
    data, notes = numbers.read_numbers(options, frame)
    metrics = numbers.evaluate_numbers(data, options)
    findings = numbers.gap_findings(data, options, COMPARED)
    return Audit(
        options,
        len(data),
        len(data),
        findings,
        numbers.basis_of(data, options, len(frame)),
        [
            Section("Gaps between groups", [numbers.gap_table(findings, _said("gaps"))]),
            Section("By group", [numbers.errors(metrics, name, options) for name in COMPARED]),
            Section("", [all_metrics(metrics)]),
        ],
        {"metrics": records(metrics)},
        notes=notes,
        rates=_said("rates"),
        unseen=[_said("unseen")],
        todo_if_open=numbers.WHAT_TO_DO_IF_OPEN,
    )
