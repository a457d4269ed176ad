"""The reductions on one binned frame against fairlearn around a plain XGBClassifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fairlearn.reductions
import numpy as np
import xgboost
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.measure import cpu_of, german, show
from fairbench.components.algorithms.interventions.exponentiated_gradient import (
    ExponentiatedGradient,
)
from fairbench.components.algorithms.interventions.grid_search import GridSearch
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import Binomial
from fairbench.data.dataset import Dataset
from fairbench.data.encoding import onehot, sparse_onehot

Labels = Callable[[], NDArray[np.bool_]]
REPEATS = 5
PARITIES = {
    "demographic_parity": fairlearn.reductions.DemographicParity,
    "equalized_odds": fairlearn.reductions.EqualizedOdds,
}
REDUCTIONS = {
    "exponentiated_gradient": (ExponentiatedGradient, fairlearn.reductions.ExponentiatedGradient),
    "grid_search": (GridSearch, fairlearn.reductions.GridSearch),
}
# As many bins as rows: with fewer, fairlearn's estimator places them anew by each refit's weights,
# which is another model.
MAX_BIN = 1024


def main() -> None:
    data, name = german()
    cases = [
        (rounds, reduction, constraints)
        for rounds in (10, 100)
        for reduction in REDUCTIONS
        for constraints in PARITIES
    ]
    with threadpool_limits(1):
        rows = [_case(data, *case) for case in cases]
    header = (
        "rounds, reduction, constraints",
        "ours, s",
        "fairlearn, s",
        "ratio",
        "least",
        "equal",
    )
    title = f"reductions, CPU ({name}, {REPEATS} splits; medians; target: ratio at most 0.72)"
    show(title, header, rows)


def _case(data: Dataset, rounds: int, reduction: str, constraints: str) -> tuple[object, ...]:
    mine, theirs = REDUCTIONS[reduction]
    learner = XGBoost(rounds=rounds, max_bin=MAX_BIN)
    plain = xgboost.XGBClassifier(n_estimators=rounds, max_depth=6, max_bin=MAX_BIN, n_jobs=1)
    costs: list[list[float]] = []
    equal = True
    for seed in range(REPEATS):
        model = mine(constraints).wrap(learner.estimator(Binomial(), seed), seed)
        direct = theirs(plain, PARITIES[constraints]())
        calls = (_ours(data, model, seed), _fairlearn(data, direct, seed))
        labels: list[NDArray[np.bool_]] = []
        costs.append([_cpu_and_labels(call, labels) for call in calls])
        equal &= np.array_equal(labels[0], labels[1])
    ratios = [ours / fairlearns for ours, fairlearns in costs]
    medians = [float(each) for each in np.median(costs, axis=0)]
    label = f"{rounds}, {reduction}, {constraints}"
    return label, *medians, float(np.median(ratios)), min(ratios), "yes" if equal else "no"


def _cpu_and_labels(call: Labels, labels: list[NDArray[np.bool_]]) -> float:
    return cpu_of(lambda: labels.append(call()))


def _ours(data: Dataset, model: Any, seed: int) -> Labels:
    X, (train, test), (y, groups) = sparse_onehot(data.features), _split(data, seed), _labels(data)

    def call() -> NDArray[np.bool_]:
        model.fit(X[train], y[train], sensitive_features=groups.iloc[train])
        of_test = {"sensitive_features": groups.iloc[test], "random_state": seed}
        (outputs,) = model.outputs(X[test], **of_test).values()
        return np.asarray(outputs > 0.5)

    return call


def _fairlearn(data: Dataset, reduction: Any, seed: int) -> Labels:
    X, (train, test), (y, groups) = onehot(data.features), _split(data, seed), _labels(data)
    drawn = hasattr(reduction, "eps")

    def call() -> NDArray[np.bool_]:
        reduction.fit(X[train], y[train], sensitive_features=groups.iloc[train].astype(str))
        drawing = {"random_state": seed} if drawn else {}
        return np.asarray(reduction.predict(X[test], **drawing) > 0.5)

    return call


def _split(data: Dataset, seed: int) -> list[NDArray[np.intp]]:
    n = len(data.target)
    parts = np.split(np.random.default_rng(seed).permutation(n), [round(0.8 * n)])
    return [np.sort(part) for part in parts]


def _labels(data: Dataset) -> tuple[NDArray[np.float64], Any]:
    return data.target.to_numpy(np.float64), data.sensitive.iloc[:, 0]
