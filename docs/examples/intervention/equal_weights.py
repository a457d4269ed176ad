"""Gives every group the same total weight in training, however many rows it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.none import Unconstrained
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Capabilities, Intervention


@dataclass(frozen=True)
class EqualWeights(Intervention):
    """The learner's own estimator, fitted with a weight for each row."""

    capabilities = Capabilities(losses=None, reads_groups=True, gives_members=True)

    def wrap(self, estimator: Any, seed: int) -> EquallyWeighted:
        """Return the unfitted model."""
        return EquallyWeighted(estimator)


class EquallyWeighted(Unconstrained):
    """An estimator whose training rows weigh more the smaller their group is."""

    def fit(
        self,
        X: Frame,
        y: NDArray[np.float64],
        *,
        sensitive_features: pd.Series,
        sample_weight: NDArray[np.float64] | None = None,
    ) -> Self:
        """Fit the estimator; `sample_weight` counts rows, and multiplies the weights."""
        counts = np.ones(len(y)) if sample_weight is None else sample_weight
        codes = pd.factorize(sensitive_features)[0]
        totals = np.bincount(codes, weights=counts)
        share = counts.sum() / (np.count_nonzero(totals) * np.maximum(totals, 1e-300))
        weight = counts * share[codes]
        return super().fit(X, y, sensitive_features=sensitive_features, sample_weight=weight)
