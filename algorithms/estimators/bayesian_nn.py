"""A Bayesian neural network by torch: every weight has a normal posterior distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairbench.components.algorithms.estimators.linked import LinkedEstimator, link, mixture
from fairbench.components.algorithms.estimators.training import (
    Data,
    members_gradient,
    members_loss,
    one_thread,
    standardised,
    train_until_stale,
)
from fairbench.components.algorithms.estimators.weight_posterior import (
    ScaleMixture,
    WeightPosterior,
    forward,
    new_posterior,
)
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]
BLOCK = 4096  # rows predicted at a time: every member keeps its hidden units of them


class BayesianNNEstimator(LinkedEstimator):
    """A network of ReLU layers, trained by Bayes by Backprop; torch draws weights from one seed.

    Values are standardised before the fit and scaled back after it. Probabilities, means and sds
    of one model are those of the mixture over `samples` networks drawn from the posterior.
    """

    def __init__(self, loss: Loss, training: Any, seed: int) -> None:
        self.loss = loss
        self.training = training
        self.seed = seed

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> BayesianNNEstimator:
        """Fit to labels or values; a weight of w is w rows, and rows of weight 0 are left out."""
        self.classes_ = np.arange(self.loss.classes or 2)
        data, self.unit_ = standardised(X, y, sample_weight, labels=self.loss.classes > 0)
        with one_thread():
            self.posterior_ = _train(data, self.loss, self.training, self.seed)
        return self

    def predict_members(self, X: Frame, members: int, seed: int) -> Array:
        """Return (M, n, k) probabilities, means, or means and sds, of M networks drawn."""
        with one_thread(), torch.no_grad():
            weights = self.posterior_.draw(members, torch.Generator().manual_seed(seed))
            scores = _scores(torch.from_numpy(np.asarray(X, np.float32)), weights)
        return link(scores, self.loss, self.unit_)

    def linked(self, X: Frame) -> Array:
        """Return the predictions of the mixture over networks drawn from the posterior."""
        return mixture(self.predict_members(X, self.training.samples, self.seed), self.loss)


def _scores(X: torch.Tensor, weights: list[torch.Tensor]) -> Array:
    blocks = [forward(X[i : i + BLOCK], weights) for i in range(0, max(len(X), 1), BLOCK)]
    return torch.cat(blocks, dim=1).numpy().astype(np.float64)


def _train(data: Data, loss: Loss, training: Any, seed: int) -> WeightPosterior:
    generator, noise = np.random.default_rng([seed, 1]), torch.Generator().manual_seed(seed)
    validation, rest = data.held_out(training.validation, generator)
    start = loss.initial(rest.y, rest.weight)
    posterior = new_posterior(
        data.X.shape[1],
        start,
        tuple(training.hidden),
        sd=training.initial_sd,
        seed=seed,
        means=training.initial_means,
    )
    optimiser = torch.optim.Adam(posterior.parameters, lr=training.learning_rate, foreach=True)
    prior = ScaleMixture(training.prior_share, training.prior_narrow, training.prior_wide)
    strength = training.likelihood_weight or float(rest.weight.sum())
    mean_weight = rest.weight.mean()

    def epoch() -> None:
        for batch in rest.batches(training.batch_size, generator):
            weights = posterior.draw(training.samples, noise)
            raw = forward(batch.X, weights)
            gradient = members_gradient(raw, batch, loss) / mean_weight
            divergence = posterior.divergence(weights, prior) / strength
            optimiser.zero_grad()
            torch.autograd.backward([raw, divergence], [gradient, torch.ones(())])
            optimiser.step()

    def judge() -> float:
        with torch.no_grad():
            # The same draws every time, so that epochs differ by the posterior alone.
            weights = posterior.draw(training.samples, torch.Generator().manual_seed(seed))
            scores = _scores(validation.X, weights)
        return members_loss(scores, validation, loss)

    train_until_stale(
        posterior.parameters, epoch, judge, epochs=training.epochs, patience=training.patience
    )
    return posterior
