"""Tuning: a search over options that is judged by validation rows.

:class:`Search` proposes trials by those before, and :class:`DrawnSearch` draws candidates
independently, from one stated distribution.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fairbench.core.arrays import Floats, Rows, integer_seed, rng
from fairbench.core.errors import UserError
from fairbench.core.processes import failure
from fairbench.core.text import digest, shortened
from fairbench.data.dataset import Dataset
from fairbench.evaluation.table import COSTS
from fairbench.experiments.configuration import Config
from fairbench.experiments.contracts import Cell
from fairbench.experiments.execute import Executor, Plan, WorkUnit, plan_run, prepared
from fairbench.experiments.pipeline import PlannedRun, ensure, read_cell
from fairbench.results.runs import CorruptCellError, StoredCell
from fairbench.results.tables import VALIDATION
from fairbench.results.upkeep import note_begun
from fairbench_search import gains
from fairbench_search.gains import GoalEstimate, GoalRows
from fairbench_search.goals import Goal, Tuning, goals, refusal

# What a trial is judged by is read here, from the validation rows of its cells and nothing else.

Values = dict[str, Any]


@dataclass(eq=False)
class Trial:
    """A trial: its values of the options, and what its cells predict of validation rows.

    Attributes
    ----------
    folds : the number of repeats that were fitted; fewer than all if it was stopped.
    error : the reason why it has no value; empty if it has one.
    """

    values: Values
    rows: GoalRows | None = None
    folds: int = 0
    stopped: bool = False
    seconds: float = 0.0
    error: str = ""
    plan: Plan | None = None
    _made: dict[int, list[GoalEstimate]] = field(default_factory=dict)

    def estimates(self, wanted: Sequence[Goal], folds: int = 0) -> list[GoalEstimate]:
        """Return the metrics of the first folds, or of all."""
        at = folds or self.folds
        if at not in self._made:
            assert self.rows is not None
            rows = self.rows[self.rows["fold"] < at]
            self._made[at] = [goal.estimate(rows) for goal in wanted]
        return self._made[at]


def validation_rows(run: PlannedRun, cell: Cell, stored: StoredCell, fold: int) -> GoalRows:
    """Return a cell's predictions for its validation rows; test rows are dropped before any use."""
    held_out = stored.columns["part"] == VALIDATION
    columns = {name: values[held_out] for name, values in stored.columns.items()}
    rows = columns["row"].astype(np.intp)
    if reason := stored.notes.get("invalid"):
        raise UserError(f"repeat {cell.fold.repeat} predicts nothing: {reason}")
    predicted = read_cell(cell, run.method, columns)
    return label_rows(run.dataset, run.study.protect, rows, predicted, fold)


def label_rows(
    data: Dataset, protect: tuple[str, ...], rows: Rows, predicted: pd.DataFrame, fold: int
) -> GoalRows:
    """Return some rows of a data set with their predictions; no other row is read."""
    if predicted["prediction"].isna().any():
        raise UserError("the method predicts nothing of some rows")
    part, unit = data.take(rows), rows
    if data.clusters is not None:
        unit = np.unique(data.clusters.to_numpy(), return_inverse=True)[1][rows]
    about = {"fold": fold, "unit": unit, "target": part.target.to_numpy(float)}
    return predicted.astype(float).assign(**about, group=part.groups(protect).array)


# Tuning: a search over options by the predictions for validation rows alone.
#
# Every trial is made of ordinary cells, one per repeat, so nothing is fitted twice, whoever asks.
# Proposals depend on the seed and the earlier trials alone, so that the same command makes the same
# trials, and continues after a kill as if nothing had happened: no file says what was tried.

_TUNED = ("learner", "intervention", "method")  # with another of the rest, others would be judged
_SURE = 3.0  # standard errors by which a trial is worse that is stopped


@dataclass(frozen=True)
class Dimension:
    """An option that is tuned, and its values.

    Attributes
    ----------
    name : the name of the option.
    text : the dimension as it was typed.
    values : all values, as they are typed; empty for an interval.
    low, high : the limits of an interval.
    whole : whether its values are whole numbers.
    log : whether its logarithm is searched.
    """

    name: str
    text: str
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False

    @cached_property
    def distribution(self) -> Any:
        """The same for Optuna."""
        from optuna import distributions

        if self.values:
            return distributions.CategoricalDistribution(self.values)
        if self.whole:
            return distributions.IntDistribution(int(self.low), int(self.high), log=self.log)
        return distributions.FloatDistribution(self.low, self.high, log=self.log)

    @property
    def example(self) -> str | float:
        """One of its values."""
        return self.values[0] if self.values else int(self.low) if self.whole else self.low

    @property
    def count(self) -> float:
        """The number of values."""
        return len(self.values) or (self.high - self.low + 1 if self.whole else np.inf)

    def sample(self, generator: np.random.Generator) -> str | float:
        """Return one of its values, each as likely as any other; of a logarithm, evenly in it."""
        if self.values:
            return self.values[generator.integers(len(self.values))]
        # A whole number stands for the numbers from it to the next one.
        limits = np.array([self.low, self.high + self.whole])
        value = generator.uniform(*(np.log(limits) if self.log else limits))
        value = float(np.exp(value) if self.log else value)
        return min(int(value), int(self.high)) if self.whole else value


@dataclass(frozen=True)
class Family:
    """Candidates of one learner, intervention and method, and the options in which they differ.

    Attributes
    ----------
    choices : the name of each component, by ``learner``, ``intervention`` and ``method``; none
        where they are those of the default.
    fixed : options that all its candidates have, as they are typed.
    space : the options that are searched, each drawn by itself.
    group_at_prediction : whether a person's group must be known to predict.
    """

    choices: Mapping[str, str]
    fixed: Mapping[str, str]
    space: tuple[Dimension, ...]
    group_at_prediction: bool = False

    def sample(self, generator: np.random.Generator) -> Values:
        """Return one of its candidates."""
        drawn = {dimension.name: dimension.sample(generator) for dimension in self.space}
        return {**self.choices, **self.fixed, **drawn}

    @property
    def count(self) -> float:
        """The number of its candidates."""
        return float(np.prod([dimension.count for dimension in self.space]))

    @property
    def name(self) -> str:
        """The names of its components."""
        return " ".join(f"{group}={name}" for group, name in self.choices.items())

    @property
    def stated(self) -> dict[str, str]:
        """The distribution of each option, as it is typed, by name."""
        return {**self.fixed, **{dimension.name: dimension.text for dimension in self.space}}

    @property
    def options(self) -> str:
        """The same as words."""
        return " ".join(f"{name}={text}" for name, text in self.stated.items())


@dataclass(eq=False)
class Search:
    """A search under way.

    Attributes
    ----------
    families : the families of candidates; of one that is drawn, equally likely in every draw.
    compose : returns the configuration of the default with some options set.
    executor : the executor that fits cells.
    show : a function that is called with each trial as it ends.
    """

    tuning: Tuning
    families: Sequence[Family]
    compose: Callable[[Values], Config]
    executor: Executor
    show: Callable[[int, Trial], None] = lambda number, trial: None
    trials: list[Trial] = field(default_factory=list)
    fitted: int = 0

    names: ClassVar = ("untuned default", "trial")

    @property
    def space(self) -> tuple[Dimension, ...]:
        """The options that are tuned."""
        return self.families[0].space

    @cached_property
    def default_plan(self) -> Plan:
        """The run of the untuned default."""
        return plan_run(self.compose({}))

    @cached_property
    def goals(self) -> tuple[Goal, ...]:
        """The objectives to minimise."""
        return goals(self.tuning.objectives, str(self.run.dataset.task))

    @property
    def run(self) -> PlannedRun:
        """The same, prepared."""
        return prepared(self.default_plan)

    @property
    def jobs(self) -> int:
        """The number of repeats of a trial that are fitted at a time."""
        wanted = int(self.default_plan.config["n_jobs"])
        return wanted if wanted > 0 else os.cpu_count() or 1

    @cached_property
    def id(self) -> str:
        """The id of the study; another space or default, or other code, makes another."""
        cells, tuning = self.default_plan.cells, self.tuning
        # Cells determine neither the protected attribute nor how a method reads their outputs.
        read = [list(self.run.study.protect), self.run.config["method"]]
        space = [f"{family.name} {family.options}" for family in self.families]
        goals = [list(tuning.objectives), tuning.study]
        return digest([list(cells), read, *goals, *self.names, *space], 12)

    def rng(self, purpose: str, number: int) -> np.random.Generator:
        """Return the generator of a trial, by its number: another study has other trials."""
        named = [self.tuning.study] if self.tuning.study else []
        return rng(self.run.study.seed, purpose, *named, number)

    def check(self) -> None:
        """Refuse what cannot be tuned.

        Raises
        ------
        UserError : an unknown option or objective, nothing to tune, or no rows that choose alone.
        """
        if not self.space:
            raise refusal("nothing_tuned")
        for dimension in self.space:
            name = dimension.name
            if name.partition(".")[0] not in _TUNED:
                raise refusal("not_tuned", name=name, text=shortened(dimension.text))
            self.compose({name: dimension.example})
        self._check_rows()

    def _check_rows(self) -> None:
        """Refuse rows or objectives that no trial can be judged by.

        Raises
        ------
        UserError : an unknown objective; rows with weights; a split without validation rows, or one
            that tests rows by which trials are chosen, with the word that mends it.
        """
        folds = [cell.fold for cell in self.run.cells if not cell.variant]
        if not all(len(fold.validation) for fold in folds):
            raise refusal("no_choosing_rows")
        chosen_by = np.unique(np.concatenate([fold.validation for fold in folds]))
        if any(np.isin(fold.test, chosen_by).any() for fold in folds):
            raise refusal("tested_rows")
        _ = self.goals
        if self.run.evaluator.weights:
            raise refusal("weighted_rows")

    def carry_out(self) -> list[Trial]:
        """Search until the budget is spent; return the default and all trials, in order."""
        self.check()
        self.default = self._judge({})
        if self.default.error:
            raise UserError(f"the {self.names[0]} cannot be judged: {self.default.error}")
        self.show(0, self.default)
        while self._goes_on():
            self.trials.append(self._judge(self._propose(len(self.trials))))
            self.show(len(self.trials), self.trials[-1])
            errors = [trial.error for trial in self.trials]
            if len(errors) >= min(5, self.tuning.trials) and all(errors):
                first = f"; the first: {errors[0]}"
                raise UserError(f"none of {len(errors)} trials has a value{first}")
        return self.everyone

    def _objective_values(self, trial: Trial) -> list[float]:
        return [] if trial.error else [estimate.value for estimate in trial.estimates(self.goals)]

    def _goes_on(self) -> bool:
        """Return whether the budget allows another trial."""
        limit = self.tuning.cpu_seconds
        spent = sum(trial.seconds for trial in self.everyone)
        within = len(self.trials) < self.tuning.trials and (limit is None or spent < limit)
        return within and not self.tried_all

    @property
    def everyone(self) -> list[Trial]:
        """The default, and every trial so far."""
        return [self.default, *self.trials]

    @property
    def tried_all(self) -> bool:
        """Whether every point of the space was tried; never of an interval of real numbers."""
        tried = {tuple(trial.values.items()) for trial in self.trials}
        return len(tried) >= sum(family.count for family in self.families)

    def _propose(self, number: int) -> Values:
        """Return the values that Optuna proposes after the trials so far."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        distributions = {dimension.name: dimension.distribution for dimension in self.space}
        seed = integer_seed(self.rng("tuning", number))
        sampler, count = optuna.samplers.TPESampler(seed=seed), len(self.goals)
        study = optuna.create_study(directions=["minimize"] * count, sampler=sampler)
        for trial in self.trials:
            if not trial.error:
                finished: dict[str, Any] = {"params": trial.values}
                finished["values"] = self._objective_values(trial)
                study.add_trial(optuna.trial.create_trial(distributions=distributions, **finished))
        return dict(study.ask(distributions).params)

    def _judge(self, values: Values) -> Trial:
        """Fit a trial's cells that are missing, and read what they predict of validation rows."""
        trial = Trial(values)
        try:
            trial.plan = plan_run(self.compose(values)) if values else self.default_plan
            self._fit(trial)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # of a component, which may raise anything
            if not values:
                raise
            trial.error, _ = failure(error)
        return trial

    def _fit(self, trial: Trial) -> None:
        """Fit a trial fold by fold, until all are done, or it is surely worse than the best."""
        assert trial.plan is not None
        run = prepared(trial.plan)
        parts = list[GoalRows]()
        own = (cell for cell in run.cells if not cell.variant)
        cells = sorted(own, key=lambda cell: cell.repeat_and_fold)
        # No cell of any trial so far is to be collected as garbage.
        plans = [self.default_plan, *(trial.plan for trial in self.trials if trial.plan)]
        kept = [*(cell for plan in plans for cell in plan.cells), *(cell.id for cell in cells)]
        note_begun(run.store, [self.id], list(dict.fromkeys(kept)))
        for start in range(0, len(cells), self.jobs):
            self._fit_cells(trial.plan, cells[start : start + self.jobs])
            for cell in cells[start : start + self.jobs]:
                try:
                    stored = run.store.read(cell.id)
                except CorruptCellError:
                    ensure(cell, run.store)
                    stored = run.store.read(cell.id)
                trial.seconds += sum(float(stored.notes[name]) for name in COSTS)
                parts.append(validation_rows(run, cell, stored, len(parts)))
                trial.rows = pd.concat(parts)
                trial.folds = len(parts)
                if not np.isfinite(self._objective_values(trial)).all():
                    trial.error = f"an objective does not exist on repeat {cell.fold.repeat}"
                    return
                if trial.values and self._surely_worse(trial, len(cells)):
                    trial.stopped = True
                    return

    def _fit_cells(self, planned: Plan, cells: Sequence[Cell]) -> None:
        """Fit the missing cells.

        Raises
        ------
        UserError : one cannot be.
        """
        refit = not planned.config["resume"]
        wanted = [cell.id for cell in cells if refit or not planned.store.has(cell.id)]
        missing = [WorkUnit(planned, cell) for cell in wanted]
        while missing:
            results = list(self.executor(missing))
            self.fitted += sum(result.computed for result in results)
            if errors := [result.error for result in results if result.error]:
                raise UserError(errors[0])
            busy = [result.unit.cell for result in results if result.busy]
            missing = [WorkUnit(planned, cell, wait=True) for cell in busy]

    def _surely_worse(self, trial: Trial, folds: int) -> bool:
        """Return whether one finished trial is better in every objective, on the same rows."""
        rivals = [other for other in self.everyone if other.folds == folds and not other.error]
        scores = [self.tuning.score(np.array(self._objective_values(rival))) for rival in rivals]
        best = {0, int(np.argmin(scores))} if trial.folds < folds else set()
        return any(self._is_behind(trial, rivals[index]) for index in best)

    def _is_behind(self, trial: Trial, rival: Trial) -> bool:
        """Return whether a trial is surely worse than a rival in every objective."""
        ours, theirs = trial.estimates(self.goals), rival.estimates(self.goals, trial.folds)
        for mine, other in zip(ours, theirs, strict=True):
            error = np.sqrt(((mine.linear - other.linear) ** 2).sum() + mine.least_of_value)
            if not mine.value - other.value > _SURE * error:
                return False
        return True


# A search whose candidates are drawn: independently, from one distribution that is stated.
#
# Tuning proposes what looks promising after the trials so far. Here no draw depends on another,
# which is what the bound on further gain rests on (`gains`). All else is tuning's: cells that are
# fitted once whoever asks, with which the same command goes on after a kill, and validation rows
# that judge alone.


@dataclass(eq=False)
class DrawnSearch(Search):
    """A search under way: the model in use is its default, and its candidates are drawn.

    The first of `tuning.objectives` is the gap, the second the error rate.

    Attributes
    ----------
    within : by how much the error of a candidate may be above that of the model in use.
    worth : the search ends when one more candidate surely lowers the gap by less, on average.
    left_out : combination of components -> why it is not drawn from.
    """

    within: float = 0.0
    worth: float = 0.0
    left_out: Mapping[str, str] = field(default_factory=dict)

    names: ClassVar = ("model in use", "candidate")

    def check(self) -> None:
        """Refuse what cannot be searched.

        Raises
        ------
        UserError : an unknown gap, no rows that choose alone, or several fits of one candidate.
        """
        self._check_rows()
        if (cells := len(self.default_plan.cells)) > 1:
            raise refusal("several_cells", cells=cells)

    @property
    def values(self) -> Floats:
        """Gap and error of the model in use and of every candidate, (k, 2); NaN if it failed."""
        missing = [np.nan, np.nan]
        return np.array([missing if t.error else self._objective_values(t) for t in self.everyone])

    @property
    def chosen_index(self) -> int:
        """The position of the chosen candidate; 0 is the model in use."""
        return gains.least_gap(*self.values.T, within=self.within)

    @property
    def risk(self) -> float:
        """The chance that the bound on further draws may fail; the other half is the gap's own."""
        return (1 - self.tuning.level) / 2

    @property
    def is_enough(self) -> bool:
        """Whether one more candidate surely gains less than it is worth."""
        gap = float(self.values[self.chosen_index, 0])
        return gains.is_enough(gap, len(self.trials), worth=self.worth, risk=self.risk)

    @property
    def chance(self) -> float:
        """Upper limit of the probability that one more candidate would be chosen instead."""
        chance = gains.chance_of_better(len(self.trials), risk=self.risk)
        return 0.0 if self.tried_all else float(chance)

    @property
    def ended(self) -> str:
        """Why it ended: by ``worth``, as the ``whole`` was tried, by ``trials`` or the CPU time."""
        spent = "trials" if len(self.trials) >= self.tuning.trials else "cpu_seconds"
        return "worth" if self.is_enough else "whole" if self.tried_all else spent

    def _goes_on(self) -> bool:
        return super()._goes_on() and not self.is_enough

    def _propose(self, number: int) -> Values:
        """Return the candidate of a number; with several processes, fit the next ones with it."""
        if self.jobs > 1 and number % self.jobs == 0 and self.default_plan.config["resume"]:
            self._fit_ahead(range(number, min(number + self.jobs, self.tuning.trials)))
        return self._candidate(number)

    def _fit_ahead(self, numbers: Iterable[int]) -> None:
        """Fit several candidates in parallel; each is judged or reported as failed in its turn."""
        units = []
        for number in numbers:
            with suppress(Exception, SystemExit):
                planned = plan_run(self.compose(self._candidate(number)))
                missing = [cell for cell in planned.cells if not planned.store.has(cell)]
                units += [WorkUnit(planned, cell) for cell in missing]
        self.fitted += sum(result.computed for result in self.executor(units))

    def _candidate(self, number: int) -> Values:
        """Return the candidate of a number, drawn independently of all others."""
        generator = self.rng("drawn", number)
        return self.families[int(generator.integers(len(self.families)))].sample(generator)
