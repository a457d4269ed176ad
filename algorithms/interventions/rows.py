"""Stands for a table of features where fairlearn refits many times, so that it is prepared once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fairbench.core.errors import UserError
from fairbench.data.features import Frame

Array = NDArray[np.float64]

# How many of the last refits are kept: a search comes back to the same weights within a few steps.
_RECENT = 8


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a frame, some repeated or left out, where fairlearn expects a matrix of features.

    fairlearn only counts them and passes them on to the estimator, which so sees one frame in all
    of its fits, sparse or categorical as it may be.
    """

    frame: Frame
    index: NDArray[np.intp]

    @classmethod
    def of(cls, frame: Frame, copies: Array | None = None) -> Rows:
        """Return every row, as often as `copies` (n,) says."""
        index = np.arange(frame.shape[0])
        return cls(frame, index if copies is None else np.repeat(index, copies.astype(int)))

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows, repetitions counted; one column."""
        return len(self.index), 1

    def __len__(self) -> int:
        return len(self.index)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self.index[:, None].astype(dtype or np.intp)


@dataclass(eq=False)
class OnRows:
    """An estimator of `Rows`: a row's repetitions become its weight, so the frame is kept.

    Repetitions share their label and their weight, since both follow from label and group. Copies
    share the last few fits, and a fit keeps its predictions of the training rows, because a
    reduction asks for the same ones again.
    """

    estimator: Any
    recent: dict[bytes, tuple[Any, Array]] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> OnRows:
        return OnRows(self.estimator, self.recent)

    def fit(self, rows: Rows, y: Any, sample_weight: Any) -> OnRows:
        """Fit to labels or values of the rows, under non-negative weights, each (n,).

        Raises
        ------
        UserError : weights that overflowed, as fairlearn's multipliers of large losses do.
        """
        if not np.isfinite(sample_weight).all():
            raise UserError(
                "the groups' mean losses are so far above intervention.bound that fairlearn's "
                "multipliers overflow: raise the bound, which is in the unit of the target, or "
                "write the target in a larger unit"
            )
        n = rows.frame.shape[0]
        weight = np.bincount(rows.index, sample_weight, n).astype(np.float64)
        target = np.zeros(n)
        target[rows.index] = y
        # Weights that differ by rounding alone are the same problem.
        problem = target.tobytes() + weight.round(9).tobytes()
        if problem not in self.recent:
            fitted = self._fit(rows.frame, target, weight)
            predicted = np.asarray(fitted.predict(rows.frame), np.float64)[rows.index]
            self.recent[problem] = fitted, predicted
            if len(self.recent) > _RECENT:
                del self.recent[next(iter(self.recent))]
        self.fitted_, self._predicted = self.recent[problem]
        self._rows = rows
        return self

    def _fit(self, frame: Frame, target: Array, weight: Array) -> Any:
        from sklearn import clone
        from sklearn.dummy import DummyClassifier

        labels = np.unique(target[weight > 0])
        if len(labels) == 1 and hasattr(self.estimator, "predict_proba"):
            return DummyClassifier(strategy="constant", constant=int(labels[0])).fit(frame, target)
        return clone(self.estimator).fit(frame, target, sample_weight=weight)

    def predict(self, rows: Rows) -> Array:
        """Return labels or values, (n,)."""
        if rows is self._rows:
            return self._predicted
        return np.asarray(self.fitted_.predict(rows.frame), np.float64)[rows.index]

    def predict_proba(self, rows: Rows) -> Array:
        """Return the probability of each class, (n, classes)."""
        return np.asarray(self.fitted_.predict_proba(rows.frame), np.float64)[rows.index]
