"""Intervals and label sets that cover with a stated probability, for everyone or in each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from algorithms.fitters import conformal
from algorithms.methods.baseline import point_predictions
from fairbench.core.errors import UserError, check_share
from fairbench.data.dataset import Task
from fairbench.experiments.contracts import Capabilities, Method, RawOutputs


@dataclass(frozen=True)
class Conformal(Method):
    """Split conformal prediction; the calibration rows are a share of the training rows.

    With `per_group` the radii are those of a row's own group (Mondrian): they cover in each group,
    and are infinite in one with too few calibration rows. With `scaled`, values get intervals
    proportional to the sd of a Normal NLL model in place of one width for all.
    """

    levels: Sequence[float] = (0.5, 0.8, 0.9, 0.95)
    calibration: float = 0.25
    per_group: bool = False
    scaled: bool = False

    capabilities = Capabilities(reads_score=True)

    def __post_init__(self) -> None:
        """Refuse levels that are not whole percents, and shares that are not shares."""
        check_share("method.calibration", self.calibration)
        for level in self.levels:
            check_share("method.levels", level)
            if abs(100 * level - round(100 * level)) > 1e-9:
                raise UserError(f"method.levels has {level}; levels are whole percents")

    @property
    def fitter(self) -> conformal.Conformal:
        """One cell holds both kinds of radii."""
        return conformal.Conformal(tuple(self.levels), self.calibration, self.scaled)

    def read(self, raw: RawOutputs, task: Task, rng: np.random.Generator) -> RawOutputs:
        """Return predictions with an interval, or a set of labels, for each level."""
        radius = raw["group_radius" if self.per_group else "radius"]
        names = [f"{round(100 * level)}" for level in self.levels]
        radii = dict(zip(names, radius.T, strict=True))
        return _sets(raw, radii) if task is Task.BINARY else _intervals(raw, radii)


def _sets(raw: RawOutputs, radii: RawOutputs) -> RawOutputs:
    p = raw["score"]
    columns = {**point_predictions(raw), "uncertainty": np.sqrt(p * (1 - p))}
    for name, radius in radii.items():
        columns |= {f"set_0_{name}": p <= radius, f"set_1_{name}": 1 - p <= radius}
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
