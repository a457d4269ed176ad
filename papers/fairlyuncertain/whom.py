"""Three claims about abstention: whose features move, which rows win, and which group is left out.

``python -m papers.fairlyuncertain.whom`` abstains on a quarter of the tested people. It prints the
features that move most, on average over the methods, with the place of the protected attribute; how
often the best row of a table abstains from nobody, in the paper's numbers and in ours; and how far
apart the groups' shares left out are. All but the second are means over splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from fairbench.components.papers import PAPERS, run_main
from fairbench.components.papers.fairlyuncertain.abstention import METRICS
from fairbench.components.papers.fairlyuncertain.people import job, tests
from fairbench.components.papers.options import Splits
from fairbench.core.arrays import Floats
from fairbench.evaluation.predictions import Labelled
from fairbench.metrics.abstention import feature_shift, keep_weights
from fairbench.reporting.papers.mapping import Paper
from fairbench.reporting.papers.record import recorded

EXPERIMENT = "fairlyuncertain/figure5"
# Data set -> its features that say the sex, race, age group or marital status.
PROTECTED = {
    "acs_employment_fu": ("RAC1P", "SEX", "MAR"),
    "adult": ("male", "race", "marital-status"),
    "bank": ("privileged_age", "marital"),
    "compas": ("male", "race"),
    "german": ("privileged_age",),
}
METHODS = ("random", "ensemble", "selective_ensemble", "self_consistency", "binomial_nll")
RATE = 0.25
TABLES = ("3", "8", "9", "10", "11", "12", "13")
FAIRNESS = tuple(name for name in METRICS if name != "error_rate")


def main(chosen: Splits) -> None:
    """Print the three tables."""
    features = Table(title="features that move most at a quarter left out", title_justify="left")
    groups = Table(title="gap of the groups' shares left out", title_justify="left")
    for name in ("data set", "most, second, third", "protected, with their places"):
        features.add_column(name)
    for name in ("data set", *METHODS):
        groups.add_column(name.replace("_", " "))
    for dataset in PROTECTED:
        read = {method: _splits(dataset, method, chosen) for method in METHODS}
        features.add_row(dataset, *_features(read, PROTECTED[dataset]))
        groups.add_row(dataset, *(f"{np.mean([*map(gap, s)]):.3f}" for s in read.values()))
    for table in (features, _best(), groups):
        Console(width=110).print(table)


def _splits(dataset: str, method: str, chosen: Splits) -> list[Labelled]:
    words = [f"dataset={dataset}", f"method={method}"]
    return list(tests(job(EXPERIMENT, chosen.results, words, chosen.repeats)))


def _kept(test: Labelled) -> Floats:
    return keep_weights(test.column("uncertainty"), RATE)


def gap(test: Labelled) -> float:
    """Return the largest difference of two groups' shares of people left out."""
    (labels,) = test.groups.values()
    left_out = pd.Series(1 - _kept(test)).groupby(labels.to_numpy(), observed=True).mean()
    return float(left_out.max() - left_out.min())


def _features(read: dict[str, list[Labelled]], protected: Sequence[str]) -> Iterator[str]:
    """Yield the features that move most, and the protected ones with their places among all."""
    shifts = []
    for splits in read.values():
        for test in splits:
            assert test.features is not None
            moved = feature_shift(test.features, _kept(test))
            shifts.append(pd.Series(moved, test.features.columns))
    mean = pd.concat(shifts, axis=1).mean(axis=1).sort_values(ascending=False)
    yield ", ".join(f"{name} {value:.2f}" for name, value in mean.head(3).items())
    place = {name: number for number, name in enumerate(mean.index, 1)}
    told = [f"{name} {mean[name]:.2f} ({place[name]})" for name in protected if name in place]
    yield ", ".join(told) + f" of {len(mean)}"


def _best() -> Table:
    """Return in how many fairness metrics of a table the best row abstains from nobody."""
    table = Table(title="fairness metrics whose best row abstains from nobody, of six")
    for name in ("table", "the paper's numbers", "ours"):
        table.add_column(name)
    paper = Paper.read("fairlyuncertain", PAPERS)
    record = recorded(paper)
    for name in TABLES:
        rows = record[record["table"] == name]
        table.add_row(name, *(str(without(rows, column)) for column in ("value", "ours")))
    return table


def without(rows: pd.DataFrame, column: str) -> int:
    """Return in how many of six fairness metrics the best row is of a method without abstention."""
    count = 0
    for metric in FAIRNESS:
        of_metric = rows[rows["metric"] == metric]
        values = pd.to_numeric(of_metric[column])
        distance = (values - 1).abs() if metric == "disparate_impact" else values
        count += of_metric.loc[distance.idxmin(), "method"] not in METHODS
    return count


if __name__ == "__main__":
    run_main(main, Splits)
