"""Rates and gaps of which the rows tell only bounds, whatever it is that they lack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbench.audits.findings import LARGE, NOT_MEASURED, OPEN, Finding, answer_gap
from fairbench.audits.gaps import RATE_OF
from fairbench.core.formats import interval
from fairbench.evaluation.group_intervals import GapInterval
from fairbench.inference.partial.ends import Ends, GapBounds, gap_bounds, gap_size
from fairbench.metrics.rates import Rate, base_rate
from fairbench.reporting.document.model import TableCell

CANNOT = "cannot be known"  # however many rows and labels there are
RATES: tuple[Rate, ...] = (*RATE_OF.values(), base_rate)
TITLE = "What cannot be known"


@dataclass(frozen=True, eq=False)
class BoundedGap:
    """The bounds of a gap, and what is said of it; the verdict may be `CANNOT`."""

    finding: Finding
    bounds: GapBounds = GapBounds(np.nan, np.nan, (np.nan, np.nan))
    verdict: str = NOT_MEASURED

    @property
    def row(self) -> dict[str, Any]:
        """What is known of the gap, in plain columns."""
        about = {"attribute": self.finding.attribute, "measure": self.finding.measure}
        return {**about, **asdict(self.bounds), "verdict": self.verdict}


def bounded_gap(template: Finding, names: Sequence[str], ends: Ends, risk: float) -> BoundedGap:
    """Return what is said of the gap between groups, from the ends of their rates.

    Parameters
    ----------
    template : the finding of a gap that is not measured, with the reason.
    names : of the groups; one that nothing is known of has been left out.
    risk : the probability with which the answer may be wrong.
    """
    if len(names) < 2:
        return BoundedGap(template)
    answer = answer_gap(lambda level: GapInterval(*gap_size(ends, level)), template.bound, risk)
    bounds, verdict, needs = gap_bounds(ends), answer.verdict, ""
    least, most = bounds.size
    if verdict == OPEN and (most < template.bound or least > template.bound):
        needs = "more rows may settle it"
    elif verdict == OPEN:
        verdict = CANNOT
        needs = f"no number of rows settles it: anything in {interval(least, most)} is possible"
    finding = replace(
        template,
        verdict=answer.verdict,
        groups=(names[answer.high], names[answer.low]) if verdict == LARGE else (),
        lower=bounds.interval[0],
        upper=bounds.interval[1],
        needs=needs,
    )
    return BoundedGap(finding, bounds, verdict)


def verdict_cell(verdict: str) -> TableCell:
    """Return the verdict on a bounded gap."""
    return TableCell(verdict, mark=OPEN if verdict == CANNOT else verdict)


def groups_measured(ends: Ends) -> NDArray[np.intp]:
    """Return the positions of the groups of whose rate anything is known."""
    return np.flatnonzero(np.isfinite(ends.lower + ends.upper))


def columns_of(ends: Ends) -> dict[str, NDArray[np.float64]]:
    """Return the bounds of each group's rate, and the ends of an interval that holds them."""
    lower, upper = ends.interval()
    return {"lowest": ends.lower, "highest": ends.upper, "lower": lower, "upper": upper}
