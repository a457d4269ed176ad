"""How often any verdict of an audit of few labels is wrong: ``python -m benchmarks.verdicts 1000``.

The populations are those of the family of few labels (:mod:`benchmarks.coverage.labels`). An
audit gives a verdict on the gap in four rates that need labels, and is wrong if one of them is. It
stands beside the same verdicts from the labelled rows by themselves, without any help of scores.
The check of calibration is made of the first hundred audits of each.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import labels as pools_of
from benchmarks.coverage.simulate import Sample, Setting
from benchmarks.measure import show
from fairbench.audits.direction import RATE_OF
from fairbench.audits.kinds.binary import ALARMS
from fairbench.core.arrays import Floats, Mask
from fairbench.evaluation.findings import ErrorBudget
from fairbench.inference.few_labels import calibration_p_values
from fairbench.inference.gaps import GroupLimits, largest_gap

EPSILON, CHECKED = 0.05, 100
HEADER = (
    *("population", "wrong audits", "settled with scores", "settled without", "verdicts kept"),
    *("the last group fails", "any other group fails"),
)


@dataclass(frozen=True)
class Study:
    """What came of the audits of a population.

    Attributes
    ----------
    wrong : the share of audits with a wrong verdict. given : verdicts per question.
    alone : the same from labelled rows by themselves; kept : the share of these that is given.
    named : the share of audits whose check names the last group.
    named_others : the share whose check names any other.
    """

    wrong: float
    given: float
    alone: float
    kept: float
    named: float
    named_others: float


def populations() -> Iterator[Setting]:
    """Yield the populations: every kind of wrong scores, at several numbers of labels."""
    shaped: list[tuple[tuple[float, ...], str]] = [((0.6, 0.4), name) for name in pools_of.OF_TWO]
    shaped += [((0.95, 0.05), "one group inverted"), ((0.1,) * 10, "one group shifted")]
    for shares, name in shaped:
        for labels in (20, 100, 300, 1000, 2000):
            for active in (False, True) if labels in (100, 1000) else (False,):
                yield pools_of.audited(shares, name, labels, active)


def study(population: Setting, replications: int, *, checked: int = CHECKED) -> Study:
    """Simulate audits of a population."""
    sample = pools_of.drawn(population, replications, np.random.default_rng(population.labels))
    pools = sample.data
    ours, known = _verdicts(*pools_of.counts_assisted(pools))
    alone, _ = _verdicts(*pools_of.counts_alone(pools))
    wrong = np.zeros(replications, bool)
    for verdict, gap in zip(ours, _gaps(sample, known), strict=True):
        wrong |= ((verdict < 0) & (gap >= EPSILON)) | ((verdict > 0) & (gap <= EPSILON))
    concluded = alone != 0
    kept = float((ours[concluded] == alone[concluded]).mean()) if concluded.any() else np.nan
    named = np.array([_named(pools, r) for r in range(min(checked, replications))])
    last, others = float(named[:, -1].mean()), float(named[:, :-1].any(axis=1).mean())
    given = float((ours != 0).mean())
    return Study(float(wrong.mean()), given, float(concluded.mean()), kept, last, others)


def _verdicts(successes: Floats, sizes: Floats) -> tuple[NDArray[np.int64], Mask]:
    """Return -1 (small), 1 (large) or 0 of counts (K, R, G), and which groups are compared."""
    known, risk = sizes > 0, ErrorBudget(len(RATE_OF)).risk
    several = known.sum(axis=-1) > 1
    among = known | ~several[..., None]
    upper, lower = (
        GroupLimits.of(successes, sizes, level=level).only(among)
        for level in (1 - 2 * risk, 1 - risk)
    )
    small, large = largest_gap(upper).upper < EPSILON, largest_gap(lower).lower > EPSILON
    return np.where(several, np.where(small, -1, np.where(large, 1, 0)), 0), known


def _gaps(sample: Sample, known: Mask) -> Iterator[Floats]:
    """Yield each rate's true gap (R,) between the groups that are compared."""
    for rate, among in zip(pools_of.RATES, known, strict=True):
        of_groups = sample.truth[f"{rate.name} of every group"]
        highest = np.where(among, of_groups, -np.inf).max(axis=-1)
        yield highest - np.where(among, of_groups, np.inf).min(axis=-1)


def _named(pools: pools_of.Pools, number: int) -> Mask:
    """Return which groups (G,) the check of one audit names."""
    rows = np.flatnonzero(pools.known[number])
    columns = (pools.score, pools.label, pools.group)
    score, label, group = (column[number][rows] for column in columns)
    values = calibration_p_values(score, label, group, pools.groups, np.random.default_rng(number))
    asked = np.isfinite(values)
    named: Mask = asked & (np.nan_to_num(values, nan=1) * asked.sum() < ALARMS)
    return named


def main(replications: int = 1000) -> bool:
    """Print the table; return whether at most one audit of twenty is wrong in each population."""
    rows: list[list[str]] = []
    held = True
    for population in populations():
        result = study(population, replications)
        held &= result.wrong <= 0.05
        rows.append([population.name, *(f"{each:.3f}" for each in astuple(result))])
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    show(f"{replications} audits of each population", HEADER, rows)
    return held


if __name__ == "__main__":
    sys.exit(not main(*map(int, sys.argv[1:])))
