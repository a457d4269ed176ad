"""One model fitted on the training rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.components.algorithms.losses import default_loss
from fairbench.core.arrays import integer_seed
from fairbench.data.dataset import Task
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Fitter, Loss, MakeModel, Model, RawOutputs, TrainingSet


@dataclass(frozen=True)
class Single(Fitter):
    """One fit, all that most methods need, of a given loss or of the usual one of the task."""

    objective: Loss | None = None

    def loss(self, task: Task, classes: int = 2) -> Loss:
        """Return the objective, by default the likelihood of the label, or squared error."""
        return self.objective or default_loss(task, classes)

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Fit one model."""
        model = make_model(integer_seed(rng))
        return Fitted(model.fit(train.X, train.y, sensitive_features=train.sensitive))


@dataclass(frozen=True)
class Fitted:
    """One fitted model."""

    model: Model

    def outputs(self, X: Frame, sensitive: pd.Series, rng: np.random.Generator) -> RawOutputs:
        """Return the model's own outputs."""
        return self.model.outputs(X, sensitive_features=sensitive, random_state=integer_seed(rng))
