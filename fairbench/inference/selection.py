"""The best of many: intervals for the candidate that was chosen because its value was smallest.

The smallest of many noisy values is smaller than its truth: it was chosen for its luck. Its
interval is widened at the end that luck favours, and at the other end only as far as what chose is
correlated with what is judged. Candidates that could not have been chosen cost nothing (locally
simultaneous inference, Zrnic and Fithian 2024, arXiv 2212.09009), and neither does the share of
them that the data put behind: the chance of being chosen by mistake falls with the distance, as in
the zoom correction (Zrnic and Fithian 2024, arXiv 2411.18569).

Four facts make it narrow, each for all truths and correlations of normal estimates:

- The optimistic end fails where a candidate is lucky *and* could be chosen, so the chance of that
  event for any candidate is held at the level, not that of any error anywhere.
- Of what is chosen for being smallest, the other end needs no correction. If the chosen value were
  above its limit, so would be that of the candidate whose limit is lowest: one candidate.
- A limit on another quantity (error at most c) chooses by that quantity's noise as well. Among
  those that may fall on either side of the limit, all that it could choose counts.
- A choice that sees some noise can mislead about a quantity only through what that noise says of
  it: the chance is at most the mean of the largest conditional chance of any candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_SPENT = 0.02  # the part of what may go wrong that finding the plausible candidates takes
_SMOOTH = 50_000  # how many chances a mean is over, which varies less than a share of draws
_LARGEST = 8.0  # beyond which no critical value is looked for


@dataclass(frozen=True, eq=False)
class Candidates:
    """Estimates of k candidates, one of which is chosen, and draws of their joint error.

    The objective of a candidate is the largest size of m signed differences ``parts @ contrasts``
    (or the one signed value itself), smaller being better.

    Attributes
    ----------
    parts : (k, B) estimates that differences are made of, such as the rates of B groups.
    part_noise : (T, k, B) normal draws around 0 of the parts' errors, of all candidates together.
    contrasts : (m, B) the differences; the objective is the largest size of any.
    values : (k, C) other quantities, of which those with a finite bound must be at most that.
    value_noise : (T, k, C) the same draws' errors of the values.
    bounds : (C,) what a value may be at most; infinity for what is only reported.
    folded : whether signs do not matter; otherwise m is 1 and the objective has a sign.
    freedom : degrees of freedom of the standard errors; infinity where they are as good as known.
    """

    parts: Array
    part_noise: Array
    contrasts: Array
    values: Array
    value_noise: Array
    bounds: Array
    folded: bool = True
    freedom: float = np.inf

    @cached_property
    def differences(self) -> Array:
        """The signed differences, (k, m)."""
        return np.asarray(self.parts @ self.contrasts.T)

    @cached_property
    def objectives(self) -> Array:
        """What is minimised, (k,)."""
        sizes: Array = np.abs(self.differences) if self.folded else self.differences
        return np.asarray(sizes.max(axis=1))

    @cached_property
    def errors(self) -> Array:
        """Standard errors of the differences, (k, m)."""
        covariance = np.einsum("tkb,tkc->kbc", self.part_noise, self.part_noise, optimize=True)
        variance = np.einsum("mb,kbc,mc->km", self.contrasts, covariance, self.contrasts)
        return np.asarray(np.sqrt(variance / len(self.part_noise)))

    @cached_property
    def value_errors(self) -> Array:
        """Standard errors of the values, (k, C)."""
        return np.asarray(np.sqrt((self.value_noise**2).mean(axis=0)))

    @cached_property
    def widest(self) -> NDArray[np.intp]:
        """The position of each candidate's largest difference, (k,)."""
        sizes = np.abs(self.differences) if self.folded else self.differences
        return np.asarray(sizes.argmax(axis=1))

    @cached_property
    def signs(self) -> Array:
        """The sign of each candidate's largest difference, (k,): 1 where signs matter."""
        own = self.differences[np.arange(len(self.parts)), self.widest]
        return np.where(self.folded & (own < 0), -1.0, 1.0)

    @cached_property
    def eligible(self) -> Mask:
        """Whether every value is within its bound, (k,)."""
        return np.asarray((self.values <= self.bounds).all(axis=1))

    def noise(self, difference: int) -> Array:
        """Return the draws of the error of one difference, (T, k)."""
        return np.asarray(self.part_noise @ self.contrasts[difference])

    def own_noise(self) -> Array:
        """Return the draws of the error of each candidate's largest difference, (T, k)."""
        own = np.einsum("tkb,kb->tk", self.part_noise, self.contrasts[self.widest], optimize=True)
        return np.asarray(own * self.signs)

    def critical(self, tail: float) -> float:
        """Return the quantile above which an error over its standard error has this chance."""
        if np.isinf(self.freedom):
            return float(-special.ndtri(tail))
        return float(-special.stdtrit(self.freedom, tail))


@dataclass(frozen=True)
class Tails:
    """The chance that an interval may leave on either side; 0.025 each at 95 % by itself."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Correction:
    """How intervals of the chosen candidate are made so that they hold for the chosen one.

    Attributes
    ----------
    objective : of the objective's interval; `values` : of that of each other quantity.
    plausible : (k,) which candidates could have been chosen with other rows.
    """

    objective: Tails
    values: tuple[Tails, ...]
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
    is. The statement "at most both upper ends" holds at that level for objective and values at
    once where there is one value, as either fails on its upper side half as often.
    """
    tail = (1 - level) * (1 - _SPENT) / 2
    choice = _Choice.of(candidates, (1 - level) * _SPENT)
    lower = _solved(choice.bad_luck(), tail) if choice.borderline.any() else tail
    values = [
        Tails(*(_solved(choice.of_value(column, lucky=lucky), tail) for lucky in (False, True)))
        for column in range(candidates.values.shape[1])
    ]
    objective = Tails(lower, _solved(choice.luck(), tail))
    return Correction(objective, tuple(values), choice.plausible)


Chance: TypeAlias = Callable[[float], float]


def _solved(chance: Chance, tail: float) -> float:
    """Return the tail of the smallest critical value at which a chance is at most `tail`."""
    low, high = float(-special.ndtri(tail)), _LARGEST
    if chance(low) <= tail:
        return tail
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) <= tail else (middle, high)
    return float(special.ndtr(-high))


@dataclass(frozen=True, eq=False)
class _Choice:
    """What other rows could have chosen, as far as these rows tell.

    Attributes
    ----------
    able : (T, k) whether a candidate could have been chosen in a draw.
    borderline : (k,) whether a candidate may lie on either side of a bound.
    worst : (T, k) how many standard errors the objective is too small at most.
    clear : (k,) whether it is known which difference is the largest, and its sign.
    """

    candidates: Candidates
    able: Mask
    borderline: Mask
    worst: Array
    clear: Mask

    @classmethod
    def of(cls, candidates: Candidates, spent: float) -> _Choice:
        count, m = candidates.differences.shape
        statements = 2 * m * count**2 + 2 * candidates.values.size
        reach = candidates.critical(spent / statements)
        possible = _possible(candidates, reach)
        lowest, worst = _shortfalls(candidates, possible)
        slack = candidates.bounds - candidates.values
        margin = slack - reach * candidates.value_errors
        generous = slack + reach * candidates.value_errors
        able: Mask = np.asarray((candidates.value_noise <= generous).all(axis=2))
        ahead = _anchor(candidates, margin)
        if ahead is not None:
            out = (candidates.value_noise[:, ahead] > margin[ahead]).any(axis=1)
            able = able & (out[:, None] | _near(candidates, ahead, lowest, possible, reach))
        near = (margin < reach * candidates.value_errors).any(axis=1)
        border: Mask = np.asarray(near & able.any(axis=0))
        return cls(candidates, able, border, worst, possible.sum(axis=(1, 2)) == 1)

    @property
    def plausible(self) -> Mask:
        """Which candidates could have been chosen at all, (k,)."""
        return np.asarray(self.able.any(axis=0))

    def luck(self) -> Chance:
        """Return the chance that the chosen objective is more than z errors too small, at most.

        Where it is not known which difference is the largest, one of them is, and it fails on one
        side: as often as so many single ones at most, and as any of them on either side at most.
        """
        shortfall = np.where(self.able, self.worst, -np.inf)
        known = shortfall[:, self.clear].max(axis=1, initial=-np.inf)
        single = shortfall[:, ~self.clear]
        unknown, count = single.max(axis=1, initial=-np.inf), (single > -np.inf).any(axis=0).sum()

        def chance(z: float) -> float:
            each = min(count * special.ndtr(-z), (single > z).mean(axis=0).sum())
            return float((known > z).mean() + min(each, (unknown > z).mean()))

        return chance

    def bad_luck(self) -> Chance:
        """Return the chance that bounds choose an objective more than z errors too large."""
        kept = self.plausible
        own = _standard(self.candidates.own_noise())
        centre, spread = _explained(own, self._seen_by_bounds(), kept)
        if not self.clear[kept].all():
            centre = np.abs(centre)
        return _largest_mean(centre, spread)

    def of_value(self, column: int, *, lucky: bool) -> Chance:
        """Return the chance that the chosen one's value is z errors too small (or too large)."""
        kept, noise = self.plausible, _standard(self.candidates.value_noise[:, :, column])
        noise = -noise if lucky else noise
        own = _standard(self.candidates.own_noise())
        features = [own, _mean_of(own, kept)]
        bounded = bool(np.isfinite(self.candidates.bounds[column]))
        if lucky or not bounded:
            features += self._seen_by_bounds(but=column)
        if not (lucky and bounded and self.borderline.any()):
            centre, spread = _explained(noise, features, kept)
            return _largest_mean(centre, spread)
        features.append(_mean_of(noise, self.borderline))
        centre, spread = _explained(noise, features, kept)
        able, border = self.able[:, kept], self.borderline[kept]
        seen = np.where(able & border, noise[:, kept], -np.inf).max(axis=1)
        unseen = _largest(np.where(able, centre, -np.inf)[:, ~border], spread[~border])
        return lambda z: float(np.where(seen > z, 1, special.ndtr(unseen(z))).mean())

    def _seen_by_bounds(self, but: int = -1) -> list[Array]:
        """Return what bounds see: the noise of each borderline candidate, and their mean."""
        if not self.borderline.any():
            return []
        columns = [c for c in np.flatnonzero(np.isfinite(self.candidates.bounds)) if c != but]
        noises = [_standard(self.candidates.value_noise[:, :, c]) for c in columns]
        own = [np.where(self.borderline, noise, 0) for noise in noises]
        return own + [_mean_of(noise, self.borderline) for noise in noises]


def _mean_of(noise: Array, kept: Mask) -> Array:
    """Return the mean over some candidates, repeated for all, (T, k)."""
    return np.broadcast_to(noise[:, kept].mean(axis=1, keepdims=True), noise.shape)


def _standard(noise: Array) -> Array:
    spread = np.sqrt((noise**2).mean(axis=0))
    return np.asarray(noise / np.where(spread > 0, spread, 1))


def _explained(noise: Array, features: list[Array], kept: Mask) -> tuple[Array, Array]:
    """Return what features say of the kept candidates' noise: means (T, k) and sds (k,)."""
    noise = noise[:, kept]
    if not features:
        return np.zeros_like(noise), np.ones(noise.shape[1])
    stacked = np.stack([each[:, kept] for each in features])
    gram = np.einsum("ftk,gtk->kfg", stacked, stacked) / len(noise)
    cross = np.einsum("ftk,tk->kf", stacked, noise) / len(noise)
    weights = np.einsum("kfg,kg->kf", np.linalg.pinv(gram, rcond=1e-8, hermitian=True), cross)
    centre = np.einsum("ftk,kf->tk", stacked, weights)
    return centre, np.sqrt(np.clip(1 - (weights * cross).sum(axis=1), 1e-6, 1))


def _largest_mean(centre: Array, spread: Array) -> Chance:
    """Return the mean over draws of the largest conditional chance of an error above z."""
    largest = _largest(centre[: max(200, _SMOOTH // centre.shape[1])], spread)
    return lambda z: float(special.ndtr(largest(z)).mean())


def _largest(centre: Array, spread: Array) -> Callable[[float], Array]:
    """Return, of z, how many sds the candidate that comes nearest is above it in each draw."""
    scaled, step = np.ascontiguousarray((centre / spread).T), (1 / spread)[:, None]
    return lambda z: np.asarray((scaled - z * step).max(axis=0, initial=-np.inf))


def _possible(candidates: Candidates, reach: float) -> Mask:
    """Say which difference, with which sign, may be a candidate's largest, (k, m, 2)."""
    d, spread = candidates.differences, reach * candidates.errors
    if not candidates.folded:
        return np.stack([np.ones(d.shape, bool), np.zeros(d.shape, bool)], axis=-1)
    least = np.maximum((np.abs(d) - spread).max(axis=1, keepdims=True), 0)
    return np.stack([d + spread >= least, spread - d >= least], axis=-1)


def _shortfalls(candidates: Candidates, possible: Mask) -> tuple[Array, Array]:
    """Return the lowest noise of any difference that may be the largest, and the same per error."""
    shape = candidates.part_noise.shape[:2]
    lowest, worst = np.full(shape, np.inf), np.full(shape, -np.inf)
    for p in np.flatnonzero(possible.any(axis=(0, 2))):
        noise, error = candidates.noise(int(p)), candidates.errors[:, p]
        with np.errstate(invalid="ignore", divide="ignore"):
            scaled = np.where(error > 0, noise / error, 0)
        for side, sign in enumerate((1.0, -1.0)):
            kept = possible[:, p, side]
            lowest = np.where(kept, np.minimum(lowest, sign * noise), lowest)
            worst = np.where(kept, np.maximum(worst, -sign * scaled), worst)
    return lowest, worst


def _anchor(candidates: Candidates, margin: Array) -> int | None:
    """Return the smallest objective that is safely within its bounds, if any is."""
    safe = np.flatnonzero((margin > 2 * candidates.value_errors).all(axis=1))
    return int(safe[candidates.objectives[safe].argmin()]) if len(safe) else None


def _near(candidates: Candidates, anchor: int, lowest: Array, possible: Mask, reach: float) -> Mask:
    """Say in which draws a candidate comes before the anchor, as far as could be, (T, k)."""
    distance = surely_larger(candidates, anchor, possible[anchor], reach)
    distance[anchor] = 0
    d, spread = candidates.differences[anchor], reach * candidates.errors[anchor]
    least = np.maximum((np.abs(d) - spread).max(), 0) if candidates.folded else d[0] - spread[0]
    noise = candidates.part_noise[:, anchor] @ candidates.contrasts.T
    sides = (1.0, -1.0) if candidates.folded else (1.0,)
    top = [(sign * noise + np.minimum(sign * d + spread - least, 0)).max(axis=1) for sign in sides]
    near: Mask = np.max(top, axis=0)[:, None] - lowest >= distance
    near[:, anchor] = True
    return near


def surely_larger(candidates: Candidates, other: int, possible: Mask, reach: float) -> Array:
    """Return how much larger every objective is than another candidate's, at least, (k,).

    Parameters
    ----------
    possible : (m, 2) which differences, with which sign, may be the other's largest.
    reach : how many standard errors of the difference are taken off.
    """
    cross = candidates.part_noise[:, other] @ candidates.contrasts.T
    covariance = candidates.own_noise().T @ cross / len(cross)
    own = candidates.errors[np.arange(len(candidates.parts)), candidates.widest]
    least = np.full(len(candidates.parts), np.inf)
    for side, sign in enumerate((1.0, -1.0)):
        kept = possible[:, side]
        variance = own[:, None] ** 2 + candidates.errors[other] ** 2 - 2 * sign * covariance
        error = np.sqrt(np.maximum(variance, 0))[:, kept]
        ahead = candidates.objectives[:, None] - sign * candidates.differences[other][kept]
        least = np.minimum(least, (ahead - reach * error).min(axis=1, initial=np.inf))
    return least


def joint_noise(factor: Array, *, draws: int, generator: np.random.Generator) -> Array:
    """Return normal draws with the covariance ``factor.T @ factor``.

    Parameters
    ----------
    factor : (n, ...) what every row adds to the error of each estimate.

    Returns
    -------
    (draws, ...).
    """
    flat = np.asarray(factor, np.float32).reshape(len(factor), -1)
    if 2 * flat.shape[1] < min(len(flat), draws):
        values, vectors = np.linalg.eigh((flat.T @ flat).astype(float))
        flat = (vectors * np.sqrt(np.maximum(values, 0))).T.astype(np.float32)
    weights = generator.standard_normal((draws, len(flat)), dtype=np.float32)
    return np.asarray(weights @ flat, float).reshape(draws, *factor.shape[1:])
