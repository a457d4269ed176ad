"""What each step of Uncertainty Matters' public code does to the 95 % region of an algorithm.

``python -m papers.uncertainty_matters.public_code [cvs=200]``: the code draws multinomial counts
after the Dirichlet, cuts effective group sizes down to whole numbers, and finds its region by a
kernel density of bandwidth 0.15, whatever the spread of the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.comparison.settings import Settings
from fairbench.components.papers import run_main
from fairbench.components.papers.options import CrossValidations
from fairbench.components.papers.uncertainty_matters import packed
from fairbench.components.papers.uncertainty_matters.posteriors import FOLDS, LEVEL, values
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.inference.comparing.practical_difference import highest_density_region
from fairbench.inference.posterior import posterior_draws, table_draws

BANDWIDTH = 0.15
ALGORITHMS = ("LR", "SVM")
DRAWS, KERNELS, GRID = 10000, 2000, 120


def truncated_draws(counts: Floats, draws: int, generator: np.random.Generator) -> Floats:
    """Draw tables as the public code does: multinomial, of group sizes without their fractions."""
    shares = posterior_draws(counts, draws, generator, alpha=1.0)
    sizes = counts.sum(axis=-1).astype(np.int64)
    return generator.multinomial(np.broadcast_to(sizes, shares.shape[:-1]), shares).astype(float)


def fixed_bandwidth_region(draws: Floats, points: Floats) -> tuple[float, float]:
    """Return area of the public code's region of (T, 2) draws, and the share of `points` inside."""
    kernels = draws[:KERNELS]
    threshold = np.quantile(_density(kernels, kernels), 1 - LEVEL)
    low, high = kernels.min(axis=0) - BANDWIDTH, kernels.max(axis=0) + BANDWIDTH
    axes = [np.linspace(low[i], high[i], GRID) for i in range(2)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = np.prod((high - low) / (GRID - 1))
    area = float((_density(grid, kernels) >= threshold).sum() * cell)
    return area, float((_density(points, kernels) >= threshold).mean())


def _density(points: Floats, kernels: Floats) -> Floats:
    squared = ((points[:, None] - kernels[None]) ** 2).sum(axis=-1)
    density: Floats = np.exp(-squared / (2 * BANDWIDTH**2)).mean(axis=1)
    return density


def fitted_region(draws: Floats, points: Floats) -> tuple[float, float]:
    """Return area, and the share of `points` inside, of the region with a fitted bandwidth."""
    region = highest_density_region(draws, LEVEL)
    assert region.density is not None
    return region.size, float(region.density.holds(points).mean())


def steps(counts: NDArray[np.int64], rho: str) -> Iterator[tuple[str, float, float, Floats]]:
    """Yield each step's name, area, share of the cross-validations inside, and sds of the draws."""
    effective = counts[0] * float(Settings(rho=rho).shrinkage(FOLDS))
    points = values(counts)

    def draw(step: str) -> Floats:
        generator = rng(0, "public code", step)
        if step == "truncated":
            tables = truncated_draws(effective, DRAWS, generator)
        else:
            tables = table_draws(effective, DRAWS, generator, predictive=step == "predictive")
        found = values(tables)
        return found[~np.isnan(found).any(axis=1)]

    regions: dict[str, Callable[[Floats, Floats], tuple[float, float]]] = {
        "fitted bandwidth": fitted_region,
        f"bandwidth {BANDWIDTH}": fixed_bandwidth_region,
    }
    for step in ("posterior", "predictive", "truncated"):
        draws = draw(step)
        for name, region in regions.items():
            yield f"{step}, {name}", *region(draws, points), draws.std(axis=0)


def main(options: CrossValidations) -> None:
    """Print the steps for both choices of rho that need no half-splits."""
    for name in ALGORITHMS:
        counts = packed.most_counts(name, options.results)[: options.cvs]
        for rho in ("1/K", "average"):
            table = Table(title=f"{name}, rho {rho}", title_justify="left", box=box.SIMPLE_HEAD)
            for i, header in enumerate(("step", "sd accuracy", "sd EO", "area", "% of CVs inside")):
                table.add_column(header, justify="right" if i else "left")
            for step, area, inside, sds in steps(counts, rho):
                cells = (*(f"{sd:.4f}" for sd in sds), f"{area:.4f}", f"{100 * inside:.1f}")
                table.add_row(step, *cells)
            Console(width=100).print(table)


if __name__ == "__main__":
    run_main(main, CrossValidations)
