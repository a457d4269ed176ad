"""Tables of predictions made by hand, and their metrics by place."""

import numpy as np
import pandas as pd

from fairbench.data.dataset import Task
from fairbench.evaluation.labelled import Labelled


def labelled(target, groups=None, *, task=Task.BINARY, truth=None, **columns):
    """Return predictions `columns` with the labels and groups they are judged by."""
    predictions = pd.DataFrame({name: np.asarray(v, float) for name, v in columns.items()})
    labels = pd.Series(pd.Categorical(list("a" * len(target) if groups is None else groups)))
    return Labelled(np.asarray(target, float), predictions, {"g": labels}, task, truth)


def by_place(table):
    """Return the rows of a metric table by metric, group and setting."""
    frame = table if isinstance(table, pd.DataFrame) else table.frame()
    assert not frame.duplicated(["metric", "attribute", "group", "setting"]).any()
    return {(row.metric, row.group, row.setting): row for row in frame.itertuples()}
