"""Models whose training compares the groups, and whose predictions do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.shared import Groups, group_names
from fairbench.core.errors import UserError
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Model, RawOutputs

Array = NDArray[np.float64]


@dataclass
class TrainedOnGroups(Model):
    """An estimator that is fitted with groups, and read without them.

    Attributes
    ----------
    name : the intervention, for errors.
    estimator : ``fit(X, y, groups, sample_weight=None)``, where groups are whole numbers from 0
        and no weight is 0, and ``predict_proba(X)``.
    labels : those that every group must have, for its rates to be compared.
    at_most : how many groups the estimator can compare; None for any number.
    """

    name: str
    estimator: Any
    labels: tuple[int, ...]
    at_most: int | None = 2

    def fit(
        self,
        X: Frame,
        y: Array,
        *,
        sensitive_features: pd.Series,
        sample_weight: Array | None = None,
    ) -> TrainedOnGroups:
        """Fit to the rows of positive weight.

        Raises
        ------
        UserError : fewer than two groups or too many, or a group without a label it must have.
        """
        groups = group_names(sensitive_features)
        if sample_weight is not None:
            rows = np.flatnonzero(sample_weight > 0)
            X, y, groups, sample_weight = X[rows], y[rows], groups[rows], sample_weight[rows]
        self._check(y, groups)
        codes = np.unique(groups, return_inverse=True)[1]
        self.estimator.fit(X, y, codes, sample_weight)
        return self

    def outputs(self, X: Frame, *, sensitive_features: pd.Series, random_state: int) -> RawOutputs:
        """Return the probability of label 1, which does not depend on the group."""
        return {"score": self.estimator.predict_proba(X)[:, 1]}

    @property
    def diagnostics(self) -> dict[str, float]:
        """What the estimator says of its fit, where it says anything."""
        return dict(getattr(self.estimator, "diagnostics_", {}))

    def _check(self, y: Array, groups: Groups) -> None:
        names = np.unique(groups)
        if len(names) < 2 or len(names) > (self.at_most or len(names)):
            wanted = "two groups" if self.at_most == 2 else "two groups or more"
            raise UserError(
                f"intervention={self.name} compares {wanted}, and the training rows have "
                f"{len(names)} ({', '.join(names)}): protect another attribute"
            )
        for name in names:
            for label in self.labels:
                if not (y[groups == name] == label).any():
                    raise UserError(
                        f"intervention={self.name} needs label {label} in every group, and none of "
                        f"the {(groups == name).sum()} training rows of group '{name}' has it (a "
                        "bootstrap may miss a rare one): protect an attribute with larger groups"
                    )
