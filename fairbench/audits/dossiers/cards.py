"""Dossiers of a model: a card with uncertainty, and what the AI Act asks to be measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from fairbench.audits.assessment import Assessment, Size, assess
from fairbench.audits.dossiers.contents import Asked, dossier, measured, told
from fairbench.audits.findings import LARGE
from fairbench.audits.gaps import RATE_NAMES
from fairbench.audits.kinds.binary import audit_of, verdict_text
from fairbench.audits.pages.pictures import pictures
from fairbench.audits.question import Options
from fairbench.audits.report import document_of
from fairbench.audits.table import read_audit_table
from fairbench.core.formats import MISSING as NO_LABEL
from fairbench.core.formats import count
from fairbench.evaluation.columns import values_of
from fairbench.metrics.registry import label
from fairbench.reporting.document.model import Column, Document, Items, Section, Table

# Mitchell et al. 2019, "Model Cards for Model Reporting", section 4.
CARD_FACTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "developer": ("who developed the model", "4.1 model details"),
        "date": ("when it was made", "4.1 model details"),
        "version": ("its version", "4.1 model details"),
        "type": ("what kind of model it is", "4.1 model details"),
        "licence": ("its licence", "4.1 model details"),
        "contact": ("where to send questions", "4.1 model details"),
        "intended_use": ("what it is meant to be used for", "4.2 intended use"),
        "intended_users": ("who is meant to use it", "4.2 intended use"),
        "out_of_scope": ("what it is not to be used for", "4.2 intended use"),
        "evaluation_data": ("which data it was evaluated on, and why these", "4.5 evaluation data"),
        "preprocessing": ("how these were prepared", "4.5 evaluation data"),
        "training_data": ("what it was trained on", "4.6 training data"),
        "ethical_considerations": (
            "what harm it can do, and to whom",
            "4.8 ethical considerations",
        ),
        "recommendations": ("what its users should know besides", "4.9 caveats"),
    }
)
# Regulation (EU) 2024/1689.
ACT_FACTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "design_choices": ("the relevant choices of design", "article 10(2)(a)"),
        "data_origin": ("how data were collected, where from and what for", "article 10(2)(b)"),
        "data_preparation": ("how data were labelled, cleaned and prepared", "article 10(2)(c)"),
        "assumptions": ("what the data are assumed to measure", "article 10(2)(d)"),
        "bias_measures": ("what is done to find, prevent and reduce biases", "article 10(2)(g)"),
        "setting": ("for which places and people the data are meant", "article 10(4)"),
        "special_categories": ("why and how special categories are processed", "article 10(5)"),
        "robustness": ("how it takes errors, faults and inconsistencies", "article 15(4)"),
        "feedback": ("how its outputs coming back as inputs are dealt with", "article 15(4)"),
        "cybersecurity": ("how it is protected against attacks", "article 15(5)"),
    }
)
_OVERALL = (
    "accuracy", "error_rate", "true_positive_rate", "false_positive_rate",
    "positive_predictive_value", "negative_predictive_value", "roc_auc", "log_loss", "brier_score",
    "expected_calibration_error",
)  # fmt: skip
_BY_GROUP = (
    "selection_rate", "false_positive_rate", "false_negative_rate", "positive_predictive_value",
    "negative_predictive_value", "accuracy",
)  # fmt: skip


def model_card(options: Options, frame: pd.DataFrame, facts: Mapping[str, str]) -> Document:
    """Return a model card (Mitchell et al. 2019) whose figures have intervals."""
    found = _assessed(options, frame)
    names = ", ".join(options.group)
    people = f"{count(len(found.table))} rows, {count(found.labels)} with a label"
    asked = [
        *(told(key, what, source, facts) for key, (what, source) in CARD_FACTS.items()),
        measured("factors", "the groups it was evaluated for", "4.3 factors", names),
        measured(
            "metrics", "the metrics, the threshold and how uncertain they are", "4.4 metrics",
            f"rates and scores with 95 % intervals; {_threshold(options)}",
        ),
        measured(
            "evaluated_rows", "how many people it was evaluated on", "4.5 evaluation data", people
        ),
        measured(
            "unitary_results", "results for each group", "4.7 quantitative analyses",
            "in the tables of single attributes",
        ),
        measured(
            "intersectional_results", "results for combinations of groups",
            "4.7 quantitative analyses", _combinations(found),
        ),
        measured("caveats", "what the figures cannot say", "4.9 caveats", "under caveats"),
    ]  # fmt: skip
    sections = [*_sections(found), Section("Caveats", [Items(_caveats(found))])]
    return _document("model-card", "Model card", found, asked, sections)


def ai_act(options: Options, frame: pd.DataFrame, facts: Mapping[str, str]) -> Document:
    """Return what articles 10 and 15 of the AI Act ask to be measured, and what is missing."""
    found = _assessed(options, frame)
    rows, labels = len(found.table), found.labels
    small = [f"{each.attribute}: {each.group} ({count(each.rows)})" for each in _smallest(found)]
    unknown = [
        f"{each.attribute}: {count(each.rows)}"
        for each in found.sizes
        if each.group == NO_LABEL and each.attribute in options.group
    ]
    large = [gap for gap in found.gaps if gap.verdict == LARGE]
    asked = [
        measured(
            "quantity", "how many data there are, and whether that is enough", "article 10(2)(e)",
            f"{count(rows)} rows, {count(labels)} with a label; what is open stands with the gaps",
        ),
        measured(
            "biases", "possible biases that harm people or discriminate", "article 10(2)(f)",
            f"{len(found.gaps)} gaps were examined, {len(large)} of them are large; in the table",
        ),
        measured(
            "shortcomings", "gaps and shortcomings of the data", "article 10(2)(h)",
            f"{count(rows - labels)} rows without a label; group not known: "
            f"{'; '.join(unknown) or 'of nobody'}",
        ),
        measured(
            "representativeness", "how far the data represent the people", "article 10(3)",
            f"rows of every group are in the tables; the smallest: {'; '.join(small)}",
        ),
        measured(
            "accuracy", "levels of accuracy, and the metrics of them", "article 15(1) and (3)",
            "overall and by group, with intervals, in the tables",
        ),
        *(told(key, what, source, facts) for key, (what, source) in ACT_FACTS.items()),
    ]  # fmt: skip
    caveats = Section("What limits these measurements", [Items(_caveats(found))])
    title = "AI Act, articles 10 and 15: what was measured, and what is missing"
    return _document("ai-act", title, found, asked, [*_sections(found), caveats])


def _assessed(options: Options, frame: pd.DataFrame) -> Assessment:
    return assess(read_audit_table(options, frame=frame).of_selected(), options)


def _document(
    kind: str, title: str, found: Assessment, asked: Sequence[Asked], sections: Sequence[Section]
) -> Document:
    summary = document_of(audit_of(found)).summary
    assert summary is not None
    return dossier(
        kind,
        title,
        found.options,
        asked,
        summary.found,
        sections,
        warnings=[each for each in summary.sure if "“Can be concluded”" not in each],
        people=len(found.table),
        labels=found.labels,
        overall=_plain(_rows(found, "")),
        groups=[
            {
                "attribute": each.attribute,
                "group": each.group,
                "people": each.rows,
                "labels": each.labels,
                "metrics": _plain(_rows(found, each.attribute, each.group)),
            }
            for each in found.sizes
        ],
        gaps=[
            {
                "attribute": gap.attribute,
                "metric": gap.metric,
                "value": gap.value,
                "lower": gap.lower,
                "upper": gap.upper,
                "verdict": verdict_text(gap),
            }
            for gap in found.gaps
        ],
    )


def _threshold(options: Options) -> str:
    if options.prediction:
        return f"decisions are those of '{options.prediction}'"
    return f"a score above {options.threshold:g} is a positive decision"


def _combinations(found: Assessment) -> str:
    names = [name for name in found.table.groups if name not in found.options.group]
    return f"in the tables of {', '.join(names)}" if names else "there is one attribute alone"


def _smallest(found: Assessment, most: int = 3) -> Sequence[Size]:
    single = [each for each in found.sizes if each.attribute in found.options.group]
    return sorted(single, key=lambda each: each.rows)[:most]


def _rows(found: Assessment, attribute: str, group: str = "") -> pd.DataFrame:
    """Return the metrics of everyone or of a group that have no setting."""
    metrics = values_of(found.metrics)
    rows = metrics[(metrics["attribute"] == attribute) & (metrics["group"] == group)]
    wanted = _BY_GROUP if attribute else _OVERALL
    return rows[rows["metric"].isin(wanted)].drop_duplicates("metric")


def _plain(rows: pd.DataFrame) -> dict[str, dict[str, float]]:
    columns = ("value", "lower", "upper", "n")
    return {
        str(row["metric"]): {name: float(row[name]) for name in columns}
        for row in rows[["metric", *columns]].to_dict("records")
    }


def _sections(found: Assessment) -> Iterator[Section]:
    yield from pictures(found)
    yield Section("Everyone", [_overall(found)])
    for attribute in found.table.groups:
        yield Section(f"By {attribute}", [_by_group(found, attribute)])
    yield Section("Gaps between groups", [_gaps(found)])


def _overall(found: Assessment) -> Table:
    columns = [Column("metric"), Column("value", "number"), Column("95 % interval", "interval")]
    columns.append(Column("n", "count"))
    rows = [
        [label(str(row["metric"])), row["value"], (row["lower"], row["upper"]), row["n"]]
        for row in _rows(found, "").to_dict("records")
    ]
    return Table(columns, rows)


def _by_group(found: Assessment, attribute: str) -> Table:
    columns = [Column(attribute), Column("people", "count"), Column("labels", "count")]
    columns += [Column(label(name), "estimate") for name in _BY_GROUP]
    rows = []
    for each in found.sizes:
        if each.attribute != attribute:
            continue
        own = _plain(_rows(found, attribute, each.group))
        cells = [own.get(name) for name in _BY_GROUP]
        estimates = [
            None if cell is None else (cell["value"], cell["lower"], cell["upper"])
            for cell in cells
        ]
        rows.append([each.group, each.rows, each.labels, *estimates])
    return Table(columns, rows)


def _gaps(found: Assessment) -> Table:
    columns = [Column("groups"), Column("gap in"), Column("size", "number")]
    columns += [Column("95 % interval", "interval"), Column("verdict")]
    rows = [
        [gap.attribute, RATE_NAMES[gap.metric], gap.value, (gap.lower, gap.upper)]
        + [verdict_text(gap)]
        for gap in found.gaps
    ]
    epsilon = found.options.epsilon
    return Table(
        columns,
        rows,
        caption=(
            "size: the largest difference between two groups; of only two, the second's rate minus "
            f"the first's. large: surely over {epsilon:g}; "
            "small: surely under; open: these rows cannot tell."
        ),
    )


def _caveats(found: Assessment) -> list[str]:
    audit = audit_of(found)
    return [*[audit.warning] * bool(audit.warning), *audit.basis, *audit.notes]
