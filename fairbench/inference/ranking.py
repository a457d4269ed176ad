"""A ranking of several algorithms, with ties where no difference is certain enough."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def ranking(outperforms: NDArray[np.float64], certainty: float = 0.95) -> NDArray[np.int64]:
    """Return each algorithm's rank: 1 plus the number of algorithms that outperform it.

    Parameters
    ----------
    outperforms : (R, R) probabilities P(row >> column); the diagonal is not looked at.
    certainty : the probability from which one algorithm counts as outperforming another.

    Returns
    -------
    (R,) ranks; algorithms that the same number of others outperform are tied. An algorithm that
    trades one objective for another outperforms nobody by it.
    """
    beats = outperforms >= certainty
    np.fill_diagonal(beats, False)
    ranks: NDArray[np.int64] = 1 + beats.sum(axis=0)
    return ranks
