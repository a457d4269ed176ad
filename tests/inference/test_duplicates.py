"""Rows that are alike by chance are not taken for repeats, nor repeats for chance."""

import numpy as np
import pytest

from fairbench.inference.duplicates import beyond_chance


@pytest.mark.thorough
@pytest.mark.parametrize("kinds", [30, 1000, 30_000, 10**7])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_chance_is_not_taken_for_repeats_and_repeats_not_for_chance(kinds, spread):
    """Looked at after each of 60 batches, of kinds of rows that are alike or unlike in number."""
    draw, result = np.random.default_rng(kinds), 0
    for _ in range(5):
        chance = np.exp(spread * draw.standard_normal(kinds))
        rows = draw.choice(kinds, 3000, p=chance / chance.sum())
        result += any(
            beyond_chance(np.unique(rows[:stop], return_counts=True)[1])
            for stop in range(50, 3001, 50)
        )
        if kinds >= 1000 and not spread:
            assert beyond_chance(np.unique(np.tile(rows[:1000], 2), return_counts=True)[1])
    assert result <= 1
