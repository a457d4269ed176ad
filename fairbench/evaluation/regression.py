"""Rows for regressions: errors, likelihood, and parity of the predictions' distributions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.evaluation.table import EVERYONE, NAN, MetricTable, Where, no_rows
from fairbench.metrics.regression import distribution_parity, normal_nll_rows, r2_score

Array = NDArray[np.float64]


def evaluate_regression(
    table: MetricTable, target: Array, predictions: pd.DataFrame, groups: Mapping[str, pd.Series]
) -> None:
    """Add everyone's rows, each group's, and each attribute's parity beside the labels' own."""
    _part(table, target, predictions, np.ones(len(target), bool), EVERYONE)
    for attribute, labels in groups.items():
        codes = labels.cat.codes.to_numpy()
        parts = {str(label): codes == code for code, label in enumerate(labels.cat.categories)}
        for label, rows in parts.items():
            _part(table, target, predictions, rows, Where(attribute, label))
        empty = [label for label, rows in parts.items() if not rows.any()]
        status = f"undefined: {no_rows(empty[0])}" if empty else "ok"
        if len(parts) == 1:
            status = "undefined: only one group"
        prediction = predictions["prediction"].to_numpy()
        for name, values in (("statistical_parity", prediction), ("label_parity", target)):
            samples = [values[rows] for rows in parts.values()]
            parity = NAN if empty else distribution_parity(samples)
            table.add(name, parity, len(target), Where(attribute), status=status)


def _part(
    table: MetricTable,
    target: Array,
    predictions: pd.DataFrame,
    rows: NDArray[np.bool_],
    where: Where,
) -> None:
    y, mean, n = target[rows], predictions["prediction"].to_numpy()[rows], int(rows.sum())
    table.add_mean("mae", np.abs(y - mean), where)
    table.add_mean("mean_prediction", mean, where)
    if n:
        table.add("rmse", float(np.sqrt(((y - mean) ** 2).mean())), n, where)
    else:
        table.add("rmse", NAN, 0, where, status=f"undefined: {no_rows(where.group)}")
    r2 = r2_score(y, mean) if n else NAN
    reason = f"target is constant in {where.group or 'the part'}" if n else no_rows(where.group)
    table.add("r2", r2, n, where, status=f"undefined: {reason}" if np.isnan(r2) else "ok")
    if "sd" in predictions:
        sd = predictions["sd"].to_numpy()[rows]
        table.add_mean("nll", normal_nll_rows(y, mean, sd), where)
