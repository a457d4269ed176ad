"""A transformer of sequences that minimises any loss of raw scores, by torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fairbench.components.algorithms.estimators.linked import LinkedEstimator, link
from fairbench.components.algorithms.estimators.sequence_network import Padded, SequenceNetwork
from fairbench.components.algorithms.estimators.training import (
    Data,
    drawn_from,
    members_gradient,
    members_loss,
    one_thread,
    standardised,
    train_until_stale,
)
from fairbench.data.features import Sequences
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]
BLOCK = 256  # rows predicted at a time: attention keeps every pair of their frames


class SequenceEstimator(LinkedEstimator):
    """Encoders of frames, drawn and shuffled from one seed, on one thread.

    Values are standardised before the fit and scaled back after it.
    """

    def __init__(self, loss: Loss, training: Any, seed: int) -> None:
        self.loss = loss
        self.training = training
        self.seed = seed

    def fit(self, X: Sequences, y: Array, sample_weight: Array | None = None) -> SequenceEstimator:
        """Fit to labels or values; rows of weight 0 are left out, and do not say when to stop.

        Raises
        ------
        UserError : a device that this machine does not have.
        """
        self.classes_ = np.arange(self.loss.classes or 2)
        # Numbers of rows stand for the rows: frames are filled up where a batch needs them.
        numbers = np.arange(len(y), dtype=np.float64)[:, None]
        data, self.unit_ = standardised(numbers, y, sample_weight, labels=self.loss.classes > 0)
        with one_thread(), drawn_from(self.seed, self.training.device):
            self.network_ = _train(X, data, self.loss, self.training, self.seed)
        return self

    def linked(self, X: Sequences) -> Array:  # type: ignore[override]  # it takes no other frame
        """Return the predictions of the network with all its units."""
        with one_thread():
            scores = _scores(self.network_, X, np.arange(len(X)), self.training.device)
        return link(scores, self.loss, self.unit_)


def _train(X: Sequences, data: Data, loss: Loss, training: Any, seed: int) -> SequenceNetwork:
    generator, device = np.random.default_rng([seed, 1]), training.device
    validation, rest = data.held_out(training.validation, generator)
    network = SequenceNetwork(
        [part.channels for part in X.parts],
        loss.initial(rest.y, rest.weight),
        width=training.width,
        layers=training.layers,
        heads=training.heads,
        dropout=training.dropout,
        detached=loss.scale_detached_from_trunk,
    ).to(device)
    parameters: list[torch.Tensor] = list(network.parameters())
    optimiser = torch.optim.AdamW(
        parameters, lr=training.learning_rate, weight_decay=training.weight_decay, foreach=True
    )

    def epoch() -> None:
        network.train()
        for batch in rest.batches(training.batch_size, generator):
            raw = network(_padded(X, _rows(batch), device))[None]
            optimiser.zero_grad()
            torch.autograd.backward(raw, members_gradient(raw, batch, loss))
            optimiser.step()

    def judge() -> float:
        scores = _scores(network, X, _rows(validation), device)
        return members_loss(scores[None], validation, loss)

    train_until_stale(parameters, epoch, judge, epochs=training.epochs, patience=training.patience)
    return network


def _rows(data: Data) -> NDArray[np.intp]:
    return data.X[:, 0].numpy().astype(np.intp)


def _padded(X: Sequences, rows: NDArray[np.intp], device: str) -> list[Padded]:
    return [Padded.of(part.take(rows), device) for part in X.parts]


def _scores(network: SequenceNetwork, X: Sequences, rows: NDArray[np.intp], device: str) -> Array:
    """Return the raw scores of rows as numbers, without dropout."""
    network.eval()
    with torch.no_grad():
        blocks = [
            network(_padded(X, rows[i : i + BLOCK], device)).cpu()
            for i in range(0, max(len(rows), 1), BLOCK)
        ]
    return torch.cat(blocks).numpy().astype(np.float64)
