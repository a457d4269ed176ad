"""The fits of one repeat of FairlyUncertain's Tables 1 and 2 in plain XGBoost, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xgboost

from fairbench.components.algorithms.losses import NormalLoss
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import Loss

ROUNDS, MEMBERS = 10, 10
Arrays = tuple[Any, Any, Any, Any]  # features and labels to fit, features and labels held out


def shared(data: Arrays, task: Task, depths: Sequence[int]) -> None:
    """Fit on one binned matrix; a bootstrap is a weight, drawn once for all methods and depths."""
    X, y, held_out, _ = data
    matrix = xgboost.QuantileDMatrix(X, y, nthread=1)
    draw = np.random.default_rng(0)
    weights = [np.bincount(draw.integers(len(y), size=len(y)), minlength=len(y)) for _ in range(10)]
    for depth in depths:
        for weight in [*weights, *([np.ones(len(y))] if task is Task.BINARY else [])]:
            matrix.set_weight(weight)
            booster = xgboost.train({**_builtin(task), "max_depth": depth}, matrix, ROUNDS)
            booster.inplace_predict(held_out)
        if task is Task.REGRESSION:
            matrix.set_weight(np.ones(len(y)))
            for loss in (NormalLoss(), NormalLoss("beta_nll"), NormalLoss("faithful_nll")):
                _custom(matrix, held_out, y, loss, depth)


def as_published(data: Arrays, task: Task, depths: Sequence[int]) -> None:
    """Fit as the reference implementation does: resampled copies, for every method again."""
    X, y, held_out, _ = data
    draw = np.random.default_rng(0)
    make: Callable[..., Any] = (
        xgboost.XGBClassifier if task is Task.BINARY else xgboost.XGBRegressor
    )
    for depth in depths:
        for _ in range(3 if task is Task.BINARY else 1):
            for _ in range(MEMBERS):
                rows = draw.integers(len(y), size=len(y))
                model = make(n_estimators=ROUNDS, max_depth=depth, n_jobs=1).fit(X[rows], y[rows])
                _predict(model, held_out, task)
        if task is Task.BINARY:
            model = make(n_estimators=ROUNDS, max_depth=depth, n_jobs=1).fit(X, y)
            _predict(model, held_out, task)
        else:
            matrix = xgboost.QuantileDMatrix(X, y, nthread=1)
            for loss in (
                NormalLoss("normal_nll_reference"),
                NormalLoss("beta_nll_reference"),
                NormalLoss("faithful_nll_reference"),
            ):
                _custom(matrix, held_out, y, loss, depth)


def _predict(model: Any, X: Any, task: Task) -> Any:
    return model.predict_proba(X) if task is Task.BINARY else model.predict(X)


def _builtin(task: Task) -> dict[str, Any]:
    objective = "binary:logistic" if task is Task.BINARY else "reg:squarederror"
    return {"objective": objective, "nthread": 1}


def _custom(matrix: Any, held_out: Any, y: Any, loss: Loss, depth: int) -> None:
    def objective(raw: Any, _: Any) -> Any:
        scores = raw.reshape(-1, 2).astype(float)
        gradient, curvature = loss.gradient(y, scores), loss.curvature(y, scores)
        return gradient.astype(np.float32), curvature.astype(np.float32)

    strategy = "multi_output_tree" if loss.vector_leaves else "one_output_per_tree"
    parameters = {
        "num_target": 2,
        "base_score": loss.initial(y).tolist(),
        "multi_strategy": strategy,
        "max_depth": depth,
        "nthread": 1,
        "disable_default_eval_metric": True,
    }
    xgboost.train(parameters, matrix, ROUNDS, obj=objective).inplace_predict(held_out)
