"""Proposition 4.1 of Kuzucu et al. as probabilities: how often single runs show what it says.

``python -m papers.uncertainty_fairness.directions [quick=true]`` trains networks as the text says
and with starts near 0, as Table 1 has them (two minutes), and reads the finished runs of
``experiment=uncertainty_fairness/sd1_3_trained``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.stats import beta

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.components.papers.uncertainty_fairness.networks import values
from fairbench.components.papers.uncertainty_fairness.tables import BAND, VARIANCES, needed, ratios
from fairbench.core.options import option
from fairbench.reporting.papers.running import Effort

TRAINED = "sd1_3_trained"
POINT = ("selection_rate", "true_positive_rate", "accuracy")


@dataclass(frozen=True)
class Options(Results):
    """How many networks are trained."""

    quick: bool = option(False, "Two networks of each set in place of twenty.")


class Direction(NamedTuple):
    """What one of the synthetic sets is made to show: ratios that are fair, and one that is not."""

    text: str
    fair: tuple[str, ...]
    unfair: tuple[str, ...]


DIRECTIONS = {
    "sd1": Direction("labels fair, aleatoric uncertainty not", POINT, ("aleatoric_uncertainty",)),
    "sd2": Direction("labels fair, epistemic uncertainty not", POINT, ("epistemic_uncertainty",)),
    "sd3": Direction("uncertainties fair, labels not", VARIANCES, POINT),
}


def directions(ours: pd.DataFrame, title: str) -> Table:
    """Return how often single runs show each direction of Proposition 4.1."""
    table = Table(title=title, title_justify="left")
    for name in ("data set", "direction", "fair part", "unfair part", "both", "P(both)"):
        table.add_column(name)
    for dataset, (text, fair, unfair) in DIRECTIONS.items():
        inside = {
            name: (ratios(ours, dataset, "group", name) - 1).abs() <= BAND
            for name in (*POINT, *VARIANCES)
        }
        is_fair = np.all([inside[name] for name in fair], axis=0)
        is_unfair = ~np.all([inside[name] for name in unfair], axis=0)
        both, n = int((is_fair & is_unfair).sum()), len(is_fair)
        lower, upper = beta(both + 1, n - both + 1).ppf([0.025, 0.975])
        counts = (f"{int(part.sum())} of {n}" for part in (is_fair, is_unfair))
        interval = f"{lower:.2f} to {upper:.2f}"
        table.add_row(dataset, text, *counts, f"{both} of {n}", interval)
    return table


def main(options: Options) -> None:
    """Print a table for the text's networks, for those that start near 0, and for trained ones."""
    ours = needed(TRAINED, options.results)  # first, as it may be missing
    console = Console(width=130)
    effort = Effort.QUICK if options.quick else Effort.WHOLE
    for cause in ("", "starts near 0"):
        runs = pd.concat(values(dataset, cause, effort) for dataset in DIRECTIONS)
        console.print(
            directions(runs, f"Proposition 4.1: five epochs, {cause or 'as in the text'}")
        )
    console.print(directions(ours, "Proposition 4.1: until held-out rows no longer improve"))


if __name__ == "__main__":
    run_main(main, Options)
