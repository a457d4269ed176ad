"""Linear support vector machine by scikit-learn, its margins calibrated to probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import check_minimum
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import BINARY, Capabilities, Learner, Loss


@dataclass(frozen=True)
class LinearSVM(Learner):
    """Hyperparameters, named as scikit-learn names them; `folds` calibrate the margins, 0 none."""

    C: float = 1.0
    max_iter: int = 1000
    tol: float = 1e-4
    folds: int = 5

    capabilities = Capabilities(
        tasks=BINARY,
        packages=("scikit-learn", "scipy"),
        seeded=True,
        gives=frozenset({"a linear decision rule"}),
    )
    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse what scikit-learn would refuse only once it fits."""
        check_minimum("learner.C", self.C, 1e-12)
        check_minimum("learner.max_iter", self.max_iter, 1)
        check_minimum("learner.folds", self.folds, 2 if self.folds else 0)

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        import sklearn.svm

        from fairbench.components.algorithms.estimators.calibrated import scored

        machine = sklearn.svm.LinearSVC(
            C=self.C, max_iter=self.max_iter, tol=self.tol, dual=False, random_state=seed
        )
        return scored(machine, self.folds, seed)
