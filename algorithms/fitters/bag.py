"""Several models: a bag of bootstraps, drawn as integer weights, or members that differ by seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.losses import default_loss, distribution_loss
from fairbench.core.arrays import integer_seed
from fairbench.core.errors import check_minimum
from fairbench.data.dataset import Task
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Fitter, Loss, MakeModel, Model, RawOutputs, TrainingSet


@dataclass(frozen=True)
class Bag(Fitter):
    """`members` models, each fitted to a bootstrap of the training rows.

    A bootstrap is a weight for every row, w for w copies, so all share one table of features.
    """

    members: int = 10

    def __post_init__(self) -> None:
        """Refuse an empty bag."""
        check_minimum("method.members", self.members, 1)

    def loss(self, task: Task, classes: int = 2) -> Loss:
        """Likelihood of the label, or squared error."""
        return default_loss(task, classes)

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Fit every member with its own seed and weights."""
        models = []
        for generator in rng.spawn(self.members):
            model = make_model(integer_seed(generator))
            weight = self._weights(train, generator)
            models.append(
                model.fit(
                    train.X, train.y, sensitive_features=train.sensitive, sample_weight=weight
                )
            )
        return Fitted(models)

    def _weights(
        self, train: TrainingSet, generator: np.random.Generator
    ) -> NDArray[np.float64] | None:
        return bootstrap_weights(train, generator)


@dataclass(frozen=True)
class DeepEnsemble(Bag):
    """`members` models fitted to all training rows, or to bootstraps where seeds change nothing.

    Each gives a distribution. A learner that draws nothing (boosted trees on all rows and columns,
    logistic regression) would otherwise give the same member again and again, and no epistemic
    variance.
    """

    members: int = 5

    def __post_init__(self) -> None:
        """Refuse an ensemble without disagreement."""
        check_minimum("method.members", self.members, 2)

    def loss(self, task: Task, classes: int = 2) -> Loss:
        """Return the likelihood of a label, or of a value with a standard deviation of its own."""
        return distribution_loss(task, classes)

    def _weights(
        self, train: TrainingSet, generator: np.random.Generator
    ) -> NDArray[np.float64] | None:
        return None if train.seeded else bootstrap_weights(train, generator)


@dataclass(frozen=True)
class Fitted:
    """The fitted members."""

    models: list[Model]

    def outputs(self, X: Frame, sensitive: pd.Series, rng: np.random.Generator) -> RawOutputs:
        """Return each output of the members side by side, (n, members) or (n, members, classes)."""
        outputs = [
            model.outputs(X, sensitive_features=sensitive, random_state=integer_seed(generator))
            for model, generator in zip(self.models, rng.spawn(len(self.models)), strict=True)
        ]
        return {name: np.stack([each[name] for each in outputs], axis=1) for name in outputs[0]}


def bootstrap_weights(train: TrainingSet, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return how often each row is drawn in a bootstrap, (n,) whole numbers that sum to n.

    A draw that misses a class the training rows have is drawn again: no classifier could be
    fitted to it.
    """
    n = len(train.y)
    classes = np.unique(train.y) if train.task is not Task.REGRESSION else np.empty(0)
    while True:
        weight = np.bincount(generator.integers(n, size=n), minlength=n).astype(np.float64)
        if all(weight[train.y == label].any() for label in classes):
            return weight
