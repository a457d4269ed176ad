"""XGBoost with hyperparameters and rounds chosen on held-out rows, and refitted on all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.algorithms.estimators.linked import LinkedEstimator
from fairbench.components.algorithms.estimators.xgboost import (
    XGBoostEstimator,
    binned,
    grow_custom,
    unit_of,
)
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]


@dataclass
class EarlyStop:
    """Watches the held-out loss, and stops where it has not improved for `patience` rounds."""

    loss: Loss
    y: Array
    rows: NDArray[np.intp]
    weight: Array
    patience: int
    best: float = field(default=np.inf, init=False)
    rounds: int = field(default=1, init=False)

    def __call__(self, done: int, raw: Array) -> bool:
        """Say whether to stop after `done` rounds, which gave the scores `raw` of all rows."""
        values = self.loss.value(self.y[self.rows], raw[self.rows])
        judged = float(np.average(values, weights=self.weight[self.rows]))
        if done and judged < self.best:
            self.best, self.rounds = judged, done
        return done - self.rounds >= self.patience


class TunedXGBoostEstimator(LinkedEstimator):
    """Chooses on a share `validation` of the rows it is fitted to, drawn from its seed.

    Every combination of `grid`, option of XGBoost -> its values, is tried; the first is kept
    where several are best.

    The held-out rows have a weight of 0 in the matrix that all fits share, so their scores come
    with every round's gradients and stopping early costs nothing beside.
    """

    def __init__(
        self,
        estimator: XGBoostEstimator,
        grid: Mapping[str, Sequence[Any]],
        validation: float,
        patience: int,
        seed: int,
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.validation = validation
        self.patience = patience
        self.seed = seed

    def fit(self, X: Frame, y: Array, sample_weight: Array | None = None) -> TunedXGBoostEstimator:
        """Choose, then fit to all rows; rows of weight 0 have no part in either."""
        base = self.estimator
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        labels = unit_of(base.loss, base.parameters, y, weight).standard(y)
        rows = self._held_out(weight)
        choices = [dict(zip(self.grid, each, strict=True)) for each in product(*self.grid.values())]
        trials = [self._trial(X, labels, weight, rows, choice) for choice in choices]
        best = min(range(len(trials)), key=lambda i: trials[i].best)
        self.chosen_, self.rounds_ = choices[best], trials[best].rounds
        parameters = {**base.parameters, **self.chosen_}
        self.fitted_ = XGBoostEstimator(
            base.loss, self.rounds_, base.max_bin, parameters, base.seed
        ).fit(X, y, sample_weight)
        self.classes_ = self.fitted_.classes_
        return self

    def _trial(
        self, X: Frame, y: Array, weight: Array, rows: NDArray[np.intp], choice: dict[str, Any]
    ) -> EarlyStop:
        base = self.estimator
        kept = weight.copy()
        kept[rows] = 0
        watch = EarlyStop(base.loss, y, rows, weight, self.patience)
        matrix = binned(X, base.max_bin)
        grow_custom(
            {**base.train_parameters, **choice}, matrix, base.loss, base.rounds, y, kept, watch
        )
        return watch

    def _held_out(self, weight: Array) -> NDArray[np.intp]:
        rows = np.flatnonzero(weight > 0)
        order = np.random.default_rng(self.seed).permutation(rows)
        return order[: min(max(round(self.validation * len(rows)), 1), len(rows) - 1)]

    @property
    def loss(self) -> Loss:  # type: ignore[override]  # read only
        """The loss of the estimator that is tuned."""
        return self.estimator.loss

    def linked(self, X: Frame) -> Array:
        """Return the predictions of the refitted trees."""
        return self.fitted_.linked(X)
