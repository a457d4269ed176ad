"""Ranks of approaches across data sets, and facts about data sets that explain differences.

Ranks are those of ``fairbench rank``. The multilevel model is used for the explanations only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.comparison.atlas.findings import (
    Explanation,
    MetricStandings,
    Standing,
)
from fairbench.comparison.atlas.values import AtlasValues, epsilon_of
from fairbench.comparison.atlas.verdicts import OPEN
from fairbench.comparison.rank.answer import WRONG, Ranking, answers
from fairbench.comparison.rank.question import HIGHER, LOWER, RankOptions
from fairbench.comparison.rank.sentences import (
    found_sentences,
    fresh_sentences,
    limits_of_cells,
    near_in_words,
    new_task_sentences,
    open_sentences,
    resolving_sentences,
    unseen_in_words,
)
from fairbench.comparison.rank.table import Scores, ScoreTable
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.multilevel import FEWEST_FAMILIES, MeasuredDifferences, fit
from fairbench.metrics.registry import find, label

_FACTS = ("rows", "positive_share", "smallest_group_share")
_NOUN = "approaches"  # what methods are called here


@dataclass(frozen=True, eq=False)
class RankedValues:
    """One metric of the ranked approaches, with its sign such that smaller is better.

    Attributes
    ----------
    positions : (A,) the index in `values` of each ranked approach.
    losses : (A, T, R) the metric, its sign turned if larger values are better.
    sign : -1 if it was turned, otherwise 1.
    reference : the index of the reference among the A ranked approaches.
    """

    values: AtlasValues
    metric: str
    positions: NDArray[np.intp]
    losses: Floats
    sign: float
    reference: int

    @classmethod
    def of(cls, values: AtlasValues, metric: str, reference: int) -> RankedValues | None:
        """Return the approaches with a metric on enough tasks and families; None if too few."""
        declared = find(metric)
        sign = -1.0 if declared is not None and declared.better == "higher" else 1.0
        losses = sign * values.metric(metric)
        is_paired = np.isfinite(losses) & np.isfinite(losses[reference])
        has_two_splits = is_paired.sum(axis=2) > 1
        families = np.eye(int(values.family.max()) + 1)[values.family]
        enough = ((has_two_splits @ families) > 0).sum(axis=1) >= FEWEST_FAMILIES
        enough &= has_two_splits.sum(axis=1) >= values.fewest_tasks
        positions = np.flatnonzero(enough)
        if not enough[reference] or len(positions) < 2:
            return None
        reference_position = int(np.flatnonzero(positions == reference)[0])
        return cls(values, metric, positions, losses[positions], sign, reference_position)

    @property
    def names(self) -> list[str]:
        """The names of the approaches."""
        return [self.values.names[position] for position in self.positions]

    @property
    def epsilon(self) -> float:
        """The largest difference that does not matter in practice."""
        return epsilon_of(self.metric)

    @property
    def first_equal(self) -> NDArray[np.intp]:
        """The index of the reference or else of the first approach with equal losses, (A,)."""
        keys = [(loss + 0.0).tobytes() for loss in self.losses]  # -0 is 0
        reference = keys[self.reference]
        first = [self.reference if key == reference else keys.index(key) for key in keys]
        return np.array(first, np.intp)

    @property
    def others(self) -> list[int]:
        """All but the reference."""
        return [position for position in range(len(self.positions)) if position != self.reference]

    def table(self) -> ScoreTable:
        """Return the values as a table of scores, without tasks that have none."""
        repeats = self.losses.shape[2]
        cells = self.losses.reshape(len(self.losses), -1)
        has_value = np.isfinite(cells).any(axis=0)
        task = np.repeat(np.arange(self.losses.shape[1]), repeats)[has_value]
        task_index, task = np.unique(task, return_inverse=True)
        rows = self.values.tasks.iloc[task_index]
        family, families = pd.factorize(rows["family"])
        better = LOWER if self.sign > 0 else HIGHER
        return ScoreTable(
            methods=tuple(self.names),
            tasks=tuple(rows["dataset"].str.cat(rows["protect"], sep=", ")),
            families=tuple(map(str, families)),
            task=task,
            family=family.astype(np.intp),
            splits=repeats,
            questions=0,
            scores=(Scores(self.metric, better, self.sign * cells[:, has_value], None),),
        )

    def differences_from_reference(self, facts: Floats | None = None) -> MeasuredDifferences:
        """Return the differences of the others from the reference."""
        differences = self.losses[self.others] - self.losses[self.reference]
        return self.values.estimate_differences(differences, facts)


def metric_standings(
    ranked: RankedValues,
    *,
    generator: np.random.Generator,
    draws: int = 500,
    error_rate: float = WRONG,
    seed: int = 0,
) -> MetricStandings:
    """Return ranks and differences of each approach in one metric.

    Ranks, who may be the best, differences and probabilities on a new task are those of
    ``fairbench rank``: the mean over families, with equal weights.

    Parameters
    ----------
    draws : number of draws from the posterior of the explanations.
    error_rate : the chance that any rank, difference or candidate for the best is wrong.
    seed : the seed of the random sign flips.
    """
    options = RankOptions(within=ranked.epsilon, seed=seed)
    (answer,) = answers(
        ranked.table(), options, error_rate=error_rate, most_planned=len(ranked.positions)
    )
    explained = explanations(ranked, generator=generator, draws=draws)
    return MetricStandings(
        metric=ranked.metric,
        label=label(ranked.metric),
        epsilon=ranked.epsilon,
        reference=ranked.names[ranked.reference],
        standings=tuple(_standings(ranked, answer)),
        may_be_best=tuple(answer.best),
        surely_near=tuple(answer.surely_near),
        pairs=len(answer.paired.first),
        told_apart=answer.told_apart,
        plans=answer.plans,
        fresh=answer.fresh,
        found=(*found_sentences(answer, _NOUN), *fresh_sentences(answer, _NOUN)),
        on_new_task=tuple(new_task_sentences(answer, "approach")),
        unresolved=tuple(open_sentences(answer, _NOUN)),
        resolving=tuple(limits_of_cells(answer)) or tuple(resolving_sentences(answer)),
        unseen=unseen_in_words(answer),
        explanations=tuple(_same_for_equal_approaches(explained, ranked.names, ranked.first_equal)),
    )


def _standings(ranked: RankedValues, answer: Ranking) -> Iterator[Standing]:
    """Yield the standing of each approach, the best mean first."""
    reference = ranked.names[ranked.reference]
    is_paired = np.isfinite(ranked.losses) & np.isfinite(ranked.losses[ranked.reference])
    tasks = dict(zip(ranked.names, is_paired.any(axis=2).sum(axis=1), strict=True))
    for position, name in enumerate(answer.methods):
        value = lower = upper = 0.0
        families = int(answer.ran[position])
        if name != reference:
            difference = answer.difference(name, reference)
            value, lower, upper = difference.value, difference.lower, difference.upper
            families = difference.units
        yield Standing(
            approach=name,
            tasks=int(tasks[name]),
            families=families,
            mean=float(answer.means[position]),
            difference=value,
            lower=lower,
            upper=upper,
            first_rank=int(answer.first_rank[position]),
            last_rank=int(answer.last_rank[position]),
            may_be_best=bool(answer.may_be_best[position]),
            best_new=float(answer.new.best[position]) if answer.new else float("nan"),
            near_new=float(answer.new.near[position]) if answer.new else float("nan"),
            near_percent=near_in_words(answer, position, " % or more", " %"),
        )


def _same_for_equal_approaches(
    effects: Sequence[Explanation], names: Sequence[str], first_equal: NDArray[np.intp]
) -> Iterator[Explanation]:
    """Yield explanations, giving approaches with equal losses those of the first one."""
    first_name_of = {
        name: names[position] for name, position in zip(names, first_equal, strict=True)
    }
    effect_of = {(effect.approach, effect.fact): effect for effect in effects}
    for effect in effects:
        first_effect = effect_of.get((first_name_of[effect.approach], effect.fact), effect)
        yield replace(first_effect, approach=effect.approach)


def explanations(
    ranked: RankedValues, *, generator: np.random.Generator, draws: int = 500
) -> list[Explanation]:
    """Return the slopes of differences from the reference on facts about data sets."""
    names, facts = _facts(ranked)
    measured = ranked.differences_from_reference(facts)
    posterior = fit(measured, generator=generator, draws=draws)
    tail = WRONG / 2 / max(len(ranked.others) * len(names), 1)
    effects = []
    for coefficient, fact in enumerate(names, start=1):
        slopes = posterior.estimate(coefficient)
        lower, upper = posterior.interval(tail, coefficient)
        for row, position in enumerate(ranked.others):
            low, high = float(lower[row]), float(upper[row])
            direction = "worse where larger" if low > 0 else "better where larger"
            lower_slope, upper_slope = sorted([ranked.sign * low, ranked.sign * high])
            effects.append(
                Explanation(
                    approach=ranked.names[position],
                    fact=fact,
                    slope=float(ranked.sign * slopes[row]),
                    lower=lower_slope,
                    upper=upper_slope,
                    verdict=direction if low > 0 or high < 0 else OPEN,
                )
            )
    return effects


def _facts(ranked: RankedValues) -> tuple[list[str], Floats]:
    """Return the facts that vary between tasks, each with mean 0 and variance 1, (T, q)."""
    tasks = ranked.values.tasks
    columns = {name: tasks[name].to_numpy(float) for name in _FACTS if name in tasks}
    if "rows" in columns:
        columns["rows"] = np.log(columns["rows"])
    reference_errors = ranked.values.metric("error_rate")[ranked.positions[ranked.reference]]
    is_known = np.isfinite(reference_errors)
    with np.errstate(invalid="ignore"):
        columns["reference_error"] = np.where(is_known, reference_errors, 0).sum(
            axis=1
        ) / is_known.sum(axis=1)
    scaled_facts = {}
    for name, values in columns.items():
        is_known_fact = np.isfinite(values)
        if is_known_fact.any() and values[is_known_fact].std() > 0:
            scaled = (values - values[is_known_fact].mean()) / values[is_known_fact].std()
            scaled_facts[name] = np.where(is_known_fact, scaled, 0.0)
    return list(scaled_facts), np.column_stack([np.zeros((len(tasks), 0)), *scaled_facts.values()])
