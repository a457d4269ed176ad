"""Scikit-learn's neural network, for papers that used it; learner=mlp takes every loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import check_minimum
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import ANY_LABEL, ANY_TASK, Capabilities, Learner, Loss


@dataclass(frozen=True)
class SklearnMLP(Learner):
    """Hyperparameters, with the names and defaults of scikit-learn."""

    hidden_layer_sizes: Sequence[int] = (100,)
    alpha: float = 1e-4
    learning_rate_init: float = 1e-3
    max_iter: int = 200
    early_stopping: bool = False

    capabilities = Capabilities(
        tasks=ANY_TASK,
        losses=ANY_LABEL | {"squared_error"},
        packages=("scikit-learn", "scipy"),
        seeded=True,
    )
    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse what scikit-learn would refuse only once it fits."""
        for units in self.hidden_layer_sizes:
            check_minimum("learner.hidden_layer_sizes", units, 1)
        check_minimum("learner.alpha", self.alpha, 0)
        check_minimum("learner.learning_rate_init", self.learning_rate_init, 1e-12)
        check_minimum("learner.max_iter", self.max_iter, 1)

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        import sklearn.neural_network

        from fairbench.components.algorithms.estimators.weighted import Weighted

        name = "MLPClassifier" if loss.classes else "MLPRegressor"
        network = getattr(sklearn.neural_network, name)(
            hidden_layer_sizes=tuple(self.hidden_layer_sizes),
            alpha=self.alpha,
            learning_rate_init=self.learning_rate_init,
            max_iter=self.max_iter,
            early_stopping=self.early_stopping,
            random_state=seed,
        )
        return Weighted(network, loss.classes, standardise=not loss.classes)
