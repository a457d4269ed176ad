"""Tuning: a search over options by the predictions for validation rows alone.

Every trial is made of ordinary cells, one per repeat, so nothing is fitted twice, whoever asks. The
study is a folder of the results: the space it searches, and a line for each trial that ended.
Proposals depend on the seed and the earlier trials alone, so that the same command continues after
a kill as if nothing had happened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from math import isclose
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fairbench.core.errors import UserError
from fairbench.core.failures import failure
from fairbench.core.fingerprint import digest
from fairbench.core.formats import shortened
from fairbench.core.locks import BusyError, locked
from fairbench.core.seeds import integer_seed, rng
from fairbench.evaluation.columns import COSTS
from fairbench.evaluation.tuning_goals import Goal, GoalRows, goals, together
from fairbench.experiments.configuration import Config
from fairbench.experiments.execute import Executor, Plan, WorkUnit, plan_run, prepared
from fairbench.experiments.pipeline import PlannedRun
from fairbench.experiments.study import Cell
from fairbench.experiments.tuning_settings import Tuning
from fairbench.experiments.tuning_trials import (
    StudyRecord,
    Trial,
    Values,
    check_split,
    stored_cell,
    validation_rows,
)
from fairbench.results.garbage import note_begun

if TYPE_CHECKING:
    import optuna

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
    def distribution(self) -> optuna.distributions.BaseDistribution:
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

    def has(self, value: object) -> bool:
        """Say whether a value is one of its values, in the type in which it is proposed."""
        if self.values:
            return isinstance(value, str) and value in self.values
        if not isinstance(value, int if self.whole else float) or isinstance(value, bool):
            return False
        ends = isclose(value, self.low) or isclose(value, self.high)  # of a logarithm, rounded
        return ends or self.low < value < self.high

    def sample(self, generator: np.random.Generator) -> str | float:
        """Return one of its values, each as likely as any other; of a logarithm, evenly in it."""
        if self.values:
            return self.values[generator.integers(len(self.values))]
        beyond = (
            self.high + self.whole
        )  # a whole number stands for the numbers from it to the next one
        limits = np.log([self.low, beyond]) if self.log else np.array([self.low, beyond])
        value = generator.uniform(*limits)
        value = float(np.exp(value) if self.log else value)
        return min(int(value), int(self.high)) if self.whole else value


def has_all(space: Sequence[Dimension], values: Values) -> bool:
    """Say whether values are one for each of some dimensions, and of its values."""
    names = {dimension.name for dimension in space}
    return values.keys() == names and all(option.has(values[option.name]) for option in space)


@dataclass(eq=False)
class Search:
    """A search under way.

    Attributes
    ----------
    compose : returns the configuration of the default with some options set.
    executor : the executor that fits cells.
    show : a function that is called with each trial as it ends.
    """

    tuning: Tuning
    space: Sequence[Dimension]
    compose: Callable[[Values], Config]
    executor: Executor
    show: Callable[[int, Trial], None] = lambda number, trial: None
    trials: list[Trial] = field(default_factory=list)
    fitted: int = 0

    _default: ClassVar[str] = "untuned default"

    @cached_property
    def default_plan(self) -> Plan:
        """The run of the untuned default."""
        return plan_run(self.compose({}))

    @cached_property
    def goals(self) -> tuple[Goal, ...]:
        """The objectives to minimise."""
        return goals(self.tuning.objectives, str(self._run.dataset.task))

    @property
    def _run(self) -> PlannedRun:
        return prepared(self.default_plan)

    @property
    def _kind(self) -> tuple[str, ...]:
        """The settings that distinguish this study from others."""
        return ()

    @property
    def jobs(self) -> int:
        """The number of repeats of a trial that are fitted at a time."""
        wanted = int(self.default_plan.config["n_jobs"])
        return wanted if wanted > 0 else os.cpu_count() or 1

    @cached_property
    def record(self) -> StudyRecord:
        """The folder of the study, which another default, or changed code, has another of."""
        cells, name = self.default_plan.cells, self.tuning.study
        # Cells determine neither the protected attribute nor how a method reads their outputs.
        read = [list(self._run.study.protect), self._run.identity.config["method"]]
        key = digest([list(cells), read, list(self.tuning.objectives), name, *self._kind], 12)
        return StudyRecord(self.default_plan.store.root / "tuning" / key)

    def check(self) -> None:
        """Refuse what cannot be tuned.

        Raises
        ------
        UserError : an unknown option or objective, nothing to tune, or no rows that choose alone.
        """
        if not self.space:
            raise UserError(
                "nothing is to be tuned: give an option an interval or several values, such as "
                "'learner.max_depth=interval(2,8)'"
            )
        for dimension in self.space:
            if dimension.name.partition(".")[0] not in _TUNED:
                raise UserError(
                    f"'{dimension.name}={shortened(dimension.text)}' cannot be tuned, as it "
                    "changes what is judged: give it one value, and several to learner, "
                    "intervention, method or their options alone"
                )
            self.compose({dimension.name: dimension.example})
        self._check_rows()

    def _check_rows(self) -> None:
        """Refuse rows or objectives that no trial can be judged by.

        Raises
        ------
        UserError : an unknown objective, no rows that choose alone, or rows with weights.
        """
        check_split(self._run)
        _ = self.goals
        if self._run.evaluator.weights:
            raise UserError(
                "evaluator.weights=true cannot be tuned by: every row counts as one here; tune "
                "with evaluator.weights=false"
            )

    @property
    def searched(self) -> dict[str, str]:
        """The dimensions of the search, as they were typed, by name."""
        return {dimension.name: dimension.text for dimension in self.space}

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Lock the study, so that no other process works on it."""
        path = self.default_plan.store.root / "locks" / f"tuning-{self.record.folder.name}.lock"
        try:
            with locked(path, seconds=0.0):
                yield
        except BusyError as error:
            raise UserError(f"this study is being tuned by {error}: wait for its end") from error

    def carry_out(self) -> list[Trial]:
        """Search until the budget is spent; return the default and all trials, in order."""
        self.check()
        starts_anew = not self.default_plan.config["resume"]
        with self._lock():
            self.record.begin(self.searched, again=starts_anew)
            stored = self.record.trials(self._is_candidate)
            self.default = self._judge({}, None)
            if self.default.error:
                raise UserError(f"the {self._default} cannot be judged: {self.default.error}")
            self.show(0, self.default)
            for number, line in enumerate(stored[: self.tuning.trials]):
                trial = self._judge(line["values"], line["folds"] or None)
                trial.stopped = bool(line["stopped"])
                self._add(number, trial)
            while self._goes_on():
                trial = self._judge(self._propose(len(self.trials)), None)
                self._add(len(self.trials), trial)
                self.record.add(trial.line(self._objective_values(trial)))
                self._refuse_if_all_fail()
        return [self.default, *self.trials]

    def _add(self, number: int, trial: Trial) -> None:
        self.trials.append(trial)
        self.show(number + 1, trial)

    def _objective_values(self, trial: Trial) -> list[float]:
        return [] if trial.error else [estimate.value for estimate in trial.estimates(self.goals)]

    def _refuse_if_all_fail(self) -> None:
        errors = [trial.error for trial in self.trials]
        if len(errors) >= min(5, self.tuning.trials) and all(errors):
            raise UserError(f"none of {len(errors)} trials has a value; the first: {errors[0]}")

    def _goes_on(self) -> bool:
        """Return whether the budget allows another trial."""
        limit = self.tuning.cpu_seconds
        if len(self.trials) >= self.tuning.trials:
            return False
        if (
            limit is not None
            and sum(trial.seconds for trial in (self.default, *self.trials)) >= limit
        ):
            return False
        return not self.tried_all

    @property
    def tried_all(self) -> bool:
        """Whether every point of the space was tried; never of an interval of real numbers."""
        tried = {json.dumps(trial.values, sort_keys=True) for trial in self.trials}
        return bool(len(tried) >= np.prod([dimension.count for dimension in self.space]))

    def _is_candidate(self, values: Values) -> bool:
        """Say whether values, which may be a stranger's, are a point of the space."""
        return has_all(self.space, values)

    def _propose(self, number: int) -> Values:
        """Return the values that Optuna proposes after the trials so far."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        distributions = {dimension.name: dimension.distribution for dimension in self.space}
        seed = integer_seed(rng(self._run.study.seed, "tuning", number))
        study = optuna.create_study(
            directions=["minimize"] * len(self.goals),
            sampler=optuna.samplers.TPESampler(seed=seed),
        )
        for trial in self.trials:
            if not trial.error:
                finished = optuna.trial.create_trial(
                    params=trial.values,
                    distributions=distributions,
                    values=self._objective_values(trial),
                )
                study.add_trial(finished)
        return dict(study.ask(distributions).params)

    def _judge(self, values: Values, folds: int | None) -> Trial:
        """Fit a trial's cells that are missing, and read what they predict of validation rows.

        Parameters
        ----------
        folds : the number of repeats to fit, for a trial of the record; None stops when it is sure.
        """
        trial = Trial(values)
        try:
            trial.plan = plan_run(self.compose(values)) if values else self.default_plan
            self._fit(trial, folds)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # of a component, which may raise anything
            if not values:
                raise
            trial.error, _ = failure(error)
        return trial

    def _fit(self, trial: Trial, folds: int | None) -> None:
        """Fit a trial fold by fold, until all are done, or it is surely worse than the best."""
        assert trial.plan is not None
        run = prepared(trial.plan)
        parts = list[GoalRows]()
        cells = sorted(
            (cell for cell in run.cells if not cell.variant), key=lambda cell: cell.repeat_and_fold
        )[:folds]
        note_begun(run.store, [self.record.folder.name], self._cells(cells))
        for start in range(0, len(cells), self.jobs):
            self._fit_cells(trial.plan, cells[start : start + self.jobs])
            for cell in cells[start : start + self.jobs]:
                stored = stored_cell(run, cell)
                trial.seconds += sum(float(stored.notes[name]) for name in COSTS)
                parts.append(validation_rows(run, cell, stored, len(parts)))
                trial.rows = together(parts)
                trial.folds = len(parts)
                if not np.isfinite(
                    [estimate.value for estimate in trial.estimates(self.goals)]
                ).all():
                    trial.error = f"an objective does not exist on repeat {cell.fold.repeat}"
                    return
                if trial.values and folds is None and self._surely_worse(trial, len(cells)):
                    trial.stopped = True
                    return

    def _cells(self, cells: Sequence[Cell]) -> list[str]:
        """Return the cells of all trials so far, which are not to be collected as garbage."""
        cells_of_trials = [trial.plan.cells for trial in self.trials if trial.plan]
        ids = [
            *self.default_plan.cells,
            *(cell for trial_cells in cells_of_trials for cell in trial_cells),
        ]
        return list(dict.fromkeys([*ids, *(cell.id for cell in cells)]))

    def _fit_cells(self, planned: Plan, cells: Sequence[Cell]) -> None:
        """Fit the missing cells.

        Raises
        ------
        UserError : one cannot be.
        """
        refit = not planned.config["resume"]
        missing = [
            WorkUnit(planned, cell.id) for cell in cells if refit or not planned.store.has(cell.id)
        ]
        while missing:
            results = list(self.executor.run(missing))
            self.fitted += sum(result.computed for result in results)
            if errors := [result.error for result in results if result.error]:
                raise UserError(errors[0])
            missing = [
                WorkUnit(planned, result.unit.cell, wait=True) for result in results if result.busy
            ]

    def _surely_worse(self, trial: Trial, folds: int) -> bool:
        """Return whether one finished trial is better in every objective, on the same rows."""
        finished = [self.default, *self.trials]
        rivals = [other for other in finished if other.folds == folds and not other.error]
        scores = [self.tuning.score(np.array(self._objective_values(rival))) for rival in rivals]
        best = {0, int(np.argmin(scores))} if trial.folds < folds else set()
        return any(self._is_behind(trial, rivals[index]) for index in best)

    def _is_behind(self, trial: Trial, rival: Trial) -> bool:
        """Return whether a trial is surely worse than a rival in every objective."""
        pairs = zip(
            trial.estimates(self.goals), rival.estimates(self.goals, trial.folds), strict=True
        )
        return all(
            estimate.value - rival_estimate.value
            > _SURE
            * np.sqrt(
                ((estimate.linear - rival_estimate.linear) ** 2).sum() + estimate.least_of_value
            )
            for estimate, rival_estimate in pairs
        )
