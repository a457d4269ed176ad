"""XGBoost for any loss; features are binned once, however many models are fitted to them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.components.algorithms.estimators.linked import LinkedEstimator, link
from fairbench.core.errors import UserError
from fairbench.data.features import Frame, Unit
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]
Watch = Callable[[int, Array], bool]

# A gradient and a curvature in double precision; the size of a processor's cache.
_BYTES_A_BIN, _CACHE, _LEAST_NODES = 16, 2**24, 128
_OBJECTIVES = {"binomial": "binary:logistic", "squared_error": "reg:squarederror"}


class XGBoostEstimator(LinkedEstimator):
    """A scikit-learn style estimator over XGBoost on a shared QuantileDMatrix.

    Unlike XGBClassifier it bins a frame once, however often it is fitted with other labels or
    weights, minimises any loss of raw scores, and returns float64.
    """

    def __init__(
        self, loss: Loss, rounds: int, max_bin: int, parameters: dict[str, Any], seed: int
    ) -> None:
        self.loss = loss
        self.rounds = rounds
        self.max_bin = max_bin
        self.parameters = parameters
        self.seed = seed

    def fit(self, X: Frame, y: Array, sample_weight: Array | None = None) -> XGBoostEstimator:
        """Fit to labels or values `y`; `sample_weight` of whole numbers repeats rows."""
        self.classes_ = np.arange(self.loss.classes or 2)
        self.unit_ = unit_of(self.loss, self.parameters, y, sample_weight)
        matrix, labels = binned(X, self.max_bin), self.unit_.standard(y)
        grow = _grow_builtin if self.loss.name in _OBJECTIVES else grow_custom
        self.booster_ = grow(
            self.train_parameters, matrix, self.loss, self.rounds, labels, sample_weight
        )
        return self

    @property
    def train_parameters(self) -> dict[str, Any]:
        """What XGBoost is told besides the objective.

        Raises
        ------
        UserError : a device that this machine does not have.
        """
        _check_device(str(self.parameters.get("device", "cpu")))
        fixed = {"tree_method": "hist", "max_bin": self.max_bin, "nthread": 1, "seed": self.seed}
        return {**self.parameters, **fixed}

    def linked(self, X: Frame) -> Array:
        """Return what the trees give: XGBoost links the scores of its own objectives itself."""
        output = np.asarray(self.booster_.inplace_predict(X), np.float64)
        if self.loss.name in _OBJECTIVES:
            return self.unit_.mean(output)[:, None]
        return link(output.reshape(-1, self.loss.outputs), self.loss, self.unit_)


def unit_of(loss: Loss, parameters: Mapping[str, Any], y: Array, weight: Array | None) -> Unit:
    """Return the unit to fit in.

    XGBoost adds its penalties to curvatures, whatever their unit. Where these have none, it splits
    no leaf for a gain under 1e-6, whatever the unit. A penalty on gains or on absolute values that
    is given is in the target's own unit, and the reference's losses are fitted as they are.
    """
    if loss.curvature_has_unit:
        return Unit.of(y, weight)
    given = any(parameters.get(name) for name in ("gamma", "reg_alpha"))
    return Unit() if given or loss.vector_leaves else Unit.of_target(y, weight)


def _grow_builtin(
    parameters: dict[str, Any], matrix: Any, loss: Loss, rounds: int, y: Array, weight: Array | None
) -> Any:
    """Grow trees by XGBoost's own objective, from the mean of the labels."""
    import xgboost

    matrix.set_label(y)
    matrix.set_weight(np.ones(len(y)) if weight is None else weight)
    parameters = {**parameters, **_histogram_cache(matrix), "objective": _OBJECTIVES[loss.name]}
    if loss.name == "squared_error":
        parameters["base_score"] = loss.initial(y, weight).tolist()
    return xgboost.train(parameters, matrix, num_boost_round=rounds)


def grow_custom(
    parameters: dict[str, Any],
    matrix: Any,
    loss: Loss,
    rounds: int,
    y: Array,
    weight: Array | None,
    watch: Watch = lambda done, raw: False,
) -> Any:
    """Grow trees by the gradient and curvature of `loss`, from its constant start.

    `watch` sees how many rounds are done and the raw scores of all rows, those of weight 0 too,
    before each round, and stops it by returning True.
    """
    import xgboost

    labels = y.astype(np.float32).astype(np.float64)
    weights = None if weight is None else weight[:, None]
    settings = {
        **parameters,
        **_histogram_cache(matrix),
        "num_target": loss.outputs,
        "base_score": loss.initial(y, weight).tolist(),
        "disable_default_eval_metric": True,
    }
    if loss.vector_leaves:
        settings["multi_strategy"] = "multi_output_tree"
    booster = xgboost.Booster(settings, [matrix])
    for done in range(rounds):
        raw = _margins(booster, matrix, loss.outputs)
        if watch(done, raw):
            break
        gradient, curvature = loss.gradient(labels, raw), loss.curvature(labels, raw)
        if weights is not None:
            gradient, curvature = gradient * weights, curvature * weights
        booster.boost(matrix, done, grad=_single(gradient), hess=_single(curvature))
    return booster


def _margins(booster: Any, matrix: Any, outputs: int) -> Array:
    margins = booster.predict(matrix, output_margin=True, training=True)
    return np.asarray(margins, np.float64).reshape(-1, outputs)


def _single(values: Array) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


@lru_cache(maxsize=1)
def _histogram_cache(matrix: Any) -> dict[str, int]:
    """Keep the histograms of a tree's nodes within what a processor's cache holds.

    XGBoost keeps 65,536 nodes by default, and on 100 columns of 100 values spends a quarter of a
    deep tree's time on fetching memory. The trees are the same.
    """
    bins = max(int(matrix.get_quantile_cut()[0][-1]), 1)
    return {"max_cached_hist_node": max(_LEAST_NODES, _CACHE // (_BYTES_A_BIN * bins))}


def _check_device(device: str) -> None:
    """Refuse a GPU where XGBoost finds none: it would take the processor after a warning."""
    if device == "cpu":
        return
    import xgboost

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rows = xgboost.DMatrix(np.zeros((1, 1)), np.zeros(1))
        booster = xgboost.train({"device": device}, rows, num_boost_round=1)
    found = json.loads(booster.save_config())
    if found["learner"]["generic_param"]["device"] == "cpu":
        raise UserError(
            f"learner.device={device}, but XGBoost finds no GPU here: use learner.device=cpu"
        )


_shared: tuple[Any, int, Any] | None = None


def binned(X: Frame, max_bin: int) -> Any:
    """Return the binned matrix of `X`, kept for the last frame seen (by identity, one process).

    The strong reference to the frame keeps its identity from being given to another.
    """
    import xgboost

    global _shared
    if _shared is None or _shared[0] is not X or _shared[1] != max_bin:
        matrix = xgboost.QuantileDMatrix(X, max_bin=max_bin, nthread=1, enable_categorical=True)
        _shared = (X, max_bin, matrix)
    return _shared[2]
