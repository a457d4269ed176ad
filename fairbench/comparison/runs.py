"""Comparisons of finished runs, with folds pooled by effective counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.run_predictions import FoldPredictions, RunPredictions
from fairbench.comparison.settings import TYPICAL, Settings
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.inference.comparing.objectives import objective
from fairbench.inference.comparing.practical_difference import (
    A_BETTER,
    B_BETTER,
    PRACTICALLY_EQUAL,
    Comparison,
    Region,
    compare,
    highest_density_region,
)
from fairbench.inference.comparing.ranking import Pairs, inflation
from fairbench.inference.posterior import (
    independent_draws,
    joint_confusion,
    margins,
    paired_draws,
)
from fairbench.inference.repeats import mean_table_draws, no_narrower
from fairbench.metrics.rates import binary_confusion
from fairbench.metrics.registry import find
from fairbench.results.labels_and_groups import People

_PLAIN = (A_BETTER, B_BETTER, PRACTICALLY_EQUAL)  # the other events are mixed


@dataclass(frozen=True, eq=False)
class PairComparison:
    """The comparison of two runs: one of averaged repeats, or one per repeat.

    Attributes
    ----------
    names : the names of both runs.
    comparisons, repeats : each comparison, and the repeats that it is of.
    """

    names: tuple[str, str]
    comparisons: list[Comparison]
    repeats: list[list[int]]

    def events(self, regions: list[Region] | None = None) -> pd.DataFrame:
        """Return the probabilities of the events, a row per comparison, within `regions`."""
        if regions is None:
            return pd.DataFrame([comparison.events(None) for comparison in self.comparisons])
        pairs = zip(self.comparisons, regions, strict=True)
        return pd.DataFrame([comparison.events(region.inside) for comparison, region in pairs])

    def regions(self, level: float) -> list[Region]:
        """Return the highest-density region of every comparison."""
        return [highest_density_region(comparison.delta, level) for comparison in self.comparisons]


def typical_repeat(events: pd.DataFrame) -> int:
    """Return the position of the repeat with event probabilities nearest to the medians."""
    distance = (events - events.median()).abs().sum(axis=1)
    return int(distance.to_numpy().argmin())


# Returns the ratio of a run's variance to the reference learner's, a number or (G, 1).
Ratios = Callable[[RunPredictions], Floats]


def compare_pair(
    first: RunPredictions, second: RunPredictions, settings: Settings, ratios: Ratios | None = None
) -> PairComparison:
    """Return the comparison of two runs by the repeats that both have.

    Parameters
    ----------
    settings : how repeats are pooled, what is compared, and the prior.
    ratios : computes the variance ratio of a run, which a relative rho needs.

    Raises
    ------
    UserError : runs of different data sets or splits, or (paired) of different test rows.
    """
    if first.people.name != second.people.name or len(first.people) != len(second.people):
        raise UserError(
            f"run {first.id} is of {first.people.name}, {second.id} of {second.people.name}: "
            "only runs of one data set are compared"
        )
    repeats = sorted(first.repeats.keys() & second.repeats.keys())
    if not repeats:
        raise UserError(f"runs {first.id} and {second.id} have no repeat in common")
    is_one_by_one = settings.repeats == TYPICAL
    repeats_of_comparisons = [[repeat] for repeat in repeats] if is_one_by_one else [repeats]
    pair = _Pair(
        labels=Labels.of(first, settings.protect),
        runs=(first, second),
        fractions=[effective_sample_fraction(run, settings, ratios) for run in (first, second)],
        settings=settings,
    )
    comparisons = [pair.compare(some_repeats) for some_repeats in repeats_of_comparisons]
    return PairComparison((first.name, second.name), comparisons, repeats_of_comparisons)


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two runs to be compared, and the effective sample fractions of their pooled rows."""

    labels: Labels
    runs: tuple[RunPredictions, RunPredictions]
    fractions: Sequence[Floats]
    settings: Settings

    def compare(self, repeats: Sequence[int]) -> Comparison:
        """Return the comparison of the runs by some of their repeats together.

        Repeats that test different rows are compared twice: by their averaged counts, deflated for
        what repeats share, and by the spread of their tables. The wider of the two is returned.
        """
        counts = self._counts(repeats)
        generator = rng(self.settings.seed, "comparison", self.runs[0].people.name, repeats[0])
        averaged = [np.mean(count, axis=0) for count in counts]
        share = tested_share(self.runs[0], repeats)
        if np.isnan(share):
            return self._compare_tables(_draws(averaged, self.settings, generator))
        if self.settings.predictive:
            raise UserError("predictive=true is about one test set: it needs repeats=typical")
        factor = inflation(len(repeats), share)
        from_counts = self._compare_tables(
            _draws([table / factor for table in averaged], self.settings, generator)
        )
        from_repeats = self._compare_tables(_mean_draws(counts, share, self.settings, generator))
        return replace(from_repeats, delta=no_narrower(from_repeats.delta, from_counts.delta))

    def _compare_tables(self, tables: tuple[Floats, Floats]) -> Comparison:
        """Return the comparison of draws of both runs' tables, in all objectives."""
        objectives = [objective(name) for name in self.settings.objectives]
        rope = self.settings.rope or tuple(goal.epsilon for goal in objectives)
        return compare(*tables, objectives, rope)

    def _counts(self, repeats: Sequence[int]) -> list[Floats]:
        """Return the effective counts of both runs' pooled folds of J repeats, (J, G, C) each.

        Paired runs have one joint table, others one table each. A joint table has the smaller of
        the two effective sample fractions.
        """
        folds_by_run = [[run.repeats[repeat] for repeat in repeats] for run in self.runs]
        for first_folds, second_folds in zip(*folds_by_run, strict=True):
            if len(first_folds) != len(second_folds):
                raise UserError(
                    f"run {self.runs[0].id} has {len(first_folds)} folds and {self.runs[1].id} "
                    f"{len(second_folds)}: compared runs must have the same number of folds"
                )
        repeat_starts = np.cumsum([0, *(len(folds) for folds in folds_by_run[0])])[:-1]
        first_folds, second_folds = (
            [fold for folds in folds_of_repeats for fold in folds]
            for folds_of_repeats in folds_by_run
        )
        if self.settings.paired:
            pooled = np.add.reduceat(self.labels.joint(first_folds, second_folds), repeat_starts)
            return [pooled * np.minimum(*self.fractions)]
        return [
            np.add.reduceat(self.labels.counts(folds), repeat_starts) * fraction
            for folds, fraction in zip((first_folds, second_folds), self.fractions, strict=True)
        ]


def tested_share(run: RunPredictions, repeats: Sequence[int] = ()) -> float:
    """Return the share of all rows that a hold-out repeat tests, on average over repeats.

    It is NaN if every repeat tests all rows (K folds) or the same rows: such repeats are pooled,
    and count as one.

    Parameters
    ----------
    repeats : the repeats to average over; all of the run's if empty.
    """
    folds_of_repeats = [run.repeats[repeat] for repeat in (repeats or run.repeats)]
    tested_rows = [folds[0].rows for folds in folds_of_repeats]
    are_same_rows = all(np.array_equal(rows, tested_rows[0]) for rows in tested_rows[1:])
    if len(folds_of_repeats[0]) > 1 or are_same_rows:
        return float("nan")
    return float(np.mean([len(rows) for rows in tested_rows])) / len(run.people)


@dataclass(frozen=True, eq=False)
class Labels:
    """The target and the group of every row of a data set, as codes."""

    target: NDArray[np.int64]
    group: NDArray[np.int64]
    n_groups: int

    @classmethod
    def of(cls, run: RunPredictions, protect: tuple[str, ...]) -> Labels:
        """Return the labels of a run's data set; an empty `protect` means the run's attributes."""
        return _labels(run.people, protect or run.protect)

    def counts(self, folds: Sequence[FoldPredictions]) -> NDArray[np.int64]:
        """Return the (F, G, 4) confusion counts of F folds."""
        pooled = self._pool_folds(folds)
        counts = binary_confusion(
            pooled.target,
            pooled.predictions[0],
            pooled.fold_and_group,
            n_groups=len(folds) * self.n_groups,
        )
        return counts.reshape(len(folds), self.n_groups, 4)

    def joint(
        self, first_folds: Sequence[FoldPredictions], second_folds: Sequence[FoldPredictions]
    ) -> NDArray[np.int64]:
        """Return the (F, G, 8) joint counts of two runs' predictions on F folds."""
        if not all(
            np.array_equal(first.rows, second.rows)
            for first, second in zip(first_folds, second_folds, strict=True)
        ):
            raise UserError(
                "the two runs were tested on different rows (other seed or split): compare them "
                "with paired=false"
            )
        pooled = self._pool_folds(first_folds, second_folds)
        first_prediction, second_prediction = pooled.predictions
        counts = joint_confusion(
            pooled.target,
            first_prediction,
            second_prediction,
            pooled.fold_and_group,
            n_groups=len(first_folds) * self.n_groups,
        )
        return counts.reshape(len(first_folds), self.n_groups, 8)

    def _pool_folds(self, *folds_of_runs: Sequence[FoldPredictions]) -> _PooledRows:
        """Return the rows of all folds, one after another; runs must have the same rows."""
        folds = folds_of_runs[0]
        rows = np.concatenate([fold.rows for fold in folds])
        fold_number = np.repeat(np.arange(len(folds)), [len(fold.rows) for fold in folds])
        return _PooledRows(
            target=self.target[rows],
            fold_and_group=fold_number * self.n_groups + self.group[rows],
            predictions=[
                np.concatenate([fold.prediction for fold in folds_of_run])
                for folds_of_run in folds_of_runs
            ],
        )


class _PooledRows(NamedTuple):
    """The rows of several folds: target, code of fold and group, and predictions of each run."""

    target: NDArray[np.int64]
    fold_and_group: NDArray[np.int64]
    predictions: list[NDArray[np.int64]]


@lru_cache(maxsize=8)
def _labels(people: People, protect: tuple[str, ...]) -> Labels:
    """Return the labels of a data set, cached as many pairs of runs share them."""
    groups = people.groups(protect)
    codes = groups.cat.codes.to_numpy(np.int64)
    return Labels(people.target.to_numpy(np.int64), codes, len(groups.cat.categories))


def observed_values(run: RunPredictions, settings: Settings, repeats: Sequence[int]) -> Floats:
    """Return a run's values (m,) of what it is compared by: in test rows, means over repeats.

    A repeat's folds are pooled. Gaps and errors have their own sign; a ratio above 1 is inverted. A
    value is NaN where no repeat defines it.
    """
    labels = Labels.of(run, settings.protect)
    tables = np.stack([labels.counts(run.repeats[repeat]).sum(axis=0) for repeat in repeats])
    return np.array([_mean_value(name, tables) for name in settings.objectives])


def _mean_value(name: str, tables: NDArray[np.int64]) -> float:
    """Return the mean of an objective over tables (J, G, 4), in the sign of its metric."""
    values = objective(name)(tables)
    defined = values[~np.isnan(values)]
    sign = -1.0 if (metric := find(name)) and metric.better == "lower" else 1.0
    return sign * float(defined.mean()) if len(defined) else np.nan


def effective_sample_fraction(
    run: RunPredictions, settings: Settings, ratios: Ratios | None = None
) -> Floats:
    """Return the share of a run's pooled rows that counts as independent: a number or (G, 1).

    Training sets of folds overlap, so counts of pooled folds are multiplied by this.
    """
    folds = len(next(iter(run.repeats.values())))
    ratio = ratios(run) if ratios and settings.relative and folds > 1 else None
    return settings.shrinkage(folds, ratio)


def _draws(
    counts: Sequence[Floats], settings: Settings, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return draws from the posterior of both runs' tables, given their effective counts."""
    options: dict[str, Any] = {"alpha": settings.alpha, "predictive": settings.predictive}
    if settings.paired:
        return paired_draws(counts[0], settings.draws, generator, **options)
    return independent_draws(counts[0], counts[1], settings.draws, generator, **options)


def _mean_draws(
    counts: Sequence[Floats], share: float, settings: Settings, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return draws of both runs' mean tables over fits, on new people.

    Parameters
    ----------
    counts : the effective counts of repeats: one joint table for paired runs, otherwise one each.
    share : the share of rows that a repeat tests.
    """
    tables = np.stack(margins(counts[0]) if settings.paired else counts, axis=1)
    tables = tables / tables.sum(axis=(-1, -2), keepdims=True)
    draw = partial(mean_table_draws, draws=settings.draws, generator=generator)
    if settings.paired:
        drawn = draw(tables, share)
        return drawn[:, 0], drawn[:, 1]
    return draw(tables[:, 0], share), draw(tables[:, 1], share)


def every_pair(
    runs: Sequence[RunPredictions], settings: Settings, ratios: Ratios | None = None
) -> Pairs:
    """Return the probabilities of the events of every pair of R runs.

    If repeats are compared one by one, these are medians over repeats.
    """
    better, equivalent, traded = np.full((3, len(runs), len(runs)), np.nan)
    for first, second in combinations(range(len(runs)), 2):
        comparisons = compare_pair(runs[first], runs[second], settings, ratios).comparisons
        events_of_repeats = [comparison.events() for comparison in comparisons]
        better[first, second], better[second, first], equivalent[first, second] = (
            np.median([events[name] for events in events_of_repeats]) for name in _PLAIN
        )
        mixed = [
            sum(probability for name, probability in events.items() if name not in _PLAIN)
            for events in events_of_repeats
        ]
        equivalent[second, first] = equivalent[first, second]
        traded[first, second] = traded[second, first] = np.median(mixed)
    return Pairs(better, equivalent, traded)


def outperformance(
    runs: Sequence[RunPredictions], settings: Settings, ratios: Ratios | None = None
) -> Floats:
    """Return the (R, R) probabilities P(row >> column)."""
    return every_pair(runs, settings, ratios).outperforms
