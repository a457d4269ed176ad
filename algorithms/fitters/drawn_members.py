"""One fitted network, from which several are drawn: by a posterior over weights, or by dropout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from fairbench.components.algorithms.losses import distribution_loss
from fairbench.core.arrays import integer_seed
from fairbench.core.errors import check_minimum
from fairbench.data.dataset import Task
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Fitter, Loss, MakeModel, RawOutputs, TrainingSet


class GivesMembers(Protocol):
    """A fitted model that networks can be drawn from."""

    def members(self, X: Frame, members: int, *, random_state: int) -> RawOutputs:
        """Return (n, members) arrays: ``score``, or ``mean`` and ``sd``."""
        ...


@dataclass(frozen=True)
class DrawnMembers(Fitter):
    """A single fit; `members` networks drawn from it make the predictions."""

    members: int = 10

    def __post_init__(self) -> None:
        """Refuse members without disagreement."""
        check_minimum("method.members", self.members, 2)

    def loss(self, task: Task, classes: int = 2) -> Loss:
        """Return the likelihood of a label, or of a value with a standard deviation of its own."""
        return distribution_loss(task, classes)

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Fit one network to all training rows."""
        model = make_model(integer_seed(rng))
        model.fit(train.X, train.y, sensitive_features=train.sensitive)
        return Fitted(model, self.members)  # type: ignore[arg-type]  # run.py refuses all others


@dataclass(frozen=True)
class Fitted:
    """The fitted network."""

    model: GivesMembers
    count: int

    def outputs(self, X: Frame, sensitive: pd.Series, rng: np.random.Generator) -> RawOutputs:
        """Return each output of the members as an (n, members) array; all rows share the draws."""
        return self.model.members(X, self.count, random_state=integer_seed(rng))
