"""The types of arrays that most modules handle, and the random generators that fill them.

There is a generator for each purpose, so that one's draws never change another's.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.int64]  # of groups, classes or cells, from 0
Rows = NDArray[np.int64]  # positions of rows, from 0


def divide(top: NDArray[Any], bottom: NDArray[Any]) -> Floats:
    """Return top / bottom; NaN where `bottom` is not above 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom > 0, top / bottom, np.nan)


def read_only(array: Any) -> Any:
    """Return a view of an array that cannot be written to; what is no array as it is."""
    if isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return array


def even_points(number: int, dimensions: int, shift: Floats | float = 0.0) -> Floats:
    """Return so many points (n, d) that fill the unit cube evenly, shifted modulo 1.

    Notes
    -----
    Roberts (2018), the Kronecker sequence: the multiples of the powers of 1 / x, where x is the
    root of x^(d + 1) = x + 1 for d dimensions.
    """
    root = 2.0
    for _ in range(40):  # a contraction, which converges to the root
        root = (1 + root) ** (1 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1)
    return (shift + np.arange(1, number + 1)[:, None] * steps) % 1


Key = str | int


def _entropy(root: int, purpose: str, keys: tuple[Key, ...]) -> int:
    text = json.dumps([root, purpose, *keys])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def rng(root: int, purpose: str, *keys: Key) -> np.random.Generator:
    """Return the generator of one purpose, independent of every other purpose and of any order.

    Parameters
    ----------
    root : the root seed of the run (``seed=0``).
    purpose : what the draws are for, such as ``"split"`` or ``"fit"``.
    keys : what distinguishes draws of one purpose: data set, repeat, fold, member. Never a method
        or a variant, so that what is compared shares its draws.
    """
    return np.random.default_rng(np.random.SeedSequence(_entropy(root, purpose, keys)))


def integer_seed(generator: np.random.Generator) -> int:
    """Draw a 31-bit seed for a library that takes an integer."""
    return int(generator.integers(2**31 - 1))
