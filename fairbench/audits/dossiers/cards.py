"""Dossiers of a model: a card with uncertainty, and what the AI Act asks to be measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pandas as pd

from fairbench.audits.assessment import Assessment, Size, assess
from fairbench.audits.dossiers.contents import dossier
from fairbench.audits.dossiers.facts import ACT_FACTS, CARD_FACTS, Fact
from fairbench.audits.findings import LARGE
from fairbench.audits.gaps import RATE_NAMES
from fairbench.audits.kinds.binary import audit_of, verdict_text
from fairbench.audits.pages.pictures import pictures
from fairbench.audits.question import Options
from fairbench.audits.report import document_of
from fairbench.audits.table import read_audit_table
from fairbench.core.formats import MISSING, count
from fairbench.evaluation.columns import values_of
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import Column, Document, Items, Section, Table
from fairbench.reporting.group_tables import table_of

_OVERALL = (
    "accuracy", "error_rate", "true_positive_rate", "false_positive_rate",
    "positive_predictive_value", "negative_predictive_value", "roc_auc", "log_loss", "brier_score",
    "expected_calibration_error",
)  # fmt: skip
_BY_GROUP = (
    "selection_rate", "false_positive_rate", "false_negative_rate", "positive_predictive_value",
    "negative_predictive_value", "accuracy",
)  # fmt: skip
# metric -> value, lower, upper and n
Metrics: TypeAlias = Mapping[str, Mapping[str, float]]


def model_card(options: Options, frame: pd.DataFrame, told: Mapping[str, str]) -> Document:
    """Return a model card (Mitchell et al. 2019) whose figures have intervals."""
    assessment = _assessed(options, frame)
    combined = [name for name in assessment.table.groups if name not in options.group]
    decided = f"a score above {options.threshold:g} is a positive decision"
    if options.prediction:
        decided = f"decisions are those of '{options.prediction}'"
    answers = {
        **told,
        "factors": ", ".join(options.group),
        "metrics": f"rates and scores with 95 % intervals; {decided}",
        "evaluated_rows": _rows_and_labels(assessment),
        "unitary_results": "in the tables of single attributes",
        "intersectional_results": f"in the tables of {', '.join(combined)}"
        if combined
        else "there is one attribute alone",
        "caveats": "under caveats",
    }
    return _document("model-card", "Model card", assessment, CARD_FACTS, answers, "Caveats")


def ai_act(options: Options, frame: pd.DataFrame, told: Mapping[str, str]) -> Document:
    """Return what articles 10 and 15 of the AI Act ask to be measured, and what is missing."""
    assessment = _assessed(options, frame)
    unlabelled = len(assessment.table) - assessment.labels
    single = [size for size in assessment.sizes if size.attribute in options.group]
    smallest = sorted(single, key=lambda size: size.rows)[:3]
    small = [f"{size.attribute}: {size.group} ({count(size.rows)})" for size in smallest]
    unknown = [f"{size.attribute}: {count(size.rows)}" for size in single if size.group == MISSING]
    large = sum(gap.verdict == LARGE for gap in assessment.gaps)
    answers = {
        **told,
        "quantity": f"{_rows_and_labels(assessment)}; what is open stands with the gaps",
        "biases": f"{len(assessment.gaps)} gaps were examined, {large} of them are large; in the "
        "table",
        "shortcomings": f"{count(unlabelled)} rows without a label; group not known: "
        f"{'; '.join(unknown) or 'of nobody'}",
        "representativeness": "rows of every group are in the tables; the smallest: "
        f"{'; '.join(small)}",
        "accuracy": "overall and by group, with intervals, in the tables",
    }
    title = "AI Act, articles 10 and 15: what was measured, and what is missing"
    caveats = "What limits these measurements"
    return _document("ai-act", title, assessment, ACT_FACTS, answers, caveats)


def _assessed(options: Options, frame: pd.DataFrame) -> Assessment:
    return assess(read_audit_table(options, frame=frame).of_selected(), options)


def _rows_and_labels(assessment: Assessment) -> str:
    return f"{count(len(assessment.table))} rows, {count(assessment.labels)} with a label"


def _document(
    kind: str, title: str, assessment: Assessment, facts: Sequence[Fact],
    answers: Mapping[str, str], caveats: str,
) -> Document:  # fmt: skip
    """Return the dossier; `caveats` is the heading of what limits it."""
    audit = audit_of(assessment)
    summary = document_of(audit).summary
    assert summary is not None
    overall = _metrics(assessment, "", "", _OVERALL)
    groups = {size.key: _metrics(assessment, *size.key, _BY_GROUP) for size in assessment.sizes}
    warnings = [audit.warning] * bool(audit.warning)
    return dossier(
        kind,
        title,
        assessment.options,
        facts,
        answers,
        found=summary.found,
        sections=[
            *pictures(assessment),
            Section("Everyone", [_overall_table(overall)]),
            *(
                Section(f"By {attribute}", [_group_table(assessment, attribute, groups)])
                for attribute in assessment.table.groups
            ),
            Section("Gaps between groups", [_gap_table(assessment)]),
            Section(caveats, [Items([*warnings, *audit.basis, *audit.notes])]),
        ],
        warnings=[said for said in summary.sure if "“Can be concluded”" not in said],
        people=len(assessment.table),
        labels=assessment.labels,
        overall=overall,
        groups=[
            {
                "attribute": size.attribute,
                "group": size.group,
                "people": size.rows,
                "labels": size.labels,
                "metrics": groups[size.key],
            }
            for size in assessment.sizes
        ],
        gaps=[
            {
                name: getattr(gap, name)
                for name in ("attribute", "metric", "value", "lower", "upper")
            }
            | {"verdict": verdict_text(gap)}
            for gap in assessment.gaps
        ],
    )


def _metrics(assessment: Assessment, attribute: str, group: str, names: Sequence[str]) -> Metrics:
    """Return those metrics of everyone or of a group that have no setting."""
    metrics = values_of(assessment.metrics)
    metrics = metrics[(metrics["attribute"] == attribute) & (metrics["group"] == group)]
    metrics = metrics[metrics["metric"].isin(names)].drop_duplicates("metric")
    plain = metrics.set_index(metrics["metric"].astype(str))[["value", "lower", "upper", "n"]]
    found: Metrics = plain.astype(float).to_dict("index")
    return found


def _overall_table(overall: Metrics) -> Table:
    columns = [Column("metric"), Column("value", "number"), Column("95 % interval", "interval")]
    rows = [
        [label(name), row["value"], (row["lower"], row["upper"]), row["n"]]
        for name, row in overall.items()
    ]
    return Table([*columns, Column("n", "count")], rows)


def _group_table(
    assessment: Assessment, attribute: str, groups: Mapping[tuple[str, str], Metrics]
) -> Table:
    def estimate(size: Size, name: str) -> tuple[float, float, float] | None:
        row = groups[size.key].get(name)
        return None if row is None else (row["value"], row["lower"], row["upper"])

    columns = [Column(attribute), Column("people", "count"), Column("labels", "count")]
    rows = [
        [size.group, size.rows, size.labels, *(estimate(size, name) for name in _BY_GROUP)]
        for size in assessment.sizes
        if size.attribute == attribute
    ]
    return Table([*columns, *(Column(label(name), "estimate") for name in _BY_GROUP)], rows)


def _gap_table(assessment: Assessment) -> Table:
    return table_of(
        assessment.gaps,
        [
            ("attribute", Column("groups")),
            (lambda gap: RATE_NAMES[gap.metric], Column("gap in")),
            ("value", Column("size", "number")),
            (("lower", "upper"), Column("95 % interval", "interval")),
            (verdict_text, Column("verdict")),
        ],
        by="",
        caption="size: the largest difference between two groups; of only two, the second's rate "
        f"minus the first's. large: surely over {assessment.options.epsilon:g}; small: surely "
        "under; open: these rows cannot tell.",
    )
