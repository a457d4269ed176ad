"""Changes numeric features so that all groups have the same distribution (Feldman et al. 2015)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.components.algorithms.interventions.none import Unconstrained
from fairbench.components.algorithms.interventions.numeric import numeric_columns, read, replaced
from fairbench.components.algorithms.interventions.quantiles import Quantiles, repaired_values
from fairbench.components.algorithms.interventions.shared import group_names, last_call
from fairbench.core.errors import UserError
from fairbench.data.features import Frame
from fairbench.experiments.contracts import ANY_TASK, Capabilities, Intervention, Model, RawOutputs

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DisparateImpactRemover(Intervention):
    """The learner, fitted to repaired numbers; categories are left as they are.

    A number moves by `repair_level` of the way to where the median group has its quantile.
    """

    repair_level: float = 1.0

    capabilities = Capabilities(
        tasks=ANY_TASK, losses=None, reads_groups=True, group_at_prediction=True
    )

    def __post_init__(self) -> None:
        """Refuse more than a full repair."""
        if not 0 <= self.repair_level <= 1:
            raise UserError(
                f"intervention.repair_level is {self.repair_level}; it must be between 0 and 1"
            )

    def wrap(self, estimator: Any, seed: int) -> Repaired:
        """Return the unfitted model."""
        return Repaired(Unconstrained(estimator), self.repair_level)


@dataclass
class Repaired(Model):
    """A model that only sees repaired features."""

    model: Unconstrained
    level: float
    repair: Repair = field(init=False)

    def fit(
        self,
        X: Frame,
        y: Array,
        *,
        sensitive_features: pd.Series,
        sample_weight: Array | None = None,
    ) -> Repaired:
        """Learn the repair from all rows, as encoders do, and fit the model with the weights."""
        self.repair = _fit(X, sensitive_features, self.level)
        self.model.fit(
            self.repair.training,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
        )
        return self

    def outputs(self, X: Frame, *, sensitive_features: pd.Series, random_state: int) -> RawOutputs:
        """Return what the estimator has for repaired rows."""
        frame = _apply(self.repair, X, sensitive_features)
        return self.model.outputs(
            frame, sensitive_features=sensitive_features, random_state=random_state
        )


@dataclass(frozen=True, eq=False)
class Repair:
    """What is learnt from training rows: the quantiles of each column, by group and of all."""

    level: float
    columns: NDArray[np.intp]
    of_group: Mapping[str, Sequence[Quantiles]]
    of_all: Sequence[Quantiles]
    training: Frame


@last_call
def _fit(X: Frame, sensitive: pd.Series, level: float) -> Repair:
    """Return the repair that training rows teach, and these rows repaired."""
    columns = numeric_columns(X)
    values, groups = read(X, columns), group_names(sensitive)
    of_group = {
        name: [Quantiles.of(column) for column in values[groups == name].T]
        for name in np.unique(groups)
    }
    of_all = [Quantiles.of(column) for column in values.T]
    repaired = repaired_values(values, groups, of_group=of_group, of_all=of_all, level=level)
    return Repair(level, columns, of_group, of_all, replaced(X, columns, repaired))


@last_call
def _apply(repair: Repair, X: Frame, sensitive: pd.Series) -> Frame:
    """Return rows repaired by what the training rows taught."""
    values = repaired_values(
        read(X, repair.columns),
        group_names(sensitive),
        of_group=repair.of_group,
        of_all=repair.of_all,
        level=repair.level,
    )
    return replaced(X, repair.columns, values)
