"""Proposition 4.1 on 20,000 fresh rows: networks trained on SD1-3 without the noise of 80.

``python -m papers.uncertainty_fairness.population [seeds=20] [networks=trained]``. Kuzucu et al.
test on a fifth of 400 rows, where the ratio of two groups' rates is mostly chance. Here each
network is trained as for Table 1, or as in ``uncertainty_fairness/sd1_3_trained``, on one
population's training rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from rich.console import Console
from rich.table import Table

from fairbench.components.algorithms.estimators.training import one_thread
from fairbench.components.algorithms.learners.bayesian_nn import BayesianNN
from fairbench.components.algorithms.losses import Binomial
from fairbench.components.datasets import kuzucu
from fairbench.components.papers import run_main
from fairbench.components.papers.options import number_of_seeds
from fairbench.components.papers.uncertainty_fairness.directions import DIRECTIONS, directions
from fairbench.components.papers.uncertainty_fairness.networks import (
    CAUSES,
    DRAWS,
    TEXT,
    TRAININGS,
    members_of,
    of_groups,
    rows_of,
    trained,
)
from fairbench.components.papers.uncertainty_fairness.tables import ratios
from fairbench.core.options import option
from fairbench.data.download import Archive
from fairbench.data.encoding import onehot
from fairbench.metrics.rates import (
    accuracy,
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)

RATES = (selection_rate, true_positive_rate, false_positive_rate, accuracy)
UNTIL_STALE = "trained"
TRAINED = BayesianNN(
    hidden=(), learning_rate=0.02, initial_sd=0.02, epochs=300, batch_size=32, patience=20
)
# The networks' name -> the cause under which Table 1's are trained.
NETWORKS = {"as in the text": "", "starts near 0": "starts near 0", UNTIL_STALE: ""}
ROWS = 20_000


@dataclass(frozen=True)
class Options:
    """How many populations, and which networks are trained on them."""

    seeds: int = number_of_seeds(20)
    networks: tuple[str, ...] = option(
        tuple(NETWORKS), "As for Table 1, and trained ones.", choices=tuple(NETWORKS)
    )


def of_populations(networks: str, seeds: int) -> pd.DataFrame:
    """Return the rates and mean uncertainties of both groups, by set and population."""
    rows = [
        {"dataset": which, "run": seed, "repeat": 0, **row}
        for which in DIRECTIONS
        for seed in range(seeds)
        for row in _groups(networks, which, seed)
    ]
    return pd.DataFrame(rows)


def _groups(networks: str, which: str, seed: int) -> Iterator[dict[str, object]]:
    """Yield what a network trained on one population is like on many rows of its kind."""
    fresh = kuzucu.load(Archive.of(download=False), which=which, n_samples=ROWS, seed=seed)
    setting = CAUSES.get(NETWORKS[networks], TEXT)
    rows, tested = rows_of(which, seed, setting), onehot(fresh.features).astype(float)
    if networks == UNTIL_STALE:
        mean, sd = rows.features.mean(axis=0), rows.features.std(axis=0)
        model = TRAINED.estimator(Binomial(), seed)
        model.fit((rows.features - mean) / sd, rows.target.astype(float))
        members = model.predict_members((tested - mean) / sd, DRAWS, seed)[..., 0]
    else:
        with one_thread():
            posterior = trained(rows, TRAININGS[which], setting, seed)
            members = members_of(posterior, tested, seed)
    yield from of_groups(members, fresh.target.to_numpy(float), fresh.sensitive)


def ratio_table(ours: pd.DataFrame, title: str) -> Table:
    """Return the mean and the sd over populations of every ratio G0 / G1."""
    metrics = [*(rate.name for rate in RATES), "epistemic_uncertainty", "aleatoric_uncertainty"]
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
        ours = of_populations(networks, options.seeds)
        title = f"G0 / G1, mean (sd) over {options.seeds} populations: {networks}"
        console.print(ratio_table(ours, title))
        console.print(directions(ours, f"Proposition 4.1: {networks}"))


if __name__ == "__main__":
    run_main(main, Options)
