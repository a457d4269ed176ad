"""Predictions of one classifier, of which some, all or none have a label."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError, unknown_name
from fairbench.metrics.rates import binary_confusion

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class PartlyLabelled:
    """A pool of rows with scores, decisions and groups; labels where they are known.

    Attributes
    ----------
    score : (n,) probability of label 1 that the classifier gave, in [0, 1].
    prediction : (n,) its decision, 0 or 1.
    group : (n,) codes into `groups`, whose first entry is the reference of every difference.
    label : (n,) 0 or 1, NaN where it is unknown.
    """

    score: Floats
    prediction: Codes
    group: Codes
    label: Floats
    groups: tuple[Hashable, ...]

    @classmethod
    def of(
        cls,
        score: ArrayLike,
        group: ArrayLike,
        label: ArrayLike | None = None,
        *,
        prediction: ArrayLike | None = None,
        reference: Hashable | None = None,
    ) -> PartlyLabelled:
        """Check columns and code the groups.

        Parameters
        ----------
        label : NaN or None where unknown; none at all if left out.
        prediction : `score` > 0.5 if left out.
        reference : the group differences start from; the largest if left out.

        Raises
        ------
        UserError : unequal lengths, a value that cannot be, an unknown reference group.
        """
        scores = _numbers(score, "score")
        labels = np.full(len(scores), np.nan) if label is None else _numbers(label, "label")
        decisions = scores > 0.5 if prediction is None else _numbers(prediction, "prediction")
        column = pd.Series(np.asarray(group, dtype=object))
        _check_lengths(score=scores, group=column, label=labels, prediction=decisions)
        _refuse("score", scores, ~((scores >= 0) & (scores <= 1)), "a probability")
        _refuse("label", labels, ~np.isin(labels, (0, 1)) & ~np.isnan(labels), "0, 1 or missing")
        _refuse("prediction", decisions, ~np.isin(decisions, (0, 1)), "0 or 1")
        _refuse("group", column.to_numpy(), column.isna().to_numpy(), "a label")
        groups = _reference_first(column, reference)
        codes = pd.Categorical(column, categories=list(groups)).codes
        return cls(scores, decisions.astype(np.int64), codes.astype(np.int64), labels, groups)

    @property
    def n_groups(self) -> int:
        """Return the number of groups."""
        return len(self.groups)

    @property
    def labelled(self) -> Codes:
        """Return the positions of the rows with a label."""
        return np.flatnonzero(~np.isnan(self.label))

    def counts(self, rows: Codes | None = None) -> Codes:
        """Return the (G, 4) counts TN, FP, FN, TP of labelled rows, or of those among `rows`."""
        rows = self.labelled if rows is None else rows
        return binary_confusion(
            self.label[rows], self.prediction[rows], self.group[rows], n_groups=self.n_groups
        )

    def sizes(self) -> Codes:
        """Return the (G, 2) numbers of rows per group and prediction, labelled or not."""
        cell = self.group * 2 + self.prediction
        return np.bincount(cell, minlength=2 * self.n_groups).reshape(-1, 2).astype(np.int64)

    def showing(self, rows: Codes) -> PartlyLabelled:
        """Return the pool with the labels of `rows` alone; all other rows have none."""
        label = np.full(len(self.label), np.nan)
        label[rows] = self.label[rows]
        return PartlyLabelled(self.score, self.prediction, self.group, label, self.groups)


def _numbers(values: ArrayLike, name: str) -> Floats:
    try:
        return np.asarray(pd.to_numeric(pd.Series(values)), np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"column '{name}': {str(error).splitlines()[0]}; give numbers") from error


def _check_lengths(**columns: NDArray[np.generic] | pd.Series) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UserError(f"columns of unequal lengths ({listed}); give one value a row to each")
    if not lengths["score"]:
        raise UserError("no rows: give at least one prediction")


def _refuse(
    name: str, values: NDArray[np.generic], wrong: NDArray[np.bool_], expected: str
) -> None:
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise UserError(f"column '{name}' is {values[row]} in row {row + 1}; it must be {expected}")


def _reference_first(column: pd.Series, reference: Hashable | None) -> tuple[Hashable, ...]:
    sizes = column.value_counts()
    reference_group = sizes.index[0] if reference is None else reference
    if reference_group not in sizes.index:
        raise unknown_name("reference group", str(reference), map(str, sizes.index))
    other_groups = sorted((name for name in sizes.index if name != reference_group), key=str)
    return (reference_group, *other_groups)
