"""Networks of today beside boosting: error, likelihood, gaps and CPU on five splits.

``python -m benchmarks.networks [FOLDER]`` fits what FOLDER (by default ``results``) does not have
and prints a table for each data set. CPU seconds of cells fitted before are kept beside the runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import configuration, show
from fairbench.core.files import write_text
from fairbench.evaluation.columns import values_of
from fairbench.experiments import pipeline
from fairbench.inference.repeats import REPEATS, Splits, mean_limits
from fairbench.results.runs import Run

REFERENCE = "xgboost_tuned"
LEARNERS = ("xgboost", REFERENCE, "ft_transformer", "tabm")
LABELS = ("error_rate", "log_loss", "statistical_parity", "equalized_odds")
VALUES = ("rmse", "nll", "crps", "statistical_parity")
# Data set -> its method, and the metrics of its table.
DATA = {
    "german": ("binomial_nll", LABELS),
    "insurance": ("normal_nll", VALUES),
    "law_school": ("normal_nll", VALUES),
    "law_school_bar": ("binomial_nll", LABELS),
    "acs_employment_fu": ("binomial_nll", LABELS),
    "adult": ("binomial_nll", LABELS),
}
SPLITS, TRAINED = 5, 0.8
GAPS = ("statistical_parity", "equalized_odds")


def main(words: list[str]) -> None:
    """Fit what is missing, and print a table for each data set."""
    results = Path(words[0] if words else "results")
    for dataset, (method, metrics) in DATA.items():
        runs = {learner: finished(dataset, learner, method, results) for learner in LEARNERS}
        show(
            f"{dataset}, {method}: means over {SPLITS} splits",
            ("learner", *metrics, "CPU s a split"),
            [
                (name, *(_level(run, metric) for metric in metrics), _cpu(run, results))
                for name, run in runs.items()
            ],
        )
        compared = [metric for metric in metrics if metric not in GAPS]
        show(
            f"less {REFERENCE}'s, on the same splits: mean (95 % interval)",
            ("learner", *compared),
            [
                (name, *(_difference(run, runs[REFERENCE], metric) for metric in compared))
                for name, run in runs.items()
                if name != REFERENCE
            ],
        )


def finished(dataset: str, learner: str, method: str, results: Path) -> Run:
    """Return a finished run; cells that are fitted now leave their CPU seconds in a file."""
    words = (f"dataset={dataset}", f"learner={learner}", f"method={method}")
    others = (f"split.repeats={SPLITS}", f"split.train={TRAINED}", f"results={results}")
    run = pipeline.prepare(configuration(*words, *others, "tracking=none"))
    for cell in run.cells:
        started = time.process_time()
        if pipeline.ensure(cell, run.store):
            seconds = f"{time.process_time() - started:.2f}\n"
            write_text(results / "cpu" / f"{run.id}.{cell.fold.repeat}", seconds)
    pipeline.finish(run)
    return run.folder


def _level(run: Run, metric: str) -> str:
    """Return a mean over splits; of a gap with its 95 % interval."""
    rows = _rows(run.summary(), run, metric)
    result = rows.iloc[0]
    value = f"{result['mean']:.4f}"
    return value if metric not in GAPS else f"{value} ({result['lower']:.3f}-{result['upper']:.3f})"


def _difference(run: Run, other: Run, metric: str) -> str:
    """Return a paired difference with its corrected interval (Nadeau and Bengio 2003)."""
    first, second = (
        _rows(each.all_metrics(), each, metric).sort_values("repeat")["value"].to_numpy(float)
        for each in (run, other)
    )
    none = np.full(len(first), np.nan)
    limits = mean_limits(first - second, none, none, Splits(REPEATS, len(first), 1 - TRAINED))
    ends = (float(each) for each in (limits.value, limits.lower, limits.upper))
    return "{:+.4f} ({:+.4f} to {:+.4f})".format(*ends)


def _rows(table: pd.DataFrame, run: Run, metric: str) -> pd.DataFrame:
    attribute = run.protect if metric in GAPS else ""
    words: Mapping[str, str] = {"metric": metric, "attribute": attribute, "variant": ""}
    table = values_of(table)
    kept = np.logical_and.reduce([table[name] == value for name, value in words.items()])
    return table[kept & (table["group"] == "")]


def _cpu(run: Run, results: Path) -> float:
    """Return the mean CPU seconds of a split: encoding, fit and predictions."""
    files = (results / "cpu").glob(f"{run.path.name}.*")
    return float(np.mean([float(file.read_text()) for file in files]))


if __name__ == "__main__":
    main(sys.argv[1:])
