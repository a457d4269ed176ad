"""The assessment in the shape that the terminal and the page show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairbench.audit.assessment import Assessment
from fairbench.audit.labels_needed import Needed
from fairbench.audit.words import count

MAIN_RATES = (
    ("selected", "selection_rate"),
    ("TPR", "true_positive_rate"),
    ("FPR", "false_positive_rate"),
    ("precision", "positive_predictive_value"),
    ("accuracy", "accuracy"),
)


@dataclass(frozen=True, eq=False)
class GroupRow:
    """A group's size, and the value and interval of its rates by name."""

    attribute: str
    group: str
    rows: int
    labels: int
    rates: Mapping[str, tuple[float, float, float]]


def group_rows(assessment: Assessment) -> Sequence[GroupRow]:
    """Return every group of every attribute."""
    wanted = [name for _, name in MAIN_RATES]
    rows = assessment.metrics[assessment.metrics["metric"].isin(wanted)]
    values: dict[tuple[str, str], dict[str, tuple[float, float, float]]] = {}
    for row in rows.itertuples():
        key = (str(row.attribute), str(row.group))
        values.setdefault(key, {})[str(row.metric)] = (row.value, row.lower, row.upper)
    return [
        GroupRow(each.attribute, each.group, each.rows, each.labels, values[each.key])
        for each in assessment.sizes
    ]


def needed_words(needed: Needed) -> str:
    """Return how many more labels are likely to be enough, in a few characters."""
    if needed.enough is not None:
        return f"~{count(needed.enough)}"
    return f">{count(needed.labels[-1])}" if needed.labels else ""
