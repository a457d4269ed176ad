"""What is left of abstention's gains when its rate is not chosen on the test rows.

``python -m papers.fairlyuncertain.abstention_choice`` reads the finished runs of Tables 8 to 13:
the rate chosen on the test rows, as in the paper, and on validation rows. Abstaining at random
shows what choosing alone does.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from fairbench.cli.command import Results
from fairbench.components.papers import CONF, run_main
from fairbench.evaluation.summary import summarise
from fairbench.reporting.papers.matching import runs_needed

EXPERIMENTS = {
    "test": "fairlyuncertain/table8_13",
    "validation": "fairlyuncertain/table8_13_validation",
}
METHODS = ("random", "ensemble", "selective_ensemble", "self_consistency", "binomial_nll")
METRICS = ("error_rate", "statistical_parity", "equalized_odds")


def main(options: Results) -> None:
    """Print the mean relative change over data sets of each metric, by method."""
    columns = {
        (rows, metric): changes(experiment, metric, options.results).reindex(METHODS)
        for rows, experiment in EXPERIMENTS.items()
        for metric in METRICS
    }
    table = Table(title="change by abstention, mean over data sets", title_justify="left")
    table.add_column("method")
    for rows, metric in columns:
        table.add_column(f"{metric.replace('_', ' ')}, chosen on {rows} rows", justify="right")
    for method in METHODS:
        cells = (100 * change[method] for change in columns.values())
        table.add_row(method, *("-" if pd.isna(cell) else f"{cell:+.0f} %" for cell in cells))
    Console(width=100).print(table)


def changes(experiment: str, metric: str, results: Path) -> pd.Series:
    """Return, by method, the mean over data sets of the metric's relative change.

    Raises
    ------
    UserError : there is no finished run of the experiment.
    """
    found = pd.concat(
        summarise(metrics[metrics["group"] == ""], intervals=False).assign(
            dataset=choice["dataset"], method=choice["method"]
        )
        for choice, _, metrics in runs_needed(experiment, CONF, results)
    )
    chosen = found[found["metric"] == f"abstained_{metric}"].set_index(["dataset", "method"])
    plain = found[found["metric"] == metric].set_index(["dataset", "method"])
    if metric != "error_rate":
        protected = pd.MultiIndex.from_arrays(
            [*zip(*chosen.index, strict=True), chosen["attribute"]]
        )
        plain = plain.set_index("attribute", append=True).loc[protected].droplevel("attribute")
    relative = chosen["mean"] / plain["mean"].loc[chosen.index] - 1
    return relative.groupby("method").mean()


if __name__ == "__main__":
    run_main(main, Results)
