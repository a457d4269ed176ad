"""What an audit computes from multi-class predictions: class by class and group by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.multiclass_reading import MulticlassTable
from fairbench.audits.question import Options
from fairbench.core.seeds import rng
from fairbench.inference.beta import Beta, uniform
from fairbench.inference.confusion_matrix import (
    confusion_posterior,
    cost_draws,
    expected_cost,
    uninformative_prior,
)
from fairbench.inference.confusion_matrix import score_prior as confusion_score_prior
from fairbench.inference.gaps import GroupLimits, largest_gap, probability_below
from fairbench.inference.posterior import FREQUENTIST, central_interval
from fairbench.inference.reliability import (
    ReliabilityDiagram,
    accuracy_posterior,
    ranks,
    reliability_diagram,
    score_prior,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

DRAWS = 4000


@dataclass(frozen=True)
class RankedEstimate:
    """A quantity of one class or group.

    Attributes
    ----------
    value, lower, upper : posterior mean and 95 % interval.
    extreme : probability of being the worst of all.
    worst_rank, best_rank : 95 % interval of its rank, 1 being the worst; NaN of everyone together.
    """

    value: float
    lower: float
    upper: float
    extreme: float = float("nan")
    worst_rank: float = float("nan")
    best_rank: float = float("nan")


@dataclass(frozen=True)
class Part:
    """The rows predicted as a class, or of a group: accuracy, ECE, expected cost of a row."""

    name: str
    rows: int
    labels: int
    accuracy: RankedEstimate
    calibration: RankedEstimate
    cost: RankedEstimate | None = None


@dataclass(frozen=True)
class AccuracyGap:
    """Largest difference in accuracy among an attribute's groups, and P(it is under epsilon)."""

    attribute: str
    value: float
    lower: float
    upper: float
    small: float


@dataclass(frozen=True)
class Mistake:
    """Labelled rows of one class predicted as another, and their share of those predicted so."""

    target: str
    prediction: str
    count: int
    share: RankedEstimate


@dataclass(frozen=True, eq=False)
class MulticlassAssessment:
    """What is known of a multi-class classifier; classes never predicted are left out."""

    options: Options
    table: MulticlassTable
    everyone: Part
    classes: Sequence[Part]
    groups: Mapping[str, Sequence[Part]]
    gaps: Sequence[AccuracyGap]
    mistakes: Sequence[Mistake]
    diagram: ReliabilityDiagram

    @property
    def labels(self) -> int:
        """The number of rows with a label."""
        return len(self.table.scores.labelled)


def assess_multiclass(table: MulticlassTable, options: Options) -> MulticlassAssessment:
    """Assess multi-class predictions."""
    scores, generator = table.scores, rng(options.seed, "posterior")
    parts = _Parts(table, options, generator)
    nobody = np.zeros(len(scores), np.int64)
    (everyone,), _ = parts.of(nobody, ["everyone"])
    classes, _ = parts.of(scores.prediction, scores.classes, by_class=True)
    groups, gaps = {}, []
    for attribute, labels in table.groups.items():
        names = [str(name) for name in labels.cat.categories]
        code = labels.cat.codes.to_numpy(np.int64)
        groups[attribute], draws = parts.of(code, names)
        gap = _gap(attribute, draws, options.epsilon)
        limits = parts.accuracy_limits(code, len(names))
        gaps.append(gap if limits is None else _of_counts(gap, limits, options.epsilon))
    diagram = reliability_diagram(scores.confidence, scores.correct, strength=options.strength)
    mistakes = list(_mistakes(table))
    return MulticlassAssessment(options, table, everyone, classes, groups, gaps, mistakes, diagram)


def _gap(attribute: str, accuracy: Floats, epsilon: float) -> AccuracyGap:
    spread = accuracy.max(axis=1) - accuracy.min(axis=1)
    lower, upper = map(float, central_interval(spread))
    small = float((spread < epsilon).mean())
    return AccuracyGap(attribute, float(spread.mean()), lower, upper, small)


def _of_counts(gap: AccuracyGap, limits: GroupLimits, epsilon: float) -> AccuracyGap:
    """Return a gap with the interval that the labelled rows' counts alone give it."""
    value, lower, upper = map(float, largest_gap(limits))
    small = float(probability_below(gap.small, lower, upper, epsilon))
    return replace(gap, value=value, lower=lower, upper=upper, small=small)


@dataclass(frozen=True, eq=False)
class _Parts:
    """Assesses the parts that a choice of groups divides the rows into."""

    table: MulticlassTable
    options: Options
    generator: np.random.Generator

    def of(
        self, code: Codes, names: Sequence[str], *, by_class: bool = False
    ) -> tuple[list[Part], Floats]:
        """Return the parts that have rows, and (T, G) draws of their accuracies."""
        scores, n = self.table.scores, len(names)
        rows = np.bincount(code, minlength=n)
        labels = np.bincount(code[scores.labelled], minlength=n)
        kept = np.flatnonzero(rows)
        posterior = accuracy_posterior(scores.correct, code, self._prior(code, n))
        draws = posterior.draws(DRAWS, self.generator)[:, kept]
        accuracy = _estimates(draws, posterior.mean[kept], largest=False)
        limits = self.accuracy_limits(code, n)
        if limits is not None:
            accuracy = [
                replace(each, value=float(value), lower=float(lower), upper=float(upper))
                for each, value, lower, upper in zip(accuracy, *limits.single, strict=True)
            ]
        diagram = reliability_diagram(
            scores.confidence, scores.correct, code, n_groups=n, strength=self.options.strength
        )
        error = diagram.calibration_error_draws(DRAWS, self.generator)[:, kept]
        calibration = _estimates(error, diagram.expected_calibration_error()[kept])
        costs: Sequence[RankedEstimate | None] = [None] * len(kept)
        if by_class and self.table.costs is not None:
            costs = self._costs(kept)
        parts = [
            Part(names[k], int(rows[k]), int(labels[k]), *each)
            for k, each in zip(
                kept.tolist(), zip(accuracy, calibration, costs, strict=True), strict=True
            )
        ]
        return parts, draws

    def accuracy_limits(self, code: Codes, n: int) -> GroupLimits | None:
        """Return limits of the accuracies of the parts that have rows, where no prior is asked for.

        None where one is, or where a part has no label.
        """
        scores = self.table.scores
        size = np.bincount(code[scores.labelled], minlength=n)
        right = np.bincount(code[scores.labelled], scores.correct[scores.labelled], minlength=n)
        kept = np.bincount(code, minlength=n) > 0
        uninformed = self.options.interval == FREQUENTIST and self.options.prior == "uniform"
        if not uninformed or not size[kept].all():
            return None
        return GroupLimits.of(right[kept], size[kept])

    def _prior(self, code: Codes, n: int) -> Beta:
        if self.options.prior == "uniform":
            return uniform(n, self.options.strength)
        return score_prior(self.table.scores.confidence, code, n, strength=self.options.strength)

    def _costs(self, kept: Codes) -> list[RankedEstimate]:
        scores, costs = self.table.scores, self.table.costs
        assert costs is not None
        n, strength = len(scores.classes), self.options.strength
        uninformed = uninformative_prior(n, strength=strength)
        informed = self.options.prior == "scores"
        prior = confusion_score_prior(scores, strength=strength) if informed else uninformed
        posterior = confusion_posterior(scores, prior)
        draws = cost_draws(posterior, costs, DRAWS, self.generator)[:, kept]
        return _estimates(draws, expected_cost(posterior, costs)[0][kept])


def _estimates(draws: Floats, mean: Floats, *, largest: bool = True) -> list[RankedEstimate]:
    """Return each column's estimate; the worst is the largest, or the smallest."""
    order = ranks(draws, largest=largest)
    columns: tuple[Floats, ...] = (mean, *central_interval(draws))
    if len(mean) > 1:
        columns += (order.first, order.lower, order.upper)
    return [RankedEstimate(*map(float, each)) for each in zip(*columns, strict=True)]


def _mistakes(table: MulticlassTable, most: int = 10) -> Iterator[Mistake]:
    """Yield the most frequent mistakes."""
    scores, n = table.scores, len(table.scores.classes)
    posterior = confusion_posterior(scores, np.zeros((n, n)))
    wrong = posterior.alpha * (1 - np.eye(n))
    total = posterior.alpha.sum(axis=1)
    for cell in np.argsort(-wrong, axis=None, kind="stable")[:most]:
        k, j = divmod(int(cell), n)
        if count := wrong[k, j]:
            share = Beta(np.asarray(1 + count), np.asarray(1 + total[k] - count))
            lower, upper = map(float, share.interval())
            estimate = RankedEstimate(float(count / total[k]), lower, upper)
            yield Mistake(scores.classes[j], scores.classes[k], int(count), estimate)
