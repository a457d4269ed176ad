"""Arrays of a user: aligned by index, of any label, and as pandas, polars, lists or NumPy."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import fairbench
from fairbench.core.errors import UserError
from fairbench.evaluation.evaluator import Evaluator

SEED = np.random.default_rng(3)
N = 200
SCORE = SEED.random(N).round(3)
TARGET = (SEED.random(N) < SCORE).astype(int)
PREDICTION = (SCORE > 0.5).astype(int)
SEX = SEED.choice(["women", "men"], N)
WEIGHT = SEED.random(N) + 0.5
SHUFFLED = SEED.permutation(N)
FEW = Evaluator(intersections=1)


def table(target=TARGET, prediction=PREDICTION, groups=SEX, score=SCORE, **more):
    return fairbench.evaluate(
        target, prediction, sensitive_features=groups, score=score, evaluator=FEW, **more
    ).drop(columns="attribute")


@pytest.fixture(scope="module")
def plain():
    return table(sample_weight=WEIGHT)


def series(values, order=None):
    result = pd.Series(values, index=[f"row {i}" for i in range(N)])
    return result if order is None else result.iloc[order]


def named(pair):
    return np.array(pair, dtype=object)


BOTH = np.column_stack([1 - SCORE, SCORE])
GIVEN = {
    "another order": {"groups": series(SEX, SHUFFLED), "score": series(SCORE, SHUFFLED),
                      "target": series(TARGET), "sample_weight": series(WEIGHT, SHUFFLED)},
    "frames in another order": {"groups": series(SEX, SHUFFLED).to_frame("sex"),
                                "target": series(TARGET)},
    "a mapping in another order": {"groups": {"sex": series(SEX, SHUFFLED)},
                                   "target": series(TARGET)},
    "yes and no": {"target": named(["no", "yes"])[TARGET],
                   "prediction": named(["no", "yes"])[PREDICTION]},
    "truths": {"target": TARGET == 1, "prediction": PREDICTION == 1},
    "names": {"target": named(["good", "bad"])[TARGET], "positive": "bad",
              "prediction": named(["good", "bad"])[PREDICTION],
              "score": BOTH[:, ::-1]},
    "numbers": {"target": TARGET + 1, "prediction": PREDICTION + 1, "positive": 2},
    "both probabilities": {"score": BOTH},
    "a frame of both": {"score": pd.DataFrame(BOTH)},
    "polars": {"target": pl.Series(TARGET), "prediction": pl.Series(PREDICTION),
               "groups": pl.DataFrame({"sex": SEX}), "score": pl.Series(SCORE),
               "sample_weight": pl.Series(WEIGHT)},
    "polars of both": {"score": pl.DataFrame({"a": BOTH[:, 0], "b": BOTH[:, 1]}),
                       "groups": pl.Series("sex", SEX)},
    "lists": {"target": TARGET.tolist(), "groups": SEX.tolist(), "score": SCORE.tolist()},
}  # fmt: skip


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_arrays_of_any_kind_give_what_plain_ones_give(given, plain):
    result = table(**{"sample_weight": WEIGHT, **given})
    pd.testing.assert_frame_equal(result, plain, rtol=1e-12)


REFUSED = {
    "other rows": (
        {"target": series(TARGET), "prediction": pd.Series(PREDICTION)},
        r"the rows of prediction and of target have different names \(index\): give both",
    ),
    "rows named twice": (
        {"target": series(TARGET), "prediction": series(PREDICTION).rename({"row 1": "row 0"})},
        "have different names",
    ),
    "arrays beside two orders": (
        {"groups": series(SEX, SHUFFLED), "score": series(SCORE)},
        "in another order than those of .*, and arrays without an index",
    ),
    "neither is plain": (
        {"target": named(["bad", "good"])[TARGET], "prediction": named(["bad", "good"])[TARGET]},
        "target holds 'bad' and 'good': say which of them .*: positive='bad' or positive='good'",
    ),
    "no such label": (
        {"target": named(["bad", "good"])[TARGET], "positive": "fine"},
        "positive is 'fine', and target holds 'bad' and 'good'",
    ),
    "another prediction": (
        {"target": named(["no", "yes"])[TARGET], "prediction": ["maybe"] * N},
        "prediction is 'maybe' in row 0, not 'no' or 'yes'",
    ),
    "three labels": ({"target": np.array(["a", "b", "c", "d"] * 50)}, "target holds 4 labels"),
    "a missing label": ({"target": ["no", None] * 100}, "target holds a missing label"),
    "no probabilities": ({"score": np.ones((N, 2))}, "two columns that do not add up to 1"),
}


@pytest.mark.parametrize(("given", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_paired_is_refused(given, sentence):
    with pytest.raises(UserError, match=sentence):
        table(**given)
