"""FairlyUncertain's way to its Tables 1 and 2: its loops, calls and defaults, written anew.

After its code (github.com/rtealwitter/fairlyuncertain at db62bf2: ``get_consistency_data``,
``get_consistency_table``, ``get_nll``, its methods and their ``Model``). Each method draws bags of
its own at every depth and copies their rows; a model is one of XGBoost's scikit-learn wrappers, or
``xgboost.train`` with vector leaves and an objective in NumPy; a p-value is computed for each row.
The deviations are written to a file as text and read back; that is JSON here, which is faster than
the literals of Python there. Table 1 is taken from the fits at depth 6, which are not made again
for it as they are there.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[Any]
ROUNDS, MEMBERS = 10, 10


@dataclass(frozen=True, eq=False)
class Instance:
    """One split: the rows that are fitted, and those that are predicted.

    Attributes
    ----------
    X, held_out : (n, d), (m, d). y, true : (n,), (m,).
    """

    X: Array
    y: Array
    held_out: Array
    true: Array


Method = Callable[[Instance, int], tuple[Array, Array]]


def tables(
    split: Instance, depths: Sequence[int], methods: Mapping[str, Method], file: Path
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Fit each method at each depth; return how far its deviations move, and its mean NLLs.

    Parameters
    ----------
    file : where the deviations are kept.
    """
    nll = _binary_nll if methods is BINARY else _normal_nll
    scores: dict[str, list[float]] = {name: [] for name in methods}
    for depth in depths:
        deviations = {}
        for name, method in methods.items():
            predicted, deviation = method(split, depth)
            scores[name].append(float(nll(predicted, deviation, split.true).mean()))
            deviations[name] = deviation.tolist()
        with file.open("a") as lines:
            lines.write(json.dumps(deviations) + "\n")
    read = [json.loads(line) for line in file.read_text().splitlines()]
    moved = {name: float(np.std([each[name] for each in read], axis=0).max()) for name in methods}
    return moved, scores


def _bag(wrapper: Any, split: Instance, depth: int) -> list[Any]:
    draw, n = np.random.default_rng(depth), len(split.X)
    models = []
    for _ in range(MEMBERS):
        rows = draw.choice(n, n, replace=True)
        model = wrapper(max_depth=depth, n_estimators=ROUNDS)
        models.append(model.fit(split.X[rows], split.y[rows]))
    return models


def _ensemble(wrapper: Any, split: Instance, depth: int) -> tuple[Array, Array]:
    models = _bag(wrapper, split, depth)
    if wrapper is xgboost.XGBClassifier:
        outputs = np.array([model.predict_proba(split.held_out)[:, 1] for model in models]).T
    else:
        outputs = np.array([model.predict(split.held_out) for model in models]).T
    return np.mean(outputs, axis=1), np.std(outputs, axis=1)


def _votes(split: Instance, depth: int) -> Array:
    models = _bag(xgboost.XGBClassifier, split, depth)
    return np.array([model.predict(split.held_out) for model in models])


def _selective_ensemble(split: Instance, depth: int) -> tuple[Array, Array]:
    votes = _votes(split, depth)
    ones = np.sum(votes == 1, axis=0)
    p_values = [stats.binomtest(one, MEMBERS, p=0.5).pvalue for one in ones]
    return stats.mode(votes, axis=0)[0].squeeze(), np.array(p_values)


def _self_consistency(split: Instance, depth: int) -> tuple[Array, Array]:
    votes = _votes(split, depth)
    ones = np.sum(votes, axis=0)
    apart = 2 * (MEMBERS - ones) * ones / (MEMBERS * (MEMBERS - 1))
    return stats.mode(votes, axis=0)[0].squeeze(), apart


def _binomial_nll(split: Instance, depth: int) -> tuple[Array, Array]:
    model = xgboost.XGBClassifier(max_depth=depth, n_estimators=ROUNDS).fit(split.X, split.y)
    p = model.predict_proba(split.held_out)[:, 1]
    return model.predict(split.held_out), np.sqrt(p * (1 - p))


def _two_outputs(loss: str, split: Instance, depth: int) -> tuple[Array, Array]:
    def objective(raw: Array, matrix: Any) -> tuple[Array, Array]:
        mean, sd = raw[:, 0], raw[:, 1]
        error = mean - matrix.get_label().reshape(-1, 2)[:, 0]
        gradient = [error / sd**2, -(error**2) / sd**3 + 2 * sd]
        curvature = [1 / sd**2, 3 * error**2 / sd**4 + 2]
        if loss == "beta":
            gradient, curvature = ([each * sd for each in part] for part in (gradient, curvature))
        if loss == "faithful":
            gradient[0], curvature[0] = error, np.ones_like(error)
        of_both = [np.column_stack(part).reshape(-1, 1) for part in (gradient, curvature)]
        return of_both[0], of_both[1]

    matrix = xgboost.DMatrix(split.X, label=np.column_stack([split.y, np.zeros_like(split.y)]))
    parameters = {
        "tree_method": "hist",
        "max_depth": depth,
        "disable_default_eval_metric": True,
        "multi_strategy": "multi_output_tree",
    }
    # A deviation may be 0 or less, and the shape of what the objective returns is an old one.
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        booster = xgboost.train(parameters, matrix, num_boost_round=ROUNDS, obj=objective)
    outputs = booster.predict(xgboost.DMatrix(split.held_out)).squeeze()
    return outputs[:, 0], outputs[:, 1]


BINARY: Mapping[str, Method] = {
    "ensemble": partial(_ensemble, xgboost.XGBClassifier),
    "selective_ensemble": _selective_ensemble,
    "self_consistency": _self_consistency,
    "binomial_nll": _binomial_nll,
}
REGRESSION: Mapping[str, Method] = {
    "ensemble": partial(_ensemble, xgboost.XGBRegressor),
    "normal_nll": partial(_two_outputs, "normal"),
    "beta_nll": partial(_two_outputs, "beta"),
    "faithful_nll": partial(_two_outputs, "faithful"),
}


def _binary_nll(predicted: Array, deviation: Array, true: Array) -> Array:
    root = np.sqrt(1 - 4 * np.clip(deviation, 0, 0.5) ** 2)
    p = np.clip(np.where(predicted > 0.5, (1 + root) / 2, (1 - root) / 2), 0.001, 0.999)
    return -(np.log(p) * true + np.log(1 - p) * (1 - true))


def _normal_nll(predicted: Array, deviation: Array, true: Array) -> Array:
    with np.errstate(all="ignore"):
        log_sd = np.log(deviation * np.sqrt(2 * np.pi))
        return log_sd + (true - predicted) ** 2 / (2 * deviation**2)
