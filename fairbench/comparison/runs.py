"""Comparing finished runs: folds pooled through effective counts, hold-out repeats one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.run_predictions import FoldPredictions, RunPredictions
from fairbench.comparison.settings import Settings
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.inference.effective_counts import effective_counts
from fairbench.inference.objectives import objective
from fairbench.inference.posterior import (
    independent_draws,
    joint_confusion,
    paired_draws,
)
from fairbench.inference.practical_difference import (
    A_BETTER,
    B_BETTER,
    PRACTICALLY_EQUAL,
    Comparison,
    Region,
    compare,
    highest_density_region,
)
from fairbench.inference.ranking import Pairs
from fairbench.metrics.rates import binary_confusion

Array = NDArray[np.float64]
_PLAIN = (A_BETTER, B_BETTER, PRACTICALLY_EQUAL)  # the other events are mixed


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


# A run's variance over the reference learner's, a number or (G, 1).
Ratios = Callable[[RunPredictions], Array]


def compare_pair(
    first: RunPredictions, second: RunPredictions, settings: Settings, ratios: Ratios | None = None
) -> PairComparison:
    """Compare two runs by the repeats that both have.

    Parameters
    ----------
    ratios : what a relative rho rests on.

    Raises
    ------
    UserError : runs of different data sets or splits, or (paired) of different test rows.
    """
    if first.people.name != second.people.name or len(first.people) != len(second.people):
        raise UserError(
            f"run {first.id} is of {first.people.name}, {second.id} of {second.people.name}: "
            "only runs of one data set are compared"
        )
    labels = Labels.of(first, settings.protect)
    fractions = [effective_sample_fraction(run, settings, ratios) for run in (first, second)]
    repeats = sorted(first.repeats.keys() & second.repeats.keys())
    comparisons = []
    for repeat in repeats:
        one, other = first.repeats[repeat], second.repeats[repeat]
        if len(one) != len(other):
            raise UserError(
                f"run {first.id} has {len(one)} folds and {second.id} {len(other)}: only runs of "
                "one kind of split are compared"
            )
        generator = rng(settings.seed, "comparison", first.people.name, repeat)
        tables = _draws(_counts(labels, one, other, fractions, settings), settings, generator)
        objectives = [objective(name) for name in settings.objectives]
        rope = settings.rope or tuple(each.epsilon for each in objectives)
        comparisons.append(compare(*tables, objectives, rope))
    if not comparisons:
        raise UserError(f"runs {first.id} and {second.id} have no repeat in common")
    return PairComparison((first.name, second.name), comparisons)


@dataclass(frozen=True, eq=False)
class Labels:
    """The target and the group of every row of a data set, as codes."""

    target: NDArray[np.int64]
    group: NDArray[np.int64]
    n_groups: int

    @classmethod
    def of(cls, run: RunPredictions, protect: tuple[str, ...]) -> Labels:
        """Return the labels of a run's data set, by the attributes `protect` or its own."""
        groups = run.people.groups(protect or run.protect)
        codes = groups.cat.codes.to_numpy(np.int64)
        return cls(run.people.target.to_numpy(np.int64), codes, len(groups.cat.categories))

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


def effective_sample_fraction(
    run: RunPredictions, settings: Settings, ratios: Ratios | None = None
) -> Array:
    """Return the share of a run's pooled rows that counts as independent: a number or (G, 1).

    Folds overlap in what they train on, so a count of pooled folds is multiplied by this.
    """
    folds = len(next(iter(run.repeats.values())))
    ratio = ratios(run) if ratios and settings.relative and folds > 1 else None
    return settings.shrinkage(folds, ratio)


def _counts(
    labels: Labels,
    one: list[FoldPredictions],
    other: list[FoldPredictions],
    fractions: Sequence[Array],
    settings: Settings,
) -> list[Array]:
    """Return the effective counts of both runs' pooled folds: one joint table, or two of their own.

    A joint table has one effective sample fraction: of two runs that differ in it, the smaller.
    """
    if settings.paired:
        folds = [labels.joint(a, b) for a, b in zip(one, other, strict=True)]
        return [effective_counts(np.stack(folds), np.minimum(*fractions))]
    return [
        effective_counts(np.stack([labels.counts(fold) for fold in folds]), own)
        for folds, own in zip((one, other), fractions, strict=True)
    ]


def _draws(
    counts: list[Array], settings: Settings, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return draws of both runs' tables."""
    options: dict[str, Any] = {"alpha": settings.alpha, "predictive": settings.predictive}
    if settings.paired:
        return paired_draws(counts[0], settings.draws, generator, **options)
    return independent_draws(counts[0], counts[1], settings.draws, generator, **options)


def every_pair(
    runs: Sequence[RunPredictions], settings: Settings, ratios: Ratios | None = None
) -> Pairs:
    """Return the probabilities of the events of every pair of R runs, medians over repeats."""
    better, equivalent, traded = np.full((3, len(runs), len(runs)), np.nan)
    for i, j in combinations(range(len(runs)), 2):
        found = compare_pair(runs[i], runs[j], settings, ratios).comparisons
        events = [each.events() for each in found]
        better[i, j], better[j, i], equivalent[i, j] = (
            np.median([each[name] for each in events]) for name in _PLAIN
        )
        mixed = [sum(p for name, p in each.items() if name not in _PLAIN) for each in events]
        equivalent[j, i] = equivalent[i, j]
        traded[i, j] = traded[j, i] = np.median(mixed)
    return Pairs(better, equivalent, traded)


def outperformance(
    runs: Sequence[RunPredictions], settings: Settings, ratios: Ratios | None = None
) -> Array:
    """Return the (R, R) probabilities P(row >> column), medians over repeats."""
    return every_pair(runs, settings, ratios).outperforms
