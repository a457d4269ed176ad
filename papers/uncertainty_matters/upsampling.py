"""Figure 15.3 of Uncertainty Matters: a test set whose small group is upsampled says too much.

``python -m papers.uncertainty_matters.upsampling [test_sets=2000]`` copies rows of the small group,
drawn at random, until it is as large as the other one, as is done to training rows. Copies are no
new people: the posterior gets narrow around the share of those who happened to be copied. The
figure has the posterior of one test set before and after, and how often 95 % intervals of many hold
the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.core.arrays import Floats
from fairbench.core.options import option
from fairbench.core.seeds import rng
from fairbench.reporting.charts import BLUE, GREY, ORANGE
from fairbench.reporting.papers.running import Effort

Counts = NDArray[np.int64]
FACTORS = (1, 2, 4, 8)
LEVEL = 0.95
DRAWS, TEST_SETS = 1000, 2000


@dataclass(frozen=True)
class Options:
    """How much is drawn."""

    test_sets: int = option(TEST_SETS, "How many test sets.", least=1)


@dataclass(frozen=True)
class Population:
    """Good loans of both groups in a test set, and the share of each that is found.

    The sizes and shares are those of German's young and older people under a support vector
    machine, in a hold-out of a fifth.
    """

    rows: tuple[int, int] = (118, 22)
    rates: tuple[float, float] = (0.92, 0.84)

    @property
    def gap(self) -> float:
        """The small group's true positive rate less the other's."""
        return self.rates[1] - self.rates[0]

    def found(self, test_sets: int, generator: np.random.Generator) -> Counts:
        """Return how many good loans of each group are found, (T, 2)."""
        return generator.binomial(self.rows, self.rates, (test_sets, 2))


def upsampled(found: Counts, rows: int, factor: int, generator: np.random.Generator) -> Counts:
    """Return the counts (T,) of a group of `rows` after copies drawn at random were added.

    Parameters
    ----------
    factor : how many times as large the group becomes; its own rows stay.
    """
    return found + generator.binomial((factor - 1) * rows, found / rows)


def gaps(
    population: Population,
    found: Counts,
    factor: int,
    generator: np.random.Generator,
    *,
    draws: int = DRAWS,
) -> Floats:
    """Return draws (T, D) of the posterior of the gap, the small group upsampled."""
    first, second = found.T
    copied = upsampled(second, population.rows[1], factor, generator)
    sizes = population.rows[0], population.rows[1] * factor
    rates = (
        generator.beta(1 + hits[:, None], 1 + size - hits[:, None], (len(found), draws))
        for hits, size in zip((first, copied), sizes, strict=True)
    )
    larger, smaller = rates
    drawn: Floats = smaller - larger
    return drawn


def coverage(population: Population, factor: int, test_sets: int) -> tuple[float, float]:
    """Return how often the 95 % interval of the gap holds the true one, and its mean width."""
    generator = rng(0, "upsampling", factor)
    drawn = gaps(population, population.found(test_sets, generator), factor, generator)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    held = (low <= population.gap) & (population.gap <= high)
    return float(held.mean()), float((high - low).mean())


def figure(population: Population, found: dict[int, tuple[float, float]]) -> Figure:
    """Draw the posterior of one test set before and after, and the intervals' coverage."""
    drawn = Figure((12, 5), dpi=90, layout="constrained")
    FigureCanvasAgg(drawn)
    left, right = drawn.subplots(1, 2)
    _posteriors(left, population)
    right.plot([str(factor) for factor in found], [100 * held for held, _ in found.values()], "o-")
    right.axhline(100 * LEVEL, color=GREY, linestyle=":")
    right.set_title("many test sets")
    right.set_ylim(0, 100)
    right.set_xlabel("how many times as large the small group is made", fontsize=13)
    right.set_ylabel("% of 95 % intervals that hold the true gap", fontsize=13)
    right.grid(alpha=0.25)
    return drawn


def _posteriors(axes: Axes, population: Population) -> None:
    generator = rng(0, "upsampling", "one test set")
    found = population.found(1, generator)
    largest = population.rows[0] // population.rows[1]
    for factor, colour in ((1, BLUE), (largest, ORANGE)):
        draws = gaps(population, found, factor, generator, draws=20 * DRAWS)
        label = "as it is" if factor == 1 else f"small group {factor} times as large"
        axes.hist(draws[0], bins=40, density=True, alpha=0.5, color=colour, label=label)
    axes.set_title("one test set")
    axes.axvline(population.gap, color="black", linestyle="--", label="true gap")
    axes.set_xlabel("gap in true positive rates", fontsize=13)
    axes.set_ylabel("posterior density", fontsize=13)
    axes.legend(edgecolor="none", fontsize=12)


def figure_15_3(results: Path, effort: Effort) -> Iterator[tuple[str, Figure]]:
    """Yield the posterior of an upsampled test set, and the coverage of many."""
    population, test_sets = Population(), effort.choose(TEST_SETS, TEST_SETS, 50)
    yield (
        "",
        figure(population, {factor: coverage(population, factor, test_sets) for factor in FACTORS}),
    )


def main(options: Options) -> None:
    """Print coverage by factor."""
    test_sets, population = options.test_sets, Population()
    table = Table(title=f"95 % intervals of the gap, {test_sets} test sets", box=box.SIMPLE_HEAD)
    for heading in ("small group", "hold the truth", "mean width"):
        table.add_column(heading, justify="right")
    for factor in FACTORS:
        held, width = coverage(population, factor, test_sets)
        table.add_row(f"{factor} times", f"{held:.1%}", f"{width:.3f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    run_main(main, Options)
