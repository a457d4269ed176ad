"""Gaussian naive Bayes by scikit-learn, on standardised one-hot features."""

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
class GaussianNB(Learner):
    """Hyperparameters, named as scikit-learn names them."""

    var_smoothing: float = 1e-9

    capabilities = Capabilities(
        tasks=BINARY | MULTICLASS, losses=ANY_LABEL, packages=("scikit-learn", "scipy")
    )
    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse what scikit-learn would refuse only once it fits."""
        check_minimum("learner.var_smoothing", self.var_smoothing, 0)

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator; nothing is drawn, so `seed` changes nothing."""
        import sklearn.naive_bayes

        from fairbench.components.algorithms.estimators.weighted import Weighted

        bayes = sklearn.naive_bayes.GaussianNB(var_smoothing=self.var_smoothing)
        return Weighted(bayes, loss.classes)
