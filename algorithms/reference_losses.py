"""The normal losses as the reference implementation of FairlyUncertain fits them.

Its comments give the loss 2 log(sd) + r^2 / 2, of which it takes the derivative of 2 log(sd) to be
2 sd (it is 2 / sd), its second derivative to be 2, and beside it the observed 3 r^2 / sd^2. The raw
score is the standard deviation itself, with nothing to keep it positive: it starts at 1/2, as the
mean does, and both share their trees. What results can be NaN, zero or negative; it is the
likelihood of nothing, and kept to reproduce the published tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_START = 0.5


@dataclass(frozen=True)
class NormalNLLReference:
    """The reference's Normal NLL."""

    name = "normal_nll_reference"
    outputs = 2
    is_gradient_of_value = False
    scale_detached_from_trunk = False
    curvature_has_unit = False
    vector_leaves = True

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return 1/2 for both scores, whatever the labels."""
        return _start()

    def value(self, y: Array, raw: Array) -> Array:
        """Return the likelihood the scores claim, NaN without a positive sd."""
        return _value(y, raw)

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return (-r / sd, 2 sd - r^2 / sd)."""
        return _gradient(y, raw)

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return (1 / sd^2, 2 + 3 r^2 / sd^2)."""
        return _curvature(y, raw)

    def link(self, raw: Array) -> Array:
        """Return the scores as they are."""
        return raw


@dataclass(frozen=True)
class BetaNLLReference:
    """The reference's beta-NLL: its Normal NLL times sd, for its beta of 1/2."""

    name = "beta_nll_reference"
    outputs = 2
    is_gradient_of_value = False
    scale_detached_from_trunk = False
    curvature_has_unit = False
    vector_leaves = True

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return 1/2 for both scores, whatever the labels."""
        return _start()

    def value(self, y: Array, raw: Array) -> Array:
        """Return the likelihood the scores claim, NaN without a positive sd."""
        return _value(y, raw)

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return the Normal NLL's times the sd, whatever its sign."""
        return _gradient(y, raw) * raw[:, 1:]

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return the Normal NLL's times the sd, whatever its sign."""
        return _curvature(y, raw) * raw[:, 1:]

    def link(self, raw: Array) -> Array:
        """Return the scores as they are."""
        return raw


@dataclass(frozen=True)
class FaithfulNLLReference:
    """The reference's Faithful NLL."""

    name = "faithful_nll_reference"
    outputs = 2
    is_gradient_of_value = False
    scale_detached_from_trunk = False
    curvature_has_unit = False
    vector_leaves = True

    def initial(self, y: Array, weight: Array | None = None) -> Array:
        """Return 1/2 for both scores, whatever the labels."""
        return _start()

    def value(self, y: Array, raw: Array) -> Array:
        """Return the likelihood the scores claim, NaN without a positive sd."""
        return _value(y, raw)

    def gradient(self, y: Array, raw: Array) -> Array:
        """Return (m - y, 2 sd - r^2 / sd)."""
        return np.column_stack([raw[:, 0] - y, _gradient(y, raw)[:, 1]])

    def curvature(self, y: Array, raw: Array) -> Array:
        """Return (1, 2 + 3 r^2 / sd^2)."""
        return np.column_stack([np.ones(len(raw)), _curvature(y, raw)[:, 1]])

    def link(self, raw: Array) -> Array:
        """Return the scores as they are."""
        return raw


def _start() -> Array:
    return np.full(2, _START)


def _value(y: Array, raw: Array) -> Array:
    sd = np.where(raw[:, 1] > 0, raw[:, 1], np.nan)
    loss: Array = np.log(sd * np.sqrt(2 * np.pi)) + ((y - raw[:, 0]) / sd) ** 2 / 2
    return loss


def _gradient(y: Array, raw: Array) -> Array:
    error, sd = raw[:, 0] - y, raw[:, 1]
    with np.errstate(all="ignore"):
        return np.column_stack([error / sd**2, 2 * sd - error**2 / sd**3])


def _curvature(y: Array, raw: Array) -> Array:
    error, sd = raw[:, 0] - y, raw[:, 1]
    with np.errstate(all="ignore"):
        return np.column_stack([1 / sd**2, 2 + 3 * error**2 / sd**4])
