"""One decision tree by scikit-learn, on standardised one-hot features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import check_minimum
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import Capabilities, Learner, Loss


@dataclass(frozen=True)
class DecisionTree(Learner):
    """Hyperparameters, named as scikit-learn names them."""

    max_depth: int = 3

    capabilities = Capabilities(packages=("scikit-learn",), seeded=True)
    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse what scikit-learn would refuse only once it fits."""
        check_minimum("learner.max_depth", self.max_depth, 1)

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted tree: a regression's where the loss is the squared error."""
        import sklearn.tree

        from fairbench.components.algorithms.estimators.weighted import Weighted

        kind = "Regressor" if loss.name == "squared_error" else "Classifier"
        tree = getattr(sklearn.tree, f"DecisionTree{kind}")
        return Weighted(tree(max_depth=self.max_depth, random_state=seed))
