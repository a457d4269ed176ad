"""Arms: groups of rows whose labels are bought one at a time, with the posteriors of their rates.

Everything is batched over R replications, which are independent; a person's audit has R = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.inference.beta import Beta, Normal

Integers = NDArray[np.int64]


class Arms(Protocol):
    """The arms that strategies choose from: posterior draws, and rows that can be labelled."""

    @property
    def unlabelled(self) -> Integers:
        """Return the rows of each arm without a label, (R, A)."""

    def draw(self, generator: np.random.Generator) -> Floats:
        """Draw every arm's parameters once from its posterior."""

    def take(self, rows: Integers) -> Arms:
        """Return some of the replications."""


@dataclass(frozen=True, eq=False)
class BetaArms:
    """Arms whose rows are successes or failures: a Beta posterior of each arm's rate.

    Attributes
    ----------
    posterior : (R, A) prior pseudo-counts plus the successes and failures seen.
    unlabelled : (R, A) rows whose label is not known.
    """

    posterior: Beta
    unlabelled: Integers

    @staticmethod
    def of(prior: Beta, sizes: Sequence[int] | Integers, *, replications: int = 1) -> BetaArms:
        """Return unlabelled arms.

        Parameters
        ----------
        prior : (A,) or (R, A): `uniform(A)`, or `centred(scores)`, Ji et al.'s informative prior.
        sizes : (A,) or (R, A) rows of each arm.
        """
        rows = np.asarray(sizes, np.int64)
        shape = (replications, rows.shape[-1])
        pseudo = (
            np.broadcast_to(array, shape).copy() for array in (prior.successes, prior.failures)
        )
        return BetaArms(Beta(*pseudo), np.broadcast_to(rows, shape).copy())

    def with_counts(self, successes: Any, failures: Any) -> BetaArms:
        """Return the arms after (R, A) or (A,) further successes and failures."""
        n_successes, n_failures = np.asarray(successes, np.int64), np.asarray(failures, np.int64)
        return BetaArms(
            self.posterior.after(n_successes, n_failures),
            self.unlabelled - n_successes - n_failures,
        )

    def record(self, rows: Integers, arms: Integers, success: NDArray[Any]) -> None:
        """Count, in place, one label for each (replication, arm); no pair may come twice."""
        self.posterior.successes[rows, arms] += success
        self.posterior.failures[rows, arms] += 1 - success
        self.unlabelled[rows, arms] -= 1

    def draw(self, generator: np.random.Generator) -> Floats:
        """Draw every arm's success rate once, (R, A)."""
        return generator.beta(self.posterior.successes, self.posterior.failures)

    def take(self, rows: Integers) -> BetaArms:
        """Return some of the replications."""
        return BetaArms(self.posterior.take(rows), self.unlabelled[rows])


@dataclass(frozen=True, eq=False)
class NormalArms:
    """Arms whose rows have a loss, or another number: a normal posterior of each arm's mean.

    Attributes
    ----------
    posterior : (R, A) means.
    unlabelled : (R, A) rows whose label is not known.
    """

    posterior: Normal
    unlabelled: Integers

    def draw(self, generator: np.random.Generator) -> Floats:
        """Draw every arm's mean once, (R, A)."""
        return generator.normal(self.posterior.mean, np.sqrt(self.posterior.variance))

    def take(self, rows: Integers) -> NormalArms:
        """Return some of the replications."""
        return NormalArms(self.posterior.take(rows), self.unlabelled[rows])


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

    def take(self, rows: Integers) -> DirichletArms:
        """Return some of the replications."""
        return DirichletArms(self.alpha[rows], self.unlabelled[rows])


@dataclass(frozen=True, eq=False)
class BinnedArms:
    """Arms whose rows lie in B bins of the score: a Beta posterior of each bin's accuracy.

    An arm is chosen, not a bin: which bin its next row lies in is up to the row.

    Attributes
    ----------
    posterior : (R, A, B) prior pseudo-counts plus the right and wrong predictions seen.
    unlabelled : (R, A) rows whose label is not known.
    """

    posterior: Beta
    unlabelled: Integers

    @staticmethod
    def of(prior: Beta, sizes: Sequence[int] | Integers, *, replications: int = 1) -> BinnedArms:
        """Return unlabelled arms, from (A, B) priors and (A,) numbers of rows."""
        shape = (replications, *prior.successes.shape)
        pseudo = (
            np.broadcast_to(array, shape).copy() for array in (prior.successes, prior.failures)
        )
        rows = np.broadcast_to(np.asarray(sizes, np.int64), shape[:2]).copy()
        return BinnedArms(Beta(*pseudo), rows)

    @staticmethod
    def outcome(bins: Integers, correct: NDArray[Any]) -> Integers:
        """Return (n,) codes of what a label shows: twice the bin, and 1 for a right prediction."""
        codes: Integers = 2 * bins + correct.astype(np.int64)
        return codes

    def record(self, rows: Integers, arms: Integers, outcome: Integers) -> None:
        """Count, in place, one label for each (replication, arm); no pair may come twice."""
        bins, correct = np.divmod(outcome, 2)
        self.posterior.successes[rows, arms, bins] += correct
        self.posterior.failures[rows, arms, bins] += 1 - correct
        self.unlabelled[rows, arms] -= 1

    def draw(self, generator: np.random.Generator) -> Floats:
        """Draw every bin's accuracy once, (R, A, B)."""
        return generator.beta(self.posterior.successes, self.posterior.failures)

    def take(self, rows: Integers) -> BinnedArms:
        """Return some of the replications."""
        return BinnedArms(self.posterior.take(rows), self.unlabelled[rows])


Rate = Callable[[Floats, Floats, Floats], Floats]


def accuracy(share: Floats, negative: Floats, positive: Floats) -> Floats:
    """Return the accuracy, from pi, p0 and p1."""
    return share * positive + (1 - share) * (1 - negative)


def true_positive_rate(share: Floats, negative: Floats, positive: Floats) -> Floats:
    """Return the true positive rate, from pi, p0 and p1; 0 where there is no positive."""
    return _ratio(share * positive, (1 - share) * negative)


def false_positive_rate(share: Floats, negative: Floats, positive: Floats) -> Floats:
    """Return the false positive rate, from pi, p0 and p1; 0 where there is no negative."""
    return _ratio(share * (1 - positive), (1 - share) * (1 - negative))


def _ratio(part: Floats, other: Floats) -> Floats:
    """Return part / (part + other), 0 where both are 0."""
    ratio: Floats = part / np.maximum(part + other, np.finfo(float).tiny)
    return ratio


@dataclass(frozen=True, eq=False)
class LowestRate:
    """Identification of the group with the lowest rate (the highest, with `sign` = 1).

    Arm 2 g are the rows of group g that are predicted 0, arm 2 g + 1 those that are predicted 1.

    Attributes
    ----------
    share : (G,) share of positive predictions among each group's rows.
    rate : accuracy, true_positive_rate or false_positive_rate.
    sign : -1 for the lowest rate, 1 for the highest.
    """

    share: Floats
    rate: Rate
    sign: int = -1

    def rates(self, theta: Floats) -> Floats:
        """Return the groups' rates (R, G) under (R, 2 G) shares of label 1 in the arms."""
        return self.rate(self.share, theta[:, 0::2], theta[:, 1::2])

    def expected(self, arms: BetaArms, theta: Floats) -> Floats:
        """Return the rate of each arm's group, at the arm that says more about it."""
        return self._at_arms(arms, self.sign * self.rates(theta))

    def moments(self, arms: BetaArms) -> tuple[Floats, Floats]:
        """Return the rate at the posterior means, and its standard deviation by the delta method.

        The less telling arm of a group has a mean of minus infinity, which no strategy chooses.
        """
        mean = self.sign * self.rates(arms.posterior.mean)
        variance = self._slopes(arms) ** 2 * arms.posterior.variance
        sd = np.sqrt(variance[:, 0::2] + variance[:, 1::2])
        return self._at_arms(arms, mean), np.repeat(sd, 2, axis=1)

    def _at_arms(self, arms: BetaArms, values: Floats) -> Floats:
        """Return the values of groups at the arm of each whose label reduces the variance most."""
        fall = self._slopes(arms) ** 2 * arms.posterior.variance / (arms.posterior.strength + 1)
        fall = np.where(arms.unlabelled > 0, fall, -1.0)
        pairs = fall.reshape(len(fall), -1, 2)
        chosen = pairs.argmax(axis=-1)[..., None] == np.arange(2)
        return np.where(chosen.reshape(fall.shape), np.repeat(values, 2, axis=1), -np.inf)

    def _slopes(self, arms: BetaArms) -> Floats:
        """Return the derivative of each group's rate by its two arms, by central differences."""
        mean, step = arms.posterior.mean, 1e-6
        slopes = np.empty_like(mean)
        for which in (0, 1):
            shift = step * (np.arange(mean.shape[1]) % 2 == which)
            change = self.rates(mean + shift) - self.rates(mean - shift)
            slopes[:, which::2] = change / (2 * step)
        return slopes
