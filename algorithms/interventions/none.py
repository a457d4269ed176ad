"""No intervention: the learner's own estimator, which ignores the sensitive features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.data.features import Frame
from fairbench.experiments.contracts import (
    ANY_FEATURES,
    ANY_TASK,
    Capabilities,
    Intervention,
    Model,
    RawOutputs,
    class_probabilities,
)


@dataclass(frozen=True)
class NoIntervention(Intervention):
    """The learner as it is: what interventions are compared with."""

    capabilities = Capabilities(
        tasks=ANY_TASK, features=ANY_FEATURES, losses=None, gives_members=True
    )

    def wrap(self, estimator: Any, seed: int) -> Unconstrained:
        """Return the estimator as a model."""
        return Unconstrained(estimator)


@dataclass
class Unconstrained(Model):
    """An estimator that is fitted and read as it is."""

    estimator: Any

    def fit(
        self,
        X: Frame,
        y: NDArray[np.float64],
        *,
        sensitive_features: pd.Series,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Self:
        """Fit the estimator; the sensitive features go unused."""
        self.estimator.fit(X, y, sample_weight=sample_weight)
        return self

    def outputs(self, X: Frame, *, sensitive_features: pd.Series, random_state: int) -> RawOutputs:
        """Return what the estimator has: ``score``, ``mean`` and ``sd``, or ``mean``."""
        if hasattr(self.estimator, "predict_distribution"):
            mean, sd = np.asarray(self.estimator.predict_distribution(X)).T
            return {"mean": mean, "sd": sd}
        if hasattr(self.estimator, "predict_proba"):
            p = class_probabilities(self.estimator, X)
            return {"score": p if p.shape[1] > 2 else p[:, 1]}
        return {"mean": np.asarray(self.estimator.predict(X))}

    def members(self, X: Frame, members: int, *, random_state: int) -> RawOutputs:
        """Return the same of networks drawn from the fitted one, each (n, members[, classes])."""
        drawn = np.moveaxis(self.estimator.predict_members(X, members, random_state), 0, 1)
        if hasattr(self.estimator, "predict_distribution"):
            return {"mean": drawn[..., 0], "sd": drawn[..., 1]}
        name = "score" if hasattr(self.estimator, "predict_proba") else "mean"
        return {name: drawn if drawn.shape[-1] > 2 else drawn[..., 0]}
