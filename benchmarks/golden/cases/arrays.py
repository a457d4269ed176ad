"""The arrays that ``fairbench.evaluate`` is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ROWS = 160
_NOTHING: dict[str, Any] = {}


@dataclass(frozen=True)
class ArrayCase:
    """One call of ``fairbench.evaluate``.

    Attributes
    ----------
    arguments : of the call, as plain lists and values.
    evaluator : the options of its evaluator.
    cause : words of the refusal, where it is refused.
    """

    name: str
    arguments: Mapping[str, Any]
    evaluator: Mapping[str, Any] = field(default_factory=dict)
    cause: tuple[str, ...] = ()


def _people() -> dict[str, Any]:
    """Return people of two attributes, their labels, and scores and decisions on them."""
    draw = np.random.default_rng(20)
    sex = draw.choice(["male", "female", ""], ROWS, p=[0.6, 0.37, 0.03])
    race = draw.choice(["white", "black"], ROWS, p=[0.6, 0.4])
    score = draw.beta(1.2, 1.5, ROWS).round(4)
    target = (draw.random(ROWS) < np.clip(score + 0.1 * (sex == "female"), 0, 1)).astype(int)
    return {
        "target": target.tolist(),
        "prediction": (score > 0.5).astype(int).tolist(),
        "score": score.tolist(),
        "uncertainty": np.sqrt(score * (1 - score)).round(4).tolist(),
        "sensitive_features": {"sex": sex.tolist(), "race": race.tolist()},
    }


def _values() -> dict[str, Any]:
    """Return a regression: values, predictions, and what is claimed of their spread."""
    draw = np.random.default_rng(21)
    group = draw.choice(["a", "b"], ROWS, p=[0.7, 0.3])
    mean, sd = draw.normal(0, 2, ROWS).round(4), draw.uniform(0.5, 2, ROWS).round(4)
    return {
        "target": (mean + sd * draw.normal(0, 1, ROWS)).round(4).tolist(),
        "prediction": mean.tolist(),
        "sd": sd.tolist(),
        "uncertainty": sd.tolist(),
        "aleatoric": (0.7 * sd**2).tolist(),
        "epistemic": (0.3 * sd**2).tolist(),
        "sensitive_features": {"group": group.tolist()},
        "task": "regression",
    }


PEOPLE, VALUES = _people(), _values()
# A spread below zero, which there is not.
IMPOSSIBLE = {**VALUES, "sd": [-1.0, *VALUES["sd"][1:]]}
BARE = {name: PEOPLE[name] for name in ("target", "prediction", "sensitive_features")}
FINER: dict[str, Any] = {
    "draws": 500, "alpha": 0.5, "level": 0.9, "epsilon": 0.1, "bins": 5, "spread_groups": [4, 8],
    "spread_residual": "label", "abstention_rates": [0.0, 0.2], "choose_on": "test",
    "neighbours": 3, "minimum_group_size": 5, "intersections": 1,
}  # fmt: skip
TINY = {"target": [0, 1, 1, 0], "prediction": [0, 1, 0, 0], "sensitive_features": list("aabb")}

ARRAYS = (
    ArrayCase("people", PEOPLE, {"bins": 6, "spread_groups": [3]}),
    ArrayCase("labels alone", BARE, {"intersections": 1}),
    ArrayCase("finer", {**PEOPLE, "privileged": {"race": "white"}, "seed": 3}, FINER),
    ArrayCase("values", VALUES, {"spread_groups": [4], "coverage_levels": [0.5, 0.9]}),
    ArrayCase("impossible values", IMPOSSIBLE, cause=("sd", "1 of 160")),
    ArrayCase("four people", TINY),
    ArrayCase("one label", {**TINY, "target": [1, 1, 1, 1], "score": [0.5, 1.0, 0.0, 0.2]}),
    ArrayCase("third label", {**TINY, "target": [0, 1, 2, 0]}, cause=("target", "2", "row 2")),
    ArrayCase("too few", {**TINY, "score": [0.5]}, cause=("score", "1", "4")),
    ArrayCase("no such reference", {**TINY, "privileged": {"gruop": "a"}},
              cause=("gruop", "group")),
    ArrayCase("no such residual", TINY, {"spread_residual": "labels"}, cause=("spread_residual",)),
)  # fmt: skip
