"""The best of many: intervals for the candidate that was chosen because its value was smallest.

The smallest of many noisy values is smaller than its truth: it was chosen for its luck. How much
of it is luck depends on which candidates might have been chosen, and on how their errors vary
together, which the rows that judge all of them show. The choice is therefore made again on draws of
all errors together, and the interval is the shortest that holds for whatever is chosen.

What is true, around which errors are drawn, is not known. The choice is made again under several
suppositions, and the interval has to hold under each (locally simultaneous inference, Zrnic and
Fithian 2024, arXiv 2212.09009, asks it of all truths in a region; here it is some, and the battery
of benchmarks/coverage shows what that covers):

- Objectives are as they look, or nearer to the chosen one's by so many standard errors of the
  difference, which makes those within reach of it alike: luck chooses most where all are. Others
  stay behind and are hardly chosen, so that they cost nothing.
- A gap near 0 cannot be much smaller than it is. Those that are alike are as large as they look on
  average and a little more, and are folded as the gaps at hand are.
- Values with a bound are as they look, at the bound if within reach of it, or all alike and
  somewhat larger than they look. The choice counts where any candidate is within the bounds.
- Nothing was chosen: the interval is never shorter than one by itself.

Where many could have been chosen, the chosen one is hardly ever unlucky. The end of the interval on
that side then needs little, and what may go wrong is spent on the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbench.core.arrays import Floats, Mask

_REACHES = (0.0, 1.5, 3.0)  # by how many standard errors candidates are supposed to be nearer
# The part of the error rate that is spent on the suppositions made; the rest is left for truths
# that none of them is.
_KEPT = 0.9
_ROUNDING = 1e-9
_AS_SHORT = 1.003  # how much longer than the shortest an interval may be for being symmetric
_RARELY = 0.02  # a supposition is left out under which any candidate is within bounds this rarely


@dataclass(frozen=True, eq=False)
class Candidates:
    """Estimates of k candidates, one of which is chosen, and draws of their joint error.

    The objective of a candidate is the largest size of m signed differences ``parts @ contrasts``
    (or the one signed value itself), smaller being better.

    Attributes
    ----------
    parts : (k, B) estimates that differences are taken of, such as the rates of B groups.
    part_noise : (T, k, B) normal draws around 0 of the parts' errors, of all candidates together.
    contrasts : (m, B) the weights of the parts in each difference.
    values : (k, C) other quantities, each of which must be at most its bound.
    value_noise : (T, k, C) the errors of the values in the same draws.
    bounds : (C,) the largest allowed values; infinity for what is only reported.
    folded : whether signs do not matter; otherwise m is 1 and the objective has a sign.
    """

    parts: Floats
    part_noise: Floats
    contrasts: Floats
    values: Floats
    value_noise: Floats
    bounds: Floats
    folded: bool = True

    @cached_property
    def differences(self) -> Floats:
        """The signed differences, (k, m)."""
        return np.asarray(self.parts @ self.contrasts.T)

    @cached_property
    def objectives(self) -> Floats:
        """The objectives of the candidates, which are minimised, (k,)."""
        sizes: Floats = np.abs(self.differences) if self.folded else self.differences
        return np.asarray(sizes.max(axis=1))

    @cached_property
    def errors(self) -> Floats:
        """Standard errors of the differences, (k, m)."""
        covariance = np.einsum("tkb,tkc->kbc", self.part_noise, self.part_noise, optimize=True)
        variance = np.einsum("mb,kbc,mc->km", self.contrasts, covariance, self.contrasts)
        return np.asarray(np.sqrt(variance / len(self.part_noise)))

    @cached_property
    def value_errors(self) -> Floats:
        """Standard errors of the values, (k, C)."""
        return np.asarray(np.sqrt((self.value_noise**2).mean(axis=0)))

    @cached_property
    def widest(self) -> NDArray[np.intp]:
        """The position of each candidate's largest difference, (k,)."""
        sizes = np.abs(self.differences) if self.folded else self.differences
        return np.asarray(sizes.argmax(axis=1))

    @cached_property
    def signs(self) -> Floats:
        """The sign of each candidate's largest difference, (k,): 1 where signs matter."""
        widest = self.differences[np.arange(len(self.parts)), self.widest]
        return np.where(self.folded & (widest < 0), -1.0, 1.0)

    @cached_property
    def eligible(self) -> Mask:
        """Whether every value is within its bound, (k,)."""
        return np.asarray((self.values <= self.bounds).all(axis=1))

    def noise(self, difference: int) -> Floats:
        """Return the draws of the error of one difference, (T, k)."""
        return np.asarray(self.part_noise @ self.contrasts[difference])

    def widest_noise(self) -> Floats:
        """Return the draws of the error of each candidate's largest difference, (T, k)."""
        noise = np.einsum("tkb,kb->tk", self.part_noise, self.contrasts[self.widest], optimize=True)
        return np.asarray(noise * self.signs)


def critical(tail: Any) -> Any:
    """Return the quantile above which an error over its standard error has this chance."""
    return -special.ndtri(tail)


def chance_above(quantile: Any) -> Any:
    """Return the chance that an error over its standard error is above a quantile."""
    return special.ndtr(-quantile)


@dataclass(frozen=True)
class Tails:
    """The chance of an error beyond each limit of an interval; 0.025 each at 95 % by itself."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Correction:
    """The tails with which intervals hold for the candidate that was chosen.

    Attributes
    ----------
    objective : the tails of the objective's interval.
    values : the tails of the interval of each other quantity.
    together : the tail above each upper limit with which all upper limits hold at once.
    plausible : (k,) which candidates could have been chosen with other rows.
    """

    objective: Tails
    values: tuple[Tails, ...]
    together: float
    plausible: Mask


def choose(candidates: Candidates) -> int | None:
    """Return the position of the smallest objective within all bounds; None if none is within."""
    allowed = np.flatnonzero(candidates.eligible & np.isfinite(candidates.objectives))
    if not len(allowed):
        return None
    return int(allowed[candidates.objectives[allowed].argmin()])


def correction(candidates: Candidates, *, level: float = 0.95) -> Correction:
    """Return the tails that make the chosen candidate's intervals hold at a level.

    Each interval holds at that level for the candidate that :func:`choose` returns, whichever it
    is; the two sides of an interval share what may go wrong so that it is as short as can be.

    Raises
    ------
    ValueError : candidates of which none is within the bounds.
    """
    chosen = choose(candidates)
    if chosen is None:
        raise ValueError("no candidate is within the bounds: none is chosen")
    without_choice, *choices = _simulate_choices(candidates, chosen)
    missed = 1 - level
    tails = [
        _shortest(
            without_choice.errors[:, quantity],
            [(choice.errors[:, quantity], choice.allowed * missed) for choice in choices],
            missed,
        )
        for quantity in range(without_choice.errors.shape[1])
    ]
    all_choices = [without_choice, *choices]
    lowest = [_lowest_error(choice, choice.allowed * missed) for choice in all_choices]
    return Correction(
        objective=tails[0],
        values=tuple(tails[1:]),
        together=float(chance_above(-min(lowest))),
        plausible=np.any([choice.plausible for choice in all_choices], axis=0),
    )


@dataclass(frozen=True, eq=False)
class _SimulatedChoice:
    """The choice made again in draws of all errors, for one supposition of what is true.

    Attributes
    ----------
    errors : (T', 1 + C) by how many standard errors the chosen one's objective and values are too
        large, in the draws in which a candidate is within the bounds.
    plausible : (k,) which candidates are chosen in any draw.
    allowed : the share of the error rate that may be spent under this supposition. The rest is for
        suppositions that were not made: none where nothing depends on what else could have been
        chosen.
    """

    errors: Floats
    plausible: Mask
    allowed: float = 1.0


def _simulate_choices(candidates: Candidates, chosen: int) -> Iterator[_SimulatedChoice]:
    """Yield the choice made again under every supposition.

    Under the first supposition there is no choice: it is always the candidate `chosen`.
    """
    noise, value_noise = candidates.widest_noise(), candidates.value_noise
    spread = _spread(noise)
    value_spread = np.where(candidates.value_errors > 0, candidates.value_errors, 1)
    n_candidates = len(candidates.parts)
    draws = np.arange(len(noise))

    def standardise(objective_errors: Floats, winners: NDArray[np.intp]) -> Floats:
        """Return the errors of the winner of each draw, in standard errors, (T, 1 + C)."""
        value_errors = value_noise[draws, winners] / value_spread[winners]
        return np.column_stack([objective_errors / spread[winners], value_errors])

    without_choice = standardise(noise[:, chosen], np.full(len(noise), chosen))
    yield _SimulatedChoice(without_choice, np.arange(n_candidates) == chosen)
    for supposed_values in _supposed_values(candidates):
        within: Mask = np.asarray((value_noise <= candidates.bounds - supposed_values).all(axis=2))
        has_winner = within.any(axis=1)
        if has_winner.mean() < _RARELY:
            continue
        for truth in _supposed_objectives(candidates, chosen, noise):
            observed = np.abs(truth + noise) if candidates.folded else truth + noise
            winners = np.where(within, observed, np.inf).argmin(axis=1)
            errors = standardise(observed[draws, winners] - truth[winners], winners)
            is_same = (np.abs(errors - without_choice) < _ROUNDING).all(axis=1)
            same_share = float((has_winner & is_same).mean())
            yield _SimulatedChoice(
                errors=errors[has_winner],
                plausible=np.bincount(winners[has_winner], minlength=n_candidates) > 0,
                allowed=_KEPT + (1 - _KEPT) * same_share,
            )


def _spread(noise: Floats) -> Floats:
    """Return the standard errors (k,) of draws (T, k); 1 where they do not vary."""
    spread = np.sqrt((noise**2).mean(axis=0))
    return np.asarray(np.where(spread > 0, spread, 1))


def _supposed_objectives(candidates: Candidates, chosen: int, noise: Floats) -> Iterator[Floats]:
    """Yield supposed true objectives, (k,): as they look, and nearer to the chosen one's.

    Those that come to lie with the chosen one's are as large as they look on average, and a little
    more: a gap near 0 cannot be much smaller than it is.
    """
    size = candidates.objectives
    ahead = size - size[chosen]
    error = np.sqrt(((noise - noise[:, [chosen]]) ** 2).mean(axis=0))
    for reach in _REACHES:
        shrunk = np.sign(ahead) * np.maximum(np.abs(ahead) - reach * error, 0)
        alike = shrunk == 0
        level = size[alike].mean() + _REACHES[1] * noise[:, alike].mean(axis=1).std()
        yield np.maximum(level + shrunk, 0) if candidates.folded else level + shrunk


def _supposed_values(candidates: Candidates) -> Iterator[Floats]:
    """Yield supposed true values, (k, C): as they look, at bounds, or alike and larger."""
    yield candidates.values
    bounded = np.isfinite(candidates.bounds)
    if not bounded.any():
        return
    beyond = np.where(bounded, candidates.values - candidates.bounds, 0)
    reach = _REACHES[-1] * candidates.value_errors
    near = bounded & (np.abs(beyond) <= reach)
    shrunk = np.sign(beyond) * np.maximum(np.abs(beyond) - reach, 0)
    yield np.where(bounded, np.where(bounded, candidates.bounds, 0) + shrunk, candidates.values)
    count = np.maximum(near.sum(axis=0), 1)
    mean = (candidates.values * near).sum(axis=0) / count
    error = ((candidates.value_noise * near).sum(axis=1) / count).std(axis=0)
    yield np.where(near, mean + _REACHES[1] * error, candidates.values)


def _lowest_error(choice: _SimulatedChoice, share: float) -> float:
    """Return the `share` quantile of the lowest error of any quantity in a draw."""
    errors = np.sort(choice.errors.min(axis=1))
    return float(errors[int(share * len(errors))])


def _shortest(
    without_choice: Floats, choices: Sequence[tuple[Floats, float]], missed: float
) -> Tails:
    """Return the tails of the shortest interval that holds often enough under each supposition.

    Parameters
    ----------
    without_choice : (T,) errors without a choice, in the same draws. How often they are beyond a
        limit is known, so that the luck of the draws can be subtracted.
    choices : errors under each supposition, with the share of them that may be missed.
    missed : the share that a single interval may miss.
    """
    lower = missed * np.concatenate([np.geomspace(1e-3, 0.5, 40), np.linspace(0.5, 0.95, 46)[1:]])
    below, above = critical(lower), critical(missed - lower)
    steps = np.linspace(0, 4, 500) + critical(missed)
    for errors, allowed in choices:
        excess_below = _share_above(errors, below) - _share_above(without_choice, below)
        left_for_upper = allowed - lower - excess_below
        excess_above = _share_above(-errors, steps), _share_above(-without_choice, steps)
        chance = chance_above(steps) + excess_above[0] - excess_above[1]
        chance = np.maximum.accumulate(chance[::-1])[::-1]
        needed = np.append(steps, np.inf)[np.searchsorted(-chance, -left_for_upper)]
        above = np.maximum(above, needed)
    width = below + above
    # Of intervals that are as good as the shortest, the one that is most alike on both sides.
    asymmetry = np.where(width <= _AS_SHORT * width.min(), np.abs(lower - missed / 2), np.inf)
    best = int(asymmetry.argmin())
    return Tails(float(lower[best]), float(chance_above(above[best])))


def _share_above(errors: Floats, limits: Floats) -> Floats:
    """Return the shares of errors that are above limits."""
    return np.asarray(1 - np.searchsorted(np.sort(errors), limits, side="right") / len(errors))


def surely_larger(candidates: Candidates, other: int, possible: Mask, reach: float) -> Floats:
    """Return lower limits of how much larger every objective is than another candidate's, (k,).

    Parameters
    ----------
    candidates : the candidates.
    other : the position of the other candidate.
    possible : (m, 2) which differences, with the sign 1 and -1, may be the other's largest.
    reach : how many standard errors of the difference are subtracted.
    """
    other_noise = candidates.part_noise[:, other] @ candidates.contrasts.T
    covariance = candidates.widest_noise().T @ other_noise / len(other_noise)
    widest_errors = candidates.errors[np.arange(len(candidates.parts)), candidates.widest]
    least = np.full(len(candidates.parts), np.inf)
    for side, sign in enumerate((1.0, -1.0)):
        kept = possible[:, side]
        variance = (
            widest_errors[:, None] ** 2 + candidates.errors[other] ** 2 - 2 * sign * covariance
        )
        error = np.sqrt(np.maximum(variance, 0))[:, kept]
        ahead = candidates.objectives[:, None] - sign * candidates.differences[other][kept]
        least = np.minimum(least, (ahead - reach * error).min(axis=1, initial=np.inf))
    return least


def joint_noise(factor: Floats, *, draws: int, generator: np.random.Generator) -> Floats:
    """Return normal draws with the covariance ``factor.T @ factor``.

    Parameters
    ----------
    factor : (n, ...) what every row adds to the error of each estimate.
    draws : the number of draws.
    generator : draws.

    Returns
    -------
    (draws, ...) the draws.
    """
    flat = np.asarray(factor, np.float32).reshape(len(factor), -1)
    if 2 * flat.shape[1] < min(len(flat), draws):
        values, vectors = np.linalg.eigh((flat.T @ flat).astype(float))
        flat = (vectors * np.sqrt(np.maximum(values, 0))).T.astype(np.float32)
    weights = generator.standard_normal((draws, len(flat)), dtype=np.float32)
    return np.asarray(weights @ flat, float).reshape(draws, *factor.shape[1:])
