"""XGBoost for any loss; features are binned once, however many models are fitted to them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from weakref import WeakSet

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.estimators.linked import LinkedEstimator, link
from fairbench.core.errors import UserError
from fairbench.data.features import Frame, Unit
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]
Watch = Callable[[int, Array], bool]

# A gradient and a curvature in double precision; the size of a processor's cache.
_BYTES_A_BIN, _CACHE, _LEAST_NODES = 16, 2**24, 128
# Fitted boosters that hold the memory they were grown in, at most the cache and some for each row.
_MOST_HOLDING, _FEW_ROWS = 8, 2**17
# Entries of the matrices of drawn rows, a few bytes each.
_MOST_ENTRIES = 2**24
# Where no row is drawn for a tree, and sums are taken in order, a row of weight 0 changes nothing.
_ALL_ROWS = {"subsample": 1.0, "device": "cpu"}
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
        labels, matrix = self.unit_.standard(y), binned(X, self.max_bin)
        settings = self.settings(matrix, labels, sample_weight)
        if sample_weight is not None and _ALL_ROWS.items() <= self.parameters.items():
            rows, matrix = drawn(X, self.max_bin, sample_weight)
            labels, sample_weight = labels[rows], sample_weight[rows]
        self.booster_ = grow(settings, matrix, self.loss, self.rounds, labels, sample_weight)
        return self

    def settings(self, matrix: Any, y: Array, weight: Array | None) -> dict[str, Any]:
        """Return what XGBoost is told to fit standard labels, besides the objective.

        Raises
        ------
        UserError : a device that this machine does not have.
        """
        _check_device(str(self.parameters.get("device", "cpu")))
        fixed = {"tree_method": "hist", "max_bin": self.max_bin, "nthread": 1, "seed": self.seed}
        start = {"base_score": self.loss.initial(y, weight).tolist()}
        return {**self.parameters, **fixed, **_histogram_cache(matrix), **start}

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


def grow(
    settings: dict[str, Any],
    matrix: Any,
    loss: Loss,
    rounds: int,
    y: Array,
    weight: Array | None,
    watch: Watch | None = None,
) -> Any:
    """Grow trees by XGBoost's own objective, or by the gradient and curvature of `loss`.

    `watch` sees how many rounds are done and the raw scores of all rows, those of weight 0 too,
    before each round, and stops it by returning True; of XGBoost's own objectives it sees nothing,
    so that what is watched is grown by the loss.

    A few boosters of not many rows keep the memory that they were grown in. To free it,
    XGBoost writes and reads the trees, which takes a twelfth of a fit to a thousand rows.
    """
    import xgboost

    own = None if watch else _OBJECTIVES.get(loss.name)
    if own:
        matrix.set_label(y)
        matrix.set_weight(np.ones(len(y)) if weight is None else weight)
        settings = {**settings, "objective": own}
        if loss.classes:
            del settings["base_score"]  # its own, of the labels
    else:
        settings = {**settings, "num_target": loss.outputs, "disable_default_eval_metric": True}
    if loss.vector_leaves:
        settings["multi_strategy"] = "multi_output_tree"
    booster, labels = xgboost.Booster(settings, [matrix]), y.astype(np.float32).astype(np.float64)
    for done in range(rounds):
        if own:
            booster.update(matrix, done)
            continue
        margins = booster.predict(matrix, output_margin=True, training=True)
        raw = np.asarray(margins, np.float64).reshape(-1, loss.outputs)
        if watch and watch(done, raw):
            break
        gradient, curvature = loss.gradient(labels, raw), loss.curvature(labels, raw)
        if weight is not None:
            gradient, curvature = gradient * weight[:, None], curvature * weight[:, None]
        booster.boost(matrix, done, grad=_single(gradient), hess=_single(curvature))
    narrow = settings["max_cached_hist_node"] > _LEAST_NODES
    if narrow and len(y) <= _FEW_ROWS and len(_holding) < _MOST_HOLDING:
        _holding.add(booster)
        return booster
    return booster.reset()


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


_holding: WeakSet[Any] = WeakSet()
_shared: tuple[Any, int, Any] | None = None
_drawn: dict[bytes, Any] = {}  # of the rows that were fitted of the frame last seen


def binned(X: Frame, max_bin: int) -> Any:
    """Return the binned matrix of `X`, kept for the last frame seen (by identity, one process).

    The strong reference to the frame keeps its identity from being given to another.
    """
    global _shared
    if _shared is None or _shared[0] is not X or _shared[1] != max_bin:
        _shared = (X, max_bin, _quantiles(X, max_bin))
        _drawn.clear()
    return _shared[2]


def drawn(X: Frame, max_bin: int, weight: Array) -> tuple[NDArray[np.intp] | slice, Any]:
    """Return the rows whose weight is not 0 and their matrix, in the bins of all rows.

    Trees are the same as on all rows, where those of weight 0 take as long as others. It costs as
    much as it saves in one fit: rows get a matrix of their own when they are fitted again, as those
    of a bootstrap are at another depth. Until then, all rows and their matrix are returned.
    """
    whole, kept = binned(X, max_bin), weight != 0
    key = kept.tobytes()
    if kept.all() or key not in _drawn:
        if (len(_drawn) + 1) * whole.num_nonmissing() <= _MOST_ENTRIES:
            _drawn[key] = None
        return slice(None), whole
    rows = np.flatnonzero(kept)
    if _drawn[key] is None:
        frame = X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]
        _drawn[key] = _quantiles(frame, max_bin, whole)
    return rows, _drawn[key]


def _quantiles(X: Frame, max_bin: int, ref: Any = None) -> Any:
    import xgboost

    return xgboost.QuantileDMatrix(X, max_bin=max_bin, ref=ref, nthread=1, enable_categorical=True)
