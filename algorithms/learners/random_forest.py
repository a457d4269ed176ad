"""Random forests by scikit-learn, on imputed one-hot features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairbench.core.errors import check_minimum
from fairbench.data.features import Encoding
from fairbench.experiments.contracts import ANY_LABEL, ANY_TASK, Capabilities, Learner, Loss


@dataclass(frozen=True)
class RandomForest(Learner):
    """Hyperparameters, named as scikit-learn names them."""

    n_estimators: int = 100
    max_depth: int | None = None
    min_samples_leaf: int = 1
    max_features: float | None = None

    capabilities = Capabilities(
        tasks=ANY_TASK,
        losses=ANY_LABEL | {"squared_error"},
        packages=("scikit-learn", "scipy"),
        seeded=True,
    )
    encoding = Encoding.STANDARD

    def __post_init__(self) -> None:
        """Refuse what scikit-learn would refuse only once it fits."""
        check_minimum("learner.n_estimators", self.n_estimators, 1)
        check_minimum("learner.min_samples_leaf", self.min_samples_leaf, 1)
        if self.max_depth is not None:
            check_minimum("learner.max_depth", self.max_depth, 1)
        if self.max_features is not None:
            check_minimum("learner.max_features", self.max_features, 1e-9)

    def estimator(self, loss: Loss, seed: int) -> Any:
        """Return an unfitted estimator."""
        import sklearn.ensemble

        from fairbench.components.algorithms.estimators.weighted import Weighted

        name = "RandomForestClassifier" if loss.classes else "RandomForestRegressor"
        forest = getattr(sklearn.ensemble, name)(
            n_estimators=self.n_estimators,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features or ("sqrt" if loss.classes else 1.0),
            n_jobs=1,
            random_state=seed,
        )
        return Weighted(forest, loss.classes)
