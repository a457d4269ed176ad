"""Group fairness metrics by hand and by simulation; test_declared.py has other libraries."""

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import multilabel_confusion_matrix

from fairbench import evaluate
from fairbench.metrics import group as metrics
from fairbench.metrics import registry
from fairbench.metrics.registry import BINARY, MULTICLASS, metrics_of

GAPS = metrics_of(BINARY, "widest")


def test_each_class_against_the_rest_is_scikit_learns():
    target, prediction = np.random.default_rng(0).integers(4, size=(2, 900))
    expected = multilabel_confusion_matrix(target, prediction).reshape(4, 4)
    table = evaluate(target, prediction, sensitive_features=["a"] * 900, task=MULTICLASS)
    values = table.query("statistic == 'value' and attribute == ''").set_index("metric")
    for k, counts in enumerate(expected):
        of_class = values.loc[values["outcome"] == str(k), "value"]
        # Of a class, the accuracy and the error are those of all classes.
        for name in set(registry.RATES) - {"accuracy", "error_rate"}:
            assert of_class[name] == pytest.approx(registry.RATES[name](counts))


@pytest.mark.parametrize("metric", metrics_of(BINARY, "rate", "widest", "ratio").values())
def test_metrics_map_over_posterior_draws(metric):
    draws = np.random.default_rng(0).random((7, 3, 4))
    np.testing.assert_allclose(metric(draws), [metric(draw) for draw in draws])


def test_a_gap_is_nan_if_one_group_has_no_rate():
    counts = np.array([[5, 5, 5, 5], [5, 5, 0, 0], [5, 5, 2, 8]])
    assert np.isnan(GAPS["equal_opportunity"](counts))
    assert np.isnan(GAPS["equalized_odds"](counts))
    assert GAPS["false_positive_rate_gap"](counts) == 0
    difference = metrics.difference(registry.true_positive_rate, counts)
    np.testing.assert_allclose(difference, [np.nan, 0.3])


def test_a_ratio_to_a_rate_of_zero_is_nan():
    counts = np.array([[9, 0, 1, 0], [5, 5, 0, 0]])
    assert np.isnan(metrics.ratio(registry.selection_rate, counts)).all()
    assert np.isnan(GAPS["disparate_impact"](counts))
    assert np.isnan(GAPS["disparate_impact"](np.array([[9, 0, 1, 0]] * 3)))
    assert GAPS["disparate_impact"](counts[::-1]) == 0


def test_debiased_subtracts_the_bootstrap_bias_and_stops_at_zero():
    metric = GAPS["statistical_parity"]
    counts = np.array([[6, 4, 0, 0], [4, 6, 0, 0]])
    wider = np.array([[[7, 3, 0, 0], [4, 6, 0, 0]], [[6, 4, 0, 0], [4, 6, 0, 0]]])
    assert metrics.debiased(metric, counts, wider) == pytest.approx(0.2 - (0.25 - 0.2))
    assert metrics.debiased(metric, counts, np.array([[[10, 0, 0, 0], [0, 10, 0, 0]]])) == 0


def test_debiased_ignores_resamples_without_a_rate_and_is_nan_without_any():
    metric = GAPS["equal_opportunity"]
    counts = np.array([[0, 0, 5, 5], [0, 0, 2, 8]])
    lost = np.array([[5, 5, 0, 0], [0, 0, 2, 8]])
    assert metrics.debiased(metric, counts, np.array([lost, counts])) == pytest.approx(0.3)
    assert np.isnan(metrics.debiased(metric, counts, np.array([lost])))
    assert np.isnan(metrics.debiased(metric, lost, np.array([counts])))


# Rates of a confusion table.

RATES = metrics_of(BINARY, "rate")
BY_NAME = {name: rate.function for name, rate in RATES.items() if len(rate.rates) == 1}


@pytest.mark.parametrize(
    ("size", "names"),
    [
        (15, "selection_rate base_rate accuracy error_rate"),
        (12, "true_positive_rate false_negative_rate"),
        (3, "false_positive_rate true_negative_rate"),
        (10, "positive_predictive_value"),
        (5, "negative_predictive_value"),
        (14, "f1_score"),
    ],
)
def test_a_rate_rests_on_so_many_rows_and_is_nan_exactly_where_it_rests_on_none(size, names):
    # TN 1, FP 2, FN 4, TP 8; the F1 score rests on every row but the true negatives.
    for rate in map(BY_NAME.get, names.split()):
        some = np.array([1, 2, 4, 8]) * np.array([*product((0, 1), repeat=4)])
        assert rate.size(some)[-1] == size
        np.testing.assert_array_equal(np.isnan(rate(some)), rate.size(some) == 0)
