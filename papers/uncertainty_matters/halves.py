"""Variances over half-splits with a ten-fold cross-validation inside each half (its section 10).

``python -m papers.uncertainty_matters.halves [halvings=60]`` prints the ratio r of an algorithm's
variance to that of the support vector machine, by rate and group and in the mean, of all halvings
and of the paper's five at a time. The project's own split=half_splits trains on one half and tests
on the other, so that its r is of single fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import run_main
from fairbench.components.papers.uncertainty_matters.algorithms import study
from fairbench.components.papers.uncertainty_matters.cross_validation import held_out_labels
from fairbench.core.arrays import Floats
from fairbench.core.options import option
from fairbench.core.seeds import rng
from fairbench.experiments.study import Study
from fairbench.inference.effective_counts import half_splits, variance_ratio
from fairbench.metrics.rates import accuracy, binary_confusion, true_negative_rate

REFERENCE, HALVINGS, AT_A_TIME = "SVM", 60, 5


@dataclass(frozen=True)
class Options:
    """How much is computed."""

    halvings: int = option(HALVINGS, "How many halvings of the data.", least=1)


def estimates(name: str, halvings: int = HALVINGS) -> Floats:
    """Return the rates of both halves of every halving, (J, 2, R, G).

    The rates are accuracy and the share of good loans found, by group, pooled over the ten folds
    of a cross-validation that has seen no row of the other half.
    """
    whole = study(name)
    drawn = half_splits(len(whole.dataset), halvings, rng(whole.seed, "halves"))
    return np.stack(
        [
            np.stack([_rates(whole, rows, 2 * j + side) for side, rows in enumerate(pair)])
            for j, pair in enumerate(drawn)
        ]
    )


def _rates(whole: Study, rows: NDArray[np.intp], repeat: int) -> Floats:
    half = replace(whole, dataset=whole.dataset.take(rows))
    groups, target = half.dataset.groups(half.protect), half.dataset.target.to_numpy()
    (labels,) = held_out_labels(half, [repeat])
    counts = binary_confusion(target, labels, groups.cat.codes.to_numpy(), n_groups=2)
    return np.stack([accuracy(counts), true_negative_rate(counts)])


def ratios(own: Floats, reference: Floats, at_a_time: int = AT_A_TIME) -> list[float]:
    """Return r of each five halvings, or so many at a time, of estimates (J, 2, R, G)."""
    starts = range(0, len(own), at_a_time)
    parts = (slice(start, start + at_a_time) for start in starts)
    return [float(variance_ratio(own[part], reference[part], pooled=True)) for part in parts]


def main(options: Options) -> None:
    """Print the ratios."""
    from fairbench.components.papers.uncertainty_matters.one_partition import ALL

    reference = estimates(REFERENCE, options.halvings)
    title = f"r, of {options.halvings} halvings"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, heading in enumerate(("", "accuracy", "good loans found", "mean", "of five at a time")):
        table.add_column(heading, justify="right" if i else "left")
    for name in ALL:
        own = estimates(name, options.halvings)
        each = variance_ratio(own, reference)
        fives = np.sort(ratios(own, reference))
        cells = [", ".join(f"{value:.2f}" for value in row) for row in each]
        table.add_row(name, *cells, f"{np.nanmean(each):.2f}", f"{fives[0]:.2f} to {fives[-1]:.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    run_main(main, Options)
