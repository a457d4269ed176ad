"""Dossiers that are an audit with answers: a card of a model, and what the AI Act asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pandas as pd

from fairbench.audits.assessment import Assessment, assess
from fairbench.audits.dossiers.contents import dossier
from fairbench.audits.dossiers.rulebook import pack_of
from fairbench.audits.dossiers.unknown import says_nothing
from fairbench.audits.findings import LARGE, SMALL
from fairbench.audits.kinds.binary import audit_of
from fairbench.audits.question import Options
from fairbench.audits.report import document_of
from fairbench.audits.table import read_audit_table
from fairbench.core.formats import count
from fairbench.evaluation.columns import records, values_of
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import Column, Document, ExecutiveSummary, Section
from fairbench.reporting.group_tables import table_of

_OF_EVERYONE = (
    "accuracy", "error_rate", "true_positive_rate", "false_positive_rate",
    "positive_predictive_value", "negative_predictive_value", "roc_auc", "log_loss", "brier_score",
    "expected_calibration_error",
)  # fmt: skip


def model_card(
    options: Options, frame: pd.DataFrame, human_answers: Mapping[str, str], day: date
) -> Document:
    """Return a model card (Mitchell et al. 2019) whose figures have intervals."""
    assessment = _assessed(options, frame)
    combined = [name for name in assessment.table.groups if name not in options.group]
    decided = f"a score above {options.threshold:g} is a positive decision"
    if options.prediction:
        decided = f"decisions are those of '{options.prediction}'"
    answers = {
        "factors": ", ".join(options.group),
        "metrics": f"rates and scores with 95 % intervals; {decided}",
        "evaluated_rows": _rows_and_labels(assessment),
        "unitary_results": "in the tables by group",
        "intersectional_results": f"in the tables by group, of {', '.join(combined)}"
        if combined
        else "there is one attribute alone",
        "caveats": "under notes, and under what was not looked at",
    }
    return _with_audit("model-card", "Model card", assessment, {**human_answers, **answers}, day)


_ONE_FILE = (
    "Only the rows of this file were measured. Articles 10(2) and (3) ask the same of the "
    "training, validation and testing data, which may be others."
)


def ai_act(
    options: Options, frame: pd.DataFrame, human_answers: Mapping[str, str], day: date
) -> Document:
    """Return what the AI Act asks to be measured of a high-risk system, and what is missing."""
    assessment = _assessed(options, frame)
    single = [size for size in assessment.sizes if size.attribute in options.group]
    smallest = sorted(single, key=lambda size: size.rows)[:3]
    small = [f"{size.attribute}: {size.group} ({count(size.rows)})" for size in smallest]
    unknown = [
        f"{size.attribute}: {count(size.rows)}" for size in single if says_nothing(size.group)
    ]
    answers = {
        "quantity": f"of this file: {_rows_and_labels(assessment)}; what is open stands with the "
        "gaps",
        "biases": _verdicts(assessment),
        "shortcomings": f"of this file: {count(len(assessment.table) - assessment.labels)} rows "
        f"without a label; group not known: {'; '.join(unknown) or 'of nobody'}",
        "representativeness": "rows of every group of this file are in the tables; the smallest: "
        f"{'; '.join(small)}",
        "accuracy": "overall, with intervals, in the tables",
        "accuracy_by_group": "by group, with intervals, in the tables",
    }
    title = "AI Act: what was measured of a high-risk system, and what is missing"
    document = _with_audit("ai-act", title, assessment, {**human_answers, **answers}, day)
    summary = document.summary or ExecutiveSummary([])
    return replace(document, summary=replace(summary, unseen=[_ONE_FILE, *summary.unseen]))


def _verdicts(assessment: Assessment) -> str:
    """Return how many gaps are large, small, and open: of those these rows cannot tell."""
    gaps = [gap for gap in assessment.gaps if not gap.fixed]
    counts = {verdict: sum(gap.verdict == verdict for gap in gaps) for verdict in (LARGE, SMALL)}
    still_open = len(gaps) - sum(counts.values())
    said = f"{len(gaps)} gaps were examined: {counts[LARGE]} large, {counts[SMALL]} small, "
    return f"{said}{still_open} open, of which these rows cannot tell; in the table"


def _assessed(options: Options, frame: pd.DataFrame) -> Assessment:
    return assess(read_audit_table(options, frame=frame).of_selected(), options)


def _rows_and_labels(assessment: Assessment) -> str:
    return f"{count(len(assessment.table))} rows, {count(assessment.labels)} with a label"


def _with_audit(
    kind: str, title: str, assessment: Assessment, answers: Mapping[str, str], day: date
) -> Document:
    """Return the answers, the metrics of everyone, and the audit."""
    audit = replace(audit_of(assessment), title=title)
    metrics = values_of(assessment.metrics)
    metrics = metrics[(metrics["attribute"] == "") & metrics["metric"].isin(_OF_EVERYONE)]
    everyone = table_of(
        records(metrics.drop_duplicates("metric")),
        [
            (lambda row: label(row["metric"]), Column("metric")),
            ("value", Column("value", "number")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            ("n", Column("n", "count")),
        ],
        by="",
    )
    sections = [Section("Everyone", [everyone]), *audit.sections]
    measured = document_of(replace(audit, sections=sections))
    return dossier(pack_of(kind), measured, assessment.options, answers, day)
