"""TabPFN's classifier and regressor (package tabpfn) as an estimator of a loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.estimators.linked import LinkedEstimator
from fairbench.components.algorithms.estimators.training import one_thread
from fairbench.core.errors import UserError
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]


class TabPFNEstimator(LinkedEstimator):
    """Keeps the training rows, and predicts others beside them with weights that stay as they are.

    It cannot weigh rows: a weight of w is w copies.
    """

    def __init__(self, loss: Loss, learner: Any, seed: int) -> None:
        self.loss = loss
        self.learner = learner
        self.seed = seed

    def fit(self, X: pd.DataFrame, y: Array, sample_weight: Array | None = None) -> TabPFNEstimator:
        """Keep the rows.

        Raises
        ------
        UserError : weights that do not count copies.
        """
        self.classes_ = np.arange(self.loss.classes or 2)
        rows = _copies(len(y), sample_weight)
        labels = y[rows].astype(np.int64) if self.loss.classes else y[rows]
        with one_thread():
            self.fitted_ = self._new().fit(X.iloc[rows], labels)
        return self

    def linked(self, X: pd.DataFrame) -> Array:
        """Return the probabilities, means, or means and standard deviations of rows, (n, k)."""
        with one_thread():
            if self.loss.classes:
                return self._probabilities(X)[:, -self.loss.outputs :]
            if self.loss.outputs == 1:
                return np.asarray(self.fitted_.predict(X), np.float64)[:, None]
            full = self.fitted_.predict(X, output_type="full")
            variance = full["criterion"].variance(full["logits"]).cpu().numpy()
        return np.column_stack([full["mean"], np.sqrt(variance)]).astype(np.float64)

    def _probabilities(self, X: pd.DataFrame) -> Array:
        """Return the (n, C) probabilities of every class: 0 of one that no training row has."""
        p = np.zeros((len(X), len(self.classes_)))
        p[:, self.fitted_.classes_.astype(np.intp)] = self.fitted_.predict_proba(X)
        return p

    def _new(self) -> Any:
        import tabpfn

        name = "TabPFNClassifier" if self.loss.classes else "TabPFNRegressor"
        return getattr(tabpfn, name)(
            model_path=self.learner.checkpoint,
            n_estimators=self.learner.estimators,
            device=self.learner.device,
            random_state=self.seed,
            ignore_pretraining_limits=True,
        )


def _copies(n: int, weight: Array | None) -> NDArray[np.intp]:
    counts = np.ones(n, np.intp) if weight is None else np.asarray(weight).astype(np.intp)
    if weight is not None and (counts != weight).any():
        raise UserError(
            "learner=tabpfn takes weights that count copies of rows, and got fractions: use "
            "another learner with this intervention or method"
        )
    return np.repeat(np.arange(n), counts)
