"""Post-processing of scores: rows held out of training say how a model's scores are changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Model, RawOutputs, class_probabilities

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """Rows that a change of scores is learnt from, arrays (n,).

    Attributes
    ----------
    score : a fitted model's probability of label 1. label : 0 or 1. weight : copies of a row.
    sensitive : protected groups; the name joins those of the attributes.
    """

    score: Array
    label: Array
    weight: Array
    sensitive: pd.Series


# Takes scores and protected groups, and returns other scores.
Change = Callable[[Array, pd.Series], Array]


@dataclass
class Recalibrated(Model):
    """An estimator fitted to some training rows, whose scores the others say how to change.

    Attributes
    ----------
    name : the intervention, for errors.
    share : of the rows held out; with 0, the rows that were fitted say it.
    learn : returns the change, and what it says of itself.
    """

    name: str
    estimator: Any
    share: float
    seed: int
    learn: Callable[[HeldOut], tuple[Change, dict[str, float]]]
    change: Change = field(init=False)
    notes: dict[str, float] = field(init=False, default_factory=dict)

    def fit(
        self,
        X: Frame,
        y: Array,
        *,
        sensitive_features: pd.Series,
        sample_weight: Array | None = None,
    ) -> Self:
        """Fit the estimator, and learn the change from its scores of rows held out.

        Raises
        ------
        UserError : too few rows to hold any out with both labels on either side.
        """
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        rows = np.flatnonzero(weight > 0)
        if self.share:
            rows = self._held_out(rows, y)
            fitted = weight.copy()
            fitted[rows] = 0
            self.estimator.fit(X, y, sample_weight=fitted)
        else:
            self.estimator.fit(X, y, sample_weight=sample_weight)
        score = self._scores(X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows])
        groups = sensitive_features.iloc[rows]
        self.change, self.notes = self.learn(HeldOut(score, y[rows], weight[rows], groups))
        return self

    def outputs(self, X: Frame, *, sensitive_features: pd.Series, random_state: int) -> RawOutputs:
        """Return the changed probability of label 1."""
        return {"score": self.change(self._scores(X), sensitive_features)}

    @property
    def diagnostics(self) -> dict[str, float]:
        """What the change says of itself."""
        return self.notes

    def _scores(self, X: Frame) -> Array:
        return class_probabilities(self.estimator, X)[:, 1]

    def _held_out(self, rows: NDArray[np.intp], y: Array) -> NDArray[np.intp]:
        """Draw the same share of the rows of each label, at least one and not all."""
        draw, held_out = np.random.default_rng(self.seed), []
        for label in (0, 1):
            own = draw.permutation(rows[y[rows] == label])
            if len(own) < 2:
                raise UserError(
                    f"intervention={self.name} holds rows of either label out of training, and "
                    f"{len(own)} training row{'s' * (len(own) != 1)} had label {label}: give it "
                    "more, or intervention.held_out=0"
                )
            held_out.append(own[: min(max(round(self.share * len(own)), 1), len(own) - 1)])
        return np.sort(np.concatenate(held_out))
