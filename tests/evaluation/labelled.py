"""Tables of predictions made by hand, and their metrics by place."""

import numpy as np
import pandas as pd
from fairlearn import metrics as fl
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, precision_score

import fairbench
from fairbench import Evaluator
from fairbench.core.arrays import rng
from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.table import VALUE, MetricTable, setting_text, status_text

# Rates by other libraries, and the rates that are compared by gaps.
FAIRLEARN = {
    "selection_rate": fl.selection_rate,
    "accuracy": accuracy_score,
    "true_positive_rate": fl.true_positive_rate,
    "false_positive_rate": fl.false_positive_rate,
    "true_negative_rate": fl.true_negative_rate,
    "false_negative_rate": fl.false_negative_rate,
    "positive_predictive_value": precision_score,
    "f1_score": f1_score,
    "balanced_accuracy": balanced_accuracy_score,
}
GAPS_OF_RATES = {
    "statistical_parity": "selection_rate",
    "equal_opportunity": "true_positive_rate",
    "false_positive_rate_gap": "false_positive_rate",
    "predictive_parity": "positive_predictive_value",
    "accuracy_gap": "accuracy",
}


def labelled(target, groups=None, *, task=Task.BINARY, truth=None, **columns):
    """Return predictions `columns` with the labels and groups they are judged by."""
    predictions = pd.DataFrame({name: np.asarray(v, float) for name, v in columns.items()})
    labels = pd.Series(pd.Categorical(list("a" * len(target) if groups is None else groups)))
    return Labelled(np.asarray(target, float), predictions, {"g": labels}, task, truth)


def worded(frame):
    """Return a metric table with each setting in words, and each status with its reason."""
    texts = [status_text(*both) for both in zip(frame["status"], frame["reason"], strict=True)]
    return frame.assign(setting=setting_text(frame).astype(str), status=texts)


def evaluate(*arrays, **options):
    """Evaluate arrays, and return the worded table."""
    return worded(fairbench.evaluate(*arrays, **options))


def table_of(rows, evaluator=None, **options):
    """Return the table that an evaluator makes of predictions."""
    return (evaluator or Evaluator(draws=100)).table(rows, [rng(0, "posterior")], **options)


def added(add, *arguments, statistic=VALUE, **options):
    """Return the rows that a function adds to a table of these options, by place."""
    table = MetricTable(**options)
    add(table, *arguments)
    return by_place(table, statistic)


def by_place(table, statistic=VALUE):
    """Return the rows of one statistic of a table by metric, group and setting."""
    frame = table if isinstance(table, pd.DataFrame) else worded(table.frame())
    frame = frame[frame["statistic"] == statistic]
    assert not frame.duplicated(["metric", "attribute", "group", "setting"]).any()
    return {(row.metric, row.group, row.setting): row for row in frame.itertuples()}
