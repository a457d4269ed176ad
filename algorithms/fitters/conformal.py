"""A model fitted to some training rows; its errors on the others give widths of intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.fitters.conditional_quantiles import covering_threshold
from fairbench.components.algorithms.fitters.held_out import fit_without, predict_rows
from fairbench.components.algorithms.losses import default_loss, distribution_loss
from fairbench.components.algorithms.overlapping_groups import OverlappingGroups
from fairbench.core.arrays import integer_seed
from fairbench.data.dataset import Task
from fairbench.data.features import Frame
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
    ceil((n + 1) level)-th smallest, infinite where there is none. Overlapping groups are those of
    each protected attribute, and their combinations of at least `smallest` rows that were fitted.
    """

    levels: Sequence[float]
    calibration: float
    scaled: bool
    smallest: int = 200

    capabilities = Capabilities(reads_groups=True, group_at_prediction=True)

    def loss(self, task: Task, classes: int = 2) -> Loss:
        """Return the likelihood of label or scaled value, or squared error."""
        return distribution_loss(task, classes) if self.scaled else default_loss(task, classes)

    def fit(self, make_model: MakeModel, train: TrainingSet, rng: np.random.Generator) -> Fitted:
        """Fit the model, and score the rows held out."""
        rows = _calibration_rows(train, self.calibration, rng)
        model = fit_without(rows, make_model, train, rng)
        scores = _scores(predict_rows(model, train, rows, rng), train.y[rows])
        groups = train.sensitive.iloc[rows].astype(str).to_numpy()
        cells = {str(group): np.sort(scores[groups == group]) for group in np.unique(groups)}
        fitted = np.delete(np.arange(len(train.y)), rows)
        overlapping = OverlappingGroups.of(train.sensitive.iloc[fitted], smallest=self.smallest)
        return Fitted(model, tuple(self.levels), np.sort(scores), cells, overlapping)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model with the sorted scores of the rows held out, everyone's and each group's."""

    model: Model
    levels: tuple[float, ...]
    scores: Array
    cells: Mapping[str, Array]
    overlapping: OverlappingGroups

    def outputs(self, X: Frame, sensitive: pd.Series, rng: np.random.Generator) -> RawOutputs:
        """Return the model's outputs with its radii, (n, levels) each.

        ``radius`` covers everyone, ``group_radius`` each group, ``overlapping_radius`` each group
        of each attribute.
        """
        seed = integer_seed(rng)
        raw = self.model.outputs(X, sensitive_features=sensitive, random_state=seed)
        code, labels = pd.factorize(sensitive.astype(str))
        names = [str(label) for label in labels]
        own = np.array([_radii(self.cells.get(name, np.empty(0)), self.levels) for name in names])
        # Groups of a single attribute do not overlap.
        overlapping = own if self.overlapping.attributes == 1 else self._overlapping(names)
        radii = {"group_radius": own, "overlapping_radius": overlapping}
        everyone = np.tile(_radii(self.scores, self.levels), (len(code), 1))
        return {**raw, "radius": everyone, **{name: each[code] for name, each in radii.items()}}

    def _overlapping(self, names: Sequence[str]) -> Array:
        members, own = self.overlapping.members(self.cells), self.overlapping.members(names)
        scores = list(self.cells.values())
        found = [
            [covering_threshold(scores, members, mine, level) for level in self.levels]
            for mine in own
        ]
        return np.array(found)


def _calibration_rows(
    train: TrainingSet, share: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw the held-out rows, again where a class would be missing from the others."""
    n = len(train.y)
    held_out = min(max(round(share * n), 1), n - 1)
    classes = np.empty(0) if train.task is Task.REGRESSION else np.unique(train.y)
    while True:
        order = rng.permutation(n)
        if np.isin(classes, train.y[order[held_out:]]).all():
            return order[:held_out]


def _scores(raw: RawOutputs, y: Array) -> Array:
    if "score" in raw:
        p = raw["score"]
        if p.ndim > 1:
            return 1 - np.asarray(p, float)[np.arange(len(y)), y.astype(np.intp)]
        return np.where(y == 1, 1 - p, p)
    scores: Array = np.abs(y - raw["mean"]) / raw.get("sd", 1.0)
    return scores


def _radii(scores: Array, levels: Sequence[float]) -> Array:
    """Return the smallest radius of each level that covers a further row with its probability.

    Parameters
    ----------
    scores : sorted.
    """
    ordered = np.append(scores, np.inf)
    # The rounding keeps (n + 1) level from just passing a whole number it should be.
    ranks = np.ceil(np.round((len(scores) + 1) * np.asarray(levels), 9)).astype(int)
    radii: Array = ordered[np.minimum(ranks - 1, len(scores))]
    return radii
