"""A model fitted to some training rows; its errors on the others give widths of intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from algorithms.fitters.held_out import fit_without, predict_rows
from algorithms.losses import default_loss, distribution_loss
from fairbench.core.seeds import integer_seed
from fairbench.data.dataset import Task
from fairbench.data.encoding import Frame
from fairbench.experiments.contracts import (
    Capabilities,
    Fitter,
    Loss,
    MakeModel,
    Model,
    RawOutputs,
    TrainingSet,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Conformal(Fitter):
    """Split conformal prediction: held-out rows say how wide intervals must be (their radius).

    A share `calibration` of the training rows is held out.

    The score of a row is its absolute residual, over the model's own sd with `scaled`, or one
    minus the probability of its label. With n scores the radius at a level is the
    ceil((n + 1) level)-th smallest, infinite where there is none.
    """

    levels: Sequence[float]
    calibration: float
    scaled: bool

    capabilities = Capabilities(reads_groups=True)

    def loss(self, task: Task) -> Loss:
        """Return the likelihood of label or scaled value, or squared error."""
        return distribution_loss(task) if self.scaled else default_loss(task)

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Fit the model, and take the radii of all held-out rows and of those of each group."""
        rows = _calibration_rows(train, self.calibration, rng)
        model = fit_without(rows, make_model, train, rng)
        scores = _scores(predict_rows(model, train, rows, rng), train.y[rows])
        groups = train.sensitive.iloc[rows].astype(str).to_numpy()
        return Fitted(
            model,
            _radii(scores, self.levels),
            {group: _radii(scores[groups == group], self.levels) for group in np.unique(groups)},
        )


@dataclass(frozen=True)
class Fitted:
    """A model and its radii, one a level: everyone's, and each group's."""

    model: Model
    radii: Array
    group_radii: Mapping[str, Array]

    def outputs(self, X: Frame, sensitive: pd.Series, rng: np.random.Generator) -> RawOutputs:
        """Return the model's outputs, ``radius`` and ``group_radius`` (n, levels)."""
        seed = integer_seed(rng)
        raw = self.model.outputs(X, sensitive_features=sensitive, random_state=seed)
        unseen = np.full(len(self.radii), np.inf)
        by_group = [self.group_radii.get(group, unseen) for group in sensitive.astype(str)]
        radius = np.tile(self.radii, (len(by_group), 1))
        return {**raw, "radius": radius, "group_radius": np.array(by_group)}


def _calibration_rows(
    train: TrainingSet, share: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw the held-out rows, again where a class would be missing from the others."""
    n = len(train.y)
    held_out = min(max(round(share * n), 1), n - 1)
    classes = np.unique(train.y) if train.task is Task.BINARY else np.empty(0)
    while True:
        order = rng.permutation(n)
        if np.isin(classes, train.y[order[held_out:]]).all():
            return order[:held_out]


def _scores(raw: RawOutputs, y: Array) -> Array:
    if "score" in raw:
        return np.where(y == 1, 1 - raw["score"], raw["score"])
    scores: Array = np.abs(y - raw["mean"]) / raw.get("sd", 1.0)
    return scores


def _radii(scores: Array, levels: Sequence[float]) -> Array:
    """Return the smallest radius of each level that covers a further row with its probability."""
    ordered = np.append(np.sort(scores), np.inf)
    # The rounding keeps (n + 1) level from just passing a whole number it should be.
    ranks = np.ceil(np.round((len(scores) + 1) * np.asarray(levels), 9)).astype(int)
    radii: Array = ordered[np.minimum(ranks - 1, len(scores))]
    return radii
