"""The predictions table: what it accepts, and the sentence each refusal prints."""

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import read_predictions

BINARY, REGRESSION = Task.BINARY, Task.REGRESSION


CLASSES = {
    "prediction": [2, 0, 1],
    "score_low": [0.2, 0.7, 0.3],
    "score_middle": [0.3, 0.2, 0.4],
    "score_high": [0.5, 0.1, 0.3],
}
INF, NAN = np.inf, np.nan


def test_columns_become_float64_in_the_order_given_up_to_the_edge_of_what_is_allowed():
    for columns, task in (
        ({"prediction": [0, 1], "score": [0, 1], "sd": [0, 0], "aleatoric": [0, 1]}, BINARY),
        ({"prediction": np.array([True, False]), "score": np.float32([0.75, 0.25])}, BINARY),
        ({"prediction": [-1e6, 7.5], "mean": [-1e6, 7.5], "sd": [1e-9, 1e9]}, REGRESSION),
        ({"prediction": [0, 1], "lower_90": [-INF, 0], "upper_90": [INF, 1]}, REGRESSION),
        (CLASSES, BINARY),
    ):
        table = read_predictions(columns, task, "m")
        assert list(table.columns) == list(columns)
        assert set(table.dtypes) == {np.dtype("float64")}
        np.testing.assert_array_equal(table.to_numpy(), np.transpose([*columns.values()]))


def test_impossible_values_are_refused_with_method_column_and_count():
    for columns, task, reason in (
        ({"score": [0.5, 1.5, -0.1]}, BINARY, "'score' is outside [0, 1] in 2 of 3 rows (first: 1"),
        ({"score": [0.5, 0.5, NAN]}, BINARY, "'score' is not finite in 1 of 3 rows (first: 2"),
        ({"prediction": [0, 2, 1]}, BINARY,
         "'prediction' is neither 0 nor 1 in 1 of 3 rows (first: 1"),
        ({"prediction": [0.0, INF, 1]}, REGRESSION,
         "'prediction' is not finite in 1 of 3 rows (first: 1"),
        ({"mean": [0, 0, -INF]}, REGRESSION, "'mean' is not finite in 1 of 3 rows (first: 2"),
        ({"sd": [1, -1, -2]}, REGRESSION, "'sd' is negative in 2 of 3 rows (first: 1"),
        ({"sd": [0, 1, 0]}, REGRESSION, "'sd' is exactly 0 in 2 of 3 rows (first: 0"),
        ({"uncertainty": [0.1, 0.2, -0.3]}, BINARY,
         "'uncertainty' is negative in 1 of 3 rows (first: 2"),
        ({"aleatoric": [-1, 0, 0]}, REGRESSION, "'aleatoric' is negative in 1 of 3 rows (first: 0"),
        ({"epistemic": [0, -1, 0]}, BINARY, "'epistemic' is negative in 1 of 3 rows (first: 1"),
        ({"lower_90": [0, NAN, 0]}, BINARY, "'lower_90' is NaN in 1 of 3 rows (first: 1"),
        ({"set_1_90": [0, 0.5, 1]}, BINARY,
         "'set_1_90' is neither 0 nor 1 in 1 of 3 rows (first: 1"),
        ({**CLASSES, "score_high": [0.5, 0.1, 0.4]}, BINARY,
         "'score_low, score_middle, score_high' is not 1 in sum in 1 of 3 rows (first: 2"),
        ({**CLASSES, "score_high": [0.5, 0.1, -0.3]}, BINARY,
         "'score_high' is outside [0, 1] in 1 of 3 rows (first: 2"),
        ({**CLASSES, "prediction": [3, 0, 1]}, BINARY,
         "'prediction' is no class of 0 .. 2 in 1 of 3 rows (first: 0"),
        ({"score_low": [0.2, 0.5, 0.1]}, BINARY, "'score_low' is the score of a single class"),
    ):  # fmt: skip
        with pytest.raises(UserError) as refusal:
            read_predictions({"prediction": [0, 1, 1], **columns}, task, "method binomial_nll")
        assert str(refusal.value).startswith("method binomial_nll: ")
        assert reason.replace("(first: ", "(first: row ") in str(refusal.value)


def test_a_missing_or_unknown_column_is_refused_with_what_was_returned():
    known = (
        "score, mean, sd, uncertainty, aleatoric, epistemic, entropy_aleatoric, entropy_epistemic"
    )
    for columns in ({"score": [0.5]}, {"prediction": [1], "probability": [0.5]}):
        said = f"'prediction' and any of {known}; this one returned {', '.join(columns)}"
        with pytest.raises(UserError, match=rf"^method votes: a reading returns {said}\Z"):
            read_predictions(columns, BINARY, "method votes")


def test_a_method_may_keep_impossible_values_but_not_unknown_columns():
    columns = {"prediction": [0.0, np.nan], "sd": [-1, 0]}
    table = read_predictions(columns, REGRESSION, "m", keep_invalid=True)
    np.testing.assert_array_equal(table["sd"], [-1, 0])
    with pytest.raises(UserError, match="this one returned"):
        read_predictions({**columns, "sigma": [1, 1]}, REGRESSION, "m", keep_invalid=True)
