"""The floor: a bag per repeat in plain XGBoost, one binned matrix a split, nothing else.

``python -m benchmarks.bare REPEATS dense|sparse`` is run as a process of its own.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import xgboost

PARAMETERS = {"objective": "binary:logistic", "max_depth": 6, "tree_method": "hist", "nthread": 1}
ROUNDS, MEMBERS = 10, 10


def bag_on_one_matrix(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
    """Fit a bag by integer weights on one binned matrix and predict the test rows."""
    draw = np.random.default_rng(seed)
    matrix = xgboost.QuantileDMatrix(X[train], y[train], nthread=1)
    held_out, n = X[test], len(train)
    predictions = []
    for _ in range(MEMBERS):
        matrix.set_weight(np.bincount(draw.integers(n, size=n), minlength=n))
        booster = xgboost.train(PARAMETERS, matrix, ROUNDS)
        predictions.append(booster.inplace_predict(held_out))
    return np.column_stack(predictions)


def bag_on_copies(X: Any, y: Any, train: Any, test: Any, seed: int) -> Any:
    """Fit a bag on resampled copies of the rows, as is usual."""
    draw = np.random.default_rng(seed)
    predictions = []
    for _ in range(MEMBERS):
        rows = train[draw.integers(len(train), size=len(train))]
        model = xgboost.XGBClassifier(n_estimators=ROUNDS, max_depth=6, n_jobs=1)
        predictions.append(model.fit(X[rows], y[rows]).predict_proba(X[test])[:, 1])
    return np.column_stack(predictions)


def main(repeats: int, matrix: str) -> None:
    """Fit `repeats` bags on splits of Adult, on its one-hot matrix as it is usually made."""
    from benchmarks.measure import adult
    from fairbench.data.encoding import onehot, sparse_onehot

    data, _ = adult()
    make = {"dense": onehot, "sparse": sparse_onehot}[matrix]
    X, y = make(data.features), data.target.to_numpy()
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        cut = round(0.8 * len(y))
        bag_on_one_matrix(X, y, np.sort(order[:cut]), np.sort(order[cut:]), seed)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
