"""Order, length, type and gaps of arrays in memory: the same answer, or a refusal in one line."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlflow.data.evaluation_dataset import EvaluationDataset

import fairbench
from fairbench.core.errors import UserError
from fairbench.evaluation.evaluator import Evaluator
from fairbench.tracking.model_evaluator import _evaluate

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow and pandas warn of themselves
DRAW = np.random.default_rng(5)
N = 48
SCORE = DRAW.random(N).round(3)
LARGE = 2**53  # from which floats cannot tell whole numbers apart
INPUTS = {
    "target": (DRAW.random(N) < SCORE).astype(int),
    "prediction": (SCORE > 0.5).astype(int),
    "score": SCORE,
    "uncertainty": DRAW.random(N).round(3),
    "sample_weight": DRAW.integers(1, 5, N),
    "clusters": LARGE + np.arange(N) // 2,
    "sensitive_features": LARGE + DRAW.integers(0, 2, N),
    "within": np.array(["old", "young"], object)[DRAW.integers(0, 2, N)],
}
ALWAYS = ("target", "prediction", "sensitive_features")
DESIGN = ("sample_weight", "clusters")  # which within= does not go with
GROUPS = ("sensitive_features", "within")
FEW = Evaluator(intersections=1)


def among(name):
    """Return the inputs that an input is given beside: all that it goes with, and itself."""
    apart = DESIGN if name == "within" else ("within",)
    return {other: values for other, values in INPUTS.items() if other not in apart}


def beside(name):
    """Return the few inputs that there always are, and one more."""
    return {other: INPUTS[other] for other in dict.fromkeys((*ALWAYS, name))}


def answer(given):
    """Return the table of inputs, or the line that refuses them."""
    try:
        table = fairbench.evaluate(**given, evaluator=FEW)
    except UserError as refusal:
        assert str(refusal) and "\n" not in str(refusal) and len(str(refusal)) < 300
        return str(refusal)
    return table.drop(columns=["attribute", "within"], errors="ignore")


def same(one, other):
    """Assert that two answers are tables, and equal."""
    assert isinstance(one, pd.DataFrame) and isinstance(other, pd.DataFrame), (one, other)
    pd.testing.assert_frame_equal(one, other, rtol=1e-9, check_categorical=False)


@cache
def plain(name):
    """Return the answer to the arrays of NumPy that an input is given beside."""
    return answer(beside(name))


def of_dtype(whole, broken, text):
    dtypes = {int: whole, float: broken, str: text}
    return lambda values: pd.Series(values, dtype=dtypes[type(values[0])])


FORMS = {
    "list": lambda values: values,
    "masked": lambda values: np.ma.array(
        [values[0] if value is None else value for value in values],
        mask=[value is None for value in values],
    ),
    "list of masked": lambda values: list(FORMS["masked"](values)),
    "objects": lambda values: np.array(values, object),
    "nullable": of_dtype("Int64", "Float64", "string"),
    "arrow-backed": of_dtype("int64[pyarrow]", "float64[pyarrow]", "string[pyarrow]"),
    "categories": lambda values: pd.Series(pd.Categorical(values)),
    "polars": pl.Series,
    "arrow": pa.array,
}


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", INPUTS)
def test_an_input_of_any_type_gives_the_same_and_its_gaps_are_a_group_or_refused(name, form):
    values = INPUTS[name].tolist()
    same(answer(beside(name) | {name: FORMS[form](values)}), plain(name))
    values[7] = None
    changed = answer(beside(name) | {name: FORMS[form](values)})
    if name in GROUPS:
        values[7] = "unknown"
        same(changed, answer(beside(name) | {name: values}))
    else:
        assert isinstance(changed, str) and name in changed and "row 7" in changed


@pytest.mark.thorough
@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.sampled_from([*INPUTS]), st.integers(0, 2**16), st.sampled_from([N - 1, N // 2, N + 1]))
def test_series_belong_to_rows_by_their_index(name, seed, length):
    draw = np.random.default_rng(seed)
    index = draw.permutation(N)  # as a part of a table has it, whose rows were shuffled
    series = {other: pd.Series(values, index) for other, values in among(name).items()}
    one = series[name]
    same(answer(series | {name: one.iloc[draw.permutation(N)]}), answer(among(name)))
    other_length = pd.concat([one, one.iloc[[0]]]).iloc[:length]
    assert " rows, the target " in answer(series | {name: other_length})
    assert "have different names (index)" in answer(series | {name: one.set_axis(index + 1)})


@pytest.mark.parametrize("name", INPUTS)
def test_rows_that_are_named_twice_are_never_paired_by_guess(name):
    index = np.arange(N) // 2
    series = {other: pd.Series(values, index) for other, values in beside(name).items()}
    same(answer(series), plain(name))
    assert "have different names" in answer(series | {name: series[name].iloc[::-1]})
    assert " rows, the target " in answer(series | {name: series[name].iloc[1:]})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in INPUTS if name != "target"])
def test_what_is_shorter_is_refused_in_any_type(name, form):
    said = answer(beside(name) | {name: FORMS[form](INPUTS[name].tolist())[: N - 2]})
    assert said.endswith(f" has {N - 2} rows, the target {N}")


@pytest.mark.parametrize("option", GROUPS)
@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (pd.DataFrame([["a", "b"]] * N, columns=["sex", "sex"]), "2 columns are named 'sex'"),
        (pa.table([["a"] * N, ["b"] * N], names=["sex", "sex"]), "2 columns are named 'sex'"),
        ({1: ["a"] * N, "1": ["b"] * N}, "2 columns are named '1'"),
        ({}, " names no groups"),
        (np.full(N, float(LARGE)), "is the float 9007199254740992 in row 0"),
    ],
    ids=["pandas", "arrow", "keys", "none", "floats"],
)
def test_features_that_would_be_mixed_up_are_refused(features, sentence, option):
    assert sentence in answer(beside(option) | {option: features})


@pytest.mark.parametrize(
    "features",
    [np.arange(2000) * 7.5, {"a": np.arange(2000) % 40, "b": np.arange(2000) // 40}],
    ids=["numbers", "crossed"],
)
def test_thousands_of_groups_are_refused_in_a_line(features):
    labels = np.arange(2000) % 2
    with pytest.raises(UserError, match=r"^sensitive_features: .* has 2,000 groups, .*pooled"):
        fairbench.evaluate(labels, labels, sensitive_features=features)
    with pytest.raises(UserError, match=r"^within: .* makes 2,000 strata of 2,000 rows"):
        fairbench.evaluate(labels, labels, sensitive_features=labels, within=features)


def test_zeros_are_one_group_and_whole_numbers_have_no_point():
    signed = np.where(np.arange(N) < 20, np.where(np.arange(N) % 2, 0.0, -0.0), 1.0)
    for groups in (signed, signed.tolist(), pd.Series(signed), pl.Series(signed)):
        table = answer(beside("target") | {"sensitive_features": groups})
        assert {*table["group"]} == {"", "0", "1"}


def test_mlflow_pairs_by_index_as_evaluate_does():
    draw = np.random.default_rng(0)
    index, order, inputs = draw.permutation(N), draw.permutation(N), among("target")
    data = pd.DataFrame({name: inputs[name] for name in ("target", "prediction")}, index)
    given = EvaluationDataset(data, targets="target", predictions="prediction")
    config = {
        name: pd.Series(inputs[name], index).iloc[order]
        for name in ("sensitive_features", "score", "uncertainty", *DESIGN)
    }
    said = _evaluate("classifier", given, config, None, None)
    same(said.drop(columns="attribute"), answer(inputs))
    for name in config:
        for other in (index + 1, np.arange(N) // 2):
            with pytest.raises(UserError, match="have different names"):
                changed = config | {name: pd.Series(inputs[name], other)}
                _evaluate("classifier", given, changed, None, None)


def test_what_a_model_predicts_is_of_the_rows_it_is_given():
    index, p = np.random.default_rng(1).permutation(N), INPUTS["prediction"]
    data = pd.DataFrame({"target": INPUTS["target"], "x": SCORE}, index)
    given, named = EvaluationDataset(data, targets="target"), pd.Series(p, index)
    config = {"sensitive_features": pd.Series(INPUTS["sensitive_features"], index)}

    def said(output):
        model = SimpleNamespace(predict=lambda features: output)
        return _evaluate("classifier", given, config, model, None)

    for output in (p.tolist(), pd.Series(p), named, named.to_frame()):
        same(said(output).drop(columns="attribute"), plain("target"))
    masked = np.ma.array(p, mask=np.arange(N) == 3)
    for output in (named.sort_index(), named.iloc[1:], p[1:], masked):
        with pytest.raises(UserError):
            said(output)
