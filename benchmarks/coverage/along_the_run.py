"""The family of intervals that are looked at all along a run of labels.

An interval that holds whenever one stops has to hold at all numbers of labels together. So what is
simulated is what all looks have in common, from the first label to the last: it misses where any
look did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.simulate import LEVEL, Construction, Family, Interval, Sample
from fairbench.core.arrays import Floats
from fairbench.evaluation.labelled_intervals import LabelledIntervals
from fairbench.inference.few_labels.assisted import LabelledRows
from fairbench.inference.rates import Limits, difference_limits
from fairbench.metrics.rates import accuracy, binary_confusion, true_positive_rate
from fairbench.metrics.registry import BINARY, metrics_of

Codes = NDArray[np.int64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
ROWS, LABELS, MANY = 600, 300, 2_000_000
LOOKS = np.unique([*range(1, 31), *np.geomspace(30, LABELS, 25).astype(int)])
METRICS = ("accuracy", "base_rate", "positive_predictive_value", "balanced_accuracy")
DIFFERENCES = (accuracy, true_positive_rate)
APART = "difference in "


def _few_extreme(spread: float, *, sides: int) -> Draw:
    """Draw scores of a half, of which one in twenty is 0.99, or 0.01 or 0.99."""

    def drawn(draw: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        extreme = np.where(draw.integers(0, sides, shape) == 0, 0.99, 0.01)
        usual = np.clip(0.5 + spread * draw.standard_normal(shape), 0.01, 0.99)
        return np.where(draw.random(shape) < 1 / 20, extreme, usual)

    return drawn


def _beta(first: float, second: float) -> Draw:
    return lambda draw, shape: draw.beta(first, second, shape)


def _sure(draw: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return np.where(draw.random(shape) < 0.5, draw.beta(5, 1, shape), draw.beta(1, 5, shape))


SCORES: Mapping[str, Draw] = MappingProxyType(
    {
        "one score in twenty extreme": _few_extreme(0.001, sides=2),
        "one in twenty extreme, one side": _few_extreme(0.001, sides=1),
        "one in twenty extreme, others vary": _few_extreme(0.01, sides=2),
        "Beta(3, 3)": _beta(3, 3),
        "uniform": _beta(1, 1),
        "Beta(1, 5) and Beta(5, 1)": _sure,
    }
)


@dataclass(frozen=True)
class Run:
    """A pool of scores, labelled at random.

    Attributes
    ----------
    scores : of `SCORES`.
    second : what the labels of the second group are: ``alike``, or ``inverted``.
    """

    scores: str
    second: str

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.scores}, second group {self.second}"


def _populations(short: bool) -> Sequence[Run]:
    pairs = (
        [("Beta(3, 3)", "inverted")]
        if short
        else [(scores, second) for scores in SCORES for second in ("alike", "inverted")]
    )
    return [Run(*pair) for pair in pairs]


@dataclass(frozen=True)
class Pools:
    """Rows in random order, (2 R, ROWS): R pools of the first group, then R of the second."""

    score: Floats
    label: Codes

    def labelled(self, labels: int) -> LabelledIntervals:
        """Return the intervals once the first rows of every pool have a label."""
        pools = len(self.score)
        decision = (self.score > 0.5).astype(np.int64).ravel()
        group = np.repeat(np.arange(pools), ROWS)
        known = (np.arange(pools)[:, None] * ROWS + np.arange(labels)).ravel()
        label = self.label.ravel()[known]
        rows = LabelledRows(self.score.ravel(), decision, group, pools, known, label)
        counts = binary_confusion(label, decision[known], group[known], n_groups=pools)
        return LabelledIntervals.of(rows, counts, LEVEL, np.random.default_rng(0))


def _draw(run: Run, replications: int, draw: np.random.Generator) -> Sample:
    pools, chances = [], []
    for second in (False, True):
        other = second and run.second == "inverted"
        score, many = (SCORES[run.scores](draw, s) for s in ((replications, ROWS), (MANY,)))
        chance = 1 - score if other else score
        pools.append((score, (draw.random(score.shape) < chance).astype(np.int64)))
        chances.append(_cells(many, 1 - many if other else many))
    both = Pools(*(np.concatenate(parts) for parts in zip(*pools, strict=True)))
    metrics = metrics_of(BINARY, "rate")
    first, second_truth = np.array(chances)
    truth = {name: np.full(replications, float(metrics[name](first))) for name in METRICS}
    for rate in DIFFERENCES:
        apart = float(rate(first) - rate(second_truth))
        truth[APART + rate.name] = np.full(replications, apart)
    return Sample(both, truth)


def _cells(score: Floats, chance: Floats) -> Floats:
    """Return the expected shares of TN, FP, FN, TP."""
    decided = score > 0.5
    return np.array(
        [((1 - chance) * ~decided).mean(), ((1 - chance) * decided).mean(),
         (chance * ~decided).mean(), (chance * decided).mean()]
    )  # fmt: skip


def along(pools: Pools, *, anytime_valid: bool) -> Mapping[str, Interval]:
    """Return what the intervals of all looks have in common, of each run (R,)."""
    runs = len(pools.score) // 2
    common = {
        name: (np.full(runs, -np.inf), np.full(runs, np.inf))
        for name in (*METRICS, *(APART + rate.name for rate in DIFFERENCES))
    }
    for labels in LOOKS:
        intervals = pools.labelled(int(labels))
        intervals = intervals.as_anytime_valid() if anytime_valid else intervals
        for name, (lower, upper) in _at_once(intervals, runs).items():
            low, high = common[name]
            common[name] = np.fmax(low, lower), np.fmin(high, upper)
    return common


def _at_once(intervals: LabelledIntervals, runs: int) -> Mapping[str, Interval]:
    """Return the intervals of one look; of differences, as a report joins those of two groups."""
    metrics = metrics_of(BINARY, "rate")
    ends = intervals.rates([metrics[name] for name in METRICS])
    result = {name: (ends[0][m, :runs], ends[1][m, :runs]) for m, name in enumerate(METRICS)}
    for rate in DIFFERENCES:
        rates = Limits(*(limit[0] for limit in intervals.limits([rate])))
        shared = np.asarray(intervals.correlation(rate))
        together = np.diagonal(shared, runs) if shared.ndim else shared
        apart = difference_limits(rates.take(slice(runs)), rates.take(slice(runs, None)), together)
        result[APART + rate.name] = apart.lower, apart.upper
    return result


def _whenever(pools: Pools, _: np.random.Generator) -> Mapping[str, Interval]:
    return along(pools, anytime_valid=True)


def _said_before(pools: Pools, _: np.random.Generator) -> Mapping[str, Interval]:
    return along(pools, anytime_valid=False)


FAMILIES = (
    Family(
        "along_the_run",
        "Intervals looked at while labels arrive",
        f"Up to {LABELS} of the {ROWS} rows of a pool get labels at random. Intervals are computed "
        "after each of the first 30 labels, and then less and less often. A run counts as a miss "
        "if the interval misses at any of its looks. Ours are intervals that hold whenever "
        "labelling stops; they may miss in one run of twenty. *fixed number* are intervals for a "
        "number of labels fixed in advance.",
        _populations,
        _draw,
        (Construction("ours", _whenever), Construction("fixed number", _said_before, every=3)),
        replications=1000,
        one_row_each=True,
    ),
)
