"""Evaluates scores and uncertainties of a binary label: likelihoods, calibration, ranking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.evaluation.estimates import Estimates, add_estimates, declared_estimates
from fairbench.evaluation.predictions import Groups
from fairbench.evaluation.table import NAN, OK, MetricTable, Setting
from fairbench.inference.means import Moments, loss_limits
from fairbench.inference.rates import Limits, rate_limits
from fairbench.inference.scores import Bins, calibration_limits
from fairbench.metrics import probability
from fairbench.metrics.registry import BINARY, metrics_of

Array = NDArray[np.float64]
_CALIBRATION = "expected_calibration_error"


@dataclass(frozen=True)
class ScoreEvaluation:
    """Computes the metrics of scores.

    Attributes
    ----------
    bins : of the reliability diagram and the calibration error.
    minimum : metrics of fewer rows are flagged.
    """

    table: MetricTable
    target: Array
    predictions: pd.DataFrame
    bins: int
    minimum: int = 0

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
        self._groups(Groups.everyone(len(self.target)))
        if "score" in self.predictions:
            self._diagram()
        for attribute, labels in groups.items():
            self._groups(Groups.of(attribute, labels))

    def _groups(self, groups: Groups) -> None:
        columns, estimates = self._columns, []
        for metric in metrics_of(BINARY, "mean", "auc", "none").values():
            if not metric.special and all(name in columns for name in metric.needs):
                arrays = [self.target, *(columns[name] for name in metric.needs)]
                estimates.append(declared_estimates(metric, arrays, groups))
        if "score" in columns:
            estimates += self._calibration(groups, columns["score"])
        add_estimates(self.table, groups, estimates, self.minimum)

    def _calibration(self, groups: Groups, score: Array) -> Iterator[Estimates]:
        """Yield calibration errors as they are printed, and less what chance adds to them.

        Both have one interval, of the error in these bins, which holds either.
        """
        for binning in ("width", "mass"):
            setting = Setting(bins=self.bins, binning=binning)
            diagrams = probability.reliabilities(
                self.target,
                score,
                groups.codes,
                len(groups),
                bins=self.bins,
                equal_mass=binning == "mass",
            )
            limits = cache(partial(_calibration_limits, _bins(diagrams, self.bins)))
            statuses = groups.statuses()
            printed = [
                diagram.expected_calibration_error() if status == OK else NAN
                for diagram, status in zip(diagrams, statuses, strict=True)
            ]
            yield Estimates(_CALIBRATION, printed, statuses, limits, str, setting, least=0.0)
            corrected, name = limits(self.table.level).value.tolist(), f"{_CALIBRATION}_debiased"
            yield Estimates(
                name, corrected, statuses, limits, str, setting, least=0.0, called=_CALIBRATION
            )

    def _diagram(self) -> None:
        score = self.predictions["score"].to_numpy()
        diagram = probability.reliability(self.target, score, bins=self.bins)
        cells = np.unique(probability.bins_of_width(score, self.bins), return_inverse=True)[1]
        spread = Moments.of_groups(score, cells, len(diagram.size))
        means = loss_limits(spread, level=self.table.level)
        positives = diagram.base_rate * diagram.size
        rates = rate_limits(positives, diagram.size, level=self.table.level)
        for i, size in enumerate(diagram.size):
            setting = Setting(bins=self.bins, bin=i)
            for name, value, limits in (
                ("reliability_mean_score", diagram.mean_score[i], means),
                ("reliability_base_rate", diagram.base_rate[i], rates),
            ):
                interval = (limits.lower[i], limits.upper[i])
                self.table.add_bounded(name, value, size, interval, f"n={size}", setting=setting)


def _bins(diagrams: list[probability.Reliability], bins: int) -> Bins:
    """Return diagrams, which leave out empty bins, in arrays (G, B)."""
    size, positives, score = np.zeros((3, len(diagrams), bins))
    for g, diagram in enumerate(diagrams):
        used = slice(len(diagram.size))
        size[g, used], score[g, used] = diagram.size, diagram.mean_score
        positives[g, used] = diagram.base_rate * diagram.size
    return Bins(size, positives, score)


def _calibration_limits(bins: Bins, level: float) -> Limits:
    return calibration_limits(bins, level=level)
