"""Which of two algorithms is better by more than a negligible difference, and how probably."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.inference.objectives import Objective

Array = NDArray[np.float64]
FIRST, EQUIVALENT, SECOND = range(3)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Draws of Delta = Theta_A - Theta_B, and the regions of practical equivalence.

    Attributes
    ----------
    objectives : names of the m objectives; of each, more is better.
    delta : (T, m) differences, without draws in which an objective is undefined.
    rope : (m,) half-widths epsilon: |Delta| <= epsilon is practically equivalent.
    undefined : the share of draws that was left out.
    """

    objectives: tuple[str, ...]
    delta: Array
    rope: Array
    undefined: float = 0.0

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The outcome of each draw in base 3: A better 0, equivalent 1, B better 2."""
        digits = 1 + (self.delta < -self.rope).astype(np.int64) - (self.delta > self.rope)
        return digits @ 3 ** np.arange(len(self.objectives) - 1, -1, -1)

    def outcomes(self, inside: NDArray[np.bool_] | None = None) -> Array:
        """Return the probability of every outcome as a (3,) * m array that sums to 1.

        Parameters
        ----------
        inside : (T,) draws to which the events are restricted, such as a highest-density region.
        """
        codes = self.codes if inside is None else self.codes[inside]
        m = len(self.objectives)
        return np.bincount(codes, minlength=3**m).reshape((3,) * m) / len(codes)

    def events(self, inside: NDArray[np.bool_] | None = None) -> dict[str, float]:
        """Return the probabilities of the paper's events; they sum to 1.

        ``A >> B`` (better in some objective, worse in none), ``B >> A``, ``A ~ B`` (equivalent in
        all), and each way of being better in some and worse in others.
        """
        probability = self.outcomes(inside)
        events = dict.fromkeys(event_names(self.objectives), 0.0)
        for outcome in product(range(3), repeat=len(self.objectives)):
            events[event_name(outcome, self.objectives)] += float(probability[outcome])
        return events


A_BETTER, B_BETTER, PRACTICALLY_EQUAL = "A >> B", "B >> A", "A ~ B"


def event_name(outcome: Sequence[int], objectives: Sequence[str]) -> str:
    """Return the event an outcome (one digit an objective) belongs to."""
    if FIRST in outcome and SECOND in outcome:
        sides = {FIRST: "A", SECOND: "B"}
        return ", ".join(
            f"{sides[digit]} {name}"
            for digit, name in zip(outcome, objectives, strict=True)
            if digit != EQUIVALENT
        )
    if FIRST in outcome:
        return A_BETTER
    return B_BETTER if SECOND in outcome else PRACTICALLY_EQUAL


def event_names(objectives: Sequence[str]) -> list[str]:
    """Return the names of all events, mixed ones last."""
    outcomes = product(range(3), repeat=len(objectives))
    names = [event_name(outcome, objectives) for outcome in outcomes]
    return list(dict.fromkeys([A_BETTER, B_BETTER, PRACTICALLY_EQUAL, *names]))


def compare(
    first: Array, second: Array, objectives: Sequence[Objective], rope: Sequence[float] | Array
) -> Comparison:
    """Compare two algorithms by draws of their confusion tables.

    Parameters
    ----------
    first, second : (T, G, 4) tables of A and of B; paired draws give a paired comparison.
    objectives : m objectives.
    rope : m half-widths of the regions of practical equivalence; 0 and infinity are allowed.

    Raises
    ------
    UserError : a rope for each objective is missing or negative, or an objective is undefined in
        every draw.

    Notes
    -----
    Barrainkua et al., AISTATS 2024, section 5. Fairness gaps enter with a minus sign.
    """
    names = tuple(each.name for each in objectives)
    epsilon = np.asarray(rope, float)
    if epsilon.shape != (len(names),) or not (epsilon >= 0).all():
        raise UserError(
            f"rope is {list(rope)}: it needs one number of at least 0 for each of {len(names)} "
            f"objectives ({', '.join(names)})"
        )
    # Columns of contiguous memory: everything after reads one objective at a time.
    delta = np.stack([each(first) - each(second) for each in objectives]).T
    undefined = np.isnan(delta)
    if not undefined.any():
        return Comparison(names, delta, epsilon)
    kept = ~undefined.any(axis=1)
    if not kept.any():
        name = names[int(undefined.mean(axis=0).argmax())]
        raise UserError(f"{name} is undefined in every draw: a group has no rows it rests on")
    return Comparison(names, delta[kept], epsilon, 1 - float(kept.mean()))
