"""Fits a model to some of the training rows and predicts the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import integer_seed
from fairbench.data.features import Frame
from fairbench.experiments.contracts import MakeModel, Model, RawOutputs, TrainingSet


def fit_without(
    rows: NDArray[np.intp], make_model: MakeModel, train: TrainingSet, rng: np.random.Generator
) -> Model:
    """Return a model fitted on all but `rows`, which have a weight of 0: the frame is kept."""
    weight = np.ones(len(train.y))
    weight[rows] = 0
    return make_model(integer_seed(rng)).fit(
        train.X, train.y, sensitive_features=train.sensitive, sample_weight=weight
    )


def predict_rows(
    model: Model, train: TrainingSet, rows: NDArray[np.intp], rng: np.random.Generator
) -> RawOutputs:
    """Return a model's outputs for some training rows."""
    X: Frame = train.X.iloc[rows] if isinstance(train.X, pd.DataFrame) else train.X[rows]
    seed = integer_seed(rng)
    return model.outputs(X, sensitive_features=train.sensitive.iloc[rows], random_state=seed)
