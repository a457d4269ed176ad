"""XGBoost as an estimator that bins a frame once, however many models are fitted to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from fairbench.contracts import Loss
from fairbench.encoding import Frame

_OBJECTIVES = {"binomial": "binary:logistic", "squared_error": "reg:squarederror"}


class XGBoostEstimator(BaseEstimator):
    """A scikit-learn style estimator over `xgboost.train` on a shared QuantileDMatrix.

    Unlike XGBClassifier it bins a frame once, however often it is fitted with other labels or
    weights, and it returns float64.
    """

    def __init__(
        self, loss: Loss, rounds: int, max_bin: int, parameters: dict[str, Any], seed: int
    ) -> None:
        self.loss = loss
        self.rounds = rounds
        self.max_bin = max_bin
        self.parameters = parameters
        self.seed = seed

    def fit(
        self, X: Frame, y: NDArray[np.float64], sample_weight: NDArray[np.float64] | None = None
    ) -> XGBoostEstimator:
        """Fit to labels or values `y`; `sample_weight` of whole numbers repeats rows."""
        import xgboost

        self.classes_ = np.array([0, 1])
        matrix = _binned(X, self.max_bin)
        matrix.set_label(y)
        matrix.set_weight(np.ones(len(y)) if sample_weight is None else sample_weight)
        parameters = {
            **self.parameters,
            "objective": _OBJECTIVES[self.loss.name],
            "tree_method": "hist",
            "max_bin": self.max_bin,
            "nthread": 1,
            "seed": self.seed,
        }
        self.booster_ = xgboost.train(parameters, matrix, num_boost_round=self.rounds)
        return self

    @available_if(lambda self: self.loss.name == "binomial")
    def predict_proba(self, X: Frame) -> NDArray[np.float64]:
        """Return the (n, 2) probabilities of labels 0 and 1."""
        p = self._inplace(X)
        return np.column_stack([1 - p, p])

    def predict(self, X: Frame) -> NDArray[np.float64]:
        """Return labels (ties are 0) or values."""
        raw = self._inplace(X)
        return (raw > 0.5).astype(np.float64) if self.loss.name == "binomial" else raw

    def _inplace(self, X: Frame) -> NDArray[np.float64]:
        return np.asarray(self.booster_.inplace_predict(X), np.float64)


_shared: tuple[Any, int, Any] | None = None


def _binned(X: Frame, max_bin: int) -> Any:
    """Return the binned matrix of `X`, kept for the last frame seen (by identity, one process).

    The strong reference to the frame keeps its identity from being given to another.
    """
    import xgboost

    global _shared
    if _shared is None or _shared[0] is not X or _shared[1] != max_bin:
        matrix = xgboost.QuantileDMatrix(X, max_bin=max_bin, nthread=1, enable_categorical=True)
        _shared = (X, max_bin, matrix)
    return _shared[2]
