"""Adverse impact ratios: the rates of groups divided by that of a reference group.

The reference group may be given, or be the one with the highest rate. Noisy rates do not show for
certain which group that is: the interval of a ratio to the highest rate allows for every candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fairbench.core.arrays import Floats, Mask
from fairbench.inference.gaps import pairs
from fairbench.inference.rates import Limits, probability_ratio_below, ratio_limits

FOUR_FIFTHS = 0.8


@dataclass(frozen=True, eq=False)
class ImpactLimits:
    """Ratios of G groups' rates to one rate, with their intervals; of several samples at once.

    Attributes
    ----------
    ratios : (..., G) the ratios with limits; NaN where the rate of the reference group is 0.
    below : (..., G) the confidence that a ratio is under a bound, from the confidence distribution
        of the same interval: 2.5 % if the lower limit of the 95 % interval equals the bound, 97.5 %
        if the upper limit does. The statement "under the bound", made if the confidence is 95 % or
        more, is wrong in at most one case of twenty; so is its opposite, made at 5 % or less.
    reference : (...) the index of the reference group.
    """

    ratios: Limits
    below: Floats
    reference: NDArray[np.intp]


def ratios_to_group(
    rates: Limits,
    reference: int,
    *,
    bound: float = FOUR_FIFTHS,
    level: float = 0.95,
    correlation: Floats | float = 0.0,
) -> ImpactLimits:
    """Return the ratios to the rate of one group that was chosen independently of the rates.

    Parameters
    ----------
    rates : (..., G) the rates with limits at that level.
    reference : the index of the group that others are compared with.
    bound : the bound of the ratios that `below` is about.
    level : the level of the intervals.
    correlation : (..., G, G) correlations of the groups' errors, where groups share clusters.
    """
    of_group = rates.take([reference])
    shared = correlation if isinstance(correlation, float) else correlation[..., :, reference]
    ratios = ratio_limits(rates, of_group, shared)
    below = probability_ratio_below(rates, of_group, bound, level=level, correlation=shared)
    for ratio in ratios:
        ratio[..., reference] = 1.0
    below[..., reference] = float(bound > 1)
    return ImpactLimits(ratios, below, np.asarray(reference))


def wider_level(level: float, highest: Mask) -> float:
    """Return the level at which a group's ratios to all that it is compared with hold at once."""
    return 1 - (1 - level) / int(_compared(highest).sum(axis=1).max())


def _compared(highest: Mask) -> Mask:
    """Return the groups (G, G) that each is compared with: all others that may be the highest."""
    return highest & ~np.eye(len(highest), dtype=bool)


def ratios_to_highest(
    rates: Limits,
    wider: Limits,
    highest: Mask,
    *,
    bound: float = FOUR_FIFTHS,
    level: float = 0.95,
    correlation: Floats | float = 0.0,
) -> ImpactLimits:
    """Return the ratios to the highest rate of any group, whichever that truly is.

    Parameters
    ----------
    rates : (..., G) the rates with limits at the level.
    wider : (..., G) the rates with limits at :func:`wider_level` of it (Bonferroni).
    highest : (G,) which of the groups may be the one compared with, two or more.
    bound, level : as in :func:`ratios_to_group`.
    correlation : (..., G, G) correlations of the groups' errors, where groups share clusters.

    Notes
    -----
    A ratio to the highest rate is the smallest of the ratios to all others. Its upper limit is the
    smallest simultaneous upper limit. Its lower limit is the smallest pointwise lower limit, which
    needs no correction, as the highest rate is that of one group. `below` follows from the
    simultaneous limits if it is over one half, and from the pointwise ones if it is under; if they
    disagree it is one half.
    """
    compared = _compared(highest)
    pointwise = ratio_limits(*pairs(rates), correlation)
    upper = ratio_limits(*pairs(wider), correlation).upper
    among = np.where(highest, rates.value, -np.inf)
    top = among.max(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(top > 0, rates.value / top, np.nan)
    most = np.where(highest, 1.0, np.inf)
    smallest_limits = (
        np.where(compared, pointwise.lower, np.inf).min(axis=-1),
        np.where(compared, upper, np.inf).min(axis=-1),
    )
    ratios = Limits(value, *(np.minimum(limit, most) for limit in smallest_limits))
    below_any = _below_any(rates, compared, bound, level, correlation)
    rivals = int(compared.sum(axis=1).max())
    below_any_wider = _below_any(wider, compared, bound, wider_level(level, highest), correlation)
    simultaneous = 1 - rivals * (1 - below_any_wider)
    below = np.clip(0.5, np.minimum(simultaneous, below_any), np.maximum(simultaneous, below_any))
    return ImpactLimits(ratios, below, among.argmax(axis=-1))


def _below_any(
    rates: Limits, compared: Mask, bound: float, level: float, correlation: Floats | float
) -> Floats:
    """Return how sure it is that the surest of the ratios compared is under a bound."""
    probabilities = probability_ratio_below(
        *pairs(rates), bound, level=level, correlation=correlation
    )
    below: Floats = np.where(compared, probabilities, 0.0).max(axis=-1)
    return below


def difference_by_chance(selected: tuple[int, int], rows: tuple[int, int]) -> tuple[float, float]:
    """Return by how many standard errors two rates differ, and how often chance does as much.

    Parameters
    ----------
    selected, rows : whole numbers of a group, and of the group it is compared with.

    Returns
    -------
    The first rate less the second over its standard error if both are alike, 0 where that is 0; and
    the p-value of Fisher's exact test, two-sided.
    """
    (first, second), (first_rows, second_rows) = selected, rows
    pooled = (first + second) / (first_rows + second_rows)
    error = np.sqrt(pooled * (1 - pooled) * (1 / first_rows + 1 / second_rows))
    deviations = float((first / first_rows - second / second_rows) / error) if error > 0 else 0.0
    table = [[first, first_rows - first], [second, second_rows - second]]
    from scipy.stats import fisher_exact  # takes a third of a second, which most audits do without

    return deviations, float(fisher_exact(table).pvalue)


def is_under(
    selected: tuple[int, int], rows: tuple[int, int], bound: Fraction = Fraction(4, 5)
) -> bool:
    """Return whether a rate is under so much of another, exactly: 4 of 10 is not under 80 % of 5.

    Parameters
    ----------
    selected, rows : whole numbers of a group, and of the group it is compared with.
    """
    (first, second), (first_rows, second_rows) = selected, rows
    return Fraction(first, first_rows) < bound * Fraction(second, second_rows)


def selections_that_turn(
    selected: tuple[int, int], rows: tuple[int, int], bound: Fraction = Fraction(4, 5)
) -> tuple[int | None, int | None]:
    """Return how many different persons selected would turn what a ratio says.

    One different person selected is one more of one group and one less of the other: as many are
    selected in all. That is what the agencies ask of small numbers (44 FR 11996, question 21).

    Parameters
    ----------
    selected, rows : whole numbers of a group, and of the group it is compared with.

    Returns
    -------
    The fewest that take the ratio to the bound, or under it where it is not under; and, where it
    is, the fewest that give the group the higher rate. None where no number does.
    """
    (first, second), (first_rows, second_rows) = selected, rows
    under = is_under(selected, rows, bound)
    most = min(first_rows - first, second) if under else min(first, second_rows - second)
    moved = np.arange(most + 1) * (1 if under else -1)
    rate, compared = (
        (first + moved) * second_rows,
        (second - moved) * first_rows,
    )
    below = rate * bound.denominator < compared * bound.numerator
    reversed_ = _first(rate > compared) if under else None
    return _first(below != under), reversed_


def _first(holds: NDArray[np.bool_]) -> int | None:
    """Return the first position where something holds; None where it never does."""
    return int(holds.argmax()) if holds.any() else None
