"""Two distributions with one mean and one prediction interval whose sds differ, simulated.

``python -m papers.fairlyuncertain.same_interval [draws=100000]``. FairlyUncertain's repository has
a figure of two such distributions (``experiments/figures/distributions.pdf``) and no code for it.
The densities here were read off its curves, and its four printed numbers are the check: of both the
mean 0 and the interval [-2.0, 2.0], of A the sd 1.08, of B 1.21. Draws from both show that what an
interval says of a person's uncertainty is not what the sd says, and that neither says how many
outcomes are near the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.core.arrays import Floats
from fairbench.core.options import option
from fairbench.core.seeds import rng

END = 4.0  # both densities are drawn on [-4, 4]
LEVEL = 0.9  # of the interval that is drawn; [-2, 2] holds nine tenths of either
NEAR = 0.5  # an outcome that the mean predicts well
PRINTED = {"A": ("0", "[-2.0, 2.0]", "1.08"), "B": ("0", "[-2.0, 2.0]", "1.21")}
_CELLS = 8000


@dataclass(frozen=True)
class Options:
    """How much is drawn."""

    draws: int = option(100_000, "How many draws of each distribution.", least=2)


class Summary(NamedTuple):
    """A summary of a distribution: mean, limits of its interval, sd, and share near the mean."""

    mean: float
    lower: float
    upper: float
    sd: float
    near: float


def density_a(x: Floats) -> Floats:
    """Return A's density, not normalised: a narrow peak on a broad bell, the larger of the two."""
    peak, bell = 10 * np.exp(-(x**2) / (2 * 0.1)), np.exp(-(x**2) / (2 * 1.8**2))
    larger: Floats = np.maximum(peak, bell)
    return larger


def density_b(x: Floats) -> Floats:
    """Return B's density, not normalised: a normal."""
    bell: Floats = np.exp(-(x**2) / (2 * 1.22**2))
    return bell


DENSITIES = {"A": density_a, "B": density_b}


def sample(name: str, draws: int) -> Floats:
    """Return draws of a distribution, by inverting its distribution function."""
    edges = np.linspace(-END, END, _CELLS + 1)
    mass = DENSITIES[name]((edges[1:] + edges[:-1]) / 2)
    below = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
    values: Floats = np.interp(rng(0, "same interval", name).random(draws), below, edges)
    return values


def summary(values: Floats) -> Summary:
    """Return the summary of some draws."""
    lower, upper = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    near = float((np.abs(values - values.mean()) < NEAR).mean())
    return Summary(
        float(values.mean()), float(lower), float(upper), float(values.std(ddof=1)), near
    )


def main(options: Options) -> None:
    """Print both distributions' mean, interval and sd with the published ones."""
    title = f"one mean, one {LEVEL:.0%} interval, two sds: {options.draws} draws"
    table = Table(title=title, title_justify="left")
    for name in ("", "mean", "interval", "sd", "printed", f"within {NEAR} of the mean"):
        table.add_column(name, justify="left" if not name else "right")
    for name, printed in PRINTED.items():
        found = summary(sample(name, options.draws))
        interval = f"[{found.lower:.2f}, {found.upper:.2f}]"
        numbers = (f"{found.mean:.2f}", interval, f"{found.sd:.2f}", ", ".join(printed))
        table.add_row(name, *numbers, f"{found.near:.0%}")
    Console(width=100).print(table)


if __name__ == "__main__":
    run_main(main, Options)
