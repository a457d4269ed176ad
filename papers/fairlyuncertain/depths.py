"""Whether depths from 5 to 15 give models of similar accuracy, as the text says.

``python -m papers.fairlyuncertain.depths`` prints the error of the plain model at each depth, the
mean over splits.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.components.papers.fairlyuncertain.people import evaluation, job
from fairbench.components.papers.options import Splits

DATASETS = ("acs_employment_fu", "adult", "bank", "compas", "german")
DEPTHS = tuple(range(5, 16))


def errors(dataset: str, chosen: Splits) -> list[float]:
    """Return the mean error over splits at each depth."""
    words = [f"dataset={dataset}", "method=binomial_nll", f"consistency.values={list(DEPTHS)}"]
    run = job("fairlyuncertain/table1", chosen.results, words, chosen.repeats)
    reader = evaluation(run)
    found: dict[str, list[float]] = {}
    for cell in run.cells:
        if cell.variant:
            test = reader.read(cell, {}).test
            wrong = test.target != test.column("prediction")
            found.setdefault(cell.variant, []).append(float(wrong.mean()))
    return [float(np.mean(values)) for values in found.values()]


def main(chosen: Splits) -> None:
    """Print the table."""
    title = f"error at each depth, mean over {chosen.repeats} splits"
    table = Table("data set", *map(str, DEPTHS), title=title, title_justify="left")
    for dataset in DATASETS:
        table.add_row(dataset, *(f"{error:.3f}" for error in errors(dataset, chosen)))
    Console(width=110).print(table)


if __name__ == "__main__":
    run_main(main, Splits)
