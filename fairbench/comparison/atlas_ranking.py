"""Ranks of approaches across data sets, what is best on a new one, and what explains it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.comparison.atlas_claim_values import MeanOverFamilies
from fairbench.comparison.atlas_findings import (
    Explanation,
    MetricStandings,
    Standing,
)
from fairbench.comparison.atlas_values import AtlasValues
from fairbench.comparison.atlas_verdicts import OPEN
from fairbench.inference.family_means import family_means, mean_over_families
from fairbench.inference.multilevel import FEWEST_FAMILIES, MeasuredDifferences, Multilevel, fit
from fairbench.inference.rates import Limits
from fairbench.metrics.registry import find, label

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
WRONG = 0.05  # the chance that any statement of a ranking is wrong
_FACTS = ("rows", "positive_share", "smallest_group_share")
_TOLD = 150  # draws of each pair, whose means and errors alone count
_COMMON = 5  # how many families a common correlation of approaches is worth
EPSILON = 0.01


@dataclass(frozen=True, eq=False)
class RankedValues:
    """One metric of the approaches that are ranked, the smaller the better.

    Attributes
    ----------
    places : (A,) of the approaches among those of `values`.
    losses : (A, T, R) the metric, its sign turned where larger is better.
    sign : 1, or -1 where it was turned.
    reference : which of the A is the reference.
    """

    values: AtlasValues
    metric: str
    places: NDArray[np.intp]
    losses: Array
    sign: float
    reference: int

    @classmethod
    def of(cls, values: AtlasValues, metric: str, reference: int) -> RankedValues | None:
        """Return the approaches that have a metric on enough tasks and families; None without."""
        declared = find(metric)
        sign = -1.0 if declared is not None and declared.better == "higher" else 1.0
        losses = sign * values.metric(metric)
        both = np.isfinite(losses) & np.isfinite(losses[reference])
        there = both.sum(axis=2) > 1
        families = np.eye(int(values.family.max()) + 1)[values.family]
        enough = ((there @ families) > 0).sum(axis=1) >= FEWEST_FAMILIES
        enough &= there.sum(axis=1) >= values.fewest_tasks
        places = np.flatnonzero(enough)
        if not enough[reference] or len(places) < 2:
            return None
        own = int(np.flatnonzero(places == reference)[0])
        return cls(values, metric, places, losses[places], sign, own)

    @property
    def names(self) -> list[str]:
        """The names of the approaches."""
        return [self.values.names[place] for place in self.places]

    @property
    def epsilon(self) -> float:
        """The largest difference that does not matter in practice."""
        declared = find(self.metric)
        return declared.epsilon if declared is not None and not declared.relative else EPSILON

    @property
    def same(self) -> NDArray[np.intp]:
        """The first approach that is equal everywhere, or the reference, for each of them, (A,)."""
        keys = [(each + 0.0).tobytes() for each in self.losses]  # -0 is 0
        reference = keys[self.reference]
        first = [self.reference if key == reference else keys.index(key) for key in keys]
        return np.array(first, np.intp)

    @property
    def others(self) -> list[int]:
        """All but the reference."""
        return [place for place in range(len(self.places)) if place != self.reference]

    def against_reference(self, facts: Array | None = None) -> MeasuredDifferences:
        """Return the differences of the others from the reference."""
        found = self.losses[self.others] - self.losses[self.reference]
        return self.values.measured(found, facts)


def metric_standings(
    ranked: RankedValues, *, generator: np.random.Generator, draws: int = 500
) -> MetricStandings:
    """Return where each approach stands in one metric; equal ones stand at one place."""
    count, same = len(ranked.places), ranked.same
    pairs = np.array(list(combinations(range(count), 2)))
    differences = ranked.losses[pairs[:, 0]] - ranked.losses[pairs[:, 1]]
    told = fit(ranked.values.measured(differences), generator=generator, draws=_TOLD)
    better = surely_better(pairs, told, count, ranked.epsilon)[np.ix_(same, same)]
    kept = may_be_best(pairs, told, count, ranked.epsilon)[same]
    leading = {name for name, mine in zip(ranked.names, kept, strict=True) if mine}
    measured = ranked.against_reference()
    posterior = fit(measured, generator=generator, draws=draws)
    against = _from_reference(posterior, mean_over_families(family_means(measured)), ranked)
    against = against.of(same)
    best, near = on_new_data(against, same, ranked.epsilon, generator=generator)
    standings = _standings(ranked, against, better, best, near)
    order = sorted(standings, key=lambda each: (each.first_rank, each.difference * ranked.sign))
    plain = may_be_best_plainly(ranked, pairs)[same]
    plainly = {ranked.names[place] for place in np.flatnonzero(plain)}
    return MetricStandings(
        metric=ranked.metric,
        label=label(ranked.metric),
        epsilon=ranked.epsilon,
        reference=ranked.names[ranked.reference],
        standings=tuple(order),
        tied_best=tuple(each.approach for each in order if each.approach in leading),
        tied_plain=tuple(each.approach for each in order if each.approach in plainly),
        explanations=tuple(
            _alike(explanations(ranked, generator=generator, draws=draws), ranked.names, same)
        ),
    )


def _alike(
    told: Sequence[Explanation], names: Sequence[str], same: NDArray[np.intp]
) -> Iterator[Explanation]:
    """Yield explanations, of equal approaches what is told of the first one."""
    first = {name: names[place] for name, place in zip(names, same, strict=True)}
    by = {(each.approach, each.fact): each for each in told}
    for each in told:
        of_first = by.get((first[each.approach], each.fact), each)
        yield replace(of_first, approach=each.approach)


def surely_better(pairs: NDArray[np.intp], posterior: Multilevel, count: int, rope: float) -> Mask:
    """Say of every pair whether the first is surely better, (A, A).

    All statements hold at once at 95 % (Holm 1979, Scandinavian Journal of Statistics 6). Two that
    are equal in practice, with 95 % probability, are not told apart.
    """
    wrong = np.where(posterior.enough, posterior.doubt(), 1.0)
    order = np.argsort(wrong, kind="stable")
    passed = wrong[order] * np.arange(len(order), 0, -1) <= WRONG
    made = np.zeros(len(pairs), bool)
    made[order] = np.logical_and.accumulate(passed)
    made &= posterior.within(rope) < 1 - WRONG
    better = np.zeros((count, count), bool)
    first, second = pairs.T
    less = posterior.estimate() < 0  # the first's values are the smaller ones
    better[first[made & less], second[made & less]] = True
    better[second[made & ~less], first[made & ~less]] = True
    return better


def may_be_best(pairs: NDArray[np.intp], posterior: Multilevel, count: int, rope: float) -> Mask:
    """Say which approaches may have the best mean, (A,).

    The truly best one is among them with 95 % probability: who is surely worse than another is left
    out, with Bonferroni's correction for as many others as there are (Hsu 1984, Annals of
    Statistics 12). One that is equal in practice to that other, with 95 % probability, stays.
    """
    wrong = np.where(posterior.enough, posterior.doubt(), 1.0) / 2
    sure = (wrong <= WRONG / max(count - 1, 1)) & (posterior.within(rope) < 1 - WRONG)
    return _unbeaten(pairs, sure, posterior.estimate() > 0, count)


def _unbeaten(pairs: NDArray[np.intp], sure: Mask, first_worse: Mask, count: int) -> Mask:
    kept = np.ones(count, bool)
    kept[pairs[sure & first_worse, 0]] = False
    kept[pairs[sure & ~first_worse, 1]] = False
    return kept


def may_be_best_plainly(ranked: RankedValues, pairs: NDArray[np.intp]) -> Mask:
    """Say which approaches may have the best plain mean over families, (A,).

    As :func:`may_be_best`, by the intervals of the plain means of all pairs.
    """
    count, rope = len(ranked.places), ranked.epsilon
    differences = ranked.losses[pairs[:, 0]] - ranked.losses[pairs[:, 1]]
    means = family_means(ranked.values.measured(differences))
    found = mean_over_families(means, level=1 - 2 * WRONG / max(count - 1, 1))
    own = mean_over_families(means, level=1 - WRONG)
    sure = (found.lower > 0) | (found.upper < 0)
    sure &= (own.lower < -rope) | (own.upper > rope)
    return _unbeaten(pairs, sure, found.value > 0, count)


@dataclass(frozen=True, eq=False)
class AgainstReference:
    """The differences of A approaches from the reference, whose own are 0, (A,) or (S, A).

    `plain` are the plain means over families with the ends of their intervals, `model` the
    multilevel model's, (3, A).
    """

    plain: Array
    model: Array
    new_lower: Array
    new_upper: Array
    new: Array
    effects: Array
    families: NDArray[np.intp]

    def of(self, places: NDArray[np.intp]) -> AgainstReference:
        """Return those of some places, in their order."""
        return AgainstReference(
            plain=self.plain[:, places],
            model=self.model[:, places],
            new_lower=self.new_lower[places],
            new_upper=self.new_upper[places],
            new=self.new[:, places],
            effects=self.effects[places],
            families=self.families[places],
        )


def _from_reference(posterior: Multilevel, plain: Limits, ranked: RankedValues) -> AgainstReference:
    """Return the differences from the reference, with its own."""
    count = len(ranked.places)

    def spread(values: Array) -> Array:
        found = np.zeros((*values.shape[:-1], count))
        found[..., ranked.others] = values
        return found

    families = np.zeros(count, np.intp)
    families[ranked.others] = posterior.families
    families[ranked.reference] = posterior.families.max()
    new_lower, new_upper = posterior.new_interval()
    return AgainstReference(
        plain=spread(np.stack(plain)),
        model=spread(np.stack([posterior.estimate(), *posterior.interval()])),
        new_lower=spread(new_lower),
        new_upper=spread(new_upper),
        new=spread(posterior.new),
        effects=spread(posterior.effects.T).T,
        families=families,
    )


def on_new_data(
    against: AgainstReference,
    same: NDArray[np.intp],
    epsilon: float,
    *,
    generator: np.random.Generator,
) -> tuple[Array, Array]:
    """Return the probability to be the best, and within epsilon of it, on a new family, (A,) each.

    Equal approaches, `same` (A,), are drawn together, and share the probability to be the best.

    Each difference from the reference is drawn from its own prediction. How they go together is
    taken from the data sets: correlations over those that both were run on, drawn towards their
    average as far as few families tell little (Ledoit and Wolf 2004, Journal of Portfolio
    Management 30), in a normal copula.
    """
    moving = np.flatnonzero(against.new.std(axis=0) > 0)
    drawn = against.new.copy()
    if len(moving) > 1:
        correlation = _correlation(against.effects[moving], int(against.families.max()))
        values, vectors = np.linalg.eigh(correlation)
        root = vectors * np.sqrt(np.maximum(values, 0))
        normal = generator.standard_normal((4 * len(drawn), len(moving))) @ root.T
        normal /= np.sqrt((root**2).sum(axis=1))
        share = special.ndtr(normal)
        ordered = np.sort(against.new[:, moving], axis=0)
        drawn = np.zeros((len(share), against.new.shape[1]))
        place = np.minimum((share * len(ordered)).astype(int), len(ordered) - 1)
        drawn[:, moving] = np.take_along_axis(ordered, place, axis=0)
    drawn = drawn[:, same]
    smallest = drawn.min(axis=1, keepdims=True)
    tied = drawn == smallest
    best = (tied / tied.sum(axis=1, keepdims=True)).mean(axis=0)
    return best, (drawn <= smallest + epsilon).mean(axis=0)


def _correlation(effects: Array, families: int) -> Array:
    """Return the correlations of approaches over tasks, drawn towards their average, (A, A)."""
    known = np.isfinite(effects)
    count = known @ known.T.astype(float)
    filled = np.where(known, effects, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (filled @ known.T) / count
        square = (filled**2 @ known.T) / count - mean**2
        cross = (filled @ filled.T) / count - mean * mean.T
        found = cross / np.sqrt(square * square.T)
    found = np.where(np.isfinite(found) & (count > 2), np.clip(found, -1, 1), 0)
    off = ~np.eye(len(found), dtype=bool)
    average = max(float(found[off].mean()), 0.0)
    found = (families * found + _COMMON * average) / (families + _COMMON)
    np.fill_diagonal(found, 1)
    return np.asarray(found)


def _standings(
    ranked: RankedValues, against: AgainstReference, better: Mask, best: Array, near: Array
) -> list[Standing]:
    with np.errstate(invalid="ignore"):
        known = np.isfinite(ranked.losses)
        of_task = np.where(known, ranked.losses, 0).sum(axis=2) / known.sum(axis=2)
    both = np.isfinite(of_task) & np.isfinite(of_task[ranked.reference])
    sign, found = ranked.sign, []
    for place, name in enumerate(ranked.names):
        plain, model = (_turned(each[:, place], sign) for each in (against.plain, against.model))
        new = sorted([sign * against.new_lower[place], sign * against.new_upper[place]])
        standing = Standing(
            approach=name,
            tasks=int(both[place].sum()),
            families=int(against.families[place]),
            mean=float(sign * of_task[place][both[place]].mean()),
            difference=plain.mean,
            lower=plain.lower,
            upper=plain.upper,
            model=model,
            new_lower=float(new[0]),
            new_upper=float(new[1]),
            first_rank=1 + int(better[:, place].sum()),
            last_rank=len(better) - int(better[place].sum()),
            best_new=float(best[place]),
            near_new=float(near[place]),
        )
        found.append(standing)
    return found


def _turned(found: Array, sign: float) -> MeanOverFamilies:
    """Return a mean with its ends, (3,), in the metric's own sign."""
    mean, *ends = sign * found
    return MeanOverFamilies(float(mean), float(min(ends)), float(max(ends)))


def explanations(
    ranked: RankedValues, *, generator: np.random.Generator, draws: int = 500
) -> list[Explanation]:
    """Return whether facts about data sets tell where approaches do better than the reference."""
    names, facts = _facts(ranked)
    measured = ranked.against_reference(facts)
    posterior = fit(measured, generator=generator, draws=draws)
    tail = WRONG / 2 / max(len(ranked.others) * len(names), 1)
    found = []
    for coefficient, fact in enumerate(names, start=1):
        slopes = posterior.estimate(coefficient)
        lower, upper = posterior.interval(tail, coefficient)
        for i, place in enumerate(ranked.others):
            low, high = float(lower[i]), float(upper[i])
            words = "worse where larger" if low > 0 else "better where larger"
            verdict = words if low > 0 or high < 0 else OPEN
            ends = sorted([ranked.sign * low, ranked.sign * high])
            slope = float(ranked.sign * slopes[i])
            name = ranked.names[place]
            found.append(Explanation(name, fact, slope, ends[0], ends[1], verdict))
    return found


def _facts(ranked: RankedValues) -> tuple[list[str], Array]:
    """Return the facts that vary between tasks, each with mean 0 and variance 1, (T, q)."""
    tasks = ranked.values.tasks
    columns = {name: tasks[name].to_numpy(float) for name in _FACTS if name in tasks}
    if "rows" in columns:
        columns["rows"] = np.log(columns["rows"])
    own = ranked.values.metric("error_rate")[ranked.places[ranked.reference]]
    known = np.isfinite(own)
    with np.errstate(invalid="ignore"):
        columns["reference_error"] = np.where(known, own, 0).sum(axis=1) / known.sum(axis=1)
    kept = {}
    for name, values in columns.items():
        there = np.isfinite(values)
        if there.any() and values[there].std() > 0:
            scaled = (values - values[there].mean()) / values[there].std()
            kept[name] = np.where(there, scaled, 0.0)
    return list(kept), np.column_stack([np.zeros((len(tasks), 0)), *kept.values()])
