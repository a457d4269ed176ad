"""Evaluating arrays: forms of input, refusals, and properties of the whole table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairbench
from fairbench import Evaluator
from fairbench.core.errors import UserError
from fairbench.evaluation import table as tables
from fairbench.evaluation.summary import summarise
from tests.evaluation.labelled import evaluate
from tests.harness import quick

KEYS = ["metric", "statistic", "attribute", "group", "setting"]
SEED = np.random.default_rng(3)
N = 200
SCORE = SEED.random(N).round(3)
TARGET = (SEED.random(N) < SCORE).astype(int)
PREDICTION = (SCORE > 0.5).astype(int)
SEX = SEED.choice(["women", "men"], N)
WEIGHT = SEED.random(N) + 0.5
SHUFFLED = SEED.permutation(N)


def assert_same(table, other, **options):
    """Assert that tables are the same but for the order of their rows."""
    ordered = (frame.sort_values(KEYS).reset_index(drop=True) for frame in (table, other))
    pd.testing.assert_frame_equal(*ordered, **options)


# --- forms of input; tests/properties has every type of every input


def table(target=TARGET, prediction=PREDICTION, groups=SEX, score=SCORE, **more):
    more |= {"sensitive_features": groups, "score": score}
    return evaluate(target, prediction, **more).drop(columns="attribute")


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
    "frames in another order": {"groups": series(SEX, SHUFFLED).to_frame("sex"),
                                "target": series(TARGET)},
    "yes and no": {"target": named(["no", "yes"])[TARGET],
                   "prediction": named(["no", "yes"])[PREDICTION]},
    "truths": {"target": TARGET == 1, "prediction": PREDICTION.astype(float)},
    "names": {"target": named(["good", "bad"])[TARGET], "positive": "bad",
              "prediction": named(["good", "bad"])[PREDICTION],
              "score": BOTH[:, ::-1]},
    "numbers": {"target": TARGET + 1, "prediction": PREDICTION + 1, "positive": 2},
    "a frame of both": {"score": pd.DataFrame(BOTH)},
    "polars of both": {"score": pl.DataFrame({"a": BOTH[:, 0], "b": BOTH[:, 1]}),
                       "groups": pl.DataFrame({"sex": SEX})},
    "a frame that names both": {"score": pd.DataFrame({1: SCORE, 0: 1 - SCORE})},
    "polars that names truths": {"target": TARGET == 1,
                                 "score": pl.DataFrame({"True": SCORE, "False": 1 - SCORE})},
    "unused categories": {"groups": pd.Series(pd.Categorical(SEX, ["x", "women", "men"]))},
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_arrays_of_any_kind_give_what_plain_ones_give(given, plain):
    before = [values.copy() for values in (TARGET, PREDICTION, SEX, SCORE)]
    pd.testing.assert_frame_equal(table(**{"sample_weight": WEIGHT, **given}), plain, rtol=1e-12)
    for values, copy in zip((TARGET, PREDICTION, SEX, SCORE), before, strict=True):
        np.testing.assert_array_equal(values, copy)


def test_missing_labels_are_a_group_of_their_own():
    labels = ["a", None, np.nan, "b", "", pd.NA]
    rates = evaluate([0, 1, 0, 1, 1, 0], [0, 1, 1, 1, 0, 0], sensitive_features=labels)
    rates = rates[rates["metric"] == "selection_rate"]
    sizes = rates.set_index("group")["n"].to_dict()
    assert sizes == {"": 6, "a": 1, "b": 1, "unknown": 4}


@pytest.mark.parametrize("interval", ["frequentist", "dirichlet"])
def test_a_posteriors_intervals_depend_on_the_seed_alone_and_values_do_not(interval):
    first, again, other = (
        table(groups=np.roll(SEX, 1), evaluator=Evaluator(interval=interval), seed=seed)
        .assign(attribute="")
        for seed in (0, 0, 1)
    )  # fmt: skip
    assert_same(first, again)
    assert (first["lower"].dropna() != other["lower"].dropna()).any() == (interval == "dirichlet")
    columns = [*KEYS, "value"]
    assert_same(tables.values_of(first)[columns], tables.values_of(other)[columns])


# --- refusals

BAD_AND_GOOD = named(["bad", "good"])
WEIGHTED = {"sample_weight": [1, 2, 1, 1]}
POSTERIOR = {"evaluator": Evaluator(interval="dirichlet")}
WITHIN = {"within": pd.Series(list("abab"), name="sex")}
SEVERAL = {"target": list("xyzy"), "prediction": list("xyzz"), "task": "multiclass"}
REFUSED = [
    ({"prediction": None, "task": "multiclass"}, "prediction is None: give an array"),
    ({"target": []}, "target has no rows"),
    ({"target": [0, 1, 2, 0]}, "target is 2 in row 2, not 0 or 1"),
    ({"target": [0, 1, np.nan, 0]}, "target is nan in row 2, not 0 or 1"),
    ({"target": [0, 1, np.inf, 0], "task": "regression"}, "target is inf in row 2, not a number"),
    ({"target": [[0], [1], [1], [0]]}, "target has shape (4, 1); it must have one dimension"),
    ({"groups": np.full((4, 2), "a")},
     "sensitive feature group has shape (4, 2); it must have one dimension"),
    ({"groups": {"sex": list("abab"), "race": list("ab")}}, "race has 2 rows, the target 4"),
    ({"task": "regresion"},
     "unknown task 'regresion': did you mean regression? valid: binary, multiclass, regression"),
    ({"privileged": {"group": "A "}}, "unknown group of group in privileged 'A ': did you mean a?"),
    ({"privileged": "a"}, "privileged names a group of each attribute: give {"),
    ({"privileged": {"sex": "a"}}, "unknown sensitive feature in privileged 'sex'; valid: group"),
    ({"prediction": [0, 1, 0.5, 0]},
     "evaluate: column 'prediction' is neither 0 nor 1 in 1 of 4 rows (first: row 2)"),
    ({"groups": pd.Series(list("abab"), list("dcba")), "score": pd.Series([0.1] * 4, list("abcd"))},
     "in another order than those of"),
    ({"target": BAD_AND_GOOD[[0, 1, 0, 1]], "prediction": BAD_AND_GOOD[[0, 1, 0, 1]]},
     "target holds 'bad' and 'good': say which of them"),
    ({"target": BAD_AND_GOOD[[0, 1, 0, 1]], "positive": "fine"},
     "positive is 'fine', and target holds 'bad' and 'good'"),
    ({"target": ["no", "yes"] * 2, "prediction": ["maybe"] * 4},
     "prediction is 'maybe' in row 0, not 'no' or 'yes'"),
    ({"target": list("abcd")}, "target holds 4 labels"),
    ({"target": ["no", None] * 2}, "target is '' in row 1, not 'no' or 'yes'"),
    ({"score": np.ones((4, 2))}, "two columns that do not add up to 1"),
    ({"sample_weight": [1, -1, 1, 1]}, "sample_weight is -1 in row 1; it must be 0 or more"),
    ({"clusters": [7] * 4}, "clusters has one mark in all rows: intervals need at least two clust"),
    (WEIGHTED | POSTERIOR,
     "interval=dirichlet knows neither weights nor clusters: use interval=frequentist"),
    # Within strata.
    (WITHIN | {"groups": {"sex": list("aabb")}}, "names 'sex', whose groups are compared"),
    ({"within": list("abc")}, "within stratum has 3 rows"),
    (WITHIN | WEIGHTED, "within takes neither sample_weight nor clusters"),
    (WITHIN | {"task": "regression"}, "within is of two classes, not of regression"),
    (WITHIN | POSTERIOR, "within has no interval=dirichlet"),
    # Of several classes.
    (SEVERAL | {"score": np.ones((4, 2)) / 2}, "score has shape (4, 2): of 3 classes"),
    (SEVERAL | {"score": np.ones(4) / 3}, "score has shape (4,): of 3 classes"),
    (SEVERAL | {"score": np.ones((4, 3)) / 2}, "not 1 in sum"),
    (SEVERAL | {"classes": ["x", "y"]}, "target is 'z' in row 2, none of the classes x, y"),
    (SEVERAL | {"classes": ["x", "x", "z"]}, "several classes are two or more, once"),
    (SEVERAL | {"target": ["x"] * 4, "prediction": ["x"] * 4}, "several classes are two or more"),
    (SEVERAL | {"target": ["x", "", "z", "y"]}, "target is '' in row 1, none of the classes"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "sentence"), REFUSED)
def test_bad_input_is_refused_in_one_sentence(changed, sentence):
    good = {"target": [0, 1, 1, 0], "prediction": [0, 1, 0, 0], "groups": list("aabb")}
    with pytest.raises(UserError) as refusal:
        table(**{**good, "score": None, **changed})
    assert sentence in str(refusal.value) and "\n" not in str(refusal.value)


# --- properties of the whole table


@st.composite
def inputs(draw):
    """Draw few rows with many ties, empty cells and groups of one."""
    n = draw(st.integers(4, 40))
    columns = {
        "target": st.integers(0, 1),
        "prediction": st.integers(0, 1),
        "score": st.integers(0, 10).map(lambda k: k / 10),
        "uncertainty": st.integers(0, 5).map(lambda k: k / 10),
        "sensitive_features": st.sampled_from(["a", "b", "c"]),
    }
    rows = {"min_size": n, "max_size": n}
    return {name: np.array(draw(st.lists(each, **rows))) for name, each in columns.items()}


@settings(max_examples=10, deadline=None, derandomize=True)
@given(inputs())
def test_exactly_the_undefined_values_are_nan_and_all_others_are_possible(columns):
    result = evaluate(**columns, evaluator=Evaluator(draws=100, spread_groups=(3,), bins=5))
    assert not result.duplicated(KEYS).any()
    undefined = result["status"].str.startswith(("undefined: ", "invalid: "))
    assert (result["value"].isna() == undefined).all()
    # A ratio over a rate of 0 has no value, but exceeds something.
    ratios = result["metric"].str.endswith(("_ratio", "_impact"))
    assert result.loc[undefined & ~ratios, ["lower", "upper"]].isna().all(axis=None)
    rest = result.loc[~undefined, "status"]
    assert (rest.eq("ok") | rest.str.startswith("insufficient: ")).all()
    assert result["n"].dtype == np.int64
    assert result["n"].between(0, len(columns["target"])).all()
    # Of an empty group, the others say something.
    empty = (result["n"] == 0) & ~result["statistic"].isin([tables.POOLED, tables.WORST])
    assert (result.loc[empty, "status"].str.startswith("undefined")).all()
    assert (result["lower"] <= result["upper"])[result["lower"].notna()].all()
    rates = result["metric"].str.endswith(("_rate", "accuracy", "_score", "_value", "_auc"))
    of_chance = [tables.BELOW_EPSILON, tables.OUTSIDE_BAND, tables.WORST]
    probabilities = result["statistic"].isin(of_chance)
    shares = result.loc[rates | probabilities, "value"].dropna()
    assert len(shares) > 10
    assert shares.between(0, 1).all()


# --- no row of any table excludes its own point, unless its status says why


def assert_nothing_excluded(table):
    """Assert that no row that is ok leaves out its value, and that no ends are swapped."""
    slack = 1e-9 * np.maximum(1, table["value"].abs())
    outside = (table["value"] < table["lower"] - slack) | (table["value"] > table["upper"] + slack)
    swapped = table["lower"] > table["upper"] + slack
    excluded = table[((table["status"] == "ok") & outside) | swapped]
    assert excluded.empty, excluded.to_string()


def features(draw, n):
    """Return one or two attributes whose groups may be of a single row, or of next to all rows."""
    first = np.array([f"a{i}" for i in draw.choice(4, n, p=draw.dirichlet(np.full(4, 0.6)))])
    second = np.array([f"b{i}" for i in draw.integers(0, 2, n)])
    return {"a": first, "b": second} if draw.random() < 0.5 else {"a": first}


@pytest.mark.parametrize("seed", quick(range(48), range(0, 48, 4)))
def test_no_row_excludes_its_own_point_of_a_classification(seed):
    draw = np.random.default_rng([1, seed])
    n = int(draw.choice([1, 2, 5, 20, 60, 250]))
    base = draw.choice([0.0, 0.02, 0.2, 0.5, 1.0])
    score = draw.choice([0.0, 0.1, 0.5, 1.0], n) if seed % 3 == 0 else draw.beta(0.5, 1, n)
    design = {"sample_weight": draw.lognormal(0, 1, n), "clusters": draw.permutation(n) // 3}
    design = design if seed % 3 == 1 and n > 5 else {}
    result = fairbench.evaluate(
        (draw.random(n) < base).astype(int),
        (score > draw.choice([0.2, 0.9])).astype(int),
        sensitive_features=features(draw, n),
        score=score,
        uncertainty=np.sqrt(score * (1 - score)),
        aleatoric=score * (1 - score),
        epistemic=np.full(n, 0.01) * draw.integers(0, 2),
        evaluator=Evaluator(draws=100),
        **design,
    )
    assert_nothing_excluded(result)


@pytest.mark.parametrize("seed", quick(range(12), range(0, 12, 2)))
def test_no_row_excludes_its_own_point_of_a_regression_nor_of_a_whole_run(seed):
    """Of hold-outs of noise, too: few rows have no interval in a split, and R2 is negative."""
    draw, splits = np.random.default_rng([2, seed]), []
    n = int(draw.choice([1, 2, 5, 20, 60, 250]))
    for repeat in range(5):
        mean, sd = draw.normal(0, 1, n), draw.choice([0.1, 1.0, 3.0], n)
        error = (draw.normal(size=n), draw.standard_t(2, n), np.zeros(n))[seed % 3]
        table = fairbench.evaluate(
            mean + sd * error,
            mean if seed % 2 else draw.normal(size=n),
            sensitive_features=features(draw, n),
            sd=sd,
            uncertainty=sd,
            task="regression",
            evaluator=Evaluator(draws=100),
        )
        assert_nothing_excluded(table)
        splits.append(table.assign(variant="", repeat=repeat, fold=0))
    summary = summarise(pd.concat(splits, ignore_index=True)).rename(columns={"mean": "value"})
    assert_nothing_excluded(summary.assign(status="ok"))  # whatever the status
