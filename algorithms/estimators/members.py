"""Raw scores of several networks, made into what each of them predicts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from algorithms.estimators.units import Unit
from fairbench.experiments.contracts import Loss

Array = NDArray[np.float64]


def linked_members(scores: Array, loss: Loss, unit: Unit) -> Array:
    """Return predictions (M, n, k) of raw scores (M, n, k): probabilities, means, or means and sds.

    Parameters
    ----------
    unit : the one the labels were standardised to; probabilities have none.
    """
    flat = loss.link(scores.reshape(-1, scores.shape[-1]))
    if loss.outputs == 2:
        flat = unit.distribution(flat)
    elif loss.name != "binomial":
        flat = unit.mean(flat)
    return flat.reshape(scores.shape)
