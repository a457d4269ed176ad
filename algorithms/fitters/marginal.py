"""Predicts the average of the training labels for everyone: no learner is fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.components.algorithms.losses import default_loss
from fairbench.data.dataset import Task
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Fitter, Loss, MakeModel, RawOutputs, TrainingSet


@dataclass(frozen=True)
class Marginal(Fitter):
    """Mean and standard deviation of the training labels."""

    def loss(self, task: Task, classes: int = 2) -> Loss:
        """Return the loss of a plain model, though none is fitted."""
        return default_loss(task, classes)

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Take the moments of the labels."""
        if train.task is Task.MULTICLASS:
            counts = np.bincount(train.y.astype(np.intp), minlength=train.classes)
            return Fitted(train.task, np.asarray(counts / len(train.y)), np.nan)
        return Fitted(train.task, train.y.mean(), float(train.y.std()))


@dataclass(frozen=True)
class Fitted:
    """The moments; of several classes their shares, (C,)."""

    task: Task
    mean: np.ndarray | np.float64
    sd: float

    def outputs(self, X: Frame, sensitive: pd.Series, rng: np.random.Generator) -> RawOutputs:
        """Return the same score, or mean and standard deviation, for every row."""
        n = X.shape[0]
        if self.task is not Task.REGRESSION:
            return {"score": np.tile(self.mean, (n, 1) if self.mean.ndim else n)}
        return {"mean": np.full(n, self.mean), "sd": np.full(n, self.sd)}
