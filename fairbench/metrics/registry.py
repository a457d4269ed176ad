"""The registry of metrics, each of which is declared once, in a row of ``declared.csv``.

A row says what a metric is called, how it is computed, which values are good, what its interval is
made from and where it is shown; its columns are explained in :class:`Metric`. The column `formula`
has the cells of a rate, as in ``FP / (TN + FP)``, or a function of a module of this package, with
what it is of in brackets: ``group.gap(selection_rate)``; nothing of a number that
:mod:`fairbench.evaluation` computes of all groups at once. A :class:`Metric` at the top level of a
module of this package is a declaration, too. The evaluator, the tables, the figures, the pages,
comparisons and audits take names, labels, directions and sizes that do not matter from here.
"""

from __future__ import annotations

import csv
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbench.core.arrays import Floats, read_only
from fairbench.core.errors import UserError, check_choice, unknown_name

Better: TypeAlias = Literal["higher", "lower", "neither"] | float
Interval = Literal[
    "rate",
    "difference",
    "ratio",
    "widest",
    "widest_mean",
    "mean",
    "heavy_mean",
    "root_mean",
    "explained",
    "auc",
    "none",
]
WIDEST: tuple[Interval, ...] = ("widest", "widest_mean")  # those that compare all groups at once
BINARY, MULTICLASS, REGRESSION = "binary", "multiclass", "regression"
AT = "@"  # between a metric and the setting, class or group that it is of
# Names that metrics had -> their names now. The parity of that name weighted classes by how often
# each was predicted, where the paper's equation (9) has how often each is the label.
RENAMED: Mapping[str, str] = {
    "statistical_parity_macro": "statistical_parity_class_mean",
    "equal_opportunity_macro": "equal_opportunity_class_mean",
    "statistical_parity_macro_micro": "statistical_parity_weighted",
    "equal_opportunity_macro_micro": "equal_opportunity_weighted",
}


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A declared metric.

    Attributes
    ----------
    name : its name in the column ``metric`` of the long table.
    label : its name in tables and figures.
    sentence : its definition in plain words.
    task : ``binary``, ``multiclass`` or ``regression``.
    better : ``higher``, ``lower``, ``neither``, or the value to be close to.
    needs : its inputs besides the target: columns of the predictions (``prediction``,
        ``score``, ``uncertainty``, ``sd``; ``sd_or_uncertainty`` is the first that there is;
        ``scores`` (n, C) those of all classes), lengths of sequences (``frames``,
        ``frames_read``), and ``groups`` where it compares groups.
    interval : how its interval is made, which says what its function takes and returns.
        ``rate`` : takes confusion counts (..., 4), returns (...): one of its `rates`, or the mean
        of two. The interval is made from the counts, as are the next three.
        ``widest`` : takes counts of groups (..., G, 4), the reference first, returns (...): the
        largest of the gaps of its `rates`, or a ratio of one.
        ``widest_mean`` : the same, the gap of the mean of two rates.
        ``difference``, ``ratio`` : take counts of groups (..., G, 4), return (..., G - 1): one
        rate of every other group against the reference's.
        ``mean`` : takes the target and the columns it needs, (n,) each, returns losses (n,). The
        interval is made from their moments.
        ``heavy_mean`` : as ``mean``, for losses with heavy tails, such as squared errors.
        ``auc``, ``root_mean`` (of squares of target minus prediction), ``explained`` (share of the
        target's variance) : without a function. An evaluation computes values of all groups at
        once, with the closed form of their interval.
        ``none`` : without a function. The module that adds its rows computes values and interval,
        if it has one.
    least, most : the bounds of its values, such as 0 for losses that are never negative; see
        `at_most`.
    fewest : the number of rows under which the interval of a mean would not hold, if larger than
        the number that its kind of interval needs.
    rates : the rates that a function of counts is computed from; it is undefined where they are.
    epsilon : a difference that makes no practical difference.
    relative : whether `epsilon` is a share of the median value.
    undefined : why a number is NaN; ``{part}`` stands for the name of the group or part.
    shown : where the table of a run shows it: ``everyone``, ``groups``, ``gaps``.
    special : whether a module of its own in fairbench.evaluation adds its rows.
    """

    name: str
    label: str
    sentence: str
    task: str
    better: Better
    needs: tuple[str, ...]
    interval: Interval
    function: Callable[..., Any]
    least: float = -np.inf
    most: float = np.inf
    fewest: int = 0
    rates: tuple[Rate, ...] = ()
    epsilon: float = 0.01
    relative: bool = False
    undefined: str = "the value is not a number"
    shown: tuple[str, ...] = ()
    special: bool = False

    def __call__(self, *arrays: Any) -> Any:
        """Return what its function returns of arrays, which it cannot change."""
        return self.function(*map(read_only, arrays))

    @property
    def at_most(self) -> float:
        """What no value is above: 1 of shares, areas and what compares rates."""
        shares = ("rate", "auc", "explained", "difference", "widest_mean")
        share = self.interval in shares or self.is_gap
        return min(self.most, 1.0) if share else self.most

    @property
    def is_gap(self) -> bool:
        """Whether it is the largest difference of groups in a rate, of which 0 is fair."""
        return self.interval == "widest" and self.better == "lower"

    @property
    def direction(self) -> str:
        """In words, which values are good; empty where none are."""
        if isinstance(self.better, float):
            return f"nearer to {self.better:g} is better"
        words = {"higher": "larger is better", "lower": "smaller is better", "neither": ""}
        return words[self.better]

    def larger_is_better(self, values: Floats) -> Floats:
        """Return values turned so that the larger are the better; as they are without direction."""
        if isinstance(self.better, float):
            return near(values, self.better)
        return -values if self.better == "lower" else values

    def negligible(self, values: Floats) -> float:
        """Return the largest difference that does not matter in practice, among these values."""
        return self.epsilon * float(np.median(np.abs(values))) if self.relative else self.epsilon


def _without_function(*_: Any) -> float:
    """Stand for the function of a metric that an evaluation computes of all groups at once."""
    return float("nan")


def near(values: Floats, target: float) -> Floats:
    """Return how near values are to a positive target, as a ratio of at most 1; 0 if negative."""
    values = np.maximum(values, 0)
    with np.errstate(divide="ignore"):
        return np.minimum(values / target, target / values)


@lru_cache(maxsize=1)
def declared() -> tuple[Metric, ...]:
    """Return every declared metric: the rows of the table, then what modules declare themselves.

    Raises
    ------
    UserError : two metrics of one task have one name, or one is not what its interval is made of.
    """
    package = import_module("fairbench.metrics")
    found = [(TABLE.name, _metric_of(row)) for row in table_rows()]
    for info in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{info.name}")
        values = vars(module).values()
        found += [(f"{info.name}.py", value) for value in values if isinstance(value, Metric)]
    metrics: dict[tuple[str, str], Metric] = {}
    for file, metric in found:
        if metrics.setdefault((metric.name, metric.task), metric) is not metric:
            raise UserError(f"two metrics are called {metric.name}: see {file}")
        where = f"{metric.name} in {file}"
        if file != TABLE.name:
            _check_own(metric, where)
        if metric.interval in _MADE_OF:
            _check_rates(metric, where)
    return tuple(metrics.values())


def _metric_of(row: Mapping[str, str]) -> Metric:
    """Return the metric that a row of the table declares."""
    formula, task, better = row["formula"], row["task"], row["better"]
    function: Callable[..., Any] = _without_function
    arguments: list[Any] = []
    if is_rate := "/" in formula:
        function = RATES[row["name"]]
        arguments = [function]
    elif formula:
        module, name, *names = re.findall(r"\w+", formula)
        arguments = [RATES.get(argument, argument) for argument in names]
        function = getattr(import_module(f"fairbench.metrics.{module}"), name)
        function = partial(function, *arguments) if arguments else function
    compared = [argument for argument in arguments if isinstance(argument, Rate)]
    kinds: Mapping[str, Callable[[str], Any]] = {
        **dict.fromkeys(("name", "label", "sentence", "task", "interval"), str),
        **dict.fromkeys(("needs", "shown"), lambda words: tuple(words.split())),
        **dict.fromkeys(("relative", "special"), lambda word: word == "yes"),
        **{"least": float, "most": float, "fewest": int, "undefined": str},
    }
    direction: Any = better if better.isalpha() else float(better)
    given = {name: kind(row[name]) for name, kind in kinds.items() if row[name]}
    if is_rate:
        given["undefined"] = Metric.undefined
    return Metric(
        **{"needs": (), **given},
        better=direction,
        function=function,
        rates=tuple(compared) if task == BINARY else (),
    )


# The kinds of interval that a metric which a module declares can have: others have their own code.
_OWN: Mapping[str, tuple[Interval, ...]] = {
    BINARY: ("rate", "difference", "ratio", "widest", "widest_mean", "mean"),
    MULTICLASS: ("mean",),
    REGRESSION: ("mean", "heavy_mean"),
}
_NOT_LISTED = ("mean", "sd", "uncertainty", "aleatoric", "epistemic")


def _check_own(metric: Metric, where: str) -> None:
    """Refuse a metric of a module that nothing would compute, and so would be left out silently."""
    check_choice(f"task of {where}", metric.task, _OWN)
    check_choice(f"interval of {where}", metric.interval, _OWN[metric.task])
    if metric.special:
        raise UserError(f"{where}: special=True is for rows of {TABLE.name}; leave it out")
    if metric.interval in _MADE_OF:
        return
    rows = [row for row in table_rows() if row["task"] == metric.task and not row["special"]]
    listed = {need for row in rows for need in row["needs"].split()} - {"groups"}
    listed |= set() if metric.task == MULTICLASS else set(_NOT_LISTED)
    for need in metric.needs:
        if not any(map(str.isdigit, need)):  # such as lower_90, and a class's score_2
            check_choice(f"column that {where} needs", need, listed)
    target = np.array([0.0, 1.0, 0.0, 1.0])
    given = [np.eye(4, 2) if need == "scores" else target for need in metric.needs]
    if np.shape(metric(target, *given)) != target.shape:
        raise UserError(f"{where}: its function must return one loss for each row")


def _check_rates(metric: Metric, where: str) -> None:
    """Refuse a metric of counts that is something else than its interval is made of.

    An interval is made of the metric's rates, and would be another quantity's.
    """
    counts = np.array([[40, 7, 11, 30], [25, 12, 3, 60], [9, 2, 8, 5]], np.float64)  # three groups
    rates = np.array([rate(counts) for rate in metric.rates or RATES.values()])
    largest_gap, ratio = np.ptp(rates, axis=1).max(), rates[0].min() / rates[0].max()
    most, expected = {  # by interval: how many rates at most, and what the values are to be
        "rate": (2, rates.mean(axis=0)),
        "difference": (1, rates[0, 1:] - rates[0, 0]),
        "ratio": (1, rates[0, 1:] / rates[0, 0]),
        "widest": (len(rates), largest_gap) if metric.is_gap else (1, ratio),
        "widest_mean": (2 * (metric.better == "lower"), np.ptp(rates.mean(axis=0))),
    }[metric.interval]
    value = metric(counts) if 0 < len(metric.rates) <= most else np.nan
    if np.shape(value) != np.shape(expected) or not np.allclose(value, expected):
        raise UserError(
            f"{where}: interval={metric.interval!r} is for {_MADE_OF[metric.interval]}, which it "
            "names as rates=, and its function is something else, whose interval this would not "
            "be: declare a metric for each rate, or the larger_gap of several"
        )


_MADE_OF = {
    "rate": "one of its rates, or the mean of two",
    "difference": "one rate of every group minus the reference group's",
    "ratio": "one rate of every group over the reference group's",
    "widest": "the largest difference of two groups in one of its rates, or a ratio of one rate",
    "widest_mean": "the largest difference of two groups in the mean of its rates",
}


@lru_cache(maxsize=16)
def metrics_of(task: str, *intervals: Interval) -> Mapping[str, Metric]:
    """Return the metrics of a task by name, of these kinds of interval or of any."""
    of_task = [metric for metric in declared() if metric.task == task]
    return MappingProxyType(
        {metric.name: metric for metric in of_task if not intervals or metric.interval in intervals}
    )


def gaps_of(task: str) -> list[str]:
    """Return the gaps between groups in what a task predicts, any of which can be the headline."""
    needed = {"prediction", "groups"}
    metrics = metrics_of(task).values()
    return [of.name for of in metrics if of.better == "lower" and {*of.needs} == needed]


@lru_cache(maxsize=1024)
def find(name: str) -> Metric | None:
    """Return the metric of a name, of the first task that has it; None of what is not declared."""
    matching = [metric for metric in declared() if metric.name == name]
    return min(matching, key=lambda metric: metric.task, default=None)


def named(name: str, task: str) -> Metric:
    """Return the metric of a name, also of one that runs store without a declaration.

    Those are means of uncertainties, their consistency, and what compares a metric between groups.
    A gap is better the smaller it is, a ratio the nearer it is to 1. ``coverage@0.9`` is what a
    metric is at one of the settings, classes or groups that runs store several values of.

    Raises
    ------
    UserError : the metric has another name now.
    """
    if name in RENAMED:
        raise unknown_metric("objective", name, ())
    if metric := metrics_of(task).get(name):
        return metric
    stem = name.partition(AT)[0]
    if metric := metrics_of(task).get(stem) or find(stem):
        # What another task computes of counts has stored values here, such as those of classes.
        return replace(metric, name=name, interval="none", rates=())
    thresholded = find(re.sub("^(abstention|postprocessed(_validation)?)_", "", stem))
    compared = thresholded or find(re.sub("_(gap|difference)$", "", stem))
    better: Better = thresholded.better if thresholded else "neither"
    if stem.endswith("_ratio"):
        better = 1.0
    elif stem.endswith("_gap") or stem.startswith("consistency_"):
        better = "lower"
    return Metric(
        name=name,
        label=label(name),
        sentence="",
        task=task,
        better=better,
        needs=(),
        interval="none",
        function=_without_function,
        epsilon=compared.epsilon if compared else Metric.epsilon,
        relative=compared.relative if compared else not isinstance(better, float),
        special=True,
    )


def unknown_metric(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """Build the error for a name that no metric has: with its name now, or the nearest ones."""
    if name in RENAMED:
        return UserError(f"the {kind} '{name}' is called {RENAMED[name]} now")
    return unknown_name(kind, name, valid)


def label(name: str) -> str:
    """Return what a metric is called in tables; derived names are read as they are spelt."""
    stem, *at = name.split(AT)
    metric = find(stem)
    return " at ".join([metric.label if metric else stem.replace("_", " "), *at])


# Confusion counts per group, and the rates that are ratios of sums of their cells.

TN, FP, FN, TP = range(4)


def confusion(
    target: ArrayLike,
    prediction: ArrayLike,
    group: ArrayLike,
    *,
    n_groups: int,
    n_classes: int = 2,
    times: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Count (group, target class, predicted class).

    Parameters
    ----------
    target, prediction : (n,) class codes 0 .. n_classes - 1.
    group : (n,) group codes 0 .. n_groups - 1.
    times : (n,) how often each row comes; once by default.

    Returns
    -------
    (G, C, C) counts; a group without rows is all zeros.
    """
    target, prediction, group = (np.asarray(a, np.int64) for a in (target, prediction, group))
    cell = (group * n_classes + target) * n_classes + prediction
    counts = np.bincount(cell, times, minlength=n_groups * n_classes**2)
    return counts.reshape(n_groups, n_classes, n_classes).astype(np.int64)


def binary_confusion(
    target: ArrayLike,
    prediction: ArrayLike,
    group: ArrayLike,
    *,
    n_groups: int,
    times: ArrayLike | None = None,
) -> NDArray[np.int64]:
    """Count (group, [TN, FP, FN, TP]) as a (G, 4) array."""
    counts = confusion(target, prediction, group, n_groups=n_groups, times=times)
    return counts.reshape(n_groups, 4)


def total(counts: NDArray[Any]) -> NDArray[Any]:
    """Return the counts of all groups together, (..., G, 4) -> (..., 1, 4)."""
    return counts.sum(axis=-2, keepdims=True)


Counts = NDArray[Any]


@dataclass(frozen=True)
class Rate:
    """A ratio of two weighted sums over the cells TN, FP, FN, TP.

    Calling it maps counts or probabilities (..., 4) to values (...), NaN where the denominator is
    0.

    Attributes
    ----------
    numerator, denominator : the weights of the cells TN, FP, FN, TP in each sum.
    empty : what is missing where the denominator is 0, in words.
    """

    name: str
    numerator: tuple[int, int, int, int]
    denominator: tuple[int, int, int, int]
    empty: str

    def __call__(self, counts: Counts) -> NDArray[np.float64]:
        """Return the rate of every table in `counts` (..., 4)."""
        top, bottom = (_sum(counts, weights) for weights in (self.numerator, self.denominator))
        undefined = np.full_like(bottom, np.nan)  # draws that lie in memory side by side stay so
        return np.divide(top, bottom, out=undefined, where=bottom > 0)

    def size(self, counts: Counts) -> NDArray[np.float64]:
        """Return how many rows the rate is based on: those in a cell of the denominator."""
        return _sum(counts, tuple(int(weight > 0) for weight in self.denominator))

    def successes(self, counts: Counts) -> NDArray[np.float64]:
        """Return how many rows are in the cells of the numerator."""
        return _sum(counts, tuple(int(weight > 0) for weight in self.numerator))

    @property
    def needs_no_label(self) -> bool:
        """Whether it rests on decisions alone."""
        return all(cells[:2] == cells[2:] for cells in (self.numerator, self.denominator))

    @property
    def weights(self) -> tuple[int, int]:
        """How much each success and each failure count; 1 and 1 in a plain share of rows.

        With s rows in the numerator's cells and f rows in the other cells of the denominator, the
        rate is success * s / (success * s + failure * f). The f1 score, for example, is
        2 TP / (2 TP + FP + FN): a success counts 2, a failure 1.
        """
        failure_weights = [
            weight
            for weight, top in zip(self.denominator, self.numerator, strict=True)
            if weight and not top
        ]
        return max(self.numerator), failure_weights[0]


def shares_of(rates: Sequence[Rate], counts: Counts) -> tuple[Floats, Floats]:
    """Return `successes` and `size` of several rates of counts (..., 4), (R, ...) each."""
    parts = ([rate.numerator for rate in rates], [rate.denominator for rate in rates])
    cells = np.expand_dims(np.array(parts) > 0, tuple(range(2, np.ndim(counts) + 1)))
    successes, sizes = (counts * cells).sum(axis=-1, dtype=np.float64)
    return successes, sizes


def _sum(counts: Counts, weights: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the weighted sum over the last axis, skipping cells of weight 0."""
    total = None
    for cell, weight in enumerate(weights):
        if weight:
            term = counts[..., cell] if weight == 1 else weight * counts[..., cell]
            total = term if total is None else total + term
    return np.asarray(total, np.float64)


# The table of metrics, and the rates in it.

TABLE = Path(__file__).with_name("declared.csv")


@lru_cache(maxsize=1)
def table_rows() -> tuple[Mapping[str, str], ...]:
    """Return the rows of the table as they are written."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def _weights(cells: str) -> tuple[int, int, int, int]:
    """Return how often a sum of cells, such as ``FP + 2 TP``, counts TN, FP, FN and TP."""
    terms = [term.split() for term in cells.strip(" ()").split("+")]
    times = {cell: int(number[0]) if number else 1 for *number, cell in terms}
    tn, fp, fn, tp = (times.get(cell, 0) for cell in ("TN", "FP", "FN", "TP"))
    return tn, fp, fn, tp


def _rate_of(row: Mapping[str, str]) -> Rate:
    """Return the rate of a row whose formula is a ratio of sums of cells."""
    numerator, denominator = map(_weights, row["formula"].split("/"))
    return Rate(row["name"], numerator, denominator, row["undefined"])


RATES: Mapping[str, Rate] = {
    row["name"]: _rate_of(row) for row in table_rows() if "/" in row["formula"]
}
selection_rate = RATES["selection_rate"]
base_rate = RATES["base_rate"]
accuracy = RATES["accuracy"]
error_rate = RATES["error_rate"]
true_positive_rate = RATES["true_positive_rate"]
false_negative_rate = RATES["false_negative_rate"]
false_positive_rate = RATES["false_positive_rate"]
true_negative_rate = RATES["true_negative_rate"]
positive_predictive_value = RATES["positive_predictive_value"]
negative_predictive_value = RATES["negative_predictive_value"]
f1_score = RATES["f1_score"]
