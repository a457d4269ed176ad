"""The study of rankings: paired differences over hold-outs have the corrected t interval."""

import numpy as np
import pytest
from scipy import stats

from fairbench.components.papers.fairlyuncertain.rankings import paired


def test_a_paired_difference_has_nadeau_and_bengios_interval():
    first, second = np.random.default_rng(0).normal(size=(2, 10))
    result = paired(first, second, 0.2)
    difference = first - second
    scale = np.sqrt((1 / 10 + 0.2 / 0.8) * difference.var(ddof=1))
    ends = stats.t.interval(0.95, 9, difference.mean(), scale)
    assert float(result.value) == pytest.approx(difference.mean())
    assert (float(result.lower), float(result.upper)) == pytest.approx(ends)
