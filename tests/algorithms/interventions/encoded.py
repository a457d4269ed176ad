"""A simulated population, encoded and cut into training and test rows."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.losses import Binomial
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

    def take(self, index):
        """Return rows by their places, each as often as it is there."""
        return Rows(self.X[index], self.y[index], self.groups.iloc[index])


def rows(encoding=Encoding.STANDARD, n=1500, **options):
    """Return training and test rows of one population."""
    data = simulated.load(None, n_samples=n, n_groups=options.pop("n_groups", 3), **options)
    (attribute,) = data.sensitive.columns
    train, test = (data.take(part) for part in np.split(np.arange(n), [2 * n // 3]))
    encoder = Encoder(encoding).fit(train.features)
    return tuple(
        Rows(encoder.transform(part.features), part.target.to_numpy(float), part.groups(attribute))
        for part in (train, test)
    )


def wrapped(intervention, learner=None, seed=0):
    """Return the unfitted model of an intervention around a learner of labels."""
    learner = learner or LogisticRegression()
    return intervention.wrap(learner.estimator(Binomial(), seed), seed)
