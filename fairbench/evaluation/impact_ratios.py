"""Adverse impact: how often each group is selected, against a group that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.data.distinct_rows import tally
from fairbench.data.groups import codes_of
from fairbench.inference.impact import ratios_to_group, ratios_to_highest, wider_level
from fairbench.inference.rates import Limits, rate_limits
from fairbench.inference.survey import Design, SurveyCounts
from fairbench.metrics.rates import selection_rate

# A group of fewer rows, or of a smaller share of them, is compared, and nobody is compared with it.
# No rule says so: 2 % is where rules begin to look at groups, of the data (6 RCNY 5-301(d)) or of a
# labor force (29 CFR 1607.15(A)(1)), and their ratios are over the highest rate of all groups.
FEWEST_ROWS, SMALLEST_SHARE = 10, 0.02
LARGE_ENOUGH = f"of at least {FEWEST_ROWS} rows and {100 * SMALLEST_SHARE:g} % of all"
COMPARED_WITH = (
    f"Groups of fewer than {FEWEST_ROWS} rows or {100 * SMALLEST_SHARE:g} % of all are not taken "
    "as the group that others are compared with, unless fewer than two groups are larger."
)


@dataclass(frozen=True)
class ImpactRatio:
    """How often a group is selected, and the ratio to the rate of the group compared with.

    Attributes
    ----------
    rows : how many rows the group has.
    rate, rate_lower, rate_upper : the share selected, with its interval.
    reference : the group compared with.
    given : whether somebody named the reference; otherwise it is the group selected most often,
        and the interval allows for another group being it in truth.
    ratio, lower, upper : the impact ratio with its interval; a named reference itself has the
        ratio 1 and no interval.
    below : the confidence that the ratio is under four fifths: 0.975 if the interval ends there.
    """

    attribute: str
    group: str
    rows: int
    rate: float
    rate_lower: float
    rate_upper: float
    reference: str
    given: bool
    ratio: float
    lower: float
    upper: float
    below: float

    @property
    def is_given_reference(self) -> bool:
        """Whether it is the group that somebody named to compare the others with."""
        return self.given and self.group == self.reference


def impact_ratios_of(
    attribute: str,
    groups: pd.Series,
    selected: NDArray[np.bool_],
    *,
    reference: str = "",
    design: Design | None = None,
    times: NDArray[np.int64] | None = None,
    level: float = 0.95,
) -> list[ImpactRatio]:
    """Return the impact ratios of the groups of one attribute that have rows.

    Parameters
    ----------
    groups : (n,) categorical labels.
    selected : (n,) whether each row is selected.
    reference : the group to compare with; without one, the group selected most often of those of
        at least :data:`FEWEST_ROWS` rows and :data:`SMALLEST_SHARE` of all.
    times : (n,) how often each row comes; once by default.
    """
    codes, names = codes_of(groups)
    if len(names) < 2:
        return []
    of_selected = selected if times is None else np.where(selected, times, 0)
    rows = tally(codes, times)
    number = np.bincount(codes, of_selected)
    survey = None
    if design is not None:
        survey = SurveyCounts.of(selected.astype(np.intp), codes, design, groups=len(names))

    def at_level(level: float) -> Limits:
        if survey is not None:
            return survey.limits(selection_rate, level=level)
        return rate_limits(number, rows, level=level)

    shared = 0.0 if survey is None else survey.correlation(selection_rate)
    return impact_ratios_at(
        attribute, names, rows, at_level, reference=reference, level=level, correlation=shared
    )


def impact_ratios_at(
    attribute: str,
    names: Sequence[str],
    rows: NDArray[np.intp],
    at: Callable[[float], Limits],
    *,
    reference: str = "",
    level: float = 0.95,
    correlation: Floats | float = 0.0,
) -> list[ImpactRatio]:
    """Return the impact ratios of groups (G,) whose rates have limits already.

    Parameters
    ----------
    rows : (G,) how many rows each group has, which decides whom others may be compared with.
    at : a function that returns the rates with their limits at a level.
    correlation : (G, G) the correlations of the rates' errors.
    """
    given = reference in names
    rates = at(level)
    if given:
        reference_index = list(names).index(reference)
        impact = ratios_to_group(rates, reference_index, level=level, correlation=correlation)
    else:
        highest = may_be_compared_with(rows)
        wider = at(wider_level(level, highest))
        impact = ratios_to_highest(rates, wider, highest, level=level, correlation=correlation)
    return [
        ImpactRatio(
            attribute,
            name,
            int(rows[g]),
            *rates.at(g),
            names[int(impact.reference)],
            given,
            *impact.ratios.at(g),
            impact.below[g].item(),
        )
        for g, name in enumerate(names)
    ]


def among_best(score: Floats, share: float, *, high: bool) -> tuple[NDArray[np.bool_], Floats]:
    """Return who (..., n) is in the best share by score, and the cuts (...) that they reach.

    The cut is the quantile of all scores, between two of them where it falls there; whoever has the
    cut itself is in, so that of scores with ties more may be in than the share.

    Parameters
    ----------
    score : (..., n) the scores of each row.
    high : whether high scores are good.
    """
    cut = np.quantile(score, 1 - share if high else share, axis=-1)
    edge = cut[..., None]
    return (score >= edge if high else score <= edge), cut


def may_be_compared_with(rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Say which groups of so many rows (G,) are large enough that others are compared with them.

    All, where under two are.
    """
    enough: NDArray[np.bool_] = (rows >= FEWEST_ROWS) & (rows >= SMALLEST_SHARE * rows.sum())
    return enough if enough.sum() > 1 else np.ones(len(rows), bool)
