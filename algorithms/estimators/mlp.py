"""A small network by torch that minimises any loss of raw scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from algorithms.estimators.network import Network, new_network
from algorithms.estimators.units import Unit
from fairbench.contracts import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """How a network is trained: AdamW, stopped where held-out rows no longer improve."""

    hidden: tuple[int, ...]
    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    validation: float
    patience: int


class MLPEstimator(BaseEstimator):
    """ReLU layers, initialised and shuffled by numpy from one seed, on one thread.

    Values are standardised before the fit and scaled back after it, so that a learning rate suits
    targets of any unit.
    """

    def __init__(self, loss: Loss, training: Training, seed: int) -> None:
        self.loss = loss
        self.training = training
        self.seed = seed

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> MLPEstimator:
        """Fit to labels or values; rows of weight 0 are left out, and do not say when to stop."""
        self.classes_ = np.array([0, 1])
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        rows = np.flatnonzero(weight > 0)
        binomial = self.loss.name == "binomial"
        self.unit_ = Unit() if binomial else Unit.of(y[rows], weight[rows])
        data = Data(
            torch.from_numpy(np.asarray(X, np.float32)[rows]),
            self.unit_.standard(y[rows]),
            weight[rows],
        )
        with one_thread():
            self.network_ = _train(data, self.loss, self.training, self.seed)
        return self

    @available_if(lambda self: self.loss.name == "binomial")
    def predict_proba(self, X: Array) -> Array:
        """Return the (n, 2) probabilities of labels 0 and 1."""
        p = self._linked(X)[:, 0]
        return np.column_stack([1 - p, p])

    @available_if(lambda self: self.loss.outputs == 2)
    def predict_distribution(self, X: Array) -> Array:
        """Return the (n, 2) means and standard deviations."""
        return self.unit_.distribution(self._linked(X))

    def predict(self, X: Array) -> Array:
        """Return labels (ties are 0), values or means."""
        first = self._linked(X)[:, 0]
        if self.loss.name == "binomial":
            return (first > 0.5).astype(np.float64)
        return self.unit_.mean(first)

    def _linked(self, X: Array) -> Array:
        with one_thread():
            return self.loss.link(self.network_.scores(torch.from_numpy(np.asarray(X, np.float32))))


@dataclass(frozen=True)
class Data:
    """Features, standardised labels and weights of the same rows."""

    X: torch.Tensor
    y: Array
    weight: Array

    def take(self, rows: NDArray[np.intp]) -> Data:
        """Return some of the rows."""
        return Data(self.X[torch.from_numpy(rows)], self.y[rows], self.weight[rows])


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, as every learner does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _train(data: Data, loss: Loss, training: Training, seed: int) -> Network:
    generator = np.random.default_rng([seed, 1])
    order = generator.permutation(len(data.y))
    held_out = max(1, round(training.validation * len(order)))
    validation, rest = data.take(order[:held_out]), data.take(order[held_out:])
    network = new_network(
        data.X.shape[1], loss.initial(rest.y, rest.weight), training.hidden, loss, seed
    )
    optimiser = torch.optim.AdamW(
        network.parameters,
        lr=training.learning_rate,
        weight_decay=training.weight_decay,
        foreach=True,
    )
    best, kept, waited = np.inf, network.copies(), 0
    for _ in range(training.epochs):
        _epoch(network, optimiser, rest, loss, training.batch_size, generator)
        values = loss.value(validation.y, network.scores(validation.X))
        judged = float(np.average(values, weights=validation.weight))
        if judged < best:
            best, kept, waited = judged, network.copies(), 0
        else:
            waited += 1
            if waited >= training.patience:
                break
    network.restore(kept)
    return network


def _epoch(
    network: Network,
    optimiser: torch.optim.Optimizer,
    data: Data,
    loss: Loss,
    batch_size: int,
    generator: np.random.Generator,
) -> None:
    """Take a step for each batch, down the loss's own gradient at the scores."""
    shuffled = data.take(generator.permutation(len(data.y)))
    for first in range(0, len(data.y), batch_size):
        batch = slice(first, first + batch_size)
        raw = network.forward(shuffled.X[batch])
        scores = raw.detach().numpy().astype(np.float64)
        weight = shuffled.weight[batch, None]
        gradient = loss.gradient(shuffled.y[batch], scores) * weight / weight.sum()
        optimiser.zero_grad()
        torch.autograd.backward(raw, torch.from_numpy(gradient.astype(np.float32)))
        optimiser.step()
