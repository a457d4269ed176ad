"""Metrics of scores when some groups were labelled more often than others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.evaluation.table import (
    EVERYONE,
    NAN,
    NO_SETTING,
    OK,
    MetricTable,
    Setting,
    Where,
    no_rows,
    undefined,
)
from fairbench.inference.active.intervals import lasting_level
from fairbench.inference.means import RARE_ROWS, ROWS, OutcomeMeans
from fairbench.inference.scores import RARE_ROWS as AREA_ROWS
from fairbench.inference.scores import area_limits, areas
from fairbench.inference.stratified import strata_sizes, stratified_error, weights
from fairbench.inference.survey import Design, Sampled
from fairbench.metrics.probability import bins_of_width, tie_blocks
from fairbench.metrics.registry import BINARY, metrics_of

Rows = NDArray[np.int64]
_CALIBRATION = "expected_calibration_error"


@dataclass(frozen=True, eq=False)
class WeightedScores:
    """Adds the rows that `ScoreEvaluation` adds where labelled rows are a random sample.

    Attributes
    ----------
    label : (n,) the labels of all rows, NaN where unknown.
    score : (n,) the scores of all rows.
    arms : (n,) the stratum of each row: rows of one stratum were chosen among one another.
    bins : how many bins the calibration error has.
    whenever : whether intervals are to hold whenever one stops labelling.
    """

    table: MetricTable
    label: Floats
    score: Floats
    arms: Rows
    bins: int
    whenever: bool = False

    def run(self, groups: Mapping[str, pd.Series]) -> None:
        """Add everyone's rows, then each group's."""
        self._add_part(np.arange(len(self.label)), EVERYONE)
        for attribute, labels in groups.items():
            codes = labels.cat.codes.to_numpy()
            for code, name in enumerate(labels.cat.categories):
                self._add_part(np.flatnonzero(codes == code), Where(attribute, str(name)))

    def _add_part(self, rows: Rows, where: Where) -> None:
        """Add the rows of a part of the pool; strata without a label are left out of it."""
        metrics = [m for m in metrics_of(BINARY, "mean").values() if m.needs == ("score",)]
        names = [metric.name for metric in metrics]
        settings = [Setting(bins=self.bins, binning=binning) for binning in ("width", "mass")]
        labelled = rows[~np.isnan(self.label[rows])]
        n = len(labelled)
        if not n:
            several = [*[NO_SETTING] * (len(names) + 1), *settings]
            names += ["roc_auc", _CALIBRATION, _CALIBRATION]
            status = undefined(no_rows(where.group))
            self.table.add(names, NAN, 0, where, setting=several, status=status)
            return
        label, score, stratum = self.label[labelled], self.score[labelled], self.arms[labelled]
        sizes = strata_sizes(np.zeros_like(rows), self.arms[rows])[0]
        weight = weights(sizes, np.bincount(stratum, minlength=len(sizes)))[stratum]
        design = Design.of(n, weight=weight)
        everyone = np.zeros(n, np.intp)
        level = self.table.level
        if self.whenever:
            level = float(lasting_level(level, n))
        losses, other_losses = (
            np.stack([m(y, score) for m in metrics]) for y in (label, 1 - label)
        )
        if self.table.frequentist:  # with limits that rare labels leave whole
            sample = Sampled.of(design, everyone, 1)
            means = OutcomeMeans.of(losses, other_losses, label, sample, design)
            value, lower, upper = (end[:, None] for end in means.limits(level=level, least=0.0))
            upper = np.minimum(upper, np.array([m.at_most for m in metrics])[:, None, None])
            lacking = f"n={n}, {int(means.size.min())} effective rows of the rarer label; an "
            lacking += f"interval needs {ROWS}, and {RARE_ROWS} of it"
            self.table.add_bounded(names, value, n, (lower, upper), lacking, where)
        else:  # with the papers' normal ones
            for name, loss in zip(names, losses, strict=True):
                mean, half = _normal_mean(loss, stratum, sizes, level)
                self.table.add(name, mean, n, where, interval=(mean - half, mean + half))
        curve = areas(label, score, everyone, 1, design=design)
        rare = int(min(curve.positives[0], curve.negatives[0]))
        lacking = f"{rare} equally weighted of the rarer label, an interval needs {AREA_ROWS}"
        area, lower, upper = area_limits(curve, level=level)
        one_class = undefined(f"only one class in {where.group or 'the part'}")
        status = one_class if np.isnan(area[0]) else OK
        self.table.add_bounded("roc_auc", area, n, (lower, upper), lacking, where, status=status)
        by_bin = bins_of_width(score, self.bins), self._by_mass(score, weight)
        for setting, index in zip(settings, by_bin, strict=True):
            gaps = np.bincount(index, weights=weight * (label - score))
            calibration_error = np.abs(gaps).sum() / weight.sum()
            self.table.add(_CALIBRATION, calibration_error, n, where, setting=setting)

    def _by_mass(self, score: Floats, weight: Floats) -> Rows:
        """Cut where the weight of lower scores passes a bin's share; equal scores stay together."""
        block = tie_blocks(score)
        mass = np.bincount(block, weights=weight)
        # A hair more, lest rounding puts the first row of a bin in the one before.
        lower = (np.cumsum(mass) - mass) / max(mass.sum(), 1e-300) * self.bins + 1e-9
        bins: Rows = np.minimum(lower.astype(np.int64), self.bins - 1)[block]
        return bins


def _normal_mean(loss: Floats, stratum: Rows, sizes: Rows, level: float) -> tuple[float, float]:
    """Return a post-stratified mean, and half the width of its normal interval."""
    labels, total, squares = (
        np.bincount(stratum, weights=column, minlength=len(sizes))
        for column in (np.ones_like(loss), loss, loss**2)
    )
    mean = weights(sizes, labels.astype(np.int64)) @ total / sizes[labels > 0].sum()
    error = stratified_error(labels, total, squares, sizes)
    return float(mean), NormalDist().inv_cdf((1 + level) / 2) * error
