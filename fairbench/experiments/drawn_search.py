"""A search whose candidates are drawn: independently, from one distribution that is stated.

Tuning proposes what looks promising after the trials so far. Here no draw depends on another, which
is what the bound on further gain rests on (`inference/comparing/further_search.py`). All else is
tuning's: cells that are fitted once whoever asks, validation rows that judge alone, and a study in
the results folder, with which the same command goes on after a kill.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError
from fairbench.core.seeds import rng
from fairbench.experiments.execute import WorkUnit, plan_run
from fairbench.experiments.tuning import Dimension, Search, has_all
from fairbench.experiments.tuning_trials import Trial, Values
from fairbench.inference.comparing.further_search import is_enough, least_gap


@dataclass(frozen=True)
class Family:
    """Candidates of one learner, intervention and method, and the options in which they differ.

    Attributes
    ----------
    choices : the name of each component, by ``learner``, ``intervention`` and ``method``.
    fixed : options that all its candidates have, as they are typed.
    space : the options that are drawn, each by itself.
    group_at_prediction : whether a person's group must be known to predict.
    """

    choices: Mapping[str, str]
    fixed: Mapping[str, str]
    space: tuple[Dimension, ...]
    group_at_prediction: bool

    def sample(self, generator: np.random.Generator) -> Values:
        """Return one of its candidates."""
        return {
            **self.choices,
            **self.fixed,
            **{dimension.name: dimension.sample(generator) for dimension in self.space},
        }

    def has(self, values: Values) -> bool:
        """Say whether values are those of one of its candidates."""
        fixed = {**self.choices, **self.fixed}
        drawn = {name: value for name, value in values.items() if name not in fixed}
        return fixed.items() <= values.items() and has_all(self.space, drawn)

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
class DrawnSearch(Search):
    """A search under way: the model in use is its default, and its candidates are drawn.

    The first of `tuning.objectives` is the gap, the second the error rate.

    Attributes
    ----------
    families : the families of candidates, equally likely in every draw.
    within : by how much the error of a candidate may be above that of the model in use.
    worth : the search ends when one more candidate surely lowers the gap by less, on average.
    """

    families: Sequence[Family] = ()
    within: float = 0.0
    worth: float = 0.0

    _default: ClassVar[str] = "model in use"

    def check(self) -> None:
        """Refuse what cannot be searched.

        Raises
        ------
        UserError : an unknown gap, no rows that choose alone, or several fits of one candidate.
        """
        self._check_rows()
        if len(self.default_plan.cells) > 1:
            raise UserError(
                f"{len(self.default_plan.cells)} fits of each candidate are asked for, and it is "
                "single models that are compared: take split.repeats=1, and no consistency"
            )

    @property
    def _kind(self) -> tuple[str, ...]:
        """Another distribution is another study: nothing depends on earlier draws."""
        return "drawn", *(f"{name} {options}" for name, options in self.searched.items())

    @cached_property
    def searched(self) -> dict[str, str]:
        """The distributions of each family's options, by its name."""
        return {family.name: family.options for family in self.families}

    @property
    def everyone(self) -> list[Trial]:
        """The model in use, and every candidate so far."""
        return [self.default, *self.trials]

    @property
    def values(self) -> Floats:
        """Gap and error of the model in use and of every candidate, (k, 2); NaN if it failed."""
        missing = [np.nan, np.nan]
        return np.array([missing if t.error else self._objective_values(t) for t in self.everyone])

    @property
    def chosen_index(self) -> int:
        """The position of the chosen candidate; 0 is the model in use."""
        return least_gap(*self.values.T, within=self.within)

    @property
    def risk(self) -> float:
        """The chance that the bound on further draws may fail; the other half is the gap's own."""
        return (1 - self.tuning.level) / 2

    @property
    def is_enough(self) -> bool:
        """Whether one more candidate surely gains less than it is worth."""
        gap = float(self.values[self.chosen_index, 0])
        return is_enough(gap, len(self.trials), worth=self.worth, risk=self.risk)

    @property
    def tried_all(self) -> bool:
        """Whether all possible candidates were tried; never if an option is a real number."""
        tried = {tuple(trial.values.items()) for trial in self.trials}
        return len(tried) >= sum(family.count for family in self.families)

    def _goes_on(self) -> bool:
        return super()._goes_on() and not self.is_enough

    def _is_candidate(self, values: Values) -> bool:
        return any(family.has(values) for family in self.families)

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
        self.fitted += sum(result.computed for result in self.executor.run(units))

    def _candidate(self, number: int) -> Values:
        """Return the candidate of a number, drawn independently of all others."""
        generator = rng(self._run.study.seed, "drawn", number)
        return self.families[int(generator.integers(len(self.families)))].sample(generator)
