"""Weighs training rows so that group and label are independent (Kamiran & Calders 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.none import Unconstrained
from fairbench.core.errors import UserError
from fairbench.data.features import Frame
from fairbench.experiments.contracts import (
    ANY_FEATURES,
    BINARY,
    MULTICLASS,
    Capabilities,
    Intervention,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reweighing(Intervention):
    """The learner's own estimator, fitted with weights to the power of `strength`.

    At 1 group and label are independent in the weighted rows, as Kamiran and Calders have it; at 0
    all weights are 1. Between, weights are the geometric means of these two.
    """

    strength: float = 1.0

    capabilities = Capabilities(
        tasks=BINARY | MULTICLASS,
        features=ANY_FEATURES,
        losses=None,
        reads_groups=True,
        gives_members=True,
    )

    def __post_init__(self) -> None:
        """Refuse a strength that would turn the weights around, or exceed them."""
        if not 0 <= self.strength <= 1:
            raise UserError(f"intervention.strength is {self.strength}; it must be from 0 to 1")

    def wrap(self, estimator: Any, seed: int) -> Reweighed:
        """Return the unfitted model."""
        return Reweighed(estimator, self.strength)


@dataclass
class Reweighed(Unconstrained):
    """An estimator fitted with the weights of :func:`independence_weights`, and read as it is."""

    strength: float = 1.0

    def fit(
        self,
        X: Frame,
        y: Array,
        *,
        sensitive_features: pd.Series,
        sample_weight: Array | None = None,
    ) -> Self:
        """Fit the estimator; `sample_weight` counts rows, and multiplies the weights."""
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        factor = independence_weights(sensitive_features, y, weight)
        # Rows of weight 0 have a factor of 0, which is no power to take.
        weight = weight * np.where(weight > 0, factor, 1.0) ** self.strength
        return super().fit(X, y, sensitive_features=sensitive_features, sample_weight=weight)


def independence_weights(groups: pd.Series, y: Array, weight: Array) -> Array:
    """Return P(g) P(y) / P(g, y) of each row, (n,), with shares of weighted rows.

    Rows of weight 0 get 0: their group and label may never occur together.
    """
    codes = pd.factorize(groups)[0]
    together = np.zeros((codes.max() + 1, max(2, int(y.max()) + 1)))
    np.add.at(together, (codes, y.astype(np.intp)), weight)
    apart = together.sum(axis=1, keepdims=True) * together.sum(axis=0) / together.sum()
    ratio = np.divide(apart, together, out=np.zeros_like(apart), where=together > 0)
    return np.where(weight > 0, ratio[codes, y.astype(np.intp)], 0.0)
