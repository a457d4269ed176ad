"""A network of ReLU layers whose last layer gives the raw scores of a loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import linear

from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Network:
    """Weights and biases of each layer; the last layer's rows are the raw scores."""

    weights: list[torch.Tensor]
    biases: list[torch.Tensor]
    detached: bool

    @property
    def parameters(self) -> list[torch.Tensor]:
        """What is trained."""
        return [*self.weights, *self.biases]

    def forward(self, X: torch.Tensor, masks: Sequence[torch.Tensor] = ()) -> torch.Tensor:
        """Return the (n, k) raw scores; the second may be kept from training the hidden layers.

        Parameters
        ----------
        masks : what the units of each hidden layer are multiplied with, (n, units), or
            (M, 1, units) for the (M, n, k) scores of M thinned networks; empty for all units.
        """
        for i, (weight, bias) in enumerate(zip(self.weights[:-1], self.biases[:-1], strict=True)):
            X = torch.relu(linear(X, weight.T, bias))
            if masks:
                X = X * masks[i]
        weight, bias = self.weights[-1], self.biases[-1]
        if not self.detached:
            return linear(X, weight.T, bias)
        mean = linear(X, weight[:, :1].T, bias[:1])
        return torch.cat([mean, linear(X.detach(), weight[:, 1:].T, bias[1:])], dim=-1)

    def masks(
        self, size: tuple[int, ...], rate: float, generator: torch.Generator
    ) -> list[torch.Tensor]:
        """Draw a mask of `size` times units per hidden layer: 0 at `rate`, else 1 / (1 - rate)."""
        kept = [torch.empty(*size, len(bias)) for bias in self.biases[:-1]]
        return [mask.bernoulli_(1 - rate, generator=generator) / (1 - rate) for mask in kept]

    def scores(self, X: torch.Tensor, masks: Sequence[torch.Tensor] = ()) -> Array:
        """Return the raw scores as numbers."""
        with torch.no_grad():
            return self.forward(X, masks).numpy().astype(np.float64)


def new_network(
    inputs: int, start: Array, hidden: tuple[int, ...], loss: Loss, seed: int
) -> Network:
    """Draw weights uniformly within 1 / sqrt(fan in); the last biases are the loss's start."""
    generator = np.random.default_rng(seed)
    sizes = [inputs, *hidden, loss.outputs]
    weights, biases = [], []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:], strict=True):
        bound = 1 / np.sqrt(max(fan_in, 1))
        weights.append(generator.uniform(-bound, bound, (fan_in, fan_out)))
        biases.append(generator.uniform(-bound, bound, fan_out))
    biases[-1] = start
    return Network(
        [_parameter(each) for each in weights],
        [_parameter(each) for each in biases],
        loss.scale_detached_from_trunk,
    )


def _parameter(values: Array) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32, requires_grad=True)
