"""Errors of the differences of accuracy, TPR and FPR by number of labels: Tables B.1 to B.3.

``python -m papers.few_labels.errors [runs=100] [csv=FILE]``: every released configuration under
labels alone, the beta-binomial model and calibration. The appendix's printed numbers are not at
hand, so ours stand alone; accuracy, which Table 4.6 has, is printed beside the other two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.components.papers.few_labels.methods import AS_PUBLISHED, RATES, Method
from fairbench.components.papers.few_labels.pools import (
    CONFIGURATIONS,
    FIGURE_POOLS,
    true_difference,
)
from fairbench.components.papers.few_labels.tables import (
    CONFIGURATION,
    COVERAGE,
    RUNS,
    Key,
    answers,
    pool,
    score,
)
from fairbench.components.papers.options import csv_file, number_of_runs
from fairbench.core.files import atomic
from fairbench.reporting.papers.running import Effort

METHODS = {
    "labels alone": Method("frequentist"),
    "beta-binomial": Method("beta_binomial"),
    "calibration": Method("beta_calibration"),
}
NUMBERS = (10, 20, 40, 100, 200, 1000)
SMALL_NUMBERS = (10, 20, 30)  # of Ricci's forty people
_SMALL = 60
_COLUMNS = [*CONFIGURATION, "labels", "rate", "method"]


@dataclass(frozen=True)
class Options(Results):
    """Over how many choices of the labels, and where errors are kept."""

    runs: int = number_of_runs(RUNS)
    csv: Path | None = csv_file()


def numbers_of_labels(rows: int) -> list[int]:
    """Return the numbers of labels looked at in a pool of so many rows, as Table 4.6 has them."""
    return [n for n in (SMALL_NUMBERS if rows < _SMALL else NUMBERS) if n < rows]


def errors(configurations: Sequence[Key], runs: int, most: int = NUMBERS[-1]) -> pd.DataFrame:
    """Return a row per configuration, number of labels up to `most`, rate and method.

    Returns
    -------
    The columns of the key, then ``error``, the mean absolute error in points, ``standard error``,
    ``coverage`` of the 95 % intervals and ``undefined``, the runs without an estimate, in percent;
    these count as not covered. ``runs`` is the number of label orders.
    """
    rows = [row for key in configurations for row in _of_pool(key, runs, most)]
    return pd.DataFrame(rows).assign(runs=runs)


def _of_pool(key: Key, runs: int, most: int) -> Iterator[dict[str, object]]:
    table = pool(*key)
    for labels in (n for n in numbers_of_labels(len(table.score)) if n <= most):
        for name, method in METHODS.items():
            said = answers(key, labels, runs, method)[AS_PUBLISHED]
            for (rate_name, rate), values in zip(RATES.items(), said, strict=True):
                truth = true_difference(table, rate)
                undefined = np.isnan(values[:, 0])
                error, own = (np.nan, np.nan) if undefined.all() else score(values, truth, "mae")
                place = dict(zip(_COLUMNS, (*key, labels, rate_name, name), strict=True))
                yield {
                    **place,
                    "error": error,
                    "standard error": own,
                    "coverage": score(values, truth, COVERAGE)[0],
                    "undefined": 100 * undefined.mean(),
                }


def kept_errors(results: Path, effort: Effort) -> pd.DataFrame:
    """Return the errors of an effort's size, computed unless the results folder has them."""
    runs = effort.choose(RUNS, 5, 2)
    stem = "-".join(filter(None, ["errors", effort.value]))
    path = results / "papers" / "few_labels" / f"{stem}.csv"
    if path.is_file():
        kept = pd.read_csv(path)
        if (kept["runs"] == runs).all():
            return kept
    configurations = effort.choose(CONFIGURATIONS, CONFIGURATIONS, FIGURE_POOLS)
    frame = errors(configurations, runs, effort.choose(NUMBERS[-1], NUMBERS[-1], 20))
    with atomic(path) as file:
        frame.to_csv(file, index=False, float_format="%.4f")
    return frame


def side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per configuration, number of labels and rate; errors, then coverages.

    An error that is undefined in every run is missing, and its coverage 0.
    """
    indexed = frame.set_index(_COLUMNS)
    parts = [
        indexed[value].unstack("method", sort=False)[list(METHODS)].add_suffix(suffix)
        for value, suffix in (("error", ""), ("coverage", ", coverage"))
    ]
    return pd.concat(parts, axis=1).reset_index()


def best(frame: pd.DataFrame) -> pd.DataFrame:
    """Return, by rate and number of labels, mean errors and how often calibration errs least.

    Over the configurations where all methods have an estimate.
    """
    wide = side_by_side(frame).dropna()
    least = wide["calibration"] <= wide[list(METHODS)].min(axis=1)
    groups = wide.assign(configurations=1, **{"calibration errs least": least}).groupby(
        ["rate", "labels"], sort=False
    )
    counted = groups[["configurations", "calibration errs least"]].sum()
    return groups[list(METHODS)].mean().join(counted).sort_index()


def main(options: Options) -> None:
    """Print the errors of every configuration, rate by rate, then how often calibration is best."""
    if options.runs == RUNS:
        frame = kept_errors(options.results, Effort.WHOLE)
    else:
        frame = errors(CONFIGURATIONS, options.runs)
    wide = side_by_side(frame)
    for rate, rows in wide.groupby("rate", sort=False):
        print(f"\nmean absolute error of the difference of {rate}, points; coverage, percent")
        print(rows.drop(columns="rate").round(1).to_string(index=False))
    print(f"\nmean error over the configurations\n{best(frame).round(1).to_string()}")
    if options.csv:
        wide.to_csv(options.csv, index=False, float_format="%.1f")


if __name__ == "__main__":
    run_main(main, Options)
