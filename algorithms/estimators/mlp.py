"""A small network by torch that minimises any loss of raw scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if

from fairbench.components.algorithms.estimators.linked import LinkedEstimator, link
from fairbench.components.algorithms.estimators.network import Network, new_network
from fairbench.components.algorithms.estimators.training import (
    Data,
    one_thread,
    standardised,
    train_until_stale,
)
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]


class MLPEstimator(LinkedEstimator):
    """ReLU layers, initialised and shuffled by numpy from one seed, on one thread.

    Values are standardised before the fit and scaled back after it, so that a learning rate suits
    targets of any unit.
    """

    def __init__(self, loss: Loss, training: Any, seed: int) -> None:
        self.loss = loss
        self.training = training
        self.seed = seed

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> MLPEstimator:
        """Fit to labels or values; rows of weight 0 are left out, and do not say when to stop."""
        self.classes_ = np.arange(self.loss.classes or 2)
        data, self.unit_ = standardised(X, y, sample_weight, labels=self.loss.classes > 0)
        with one_thread():
            self.network_ = _train(data, self.loss, self.training, self.seed)
        return self

    @available_if(lambda self: self.training.dropout > 0)
    def predict_members(self, X: Frame, members: int, seed: int) -> Array:
        """Return (M, n, k) probabilities, or means and sds, of M networks thinned by dropout.

        A member drops the same units for every row: it is one network, as a draw from a posterior
        over networks is (Gal & Ghahramani 2016, who draw anew for each row).
        """
        generator = torch.Generator().manual_seed(seed)
        with one_thread():
            masks = self.network_.masks((members, 1), self.training.dropout, generator)
            scores = self.network_.scores(torch.from_numpy(np.asarray(X, np.float32)), masks)
        return link(scores, self.loss, self.unit_)

    def linked(self, X: Frame) -> Array:
        """Return the predictions of the network with all its units."""
        with one_thread():
            scores = self.network_.scores(torch.from_numpy(np.asarray(X, np.float32)))
        return link(scores, self.loss, self.unit_)


def _train(data: Data, loss: Loss, training: Any, seed: int) -> Network:
    generator, torch_generator = np.random.default_rng([seed, 1]), torch.Generator()
    torch_generator.manual_seed(seed)
    validation, rest = data.held_out(training.validation, generator)
    network = new_network(
        data.X.shape[1], loss.initial(rest.y, rest.weight), tuple(training.hidden), loss, seed
    )
    optimiser = torch.optim.AdamW(
        network.parameters,
        lr=training.learning_rate,
        weight_decay=training.weight_decay,
        foreach=True,
    )

    def epoch() -> None:
        for batch in rest.batches(training.batch_size, generator):
            masks = _masks(network, training.dropout, len(batch.y), torch_generator)
            _step(network, optimiser, batch, loss, masks)

    def judge() -> float:
        values = loss.value(validation.y, network.scores(validation.X))
        return float(np.average(values, weights=validation.weight))

    train_until_stale(
        network.parameters, epoch, judge, epochs=training.epochs, patience=training.patience
    )
    return network


def _masks(network: Network, rate: float, n: int, generator: torch.Generator) -> list[torch.Tensor]:
    return network.masks((n,), rate, generator) if rate else []


def _step(
    network: Network,
    optimiser: torch.optim.Optimizer,
    batch: Data,
    loss: Loss,
    masks: list[torch.Tensor],
) -> None:
    """Take a step down the loss's own gradient at the scores."""
    raw = network.forward(batch.X, masks)
    scores = raw.detach().numpy().astype(np.float64)
    weight = batch.weight[:, None]
    gradient = loss.gradient(batch.y, scores) * weight / weight.sum()
    optimiser.zero_grad()
    torch.autograd.backward(raw, torch.from_numpy(gradient.astype(np.float32)))
    optimiser.step()
