"""A torch network of a table's columns that minimises any loss, alone or as an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from fairbench.components.algorithms.estimators.linked import LinkedEstimator, link, mixture
from fairbench.components.algorithms.estimators.tabular_columns import TabularColumns
from fairbench.components.algorithms.estimators.training import (
    Data,
    drawn_from,
    members_gradient,
    members_loss,
    one_thread,
    standardised,
    train_until_stale,
)
from fairbench.components.algorithms.learners.tabular_networks import TabularNetworkLearner
from fairbench.data.features import Frame
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]
BLOCK = 4096  # rows predicted at a time: attention keeps every pair of columns of them


class Shape(NamedTuple):
    """What a network is built for."""

    numbers: NDArray[np.float32]
    cardinalities: list[int]
    outputs: int


class TabularNetwork(torch.nn.Module):
    """A trunk that reads numbers and codes, and a last layer that gives (M, n, k) raw scores.

    Where `detached`, the scores after the first leave the trunk untrained.
    """

    def __init__(
        self,
        trunk: torch.nn.Module,
        head: torch.nn.Module,
        numbers: int,
        undecayed: Iterable[torch.nn.Parameter] = (),
    ) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = head
        self.numbers = numbers
        self.undecayed = {id(each) for each in undecayed}
        self.detached = False

    @property
    def groups(self) -> list[dict[str, Any]]:
        """What is trained with a decay of weights, and what without."""
        decayed = [each for each in self.parameters() if id(each) not in self.undecayed]
        others = [each for each in self.parameters() if id(each) in self.undecayed]
        return [{"params": decayed}, {"params": others, "weight_decay": 0.0}]

    def start(self, scores: Array, *, detached: bool) -> None:
        """Let the last layer add to constant raw scores, (k,)."""
        self.detached = detached
        with torch.no_grad():
            self.head.get_parameter("bias").copy_(torch.from_numpy(scores))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Return the (M, n, k) raw scores of M members at the rows of a matrix (n, d)."""
        numbers = X[:, : self.numbers] if self.numbers else None
        codes = X[:, self.numbers :].long() if self.numbers < X.shape[1] else None
        hidden = self.trunk(numbers, codes)
        scores = self.head(hidden)
        if self.detached:
            scores = torch.cat([scores[..., :1], self.head(hidden.detach())[..., 1:]], dim=-1)
        first: torch.Tensor = scores[None] if scores.ndim == 2 else scores.transpose(0, 1)
        return first

    def scores(self, X: torch.Tensor) -> Array:
        """Return the raw scores as numbers, without dropout."""
        self.eval()
        with torch.no_grad():
            blocks = [self(X[i : i + BLOCK]).cpu() for i in range(0, max(len(X), 1), BLOCK)]
        return torch.cat(blocks, dim=1).numpy().astype(np.float64)


Build = Callable[[Any, Shape], TabularNetwork]


class TabularNetworkEstimator(LinkedEstimator):
    """A network of a frame's columns, drawn and shuffled from one seed, on one thread.

    Values are standardised before the fit and scaled back after it.
    """

    def __init__(
        self, loss: Loss, training: TabularNetworkLearner, build: Build, seed: int
    ) -> None:
        self.loss = loss
        self.training = training
        self.build = build
        self.seed = seed

    def fit(
        self, X: pd.DataFrame, y: Array, sample_weight: Array | None = None
    ) -> TabularNetworkEstimator:
        """Fit to labels or values; rows of weight 0 are left out, and do not say when to stop.

        Raises
        ------
        UserError : a device that this machine does not have.
        """
        self.classes_ = np.arange(self.loss.classes or 2)
        kept = X if sample_weight is None else X[np.asarray(sample_weight) > 0]
        self.columns_ = TabularColumns.of(kept)
        matrix = self.columns_.matrix(X).astype(np.float64)
        data, self.unit_ = standardised(matrix, y, sample_weight, labels=self.loss.classes > 0)
        with one_thread(), drawn_from(self.seed, self.training.device):
            numbers = data.X.numpy()[:, : len(self.columns_.numbers)]
            shape = Shape(numbers, self.columns_.cardinalities, self.loss.outputs)
            self.network_ = self.build(self.training, shape)
            _train(self.network_, data, self.loss, self.training, self.seed)
        return self

    def _members(self, X: Frame) -> Array:
        """Return the (M, n, k) predictions of the network's members; most have one."""
        matrix = torch.from_numpy(self.columns_.matrix(X)).to(self.training.device)
        with one_thread():
            return link(self.network_.scores(matrix), self.loss, self.unit_)

    def linked(self, X: Frame) -> Array:
        """Return the predictions of the mixture of the members."""
        return mixture(self._members(X), self.loss)


class TabularEnsembleEstimator(TabularNetworkEstimator):
    """A network that makes several predictions at once."""

    def predict_members(self, X: Frame, members: int, seed: int) -> Array:
        """Return the (M, n, k) predictions of `members` of its own, or of all it has."""
        every = self._members(X)
        order = np.random.default_rng(seed).permutation(len(every))
        return every[np.sort(order[:members])]


def _train(
    network: TabularNetwork, data: Data, loss: Loss, training: TabularNetworkLearner, seed: int
) -> None:
    generator = np.random.default_rng([seed, 1])
    validation, rest = data.to(training.device).held_out(training.validation, generator)
    network.start(loss.initial(rest.y, rest.weight), detached=loss.scale_detached_from_trunk)
    network.to(training.device)
    optimiser = torch.optim.AdamW(
        network.groups, lr=training.learning_rate, weight_decay=training.weight_decay, foreach=True
    )

    def epoch() -> None:
        network.train()
        for batch in rest.batches(training.batch_size, generator):
            raw = network(batch.X)
            gradient = members_gradient(raw, batch, loss)
            optimiser.zero_grad()
            torch.autograd.backward(raw, gradient)
            optimiser.step()

    def judge() -> float:
        return members_loss(network.scores(validation.X), validation, loss)

    train_until_stale(
        list(network.parameters()),
        epoch,
        judge,
        epochs=training.epochs,
        patience=training.patience,
    )
