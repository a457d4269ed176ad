"""Figure 6's series: mean and sd over splits of ratios and means, a place for every size."""

import numpy as np
import pandas as pd

from papers.uncertainty_fairness.capacity import figure, mean_series, ratio_series

GROUPS = {
    "race": ("African-American", "Caucasian"),
    "age": ("under 25", "over 45"),
    "sex": ("Female", "Male"),
}


def splits(ratio):
    """Return three splits whose second group has 0.1 of everything, the first `ratio` times it."""
    rows = [
        ("compas", "0", repeat, f"{part}_uncertainty", attribute, group, 0.1 * times)
        for part in ("aleatoric", "epistemic")
        for attribute, pair in GROUPS.items()
        for repeat, of_first in enumerate(ratio)
        for group, times in zip(pair, (of_first, 1.0), strict=True)
    ]
    columns = ["dataset", "run", "repeat", "metric", "attribute", "group", "value"]
    return pd.DataFrame(rows, columns=columns)


FOUND = {0: splits([1.0, 1.0, 1.0]), 25: splits([1.0, 2.0, 3.0])}


def test_series_are_over_splits_of_each_size():
    series = ratio_series(FOUND, "age", "epistemic")
    np.testing.assert_allclose(series, [[1, 0], [2, 1]], atol=1e-12)
    np.testing.assert_allclose(
        mean_series(FOUND, "race", "black", "aleatoric"), 0.1 * series, atol=1e-12
    )


def test_sizes_are_places_and_none_is_said():
    grid = figure(FOUND).axes
    assert [label.get_text() for label in grid[-1].get_xticklabels()] == ["none", "25"]
    lines = {line.get_label(): line.get_ydata() for line in grid[-1].lines}
    np.testing.assert_allclose(lines["sex: female / male"], [1, 2])
