"""Chugg et al. (2023), "Auditing fairness by betting": their figure on credit default, 1000 times.

A random forest predicts defaults. Of people who did not default, it predicts one more often for
those with high school or less than for those with graduate school. Their figure shows how many
pairs of people a test by betting and tests by permutation need to find that, and how often each
finds it where there is none, which they make by shifting one group's predictions to the same mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import show
from fairbench.components.datasets.credit_default import CREDIT
from fairbench.core.arrays import Floats
from fairbench.core.seeds import rng
from fairbench.data.delimited import read_table
from fairbench.data.download import Archive
from fairbench.inference.sequential.gaps import Pair, first_beyond

ALPHAS = np.array([0.01, 0.05, 0.1])
BATCHES = (250, 500, 1000)
_RESAMPLES = 2000


def figure(repetitions: int) -> None:
    """Print mean pairs until the gap is found, and how often one is found where there is none."""
    first, second = predictions()
    shift = second.mean() - first.mean()
    draw = rng(0, "credit")
    rows = []
    for name, test in _tests(shift).items():
        result = [test(*_shuffled(draw, first, second), 0.0) for _ in range(repetitions)]
        false = [test(*_shuffled(draw, first, second), shift) for _ in range(repetitions)]
        pairs = np.mean([each[0] for each in result], axis=0)
        share = np.mean([each[1] for each in false], axis=0)
        rows.append((name, *(f"{pair:.0f}" for pair in pairs), *map(float, share)))
    columns = [f"{what} {alpha:g}" for what in ("pairs", "false") for alpha in ALPHAS]
    gap = f"{first.mean():.3f} and {second.mean():.3f} of {len(first)} and {len(second)} people"
    show(f"Predicted defaults {gap}; {repetitions} repetitions", ("test", *columns), rows)


@cache
def predictions() -> tuple[Floats, Floats]:
    """Return the predictions of people who did not default, by education, as theirs are made."""
    from sklearn.ensemble import RandomForestClassifier

    content = Archive.of(download=False).read(CREDIT)
    table = read_table(content, CREDIT.path, skip=int(b",X1," in content[:8])).astype(float)
    *_, target = table.columns
    features = table.drop(columns=[table.columns[0], target])
    chosen = np.random.RandomState(42).choice(len(table), 10_000, replace=False)
    forest = RandomForestClassifier(random_state=42)
    forest.fit(features.iloc[chosen], table[target].iloc[chosen])
    rest = ~np.isin(np.arange(len(table)), chosen) & (table[target] == 0).to_numpy()
    high = rest & (table["EDUCATION"] <= 1).to_numpy()
    low = rest & (table["EDUCATION"] >= 3).to_numpy()
    return forest.predict(features[high]), forest.predict(features[low])


def _shuffled(draw: np.random.Generator, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    number = min(len(first), len(second))
    return draw.permutation(first)[:number], draw.permutation(second)[:number]


# Returns the pairs seen and whether a gap was found, by level; what is added to the first group.
Found = tuple[NDArray[Any], NDArray[Any]]
Test = Callable[[Floats, Floats, float], Found]


def _tests(shift: float) -> Mapping[str, Test]:
    tests: dict[str, Test] = {"their bets": _bets, "fairbench watch": _watch}
    for corrected in (False, True):
        for size in BATCHES:
            name = f"permuted {size}{', corr.' if corrected else ''}"
            tests[name] = _permutations(size, corrected=corrected)
    return tests


def _bets(first: Floats, second: Floats, shift: float) -> Found:
    """Bet by online Newton steps, and at the end against a uniform number, as they do."""
    gains = (first + shift - second).tolist()
    wealth, bet, total, step = 0.0, 0.0, 0.0, 2 / (2 - np.log(3))
    path = np.zeros(len(gains))
    for place, gain in enumerate(gains[1:], 1):
        wealth += np.log1p(-bet * gain)
        path[place] = wealth
        slope = gain / (1 - bet * gain)
        total += slope**2
        bet = max(min(bet - step * slope / (1 + total), 0.5), -0.5)
    reached = path[:, None] > np.log(1 / ALPHAS)
    result = reached.any(axis=0)
    pairs = np.where(result, reached.argmax(axis=0) + 1, len(gains))
    last = wealth > np.log(rng(0, "last", int(1e6 * abs(wealth))).random() / ALPHAS)
    return pairs, result | last


def _watch(first: Floats, second: Floats, shift: float) -> Found:
    """Return what the evidence about any gap finds; without one, people change groups at random."""
    if shift:
        generator = rng(0, "pool", int(first.cumsum().sum()))
        pool: Floats = generator.permutation(np.r_[first, second]).astype(np.float64)
        first, second = pool[: len(first)], pool[len(first) :]
    size = np.arange(1, len(first) + 1).astype(np.float64)
    pair = Pair(np.cumsum(first), size, np.cumsum(second), size, np.full(len(size), 0.5))
    result = []
    for alpha in ALPHAS:
        both = [
            first_beyond(each, 0.0, float(np.log(2 / alpha))) for each in (pair, pair.swapped())
        ]
        result.append(min((each + 1 for each in both if each is not None), default=0))
    places = np.array(result)
    return np.where(places > 0, places, len(size)), places > 0


def _permutations(size: int, *, corrected: bool) -> Test:
    def test(first: Floats, second: Floats, shift: float) -> Found:
        batches = len(first) // size
        ones = [
            each[: batches * size].reshape(batches, size).sum(axis=1) for each in (first, second)
        ]
        p = np.array([_p_value(size, int(a), int(b), shift) for a, b in zip(*ones, strict=True)])
        levels = ALPHAS / 2.0 ** np.arange(1, batches + 1)[:, None] if corrected else ALPHAS
        reached = np.less_equal(p[:, None], levels)
        result = np.asarray(reached.any(axis=0))
        return np.where(result, (reached.argmax(axis=0) + 1) * size, len(first)), result

    return test


@cache
def _p_value(size: int, first: int, second: int, shift: float) -> float:
    """Return the two-sided p-value of the difference of means, of 2000 random permutations.

    The first group's sum after a permutation is that of so many of its ones and of the other's, and
    of the shift of its own members: three hypergeometric numbers.
    """
    draw = rng(0, "permutations", size, first, second)
    own = draw.hypergeometric(size, size, size, _RESAMPLES)
    ones = draw.hypergeometric(first, size - first, own) + draw.hypergeometric(
        second, size - second, size - own
    )
    total = ones + shift * own
    observed = first + shift * size
    tails = [(total >= observed - 1e-9).sum(), (total <= observed + 1e-9).sum()]
    return float(min(2 * (min(tails) + 1) / (_RESAMPLES + 1), 1))
