"""What the posterior's initial means, and the reading of the prior's "0 and 6", change.

``python -m papers.uncertainty_fairness.readings [seeds=5]``. Kuzucu et al. draw the initial means
from a standard normal, and print 0 and 6 for the prior's two normals: standard deviations, of which
0 is read as 0.001, or Blundell et al.'s -log of them, 1 and 0.0025. Every pair of readings is
trained as the experiments ``sd1_3`` and ``compas`` are, on `seeds` populations or splits, each with
a network of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pandas as pd
from hydra import compose, initialize_config_dir
from rich.console import Console
from rich.table import Table

from fairbench.cli.command import Results
from fairbench.components.papers import CONF, PAPERS, run_main
from fairbench.components.papers.options import number_of_seeds
from fairbench.components.papers.uncertainty_fairness.tables import (
    METRICS,
    PAIRS,
    SYNTHETIC,
    ratios,
    single_runs,
)
from fairbench.evaluation.columns import values_of
from fairbench.experiments.execute import carry_out

MEANS = {
    "standard normal": "learner.initial_means=normal",
    "within 1 / sqrt(fan in)": "learner.initial_means=uniform",
}
PRIORS = {
    "-log of sds": ("learner.prior_narrow=0.0025", "learner.prior_wide=1"),
    "sds": ("learner.prior_narrow=0.001", "learner.prior_wide=6"),
}
SHOWN = ("accuracy", "epistemic", "aleatoric")
ATTRIBUTES = {**dict.fromkeys(SYNTHETIC, "group"), "compas": "race"}


@dataclass(frozen=True)
class Options(Results):
    """Where fits are kept, and of how many populations or splits they are."""

    seeds: int = number_of_seeds(5)


def runs(dataset: str, options: tuple[str, ...], seeds: int, results: Path) -> pd.DataFrame:
    """Return the groups' metrics of a data set's runs under one pair of readings."""
    if dataset in SYNTHETIC:
        population = f"experiment=uncertainty_fairness/sd1_3 dataset={dataset}"
        words = [f"{population} dataset.seed={seed} seed={seed}" for seed in range(seeds)]
    else:
        words = [f"experiment=uncertainty_fairness/compas split.repeats={seeds} figures=false"]
    parts = []
    for run, chosen in enumerate(words):
        overrides = [*chosen.split(), *options, "tracking=none", f"results={results}"]
        with initialize_config_dir(str(CONF), version_base="1.3"):
            cfg = compose("config", overrides, return_hydra_config=True)
        metrics = values_of(carry_out(cfg).prepared.folder.all_metrics())
        parts.append(metrics[metrics["group"].ne("")].assign(dataset=dataset, run=run))
    return pd.concat(parts, ignore_index=True)


def cells(ours: pd.DataFrame, dataset: str) -> Iterator[str]:
    """Yield both groups' means of what is shown, and the ratios of the uncertainties, mean (sd)."""
    attribute = ATTRIBUTES[dataset]
    for name in SHOWN:
        groups = [single_runs(ours, dataset, attribute, METRICS[name], g) for g in PAIRS[attribute]]
        digits = 2 if name == "accuracy" else 4
        yield ", ".join(f"{values.mean():.{digits}f}" for values in groups)
        if name != "accuracy":
            ratio = ratios(ours, dataset, attribute, METRICS[name])
            yield f"{ratio.mean():.2f} ({ratio.std():.2f})"


def printed(dataset: str) -> Iterator[str]:
    """Yield the same as the paper prints it."""
    published = pd.read_csv(PAPERS / "uncertainty_fairness" / "published.csv", dtype=str)
    attribute = ATTRIBUTES[dataset]
    of_data = published["dataset"].eq(dataset) & published["sensitive_attribute"].eq(attribute)
    rows = published[of_data & published["table"].isin(["1", "3"])]
    value = rows.set_index(["metric", "setting"])["value"]
    for name in SHOWN:
        yield ", ".join(value[name, f"group={group}"] for group in PAIRS[attribute])
        if name != "accuracy":
            yield value[f"ratio_{name}", "G0/G1"]


def table(dataset: str, seeds: int, results: Path) -> Table:
    """Return the paper's row of a data set, and one for each pair of readings."""
    of = "splits" if dataset == "compas" else "populations"
    groups = ", ".join(PAIRS[ATTRIBUTES[dataset]])
    shown = Table(title=f"{dataset}, means over {seeds} {of}: {groups}", title_justify="left")
    shown.add_column("initial means")
    shown.add_column("prior's 0 and 6")
    for name in SHOWN:
        shown.add_column(name, justify="right")
        if name != "accuracy":
            shown.add_column("ratio (sd)", justify="right")
    shown.add_row("printed", "", *printed(dataset))
    for (means, drawn), (prior, read) in product(MEANS.items(), PRIORS.items()):
        ours = runs(dataset, (drawn, *read), seeds, results)
        shown.add_row(means, prior, *cells(ours, dataset))
    return shown


def main(options: Options) -> None:
    """Print a table for each data set."""
    for dataset in ATTRIBUTES:
        Console(width=130).print(table(dataset, options.seeds, options.results))


if __name__ == "__main__":
    run_main(main, Options)
