"""Studies and their cells: what is fitted, and the id that names all it depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fairbench.core.fingerprint import code_digest, describe, digest, versions
from fairbench.data.dataset import Dataset
from fairbench.data.splits import Fold
from fairbench.experiments.contracts import Fitter, Intervention, Learner

_PACKAGES = ("numpy", "pandas", "scikit-learn")


@dataclass(frozen=True)
class Study:
    """What is common to the cells of a run: everything that can affect raw outputs.

    `replicate` numbers fits that differ in their draws alone: other bootstraps, the same rows.
    """

    dataset: Dataset
    learner: Learner
    intervention: Intervention
    fitter: Fitter
    seed: int
    protect: tuple[str, ...] = ()
    replicate: int = 0

    def identity(self) -> dict[str, Any]:
        """Return what, with the rows, determines the raw outputs.

        The data count by their content, not by who loaded them; components by the names of their
        classes and their options; code by what it computes.
        """
        components = (self.learner, self.intervention, self.fitter)
        loss = self.fitter.loss(self.dataset.task)
        modules = [
            "fairbench.experiments.compute",
            *(type(each).__module__ for each in (*components, loss)),
        ]
        packages = [name for each in components for name in each.capabilities.packages]
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
