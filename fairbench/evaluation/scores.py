"""Evaluates scores and uncertainties of a binary label: likelihoods, calibration, ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.evaluation.estimates import (
    Batch,
    Closed,
    Estimates,
    Kinds,
    add_estimates,
    declared_batches,
)
from fairbench.evaluation.prediction_sets import set_batches
from fairbench.evaluation.predictions import Groups, Labelled, Parts
from fairbench.evaluation.table import NAN, OK, MetricTable, Setting, Where, undefined
from fairbench.inference import scores
from fairbench.inference.means import Level, Moments, around, loss_limits
from fairbench.inference.rates import Limits, rate_limits
from fairbench.inference.scores import (
    Bins,
    calibration_limits,
    plug_in,
)
from fairbench.inference.survey import Design, Sampled, SurveyCounts, sums
from fairbench.metrics import probability
from fairbench.metrics.rates import selection_rate
from fairbench.metrics.registry import BINARY, metrics_of

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
_CALIBRATION = "expected_calibration_error"
_MULTICALIBRATION = "multicalibration_error"
_BINNINGS = ("width", "mass")


@dataclass(frozen=True)
class ScoreEvaluation:
    """Computes the metrics of scores.

    Attributes
    ----------
    bins : of the reliability diagram and the calibration error.
    minimum : metrics of fewer rows are flagged.
    design : how the rows were sampled, where they do not count alike.
    levels : of the sets of labels whose coverage and size are reported.
    """

    table: MetricTable
    target: Array
    predictions: pd.DataFrame
    bins: int
    minimum: int = 0
    design: Design | None = None
    levels: Sequence[float] = ()

    def run(self, groups: Mapping[str, pd.Series]) -> None:
        """Add everyone's rows, each group's, and the points of the reliability diagram.

        Rows are put in the order of their scores first, so that no group need be sorted again.
        Those without weight are left out.
        """
        weight = np.ones(len(self.target)) if self.design is None else self.design.weight
        order = np.flatnonzero(weight > 0)
        columns = {str(name): self.predictions[name].to_numpy() for name in self.predictions}
        if "score" in columns:
            order = order[np.argsort(columns["score"][order], kind="stable")]
        columns = {name: values[order] for name, values in columns.items()}
        design = None if self.design is None else self.design.take(order)
        target = self.target[order]
        parts = Parts.of(len(weight), groups).take(order, design)
        metrics = metrics_of(BINARY, "mean", "auc", "none")
        batches = list(declared_batches(metrics.values(), target, columns, parts, KINDS))
        if "score" in columns:
            bins = _all_bins(parts, target, columns["score"], self.bins)
            level, place = self.table.level, len(metrics)
            batches.append(calibration_batch(_CALIBRATION, [bins], parts, self.bins, level, place))
        batches += set_batches(target, columns, self.levels, parts, len(metrics) + 1)

        def then(groups: Groups) -> None:
            if "score" not in columns:
                return
            self._multicalibration(parts, bins, groups.attribute)
            if not groups.attribute:
                self._diagram(target, columns["score"], design)

        add_estimates(self.table, parts, batches, self.minimum, then=then)

    def _multicalibration(self, parts: Parts, bins: Bins, attribute: str) -> None:
        """Add the largest calibration error of an attribute's groups, or of all there are."""
        if len(parts.attributes) == 1:
            return
        sizes = np.array(parts.size)
        placed = {groups.attribute: (first, len(groups)) for first, groups in parts.placed}
        first, count = placed[attribute] if attribute else (0, len(sizes))
        among = np.flatnonzero(sizes[first : first + count] >= probability.FEWEST) + first
        clustered = parts.design is not None and parts.design.clustered
        values, ends, status = [NAN, NAN], (NAN, NAN), OK
        if len(among):
            own = _those_of(bins, 1, among)
            found = largest_calibration_error(own, level=self.table.level)
            values = [float(plug_in(own).max()), max(float(found.value), 0.0)]
            if not clustered:
                ends = max(float(found.lower), 0.0), float(found.upper)
        else:
            status = undefined(f"no group has {probability.FEWEST} rows")
        for name, value in zip(
            (_MULTICALIBRATION, f"{_MULTICALIBRATION}_debiased"), values, strict=True
        ):
            self.table.add_bounded(
                name,
                value,
                int(sizes[among].min() if len(among) else sizes[first : first + count].max()),
                ends,
                _of_clusters(0),
                Where(attribute),
                setting=Setting(bins=self.bins),
                status=status,
            )

    def _diagram(self, target: Array, score: Array, design: Design | None) -> None:
        cells = np.unique(probability.bins_of_width(score, self.bins), return_inverse=True)[1]
        means, rates = _points(target, score, cells, design, self.table.level)
        for i, size in enumerate(np.bincount(cells)):
            setting = Setting(bins=self.bins, bin=i)
            for name, limits in (
                ("reliability_mean_score", means),
                ("reliability_base_rate", rates),
            ):
                interval = (limits.lower[i], limits.upper[i])
                self.table.add_bounded(
                    name, limits.value[i], size, interval, f"n={size}", setting=setting
                )


def largest_calibration_error(bins: Bins, *, level: float = 0.95) -> Limits:
    """Return the largest debiased calibration error of several groups (G, B), with its interval.

    Groups may overlap. The interval begins with the largest of lower ends that all hold at once,
    and ends with the largest upper end of any single group: the truly largest error is of one.
    """
    together = 1 - (1 - level) / len(bins.size)
    lower = calibration_limits(bins, level=together).lower.max()
    single = calibration_limits(bins, level=level)
    return Limits(*(np.asarray(end) for end in (single.value.max(), lower, single.upper.max())))


def _those_of(bins: Bins, binning: int, groups: Codes) -> Bins:
    """Return the diagrams (G, B) of some groups, in bins of one kind."""
    share = None if bins.share is None else bins.share[binning, groups]
    size, positives, score = (
        each[binning, groups] for each in (bins.size, bins.positives, bins.score)
    )
    return Bins(size, positives, score, share)


def calibration_batch(
    metric: str, diagrams: Sequence[Bins], parts: Parts, bins: int, level: float, place: int
) -> Batch:
    """Return calibration errors as they are printed, and less what chance adds to them.

    Both have one interval, of the error in these bins, which holds either.

    Parameters
    ----------
    diagrams : of the label, or of each of several classes, whose errors are averaged; their
        intervals then hold at once.
    """
    statuses, clustered = parts.statuses(), parts.design is not None and parts.design.clustered
    ok = np.array([status == OK for status in statuses])
    errors = np.where(ok, np.mean([plug_in(each) for each in diagrams], axis=0), NAN)
    corrected, estimates = _mean_calibration(diagrams, level).value, []
    for printed, less, binning in zip(errors, corrected, _BINNINGS, strict=True):
        setting = Setting(bins=bins, binning=binning)
        for name, value, called in ((metric, printed, ""), (f"{metric}_debiased", less, metric)):
            estimates.append(
                Estimates(name, value.tolist(), statuses, _of_clusters, setting, 0.0, called, place)
            )

    def limits(level: Level) -> Limits:
        # Groups are compared by the second of each two.
        each = level if np.ndim(level) == 0 else np.asarray(level)[1::2]
        found = _mean_calibration(diagrams, each)
        if clustered:
            found = Limits(found.value, *(np.full_like(end, NAN) for end in found[1:]))
        return Limits(*(np.repeat(end, 2, axis=0) for end in found))

    return Batch(estimates, limits)


def _mean_calibration(diagrams: Sequence[Bins], level: Level) -> Limits:
    """Return the mean of several calibration errors (2, G), with intervals that hold at once."""
    each = level if len(diagrams) == 1 else 1 - (1 - np.asarray(level)) / len(diagrams)
    found = [calibration_limits(bins, level=each) for bins in diagrams]
    return Limits(*(np.mean(ends, axis=0) for ends in zip(*found, strict=True)))


def ordered_bins(target: NDArray[np.generic], score: Array, data: Labelled, bins: int) -> Bins:
    """Return reliability diagrams (2, G, bins) of a label, whose rows come in any order."""
    order = np.argsort(score, kind="stable")
    design = None if data.design is None else data.design.take(order)
    parts = Parts((Groups.everyone(len(order)), *data.coded.values())).take(order, design)
    return _all_bins(parts, target[order].astype(np.float64), score[order], bins)


def _of_clusters(g: int) -> str:
    return "no interval is known to hold for clustered rows"


def _points(
    target: Array, score: Array, cells: Codes, design: Design | None, level: float
) -> tuple[Limits, Limits]:
    """Return the mean score and the share of label 1 in each bin that has rows."""
    bins = int(cells.max(initial=-1)) + 1
    if design is None:
        size = np.bincount(cells, minlength=bins)
        means = loss_limits(Moments.of_groups(score, cells, bins), level=level)
        return means, rate_limits(sums(target, cells, bins), size, level=level)
    sample = Sampled.of(design, cells, bins)
    mean, totals = sample.linearised(score)
    means = around(mean, loss_limits(Moments.of_sampled(mean, totals, sample), level=level))
    counts = SurveyCounts.of(3 * target.astype(np.intp), cells, design, groups=bins)
    return means, counts.limits(selection_rate, level=level)


def _all_bins(parts: Parts, target: Array, score: Array, bins: int) -> Bins:
    """Return reliability diagrams (2, G, bins), of bins of equal width and of equal mass."""
    design = parts.design if parts.design is not None and parts.design.weighted else None
    weight = None if design is None else design.weight
    found = [_cells(groups, target, score, bins=bins, weight=weight) for groups in parts.attributes]
    size, positives, mean, mass = np.concatenate(found, axis=2)
    if weight is None:
        return Bins(size, positives, mean)
    return Bins(size, positives, mean, mass / np.maximum(mass.sum(-1, keepdims=True), 1e-300))


def _cells(
    groups: Groups, target: Array, score: Array, *, bins: int, weight: Array | None
) -> Array:
    """Return size, rows with label 1, mean score and weight of bins, (4, 2, G, bins)."""
    # Rows come in the order of their scores, and so do those of each group.
    codes, count, order = groups.codes, len(groups), groups.order
    by_mass = probability.bins_of_mass(score, codes, count, bins, weight=weight, order=order)
    shared = probability.mean_over_scores(target, score, codes, weight=weight, order=order)
    diagrams = [
        _bins(cell, label, score, count * bins, weight)
        for cell, label in (
            (bins * codes + probability.bins_of_width(score, bins), target),
            (bins * codes + by_mass, shared),
        )
    ]
    return np.reshape(np.stack(diagrams, axis=1), (4, len(_BINNINGS), count, bins))


def _bins(cell: Codes, label: Array, score: Array, cells: int, weight: Array | None) -> Array:
    """Return size, rows with label 1, mean score and weight of every cell, (4, cells).

    Of weighted rows the size is Kish's.
    """
    if weight is None:
        mass = size = np.bincount(cell, minlength=cells).astype(float)
        ones, mean = sums(label, cell, cells), sums(score, cell, cells)
    else:
        mass, squares = sums(weight, cell, cells), sums(weight**2, cell, cells)
        size = mass**2 / np.maximum(squares, 1e-300)
        ones, mean = sums(weight * label, cell, cells), sums(weight * score, cell, cells)
    whole = np.maximum(mass, 1e-300)
    return np.stack([size, ones / whole * size, mean / whole, mass])


def _area(arrays: Sequence[Array], parts: Parts) -> Closed:
    target, score = arrays
    # Where rows come in the order of their scores, so do those of every group.
    ordered = bool((score[1:] >= score[:-1]).all())
    if parts.design is None and ordered:
        found = _in_a_row([_areas_of(g, target, score) for g in parts.attributes])
    else:
        found = scores.areas(
            parts.rows(target),
            parts.rows(score),
            parts.codes,
            len(parts),
            design=parts.repeated,
            order=parts.order if ordered else None,
        )
    few = parts.too_rare(scores.RARE_ROWS, np.minimum(found.positives, found.negatives), 1)
    return found.area, lambda level: scores.area_limits(found, level=level), few, found.totals


def _in_a_row(several: Sequence[scores.Areas]) -> scores.Areas:
    """Return areas of several sets of groups of unsampled rows as those of all."""
    names = ("area", "positives", "negatives", "variance")
    joined = (np.concatenate([getattr(each, name) for each in several]) for name in names)
    return scores.Areas(*joined)


def _areas_of(groups: Groups, target: Array, score: Array) -> scores.Areas:
    """Return the areas of one attribute's groups, of rows in the order of their scores."""
    return scores.areas(target, score, groups.codes, len(groups), order=groups.order)


KINDS: Kinds = {"auc": _area}
