"""The fairest of many finished runs: which is chosen, and what can be said of it afterwards.

A run that is chosen because its gap is the smallest has a gap that looks smaller than it is. What
is printed of it is corrected for the choice (`inference/comparing/selection.py`), unless other
rows chose it than those that judge it. Its interval by itself is that of a run's own table
(:mod:`fairbench.inference.repeats`); the corrected one is the same at another level.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairbench.comparison.run_predictions import Shared, SharedRows, read_shared
from fairbench.comparison.settings import Bound
from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.inference.comparing.ranking import larger_than, not_told_from_best
from fairbench.inference.comparing.selection import (
    Candidates,
    Tails,
    choose,
    correction,
    joint_noise,
)
from fairbench.inference.repeats import REPEATS, RunRates, largest_mean_gap
from fairbench.metrics.rates import ERROR_RATE, Rate
from fairbench.metrics.registry import Metric
from fairbench.results.runs import Run

Codes = NDArray[np.int64]
Ends = tuple[float, float]
Index: TypeAlias = int | slice | list[int]
_DRAWS, _DRAWS_OF_MANY, _MANY = 4000, 2000, 100
_ROUNDING = 1e-9


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
    larger : (k,) which runs' objectives are surely larger than the chosen one's; such a run may
        still be the best where the chosen one may be beyond a bound.
    same : (k,) which runs predict what the chosen one does, so that nothing sets it before them.
    judged : the objective and the other metrics of the chosen run, on the rows that judge.
    together : upper ends, in the order of `judged`, that all hold at once at the level.
    apart : whether the rows that judge are others than those that chose.
    repeats : how many hold-outs the means are over.
    notes : what a reader has to know beside.
    """

    runs: Sequence[Run]
    bounds: tuple[Bound, ...]
    level: float
    place: int
    objectives: Floats
    values: Floats
    eligible: NDArray[np.bool_]
    near: NDArray[np.bool_]
    larger: NDArray[np.bool_]
    same: NDArray[np.bool_]
    judged: tuple[Judged, ...]
    together: tuple[float, ...]
    apart: bool
    repeats: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Part:
    """A rate of one group, or of everyone."""

    rate: Rate
    group: int | None = None

    def counts(self, counts: Floats) -> Floats:
        """Return the counts that it is of, (..., G, 4) -> (..., 4)."""
        return counts.sum(axis=-2) if self.group is None else counts[..., self.group, :]

    def size(self, counts: Floats) -> Floats:
        """Return how many rows it is of, (..., G, 4) -> (...)."""
        return self.rate.size(self.counts(counts))

    def influence(self, cells: Codes, group: Codes, counts: Floats) -> Floats:
        """Return what every row adds to its error, (n, k), given cells (n, k), counts (k, G, 4)."""
        kept = slice(None) if self.group is None else group == self.group
        top, bottom = (
            np.asarray(weights, np.float32)[cells[kept]]
            for weights in (self.rate.numerator, self.rate.denominator)
        )
        value, size = self.rate(self.counts(counts)), self.size(counts)
        found = np.zeros(cells.shape)
        found[kept] = (top - value * bottom) / size
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Rates of k runs, the parts of the objective first, and how their errors are judged.

    Attributes
    ----------
    parts : what the rates are; `own` of them make the objective.
    """

    metric: Metric
    parts: tuple[_Part, ...]
    own: int
    bounds: tuple[Bound, ...]
    rows: SharedRows

    @cached_property
    def of_splits(self) -> Floats:
        """The rates of every split, (S, k, D)."""
        return np.stack([p.rate(p.counts(self.rows.counts)) for p in self.parts], axis=-1)

    @cached_property
    def sizes(self) -> Floats:
        """How many rows the rates of every split are of, (S, k, D)."""
        return np.stack([p.size(self.rows.counts) for p in self.parts], axis=-1)

    @cached_property
    def rates(self) -> Floats:
        """The rates, (k, D): means over the splits."""
        return np.asarray(np.nanmean(self.of_splits, axis=0))

    @cached_property
    def signs(self) -> Floats:
        """The sign with which each rate beside the objective is small where it is good, (C,)."""
        signs = [bound.sign for bound in self.bounds]
        return np.array(signs + [1.0] * (len(self.parts) - self.own - len(signs)))

    @cached_property
    def contrasts(self) -> Floats:
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
        )

    def _noise(self) -> Floats:
        """Return draws of the errors of all rates, (T, k, D), of these fits on new rows."""
        draws = _DRAWS if len(self.rates) <= _MANY else _DRAWS_OF_MANY
        generator = rng(0, "choice")
        factor = self._influences()
        noise = joint_noise(factor, draws=draws, generator=generator)
        # Rates of 0 and 1 vary too, although none of the rows at hand shows it.
        spread = np.sqrt((factor**2).sum(axis=0))
        least, still = self._least_errors(), spread == 0
        noise *= np.maximum(1, least / np.where(still, np.inf, spread))
        noise[:, still] = least[still] * generator.standard_normal((draws, int(still.sum())))
        return np.asarray(noise[:, self.rows.same])  # runs that predict the same err alike

    def _influences(self) -> Floats:
        """Return what every person adds to the rates' errors, (n, k, D)."""
        repeats = self.rows.splits.repeats
        pooled = self.rows.counts.sum(axis=0) / repeats
        people, place = np.unique(self.rows.row, return_inverse=True)
        found = np.zeros((len(people), *self.rates.shape), np.float32)
        for repeat in np.unique(self.rows.repeat):
            tested = self.rows.repeat == repeat
            cells, group = self.rows.cells[tested], self.rows.group[tested]
            for column, part in enumerate(self.parts):
                found[place[tested], :, column] += part.influence(cells, group, pooled) / repeats
        return np.asarray(found)

    def _least_errors(self) -> Floats:
        """Return the standard errors that the counts alone make, (k, D), as in a run's table."""
        every = self._of_runs(slice(None), slice(None), level=0.5)
        smooth = (self.rates * every.effective_size + 0.5) / (every.effective_size + 1)
        return np.asarray(np.sqrt(smooth * (1 - smooth) / (every.effective_size + 1)))

    def _of_runs(self, run: Index, parts: Index, *, level: float) -> RunRates:
        """Return some rates of some runs in the splits of these, as a run's table has them."""
        values, sizes = (
            np.moveaxis(each[:, run][..., parts], 0, -1) for each in (self.of_splits, self.sizes)
        )
        return RunRates(values, sizes, self.rows.splits, level, len(self.metric.rates))

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
        names = [part.rate.name for part in self.parts[: self.own]]
        columns = [
            [i for i, own in enumerate(names) if own == name] for name in dict.fromkeys(names)
        ]
        lower, upper = (
            largest_mean_gap(
                *(self._of_runs(place, column, level=1 - 2 * tail) for column in columns)
            )
            for tail in (tails.lower, tails.upper)
        )
        return float(lower.lower), float(upper.upper)

    def _rate_interval(self, place: int, column: int, tails: Tails) -> Ends:
        """Return the interval of one rate of one run."""
        lower, upper = (
            self._of_runs(place, column, level=1 - 2 * tail).limits()
            for tail in (tails.lower, tails.upper)
        )
        return float(lower.lower), float(upper.upper)


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
    return choose_among(read_shared(runs), metric, bounds, level=level)


def choose_among(
    read: Shared, metric: Metric, bounds: tuple[Bound, ...], *, level: float = 0.95
) -> Choice:
    """Return the same of runs whose predictions are read."""
    judging, choosing, notes = read.judging, read.choosing, [*read.notes]
    test = _estimates(judging, metric, bounds, notes)
    rows = _estimates(choosing, metric, bounds, notes) if choosing else test
    candidates = rows.candidates
    place = choose(candidates)
    if place is None:
        raise _none_within(rows, bounds)
    plain = Tails((1 - level) / 2, (1 - level) / 2)
    naive = [plain] * (1 + len(bounds) + 1)
    corrected, joint = naive, plain
    if choosing is None:
        made = correction(candidates, level=level)
        corrected = [made.objective, *made.values]
        joint = Tails(made.together, made.together)
    return Choice(
        runs=read.runs,
        bounds=bounds,
        level=level,
        place=place,
        objectives=candidates.objectives,
        values=rows.rates[:, rows.own :],
        eligible=candidates.eligible,
        near=not_told_from_best(candidates, level=level),
        larger=larger_than(candidates, place, level=level),
        same=rows.rows.same == rows.rows.same[place],
        judged=tuple(test.judged(place, naive, corrected)),
        together=tuple(e.corrected[1] for e in test.judged(place, naive, [joint] * len(naive))),
        apart=choosing is not None,
        repeats=judging.splits.repeats if judging.splits.kind == REPEATS else 1,
        notes=tuple(notes),
    )


def as_named(
    rows: SharedRows, metric: Metric, notes: list[str], *, level: float = 0.95
) -> list[list[Judged]]:
    """Return objective and error of every run, as of runs that were named before looking.

    Parameters
    ----------
    notes : gets a sentence for each group that is left out.
    """
    estimates = _estimates(rows, metric, (), notes)
    plain = [Tails((1 - level) / 2, (1 - level) / 2)] * 2
    return [list(estimates.judged(place, plain, plain)) for place in range(len(estimates.rates))]


def _none_within(rows: _Estimates, bounds: tuple[Bound, ...]) -> UserError:
    bound = bounds[0]
    nearest = rows.rates[:, rows.own] * bound.sign
    found = bound.sign * float(nearest.min())
    words = " and ".join(map(str, bounds))
    extreme = "smallest" if bound.sign > 0 else "largest"
    # Rounded to the side on which the nearest run is within.
    kept = bound.sign * np.ceil(bound.sign * found * 1000 - _ROUNDING) / 1000
    within = f"where='{bound.metric.name}{bound.operator[0]}={kept:g}'"
    return UserError(
        f"none of {len(nearest)} runs has {words}: the {extreme} {bound.metric.name} is "
        f"{found:.3f}" + (f"; {within} leaves a run" if len(bounds) == 1 else "")
    )


def _estimates(
    rows: SharedRows, metric: Metric, bounds: tuple[Bound, ...], notes: list[str]
) -> _Estimates:
    """Return the rates of all runs, without groups in which they do not exist."""
    groups: list[int | None] = list(range(len(rows.names))) if metric.is_gap else [None]
    own = [_Part(rate, group) for rate in metric.rates for group in groups]
    present = [part for part in own if np.all(part.size(rows.counts) > 0)]
    for part in own:
        if part not in present and part.group is not None:
            note = f"{rows.names[part.group]} is left out: {part.rate.empty} in it"
            notes += [note] if note not in notes else []
    for rate in metric.rates:
        if len([part for part in present if part.rate is rate]) < 1 + metric.is_gap:
            raise UserError(
                f"{metric.name} cannot be compared: fewer than two groups have rows for the "
                f"{rate.name.replace('_', ' ')}, in every run and repeat"
            )
    others = [bound.metric for bound in bounds]
    others += [ERROR_RATE] if ERROR_RATE not in (*others, metric) else []
    parts = (*present, *(_Part(each.rates[0]) for each in others))
    return _Estimates(metric, parts, len(present), bounds, rows)
