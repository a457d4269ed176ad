"""Proposition 4.1 on 20,000 fresh rows: networks trained on SD1-3 without the noise of 64.

``python -m papers.uncertainty_fairness.population [seeds=20] [networks=trained]``. Kuzucu et al.
test on 64 rows, where the ratio of two groups' rates is mostly chance. Here each network is trained
as in the experiments ``uncertainty_fairness/sd1_3`` and ``sd1_3_trained``, on one population's
training rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fairbench.components.algorithms.learners.bayesian_nn import BayesianNN
from fairbench.components.algorithms.losses import Binomial
from fairbench.components.datasets import kuzucu
from fairbench.components.papers import run_main
from fairbench.components.papers.options import number_of_seeds
from fairbench.components.papers.uncertainty_fairness.directions import DIRECTIONS, directions
from fairbench.components.papers.uncertainty_fairness.tables import ratios
from fairbench.core.options import option
from fairbench.data.download import Archive
from fairbench.data.encoding import Encoder
from fairbench.data.splits import RepeatedHoldout
from fairbench.metrics.group_means import variance_decomposition
from fairbench.metrics.rates import (
    accuracy,
    binary_confusion,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)

LINEAR = BayesianNN(hidden=(), learning_rate=0.02)
LEARNERS = {
    "five epochs": replace(LINEAR, initial_means="normal", epochs=5, batch_size=8),
    "trained": replace(LINEAR, epochs=300, batch_size=32, patience=20),
}
RATES = (selection_rate, true_positive_rate, false_positive_rate, accuracy)
ROWS, MEMBERS = 20_000, 10


@dataclass(frozen=True)
class Options:
    """How many populations, and which networks are trained on them."""

    seeds: int = number_of_seeds(20)
    networks: tuple[str, ...] = option(
        tuple(LEARNERS), "As in the paper, and trained ones.", choices=tuple(LEARNERS)
    )


def of_populations(learner: BayesianNN, seeds: int) -> pd.DataFrame:
    """Return the rates and mean uncertainties of both groups, by set and population."""
    rows = [
        {"dataset": which, "run": seed, "repeat": 0, "attribute": "group", **row}
        for which in DIRECTIONS
        for seed in range(seeds)
        for row in _groups(learner, which, seed)
    ]
    return pd.DataFrame(rows)


def _groups(learner: BayesianNN, which: str, seed: int) -> Iterator[dict[str, object]]:
    """Yield what a network trained on one population is like on many rows of its kind."""
    archive = Archive.of(download=False)
    data = kuzucu.load(archive, which=which, n_samples=320, seed=seed)
    (fold,) = RepeatedHoldout(repeats=1).folds(data, 0)
    train = data.take(fold.train)
    encoder = Encoder(learner.encoding).fit(train.features)
    model = learner.estimator(Binomial(), seed)
    model.fit(encoder.transform(train.features), train.target.to_numpy(float))
    fresh = kuzucu.load(archive, which=which, n_samples=ROWS, seed=seed)
    members = model.predict_members(encoder.transform(fresh.features), MEMBERS, seed)[..., 0]
    group = fresh.sensitive["group"].astype(int).to_numpy()
    labels = members.mean(axis=0) > 0.5
    counts = binary_confusion(fresh.target.to_numpy(float), labels, group, n_groups=2)
    found = {rate.name: rate(counts) for rate in RATES}
    for name, values in _uncertainties(members).items():
        found[f"{name}_uncertainty"] = np.bincount(group, values) / np.bincount(group)
    for metric, values in found.items():
        for g in (0, 1):
            yield {"metric": metric, "group": str(g), "value": values[g]}


def _uncertainties(members: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    parts = variance_decomposition(members)
    return {name: getattr(parts, name) for name in ("epistemic", "aleatoric", "predictive")}


def ratio_table(ours: pd.DataFrame, title: str) -> Table:
    """Return the mean and the sd over populations of every ratio G0 / G1."""
    metrics = [name for name in ours["metric"].unique() if not name.startswith("predictive")]
    table = Table("data set", *(name.replace("_", " ") for name in metrics), title=title)
    for dataset in DIRECTIONS:
        every = [ratios(ours, dataset, "group", name).dropna() for name in metrics]
        # A rate that is 0 in the reference of every population has no ratio.
        cells = [f"{r.mean():.2f} ({r.std():.2f})" if len(r) else "-" for r in every]
        table.add_row(dataset, *cells)
    return table


def main(options: Options) -> None:
    """Print ratios and directions of the networks that are named."""
    console = Console(width=130)
    for networks in options.networks:
        ours = of_populations(LEARNERS[networks], options.seeds)
        title = f"G0 / G1, mean (sd) over {options.seeds} populations: {networks}"
        console.print(ratio_table(ours, title))
        console.print(directions(ours, f"Proposition 4.1: {networks}"))


if __name__ == "__main__":
    run_main(main, Options)
