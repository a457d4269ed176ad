"""What Figures 3 and 20 to 25 say of the methods for labels, in numbers.

``python -m papers.fairlyuncertain.diagrams`` prints, for 5 to 30 groups of people of like
uncertainty, the rank correlation of their mean uncertainty with the sd of their residuals, and for
five groups how far the two are apart: means over splits and data sets.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.components.papers.fairlyuncertain.people import job, tests
from fairbench.components.papers.options import Splits
from fairbench.evaluation.predictions import Labelled
from fairbench.metrics.spread import Spread, spread_diagram

DATASETS = ("acs_employment_fu", "adult", "bank", "compas", "german")
METHODS = ("ensemble", "selective_ensemble", "self_consistency", "binomial_nll")
GROUPS = (5, 10, 15, 20, 25, 30)


def diagram(test: Labelled, groups: int) -> Spread:
    """Return the spread diagram of residuals of hard labels."""
    residual = test.target - test.column("prediction")
    return spread_diagram(residual, test.column("uncertainty"), groups)


def main(chosen: Splits) -> None:
    """Print the table."""
    title = f"{chosen.repeats} splits of five data sets: rank correlation; distance of five groups"
    table = Table("method", *map(str, GROUPS), "distance", title=title, title_justify="left")
    for method in METHODS:
        splits = []
        for dataset in DATASETS:
            words = [f"dataset={dataset}", f"method={method}"]
            run = job("fairlyuncertain/table8_13", chosen.results, words, chosen.repeats)
            splits += list(tests(run))
        ranks = [
            np.nanmean([diagram(test, groups).rank_correlation() for test in splits])
            for groups in GROUPS
        ]
        off = np.mean([diagram(test, GROUPS[0]).error() for test in splits])
        table.add_row(method.replace("_", " "), *(f"{rank:.2f}" for rank in ranks), f"{off:.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    run_main(main, Splits)
