"""A Bayesian network of COMPAS's size: 10 samples of 100 units, trained until it stops."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.measure import cpu_of, show
from fairbench.components.algorithms.learners.bayesian_nn import BayesianNN
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.seeds import rng

ROWS, FEATURES, TARGET = 4934, 406, 20.0


def main() -> None:
    X, y = like_compas()
    rows = []
    for hidden in ((), (25,), (100,)):
        estimator = BayesianNN(hidden=hidden).estimator(Binomial(), 0)
        seconds = cpu_of(partial(estimator.fit, X, y))
        rows.append((f"{hidden[0] if hidden else 'no'} hidden units", seconds))
    title = f"Bayes by Backprop, {ROWS} rows x {FEATURES} features, CPU (target: {TARGET:.0f} s)"
    show(title, ("", "fit, s"), rows)


def like_compas() -> tuple[np.ndarray, np.ndarray]:
    """Return rows as many and as wide as COMPAS's: a few numbers, many rare categories."""
    draw = rng(0, "benchmark", "bayesian_nn")
    rare = (draw.random((ROWS, FEATURES - 6)) < draw.beta(0.3, 30, FEATURES - 6)).astype(float)
    X = np.column_stack([draw.normal(size=(ROWS, 6)), rare])
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    y = (draw.random(ROWS) < 1 / (1 + np.exp(-0.7 * X[:, 0] + 0.4 * X[:, 1]))).astype(float)
    return X, y
