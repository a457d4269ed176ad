"""What cross-validations conclude, on counts whose conclusions are known."""

import numpy as np
import pytest

from fairbench.components.papers.uncertainty_matters.conclusions import (
    Conclusions,
    conclusions,
    probabilities,
)
from fairbench.components.papers.uncertainty_matters.one_partition import Pair
from fairbench.components.papers.uncertainty_matters.readings import ALONE, RHOS, TRUTH

NAMES = ("Linear SVM + Hardt", "FERM")


def pair_of(moved, scale=1):
    """Return cross-validations in which so many more good loans of the first group are found."""
    second = np.array([[[600, 100, 50, 60], [120, 20, 10, 40]]] * len(moved)) * scale
    first = second.copy()
    first[:, 0, 0] += np.array(moved) * scale
    first[:, 0, 1] -= np.array(moved) * scale
    # The other group alike, so that the gap in the rates of good loans stays as it is.
    first[:, 1, 0] += np.array(moved) * scale // 5
    first[:, 1, 1] -= np.array(moved) * scale // 5
    return Pair(ALONE, NAMES, (first, second))


def test_a_share_of_the_estimates_turns():
    result = Conclusions(["A >> B"] * 3 + ["A ~ B"], ["A >> B"] * 4, "A >> B")
    assert result.turned(result.estimates) == pytest.approx(0.25)
    assert result.turned(result.posteriors) == 0


def test_with_many_rows_posteriors_conclude_what_estimates_do():
    result = conclusions(pair_of([60, 60, -60, 0], scale=200), cvs=9, draws=300)
    assert list(result.estimates) == ["A >> B", "A >> B", "B >> A", "A ~ B"]
    assert list(result.posteriors) == list(result.estimates)
    assert result.mean == "A >> B"
    assert len(conclusions(pair_of([60, 60, -60]), cvs=2, draws=100).estimates) == 2


def test_events_sum_to_one_under_every_rho():
    shares = probabilities(pair_of([60, 55, 65]))
    assert list(shares) == [TRUTH, *RHOS]
    for events in shares.values():
        assert sum(events.values()) == pytest.approx(1)
    assert shares[TRUTH]["A >> B"] == 1
