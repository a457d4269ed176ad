"""Errors and coverages of accuracy, TPR and FPR differences by number of labels, over thirds.

``python -m papers.few_labels.errors [quick=true] [csv=FILE]``: labels alone, the beta-binomial
model and calibration, for every data set, attribute and model, as the text has them; of what
``papers.few_labels.tables`` has computed, or else computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fairbench.cli.command import Results
from fairbench.components.papers import run_main
from fairbench.components.papers.few_labels.methods import HIERARCHY
from fairbench.components.papers.few_labels.pools import CONFIGURATIONS
from fairbench.components.papers.few_labels.study import (
    CONFIGURATION,
    RELEASED,
    TEXT,
    Key,
    Setting,
    number,
    study,
)
from fairbench.components.papers.few_labels.tables import RUNS, asked_of_key, published
from fairbench.components.papers.options import csv_file
from fairbench.core.options import option
from fairbench.reporting.papers.running import Effort

METHODS = {
    "frequentist": "labels alone",
    "beta_binomial": "beta-binomial",
    HIERARCHY: "calibration",
}
_COLUMNS = [*CONFIGURATION, "labels", "rate", "method"]


@dataclass(frozen=True)
class Options(Results):
    """Of which scores, and how many of them."""

    scores: str = option("thirds", "Whose scores.", choices=("thirds", "released"))
    quick: bool = option(False, "Only one data set, attribute and model, of two thirds.")
    csv: Path | None = csv_file()


def errors(
    keys: Sequence[Key], results: Path, effort: Effort, setting: Setting = TEXT
) -> pd.DataFrame:
    """Return a row per configuration, number of labels, rate and method.

    Returns
    -------
    The columns of the key, then ``error``, the mean absolute error in points, ``standard error``
    of its mean over the thirds, ``coverage`` of the 95 % intervals, and ``undefined``, the share of
    label orders without an estimate, in percent; these count as not covered.
    """
    frames = [_of_key(key, results, effort, setting) for key in keys]
    return pd.concat(frames, ignore_index=True)


def _of_key(key: Key, results: Path, effort: Effort, setting: Setting) -> pd.DataFrame:
    rows = published()
    rows = rows[(rows[CONFIGURATION] == list(key)).all(axis=1)]
    if effort is Effort.FIRST:
        rows = rows.drop_duplicates("metric")
    # Very wide priors are of the tables alone, and take long.
    asked = [a for a in asked_of_key(rows, setting) if a[1] == 1]
    frame = study(setting, key, asked, results, effort)
    frame = frame[frame["method"].isin(list(METHODS)) & (frame["scale"] == 1)]
    said = []
    for (method, labels, rate), of_thirds in frame.groupby(["method", "labels", "rate"]):
        found = number(of_thirds, coverage=False, runs=RUNS)
        said.append(
            {
                **dict(zip(_COLUMNS, (*key, labels, rate, METHODS[method]), strict=True)),
                "error": found.mean,
                "standard error": found.standard_error,
                "coverage": of_thirds["coverage"].mean(),
                "undefined": 100 * (1 - of_thirds["defined"].sum() / of_thirds["orders"].sum()),
            }
        )
    return pd.DataFrame(said)


def side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row per configuration, number of labels and rate; errors, then coverages.

    An error that is undefined in every run is missing, and its coverage 0.
    """
    indexed = frame.set_index(_COLUMNS)
    parts = [
        indexed[value].unstack("method", sort=False)[list(METHODS.values())].add_suffix(suffix)
        for value, suffix in (("error", ""), ("coverage", ", coverage"))
    ]
    return pd.concat(parts, axis=1).reset_index()


def best(frame: pd.DataFrame) -> pd.DataFrame:
    """Return, by rate and number of labels, mean errors and how often calibration errs least.

    Over the configurations where all methods have an estimate.
    """
    wide = side_by_side(frame).dropna()
    names = list(METHODS.values())
    least = wide["calibration"] <= wide[names].min(axis=1)
    groups = wide.assign(configurations=1, **{"calibration errs least": least}).groupby(
        ["rate", "labels"], sort=False
    )
    counted = groups[["configurations", "calibration errs least"]].sum()
    return groups[names].mean().join(counted).sort_index()


def main(options: Options) -> None:
    """Print the errors of every configuration, rate by rate, then how often calibration is best."""
    setting = RELEASED if options.scores == "released" else TEXT
    keys, effort = CONFIGURATIONS, Effort.WHOLE
    if options.quick:
        keys, effort = CONFIGURATIONS[-1:], Effort.FIRST
    frame = errors(keys, options.results, effort, setting)
    wide = side_by_side(frame)
    for rate, rows in wide.groupby("rate", sort=False):
        print(f"\nmean absolute error of the difference of {rate}, points; coverage, percent")
        print(rows.drop(columns="rate").round(1).to_string(index=False))
    print(f"\nmean error over the configurations\n{best(frame).round(1).to_string()}")
    covered = frame.pivot_table("coverage", ["method", "labels"], "rate", sort=False)
    print(f"\nmean coverage over the configurations\n{covered.round(0).to_string()}")
    if options.csv:
        wide.to_csv(options.csv, index=False, float_format="%.1f")


if __name__ == "__main__":
    run_main(main, Options)
