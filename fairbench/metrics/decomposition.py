"""Splitting what members predict into aleatoric and epistemic uncertainty, per row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]


class Decomposition(NamedTuple):
    """The uncertainty within the members' predictions and that between them, each (n,)."""

    aleatoric: Values
    epistemic: Values

    @property
    def predictive(self) -> Values:
        """The sum of the two."""
        return self.aleatoric + self.epistemic


def variance_decomposition(members: ArrayLike) -> Decomposition:
    """Return the two parts of the label's variance, summed over the classes (Kwon et al. 2020).

    Aleatoric is the mean over members of P_m (1 - P_m), epistemic that of (P_m - Pbar)^2; their
    sum is Pbar (1 - Pbar). With two classes each is twice that of class 1, and at most 1/2.

    Parameters
    ----------
    members : (M, n) probabilities of class 1, or (M, n, C) of all classes.

    Examples
    --------
    >>> variance_decomposition([[0.5, 0.0], [0.5, 1.0]])
    Decomposition(aleatoric=array([0.5, 0. ]), epistemic=array([0. , 0.5]))
    """
    p = np.asarray(members, float)
    aleatoric, epistemic = (p * (1 - p)).mean(axis=0), ((p - _mean(p)) ** 2).mean(axis=0)
    if p.ndim == 2:
        return Decomposition(2 * aleatoric, 2 * epistemic)
    return Decomposition(aleatoric.sum(axis=-1), epistemic.sum(axis=-1))


def entropy_decomposition(members: ArrayLike) -> Decomposition:
    """Return the two parts of the predictive entropy in nats (Depeweg et al. 2018, equation 5).

    Aleatoric is the members' mean entropy, epistemic the mutual information of label and member,
    the mean divergence of a member from the members' mean.

    Parameters
    ----------
    members : (M, n) probabilities of class 1, or (M, n, C) of all classes.
    """
    from scipy.special import entr, rel_entr

    p = np.asarray(members, float)
    if p.ndim == 2:
        p = np.stack([1 - p, p], axis=-1)
    # A mean of next to nothing must not become 0, of which the divergence is infinite.
    mean = np.maximum(_mean(p), np.finfo(float).tiny)
    divergence = rel_entr(p, mean).sum(axis=-1).mean(axis=0)
    # Rounding leaves a divergence of 0 a few 1e-17 under it.
    return Decomposition(entr(p).sum(axis=-1).mean(axis=0), np.maximum(divergence, 0))


def _mean(members: Values) -> Values:
    """Return the members' mean, exact where they are identical."""
    mean: Values = members[0] + (members - members[0]).mean(axis=0)
    return mean
