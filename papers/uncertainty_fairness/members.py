"""Whether what gives the members decides the ratios of the groups' uncertainties on COMPAS.

``python -m papers.uncertainty_fairness.members`` reads the finished runs of the experiments
``uncertainty_fairness/compas_*``.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.components.papers.uncertainty_fairness.tables import needed, ratios, single_runs

EXPERIMENTS = {
    "compas_trained": "bayes_by_backprop, 100 units",
    "compas_dropout": "mc_dropout, dropout 0.1",
    "compas_deep_ensemble": "deep_ensemble of 5",
    "compas_trees": "ensemble of 10 XGBoosts",
}
PARTS = ("aleatoric", "epistemic")
ATTRIBUTES = ("race", "sex")


def table(results: Path) -> Table:
    """Return accuracy and uncertainty levels of the white group, and ratios, mean (sd)."""
    shown = Table(title="COMPAS, mean (sd over splits)", title_justify="left")
    heads = [f"{part}, {name}" for part in PARTS for name in ("white", *ATTRIBUTES)]
    for name in ("members", "accuracy, white", *heads):
        shown.add_column(name)
    for experiment, label in EXPERIMENTS.items():
        ours = needed(experiment, results)
        columns = [single_runs(ours, "compas", "race", "accuracy", "white")]
        for part in PARTS:
            metric = f"{part}_uncertainty"
            columns.append(single_runs(ours, "compas", "race", metric, "white"))
            columns += [ratios(ours, "compas", name, metric) for name in ATTRIBUTES]
        shown.add_row(label, *(f"{runs.mean():.3g} ({runs.std():.1g})" for runs in columns))
    return shown


def main(options: Results) -> None:
    """Print the table."""
    Console(width=130).print(table(options.results))


if __name__ == "__main__":
    run_main(main, Results)
