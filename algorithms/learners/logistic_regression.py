"""L2-penalised logistic regression by scikit-learn, on standardised one-hot features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import check_minimum
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import (
    ANY_LABEL,
    BINARY,
    MULTICLASS,
    Capabilities,
    Learner,
    Loss,
)


@dataclass(frozen=True)
class LogisticRegression(Learner):
    """Hyperparameters, named as scikit-learn names them."""

    C: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-4

    capabilities = Capabilities(
        tasks=BINARY | MULTICLASS,
        losses=ANY_LABEL,
        packages=("scikit-learn", "scipy"),
        gives=frozenset({"a linear decision rule", "a logistic likelihood"}),
    )
    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse what scikit-learn would refuse only once it fits."""
        check_minimum("learner.C", self.C, 1e-12)
        check_minimum("learner.max_iter", self.max_iter, 1)

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator; lbfgs draws nothing, so `seed` changes nothing."""
        import sklearn.linear_model

        from fairbench.components.algorithms.estimators.weighted import Weighted

        regression = sklearn.linear_model.LogisticRegression(
            C=self.C, max_iter=self.max_iter, tol=self.tol, random_state=seed
        )
        return regression if loss.name == "binomial" else Weighted(regression, loss.classes)
