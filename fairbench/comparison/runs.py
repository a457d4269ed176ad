"""Comparing finished runs: folds pooled through effective counts, hold-out repeats one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.assessment.comparison import A_BETTER, B_BETTER, Comparison, compare
from fairbench.assessment.effective_counts import effective_counts, mean_shrinkage, shrinkage
from fairbench.assessment.joint_counts import (
    independent_draws,
    joint_confusion,
    paired_draws,
)
from fairbench.assessment.objectives import objective
from fairbench.assessment.region import Region, highest_density_region
from fairbench.checks import check_minimum, check_share
from fairbench.confusion import binary_confusion
from fairbench.errors import UserError
from fairbench.seeds import rng
from fairbench.stored_runs import FoldPredictions, StoredRun


@dataclass(frozen=True)
class Settings:
    """How two runs are compared.

    Attributes
    ----------
    objectives, rope : what by, and up to which difference each is practically equivalent.
    rho : the correlation between folds: ``average`` over [0, 1/K], ``1/K``, or a number.
    paired : through the joint table of both runs' predictions on the same rows; otherwise, as the
        paper has it, by two independent posteriors.
    predictive : draw counts after the probabilities, as the published code does.
    alpha : prior pseudo-count of a confusion cell.
    protect : the sensitive attributes whose groups are compared; those of the first run if empty.
    """

    objectives: tuple[str, ...] = ("accuracy", "equal_opportunity")
    rope: tuple[float, ...] = (0.01, 0.01)
    rho: str = "average"
    paired: bool = True
    predictive: bool = False
    alpha: float = 1.0
    draws: int = 10000
    level: float = 0.95
    protect: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing, before any run is read."""
        for name in self.objectives:
            objective(name)
        self.shrinkage(10)
        check_minimum("draws", self.draws, 100)
        check_minimum("alpha", self.alpha, 0)
        check_share("level", self.level)

    def shrinkage(self, folds: int) -> float:
        """Return what a count of `folds` pooled folds is worth."""
        if folds == 1:
            return 1.0
        if self.rho == "average":
            return mean_shrinkage(folds)
        try:
            rho = 1 / folds if self.rho == "1/K" else float(self.rho)
        except ValueError:
            raise UserError(f"rho is '{self.rho}': valid: average, 1/K, or a number") from None
        return float(shrinkage(rho, folds))


@dataclass(frozen=True, eq=False)
class PairComparison:
    """Two runs compared, repeat by repeat."""

    names: tuple[str, str]
    comparisons: list[Comparison]

    def events(self, regions: list[Region] | None = None) -> pd.DataFrame:
        """Return the probabilities of the events, a row a repeat, within `regions` if given."""
        inside = [None] * len(self.comparisons) if regions is None else [r.inside for r in regions]
        pairs = zip(self.comparisons, inside, strict=True)
        return pd.DataFrame([each.events(kept) for each, kept in pairs])

    def regions(self, level: float) -> list[Region]:
        """Return the highest-density region of every repeat."""
        return [highest_density_region(each.delta, level) for each in self.comparisons]


def typical(events: pd.DataFrame) -> int:
    """Return the position of the repeat whose events are nearest to the medians."""
    distance = (events - events.median()).abs().sum(axis=1)
    return int(distance.to_numpy().argmin())


def compare_pair(first: StoredRun, second: StoredRun, settings: Settings) -> PairComparison:
    """Compare two runs by the repeats that both have.

    Raises
    ------
    UserError : runs of different data sets or splits, or (paired) of different test rows.
    """
    if first.dataset.name != second.dataset.name or len(first.dataset) != len(second.dataset):
        raise UserError(
            f"run {first.id} is of {first.dataset.name}, {second.id} of {second.dataset.name}: "
            "only runs of one data set are compared"
        )
    labels = Labels.of(first, settings.protect)
    repeats = sorted(first.repeats.keys() & second.repeats.keys())
    comparisons = []
    for repeat in repeats:
        one, other = first.repeats[repeat], second.repeats[repeat]
        if len(one) != len(other):
            raise UserError(
                f"run {first.id} has {len(one)} folds and {second.id} {len(other)}: only runs of "
                "one kind of split are compared"
            )
        generator = rng(settings.seed, "comparison", first.dataset.name, repeat)
        tables = _draws(labels, one, other, settings, generator)
        objectives = [objective(name) for name in settings.objectives]
        comparisons.append(compare(*tables, objectives, settings.rope))
    if not comparisons:
        raise UserError(f"runs {first.id} and {second.id} have no repeat in common")
    return PairComparison((first.name, second.name), comparisons)


@dataclass(frozen=True, eq=False)
class Labels:
    """What every row of the data set is: its target and its group, as codes."""

    target: NDArray[np.int64]
    group: NDArray[np.int64]
    n_groups: int

    @classmethod
    def of(cls, run: StoredRun, protect: tuple[str, ...]) -> Labels:
        """Return the labels of a run's data set, by the attributes `protect` or its own."""
        groups = run.dataset.groups(protect or run.protect)
        codes = groups.cat.codes.to_numpy(np.int64)
        return cls(run.dataset.target.to_numpy(np.int64), codes, len(groups.cat.categories))

    def counts(self, fold: FoldPredictions) -> NDArray[np.int64]:
        """Return the (G, 4) confusion counts of a fold."""
        target, group = self.target[fold.rows], self.group[fold.rows]
        return binary_confusion(target, fold.prediction, group, n_groups=self.n_groups)

    def joint(self, one: FoldPredictions, other: FoldPredictions) -> NDArray[np.int64]:
        """Return the (G, 8) joint counts of two runs' predictions on one fold."""
        if not np.array_equal(one.rows, other.rows):
            raise UserError(
                "the two runs were tested on different rows (other seed or split): compare them "
                "with paired=false"
            )
        target, group = self.target[one.rows], self.group[one.rows]
        both = one.prediction, other.prediction
        return joint_confusion(target, *both, group, n_groups=self.n_groups)


def _draws(
    labels: Labels,
    one: list[FoldPredictions],
    other: list[FoldPredictions],
    settings: Settings,
    generator: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return draws of both runs' tables from the counts of their pooled folds."""
    worth = settings.shrinkage(len(one))
    options: dict[str, Any] = {"alpha": settings.alpha, "predictive": settings.predictive}
    if settings.paired:
        folds = [labels.joint(a, b) for a, b in zip(one, other, strict=True)]
        joint = effective_counts(np.stack(folds), worth)
        return paired_draws(joint, settings.draws, generator, **options)
    first, second = (
        effective_counts(np.stack([labels.counts(fold) for fold in folds]), worth)
        for folds in (one, other)
    )
    return independent_draws(first, second, settings.draws, generator, **options)


def outperformance(runs: Sequence[StoredRun], settings: Settings) -> NDArray[np.float64]:
    """Return the (R, R) probabilities P(row >> column), medians over repeats."""
    matrix = np.full((len(runs), len(runs)), np.nan)
    for i, j in combinations(range(len(runs)), 2):
        events = compare_pair(runs[i], runs[j], settings).events().median()
        matrix[i, j], matrix[j, i] = events[A_BETTER], events[B_BETTER]
    return matrix
