"""The choice of the fairest of many finished runs, with intervals that account for the choice.

A run that is chosen because its gap is the smallest has a gap that looks smaller than it is. Its
intervals are corrected for the choice (`corrected`), unless it was chosen on
other rows than it is judged on. Its interval by itself is that of a run's own table
(:mod:`fairbench.inference.repeats`); the corrected one is the same at another level.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from fairbench.comparison import runs as compared
from fairbench.comparison.runs import Settings
from fairbench.core.arrays import Codes, Floats, Mask, Rows, rng
from fairbench.core.errors import UserError
from fairbench.core.text import said
from fairbench.data.dataset import Task
from fairbench.evaluation.summary import HEADLINES, Headlines, headline_of, rows_of
from fairbench.inference import repeats as of_splits
from fairbench.inference.comparing import Objective
from fairbench.inference.repeats import FOLDS, ONE, REPEATS, SAME, RunRates, Splits
from fairbench.metrics import registry
from fairbench.metrics.registry import BINARY, Metric, Rate, metrics_of, near
from fairbench.results.catalogue import add_differing_options, comparable_sets
from fairbench.results.runs import Run
from fairbench.results.tables import TEST, VALIDATION
from fairbench_search import corrected as correcting
from fairbench_search.goals import rate_estimate, refusal

LowerAndUpper = tuple[float, float]
# A metric of one run: the ``metric``, its ``value``, and intervals by their names.
Judged: TypeAlias = dict[str, Any]
Index: TypeAlias = int | slice | list[int]
# Draws of the errors of all rates; fewer for many runs, as time and memory grow with both.
_DRAWS, _DRAWS_OF_MANY, _MANY = 4000, 2000, 100
_LEVEL = 0.95  # of the intervals that runs store


_COMPARISON = re.compile(r"\s*([\w@.]+)\s*(<=|>=|<|>)\s*([-+.\w]+)\s*")


@dataclass(frozen=True)
class Bound:
    """An upper or lower bound of a metric."""

    metric: Metric
    operator: str
    limit: float

    @classmethod
    def read(cls, text: str, task: str = BINARY) -> Bound:
        """Return the bound that a comparison such as ``error_rate<=0.15`` means.

        Raises
        ------
        UserError : no comparison, no number, or a limit that no rate can have.
        """
        match = _COMPARISON.fullmatch(text)
        if not match:
            raise UserError(f"where={text} is no comparison: write one such as error_rate<=0.15")
        name, operator, number = match.groups()
        metric = registry.named(name, task)
        try:
            limit = float(number)
        except ValueError:
            limit = np.nan
        if not np.isfinite(limit):
            raise UserError(f"where={text}: {number} is no number")
        if metric.interval == "rate" and not 0 <= limit <= 1:
            raise UserError(f"where={text}: a rate is compared with a number between 0 and 1")
        if isinstance(metric.better, float) and not 0 < limit <= metric.better:
            raise refusal("beyond_ratio", text=text, name=name)
        return cls(metric, operator, limit)

    @property
    def sign(self) -> float:
        """1 where the value must be small, -1 where it must be large."""
        return 1.0 if self.operator.startswith("<") else -1.0

    def __str__(self) -> str:
        """Return the bound as it is typed."""
        return f"{self.metric.name}{self.operator}{self.limit:g}"


def _is_share(metric: Metric) -> bool:
    """Say whether a metric is one share of rows."""
    binary = metrics_of(BINARY, "rate").get(metric.name)
    rates = binary.rates if binary and metric.interval == "rate" else ()
    return len(rates) == 1 and {*rates[0].numerator, *rates[0].denominator} <= {0, 1}


def of_counts(metric: Metric, bounds: Sequence[Bound]) -> bool:
    """Say whether a choice needs no more than what runs predict: gaps, and shares of rows."""
    rates = [bound.metric for bound in bounds] + [metric] * (not metric.is_gap)
    return metric.better == "lower" and all(map(_is_share, rates))


# Which runs can be compared for a choice.

_MOST_SETS = 4  # that a message lists


def check_several(runs: Sequence[Run], copies: Sequence[str] = ()) -> None:
    """Refuse fewer than two runs; `copies` are sentences on those that are one of them again."""
    if len(runs) < 2:
        matches = "1 finished run matches" if runs else "no finished run matches"
        which = "".join(f" ({run.name}, {run.id})" for run in runs)
        told = "; ".join([f"{matches}{which}", *copies])
        raise UserError(f"{told}; a choice needs at least two")


def _check_comparable(runs: Sequence[Run], *, weighted: bool = False) -> None:
    """Refuse runs that do not predict the same rows for the same groups, each counting as one.

    Parameters
    ----------
    weighted : whether rows may have weights.

    Raises
    ------
    UserError : they do not, and the message says what sets of them do; or rows are weighted.
    """
    if len(sets := sorted(comparable_sets(runs), key=len, reverse=True)) > 1:
        firsts = [members[0] for members in sets]
        names = [
            f"{run.choices['dataset']}, {run.choices['split']}, protect={run.protect}"
            for run in firsts
        ]
        names = add_differing_options(names, firsts, ("dataset", "split"))
        told = zip(sets, names, strict=True)
        listed = [f"{len(of)} of {name}, seed={of[0].seed} (as {of[0].id})" for of, name in told]
        shown = "; ".join(listed[:_MOST_SETS] + ["..."] * (len(listed) > _MOST_SETS))
        raise refusal("not_comparable", runs=len(runs), sets=shown)
    if not weighted and (found := [run.id for run in runs if compared.is_weighted(run)]):
        raise refusal("weighted", count=len(found), first=found[0])


# What runs predict of the same rows.


@dataclass(frozen=True, eq=False)
class SharedRows:
    """The predictions of k runs for all test rows or all validation rows, with labels and groups.

    Attributes
    ----------
    repeat, fold : (n,) the split of each row.
    row : (n,) its number in the data set.
    target, group : (n,) its label and the code of its group.
    prediction : (n, k) labels 0 and 1.
    names : the names of the groups.
    test_share : the share of the rows trained on or tested that a hold-out tests.
    """

    repeat: Rows
    fold: Codes
    row: Rows
    target: Codes
    group: Codes
    prediction: Codes
    names: tuple[str, ...]
    test_share: float = 0.5

    @cached_property
    def splits(self) -> Splits:
        """The kind of splits: how they share rows."""
        repeats = len(np.unique(self.repeat))
        folds = len(np.unique(self.fold))
        if folds > 1:
            return Splits(FOLDS, repeats, 1 / folds)
        if repeats == 1:
            return Splits(ONE)
        test_same_rows = len(np.unique(self.row)) * repeats == len(self.row)
        return Splits(SAME if test_same_rows else REPEATS, repeats, self.test_share)

    @cached_property
    def cells(self) -> Codes:
        """Codes of TN, FP, FN and TP, (n, k)."""
        return np.asarray(2 * self.target[:, None] + self.prediction)

    @cached_property
    def counts(self) -> Floats:
        """Confusion counts of every split, (S, k, G, 4)."""
        repeat_and_fold = np.stack([self.repeat, self.fold], axis=1)
        split = np.unique(repeat_and_fold, axis=0, return_inverse=True)[1].reshape(-1)
        n_groups, n_splits = len(self.names), int(split.max()) + 1
        split_and_group, of_all = split * n_groups + self.group, n_splits * n_groups
        counts_of_runs = [
            registry.confusion(self.target, prediction, split_and_group, n_groups=of_all)
            for prediction in self.prediction.T
        ]
        counts = np.stack(counts_of_runs, axis=1).reshape(n_splits, n_groups, -1, 4)
        return counts.swapaxes(1, 2).astype(float)


@dataclass(frozen=True, eq=False)
class Shared:
    """Runs with their predictions for the rows that judge them and for those of the choice.

    Attributes
    ----------
    runs : the runs with predictions for all test rows.
    judging : their predictions for the test rows.
    choosing : their predictions for validation rows; None if these overlap with the test rows.
    notes : sentences on runs left out and on rows that belong together.
    """

    runs: Sequence[Run]
    judging: SharedRows
    choosing: SharedRows | None
    notes: list[str]


def shared_rows(runs: Sequence[Run]) -> Shared:
    """Return the predictions of runs for test rows, and for validation rows if kept apart."""
    _check_comparable(runs)
    people = compared.people_of(runs[0], "chosen from")
    groups = people.groups(runs[0].attributes)
    tables = {run: compared.read_predictions(run, people, ("prediction",)) for run in runs}
    table = tables[runs[0]]
    predictions = {run: run_table["prediction"].to_numpy() for run, run_table in tables.items()}
    is_test = table["part"].to_numpy() == TEST
    is_validation = table["part"].to_numpy() == VALIDATION
    complete = [run for run in runs if not np.isnan(predictions[run][is_test]).any()]
    if len(complete) < min(len(runs), 2):
        raise UserError("fewer than two of these runs predict all of their test rows")
    predicted = np.stack([predictions[run] for run in complete], axis=1)
    row = table["row"].to_numpy(np.int64)

    splits = len(np.unique(table[["repeat", "fold"]].to_numpy(), axis=0))
    test_share = float(is_test.sum() / (splits * len(people) - is_validation.sum()))

    def select_rows(is_selected: Mask) -> SharedRows:
        """Return the predictions for the selected rows of the table."""
        selected_row = row[is_selected]
        return SharedRows(
            repeat=table["repeat"].to_numpy(np.int64)[is_selected],
            fold=table["fold"].to_numpy(np.int64)[is_selected],
            row=selected_row,
            target=people.target.to_numpy(np.int64)[selected_row],
            group=groups.cat.codes.to_numpy(np.int64)[selected_row],
            prediction=predicted[is_selected].astype(np.int64),
            names=tuple(map(str, groups.cat.categories)),
            test_share=test_share,
        )

    is_apart = is_validation.any() and not np.isin(row[is_validation], row[is_test]).any()
    is_apart = is_apart and not np.isnan(predicted[is_validation]).any()
    left_out = [run for run in runs if run not in complete]
    notes = [f"{run.name} ({run.id}) is left out: it predicts nothing" for run in left_out]
    if people.clusters is not None:
        notes.append(said("fairbench_search", "clusters"))
    choosing = select_rows(is_validation) if is_apart else None
    return Shared(runs=complete, judging=select_rows(is_test), choosing=choosing, notes=notes)


# The choice among them.


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
    judged : the objective and the other metrics of the chosen run, on the rows it is judged on:
        ``naive`` is the interval by itself, ``corrected`` the one corrected for the choice.
    apart : whether the rows used for the choice and for judging differ.
    several : whether rates are means over several splits, of any kind.
    notes : further sentences for the reader.
    """

    bounds: tuple[Bound, ...]
    level: float
    chosen_index: int
    objectives: Floats
    values: Floats
    eligible: Mask
    near: Mask
    judged: Sequence[Judged]
    apart: bool
    runs: Sequence[Run] = ()
    several: bool = True
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> Floats:
        """The values (k,) of what was chosen by: objectives are turned, so that less is better."""
        better = self.judged[0]["metric"].better
        if isinstance(better, float):
            return np.exp(-self.objectives)
        return -self.objectives if better == "higher" else self.objectives


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
    def rates_and_sizes(self) -> Floats:
        """The rates of every split, and their denominators, (2, S, k, D)."""
        counts = [(rate, _counts_of(group, self.rows.counts)) for rate, group in self.parts]
        return np.moveaxis(np.array([(rate(of), rate.size(of)) for rate, of in counts]), 0, -1)

    @cached_property
    def rates(self) -> Floats:
        """The rates, (k, D): means over the splits."""
        return np.asarray(np.nanmean(self.rates_and_sizes[0], axis=0))

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
        unit = np.eye(self.n_objective)
        names = [rate.name for rate, _ in self.parts[: self.n_objective]]
        pairs = [(a, b) for a, b in combinations(range(len(names)), 2) if names[a] == names[b]]
        return np.array([unit[first] - unit[second] for first, second in pairs])

    @cached_property
    def candidates(self) -> correcting.Candidates:
        """The runs as candidates of the choice."""
        noise = self._noise()
        unbounded = len(self.parts) - self.n_objective - len(self.bounds)
        limits = [bound.sign * bound.limit for bound in self.bounds]
        return correcting.Candidates(
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
        noise = correcting.joint_noise(factor, draws=draws, generator=generator)
        # Rates of 0 and 1 have errors, too, although these rows show no variance.
        spread = np.sqrt((factor**2).sum(axis=0))
        # Standard errors of smoothed rates, as in a run's table: lower limits.
        size = self._rates_of_runs(slice(None), slice(None), level=0.5).effective_size
        smooth = (self.rates * size + 0.5) / (size + 1)
        least = np.asarray(np.sqrt(smooth * (1 - smooth) / (size + 1)))
        is_constant = spread == 0
        noise *= np.maximum(1, least / np.where(is_constant, np.inf, spread))
        of_constant = generator.standard_normal((draws, int(is_constant.sum())))
        noise[:, is_constant] = least[is_constant] * of_constant
        # Runs of equal predictions have equal errors.
        of_runs = self.rows.prediction.T
        _, first, which = np.unique(of_runs, axis=0, return_index=True, return_inverse=True)
        return np.asarray(noise[:, first[which.reshape(-1)]])

    def _influences(self) -> Floats:
        """Return the influence of every person on the rates, (n, k, D)."""
        people, person = np.unique(self.rows.row, return_inverse=True)
        influences = np.zeros((len(people), *self.rates.shape), np.float32)
        for column, (rate, of) in enumerate(self.parts):
            members = np.ones(len(person), bool) if of is None else self.rows.group == of
            every = np.ones(members.sum(), bool)
            for run, cells in enumerate(self.rows.cells[members].T):
                _, of_rows, _ = rate_estimate(rate, cells, every)
                influences[:, run, column] = np.bincount(person[members], of_rows, len(people))
        return influences

    def _rates_of_runs(self, run: Index, parts: Index, *, level: float) -> RunRates:
        """Return some rates of some runs in all splits, for intervals as in a run's table."""
        values, sizes = np.moveaxis(self.rates_and_sizes[:, :, run][..., parts], 1, -1)
        return RunRates(values, sizes, self.rows.splits, level, len(self.metric.rates))

    def judge_run(self, run: int, **tails: Sequence[correcting.Tails]) -> list[Judged]:
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
            place, turn = self.n_objective + column - 1, int(sign)
            ends = {of: self._rate_interval(run, place, tails[of][column][::turn]) for of in tails}
            judged.append({"metric": metric, "value": float(self.rates[run, place]), **ends})
        return judged

    def _objective_interval(self, run: int, tails: correcting.Tails) -> LowerAndUpper:
        """Return the interval of one run's objective."""
        if not self.metric.is_gap:
            return self._rate_interval(run, 0, tails)
        columns: dict[str, list[int]] = {}
        for column, (rate, _) in enumerate(self.parts[: self.n_objective]):
            columns.setdefault(rate.name, []).append(column)
        levels, parts = [1 - 2 * tail for tail in tails], columns.values()
        rates = ([self._rates_of_runs(run, of, level=level) for of in parts] for level in levels)
        lower, upper = (of_splits.largest_mean_gap(*of_level) for of_level in rates)
        return float(lower.lower), float(upper.upper)

    def _rate_interval(self, run: int, column: int, tails: tuple[float, ...]) -> LowerAndUpper:
        """Return the interval of one rate of one run."""
        levels = [1 - 2 * tail for tail in tails]
        lower, upper = (self._rates_of_runs(run, column, level=level).limits() for level in levels)
        return float(lower.lower), float(upper.upper)


@dataclass(frozen=True, eq=False)
class Stored:
    """Metrics that k runs have one value of in each of J splits, with their tables' intervals.

    Attributes
    ----------
    runs : the runs.
    metrics : the D metrics: the objective, those with bounds, and others.
    bounds : the bounds that the chosen run must keep.
    values : (J, k, D) values in the splits.
    limits : (2, k, D) the limits of their means, at 95 %.
    share : the share of the rows that a split tests.
    notes : sentences on runs that are left out.
    """

    runs: Sequence[Run]
    metrics: tuple[Metric, ...]
    bounds: tuple[Bound, ...]
    values: Floats
    limits: Floats
    share: float
    notes: list[str]
    n_objective = 1

    @cached_property
    def means(self) -> Floats:
        """The means over the splits, (k, D)."""
        return np.asarray(self.values.mean(axis=0))

    @cached_property
    def rates(self) -> Floats:
        """The means, and of a ratio the smaller of its mean and the reciprocal, (k, D)."""
        return np.where(self.are_ratios, near(self.means, 1.0), self.means)

    @property
    def signs(self) -> list[float]:
        """1 or -1 for each metric, so that smaller is better."""
        signs = [-1.0 if self.metrics[0].better == "higher" else 1.0]
        signs += [bound.sign for bound in self.bounds]
        return signs + [1.0] * (len(self.metrics) - len(signs))

    @cached_property
    def candidates(self) -> correcting.Candidates:
        """The runs as candidates of the choice; the size of a ratio's logarithm is to be small."""
        splits, is_ratio = len(self.values), bool(self.are_ratios[0])
        scale = np.sqrt(of_splits.inflation(splits, self.share) / (splits - 1))
        factor = (self.values - self.means) * scale
        noise = correcting.joint_noise(factor, draws=_DRAWS, generator=rng(0, "choice"))
        # A reciprocal errs by the square of it as much, in the other direction.
        noise *= np.where(self.are_ratios & (self.means > 1), -(self.rates**2), 1)
        noise, rates = noise * self.signs, self.rates * self.signs
        limits = [*(bound.sign * bound.limit for bound in self.bounds), *[np.inf] * len(rates[0])]
        return correcting.Candidates(
            parts=np.log(rates[:, :1]) if is_ratio else rates[:, :1],
            part_noise=noise[..., :1] / (rates[:, :1] if is_ratio else 1),
            contrasts=np.ones((1, 1)),
            values=rates[:, 1:],
            value_noise=noise[..., 1:],
            bounds=np.array(limits[: len(rates[0]) - 1]),
            folded=is_ratio,
            degrees=splits - 1,
        )

    @property
    def are_ratios(self) -> Mask:
        """Whether metrics are ratios, of which 1 is the best, (D,)."""
        return np.array([isinstance(metric.better, float) for metric in self.metrics])

    def judge_run(self, run: int, **tails: Sequence[correcting.Tails]) -> list[Judged]:
        """Return each metric of one run, with an interval for each name, as `_Estimates` does."""
        judged: list[Judged] = []
        for column, (metric, sign) in enumerate(zip(self.metrics, self.signs, strict=True)):
            is_ratio = self.are_ratios[column]
            value, lower, upper = self.means[run, column], *self.limits[:, run, column]
            if is_ratio:  # from here on the size of its logarithm
                value, lower, upper = np.log([value, max(lower, 0), upper])
                if value < 0:
                    value, lower, upper = -value, -upper, -lower
            least, at = 0.0 if lower == 0 else metric.least, {}
            for name, of in tails.items():
                below, above = of[column][:: int(sign)]
                wide = [self._reach(below) * (lower - value), self._reach(above) * (upper - value)]
                at[name] = np.clip(value + np.array(wide), least, metric.at_most)
            if is_ratio:
                # How often a chosen ratio's corrected interval covers has not been simulated.
                value, naive = np.exp(-value), np.exp(-np.maximum(at["naive"][::-1], 0))
                at = dict.fromkeys(at, np.full(2, np.nan)) | {"naive": naive}
            ends = {name: tuple(limits.tolist()) for name, limits in at.items()}
            judged.append({"metric": metric, "value": float(value), **ends})
        return judged

    def _reach(self, tail: float) -> float:
        """Return how much wider a limit with an error rate is than that of an interval at 95 %.

        Some limits come from the spread over the splits, others from counts of rows: of the two
        ratios, it is the one that is wide enough for both.
        """
        tails = np.array([1 - tail, 1 - 0.05 / 2])
        quantiles = special.stdtrit(len(self.values) - 1, tails), special.ndtri(tails)
        return max(float(of / usual) for of, usual in quantiles)


def read_stored(runs: Sequence[Run], metric: Metric, bounds: tuple[Bound, ...]) -> Stored:
    """Return what runs of any task store of a metric and of those with bounds, in their splits.

    Raises
    ------
    UserError : they cannot be compared by these metrics.
    """
    _check_comparable(runs, weighted=True)
    if other := next((run for run in runs if run.level != _LEVEL), None):
        raise refusal("other_level", run=other, level=_LEVEL)
    people = runs[0].people()
    metrics = [metric, *(bound.metric for bound in bounds)]
    error = registry.named(HEADLINES[people.task]["error"], people.task)
    metrics += [error] if error.name not in [of.name for of in metrics] else []
    lacking = {
        run: [of.name for of in metrics if rows_of(run.summary(), of.name, run.protect).empty]
        for run in runs
    }
    if len(kept := [run for run in runs if not lacking[run]]) < 2:
        kept, lacking = list(runs), {}  # which is refused, with what the metric may have meant
    lack = {run: " and no ".join(names) for run, names in lacking.items() if names}
    notes = [said("fairbench_search", "without_metric", run=of, names=lack[of]) for of in lack]
    load = partial(compared.load_predictions, participle="chosen from", tasks=tuple(Task))
    loaded = list(map(load, kept))
    repeats = sorted(set.intersection(*({*of.repeats} for of in loaded)))
    goals = [Objective(of) for of in metrics]
    values, _, share = compared.values_in_splits(loaded, repeats, goals, Settings())
    if metric.better == "neither":
        raise refusal("no_direction", name=metric.name)
    tables = [Headlines(run.summary(), run.protect) for run in kept]
    limits = np.array([[table.estimate(of.name)[1:] for of in metrics] for table in tables])
    return Stored(kept, tuple(metrics), bounds, values, np.moveaxis(limits, -1, 0), share, notes)


def choose_among(
    read: Shared, metric: Metric, bounds: tuple[Bound, ...], *, level: float = 0.95
) -> Choice:
    """Return the run of the smallest objective within all bounds, with its intervals.

    Parameters
    ----------
    read : two runs or more, with their predictions for the same rows and groups.

    Raises
    ------
    UserError : no run is within the bounds.
    """
    choosing, notes = read.choosing, [*read.notes]
    test = _estimates(read.judging, metric, bounds, notes)
    rows = _estimates(choosing, metric, bounds, notes) if choosing else test
    several = read.judging.splits.kind != ONE
    return choice_of(test, rows, level, runs=read.runs, several=several, notes=tuple(notes))


def choose(
    runs: Sequence[Run], objective: str = "", where: Sequence[str] = (), level: float = 0.95
) -> Choice:
    """Return the best of runs in a metric, of those that keep to comparisons such as ``nll<=1``.

    Gaps and shares are computed from what runs predict, and anything else is what they store.

    Raises
    ------
    UserError : there is no choice among these runs or by this metric, or no run within the bounds.
    """
    runs, copies = compared.without_copies(runs)
    check_several(runs, copies)
    task = runs[0].people().task
    metric = registry.named(objective or headline_of(runs) or HEADLINES[task]["gap"], task)
    bounds = tuple(Bound.read(text, task) for text in where)
    if of_counts(metric, bounds):
        choice = choose_among(shared_rows(runs), metric, bounds, level=level)
    else:
        stored = read_stored(runs, metric, bounds)
        choice = choice_of(stored, stored, level, runs=stored.runs, notes=tuple(stored.notes))
    return replace(choice, notes=(*(f"left out: {copy}" for copy in copies), *choice.notes))


def choice_of(
    test: _Estimates | Stored, rows: _Estimates | Stored, level: float, **about: Any
) -> Choice:
    """Return the run that is chosen by some rows, as it is judged on the test rows.

    Parameters
    ----------
    about : the further fields of the :class:`Choice`.
    """
    bounds, candidates = rows.bounds, rows.candidates
    chosen_index = correcting.choose(candidates)
    if chosen_index is None:
        raise _none_within(rows, bounds)
    naive = [correcting.uncorrected_tails(level)] * (1 + candidates.values.shape[1])
    corrected = correcting.correction(candidates, level=level) if rows is test else naive
    judged = test.judge_run(chosen_index, naive=naive, corrected=corrected)
    # What is both the objective and has bounds, or two of these, is told once.
    metrics = [of["metric"].name for of in judged]
    told = [place for place, name in enumerate(metrics) if name not in metrics[:place]]
    return Choice(
        bounds=bounds,
        level=level,
        chosen_index=chosen_index,
        objectives=candidates.objectives,
        values=rows.rates[:, [rows.n_objective + place - 1 for place in told[1:]]],
        eligible=candidates.eligible,
        near=correcting.not_told_from_best(candidates, level=level),
        judged=[judged[place] for place in told],
        apart=rows is not test,
        **about,
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
    plain = [correcting.uncorrected_tails(level)] * 2
    return [estimates.judge_run(run, naive=plain) for run in range(len(estimates.rates))]


def _none_within(rows: _Estimates | Stored, bounds: tuple[Bound, ...]) -> UserError:
    """Return the error that no run is within the bounds, with the nearest bound that one keeps."""
    bound, name = bounds[0], bounds[0].metric.name
    nearest = rows.rates[:, rows.n_objective] * bound.sign
    words = " and ".join(map(str, bounds))
    extreme = "smallest" if bound.sign > 0 else "largest"
    found = f"none of {len(nearest)} runs has {words}: the {extreme} {name}"
    return UserError(f"{found} is {bound.sign * float(nearest.min()):.4f}")


def _estimates(
    rows: SharedRows, metric: Metric, bounds: tuple[Bound, ...], notes: list[str]
) -> _Estimates:
    """Return the rates of all runs, without groups in which they are undefined."""
    groups: list[int | None] = list(range(len(rows.names))) if metric.is_gap else [None]
    present: list[_Part] = []
    for rate, group in product(metric.rates, groups):
        if np.all(rate.size(_counts_of(group, rows.counts)) > 0):
            present.append((rate, group))
        elif group is not None:
            note = f"{rows.names[group]} is left out: {rate.empty} in it"
            notes += [note] if note not in notes else []
    for rate in metric.rates:
        if sum(of is rate for of, _ in present) < 1 + metric.is_gap:
            raise refusal("few_groups", metric=metric, rate=rate.name.replace("_", " "))
    others = [bound.metric for bound in bounds]
    error_rate = metrics_of(BINARY)["error_rate"]
    others += [error_rate] if error_rate not in (*others, metric) else []
    parts = (*present, *((other.rates[0], None) for other in others))
    return _Estimates(metric, parts, len(present), bounds, rows)
