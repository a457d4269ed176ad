"""Kuzucu et al.'s Tables 1, 3 and 5 beside ours, and Proposition 4.1 as probabilities.

``python -m papers.uncertainty_fairness.tables [results]`` reads the finished runs of the
experiments ``uncertainty_fairness/*``. The paper prints single runs; ours are shown with the range
of 19 in 20 of their runs: 20 populations for SD1-3, splits that overlap for the others. A ratio
over a variance too small to divide by is not printed, theirs neither.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy.stats import beta

from fairbench.reporting.papers import finished_runs
from papers import CONF, PAPERS

PUBLISHED = PAPERS / "uncertainty_fairness" / "published.csv"
EXPERIMENTS = {
    "sd1_3": "SD1-3, five epochs as in the paper",
    "sd1_3_trained": "SD1-3, trained until held-out rows no longer improve",
    "compas": "COMPAS, 100 units",
    "adult": "Adult, 25 units",
}
METRICS = {
    "accuracy": "accuracy",
    "ppv": "positive_predictive_value",
    "npv": "negative_predictive_value",
    "fpr": "false_positive_rate",
    "fnr": "false_negative_rate",
    "epistemic": "epistemic_uncertainty",
    "aleatoric": "aleatoric_uncertainty",
    "predictive": "predictive_uncertainty",
    "ratio_statistical_parity": "selection_rate",
    "ratio_equal_opportunity": "true_positive_rate",
    "ratio_equal_accuracy": "accuracy",
    "ratio_epistemic": "epistemic_uncertainty",
    "ratio_aleatoric": "aleatoric_uncertainty",
    "ratio_predictive": "predictive_uncertainty",
}
GROUPS: dict[str, dict[str, str | tuple[str, ...]]] = {
    "group": {"0": "0", "1": "1"},
    "race": {"black": ("African-American", "Black"), "white": ("Caucasian", "White")},
    "age": {"<25": "under 25", "25-45": "25 to 45", ">45": "over 45"},
    "sex": {"female": "Female", "male": "Male"},
}
PAIRS = {
    "group": "01",
    "race": ("black", "white"),
    "age": ("<25", ">45"),
    "sex": ("female", "male"),
}
VARIANCES = ("epistemic_uncertainty", "aleatoric_uncertainty", "predictive_uncertainty")
NEGLIGIBLE = 2e-6  # the evaluator's: probabilities with a standard deviation of 0.001
RARE = 0.005  # of a rate
BAND = 0.2
POINT = ("selection_rate", "true_positive_rate", "accuracy")


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


def values(experiment: str, results: Path, overrides: Sequence[str] = ()) -> pd.DataFrame:
    """Return the groups' metrics of every finished run and repeat of an experiment."""
    found = []
    name, conf = f"uncertainty_fairness/{experiment}", CONF
    for choice, folder in finished_runs(name, conf, results, overrides):
        metrics = folder.metrics()
        of_groups = metrics["metric"].isin(METRICS.values()) & metrics["group"].ne("")
        run = choice.get("dataset.seed", "0")
        found.append(metrics[of_groups].assign(dataset=choice["dataset"], run=run))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def single_runs(
    ours: pd.DataFrame, dataset: str, attribute: str, metric: str, group: str
) -> pd.Series:
    """Return a metric of a group in every run and repeat."""
    names = np.atleast_1d(GROUPS[attribute][group])
    chosen = ours["group"].isin(names) & ours["dataset"].eq(dataset)
    rows = ours[chosen & ours["attribute"].eq(attribute) & ours["metric"].eq(metric)]
    return rows.set_index(["run", "repeat"])["value"]


def ratios(ours: pd.DataFrame, dataset: str, attribute: str, metric: str) -> pd.Series:
    """Return G0 / G1 in every run, NaN where the denominator is too small to divide by."""
    top, bottom = (single_runs(ours, dataset, attribute, metric, g) for g in PAIRS[attribute])
    floor = NEGLIGIBLE if metric in VARIANCES else RARE
    return top / bottom.where(bottom > floor)


def beside(published: pd.DataFrame, ours: pd.DataFrame, title: str) -> Table:
    """Return a row for every printed number of the data sets that were run."""
    table = Table(title=title, title_justify="left")
    for head in ("data set", "attribute", "metric", "of", "published", "ours", "95 % of runs", ""):
        table.add_column(head, justify="right" if head in ("published", "ours") else "left")
    for row in published[published["dataset"].isin(ours["dataset"])].itertuples():
        key = (row.dataset, row.sensitive_attribute)
        name = METRICS.get(row.metric)
        is_ratio = row.metric.startswith("ratio")
        if name is None:
            runs = pd.Series(dtype=float)
        elif is_ratio:
            runs = ratios(ours, *key, name)
        else:
            runs = single_runs(ours, *key, name, row.setting.removeprefix("group="))
        tiny = is_ratio and name in VARIANCES and _denominator(published, *key, name) < NEGLIGIBLE
        table.add_row(*key, row.metric, row.setting, *_cells(row.value, runs, tiny=tiny))
    return table


def _denominator(published: pd.DataFrame, dataset: str, attribute: str, metric: str) -> float:
    same = published["dataset"].eq(dataset) & published["sensitive_attribute"].eq(attribute)
    group = published["setting"].eq(f"group={PAIRS[attribute][1]}")
    return float(
        published[same & group & published["metric"].map(METRICS).eq(metric)]["value"].iloc[0]
    )


def _cells(printed: str, runs: pd.Series, *, tiny: bool) -> tuple[str, str, str, str]:
    """Return the published number, our mean, our range, and whether theirs is inside."""
    theirs = "tiny denominator" if tiny else printed
    defined = runs.dropna()
    if defined.empty:
        return theirs, "-", "", "not defined" if runs.empty else "nothing to divide by"
    lower, upper = np.quantile(defined, [0.025, 0.975])
    # Half a unit of the printed digits, of which the file has lost trailing zeros.
    value, half = float(printed), 0.5 * 10.0 ** min(int(Decimal(printed).as_tuple().exponent), -2)
    inside = "" if tiny else "inside" if lower - half <= value <= upper + half else "outside"
    missing = f", {len(runs) - len(defined)} undefined" if len(defined) < len(runs) else ""
    return theirs, f"{defined.mean():.3g}", f"{lower:.3g} to {upper:.3g}{missing}", inside


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


def main(results: str = "results") -> None:
    """Print the tables of what was run."""
    published = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    console = Console(width=130)
    for experiment, title in EXPERIMENTS.items():
        ours = values(experiment, Path(results))
        if ours.empty:
            console.print(f"nothing was run yet of experiment=uncertainty_fairness/{experiment}")
            continue
        console.print(beside(published, ours, title))
        if set(DIRECTIONS) <= set(ours["dataset"]):
            console.print(directions(ours, f"Proposition 4.1: {title}"))


if __name__ == "__main__":
    main(*sys.argv[1:])
