"""The joint table of two algorithms' predictions on the same rows, which pairs a comparison."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.inference.counts_posterior import table_draws

Array = NDArray[np.float64]


def joint_confusion(
    target: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    group: ArrayLike,
    *,
    n_groups: int,
    n_classes: int = 2,
) -> NDArray[np.int64]:
    """Count (group, target, prediction of A, prediction of B) as a (G, C^3) array.

    Parameters
    ----------
    target, first, second : (n,) class codes 0 .. n_classes - 1.
    group : (n,) group codes 0 .. n_groups - 1.
    """
    cell = np.asarray(group, np.int64)
    for codes in (target, first, second):
        cell = cell * n_classes + np.asarray(codes, np.int64)
    counts = np.bincount(cell, minlength=n_groups * n_classes**3)
    return counts.reshape(n_groups, n_classes**3).astype(np.int64)


def margins(joint: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both algorithms' confusion tables, (..., C^3) -> two (..., C^2)."""
    classes = round(joint.shape[-1] ** (1 / 3))
    cube = joint.reshape(*joint.shape[:-1], classes, classes, classes)
    # Sums of slices keep the memory order of the draws; a reduction over an axis would not.
    first = reduce(np.add, (cube[..., :, :, c] for c in range(classes)))
    second = reduce(np.add, (cube[..., :, c, :] for c in range(classes)))
    shape = (*joint.shape[:-1], classes**2)
    return first.reshape(shape), second.reshape(shape)


def paired_draws(
    joint: NDArray[Any],
    draws: int,
    generator: np.random.Generator,
    *,
    alpha: float = 1.0,
    predictive: bool = False,
) -> tuple[Array, Array]:
    """Draw both algorithms' tables (T, ..., G, C^2) from the posterior of their joint table.

    The prior pseudo-count is shared out over the cells that a margin sums, so that each algorithm
    alone has exactly the posterior Dir(alpha + its counts).
    """
    classes = round(joint.shape[-1] ** (1 / 3))
    tables = table_draws(joint, draws, generator, alpha=alpha / classes, predictive=predictive)
    return margins(tables)


def independent_draws(
    first: NDArray[Any],
    second: NDArray[Any],
    draws: int,
    generator: np.random.Generator,
    *,
    alpha: float = 1.0,
    predictive: bool = False,
) -> tuple[Array, Array]:
    """Draw both algorithms' tables from two independent posteriors, as the paper does."""
    draw = partial(table_draws, draws=draws, generator=generator, alpha=alpha)
    return draw(first, predictive=predictive), draw(second, predictive=predictive)
