"""How much of a variance ratio from half-splits is noise of a few halvings.

``python -m papers.uncertainty_matters.ratio_noise`` prints what the mean ratio is where learner
and reference vary equally (normal estimates, correlated as those of two learners on the same
halves may be), and the ratios of the 13 algorithms on German.
"""

from __future__ import annotations

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.inference.effective_counts import variance_ratio

HALVINGS, CORRELATIONS, SAMPLES = (1, 5, 50), (0.0, 0.5, 0.8), 4000
_SHAPE = (2, 2)  # rates and groups


def equal_ratios(halvings: int, correlation: float, generator: np.random.Generator) -> Floats:
    """Return mean ratios of a learner and a reference whose estimates vary equally, (SAMPLES,)."""
    size = (2, SAMPLES, halvings, 2, *_SHAPE)
    reference, fresh = generator.normal(size=size)
    own = correlation * reference + np.sqrt(1 - correlation**2) * fresh
    pairs = zip(own, reference, strict=True)
    return np.array([float(variance_ratio(one, other, pooled=True)) for one, other in pairs])


def null_table() -> Table:
    """Return mean and quantiles of the ratio where its true value is 1."""
    table = Table(title="mean ratio of equal variances", title_justify="left", box=box.SIMPLE_HEAD)
    for header in ("halvings", "correlation", "mean", "2.5 %", "median", "97.5 %"):
        table.add_column(header, justify="right")
    for halvings in HALVINGS:
        for correlation in CORRELATIONS:
            ratios = equal_ratios(halvings, correlation, rng(0, "ratio noise", halvings))
            ends = np.quantile(ratios, (0.025, 0.5, 0.975))
            cells = (f"{value:.2f}" for value in (ratios.mean(), *ends))
            table.add_row(str(halvings), f"{correlation}", *cells)
    return table


def german_table() -> Table:
    """Return the ratios of the 13 algorithms by rate and group, of five packed half-splits."""
    from fairbench.components.papers.uncertainty_matters import halves, packed
    from fairbench.components.papers.uncertainty_matters.algorithms import ALGORITHMS

    table = Table(title="German, five halvings", title_justify="left", box=box.SIMPLE_HEAD)
    rates = [f"{rate}, {group}" for rate in ("accuracy", "TPR") for group in ("> 25", "<= 25")]
    for header in ("algorithm", *rates, "mean"):
        table.add_column(header, justify="left" if header == "algorithm" else "right")
    reference = packed.half_split_estimates(halves.REFERENCE)[: halves.AT_A_TIME]
    for name in ALGORITHMS:
        own = packed.half_split_estimates(name)[: halves.AT_A_TIME]
        ratios = variance_ratio(own, reference)
        table.add_row(name, *(f"{r:.2f}" for r in ratios.ravel()), f"{np.nanmean(ratios):.2f}")
    return table


def main() -> None:
    """Print both tables."""
    console = Console(width=100)
    console.print(null_table())
    console.print(german_table())


if __name__ == "__main__":
    run_main(main)
