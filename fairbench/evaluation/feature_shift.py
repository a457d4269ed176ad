"""Rows for feature shift: how unlike everyone the rows are that abstention keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairbench.evaluation.labelled import Labelled
from fairbench.evaluation.table import (
    NAN,
    OK,
    MetricTable,
    Setting,
    Status,
    invalid_rows,
    undefined,
)
from fairbench.metrics.abstention import keep_weights
from fairbench.metrics.feature_shift import feature_shift


def evaluate_feature_shift(table: MetricTable, data: Labelled, rates: Sequence[float]) -> None:
    """Add the shift of every feature at each abstention rate, and their mean.

    `n` is the number of rows kept: of a random choice of few rows, too, features shift somewhat.
    """
    if data.features is None or "uncertainty" not in data.predictions or not rates:
        return
    uncertainty = data.column("uncertainty")
    invalid = invalid_rows(~np.isfinite(uncertainty), "uncertainty")
    kept = np.stack([keep_weights(uncertainty, rate) for rate in rates])
    shifts = feature_shift(data.features, kept)
    if invalid != OK:
        shifts = np.full_like(shifts, NAN)
    missing = invalid if invalid != OK else undefined("no value among the rows kept")
    for rate, weights, shift in zip(rates, kept, shifts, strict=True):
        n, setting = round(weights.sum()), Setting(rate=rate)
        known = shift[~np.isnan(shift)]
        mean = float(known.mean()) if len(known) else NAN
        table.add("mean_feature_shift", mean, n, setting=setting, status=_status(mean, missing))
        for name, value in zip(data.features.columns, shift, strict=True):
            row, status = setting._replace(feature=str(name)), _status(value, missing)
            table.add("feature_shift", value, n, setting=row, status=status)


def _status(value: float, missing: Status) -> Status:
    return missing if np.isnan(value) else OK
