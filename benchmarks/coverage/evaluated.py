"""The family of whole evaluations: arrays into `fairbench.evaluate`, every printed row compared.

The other families test functions, this one that the tables hold what these functions return. The
truth of a row is the value of the same row for a large sample laid out evenly over the population.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from benchmarks.coverage.simulate import BEFORE, Ends, Family, Sample, Setting
from fairbench import Evaluator, evaluate
from fairbench.core.arrays import Floats, rng
from fairbench.evaluation.table import VALUE, setting_text

Codes = NDArray[np.intp]
KEY = ["metric", "attribute", "group", "setting"]
LARGE = 20_000  # rows of the large sample
SIZES = (150, 500, 1500)
RATES = (0.03, 0.1, 0.3, 0.5, 0.9)
SLOPES = (1.0, 1.0, 0.5, 2.0, -1.0)
POPULATIONS = 200
REGRESSIONS = 4  # every fourth population is one
_GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class Random:
    """A random population of up to two attributes.

    Attributes
    ----------
    attributes : the group names (C,) of the C combinations, of each attribute.
    shares : (C,) shares of rows.
    centre, slope : (C,) mean logit of the scores, and slope of the labels' logits by them.
    base : about the share of labels 1; scores over it are predicted 1.
    regression : whether the target is a number, its errors' sd (C,) being the slopes' size.
    size : rows of a data set.
    """

    attributes: Mapping[str, Sequence[str]]
    shares: Floats
    centre: Floats
    slope: Floats
    base: float
    regression: bool
    size: int

    @classmethod
    def of(cls, number: int, seed: int) -> Random:
        """Return the population of a number."""
        draw = rng(seed, "coverage population", number)
        first = [f"a{i}" for i in range(draw.integers(2, 5))]
        second = [f"b{i}" for i in range(draw.integers(1, 3))]
        pairs = [(a, b) for a in first for b in second]
        attributes = {"a": [a for a, _ in pairs]}
        if len(second) > 1:
            attributes["b"] = [b for _, b in pairs]
        base = float(draw.choice(RATES))
        alike = draw.random() < 0.5
        centre = special.logit(base) + (0 if alike else 1) * draw.normal(0, 0.5, len(pairs))
        slope = np.ones(len(pairs)) if alike else draw.choice(SLOPES, len(pairs))
        shares = 0.05 + draw.dirichlet(np.full(len(pairs), 3.0))
        size = int(draw.choice(SIZES))
        regression = number % REGRESSIONS == 0
        return cls(attributes, shares / shares.sum(), centre, slope, base, regression, size)

    def drawn(self, draw: np.random.Generator) -> dict[str, Any]:
        """Return the arguments of `evaluate` for a random data set."""
        cell = draw.choice(len(self.shares), self.size, p=self.shares)
        first, second, third = draw.random((3, self.size))
        return self._arguments(cell, first, second, third)

    def even(self) -> dict[str, Any]:
        """Return the arguments of `evaluate` for the large sample."""
        cells = [np.full(round(LARGE * share), c) for c, share in enumerate(self.shares)]
        first = np.concatenate([(np.arange(len(c)) + 0.5) / len(c) for c in cells])
        index = np.concatenate([np.arange(len(c)) for c in cells])
        second = (0.5 + _GOLDEN * index) % 1
        return self._arguments(np.concatenate(cells), first, second, np.full(len(first), np.nan))

    def _arguments(self, cell: Codes, first: Floats, second: Floats, third: Floats) -> Arguments:
        features = {name: np.array(groups)[cell] for name, groups in self.attributes.items()}
        deviation = 1.2 * special.ndtri(first)
        if self.regression:
            error = np.abs(self.slope[cell]) * special.ndtri(second)
            prediction = self.centre[cell] + deviation
            columns = {"target": prediction + error, "sd": np.ones(len(cell)), "task": "regression"}
            return {"prediction": prediction, "sensitive_features": features, **columns}
        score = special.expit(self.centre[cell] + deviation)
        chance = special.expit(self.centre[cell] + self.slope[cell] * deviation)
        uneven = (third < chance).astype(float)
        return {
            "task": "binary",
            "target": _evenly(chance, cell) if np.isnan(third).any() else uneven,
            "prediction": (score > self.base).astype(int),
            "sensitive_features": features,
            "score": score,
            "uncertainty": np.sqrt(score * (1 - score)),
        }


def _evenly(chance: Floats, cell: Codes) -> Floats:
    """Return labels whose running sum never leaves that of the chances by more than 1/2."""
    labels = np.empty(len(chance))
    for c in np.unique(cell):
        total = np.floor(np.cumsum(chance[cell == c]) + 0.5)
        labels[cell == c] = np.diff(total, prepend=0)
    return labels


# Data sets: the arguments of `evaluate`, and the rows that the truth has a value for.
Arguments = dict[str, Any]
Known = list[tuple[Arguments, pd.DataFrame]]


def _draw(_: Setting, replications: int, draw: np.random.Generator) -> Sample:
    """Draw a data set from each population; the truth is of each metric, over all rows."""
    known: Known = []
    for number in range(replications):
        population = Random.of(number, 0)
        large = _rows(population.even(), Evaluator(draws=100))
        rows = large.loc[large["value"].notna(), [*KEY, "value"]]
        known.append((population.drawn(draw), rows))
    return Sample(known, _by_metric([rows for _, rows in known], "value"))


def _by_metric(parts: Sequence[pd.DataFrame], column: str) -> dict[str, Floats]:
    """Return a column of each metric, over all rows."""
    groups = pd.concat(parts, ignore_index=True).groupby("metric", sort=False)
    return {str(metric): of[column].to_numpy() for metric, of in groups}


def _rows(arguments: Arguments, evaluator: Evaluator) -> pd.DataFrame:
    """Return the rows of an evaluation, called after their statistic, with settings as texts."""
    table = evaluate(**arguments, evaluator=evaluator)
    other = table["statistic"] != VALUE
    table.loc[other, "metric"] += ", " + table["statistic"].astype(str)
    if arguments["task"] == "regression":
        table["metric"] += " (regression)"
    return table.assign(setting=setting_text(table).astype(str))


def _intervals(evaluator: Evaluator, data: Known, _: np.random.Generator) -> Ends:
    """Return both ends of every row that is known, NaN where none is printed."""
    parts = []
    for arguments, known in data:
        table = _rows(arguments, evaluator)
        of_diagram = table["metric"].str.startswith("reliability_")
        # Bins of a diagram are numbered without the empty ones: where the population has one, they
        # would be compared with others.
        if of_diagram.sum() != known["metric"].str.startswith("reliability_").sum():
            table = table[~of_diagram]
        parts.append(known[KEY].merge(table[[*KEY, "lower", "upper"]], on=KEY, how="left"))
    lower, upper = (_by_metric(parts, end) for end in ("lower", "upper"))
    printed = [metric for metric, ends in lower.items() if not np.isnan(ends).all()]
    return {metric: (lower[metric], upper[metric]) for metric in printed}


_MADE = {
    "ours": partial(_intervals, Evaluator()),
    BEFORE: partial(_intervals, Evaluator(interval="dirichlet")),
}
_ALL = [Setting(name=f"{POPULATIONS} random populations")]
FAMILIES = (Family("evaluate", lambda: _ALL, _draw, _MADE, POPULATIONS),)
