"""The family of the fairest of many: what is printed of the candidate that was chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy import special

from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.selection import Candidates, choose, correction
from fairbench.inference.rates import quantile

DRAWS = 1000
# True gaps, in standard errors of one candidate.
SHAPES = {
    "equally unfair": (9.0, 9.0),
    "spread from 6 to 12 errors": (6.0, 12.0),
    "spread from 0 to 4 errors": (0.0, 4.0),
    "unfair by 2.5 errors": (2.5, 2.5),
}
# Gaps and errors are correlated by so much; the limit on errors lies where all of them do.
TRADE_OFF = -0.5


@dataclass(frozen=True)
class Many:
    """Candidates whose gaps and errors are normal, with standard errors of 1.

    Attributes
    ----------
    correlation : of any two candidates' errors of estimation.
    bounded : whether candidates are chosen among those whose error rate is within a limit.
    """

    count: int
    correlation: float
    shape: str
    bounded: bool

    @property
    def name(self) -> str:
        """What tables call it."""
        limit = ", among the accurate" if self.bounded else ""
        return f"{self.count} of correlation {self.correlation:g}, {self.shape}{limit}"

    @property
    def slow(self) -> bool:
        """Whether fewer replications are enough."""
        return self.count > 100

    def noise(self, draws: int, draw: np.random.Generator) -> Floats:
        """Draw the errors (T, k, 2) of estimation of gaps and of error rates."""
        shared, own = (
            draw.standard_normal((draws, 1, 2)),
            draw.standard_normal((draws, self.count, 2)),
        )
        noise = np.sqrt(self.correlation) * shared + np.sqrt(1 - self.correlation) * own
        gap = TRADE_OFF * noise[..., 1] + np.sqrt(1 - TRADE_OFF**2) * noise[..., 0]
        return np.stack([gap, noise[..., 1]], axis=-1)


@dataclass(frozen=True)
class Estimated:
    """Candidates of R data sets, (R, k, 2) estimates and their joint noise (T, k, 2)."""

    estimates: Floats
    noise: Floats
    bound: float

    def candidates(self, estimates: Floats) -> Candidates:
        """Return the candidates of one data set."""
        return Candidates(
            estimates[:, :1],
            self.noise[..., :1],
            np.ones((1, 1)),
            estimates[:, 1:],
            self.noise[..., 1:],
            np.array([self.bound]),
        )


def _populations(short: bool) -> Sequence[Many]:
    counts = (10,) if short else (10, 50, 500)
    correlations = (0.0, 0.9) if short else (0.0, 0.7, 0.9)
    result = [Many(*each) for each in product(counts, correlations, SHAPES, (False, True))]
    return [each for each in result if not (each.slow and each.bounded)]


def _draw(population: Many, replications: int, draw: np.random.Generator) -> Sample:
    gaps = np.linspace(*SHAPES[population.shape], population.count)
    truth = np.stack([gaps, np.zeros(population.count)], axis=-1)
    estimates = truth + population.noise(replications, draw)
    bound = 0.0 if population.bounded else np.inf
    data = Estimated(estimates, population.noise(DRAWS, draw), bound)
    places = [choose(data.candidates(estimate)) for estimate in estimates]
    result = np.array([[np.nan] * 2 if place is None else truth[place] for place in places])
    return Sample(
        data,
        {
            "gap of the chosen candidate": result[:, 0],
            "error rate of the chosen candidate": result[:, 1],
        },
    )


def _intervals(data: Estimated, *, corrected: bool) -> Mapping[str, Interval]:
    ends = np.full((2, 2, len(data.estimates)), np.nan)
    for r, estimates in enumerate(data.estimates):
        candidates = data.candidates(estimates)
        place = choose(candidates)
        if place is None:
            continue
        below = above = np.full(2, quantile(LEVEL))
        if corrected:
            made = correction(candidates, level=LEVEL)
            below, above = (
                -special.ndtri([getattr(each, side) for each in (made.objective, made.values[0])])
                for side in ("lower", "upper")
            )
        seen = np.array([candidates.objectives[place], estimates[place, 1]])
        ends[:, :, r] = seen - below, seen + above
        ends[0, 0, r] = max(ends[0, 0, r], 0)
    names = ("gap of the chosen candidate", "error rate of the chosen candidate")
    return {name: (ends[0, i], ends[1, i]) for i, name in enumerate(names)}


def _ours(data: Estimated, _: np.random.Generator) -> Mapping[str, Interval]:
    return _intervals(data, corrected=True)


def _naive(data: Estimated, _: np.random.Generator) -> Mapping[str, Interval]:
    return _intervals(data, corrected=False)


FAMILIES = (
    Family(
        "chosen",
        "The fairest of many candidates",
        "The candidate with the smallest estimated gap is chosen, among all or (*among the "
        "accurate*) among those whose estimated error rate is within a limit. The true error rate "
        "of every candidate is exactly at the limit. Gap and error rate are estimated on the same "
        f"rows that were used to choose; their estimation errors are correlated by {TRADE_OFF:g}. "
        "*50 of correlation 0.7, unfair by 2.5 errors* means: 50 candidates, whose estimation "
        "errors are correlated by 0.7 from one to another, and whose true gaps are all 2.5 "
        "standard errors. Widths are in standard errors. *as if not chosen* ignores the choice.",
        _populations,
        _draw,
        (Construction("ours", _ours), Construction("as if not chosen", _naive)),
        replications=200,
    ),
)
