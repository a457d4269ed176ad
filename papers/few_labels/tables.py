"""Tables 4.2 to 4.7 of Ji's thesis (4.2 and 4.3 are Tables 2 and 3 of the paper): ours beside."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.seeds import rng
from fairbench.data.download import Archive
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.metrics.rates import Rate, accuracy, true_positive_rate
from papers import PAPERS
from papers.few_labels.methods import MODELS, Method, intervals
from papers.few_labels.pools import Rows, label_orders, released, true_difference
from papers.few_labels.published_code import faulty_estimates

PUBLISHED = PAPERS / "few_labels" / "published.csv"
TABLES = ("4.2", "4.3", "4.4", "4.5", "4.6", "4.7")
RATES: dict[str, Rate] = {
    "mae_delta_accuracy": accuracy,
    "mae_delta_tpr": true_positive_rate,
    "coverage95_delta_accuracy_percent": accuracy,
}
CONFIGURATION = ["dataset", "sensitive_attribute", "learner"]
# Half a unit of the last digit that is printed.
_PRINTED = 0.05
Floats = NDArray[np.float64]


def published(table: str) -> pd.DataFrame:
    """Return the published numbers of one table, as text."""
    rows = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    return rows[rows["table"] == table]


def compare(rows: pd.DataFrame, runs: int) -> Iterator[dict[str, object]]:
    """Yield our numbers for published ones, from the same scores and label orders."""
    archive = Archive.of(download=False)
    for key, numbers in rows.groupby(CONFIGURATION, sort=False):
        table = released(archive, *key)
        orders = label_orders(table, runs)
        for row in numbers.to_dict("records"):
            subsets = [order[: int(row["n_labelled"])] for order in orders]
            generator = rng(0, "few_labels", *key, row["n_labelled"])
            yield _compared(table, subsets, row, generator)


def _compared(
    table: PartlyLabelled, subsets: list[Rows], row: dict[str, str], generator: np.random.Generator
) -> dict[str, object]:
    method, metric, theirs = row["method"], row["metric"], float(row["value"])
    rate, scale = RATES[metric], float(row["setting"].removeprefix("alpha=") or 1)
    truth = true_difference(table, rate)
    values = intervals(table, subsets, Method(method, scale), rate, generator)
    ours, error = score(values, truth, metric)
    also = np.nan
    if method in MODELS and metric.startswith("coverage"):
        noisy = Method(method, scale, pool_noise=True)
        also, _ = score(intervals(table, subsets, noisy, rate, generator), truth, metric)
    elif method in MODELS and metric == "mae_delta_tpr":
        also = 100 * np.abs(faulty_estimates(table, subsets, generator) - truth).mean()
    return {
        **{name: row[name] for name in ("table", *CONFIGURATION, "setting", "method")},
        "labels": int(row["n_labelled"]),
        "published": theirs,
        "ours": ours,
        "difference": ours - theirs,
        "agrees": bool(abs(ours - theirs) <= 2 * np.sqrt(2) * error + _PRINTED),
        also_means(metric): also,
    }


def also_means(metric: str) -> str:
    """Return the name of the further column that a table of this metric has."""
    if metric == "mae_delta_tpr":
        return "with their faults"
    return "pool noise" if metric.startswith("coverage") else "-"


def score(values: Floats, truth: float, metric: str) -> tuple[float, float]:
    """Return the mean absolute error in points, or the coverage in percent, and its error.

    Parameters
    ----------
    values : (R, 3) estimate, lower and upper end of every run.
    """
    if metric.startswith("coverage"):
        covered = (values[:, 1] <= truth) & (truth <= values[:, 2])
        # A run and a half more of either kind, so that 100 % has an error too.
        share = (covered.sum() + 1.5) / (len(values) + 3)
        error = np.sqrt(share * (1 - share) / len(values))
        return float(100 * covered.mean()), float(100 * error)
    errors = np.abs(values[:, 0] - truth)
    known = errors[~np.isnan(errors)]
    return float(100 * known.mean()), float(100 * known.std() / np.sqrt(len(known)))


def scoreboard(ours: pd.DataFrame) -> pd.DataFrame:
    """Return numbers, how many agree, and the mean absolute difference, by table and method."""
    groups = ours.assign(size=ours["difference"].abs()).groupby(["table", "method"])
    board = groups.agg(
        numbers=("agrees", "size"),
        agree=("agrees", "sum"),
        published=("published", "mean"),
        ours=("ours", "mean"),
        mean_absolute_difference=("size", "mean"),
    )
    return board.round(2)
