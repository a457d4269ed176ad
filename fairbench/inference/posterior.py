"""Posteriors of confusion counts: of one classifier, group by group, or of two on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats

# How intervals of rates by group are made: so that they hold in repeated samples, or as quantiles
# of the papers' posterior.
INTERVALS = FREQUENTIST, DIRICHLET = "frequentist", "dirichlet"


def posterior_draws(
    counts: NDArray[Any], draws: int, generator: np.random.Generator, *, alpha: float = 1.0
) -> NDArray[np.float64]:
    """Draw cell probabilities from Dir(alpha + counts), independently per group.

    Parameters
    ----------
    counts : (..., G, 4) counts; need not be whole numbers (effective counts).
    draws : number of draws T.
    alpha : prior pseudo-count of every cell (1 uniform, 1/2 Jeffreys).

    Returns
    -------
    (T, ..., G, 4) probabilities that sum to 1 over the last axis: normalised gamma variates. It
    is a view of an array with the draws last, so that sums over cells and groups run over
    contiguous memory.
    """
    shape = np.moveaxis(np.asarray(counts, float) + alpha, -1, 0)[..., None]
    gammas = generator.standard_gamma(shape, size=(*shape.shape[:-1], draws))
    gammas /= gammas.sum(axis=0)
    return np.moveaxis(gammas, (-1, 0), (0, -1))


def resampled_counts(
    counts: NDArray[Any], draws: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw (T, G, 4) multinomial counts around the observed shares (parametric bootstrap).

    It is a view of an array with the cells first, so that sums run over contiguous memory.
    """
    size = counts.sum(axis=-1)
    shares = counts / np.maximum(size, 1)[..., None]
    shares[size == 0, 0] = 1.0
    resampled: NDArray[np.int64] = generator.multinomial(
        size.astype(np.int64), shares, size=(draws, *size.shape)
    )
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(resampled, -1, 0)), 0, -1)


def central_interval(
    samples: NDArray[np.float64], level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the equal-tailed interval over axis 0, order statistics without interpolation.

    A draw that is NaN sorts last and so widens nothing below; columns with any NaN are NaN.
    """
    draws = samples.shape[0]
    low = round((1 - level) / 2 * (draws - 1))
    ends = np.partition(np.moveaxis(samples, 0, -1), (low, draws - 1 - low), axis=-1)
    # NaN sorts last, so the last order statistic of a row tells whether it has any.
    invalid = np.isnan(samples).any(axis=0)
    lower, upper = ends[..., low].copy(), ends[..., draws - 1 - low].copy()
    lower[invalid] = upper[invalid] = np.nan
    return lower, upper


# Pseudo-counts of every confusion cell; the improper prior is the limit alpha -> 0.
PRIORS: Mapping[str, float] = MappingProxyType({"uniform": 1.0, "jeffreys": 0.5, "improper": 0.0})


def table_draws(
    counts: NDArray[Any],
    draws: int,
    generator: np.random.Generator,
    *,
    alpha: float = 1.0,
    predictive: bool = False,
) -> Floats:
    """Draw confusion tables whose groups keep their observed sizes.

    Parameters
    ----------
    counts : (..., G, C) counts of C cells; need not be whole numbers (effective counts).
    draws : number of draws T.
    alpha : prior pseudo-count of every cell; 0 is the limit 0+, where an empty group is NaN.
    predictive : draw multinomial counts after the Dirichlet, as the published code does: the
        spread of another sample of this size rather than of the probabilities.

    Returns
    -------
    (T, ..., G, C) group size times Dir(alpha + counts), or counts. Because sizes are kept, a
    metric of everyone together weighs the groups by their observed shares.

    Notes
    -----
    Barrainkua et al., AISTATS 2024, section 3.
    """
    counts = np.asarray(counts, float)
    size = counts.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        tables = posterior_draws(counts, draws, generator, alpha=alpha)
    if predictive:
        return _multinomial(tables, size, generator)
    tables *= size[..., None]
    return tables


def _multinomial(shares: Floats, size: Floats, generator: np.random.Generator) -> Floats:
    """Draw counts of `size` rows, non-integer sizes rounded up or down at random."""
    shares = np.where(size[..., None] > 0, shares, 1 / shares.shape[-1])
    rows = np.floor(size + generator.random(shares.shape[:-1])).astype(np.int64)
    return generator.multinomial(rows, shares).astype(np.float64)


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
    first_counts = reduce(np.add, (cube[..., :, :, c] for c in range(classes)))
    second_counts = reduce(np.add, (cube[..., :, c, :] for c in range(classes)))
    shape = (*joint.shape[:-1], classes**2)
    return first_counts.reshape(shape), second_counts.reshape(shape)


def paired_draws(
    joint: NDArray[Any],
    draws: int,
    generator: np.random.Generator,
    *,
    alpha: float = 1.0,
    predictive: bool = False,
) -> tuple[Floats, Floats]:
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
) -> tuple[Floats, Floats]:
    """Draw both algorithms' tables from two independent posteriors, as the paper does."""
    draw = partial(table_draws, draws=draws, generator=generator, alpha=alpha)
    return draw(first, predictive=predictive), draw(second, predictive=predictive)
