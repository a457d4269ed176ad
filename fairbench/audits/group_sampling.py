"""Metrics when some groups were labelled more often than others: each label is weighted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
from fairbench.inference.survey import Design, Sampled
from fairbench.metrics.probability import bins_of_width, tie_blocks
from fairbench.metrics.registry import BINARY, Metric, metrics_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupSampling:
    """Groups were labelled at rates that depended on results; rows within a group, at random.

    What holds within such a group needs no care. What crosses groups has to give each its share
    of rows in place of its share of labels: post-stratification.

    Attributes
    ----------
    by : the attribute, or combination of attributes, whose groups were chosen among.
    arms : (n,) categorical, the group of every row.
    notes : what a reader of the figures should know about how labels came about.
    whenever : whether labelling may have been stopped, or goes on, because of what labels said.
    """

    by: str
    arms: pd.Series
    notes: tuple[str, ...] = ()
    whenever: bool = False

    @property
    def stopping(self) -> str:
        """When labelling may stop for the figures to hold, as a sentence."""
        if self.whenever:
            return (
                "Intervals hold whenever one stops labelling, even because of what labels said. "
                "They are at least half as wide again as those of a number of labels that was said "
                "before the first one (stop=300)."
            )
        return "The number of labels was said before the first one; intervals are those of it."

    @property
    def codes(self) -> NDArray[np.int64]:
        """The position of every row's group."""
        codes: NDArray[np.int64] = self.arms.cat.codes.to_numpy(np.int64)
        return codes

    def unlabelled(self, known: NDArray[np.int64]) -> list[str]:
        """Return the groups of which none of the rows `known` is one."""
        labels = np.bincount(self.codes[known], minlength=len(self.arms.cat.categories))
        return [str(name) for name in self.arms.cat.categories[labels == 0]]

    def separates(self, groups: pd.Series) -> NDArray[np.bool_]:
        """Return for each group of an attribute whether all its rows were sampled at one rate."""
        table = strata_sizes(groups.cat.codes.to_numpy(np.int64), self.codes)
        separate: NDArray[np.bool_] = (table > 0).sum(axis=1) <= 1
        return separate


def strata_sizes(group: NDArray[np.int64], stratum: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many rows each group has of each stratum, (G, S)."""
    shape = group.max(initial=0) + 1, stratum.max(initial=0) + 1
    sizes = np.bincount(group * shape[1] + stratum, minlength=shape[0] * shape[1])
    return sizes.reshape(shape)


def weights(sizes: NDArray[np.int64], labels: NDArray[np.int64]) -> Floats:
    """Return how many rows a label of each stratum stands for, 0 where there is none."""
    rows = np.asarray(sizes, float)
    each: Floats = np.divide(rows, labels, out=np.zeros_like(rows), where=labels > 0)
    return each


def stratified_error(variance: Floats, labels: Floats, sizes: Floats) -> float:
    """Return the standard error of a post-stratified mean.

    Parameters
    ----------
    variance, labels, sizes : (S,) sample variance (NaN of one label), labels and rows of each
        stratum; strata without labels are left out, of one label have the others' mean variance.
    """
    used = labels > 0
    several = labels > 1
    if not several.any():
        return float("nan")
    common = np.average(variance[several], weights=labels[several] - 1)
    spread = np.where(several, variance, common)[used]
    share = sizes[used] / sizes[used].sum()
    return float(np.sqrt((share**2 * spread / labels[used]).sum()))


Rows = NDArray[np.int64]
_CALIBRATION = "expected_calibration_error"


@dataclass(frozen=True, eq=False)
class WeightedScores:
    """Adds the rows that `ScoreEvaluation` adds where labelled rows are a random sample.

    Attributes
    ----------
    label, score : (n,) of all rows, labels NaN where unknown.
    arms : (n,) which rows were chosen among one another.
    bins : of the calibration error.
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
        self._part(np.arange(len(self.label)), EVERYONE)
        for attribute, labels in groups.items():
            codes = labels.cat.codes.to_numpy()
            for code, name in enumerate(labels.cat.categories):
                self._part(np.flatnonzero(codes == code), Where(attribute, str(name)))

    def _part(self, rows: Rows, where: Where) -> None:
        """Add the rows of a part of the pool; strata without a label are left out of it."""
        metrics = [m for m in metrics_of(BINARY, "mean").values() if m.needs == ("score",)]
        settings = [Setting(bins=self.bins, binning=binning) for binning in ("width", "mass")]
        known = rows[~np.isnan(self.label[rows])]
        if not len(known):
            names = [*(metric.name for metric in metrics), "roc_auc", _CALIBRATION, _CALIBRATION]
            several = [*[NO_SETTING] * (len(metrics) + 1), *settings]
            status = undefined(no_rows(where.group))
            self.table.add(names, NAN, 0, where, setting=several, status=status)
            return
        label, score, stratum = self.label[known], self.score[known], self.arms[known]
        sizes = strata_sizes(np.zeros_like(rows), self.arms[rows])[0]
        weight = weights(sizes, np.bincount(stratum, minlength=len(sizes)))[stratum]
        level = self.table.level
        if self.whenever:
            level = float(lasting_level(level, len(known)))
        losses, others = (np.stack([m(y, score) for m in metrics]) for y in (label, 1 - label))
        if self.table.frequentist:
            self._means(metrics, losses, others, label, weight, level, where)
        else:
            for metric, loss in zip(metrics, losses, strict=True):
                self._mean(metric.name, loss, stratum, sizes, level, where)
        self._area(label, score, weight, level, where)
        by_bin = bins_of_width(score, self.bins), self._by_mass(score, weight)
        for setting, index in zip(settings, by_bin, strict=True):
            gaps = np.bincount(index, weights=weight * (label - score))
            error = np.abs(gaps).sum() / weight.sum()
            self.table.add(_CALIBRATION, error, len(known), where, setting=setting)

    def _means(
        self,
        metrics: Sequence[Metric],
        losses: Floats,
        others: Floats,
        label: Floats,
        weight: Floats,
        level: float,
        where: Where,
    ) -> None:
        """Add K mean losses (K, n) of weighted labels, with limits that rare labels leave whole.

        `others` are the losses with the other labels.
        """
        n, design = len(label), Design.of(len(label), weight=weight)
        sample = Sampled.of(design, np.zeros(n, np.intp), 1)
        means = OutcomeMeans.of(losses, others, label, sample, design)
        value, lower, upper = means.limits(level=level, least=0.0)
        upper = np.minimum(upper, [[metric.at_most] for metric in metrics])
        lacking = f"n={n}, {int(means.size.min())} effective rows of the rarer label; an interval "
        lacking += f"needs {ROWS}, and {RARE_ROWS} of it"
        names, ends = [metric.name for metric in metrics], (lower[:, None], upper[:, None])
        self.table.add_bounded(names, value[:, None], n, ends, lacking, where)

    def _mean(
        self, metric: str, losses: Floats, stratum: Rows, sizes: Rows, level: float, where: Where
    ) -> None:
        """Add a mean loss of weighted labels, with the papers' normal interval."""
        labels, total, squares = (
            np.bincount(stratum, weights=column, minlength=len(sizes))
            for column in (np.ones_like(losses), losses, losses**2)
        )
        mean = float(weights(sizes, labels.astype(np.int64)) @ total / sizes[labels > 0].sum())
        variance = (squares - total**2 / np.maximum(labels, 1)) / (np.maximum(labels, 2) - 1)
        error = stratified_error(variance, labels.astype(float), sizes.astype(float))
        half = NormalDist().inv_cdf((1 + level) / 2) * error
        self.table.add(metric, mean, len(losses), where, interval=(mean - half, mean + half))

    def _area(
        self, label: Floats, score: Floats, weight: Floats, level: float, where: Where
    ) -> None:
        """Add the area under the ROC curve of weighted labels."""
        n = len(label)
        design = Design.of(n, weight=weight)
        found = areas(label, score, np.zeros(n, np.intp), 1, design=design)
        rare = int(min(found.positives[0], found.negatives[0]))
        lacking = f"{rare} equally weighted of the rarer label, an interval needs {AREA_ROWS}"
        area, lower, upper = area_limits(found, level=level)
        one_class = undefined(f"only one class in {where.group or 'the part'}")
        status = one_class if np.isnan(area[0]) else OK
        self.table.add_bounded("roc_auc", area, n, (lower, upper), lacking, where, status=status)

    def _by_mass(self, score: Floats, weight: Floats) -> Rows:
        """Cut where the weight of lower scores passes a bin's share; equal scores stay together."""
        block = tie_blocks(score)
        mass = np.bincount(block, weights=weight)
        # A hair more, lest rounding puts the first row of a bin in the one before.
        lower = (np.cumsum(mass) - mass) / max(mass.sum(), 1e-300) * self.bins + 1e-9
        bins: Rows = np.minimum(lower.astype(np.int64), self.bins - 1)[block]
        return bins
