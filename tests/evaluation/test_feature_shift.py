"""Rows for feature shift: which rows are compared, and when there is nothing to compare."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench import Evaluator
from fairbench.core.arrays import rng
from fairbench.core.errors import UserError
from fairbench.evaluation.abstention import evaluate_feature_shift
from fairbench.evaluation.table import MetricTable
from fairbench.metrics.uncertainty import feature_shift
from tests.evaluation.labelled import by_place, labelled

FEATURES = pd.DataFrame({"hours per week": [1.0, 2, 3, 4], "job": pd.Categorical(list("aabb"))})


def data(uncertainty=(0.1, 0.2, 0.3, 0.4), features=FEATURES):
    rows = labelled([0, 1, 0, 1], prediction=[0, 1, 1, 1], uncertainty=uncertainty)
    return replace(rows, features=features)


def rows_of(rows, rates):
    table = MetricTable()
    evaluate_feature_shift(table, rows, rates)
    return by_place(table)


def test_the_most_certain_rows_are_compared_with_everyone():
    rows = rows_of(data(), [0.0, 0.25, 0.5])
    for rate, kept in ((0.0, 4), (0.25, 3), (0.5, 2)):
        expected = feature_shift(FEATURES, np.arange(4) < kept)
        for name, value in zip(FEATURES, expected, strict=True):
            row = rows["feature_shift", "", f"rate={rate:g} feature={name}"]
            assert (row.value, row.n, row.status) == (value, kept, "ok")
        mean = rows["mean_feature_shift", "", f"rate={rate:g}"]
        assert mean.value == pytest.approx(expected.mean())


def test_a_feature_without_a_value_is_undefined_and_left_out_of_the_mean():
    features = FEATURES.assign(late=[np.nan, np.nan, 1, 2])
    rows = rows_of(data(features=features), [0.5])
    row = rows["feature_shift", "", "rate=0.5 feature=late"]
    assert np.isnan(row.value)
    assert row.status == "undefined: no value among the rows kept"
    assert rows["mean_feature_shift", "", "rate=0.5"].status == "ok"


def test_invalid_uncertainties_are_counted():
    rows = rows_of(data(uncertainty=(0.1, np.nan, np.inf, 0.2)), [0.5])
    assert {row.status for row in rows.values()} == {"invalid: uncertainty invalid in 2 of 4 rows"}
    assert all(np.isnan(row.value) for row in rows.values())


def test_without_features_uncertainty_or_rates_there_are_no_rows():
    certain = data()
    unordered = replace(certain, predictions=certain.predictions[["prediction"]])
    for rows, rates in ((replace(certain, features=None), [0.5]), (unordered, [0.5]), (data(), [])):
        assert not rows_of(rows, rates)


def test_the_evaluator_adds_them_where_rates_are_given():
    def metrics(**options):
        return set(Evaluator(draws=100, **options).table(data(), [rng(0, "x")]).frame()["metric"])

    assert metrics(feature_shift_rates=(0.5,)) - metrics() == {
        "feature_shift",
        "mean_feature_shift",
    }


def test_a_rate_of_one_is_refused():
    with pytest.raises(UserError, match=r"^evaluator\.feature_shift_rates must be at least 0"):
        Evaluator(feature_shift_rates=(1.0,))
