"""Evaluations of labels that have given confusion counts."""

import itertools

import numpy as np

from fairbench import evaluate
from fairbench.evaluation.table import VALUE
from tests.evaluation.labelled import worded


def labels_from(counts):
    """Return target, prediction and group that have these counts: group -> TN, FP, FN, TP."""
    rows = [
        (target, prediction, group)
        for group, cells in counts.items()
        for (target, prediction), n in zip(itertools.product((0, 1), (0, 1)), cells, strict=True)
        for _ in range(n)
    ]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def table_of(counts, evaluator=None, **options):
    target, prediction, group = labels_from(counts)
    table = evaluate(target, prediction, sensitive_features=group, evaluator=evaluator, **options)
    table = worded(table)
    return table.set_index(["metric", "attribute", "group"]).sort_index()


def row(table, metric, attribute="", group="", *, statistic=VALUE):
    rows = table.loc[[(metric, attribute, group)]]
    rows = rows[rows["statistic"] == statistic]
    assert len(rows) == 1
    return rows.iloc[0]
