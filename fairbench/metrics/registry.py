"""The registry of metrics, each of which is declared once, next to its function.

A declaration is a :class:`Metric` at the top level of a module of this package. The evaluator, the
tables, the figures, the pages, comparisons and audits take names, labels, directions and sizes that
do not matter from here: a new metric is one function and one declaration in one file.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from fairbench.core.arrays import Floats
from fairbench.core.errors import UserError, unknown_name

if TYPE_CHECKING:
    from fairbench.metrics.rates import Rate

Better: TypeAlias = Literal["higher", "lower", "neither"] | float
Interval = Literal[
    "rate",
    "difference",
    "ratio",
    "widest",
    "mean",
    "heavy_mean",
    "root_mean",
    "explained",
    "auc",
    "none",
]
BINARY, MULTICLASS, REGRESSION = "binary", "multiclass", "regression"
# Names that metrics had -> their names now. The parity of that name weighted classes by how often
# each was predicted, where the paper's equation (9) has how often each is the label.
RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "statistical_parity_macro": "statistical_parity_class_mean",
        "equal_opportunity_macro": "equal_opportunity_class_mean",
        "statistical_parity_macro_micro": "statistical_parity_weighted",
        "equal_opportunity_macro_micro": "equal_opportunity_weighted",
    }
)


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
        ``widest`` : takes counts of groups (..., G, 4), the reference first, returns (...).
        ``difference``, ``ratio`` : take counts of groups (..., G, 4), return (..., G - 1): one
        rate of every other group against the reference's.
        ``mean`` : takes the target and the columns it needs, (n,) each, returns losses (n,). The
        interval is made from their moments.
        ``heavy_mean`` : as ``mean``, for losses with heavy tails, such as squared errors.
        ``auc``, ``root_mean`` (of squares of target minus prediction), ``explained`` (share of the
        target's variance) : take what ``mean`` takes, return a number. The interval has a closed
        form.
        ``none`` : takes what ``mean`` takes, returns a number. The module that adds its rows makes
        its interval, if it has one. With ``groups``, columns are lists with a column of each
        group, where it needs scores of labels too.
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
        """Return what its function returns."""
        return self.function(*arrays)

    @property
    def at_most(self) -> float:
        """What no value is above: 1 of shares, areas and what compares rates."""
        share = self.interval in ("rate", "auc", "explained", "difference") or self.is_gap
        return min(self.most, 1.0) if share else self.most

    @property
    def is_gap(self) -> bool:
        """Whether it is a largest difference between groups, of which 0 is fair."""
        return self.interval == "widest" and self.better == "lower"

    @property
    def direction(self) -> str:
        """In words, which values are good; empty where none are."""
        if isinstance(self.better, float):
            return f"nearer to {self.better:g} is better"
        words = {"higher": "larger is better", "lower": "smaller is better", "neither": ""}
        return words[self.better]

    def larger_is_better(self, values: Floats) -> Floats:
        """Return values turned so that the larger are the better, of a metric with a direction."""
        if isinstance(self.better, float):
            return near(values, self.better)
        return values if self.better == "higher" else -values

    def negligible(self, values: Floats) -> float:
        """Return the largest difference that does not matter in practice, among these values."""
        return self.epsilon * float(np.median(values)) if self.relative else self.epsilon


def near(values: Floats, target: float) -> Floats:
    """Return how near values are to a positive target, as a ratio of at most 1."""
    with np.errstate(divide="ignore"):
        return np.minimum(values / target, target / values)


@lru_cache(maxsize=1)
def declared() -> tuple[Metric, ...]:
    """Return every declared metric, in the order of modules and of declarations in them.

    Raises
    ------
    ValueError : two metrics of one task have one name, or one of counts is not that of its rates.
    """
    package = import_module("fairbench.metrics")
    metrics: dict[tuple[str, str], Metric] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = import_module(f"{package.__name__}.{info.name}")
        for value in vars(module).values():
            if not isinstance(value, Metric):
                continue
            if metrics.setdefault((value.name, value.task), value) is not value:
                raise ValueError(f"two metrics are called {value.name}: see {info.name}.py")
            _check_rates(value, info.name)
    return tuple(metrics.values())


def _check_rates(metric: Metric, module: str) -> None:
    """Refuse a metric of counts that is something else than its interval is made of.

    An interval is made of the metric's rates, and would be another quantity's.
    """
    if metric.task != BINARY or not metric.rates:
        return
    counts = np.array([[40, 7, 11, 30], [25, 12, 3, 60], [9, 2, 8, 5]], np.float64)  # three groups
    rates = np.array([rate(counts) for rate in metric.rates])
    most = 1
    expected = metric(counts)
    if metric.interval == "rate":
        most = 2
        expected = rates.mean(axis=0)
    elif metric.interval == "difference":
        expected = rates[0, 1:] - rates[0, 0]
    elif metric.interval == "ratio":
        expected = rates[0, 1:] / rates[0, 0]
    elif metric.is_gap:
        most = len(rates)
        expected = np.ptp(rates, axis=1).max()
    if len(rates) > most or not np.allclose(metric(counts), expected):
        raise ValueError(
            f"{metric.name} in {module}.py: interval={metric.interval!r} is for "
            f"{_MADE_OF[metric.interval]}, and its function is something else, whose interval this "
            "would not be: declare a metric for each rate"
        )


_MADE_OF = {
    "rate": "one of its rates, or the mean of two",
    "difference": "one rate of every group minus the reference group's",
    "ratio": "one rate of every group over the reference group's",
    "widest": "the largest difference of two groups in one of its rates, or a ratio of one rate",
}


@lru_cache(maxsize=16)
def metrics_of(task: str, *intervals: Interval) -> Mapping[str, Metric]:
    """Return the metrics of a task by name, of these kinds of interval or of any."""
    of_task = [metric for metric in declared() if metric.task == task]
    return MappingProxyType(
        {metric.name: metric for metric in of_task if not intervals or metric.interval in intervals}
    )


@lru_cache(maxsize=1024)
def find(name: str) -> Metric | None:
    """Return the metric of a name, of the first task that has it; None of what is not declared."""
    matching = [metric for metric in declared() if metric.name == name]
    return min(matching, key=lambda metric: metric.task, default=None)


def unknown_metric(kind: str, name: str, valid: Iterable[str]) -> UserError:
    """Build the error for a name that no metric has: with its name now, or the nearest ones."""
    if name in RENAMED:
        return UserError(f"the {kind} '{name}' is called {RENAMED[name]} now")
    return unknown_name(kind, name, valid)


def label(name: str) -> str:
    """Return what a metric is called in tables; derived names are read as they are spelt."""
    metric = find(name)
    return metric.label if metric else name.replace("_", " ")
