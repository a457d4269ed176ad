"""Intervals from labels helped by calibrated scores are nearly as narrow as any can be."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.coverage.few_labels import (
    RATES,
    ROWS,
    Audited,
    counts_alone,
    counts_assisted,
    drawn,
    equally_likely_scores,
)
from fairbench.inference.rates import rate_limits


def least_ratio(rate, labels):
    """Return the least ratio of widths to those of labels alone, for calibrated scores.

    What is not known of a rate has the variance of its influence function: for the labelled rows
    all of it, for the others what scores and decisions leave of it (Robins, Rotnitzky & Zhao 1994).
    """
    score = equally_likely_scores()
    decision = (score > 0.5).astype(int)
    chance = np.stack([1 - score, score])
    cells = [
        sum((chance[y] * (decision + 2 * y == cell)).mean() for y in (0, 1)) for cell in range(4)
    ]
    value = rate(np.array(cells))
    top, bottom = (np.array(cells) > 0 for cells in (rate.numerator, rate.denominator))
    influence = np.stack([(top - value * bottom)[decision + 2 * y] for y in (0, 1)])
    whole = (chance * influence**2).sum(axis=0).mean()
    left = (score * (1 - score) * (influence[1] - influence[0]) ** 2).mean()
    known = labels / ROWS
    return np.sqrt(known + (1 - known) * left / whole)


@pytest.mark.thorough
@pytest.mark.parametrize("labels", [300, 1000, 2000])
def test_widths_are_within_a_tenth_of_the_least(labels):
    pools = drawn(Audited((0.6, 0.4), "calibrated", labels, False), 200, np.random.default_rng(1))
    widths = []
    for successes, sizes in (counts_assisted(pools.data), counts_alone(pools.data)):
        limits = rate_limits(successes, sizes, level=0.95)
        widths.append((limits.upper - limits.lower).mean(axis=(1, 2)))
    for rate, ours, alone in zip(RATES, *widths, strict=True):
        assert ours / alone < 1.1 * least_ratio(rate, labels)
        assert ours < alone
