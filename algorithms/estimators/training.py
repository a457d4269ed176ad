"""Training a network by torch: its rows, one thread, and stopping where it no longer improves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.data.features import Unit
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """Features, standardised labels and weights of the same rows."""

    X: torch.Tensor
    y: Array
    weight: Array

    def to(self, device: str) -> Data:
        """Return the same rows with their features on a device."""
        return Data(self.X.to(device), self.y, self.weight)

    def take(self, rows: NDArray[np.intp]) -> Data:
        """Return some of the rows."""
        index = torch.from_numpy(rows).to(self.X.device)
        return Data(self.X[index], self.y[rows], self.weight[rows])

    def held_out(self, share: float, generator: np.random.Generator) -> tuple[Data, Data]:
        """Return a random share of the rows, at least one, and the others."""
        order = generator.permutation(len(self.y))
        first = max(1, round(share * len(order)))
        return self.take(order[:first]), self.take(order[first:])

    def batches(self, size: int, generator: np.random.Generator) -> Iterator[Data]:
        """Yield all rows in a new order, `size` at a time."""
        shuffled = self.take(generator.permutation(len(self.y)))
        for first in range(0, len(self.y), size):
            part = slice(first, first + size)
            yield Data(shuffled.X[part], shuffled.y[part], shuffled.weight[part])


def standardised(
    X: Array, y: Array, sample_weight: Array | None, *, labels: bool
) -> tuple[Data, Unit]:
    """Return the rows of positive weight, and the unit that values were divided into.

    Parameters
    ----------
    X : (n, d). y : (n,). sample_weight : (n,), 1 for every row where it is None.
    labels : `y` holds labels, which keep their unit.
    """
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    rows = np.flatnonzero(weight > 0)
    y, weight = y[rows], weight[rows]
    unit = Unit() if labels else Unit.of(y, weight)
    features = torch.from_numpy(np.asarray(X, np.float32)[rows])
    return Data(features, unit.standard(y), weight), unit


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, as every learner does."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def drawn_from(seed: int, device: str) -> Iterator[None]:
    """Let torch's own generators start at a seed, and leave them as they were.

    Raises
    ------
    UserError : a device that this machine does not have.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("learner.device=cuda, but torch finds no GPU here: use learner.device=cpu")
    with torch.random.fork_rng(devices=[0] if device == "cuda" else []):
        torch.manual_seed(seed)
        yield


def members_gradient(raw: torch.Tensor, batch: Data, loss: Loss) -> torch.Tensor:
    """Return the gradient (M, n, k) of the loss's mean over members and rows, at the raw scores."""
    scores = raw.detach().cpu().numpy().astype(np.float64)
    members, n, k = scores.shape
    gradient = loss.gradient(np.tile(batch.y, members), scores.reshape(-1, k)).reshape(scores.shape)
    gradient = gradient * batch.weight[:, None] / (n * members)
    return torch.from_numpy(gradient.astype(np.float32)).to(raw.device)


def members_loss(scores: Array, data: Data, loss: Loss) -> float:
    """Return the mean negative log density of labels under the mixture of M members (M, n, k)."""
    members, n, k = scores.shape
    values = loss.value(np.tile(data.y, members), scores.reshape(-1, k)).reshape(members, n)
    mixture = np.log(members) - np.logaddexp.reduce(-values, axis=0)
    return float(np.average(mixture, weights=data.weight))


def train_until_stale(
    parameters: list[torch.Tensor],
    epoch: Callable[[], None],
    judge: Callable[[], float],
    *,
    epochs: int,
    patience: int,
) -> None:
    """Call `epoch` until `judge` has not fallen for `patience` epochs, and go back to its best."""
    best, kept, waited = np.inf, _copies(parameters), 0
    for _ in range(epochs):
        epoch()
        judged = judge()
        if judged < best:
            best, kept, waited = judged, _copies(parameters), 0
        else:
            waited += 1
            if waited >= patience:
                break
    with torch.no_grad():
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)


def _copies(parameters: list[torch.Tensor]) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in parameters]
