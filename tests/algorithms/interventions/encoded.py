"""A simulated population, encoded and cut into training and test rows."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.components.datasets import simulated
from fairbench.data.features import Encoder, Encoding, Frame


@dataclass(frozen=True)
class Rows:
    """What a model is fitted on, or asked about."""

    X: Frame
    y: np.ndarray
    groups: pd.Series

    def fit(self, model, weight=None):
        """Fit a model on these rows."""
        return model.fit(self.X, self.y, sensitive_features=self.groups, sample_weight=weight)

    def outputs(self, model, seed=0):
        """Return a model's outputs for these rows."""
        return model.outputs(self.X, sensitive_features=self.groups, random_state=seed)


def rows(encoding=Encoding.STANDARD, n=1500, **options):
    """Return training and test rows of one population."""
    data = simulated.load(None, n_samples=n, n_groups=options.pop("n_groups", 3), **options)
    (attribute,) = data.sensitive.columns
    train, test = (data.take(part) for part in np.split(np.arange(n), [2 * n // 3]))
    encoder = Encoder(encoding).fit(train.features)
    return tuple(
        Rows(
            encoder.transform(part.features),
            part.target.to_numpy(float),
            part.groups(attribute),
        )
        for part in (train, test)
    )
