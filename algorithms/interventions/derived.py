"""Post-processing: a fitted model's output and the group together decide the label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.shared import Groups, group_names
from fairbench.core.errors import UserError
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Model, RawOutputs, class_probabilities

Array = NDArray[np.float64]
Rule = Callable[[Array, Groups, int], NDArray[Any]]
Derive = Callable[[Array, Array, Groups], Rule]


@dataclass
class Derived(Model):
    """An estimator whose labels are replaced by a rule of its output and the group.

    `derive` takes outputs, labels and groups of the training rows (a weight of w is w copies of a
    row) and returns the rule: outputs, groups and a seed to labels, all (n,). A group without
    training rows keeps the estimator's own labels, since nothing is known of its rates.

    Attributes
    ----------
    name : the intervention, for errors.
    hard : whether the rule reads labels; else the probability of label 1.
    """

    name: str
    estimator: Any
    hard: bool
    derive: Derive
    groups: Groups = field(init=False)
    rule: Rule = field(init=False)

    def fit(
        self,
        X: Frame,
        y: Array,
        *,
        sensitive_features: pd.Series,
        sample_weight: Array | None = None,
    ) -> Derived:
        """Fit the estimator, and derive the rule from its outputs on the same rows.

        Raises
        ------
        UserError : a group with one label only, or weights that do not count copies.
        """
        self.estimator.fit(X, y, sample_weight=sample_weight)
        rows = _copies(self.name, sample_weight, len(y))
        labels, groups = y[rows], group_names(sensitive_features)[rows]
        _check_labels(self.name, labels, groups)
        self.groups = np.unique(groups)
        self.rule = self.derive(self._output(X)[rows], labels, groups)
        return self

    def outputs(self, X: Frame, *, sensitive_features: pd.Series, random_state: int) -> RawOutputs:
        """Return labels only: a mixture's P(prediction = 1) is no estimate of P(y = 1)."""
        output, groups = self._output(X), group_names(sensitive_features)
        known = np.isin(groups, self.groups)
        labels = np.where(known, self.rule(output, groups, random_state), output > 0.5)
        return {"prediction": labels.astype(np.float64)}

    def _output(self, X: Frame) -> Array:
        p: Array = class_probabilities(self.estimator, X)[:, 1]
        return (p > 0.5).astype(np.float64) if self.hard else p


def _copies(name: str, sample_weight: Array | None, n: int) -> NDArray[np.intp]:
    if sample_weight is None:
        return np.arange(n)
    counts = sample_weight.astype(np.intp)
    if (counts != sample_weight).any():
        raise UserError(
            f"intervention={name} takes weights that count copies of rows, and got fractions: "
            "use whole-number weights"
        )
    return np.repeat(np.arange(n), counts)


def _check_labels(name: str, labels: Array, groups: Groups) -> None:
    for group in np.unique(groups):
        own = labels[groups == group]
        if own.min() == own.max():
            raise UserError(
                f"intervention={name} needs both labels in every group, and the {len(own)} "
                f"training rows of group '{group}' all have label {own[0]:g} (a bootstrap may miss "
                "a rare one): protect an attribute with larger groups"
            )
