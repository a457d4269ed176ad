"""Predictions of a multi-class black box, of which some, all or none have a label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class MulticlassScores:
    """A pool of rows with predicted classes and confidences; labels where they are known.

    Attributes
    ----------
    target : (n,) codes into `classes`, `UNKNOWN` where there is no label.
    prediction : (n,) codes of the predicted classes.
    confidence : (n,) probability that the classifier gave its prediction, in [0, 1].
    classes : names of the C classes.
    probabilities : (n, C) of all classes, where they are known.
    """

    target: Codes
    prediction: Codes
    confidence: Floats
    classes: tuple[str, ...]
    probabilities: Floats | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.prediction)

    @property
    def labelled(self) -> Codes:
        """Return the positions of the rows with a label."""
        return np.flatnonzero(self.target != UNKNOWN)

    @cached_property
    def correct(self) -> Floats:
        """(n,) 1 where the prediction is right, 0 where it is wrong, NaN without a label."""
        right = (self.target == self.prediction).astype(np.float64)
        return np.where(self.target == UNKNOWN, np.nan, right)

    def showing(self, rows: Codes) -> MulticlassScores:
        """Return the same pool with the labels of `rows` alone."""
        target = np.full(len(self), UNKNOWN)
        target[rows] = self.target[rows]
        return replace(self, target=target)

    def distribution(self) -> Floats:
        """Return (n, C) probabilities; what a lone confidence leaves is shared by the others."""
        if self.probabilities is not None:
            return self.probabilities
        n, others = len(self), max(len(self.classes) - 1, 1)
        shares = np.repeat(((1 - self.confidence) / others)[:, None], len(self.classes), axis=1)
        shares[np.arange(n), self.prediction] = self.confidence
        return shares
