"""A network of ReLU layers whose last layer gives the raw scores of a loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fairbench.contracts import Loss

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

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Return the (n, k) raw scores; the second may be kept from training the hidden layers."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            X = torch.relu(torch.addmm(bias, X, weight))
        weight, bias = self.weights[-1], self.biases[-1]
        if not self.detached:
            return torch.addmm(bias, X, weight)
        mean = torch.addmm(bias[:1], X, weight[:, :1])
        return torch.cat([mean, torch.addmm(bias[1:], X.detach(), weight[:, 1:])], dim=1)

    def copies(self) -> list[torch.Tensor]:
        """Return copies of the parameters."""
        return [parameter.detach().clone() for parameter in self.parameters]

    def restore(self, values: list[torch.Tensor]) -> None:
        """Set the parameters to copies made before."""
        with torch.no_grad():
            for parameter, value in zip(self.parameters, values, strict=True):
                parameter.copy_(value)

    def scores(self, X: torch.Tensor) -> Array:
        """Return the raw scores as numbers."""
        with torch.no_grad():
            return self.forward(X).numpy().astype(np.float64)


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
