"""Rates of a confusion table; test_declared.py holds them against other libraries."""

import numpy as np
import pytest

from fairbench.metrics.registry import BINARY, metrics_of
from tests.harness import ours

BY_NAME = {
    name: metric.function
    for name, metric in metrics_of(BINARY, "rate").items()
    if len(metric.rates) == 1
}


@pytest.mark.parametrize(
    ("size", "names"),
    [
        (19, "selection_rate base_rate accuracy error_rate"),
        (12, "true_positive_rate false_negative_rate"),
        (7, "false_positive_rate true_negative_rate"),
        (10, "positive_predictive_value"),
        (9, "negative_predictive_value"),
        (15, "f1_score"),
    ],
)
def test_size_is_the_number_of_rows_a_rate_rests_on(size, names):
    # TN 4, FP 3, FN 5, TP 7; the F1 score rests on every row but the true negatives.
    assert {BY_NAME[name].size(np.array([4, 3, 5, 7])).item() for name in names.split()} == {size}


@pytest.mark.parametrize(
    ("counts", "undefined"),
    [
        ([0, 0, 0, 0], set(BY_NAME)),
        ([3, 2, 0, 0], {"true_positive_rate", "false_negative_rate"}),
        ([0, 0, 2, 3], {"false_positive_rate", "true_negative_rate"}),
        ([3, 0, 2, 0], {"positive_predictive_value"}),
        ([0, 3, 0, 2], {"negative_predictive_value"}),
        (
            [4, 0, 0, 0],
            {"true_positive_rate", "false_negative_rate", "positive_predictive_value", "f1_score"},
        ),
    ],
)
def test_a_rate_is_nan_exactly_where_its_denominator_is_empty(counts, undefined):
    table = np.array(counts)
    assert ours(name for name, rate in BY_NAME.items() if np.isnan(rate(table))) == ours(undefined)
    assert ours(name for name, rate in BY_NAME.items() if rate.size(table) == 0) == ours(undefined)
