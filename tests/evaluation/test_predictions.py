"""The predictions table: what it accepts, and the sentence each refusal prints."""

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import read_predictions

BINARY, REGRESSION = Task.BINARY, Task.REGRESSION


def test_columns_become_float64_in_the_order_given():
    columns = {
        "prediction": np.array([True, False]),
        "score": np.array([0.75, 0.25], np.float32),
        "uncertainty": np.array([0, 3]),
    }
    table = read_predictions(columns, BINARY, "ensemble")
    assert list(table.columns) == ["prediction", "score", "uncertainty"]
    assert set(table.dtypes) == {np.dtype("float64")}
    np.testing.assert_array_equal(table.to_numpy(), [[1, 0.75, 0], [0, 0.25, 3]])


def test_values_at_the_edge_of_what_is_allowed_are_kept():
    ends = {"prediction": [0, 1], "score": [0, 1], "sd": [0, 0], "aleatoric": [0, 1]}
    assert len(read_predictions(ends, BINARY, "m")) == 2
    values = {"prediction": [-1e6, 7.5], "mean": [-1e6, 7.5], "sd": [1e-9, 1e9]}
    assert len(read_predictions(values, REGRESSION, "m")) == 2


@pytest.mark.parametrize(
    ("columns", "task", "reason"),
    [
        ({"score": [0.5, 1.5, -0.1]}, BINARY, "'score' is outside [0, 1] in 2 of 3 rows (first: 1"),
        ({"score": [0.5, 0.5, np.nan]}, BINARY, "'score' is not finite in 1 of 3 rows (first: 2"),
        (
            {"prediction": [0, 2, 1]},
            BINARY,
            "'prediction' is neither 0 nor 1 in 1 of 3 rows (first: 1",
        ),
        (
            {"prediction": [0.0, np.inf, 1]},
            REGRESSION,
            "'prediction' is not finite in 1 of 3 rows (first: 1",
        ),
        ({"sd": [1, -1, -2]}, REGRESSION, "'sd' is negative in 2 of 3 rows (first: 1"),
        ({"sd": [0, 1, 0]}, REGRESSION, "'sd' is exactly 0 in 2 of 3 rows (first: 0"),
        (
            {"uncertainty": [0.1, 0.2, -0.3]},
            BINARY,
            "'uncertainty' is negative in 1 of 3 rows (first: 2",
        ),
        ({"aleatoric": [-1, 0, 0]}, REGRESSION, "'aleatoric' is negative in 1 of 3 rows (first: 0"),
        ({"epistemic": [0, -1, 0]}, BINARY, "'epistemic' is negative in 1 of 3 rows (first: 1"),
        ({"mean": [0, 0, -np.inf]}, REGRESSION, "'mean' is not finite in 1 of 3 rows (first: 2"),
    ],
)
def test_impossible_values_are_refused_with_method_column_and_count(columns, task, reason):
    with pytest.raises(UserError) as refusal:
        read_predictions({"prediction": [0, 1, 1], **columns}, task, "binomial_nll")
    expected = reason.replace("(first: ", "(first: row ") + ")"
    assert str(refusal.value) == f"method binomial_nll: column {expected}"


@pytest.mark.parametrize(
    ("columns", "returned"),
    [
        ({"score": [0.5]}, "score"),
        ({"prediction": [1], "probability": [0.5]}, "prediction, probability"),
    ],
)
def test_a_missing_or_unknown_column_is_refused_with_what_was_returned(columns, returned):
    with pytest.raises(UserError) as refusal:
        read_predictions(columns, BINARY, "votes")
    assert str(refusal.value) == (
        "method votes: a reading returns 'prediction' and any of score, mean, sd, uncertainty, "
        f"aleatoric, epistemic, entropy_aleatoric, entropy_epistemic; this one returned {returned}"
    )


def test_intervals_may_be_infinite_and_sets_are_zero_or_one():
    columns = {"prediction": [0, 1], "lower_90": [-np.inf, 0], "upper_90": [np.inf, 1]}
    assert list(read_predictions(columns, REGRESSION, "m")) == list(columns)
    for column, values, reason in (
        ("lower_90", [0, np.nan], "NaN in 1 of 2 rows (first: row 1)"),
        ("set_1_90", [0, 0.5], "neither 0 nor 1 in 1 of 2 rows (first: row 1)"),
    ):
        with pytest.raises(UserError, match=f"column '{column}' is ") as refusal:
            read_predictions({"prediction": [0, 1], column: values}, BINARY, "m")
        assert str(refusal.value).endswith(reason)


def test_a_method_may_keep_impossible_values_but_not_unknown_columns():
    columns = {"prediction": [0.0, np.nan], "sd": [-1, 0]}
    table = read_predictions(columns, REGRESSION, "m", keep_invalid=True)
    np.testing.assert_array_equal(table["sd"], [-1, 0])
    with pytest.raises(UserError, match="this one returned"):
        read_predictions({**columns, "sigma": [1, 1]}, REGRESSION, "m", keep_invalid=True)


CLASSES = {
    "prediction": [2, 0, 1],
    "score_low": [0.2, 0.7, 0.3],
    "score_middle": [0.3, 0.2, 0.4],
    "score_high": [0.5, 0.1, 0.3],
}


def test_scores_of_several_classes_are_a_column_each():
    table = read_predictions(CLASSES, BINARY, "m")
    assert list(table.columns) == list(CLASSES)
    np.testing.assert_array_equal(table["prediction"], [2, 0, 1])


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"score_high": [0.5, 0.1, 0.4]}, "'score_low, score_middle, score_high' is not 1 in sum"),
        ({"score_high": [0.5, 0.1, -0.3]}, "'score_high' is outside [0, 1] in 1 of 3 rows"),
        ({"prediction": [3, 0, 1]}, "'prediction' is no class of 0 .. 2 in 1 of 3 rows (first: r"),
        ({"prediction": [0.5, 0, 1]}, "'prediction' is no class of 0 .. 2 in 1 of 3 rows"),
    ],
)
def test_impossible_scores_of_classes_are_refused(columns, reason):
    with pytest.raises(UserError) as refusal:
        read_predictions({**CLASSES, **columns}, BINARY, "m")
    assert reason in str(refusal.value)


def test_the_score_of_a_single_class_is_refused():
    with pytest.raises(UserError, match="'score_low' is the score of a single class"):
        read_predictions({"prediction": [0, 1], "score_low": [0.2, 0.5]}, BINARY, "m")
