"""Evaluating predictions: a test set of Adult's size, fifty groups, and a few rows."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import numpy as np

import fairbench
from benchmarks.measure import cpu_of, show

CALLS = 15
# Rows, each attribute with the shares of its groups, and the most CPU seconds that it may take.
CASES: dict[str, tuple[int, dict[str, list[float]], float]] = {
    "Adult's size, 3 attributes and their pairs": (
        9044,
        {"sex": [0.5, 0.5], "race": [0.8, 0.1, 0.05, 0.03, 0.02], "age": [1 / 3] * 3},
        0.2,
    ),
    "one attribute of 50 groups": (10_000, {"group": [1 / 50] * 50}, 0.2),
    "60 rows, 2 groups": (60, {"group": [0.5, 0.5]}, 0.065),
}


def main() -> None:
    rows = []
    for name, (n, attributes, target) in CASES.items():
        call = partial(fairbench.evaluate, **_predictions(n, attributes))
        lines = len(call())  # what is made once is made here
        seconds = median(cpu_of(call) for _ in range(CALLS))
        rows.append((name, n, lines, seconds, target))
    header = ("", "rows", "lines", "CPU s", "target")
    show("fairbench.evaluate, all metrics, a call", header, rows)


def _predictions(n: int, attributes: dict[str, list[float]]) -> dict[str, Any]:
    """Return calibrated scores of `n` rows, in groups at random."""
    draw = np.random.default_rng(0)
    score = draw.beta(1, 3, n)
    return {
        "target": (draw.random(n) < score).astype(int),
        "prediction": (score > 0.5).astype(int),
        "score": score,
        "uncertainty": np.minimum(score, 1 - score),
        "sensitive_features": {
            name: np.array([f"{name}{g:02}" for g in range(len(shares))])[
                draw.choice(len(shares), n, p=shares)
            ]
            for name, shares in attributes.items()
        },
    }
