"""Arms: groups of rows whose labels are bought one at a time, with the posteriors of their rates.

Everything is batched over R replications, which are independent; a person's audit has R = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Arms(Protocol):
    """What a strategy needs of arms: posterior draws, and the rows that can still be labelled."""

    @property
    def unlabelled(self) -> Integers:
        """Return the rows of each arm without a label, (R, A)."""

    def draw(self, generator: np.random.Generator) -> Floats:
        """Draw every arm's parameters once from its posterior."""


@dataclass(frozen=True, eq=False)
class BetaArms:
    """Arms whose rows are successes or failures: a Beta posterior of each arm's rate.

    Attributes
    ----------
    alpha, beta : (R, A) prior pseudo-counts plus the successes and failures seen.
    unlabelled : (R, A) rows whose label is not known.
    """

    alpha: Floats
    beta: Floats
    unlabelled: Integers

    @staticmethod
    def of(prior: Any, sizes: Sequence[int] | Integers, *, replications: int = 1) -> BetaArms:
        """Return unlabelled arms.

        Parameters
        ----------
        prior : (A, 2) pseudo-counts of success and failure, positive.
        sizes : (A,) rows of each arm.
        """
        pseudo = np.asarray(prior, float)
        shape = (replications, len(pseudo))
        alpha, beta = (np.broadcast_to(pseudo[:, i], shape).copy() for i in (0, 1))
        rows: Integers = np.broadcast_to(np.asarray(sizes, np.int64), shape).copy()
        return BetaArms(alpha, beta, rows)

    def counted(self, successes: Any, failures: Any) -> BetaArms:
        """Return the arms after (R, A) or (A,) further successes and failures."""
        return BetaArms(
            self.alpha + successes,
            self.beta + failures,
            self.unlabelled - np.asarray(successes, np.int64) - np.asarray(failures, np.int64),
        )

    def record(self, rows: Integers, arms: Integers, success: NDArray[Any]) -> None:
        """Count, in place, one label for each (replication, arm); no pair may come twice."""
        self.alpha[rows, arms] += success
        self.beta[rows, arms] += 1 - success
        self.unlabelled[rows, arms] -= 1

    def draw(self, generator: np.random.Generator) -> Floats:
        """Draw every arm's success rate once, (R, A)."""
        return generator.beta(self.alpha, self.beta)

    @property
    def mean(self) -> Floats:
        """Return the posterior means, (R, A)."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def variance(self) -> Floats:
        """Return the posterior variances, (R, A)."""
        return variance(self.alpha, self.beta)


@dataclass(frozen=True, eq=False)
class DirichletArms:
    """Arms whose rows have one of C outcomes (the true class, say): Dirichlet posteriors.

    Attributes
    ----------
    alpha : (R, A, C) prior pseudo-counts plus the outcomes seen.
    unlabelled : (R, A) rows whose outcome is not known.
    """

    alpha: Floats
    unlabelled: Integers

    @staticmethod
    def of(prior: Any, sizes: Sequence[int] | Integers, *, replications: int = 1) -> DirichletArms:
        """Return unlabelled arms, from (A, C) positive pseudo-counts and (A,) sizes."""
        pseudo = np.asarray(prior, float)
        alpha = np.broadcast_to(pseudo, (replications, *pseudo.shape)).copy()
        shape = (replications, len(pseudo))
        rows: Integers = np.broadcast_to(np.asarray(sizes, np.int64), shape).copy()
        return DirichletArms(alpha, rows)

    def record(self, rows: Integers, arms: Integers, outcome: Integers) -> None:
        """Count, in place, one label for each (replication, arm); no pair may come twice."""
        self.alpha[rows, arms, outcome] += 1
        self.unlabelled[rows, arms] -= 1

    def draw(self, generator: np.random.Generator) -> Floats:
        """Draw every arm's outcome probabilities once, (R, A, C)."""
        gammas = generator.standard_gamma(self.alpha)
        drawn: Floats = gammas / gammas.sum(axis=-1, keepdims=True)
        return drawn


def confidence_prior(confidence: Any, strength: float) -> Floats:
    """Return the (A, 2) prior centred on each arm's mean score, worth `strength` labels.

    Ji et al. (2021, AAAI, "informative prior"): Beta(strength s, strength (1 - s)). A score of 0
    or 1 is taken as certain to a millionth only, since a Beta needs two positive parameters.
    """
    score = np.clip(np.asarray(confidence, float), 1e-6, 1 - 1e-6)
    prior: Floats = strength * np.stack([score, 1 - score], axis=-1)
    return prior


def variance(alpha: Floats, beta: Floats) -> Floats:
    """Return the variance of Beta(alpha, beta)."""
    total = alpha + beta
    return alpha * beta / (total**2 * (total + 1))
