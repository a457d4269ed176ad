"""A deep ensemble: models that differ by seed, each giving a distribution of the label."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from algorithms.fitters.bag import Fitted, bootstrap_weights
from algorithms.losses import Binomial
from algorithms.normal_losses import NormalNLL
from fairbench.core.checks import check_minimum
from fairbench.core.seeds import integer_seed
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import Fitter, Loss, MakeModel, TrainingSet


@dataclass(frozen=True)
class DeepEnsemble(Fitter):
    """`members` fits to all training rows, or to bootstraps where the seed changes nothing.

    A learner that draws nothing (boosted trees on all rows and columns, logistic regression) would
    otherwise give the same member again and again, and no epistemic variance.
    """

    members: int = 5
    objective: Loss = field(default_factory=NormalNLL)

    def __post_init__(self) -> None:
        """Refuse an ensemble without disagreement."""
        check_minimum("method.members", self.members, 2)

    def loss(self, task: Task) -> Loss:
        """Return the likelihood of a label, or the objective of a distribution."""
        return Binomial() if task is Task.BINARY else self.objective

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Fit every member with its own seed."""
        models = []
        for generator in rng.spawn(self.members):
            model = make_model(integer_seed(generator))
            weight = None if train.seeded else bootstrap_weights(train, generator)
            models.append(
                model.fit(
                    train.X, train.y, sensitive_features=train.sensitive, sample_weight=weight
                )
            )
        return Fitted(models)
