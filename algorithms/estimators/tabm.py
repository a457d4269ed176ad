"""TabM by the authors' own package (tabm)."""

from __future__ import annotations

from typing import Any

import numpy as np
import rtdl_num_embeddings
import tabm
import torch
from numpy.typing import NDArray

from fairbench.components.algorithms.estimators.tabular_network import Shape, TabularNetwork


def build(learner: Any, shape: Shape) -> TabularNetwork:
    """Return the untrained network, drawn from torch's generator."""
    numbers = shape.numbers.shape[1]
    trunk = tabm.TabM.make(
        n_num_features=numbers,
        cat_cardinalities=shape.cardinalities,
        d_out=None,
        num_embeddings=_embeddings(learner, shape.numbers) if numbers and learner.bins else None,
        k=learner.members,
        n_blocks=learner.blocks,
        d_block=learner.width,
        dropout=learner.dropout,
    )
    head = tabm.LinearEnsemble(learner.width, shape.outputs, k=learner.members)
    return TabularNetwork(trunk, head, numbers)


def _embeddings(
    learner: Any, numbers: NDArray[np.float32]
) -> rtdl_num_embeddings.PiecewiseLinearEmbeddings:
    """Return the encoding of numbers by pieces between their quantiles, as the authors' default."""
    bins = [torch.from_numpy(_edges(column, learner.bins)).float() for column in numbers.T]
    return rtdl_num_embeddings.PiecewiseLinearEmbeddings(
        bins, learner.embedding, activation=False, version="B"
    )


def _edges(column: NDArray[np.float32], bins: int) -> NDArray[np.float64]:
    """Return where the pieces of a number begin and end: quantiles of its distinct values.

    Those of all rows would leave two pieces to a number that is mostly 0, such as a capital gain.
    Of a number with two values, or one, the pieces are halves: there has to be more than one.
    """
    distinct = np.unique(column).astype(np.float64)
    edges = np.unique(np.quantile(distinct, np.linspace(0, 1, bins + 1), method="nearest"))
    if len(edges) > 2:
        return edges
    low, high = (edges[0], edges[-1]) if len(edges) == 2 else (edges[0] - 1, edges[0] + 1)
    return np.linspace(low, high, 3)
