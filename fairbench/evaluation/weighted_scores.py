"""Metrics of scores when some groups were labelled more often than others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from fairbench.metrics.registry import BINARY, Metric, metrics_of

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
    anytime_valid : whether intervals hold whenever labelling is stopped.
    """

    table: MetricTable
    label: Floats
    score: Floats
    arms: Rows
    bins: int
    anytime_valid: bool = False

    def run(self, groups: Mapping[str, pd.Series]) -> None:
        """Add everyone's rows, then each group's."""
        self._add_group(np.arange(len(self.label)), EVERYONE)
        for attribute, labels in groups.items():
            codes = labels.cat.codes.to_numpy()
            for code, name in enumerate(labels.cat.categories):
                self._add_group(np.flatnonzero(codes == code), Where(attribute, str(name)))

    def _add_group(self, rows: Rows, where: Where) -> None:
        """Add the metrics of a group, or of everyone; strata without a label are left out.

        Parameters
        ----------
        rows : the row numbers of the group.
        """
        losses = [m for m in metrics_of(BINARY, "mean").values() if m.needs == ("score",)]
        calibrations = [Setting(bins=self.bins, binning=binning) for binning in ("width", "mass")]
        labelled = rows[~np.isnan(self.label[rows])]
        if not len(labelled):
            self.table.add(
                [*(metric.name for metric in losses), "roc_auc", _CALIBRATION, _CALIBRATION],
                NAN,
                0,
                where,
                setting=[*[NO_SETTING] * (len(losses) + 1), *calibrations],
                status=undefined(no_rows(where.group)),
            )
            return
        sizes = strata_sizes(np.zeros_like(rows), self.arms[rows])[0]
        stratum = self.arms[labelled]
        sample = _LabelledSample(
            label=self.label[labelled],
            score=self.score[labelled],
            stratum=stratum,
            sizes=sizes,
            weight=weights(sizes, np.bincount(stratum, minlength=len(sizes)))[stratum],
        )
        level = self.table.level
        if self.anytime_valid:
            level = float(lasting_level(level, len(labelled)))
        if self.table.frequentist:
            self._add_losses(sample, losses, level, where)
        else:
            self._add_normal_losses(sample, losses, level, where)
        self._add_area(sample, level, where)
        self._add_calibration(sample, calibrations, where)

    def _add_losses(
        self, sample: _LabelledSample, metrics: Sequence[Metric], level: float, where: Where
    ) -> None:
        """Add means of losses, with limits that hold where one label is rare, too."""
        n = len(sample.label)
        losses, other_losses = (
            np.stack([metric(label, sample.score) for metric in metrics])
            for label in (sample.label, 1 - sample.label)
        )
        sampled = Sampled.of(sample.design, sample.one_group, 1)
        means = OutcomeMeans.of(losses, other_losses, sample.label, sampled, sample.design)
        value, lower, upper = (limit[:, None] for limit in means.limits(level=level, least=0.0))
        upper = np.minimum(upper, np.array([metric.at_most for metric in metrics])[:, None, None])
        lacking = (
            f"n={n}, {int(means.size.min())} effective rows of the rarer label; an "
            f"interval needs {ROWS}, and {RARE_ROWS} of it"
        )
        names = [metric.name for metric in metrics]
        self.table.add_bounded(names, value, n, (lower, upper), lacking, where)

    def _add_normal_losses(
        self, sample: _LabelledSample, metrics: Sequence[Metric], level: float, where: Where
    ) -> None:
        """Add means of losses, with the papers' normal intervals."""
        for metric in metrics:
            loss = metric(sample.label, sample.score)
            mean, half_width = _normal_mean(loss, sample.stratum, sample.sizes, level)
            interval = mean - half_width, mean + half_width
            self.table.add(metric.name, mean, len(loss), where, interval=interval)

    def _add_area(self, sample: _LabelledSample, level: float, where: Where) -> None:
        """Add the area under the ROC curve."""
        curve = areas(sample.label, sample.score, sample.one_group, 1, design=sample.design)
        rare = int(min(curve.positives[0], curve.negatives[0]))
        lacking = f"{rare} equally weighted of the rarer label, an interval needs {AREA_ROWS}"
        area, lower, upper = area_limits(curve, level=level)
        one_class = undefined(f"only one class in {where.group or 'the part'}")
        self.table.add_bounded(
            "roc_auc",
            area,
            len(sample.label),
            (lower, upper),
            lacking,
            where,
            status=one_class if np.isnan(area[0]) else OK,
        )

    def _add_calibration(
        self, sample: _LabelledSample, settings: Sequence[Setting], where: Where
    ) -> None:
        """Add the calibration errors in bins of equal width and of equal mass."""
        weight = sample.weight
        by_width = bins_of_width(sample.score, self.bins)
        by_mass = self._by_mass(sample.score, weight)
        for setting, bin_index in zip(settings, (by_width, by_mass), strict=True):
            gaps = np.bincount(bin_index, weights=weight * (sample.label - sample.score))
            calibration_error = np.abs(gaps).sum() / weight.sum()
            self.table.add(
                _CALIBRATION, calibration_error, len(sample.label), where, setting=setting
            )

    def _by_mass(self, score: Floats, weight: Floats) -> Rows:
        """Cut where the weight of lower scores passes a bin's share; equal scores stay together."""
        block = tie_blocks(score)
        mass = np.bincount(block, weights=weight)
        # A hair more, lest rounding puts the first row of a bin in the one before.
        lower = (np.cumsum(mass) - mass) / max(mass.sum(), 1e-300) * self.bins + 1e-9
        bins: Rows = np.minimum(lower.astype(np.int64), self.bins - 1)[block]
        return bins


@dataclass(frozen=True, eq=False)
class _LabelledSample:
    """The n labelled rows of a group, some of which stand for more rows than others.

    Attributes
    ----------
    label : (n,) the labels, all known.
    score : (n,) the scores.
    stratum : (n,) the stratum of each row.
    sizes : (S,) how many rows of the group, labelled or not, each stratum has.
    weight : (n,) how many rows each row stands for.
    """

    label: Floats
    score: Floats
    stratum: Rows
    sizes: Rows
    weight: Floats

    @cached_property
    def design(self) -> Design:
        """The weights as a sampling design."""
        return Design.of(len(self.label), weight=self.weight)

    @property
    def one_group(self) -> NDArray[np.intp]:
        """The codes (n,) of the rows as one group."""
        return np.zeros(len(self.label), np.intp)


def _normal_mean(loss: Floats, stratum: Rows, sizes: Rows, level: float) -> tuple[float, float]:
    """Return a post-stratified mean, and half the width of its normal interval."""
    labels, total, squares = (
        np.bincount(stratum, weights=column, minlength=len(sizes))
        for column in (np.ones_like(loss), loss, loss**2)
    )
    mean = weights(sizes, labels.astype(np.int64)) @ total / sizes[labels > 0].sum()
    error = stratified_error(labels, total, squares, sizes)
    return float(mean), NormalDist().inv_cdf((1 + level) / 2) * error
