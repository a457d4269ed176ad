"""The choice of the fairest of many finished runs, with intervals that account for the choice.

A run that is chosen because its gap is the smallest has a gap that looks smaller than it is. Its
intervals are corrected for the choice (`inference/selection.py`), unless it was chosen on
other rows than it is judged on. Its interval by itself is that of a run's own table
(:mod:`fairbench.inference.repeats`); the corrected one is the same at another level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairbench.comparison.runs import Bound, Shared, SharedRows, read_shared
from fairbench.core.arrays import Floats, rng
from fairbench.core.errors import UserError
from fairbench.inference.repeats import REPEATS, RunRates, largest_mean_gap
from fairbench.inference.selection import (
    ALIKE,
    OPEN,
    WORSE,
    Candidates,
    Tails,
    choose,
    correction,
    joint_noise,
    larger_than,
    not_told_from_best,
)
from fairbench.metrics.registry import BINARY, Metric, Rate, metrics_of
from fairbench.results.runs import Run

LowerAndUpper = tuple[float, float]
# A metric of one run: the ``metric``, its ``value``, and intervals by their names.
Judged: TypeAlias = dict[str, Any]
Index: TypeAlias = int | slice | list[int]
# Draws of the errors of all rates; fewer for many runs, as time and memory grow with both.
_DRAWS, _DRAWS_OF_MANY, _MANY = 4000, 2000, 100
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Choice:
    """The run that was chosen out of k, and how all of them compare.

    Attributes
    ----------
    chosen_index : the position of the chosen run.
    objectives : (k,) the objective of every run on the rows used for the choice.
    values : (k, C) the other rates of every run on those rows.
    eligible : (k,) whether a run is within all bounds on those rows.
    near : (k,) whether a run cannot be distinguished from the best on those rows.
    larger : (k,) whether a run's objective is surely larger than the chosen one's; such a run may
        still be the best if the chosen one's true values may violate a bound.
    same : (k,) whether a run has the same predictions as the chosen one.
    judged : the objective and the other metrics of the chosen run, on the rows it is judged on:
        ``naive`` is the interval by itself, ``corrected`` the one corrected for the choice, and the
        upper limits of ``at_once`` hold at once at the level.
    apart : whether the rows used for the choice and for judging differ.
    repeats : the number of hold-outs that means are over.
    notes : further sentences for the reader.
    """

    runs: Sequence[Run]
    bounds: tuple[Bound, ...]
    level: float
    chosen_index: int
    objectives: Floats
    values: Floats
    eligible: NDArray[np.bool_]
    near: NDArray[np.bool_]
    larger: NDArray[np.bool_]
    same: NDArray[np.bool_]
    judged: Sequence[Judged]
    apart: bool
    repeats: int
    notes: tuple[str, ...]

    def verdict(self, run: int) -> str:
        """Return how a run, by its position, compares with the chosen one: alike, open or worse."""
        return ALIKE if self.same[run] else OPEN if self.near[run] else WORSE


# A rate of one group, by its code, or of everyone.
_Part: TypeAlias = tuple[Rate, int | None]


def _counts_of(group: int | None, counts: Floats) -> Floats:
    """Return the confusion counts of a group, or of everyone, (..., G, 4) -> (..., 4)."""
    return counts.sum(axis=-2) if group is None else counts[..., group, :]


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Rates of k runs, and their sampling errors.

    Attributes
    ----------
    metric : the objective.
    parts : the D rates; the first of them form the objective.
    n_objective : the number of rates that form the objective.
    bounds : the bounds that the chosen run must keep.
    rows : the predictions of all runs.
    """

    metric: Metric
    parts: tuple[_Part, ...]
    n_objective: int
    bounds: tuple[Bound, ...]
    rows: SharedRows

    @cached_property
    def rates_of_splits(self) -> Floats:
        """The rates of every split, (S, k, D)."""
        counts = self.rows.counts
        return np.stack([rate(_counts_of(group, counts)) for rate, group in self.parts], axis=-1)

    @cached_property
    def sizes(self) -> Floats:
        """The denominators of the rates of every split, (S, k, D)."""
        counts = self.rows.counts
        return np.stack(
            [rate.size(_counts_of(group, counts)) for rate, group in self.parts], axis=-1
        )

    @cached_property
    def rates(self) -> Floats:
        """The rates, (k, D): means over the splits."""
        return np.asarray(np.nanmean(self.rates_of_splits, axis=0))

    @cached_property
    def signs(self) -> Floats:
        """1 or -1 for each rate outside the objective, so that smaller is better, (C,)."""
        signs = [bound.sign for bound in self.bounds]
        return np.array(signs + [1.0] * (len(self.parts) - self.n_objective - len(signs)))

    @cached_property
    def contrasts(self) -> Floats:
        """Contrasts of the first rates, (m, n_objective); the largest in size is the objective."""
        if not self.metric.is_gap:
            return np.ones((1, 1))
        objective_parts = self.parts[: self.n_objective]
        pairs = [
            (first, second)
            for first, second in combinations(range(self.n_objective), 2)
            if objective_parts[first][0].name == objective_parts[second][0].name
        ]
        signs = np.zeros((len(pairs), self.n_objective))
        for row, (first, second) in zip(signs, pairs, strict=True):
            row[[first, second]] = 1, -1
        return signs

    @cached_property
    def candidates(self) -> Candidates:
        """The runs as candidates of the choice."""
        noise = self._noise()
        unbounded = len(self.parts) - self.n_objective - len(self.bounds)
        limits = [bound.sign * bound.limit for bound in self.bounds]
        return Candidates(
            parts=self.rates[:, : self.n_objective],
            part_noise=noise[..., : self.n_objective],
            contrasts=self.contrasts,
            values=self.rates[:, self.n_objective :] * self.signs,
            value_noise=noise[..., self.n_objective :] * self.signs,
            bounds=np.array([*limits, *[np.inf] * unbounded]),
            folded=self.metric.is_gap,
        )

    def _noise(self) -> Floats:
        """Return draws of the errors of all rates, (T, k, D), for these fits on new rows."""
        draws = _DRAWS if len(self.rates) <= _MANY else _DRAWS_OF_MANY
        generator = rng(0, "choice")
        factor = self._influences()
        noise = joint_noise(factor, draws=draws, generator=generator)
        # Rates of 0 and 1 have errors, too, although these rows show no variance.
        spread = np.sqrt((factor**2).sum(axis=0))
        least = self._least_errors()
        is_constant = spread == 0
        noise *= np.maximum(1, least / np.where(is_constant, np.inf, spread))
        noise[:, is_constant] = least[is_constant] * generator.standard_normal(
            (draws, int(is_constant.sum()))
        )
        # Runs of equal predictions have equal errors.
        return np.asarray(noise[:, self.rows.first_equal])

    def _influences(self) -> Floats:
        """Return the influence of every person on the rates, (n, k, D)."""
        repeats = self.rows.splits.repeats
        pooled = self.rows.counts.sum(axis=0) / repeats
        people, person_index = np.unique(self.rows.row, return_inverse=True)
        influences = np.zeros((len(people), *self.rates.shape), np.float32)
        for repeat in np.unique(self.rows.repeat):
            tested = self.rows.repeat == repeat
            cells, group = self.rows.cells[tested], self.rows.group[tested]
            for column, (rate, of) in enumerate(self.parts):
                members = np.ones(len(group), bool) if of is None else group == of
                counts = _counts_of(of, pooled)
                in_numerator, in_denominator = (
                    np.asarray(weights, np.float32)[cells[members]]
                    for weights in (rate.numerator, rate.denominator)
                )
                influence = (in_numerator - rate(counts) * in_denominator) / rate.size(counts)
                influences[person_index[tested][members], :, column] += influence / repeats
        return np.asarray(influences)

    def _least_errors(self) -> Floats:
        """Return standard errors of smoothed rates, as in a run's table: lower limits, (k, D)."""
        rates = self._rates_of_runs(slice(None), slice(None), level=0.5)
        smooth = (self.rates * rates.effective_size + 0.5) / (rates.effective_size + 1)
        return np.asarray(np.sqrt(smooth * (1 - smooth) / (rates.effective_size + 1)))

    def _rates_of_runs(self, run: Index, parts: Index, *, level: float) -> RunRates:
        """Return some rates of some runs in all splits, for intervals as in a run's table."""
        values, sizes = (
            np.moveaxis(values_of_all_runs[:, run][..., parts], 0, -1)
            for values_of_all_runs in (self.rates_of_splits, self.sizes)
        )
        return RunRates(values, sizes, self.rows.splits, level, len(self.metric.rates))

    def judge_run(self, run: int, **tails: Sequence[Tails]) -> list[Judged]:
        """Return the objective and the other rates of one run, with an interval for each name.

        Parameters
        ----------
        run : the position of the run.
        tails : the tails of an interval, for the objective and then for each rate.
        """
        value = float(self.candidates.objectives[run])
        ends = {name: self._objective_interval(run, of[0]) for name, of in tails.items()}
        judged: list[Judged] = [{"metric": self.metric, "value": value, **ends}]
        metrics = [*(bound.metric for bound in self.bounds), metrics_of(BINARY)["error_rate"]]
        for column, (sign, metric) in enumerate(zip(self.signs, metrics, strict=False), start=1):
            place = self.n_objective + column - 1
            ends = {}
            for name, of in tails.items():
                below, above = of[column] if sign > 0 else reversed(of[column])
                ends[name] = self._rate_interval(run, place, (below, above))
            judged.append({"metric": metric, "value": float(self.rates[run, place]), **ends})
        return judged

    def _objective_interval(self, run: int, tails: Tails) -> LowerAndUpper:
        """Return the interval of one run's objective."""
        if not self.metric.is_gap:
            return self._rate_interval(run, 0, tails)
        names = [rate.name for rate, _ in self.parts[: self.n_objective]]
        columns = [
            [column for column, rate_name in enumerate(names) if rate_name == name]
            for name in dict.fromkeys(names)
        ]
        lower, upper = (
            largest_mean_gap(
                *(self._rates_of_runs(run, column, level=1 - 2 * tail) for column in columns)
            )
            for tail in tails
        )
        return float(lower.lower), float(upper.upper)

    def _rate_interval(self, run: int, column: int, tails: Tails) -> LowerAndUpper:
        """Return the interval of one rate of one run."""
        lower, upper = (
            self._rates_of_runs(run, column, level=1 - 2 * tail).limits() for tail in tails
        )
        return float(lower.lower), float(upper.upper)


def choose_run(
    runs: Sequence[Run], metric: Metric, bounds: tuple[Bound, ...], *, level: float = 0.95
) -> Choice:
    """Return the run of the smallest objective within all bounds, with its intervals.

    Parameters
    ----------
    runs : two runs or more that predict the same rows of one data set for the same groups.

    Raises
    ------
    UserError : runs that cannot be compared, or none within the bounds.
    """
    return choose_among(read_shared(runs), metric, bounds, level=level)


def choose_among(
    read: Shared, metric: Metric, bounds: tuple[Bound, ...], *, level: float = 0.95
) -> Choice:
    """Choose a run as `choose_run` does, from predictions that are already read."""
    judging, choosing, notes = read.judging, read.choosing, [*read.notes]
    test = _estimates(judging, metric, bounds, notes)
    rows = _estimates(choosing, metric, bounds, notes) if choosing else test
    candidates = rows.candidates
    chosen_index = choose(candidates)
    if chosen_index is None:
        raise _none_within(rows, bounds)
    plain = (1 - level) / 2, (1 - level) / 2
    naive = [plain] * (1 + len(bounds) + 1)
    corrected, joint = naive, plain
    if choosing is None:
        corrected, simultaneous, _ = correction(candidates, level=level)
        joint = simultaneous, simultaneous
    return Choice(
        runs=read.runs,
        bounds=bounds,
        level=level,
        chosen_index=chosen_index,
        objectives=candidates.objectives,
        values=rows.rates[:, rows.n_objective :],
        eligible=candidates.eligible,
        near=not_told_from_best(candidates, level=level),
        larger=larger_than(candidates, chosen_index, level=level),
        same=rows.rows.first_equal == rows.rows.first_equal[chosen_index],
        judged=test.judge_run(
            chosen_index, naive=naive, corrected=corrected, at_once=[joint] * len(naive)
        ),
        apart=choosing is not None,
        repeats=judging.splits.repeats if judging.splits.kind == REPEATS else 1,
        notes=tuple(notes),
    )


def estimate_every_run(
    rows: SharedRows, metric: Metric, notes: list[str], *, level: float = 0.95
) -> list[list[Judged]]:
    """Return objective and error of every run, with intervals that assume no choice.

    Parameters
    ----------
    notes : the list to which a sentence is added for each group that is left out.
    """
    estimates = _estimates(rows, metric, (), notes)
    plain = [((1 - level) / 2, (1 - level) / 2)] * 2
    return [estimates.judge_run(run, naive=plain) for run in range(len(estimates.rates))]


def _none_within(rows: _Estimates, bounds: tuple[Bound, ...]) -> UserError:
    """Return the error that no run is within the bounds, with the nearest bound that one keeps."""
    bound = bounds[0]
    nearest = rows.rates[:, rows.n_objective] * bound.sign
    extreme_value = bound.sign * float(nearest.min())
    words = " and ".join(map(str, bounds))
    extreme = "smallest" if bound.sign > 0 else "largest"
    # Rounded to the side on which the nearest run is within.
    rounded = bound.sign * np.ceil(bound.sign * extreme_value * 1000 - _ROUNDING) / 1000
    within = f"where='{bound.metric.name}{bound.operator[0]}={rounded:g}'"
    return UserError(
        f"none of {len(nearest)} runs has {words}: the {extreme} {bound.metric.name} is "
        f"{extreme_value:.3f}" + (f"; {within} leaves a run" if len(bounds) == 1 else "")
    )


def _estimates(
    rows: SharedRows, metric: Metric, bounds: tuple[Bound, ...], notes: list[str]
) -> _Estimates:
    """Return the rates of all runs, without groups in which they are undefined."""
    groups: list[int | None] = list(range(len(rows.names))) if metric.is_gap else [None]
    objective_parts = [(rate, group) for rate in metric.rates for group in groups]
    present: list[_Part] = []
    for rate, group in objective_parts:
        if np.all(rate.size(_counts_of(group, rows.counts)) > 0):
            present.append((rate, group))
        elif group is not None:
            note = f"{rows.names[group]} is left out: {rate.empty} in it"
            notes += [note] if note not in notes else []
    for rate in metric.rates:
        if sum(of is rate for of, _ in present) < 1 + metric.is_gap:
            raise UserError(
                f"{metric.name} cannot be compared: fewer than two groups have rows for the "
                f"{rate.name.replace('_', ' ')}, in every run and repeat"
            )
    other_metrics = [bound.metric for bound in bounds]
    error_rate = metrics_of(BINARY)["error_rate"]
    other_metrics += [error_rate] if error_rate not in (*other_metrics, metric) else []
    parts = (*present, *((other_metric.rates[0], None) for other_metric in other_metrics))
    return _Estimates(metric, parts, len(present), bounds, rows)
