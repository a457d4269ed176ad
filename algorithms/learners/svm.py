"""Support vector machine with a kernel by scikit-learn, its margins calibrated to probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import UserError, check_minimum
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import BINARY, Capabilities, Learner, Loss

_KERNELS = ("linear", "poly", "rbf", "sigmoid")


@dataclass(frozen=True)
class SVM(Learner):
    """Hyperparameters, named as scikit-learn names them; `folds` calibrate the margins, 0 none.

    Its time grows with the square of the rows: a data set of more than `max_rows` is refused.
    """

    C: float = 1.0
    kernel: str = "rbf"
    folds: int = 5
    max_rows: int = 20_000

    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse what scikit-learn would refuse only once it fits."""
        check_minimum("learner.C", self.C, 1e-12)
        check_minimum("learner.folds", self.folds, 2 if self.folds else 0)
        if self.kernel not in _KERNELS:
            raise UserError(f"unknown learner.kernel '{self.kernel}': valid: {', '.join(_KERNELS)}")

    @property
    def capabilities(self) -> Capabilities:
        """Labels alone, and no more rows than a kernel matrix can have."""
        return Capabilities(
            tasks=BINARY,
            packages=("scikit-learn", "scipy"),
            seeded=True,
            rows_at_most=(self.max_rows, "learner.max_rows"),
            gives=frozenset({"a kernel"}),
        )

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        import sklearn.svm

        from fairbench.components.algorithms.estimators.calibrated import scored

        machine = sklearn.svm.SVC(C=self.C, kernel=self.kernel)
        return scored(machine, self.folds, seed)
