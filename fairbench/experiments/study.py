"""Cells, one fit each: an id is a hash of everything that the fit's outputs depend on."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from fairbench.core.errors import UserError, check_minimum, check_types, unknown_name
from fairbench.core.fingerprint import code_digest, describe, digest, versions
from fairbench.data.dataset import Dataset
from fairbench.data.splits import Fold
from fairbench.evaluation.uncertainties import REPLICATE
from fairbench.experiments.contracts import Fitter, Intervention, Learner, Method

_PACKAGES = ("numpy", "pandas", "scikit-learn")


@dataclass(frozen=True)
class Study:
    """Everything that can affect the raw outputs of a run's cells, except the fold.

    `replicate` numbers fits that differ in their draws alone: other bootstraps, the same rows.
    """

    dataset: Dataset
    learner: Learner
    intervention: Intervention
    fitter: Fitter
    seed: int
    protect: tuple[str, ...] = ()
    replicate: int = 0

    @property
    def group_at_prediction(self) -> bool:
        """Whether a new row's group must be known to predict it."""
        components = (self.learner, self.intervention, self.fitter)
        return any(component.capabilities.group_at_prediction for component in components)

    @property
    def cost_key(self) -> str:
        """A hash that studies share whose cells cost about the same."""
        parts = [describe(part) for part in (self.learner, self.intervention, self.fitter)]
        return digest([self.dataset.digest, *parts])

    def identity(self) -> dict[str, Any]:
        """Return everything but the rows that determines the raw outputs.

        The data count by their content, not by who loaded them; components by the names of their
        classes and their options; code by what it computes.
        """
        components = (self.learner, self.intervention, self.fitter)
        loss = self.fitter.loss(self.dataset.task, len(self.dataset.classes))
        modules = [
            "fairbench.experiments.compute",
            *(type(part).__module__ for part in (*components, loss)),
        ]
        packages = [name for part in components for name in part.capabilities.packages]
        reads_groups = any(component.capabilities.reads_groups for component in components)
        return {
            "data": self.dataset.digest,
            "seed": [self.seed, self.replicate],
            "protect": self.protect if reads_groups else (),
            "components": [describe(component) for component in components],
            "code": code_digest(modules),
            "versions": versions([*_PACKAGES, *packages]),
        }


@dataclass(frozen=True)
class Cell:
    """One fold of a study, and the id its outputs are stored under."""

    study: Study
    fold: Fold
    id: str
    variant: str = ""

    @property
    def repeat_and_fold(self) -> tuple[int, int]:
        """The repeat and the fold."""
        return self.fold.repeat, self.fold.fold


def cells_of(study: Study, folds: Sequence[Fold], variant: str = "") -> list[Cell]:
    """Return the cells of a study; an id is a hash of the study and of the rows themselves."""
    identity = study.identity()
    return [
        Cell(study, fold, digest([identity, fold.repeat, fold.fold, rows_digest(fold)]), variant)
        for fold in folds
    ]


@lru_cache(maxsize=512)
def rows_digest(fold: Fold) -> str:
    """Return a hash of the rows of a fold, part by part."""
    total = hashlib.sha256()
    for rows in (fold.train, fold.validation, fold.test):
        total.update(np.ascontiguousarray(rows, np.int64).data)
        total.update(b"|")
    return total.hexdigest()


@dataclass(frozen=True)
class Variant:
    """A study that differs from the run's own in one respect, which `label` names."""

    label: str
    study: Study
    method: Method


@dataclass(frozen=True)
class Consistency:
    """Which hyperparameter is varied to see whether uncertainties stay the same.

    Attributes
    ----------
    vary : ``learner.max_depth``, or any option of the learner, intervention or method.
    values : its values.
    replicates : further fits of the run's own configuration with other draws (bootstraps, seeds):
        the noise that a variation over `values` has to be compared with.
    fresh_draws : give every value draws of its own (the papers' code does) instead of the same.
    """

    vary: str | None = None
    values: Sequence[Any] = ()
    replicates: int = 0
    fresh_draws: bool = False

    def __post_init__(self) -> None:
        """Refuse half a variation."""
        check_minimum("consistency.replicates", self.replicates, 0)
        if bool(self.vary) != bool(self.values):
            raise UserError(
                "consistency.vary and consistency.values go together, such as "
                "consistency.vary=learner.max_depth consistency.values=[5,6,7,8]"
            )
        if self.vary and len(self.values) < 2:
            raise UserError("consistency.values needs at least two values to compare")
        if len({str(value) for value in self.values}) < len(self.values):
            raise UserError("consistency.values has a value twice")

    def variants(self, study: Study, method: Method) -> Iterator[Variant]:
        """Yield a variant per value, then one per replicate.

        Raises
        ------
        UserError : an option that the component does not have.
        """
        for i, value in enumerate(self.values, start=1):
            varied = _vary(study, method, str(self.vary), value)
            draws = i if self.fresh_draws else 0
            yield replace(varied, study=replace(varied.study, replicate=draws))
        for i in range(1, self.replicates + 1):
            yield Variant(f"{REPLICATE}{i}", replace(study, replicate=i), method)


def variant_label(vary: str, value: Any) -> str:
    """Return the name of the variant with a value of an option such as ``learner.gamma``."""
    return f"{vary.partition('.')[2]}={value}"


def _vary(study: Study, method: Method, vary: str, value: Any) -> Variant:
    """Return the variant with another value of an option, such as ``learner.gamma``."""
    group, _, option = vary.partition(".")
    components = {
        "learner": study.learner,
        "intervention": study.intervention,
        "method": method,
    }
    if group not in components:
        raise unknown_name("component in consistency.vary", group, components)
    component: Any = components[group]
    fields = [field.name for field in dataclasses.fields(component)]
    if option not in fields:
        raise unknown_name(f"option of the {group} in consistency.vary", option, fields)
    check_types(group, type(component), {option: value})
    changed = replace(component, **{option: value})
    label = variant_label(vary, value)
    if group == "method":
        return Variant(label, replace(study, fitter=changed.fitter), changed)
    return Variant(label, replace(study, **{group: changed}), method)
