"""A plain model with one standard deviation for all rows, measured on rows it was not fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.components.algorithms.fitters.held_out import fit_without, predict_rows
from fairbench.components.algorithms.losses import SquaredError
from fairbench.core.arrays import integer_seed
from fairbench.core.errors import check_minimum
from fairbench.data.dataset import Task
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Fitter, Loss, MakeModel, Model, RawOutputs, TrainingSet


@dataclass(frozen=True)
class ConstantSD(Fitter):
    """A model of the mean, fitted to all rows; `folds` other fits give errors on held-out rows."""

    folds: int = 5

    def __post_init__(self) -> None:
        """Refuse a single fold."""
        check_minimum("method.folds", self.folds, 2)

    def loss(self, task: Task, classes: int = 2) -> Loss:
        """Return squared error."""
        return SquaredError()

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Fit the model of all rows, and one without each fold."""
        seed = integer_seed(rng)
        residuals = self._residuals(make_model, train, rng)
        model = make_model(seed).fit(train.X, train.y, sensitive_features=train.sensitive)
        return Fitted(model, float(np.sqrt((residuals**2).mean())))

    def _residuals(
        self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator
    ) -> np.ndarray:
        residuals = np.empty(len(train.y))
        order = rng.permutation(len(train.y))
        for rows in np.array_split(order, min(self.folds, len(order))):
            model = fit_without(rows, make_model, train, rng)
            residuals[rows] = train.y[rows] - predict_rows(model, train, rows, rng)["mean"]
        return residuals


@dataclass(frozen=True)
class Fitted:
    """A model and its standard deviation."""

    model: Model
    sd: float

    def outputs(self, X: Frame, sensitive: pd.Series, rng: np.random.Generator) -> RawOutputs:
        """Return the model's mean, and the same standard deviation for every row."""
        seed = integer_seed(rng)
        mean = self.model.outputs(X, sensitive_features=sensitive, random_state=seed)["mean"]
        return {"mean": mean, "sd": np.full(len(mean), self.sd)}
