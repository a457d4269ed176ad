"""The fairest of many finished runs: which is chosen, and what can be said of it afterwards.

A run that is chosen because its gap is the smallest has a gap that looks smaller than it is. What
is printed of it is corrected for the choice (:mod:`fairbench.inference.selection`), unless other
rows chose it than those that judge it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fairbench.comparison.run_predictions import SharedRows, read_shared
from fairbench.comparison.settings import Bound
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.inference.gaps import GroupLimits, largest_gap, simultaneous_level
from fairbench.inference.ranking import inflation, not_told_from_best, shrinkage_of_correlations
from fairbench.inference.rates import rate_limits
from fairbench.inference.selection import (
    Candidates,
    Tails,
    choose,
    correction,
    joint_noise,
)
from fairbench.metrics.rates import ERROR_RATE, Rate
from fairbench.metrics.registry import Metric
from fairbench.results.runs import Run

Array = NDArray[np.float64]
Ends = tuple[float, float]
_DRAWS, _DRAWS_OF_MANY, _MANY = 4000, 2000, 100


@dataclass(frozen=True)
class Judged:
    """A metric of the chosen run, with its interval by itself and corrected for the choice."""

    metric: Metric
    value: float
    naive: Ends
    corrected: Ends


@dataclass(frozen=True, eq=False)
class Choice:
    """The run that was chosen out of k, and what is known of all of them.

    Attributes
    ----------
    place : the position of the chosen run.
    objectives, values : (k,) and (k, C) of all runs on the rows that chose, signs as they are.
    eligible : (k,) which runs are within all bounds on those rows.
    near : (k,) which runs cannot be told from the best on those rows.
    judged : the objective and the other metrics of the chosen run, on the rows that judge.
    apart : whether the rows that judge are others than those that chose.
    repeats : how many hold-outs the means are over.
    notes : what a reader has to know beside.
    """

    runs: Sequence[Run]
    bounds: tuple[Bound, ...]
    level: float
    place: int
    objectives: Array
    values: Array
    eligible: NDArray[np.bool_]
    near: NDArray[np.bool_]
    judged: tuple[Judged, ...]
    apart: bool
    repeats: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Part:
    """A rate of one group, or of everyone."""

    rate: Rate
    group: int | None = None

    def counts(self, counts: Array) -> Array:
        """Return the counts that it is of, (..., G, 4) -> (..., 4)."""
        return counts.sum(axis=-2) if self.group is None else counts[..., self.group, :]

    def size(self, counts: Array) -> Array:
        """Return how many rows it is of, (..., G, 4) -> (...)."""
        return self.rate.size(self.counts(counts))

    def influence(self, rows: SharedRows, counts: Array) -> Array:
        """Return what every row adds to its error, (n, k), given counts (k, G, 4)."""
        kept = slice(None) if self.group is None else rows.group == self.group
        top, bottom = (
            np.asarray(weights, np.float32)[rows.cells[kept]]
            for weights in (self.rate.numerator, self.rate.denominator)
        )
        value, size = self.rate(self.counts(counts)), self.size(counts)
        found = np.zeros(rows.cells.shape)
        found[kept] = (top - value * bottom) / size
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Rates of k runs, the parts of the objective first, and how their errors are judged.

    Attributes
    ----------
    parts : what the rates are; `own` of them make the objective.
    counts : (J, k, G, 4).
    """

    metric: Metric
    parts: tuple[_Part, ...]
    own: int
    bounds: tuple[Bound, ...]
    rows: SharedRows
    test_share: float

    @cached_property
    def pooled(self) -> Array:
        """Mean confusion counts over repeats, (k, G, 4)."""
        return np.asarray(self.rows.counts.mean(axis=0))

    @cached_property
    def of_repeats(self) -> Array:
        """The rates of every repeat, (J, k, D)."""
        return np.stack([p.rate(p.counts(self.rows.counts)) for p in self.parts], axis=-1)

    @cached_property
    def rates(self) -> Array:
        """The rates, (k, D): means over hold-outs, or of all folds together."""
        if self.rows.averaged:
            return np.asarray(self.of_repeats.mean(axis=0))
        return np.stack([part.rate(part.counts(self.pooled)) for part in self.parts], axis=-1)

    @cached_property
    def signs(self) -> Array:
        """The sign with which each rate beside the objective is small where it is good, (C,)."""
        signs = [bound.sign for bound in self.bounds]
        return np.array(signs + [1.0] * (len(self.parts) - self.own - len(signs)))

    @cached_property
    def contrasts(self) -> Array:
        """The differences of parts whose largest size is the objective, (m, own)."""
        if not self.metric.is_gap:
            return np.ones((1, 1))
        own = self.parts[: self.own]
        pairs = [
            (a, b)
            for a, b in combinations(range(self.own), 2)
            if own[a].rate.name == own[b].rate.name
        ]
        found = np.zeros((len(pairs), self.own))
        for row, (a, b) in zip(found, pairs, strict=True):
            row[[a, b]] = 1, -1
        return found

    @cached_property
    def candidates(self) -> Candidates:
        """The runs as candidates of the choice."""
        noise = self._noise()
        free = len(self.parts) - self.own - len(self.bounds)
        limits = [bound.sign * bound.limit for bound in self.bounds]
        return Candidates(
            parts=self.rates[:, : self.own],
            part_noise=noise[..., : self.own],
            contrasts=self.contrasts,
            values=self.rates[:, self.own :] * self.signs,
            value_noise=noise[..., self.own :] * self.signs,
            bounds=np.array([*limits, *[np.inf] * free]),
            folded=self.metric.is_gap,
            freedom=len(self.rows.repeats) - 1 if self.rows.averaged else np.inf,
        )

    def _noise(self) -> Array:
        """Return draws of the errors of all rates, (T, k, D)."""
        draws = _DRAWS if len(self.rates) <= _MANY else _DRAWS_OF_MANY
        generator = rng(0, "choice")
        factor, apart = self._deviations() if self.rows.averaged else (self._influences(), 0.0)
        noise = joint_noise(factor, draws=draws, generator=generator)
        spread = np.sqrt((factor**2).sum(axis=0))
        if apart:
            noise *= np.sqrt(1 - apart)
            noise += np.sqrt(apart) * spread * generator.standard_normal(noise.shape)
        # Rates of 0 and 1 vary too, although none of the rows at hand shows it.
        least, still = self._least_errors(), spread == 0
        noise *= np.maximum(1, least / np.where(still, np.inf, spread))
        noise[:, still] = least[still] * generator.standard_normal((draws, int(still.sum())))
        return noise

    def _influences(self) -> Array:
        """Return what every person adds to the rates' errors, (n, k, D)."""
        each = [part.influence(self.rows, self.pooled) for part in self.parts]
        stacked = np.stack(each, axis=-1) / np.float32(len(self.rows.repeats))
        if len(self.rows.repeats) == 1:
            return np.asarray(stacked)
        people, place = np.unique(self.rows.row, return_inverse=True)
        found = np.zeros((len(people), *stacked.shape[1:]), np.float32)
        np.add.at(found, place, stacked)
        return np.asarray(found)

    def _deviations(self) -> tuple[Array, float]:
        """Return rows whose squares sum to the corrected variance of means over hold-outs.

        The variance of the mean is that of Nadeau and Bengio (2003). Few repeats say little of how
        many runs vary together: the second value says by how much correlations are to be shrunk.
        """
        repeats = len(self.rows.repeats)
        centred = self.of_repeats - self.of_repeats.mean(axis=0)
        scale = np.sqrt(inflation(repeats, self.test_share) / (repeats - 1))
        return scale * centred, shrinkage_of_correlations(centred.reshape(repeats, -1))

    def _least_errors(self) -> Array:
        """Return the standard errors of the rates as if all rows were others, (k, D)."""
        found = []
        for part, rate in zip(self.parts, self.rates.T, strict=True):
            counts = self.rows.counts.sum(axis=0) if self.rows.averaged else self.pooled
            size = part.size(counts)
            smooth = (rate * size + 0.5) / (size + 1)
            found.append(np.sqrt(smooth * (1 - smooth) / (size + 1)))
        return np.stack(found, axis=-1)

    def judged(
        self, place: int, naive: Sequence[Tails], corrected: Sequence[Tails]
    ) -> Iterator[Judged]:
        """Yield the objective and the other rates of one run, as they are to be printed."""
        ends = [self._objective_interval(place, tails[0]) for tails in (naive, corrected)]
        yield Judged(self.metric, float(self.candidates.objectives[place]), *ends)
        metrics = [*(bound.metric for bound in self.bounds), ERROR_RATE]
        for c, (sign, metric) in enumerate(zip(self.signs, metrics, strict=False)):
            turned = [each[c + 1] for each in (naive, corrected)]
            if sign < 0:
                turned = [Tails(each.upper, each.lower) for each in turned]
            ends = [self._rate_interval(place, self.own + c, tails) for tails in turned]
            yield Judged(metric, float(self.rates[place, self.own + c]), *ends)

    def _objective_interval(self, place: int, tails: Tails) -> Ends:
        """Return the interval of one run's objective."""
        if not self.metric.is_gap:
            return self._rate_interval(place, 0, tails)
        if self.rows.averaged:
            return self._gap_of_means(place, tails)
        limits = []
        for name in dict.fromkeys(part.rate.name for part in self.parts[: self.own]):
            mine = [part for part in self.parts[: self.own] if part.rate.name == name]
            sizes = np.array([part.size(self.pooled[place]) for part in mine])
            rates = np.array([part.rate(part.counts(self.pooled[place])) for part in mine])
            level = simultaneous_level(1 - 2 * tails.lower, len(mine), len(self.metric.rates))
            single = rate_limits(rates * sizes, sizes, level=1 - 2 * tails.upper)
            limits.append(GroupLimits(single, rate_limits(rates * sizes, sizes, level=level)))
        found = largest_gap(*limits)
        return float(found.lower), float(found.upper)

    def _gap_of_means(self, place: int, tails: Tails) -> Ends:
        from scipy.stats import studentized_range

        size = np.abs(self.candidates.differences[place])
        errors, freedom = self.candidates.errors[place], self.candidates.freedom
        upper = size + self.candidates.critical(tails.upper) * errors
        groups, rates = self.own // len(self.metric.rates), len(self.metric.rates)
        level = 1 - 2 * tails.lower / rates
        together = studentized_range.ppf(level, max(groups, 2), freedom) / np.sqrt(2)
        lower = size - float(together) * errors
        return max(0.0, float(lower.max())), float(upper.max())

    def _rate_interval(self, place: int, column: int, tails: Tails) -> Ends:
        """Return the interval of one rate of one run."""
        rate = float(self.rates[place, column])
        if self.rows.averaged:
            noise = np.concatenate([self.candidates.part_noise, self.candidates.value_noise], 2)
            error = float(np.sqrt((noise[:, place, column] ** 2).mean()))
            ends = [self.candidates.critical(t) * error for t in (tails.lower, tails.upper)]
            return max(0.0, rate - ends[0]), min(1.0, rate + ends[1])
        size = float(self.parts[column].size(self.pooled[place]))
        limits = [
            rate_limits(rate * size, size, level=1 - 2 * t) for t in (tails.lower, tails.upper)
        ]
        return float(limits[0].lower), float(limits[1].upper)


def choose_run(
    runs: Sequence[Run], metric: Metric, bounds: tuple[Bound, ...], *, level: float = 0.95
) -> Choice:
    """Return the run of the smallest objective within all bounds, and what is known of it.

    Parameters
    ----------
    runs : two or more that predict the same rows of one data set for the same groups.

    Raises
    ------
    UserError : runs that cannot be compared, or none within the bounds.
    """
    read = read_shared(runs)
    judging, choosing, notes = read.judging, read.choosing, read.notes
    test = _estimates(judging, metric, bounds, read.test_share, notes)
    rows = _estimates(choosing, metric, bounds, read.test_share, notes) if choosing else test
    candidates = rows.candidates
    place = choose(candidates)
    if place is None:
        raise _none_within(rows, bounds)
    plain = Tails((1 - level) / 2, (1 - level) / 2)
    naive = [plain] * (1 + len(bounds) + 1)
    if choosing is None:
        made = correction(candidates, level=level)
        corrected = [made.objective, *made.values]
    else:
        corrected = naive
    return Choice(
        runs=read.runs,
        bounds=bounds,
        level=level,
        place=place,
        objectives=candidates.objectives,
        values=rows.rates[:, rows.own :],
        eligible=candidates.eligible,
        near=not_told_from_best(candidates, level=level),
        judged=tuple(test.judged(place, naive, corrected)),
        apart=choosing is not None,
        repeats=len(judging.repeats) if judging.averaged else 1,
        notes=tuple(notes),
    )


def _none_within(rows: _Estimates, bounds: tuple[Bound, ...]) -> UserError:
    bound = bounds[0]
    nearest = rows.rates[:, rows.own] * bound.sign
    found = bound.sign * float(nearest.min())
    words = " and ".join(map(str, bounds))
    extreme = "smallest" if bound.sign > 0 else "largest"
    return UserError(
        f"none of {len(nearest)} runs has {words}: the {extreme} {bound.metric.name} is {found:.3f}"
    )


def _estimates(
    rows: SharedRows, metric: Metric, bounds: tuple[Bound, ...], share: float, notes: list[str]
) -> _Estimates:
    """Return the rates of all runs, without groups in which they do not exist."""
    groups: list[int | None] = list(range(len(rows.names))) if metric.is_gap else [None]
    own = [_Part(rate, group) for rate in metric.rates for group in groups]
    present = [part for part in own if np.all(part.size(rows.counts) > 0)]
    for part in own:
        if part not in present and part.group is not None:
            note = f"{rows.names[part.group]} is left out: {part.rate.empty} in it"
            notes += [note] * (note not in notes)
    for rate in metric.rates:
        if len([part for part in present if part.rate is rate]) < 1 + metric.is_gap:
            raise UserError(
                f"{metric.name} cannot be compared: fewer than two groups have rows for the "
                f"{rate.name.replace('_', ' ')}, in every run and repeat"
            )
    others = [bound.metric for bound in bounds]
    others += [ERROR_RATE] * (ERROR_RATE not in (*others, metric))
    parts = (*present, *(_Part(each.rates[0]) for each in others))
    return _Estimates(metric, parts, len(present), bounds, rows, share)
