"""Rows that networks are fitted to."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rows():
    """Return (300, 3) features, and values of the first with some noise."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 3))
    return X, X[:, 0] + 0.3 * draw.normal(size=300)
