"""Scores calibrated in many groups by gradient boosting, with the package MCGrad."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.algorithms.interventions.recalibrated import (
    Array,
    Change,
    HeldOut,
    Recalibrated,
)
from fairbench.components.algorithms.overlapping_groups import JOINED_BY
from fairbench.core.errors import check_minimum, check_share
from fairbench.experiments.contracts import BINARY, Capabilities, Intervention

_EDGE = 1e-6  # the package takes scores inside (0, 1)
_SCORE, _LABEL, _WEIGHT = "score", "label", "weight"


@dataclass(frozen=True)
class MCGrad(Intervention):
    """Multicalibration by boosting (Tax, Perini, Linder et al. 2025, MCGrad), on rows held out.

    Trees predict what is left of the label from the score's logit and the protected attributes;
    rounds of them follow until the log loss of rows left out no longer falls, at most `rounds`.
    That may be no round at all: then the scores stay as they are.
    """

    held_out: float = 0.25
    rounds: int = 100

    capabilities = Capabilities(
        tasks=BINARY,
        reads_groups=True,
        group_at_prediction=True,
        packages=("mcgrad", "lightgbm"),
        requires=("mcgrad",),
    )

    def __post_init__(self) -> None:
        """Refuse a share that is none, and no rounds."""
        check_share("intervention.held_out", self.held_out, zero=True)
        check_minimum("intervention.rounds", self.rounds, 1)

    def wrap(self, estimator: Any, seed: int) -> Recalibrated:
        """Return the unfitted model."""
        learn = partial(_learn, rounds=self.rounds, seed=seed)
        return Recalibrated("mcgrad", estimator, self.held_out, seed, learn)


def _learn(rows: HeldOut, *, rounds: int, seed: int) -> tuple[Change, dict[str, float]]:
    """Return the package's change of scores, and how many rounds it took."""
    from mcgrad.methods import MCGrad as Boosted

    frame = _frame(rows.score, rows.sensitive)
    attributes = [name for name in frame if name != _SCORE]
    model = Boosted(num_rounds=rounds, random_state=seed, lightgbm_params={"num_threads": 1})
    with _quiet():
        model.fit(
            frame.assign(**{_LABEL: rows.label, _WEIGHT: rows.weight}),
            _SCORE,
            _LABEL,
            weight_column_name=_WEIGHT,
            categorical_feature_column_names=attributes,
        )
    taken = float(model.num_rounds_trained)
    return partial(_predicted, model=model, attributes=attributes), {"rounds": taken}


def _predicted(score: Array, sensitive: pd.Series, *, model: Any, attributes: list[str]) -> Array:
    with _quiet():
        changed = model.predict(
            _frame(score, sensitive), _SCORE, categorical_feature_column_names=attributes
        )
    return np.asarray(changed, np.float64)


def _frame(score: Array, sensitive: pd.Series) -> pd.DataFrame:
    """Return scores with a column of texts for each protected attribute."""
    names = str(sensitive.name).split(JOINED_BY)
    labels = sensitive.astype(str)
    parts = [label.split(JOINED_BY) for label in labels] if len(names) > 1 else labels.to_frame()
    columns = pd.DataFrame(np.asarray(parts, object)).set_axis(
        [f"attribute_{i}" for i in range(len(names))], axis=1
    )
    return columns.assign(**{_SCORE: np.clip(score, _EDGE, 1 - _EDGE)})


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the package from logging its progress."""
    logger = logging.getLogger("mcgrad")
    before, logger.level = logger.level, logging.ERROR
    try:
        yield
    finally:
        logger.setLevel(before)
