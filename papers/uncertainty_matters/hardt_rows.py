"""How far Hardt's rule moves between cross-validations, by the rows it is derived from.

``python -m papers.uncertainty_matters.hardt_rows [cvs=20]`` derives it from the training rows,
which the learner has seen, or from a share of them that the learner is not given, and prints the
percent of the cross-validations inside each other's 95 % region beside the published one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from fairbench.components.algorithms.interventions.hardt import Hardt, from_labels
from fairbench.components.papers import run_main
from fairbench.components.papers.options import number_of_cvs
from fairbench.components.papers.uncertainty_matters.algorithms import study
from fairbench.components.papers.uncertainty_matters.cross_validation import FOLDS, partitions
from fairbench.components.papers.uncertainty_matters.posteriors import Cloud, values
from fairbench.components.papers.uncertainty_matters.settings import Part, encoded
from fairbench.core.arrays import Mask
from fairbench.core.seeds import integer_seed, rng
from fairbench.data.encoding import onehot
from fairbench.inference.effective_counts import mean_shrinkage, shrinkage
from fairbench.metrics.rates import binary_confusion

# Learner -> its kernel, and the published percent inside at rho = 1/K and in [0, 1/K].
LEARNERS = {
    "LR": ("", (90.32, 82.08)),
    "Linear SVM": ("", (92.91, 86.94)),
    "SVM": ("scale", (94.09, 88.67)),
}
SHARES = (0.0, 0.1, 0.3, 0.5)  # of the training rows that the rule alone is given; 0: it has all
DRAWS = 10000


@dataclass(frozen=True)
class Options:
    """How much is fitted."""

    cvs: int = number_of_cvs(20)


def held_out_labels(learner: str, share: float, cvs: int) -> Mask:
    """Return the label of each row by the rule of the fold that tests it, (B, n)."""
    source = study("LR")
    data, groups = source.dataset, source.dataset.groups(source.protect)
    X, y = onehot(data.features).astype(float), data.target.to_numpy(float)
    codes, names = groups.cat.codes.to_numpy(np.intp), groups.to_numpy()
    fold = partitions(data, range(cvs), source.seed)
    found = np.empty(fold.shape, bool)
    for cv, k in np.ndindex(cvs, FOLDS):
        generator = rng(source.seed, "hardt rows", cv, k)
        seen, asked = _divided(fold[cv] != k, share, generator)
        part = Part(encoded(X, seen, "standard"), y, codes, seen)
        own = dict(part.labels(LEARNERS[learner][0], 1.0))[learner].astype(float)
        rule = from_labels(own[asked], y[asked], names[asked], objective=Hardt.objective)
        tested = fold[cv] == k
        found[cv, tested] = rule(own[tested], names[tested], integer_seed(generator))
    return found


def _divided(used: Mask, share: float, generator: np.random.Generator) -> tuple[Mask, Mask]:
    """Return which training rows the learner is given, and which the rule, (n,) each."""
    if share == 0:
        return used, used
    rows = generator.permutation(np.flatnonzero(used))
    asked = np.zeros(len(used), bool)
    asked[rows[: round(share * len(rows))]] = True
    return used & ~asked, asked


def inside(counts: NDArray[np.int64], worth: float) -> float:
    """Return the percent of tables (B, G, 4) in each other's region, a count worth `worth`."""
    cloud, truth = Cloud.of(counts, worth, rng(0, "hardt rows"), draws=DRAWS), values(counts)
    shares = [region.density.holds(truth).mean() for region in cloud.regions() if region.density]
    return 100 * float(np.mean(shares))


def main(options: Options) -> None:
    """Print the percent inside for each learner and share."""
    source = study("LR")
    y = source.dataset.target.to_numpy()
    groups = source.dataset.groups(source.protect).cat.codes.to_numpy()
    table = Table(title="percent inside the 95 % region", title_justify="left", box=box.SIMPLE_HEAD)
    for i, heading in enumerate(("", "rule derived from", "rho=1/K", "rho in [0,1/K]")):
        table.add_column(heading, justify="right" if i > 1 else "left")
    worths = float(shrinkage(1 / FOLDS, FOLDS)), mean_shrinkage(FOLDS)
    for learner, (_, published) in LEARNERS.items():
        table.add_row(f"{learner} + Hardt", "published", *(f"{each:.1f}" for each in published))
        for share in SHARES:
            labels = held_out_labels(learner, share, options.cvs)
            counts = np.stack([binary_confusion(y, each, groups, n_groups=2) for each in labels])
            rows = f"{share:.0%} held out of them" if share else "the training rows"
            table.add_row("", rows, *(f"{inside(counts, worth):.1f}" for worth in worths))
    Console(width=100).print(table)


if __name__ == "__main__":
    run_main(main, Options)
