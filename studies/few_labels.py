"""Ji, Smyth and Steyvers' tables of few labels, from their released scores: ours beside theirs.

``python -m studies.few_labels [--tables 4.2 4.3] [--runs 100] [--csv FILE]``. Tables have the
numbers of Ji's thesis; 4.2 and 4.3 are Tables 2 and 3 of the paper. What is theirs is kept: label
orders, scores as released (German's are of the other class), Beta(1/2, 1/2). Groups other than the
reference are taken as one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray
from sklearn.utils import shuffle

from fairbench.assessment.few_labels.bayesian_calibration import bayesian_calibrations
from fairbench.assessment.few_labels.beta_binomial import beta_binomial
from fairbench.assessment.few_labels.calibration import BETA, LLO, SEPARATE
from fairbench.assessment.few_labels.frequentist import frequentist
from fairbench.assessment.few_labels.table import PartlyLabelled
from fairbench.assessment.score_file import ScoreFile
from fairbench.download import Archive
from fairbench.metrics.group import difference
from fairbench.metrics.rates import Rate, accuracy, true_positive_rate
from fairbench.posterior import central_interval
from fairbench.seeds import rng

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results" / "published" / "bayesian_fairness_assessment.csv"
DEFAULT_TABLES = ("4.2", "4.3", "4.4")
MODELS = {
    "beta_calibration": BETA,
    "llo_calibration": LLO,
    "beta_calibration_nonhierarchical": SEPARATE,
}
RATES: dict[str, Rate] = {
    "mae_delta_accuracy": accuracy,
    "mae_delta_tpr": true_positive_rate,
    "coverage95_delta_accuracy_percent": accuracy,
}
CONFIGURATION = ["dataset", "sensitive_attribute", "learner"]
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


def label_orders(table: PartlyLabelled, runs: int) -> list[Rows]:
    """Return the order in which each run's labels are shown: a member of every group first."""
    return [_order(table.group, run) for run in range(runs)]


def _order(group: Rows, run: int) -> Rows:
    order = shuffle(np.arange(len(group)), random_state=run)
    first = np.unique(group[order], return_index=True)[1]
    return np.concatenate([order[first], np.delete(order, first)])


def intervals(
    table: PartlyLabelled,
    subsets: list[Rows],
    method: str,
    rate: Rate,
    generator: np.random.Generator,
    *,
    pool_noise: bool,
    scale: float = 1.0,
) -> Floats:
    """Return estimate, lower and upper end of the difference for every label subset, (R, 3)."""
    counts = [table.counts(rows) for rows in subsets]
    if method == "frequentist":
        estimates = [frequentist(labelled, rate).differences() for labelled in counts]
        value, error = (np.array([getattr(e, n)[0] for e in estimates]) for n in ("value", "error"))
        return np.column_stack([value, value - 1.96 * error, value + 1.96 * error])
    if method == "beta_binomial":
        draws = beta_binomial(np.array(counts), rate, generator, prior=0.5)
        return np.array([_summary(draws[:, i, 1] - draws[:, i, 0]) for i in range(len(subsets))])
    posteriors = bayesian_calibrations(
        table, subsets, generator, model=MODELS[method].scaled(scale), pool_noise=pool_noise
    )
    return np.array([_summary(difference(rate, p.counts)[:, 0]) for p in posteriors])


def _summary(draws: Floats) -> Floats:
    return np.array([draws.mean(), *central_interval(draws)])


def compare(rows: pd.DataFrame, runs: int) -> Iterator[dict[str, object]]:
    """Yield our numbers for published ones, computed as the paper did and with pool noise."""
    archive = Archive.of(download=False)
    for key, numbers in rows.groupby(CONFIGURATION, sort=False):
        table = _scores(archive, *key)
        orders = label_orders(table, runs)
        for row in numbers.to_dict("records"):
            subsets = [order[: int(row["n_labelled"])] for order in orders]
            generator = rng(0, "few_labels", *key, row["n_labelled"])
            yield _compared(table, subsets, row, generator)


def _compared(
    table: PartlyLabelled, subsets: list[Rows], row: dict[str, str], generator: np.random.Generator
) -> dict[str, object]:
    method, rate, published = row["method"], RATES[row["metric"]], float(row["value"])
    truth = difference(rate, table.counts())[0]
    scale = float(row["setting"].removeprefix("alpha=") or 1)

    def score(pool_noise: bool) -> float:
        options = {"pool_noise": pool_noise, "scale": scale}
        values = intervals(table, subsets, method, rate, generator, **options)
        return _score(values, truth, row["metric"])

    ours = score(pool_noise=False)
    return {
        **{name: row[name] for name in ("table", *CONFIGURATION, "setting", "method")},
        "labels": int(row["n_labelled"]),
        "published": published,
        "ours": ours,
        "difference": ours - published,
        "pool noise": score(pool_noise=True) if method in MODELS else np.nan,
    }


def _scores(archive: Archive, dataset: str, attribute: str, learner: str) -> PartlyLabelled:
    path = ROOT / "conf" / "scores" / f"{dataset}_{attribute}.yaml"
    config = yaml.safe_load(path.read_text())
    config.pop("_target_")
    file = ScoreFile(**config)
    (column,) = file.groups
    return file.table(archive, learner, column, merge=True, as_released=True)


def _score(values: Floats, truth: float, metric: str) -> float:
    """Return the mean absolute error in points, or the coverage in percent, over runs."""
    if metric.startswith("coverage"):
        return float(100 * ((values[:, 1] <= truth) & (truth <= values[:, 2])).mean())
    return float(100 * np.nanmean(np.abs(values[:, 0] - truth)))


def main() -> None:
    """Print the tables, and their means per method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=DEFAULT_TABLES)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    rows = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    ours = pd.DataFrame(compare(rows[rows["table"].isin(options.tables)], options.runs))
    for table, part in ours.groupby("table"):
        print(f"\nTable {table}: {options.runs} runs, percent")
        print(part.drop(columns="table").round(1).to_string(index=False))
        means = part.groupby(["method", "labels"])[["published", "ours", "pool noise"]].mean()
        print(f"\nTable {table}: means\n{means.round(2)}")
    if options.csv:
        ours.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
