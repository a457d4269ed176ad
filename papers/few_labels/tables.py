"""Our numbers for Tables 4.2 to 4.7 of Ji's thesis (4.2 and 4.3 are Tables 2 and 3 of the paper).

What is theirs is kept: the released scores, the order in which labels are shown, the groups. A
posterior answers every table that asks for it, and is computed once for all that are run together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairbench.components.papers import PAPERS
from fairbench.components.papers.few_labels.methods import (
    AS_PUBLISHED,
    FAULTS,
    MODELS,
    POOL_NOISE,
    RATES,
    Method,
    calibrated,
    intervals,
    rate_of,
)
from fairbench.components.papers.few_labels.pools import (
    Rows,
    label_orders,
    released,
    true_difference,
)
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.data.download import Archive
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.reporting.papers.running import Effort

PUBLISHED = PAPERS / "few_labels" / "published.csv"
CONFIGURATION = ["dataset", "sensitive_attribute", "learner"]
COVERAGE = "coverage"
# By its caption, Table 4.4 averages a thousand label orders; the other tables average a hundred.
RUNS, COVERAGE_RUNS = 100, 1000
LABELS = {AS_PUBLISHED: "", POOL_NOISE: "with the pool's own noise"}
LABELS[FAULTS] = "with the published code's faults"
Key = tuple[str, str, str]


def published(table: str) -> pd.DataFrame:
    """Return the published numbers of one table, as text."""
    rows = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    return rows[rows["table"] == table]


def numbers(rows: pd.DataFrame, results: Path, effort: Effort) -> Iterator[dict[str, Any]]:
    """Yield our numbers for published ones, from the same scores and label orders.

    Parameters
    ----------
    rows : published numbers; the index is the place of each.
    """
    for (*key, metric), of_key in rows.groupby([*CONFIGURATION, "metric"], sort=False):
        whole = COVERAGE_RUNS if metric.startswith(COVERAGE) else RUNS
        runs = effort.choose(whole, 10, 2)
        for place, row in zip(of_key.index, of_key.to_dict("records"), strict=True):
            for number in _numbers((key[0], key[1], key[2]), row, runs):
                yield {"row": place, "repeats": runs, **number}


def _numbers(key: Key, row: dict[str, str], runs: int) -> Iterator[dict[str, Any]]:
    """Yield the number that reproduces a published one, then a further one if there is one."""
    method, metric = scaled_method(row), row["metric"]
    truth, own = true_difference(pool(*key), rate_of(metric)), np.sqrt(runs)
    readings = _readings(method, metric)
    said = answers(key, int(row["n_labelled"]), runs, method, readings)
    for reading in readings:
        values = said[reading][list(RATES.values()).index(rate_of(metric))]
        ours, error = score(values, truth, metric)
        label = {"label": LABELS[reading]} if LABELS[reading] else {}
        yield {**label, "mean": ours, "sd": error * own}


def scaled_method(row: dict[str, str]) -> Method:
    """Return the method of a published number, its priors as wide as its setting says."""
    return Method(row["method"], float(row["setting"].removeprefix("alpha=") or 1))


def _readings(method: Method, metric: str) -> tuple[str, ...]:
    if method.name not in MODELS:
        return (AS_PUBLISHED,)
    if metric.startswith(COVERAGE):
        return AS_PUBLISHED, POOL_NOISE
    return (AS_PUBLISHED, FAULTS) if metric == "mae_delta_tpr" else (AS_PUBLISHED,)


@cache
def answers(
    key: Key, labels: int, runs: int, method: Method, readings: tuple[str, ...] = (AS_PUBLISHED,)
) -> dict[str, Floats]:
    """Return what a method says of a pool from so many labels, in each of some label orders.

    Returns
    -------
    reading -> (K, R, 3) estimate, lower and upper end of the difference of each of `RATES`.
    """
    subsets = [order[:labels] for order in _orders(key, runs)]
    generator = rng(0, "few_labels", *key, str(labels))
    rates = list(RATES.values())
    if method.name in MODELS:
        return calibrated(pool(*key), subsets, method, rates, generator, readings)
    return {AS_PUBLISHED: intervals(pool(*key), subsets, method, rates, generator)}


@cache
def pool(dataset: str, attribute: str, learner: str) -> PartlyLabelled:
    """Return a learner's released scores, once read."""
    return released(Archive.of(download=False), dataset, attribute, learner)


@lru_cache(maxsize=2)
def _orders(key: Key, runs: int) -> Sequence[Rows]:
    return label_orders(pool(*key), runs)


def score(values: Floats, truth: float, metric: str) -> tuple[float, float]:
    """Return the mean absolute error in points, or the coverage in percent, and its error.

    Parameters
    ----------
    values : (R, 3) estimate, lower and upper end of every run.
    """
    if metric.startswith(COVERAGE):
        covered = (values[:, 1] <= truth) & (truth <= values[:, 2])
        # A run and a half more of either kind, so that 100 % has an error too.
        share = (covered.sum() + 1.5) / (len(values) + 3)
        error = np.sqrt(share * (1 - share) / len(values))
        return float(100 * covered.mean()), float(100 * error)
    errors = np.abs(values[:, 0] - truth)
    defined = errors[~np.isnan(errors)]
    return float(100 * defined.mean()), float(100 * defined.std() / np.sqrt(len(defined)))
