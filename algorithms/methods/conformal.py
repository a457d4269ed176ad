"""Intervals and label sets that cover with a stated probability: everyone, or every group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairbench.components.algorithms.fitters import conformal
from fairbench.components.algorithms.methods.baseline import label_sd, point_predictions
from fairbench.core.errors import UserError, check_choice, check_minimum, check_share
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Method, RawOutputs

# Whom a guarantee is about, and the raw output with its radii.
_RADIUS = {"marginal": "radius", "group": "group_radius", "overlapping": "overlapping_radius"}

_SLACK = 1e-6  # probabilities are stored in 32 bits, and many trees' are equal to a radius


@dataclass(frozen=True)
class Conformal(Method):
    """Split conformal prediction; the calibration rows are a share of the training rows.

    The promised share of true values is covered on average over calibration rows:

    - ``marginal``: of everyone, whatever becomes of single groups;
    - ``group``: in each protected group, each combination of attributes being a group (equalized
      coverage; Romano, Barber, Sabatti, Candès 2020). Intervals are infinite in a group with too
      few calibration rows, and sets hold every label;
    - ``overlapping``: in each group of each protected attribute and in each of their combinations
      that has `smallest` rows or more; smaller ones borrow from their attributes' groups (Gibbs,
      Cherian, Candès 2025). Of one attribute it is the same as ``group``.

    With `scaled`, values get intervals proportional to the sd of a Normal NLL model in place of
    one width for all.
    """

    levels: Sequence[float] = (0.5, 0.8, 0.9, 0.95)
    calibration: float = 0.25
    guarantee: str = "marginal"
    smallest: int = 200
    scaled: bool = False

    capabilities = Capabilities(tasks=ANY_TASK, packages=("scipy",), reads_score=True)

    def __post_init__(self) -> None:
        """Refuse levels that are not whole percents, shares that are not shares, unknown names."""
        check_choice("method.guarantee", self.guarantee, _RADIUS)
        check_minimum("method.smallest", self.smallest, 1)
        check_share("method.calibration", self.calibration)
        for level in self.levels:
            check_share("method.levels", level)
            if abs(100 * level - round(100 * level)) > 1e-9:
                raise UserError(f"method.levels has {level}; levels are whole percents")

    @property
    def fitter(self) -> conformal.Conformal:
        """One cell holds the radii of all guarantees."""
        return conformal.Conformal(tuple(self.levels), self.calibration, self.scaled, self.smallest)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return predictions with an interval, or a set of labels, for each level."""
        radius = raw[_RADIUS[self.guarantee]]
        names = [f"{round(100 * level)}" for level in self.levels]
        radii = dict(zip(names, radius.T, strict=True))
        return _intervals(raw, radii) if task is Task.REGRESSION else _sets(raw, radii)


def _sets(raw: RawOutputs, radii: RawOutputs) -> RawOutputs:
    """Return for each class whether it is in a row's set: whether it is not too improbable."""
    score = raw["score"]
    p = score if score.ndim > 1 else np.column_stack([1 - score, score])
    columns = {**point_predictions(raw), "uncertainty": label_sd(p)}
    for name, radius in radii.items():
        columns |= {f"set_{k}_{name}": 1 - p[:, k] <= radius + _SLACK for k in range(p.shape[1])}
    return columns


def _intervals(raw: RawOutputs, radii: RawOutputs) -> RawOutputs:
    mean, sd = raw["mean"], raw.get("sd")
    columns = point_predictions(raw)
    if sd is not None:
        columns["uncertainty"] = sd
    for name, radius in radii.items():
        half = radius if sd is None else radius * sd
        columns |= {f"lower_{name}": mean - half, f"upper_{name}": mean + half}
    return columns
