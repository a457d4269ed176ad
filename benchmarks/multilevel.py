"""How often intervals of the multilevel model, and of means over families, hold on simulations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.measure import show
from fairbench.core.arrays import Floats
from fairbench.inference.comparing.family_means import family_means, mean_over_families
from fairbench.inference.comparing.multilevel import MeasuredDifferences, fit

SIZES = (1,) * 12 + (2,) * 4 + (3, 3, 4, 6)  # data sets of each of twenty families
DIFFERENCES, DRAWS = 600, 400
SKEWED = 0.0
CASES: dict[str, dict[str, float]] = {
    "normal effects": {},
    "effects of a t of 3 degrees of freedom": {"tails": 3},
    "the same, a third of the noise": {"tails": 3, "noise": 0.3},
    "skewed effects (exponential)": {"tails": SKEWED, "noise": 0.5},
    "small effects": {"spread": 0.3},
    "no differences between data sets": {"spread": 0},
    "effects that grow with the noise": {"spread": 0.3, "growing": 1.0},
}


def main() -> None:
    """Print coverage and mean widths."""
    rows = []
    for name, options in CASES.items():
        simulation = simulated(DIFFERENCES, np.random.default_rng(11), **options)
        posterior = fit(simulation, generator=np.random.default_rng(2), draws=DRAWS)
        told = posterior.interval(), mean_over_families(family_means(simulation))[1:]
        rows.append((name, *(f(ends) for ends in told for f in (_held, _width))))
    title = f"{sum(SIZES)} data sets of 20 families, {DIFFERENCES} differences each"
    show(title, ("", "the model's mean", "width", "mean over families", "width"), rows)


def simulated(
    count: int,
    draw: np.random.Generator,
    *,
    spread: float = 1.0,
    tails: float = np.inf,
    noise: float = 1.0,
    growing: float = 0.0,
) -> MeasuredDifferences:
    """Return differences of mean 0 in ten overlapping splits.

    Parameters
    ----------
    growing : by how much effects are larger where the logarithm of the noise is larger by 1, as
        those of small data sets are.
    """
    family, share, splits = np.repeat(np.arange(len(SIZES)), SIZES), 0.2, 10

    def effects(size: int) -> Floats:
        if np.isinf(tails):
            return draw.standard_normal((count, size))
        if tails == SKEWED:
            return draw.standard_exponential((count, size)) - 1
        return np.asarray(draw.standard_t(tails, (count, size)) / np.sqrt(tails / (tails - 2)))

    tasks = len(family)
    truth = np.sqrt(0.5) * (effects(len(SIZES))[:, family] + effects(tasks))
    of_size = draw.standard_normal((count, tasks, 1))
    sd = noise * np.exp(of_size)
    of_splits = np.sqrt(1 - share) * draw.standard_normal((count, tasks, splits))
    of_splits += np.sqrt(share) * draw.standard_normal((count, tasks, 1))
    values = spread * truth[:, :, None] + growing * of_size + sd * of_splits
    return MeasuredDifferences(
        values.mean(axis=2),
        values.var(axis=2, ddof=1),
        np.full((count, tasks), float(splits)),
        np.full(tasks, share),
        family,
    )


def _held(ends: Sequence[Floats]) -> float:
    return float(np.mean((ends[0] <= 0) & (ends[1] >= 0)))


def _width(ends: Sequence[Floats]) -> float:
    return float(np.mean(ends[1] - ends[0]))
