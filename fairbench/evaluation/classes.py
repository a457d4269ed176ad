"""Evaluates predictions of several classes."""

from __future__ import annotations

from fairbench.evaluation.predictions import Groups, Labelled
from fairbench.evaluation.table import MetricTable


def evaluate_classes(table: MetricTable, data: Labelled) -> None:
    """Add the error rate of everyone and of each group."""
    wrong = (data.column("prediction") != data.target).astype(float)
    parts = (Groups.of(name, labels) for name, labels in data.groups.items())
    for groups in (Groups.everyone(len(data)), *parts):
        for g, losses in enumerate(groups.split(wrong)):
            table.add_mean("error_rate", losses, groups.where(g))
