"""Evaluates scores and uncertainties of a binary label: likelihoods, calibration, ranking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.evaluation.table import (
    EVERYONE,
    NAN,
    OK,
    MetricTable,
    Setting,
    Where,
    no_rows,
    undefined,
)
from fairbench.metrics import probability
from fairbench.metrics.registry import BINARY, metrics_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreEvaluation:
    """Computes the metrics of scores; `bins` are those of the reliability diagram."""

    table: MetricTable
    target: Array
    predictions: pd.DataFrame
    bins: int

    @cached_property
    def _columns(self) -> dict[str, Array]:
        return {str(name): self.predictions[name].to_numpy() for name in self.predictions}

    def run(self, groups: Mapping[str, pd.Series]) -> None:
        """Add everyone's rows, each group's, and the points of the reliability diagram.

        Rows are put in the order of their scores first, so that no group need be sorted again.
        """
        if "score" in self.predictions:
            order = np.argsort(self.predictions["score"].to_numpy(), kind="stable")
            ordered = replace(
                self, target=self.target[order], predictions=self.predictions.iloc[order]
            )
            ordered._add({name: labels.iloc[order] for name, labels in groups.items()})
        else:
            self._add(groups)

    def _add(self, groups: Mapping[str, pd.Series]) -> None:
        self._part(np.ones(len(self.target), bool), EVERYONE)
        if "score" in self.predictions:
            self._diagram()
        for attribute, labels in groups.items():
            codes = labels.cat.codes.to_numpy()
            for code, label in enumerate(labels.cat.categories):
                self._part(codes == code, Where(attribute, str(label)))

    def _part(self, rows: NDArray[np.bool_], where: Where) -> None:
        y = self.target[rows]
        columns = {name: values[rows] for name, values in self._columns.items()}
        for metric in metrics_of(BINARY, "mean", "auc", "none").values():
            if not metric.special and all(name in columns for name in metric.needs):
                self.table.add_declared(metric, [y, *(columns[n] for n in metric.needs)], where)
        if "score" in columns:
            self._calibration(y, columns["score"], where)

    def _calibration(self, y: Array, score: Array, where: Where) -> None:
        n = len(y)
        for binning in ("width", "mass"):
            setting = Setting(bins=self.bins, binning=binning)
            error, status = NAN, undefined(no_rows(where.group))
            if n:
                error, status = self._calibration_error(y, score, binning), OK
            self.table.add(
                "expected_calibration_error", error, n, where, setting=setting, status=status
            )

    def _calibration_error(self, y: Array, score: Array, binning: str) -> float:
        mass = binning == "mass"
        return probability.expected_calibration_error(y, score, bins=self.bins, equal_mass=mass)

    def _diagram(self) -> None:
        score = self.predictions["score"].to_numpy()
        diagram = probability.reliability(self.target, score, bins=self.bins)
        for i, size in enumerate(diagram.size):
            setting = Setting(bins=self.bins, bin=i)
            self.table.add("reliability_mean_score", diagram.mean_score[i], size, setting=setting)
            self.table.add("reliability_base_rate", diagram.base_rate[i], size, setting=setting)
