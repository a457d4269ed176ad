"""Comparing two algorithms by 10,000 posterior draws, the highest-density region included."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from benchmarks.measure import cpu_of, show
from fairbench.core.seeds import rng
from fairbench.inference.comparing.objectives import objective
from fairbench.inference.comparing.practical_difference import compare, highest_density_region
from fairbench.inference.posterior import independent_draws, margins, paired_draws

DRAWS, CALLS = 10000, 20
JOINT = np.array([[300, 20, 30, 60, 50, 20, 15, 40], [100, 10, 10, 20, 30, 10, 5, 20]])
OBJECTIVES = ("accuracy", "equal_opportunity", "accuracy_gap")
# Quoted, not run here: one core of a machine of this class.
PUBLISHED = (
    ("the paper's public code, 2 objectives", 235000.0),
    ("the same, its quadratic loop mended", 4600.0),
)


def main() -> None:
    rows = []
    for m, paired, predictive in product((2, 3), (True, False), (False, True)):
        one = partial(once, m=m, paired=paired, predictive=predictive)
        one()
        seconds = min(cpu_of(one) for _ in range(CALLS))
        kind = "paired" if paired else "independent"
        drawn = "predictive" if predictive else "posterior"
        rows.append((f"{m} objectives, {kind}, {drawn}", 1000 * seconds))
    title = f"comparison of two algorithms, {DRAWS} draws, region included (target: 25 ms)"
    show(title, ("", "CPU ms"), [*rows, *PUBLISHED])


def once(*, m: int, paired: bool, predictive: bool) -> dict[str, float]:
    """Return the events of `m` objectives within the region."""
    generator = rng(0, "benchmark")
    if paired:
        tables = paired_draws(JOINT, DRAWS, generator, predictive=predictive)
    else:
        tables = independent_draws(*margins(JOINT), DRAWS, generator, predictive=predictive)
    compared = compare(*tables, [objective(name) for name in OBJECTIVES[:m]], [0.01] * m)
    return compared.events(highest_density_region(compared.delta).inside)
