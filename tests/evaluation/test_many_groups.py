"""Rows and tables of many groups estimated together."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairbench
from fairbench.core.errors import UserError
from fairbench.evaluation.arrays import evaluate
from fairbench.evaluation.evaluator import Evaluator
from fairbench.evaluation.many_groups import unlike_everyone_else
from fairbench.evaluation.table import BELOW_EPSILON, POOLED, VALUE, WORST
from fairbench.inference.pooled import differs_from_rest


def people(rows=1200, seed=0):
    generator = np.random.default_rng(seed)
    groups = {"sex": ["f", "m"], "race": list("abcd")}
    features = pd.DataFrame({name: generator.choice(them, rows) for name, them in groups.items()})
    target = generator.integers(0, 2, rows)
    return target, np.where(generator.random(rows) < 0.8, target, 1 - target), features


def rows_of(table, metric, attribute, statistic=VALUE):
    rows = table[(table["metric"] == metric) & (table["attribute"] == attribute)]
    return rows[rows["statistic"] == statistic]


def test_attributes_of_three_groups_or_more_have_pooled_rates_and_worst_groups():
    table = evaluate(*people()[:2], sensitive_features=people()[2])
    for rate in ("selection_rate", "error_rate", "true_positive_rate", "false_positive_rate"):
        assert rows_of(table, rate, "sex", POOLED).empty
        for attribute, groups in (("race", 4), ("sex x race", 8)):
            pooled = rows_of(table, rate, attribute, POOLED)
            raw = rows_of(table, rate, attribute).query("group != ''")
            assert len(pooled) == groups
            names, others = (each[["group", "n"]].to_numpy().tolist() for each in (pooled, raw))
            assert names == others
            assert pooled["value"].between(pooled["lower"], pooled["upper"]).all()
            assert np.ptp(pooled["value"]) < np.ptp(raw["value"])
            assert (pooled["upper"] - pooled["lower"]).mean() < (raw["upper"] - raw["lower"]).mean()
            worst = rows_of(table, rate, attribute, WORST)
            assert worst["value"].sum() == pytest.approx(1)
            bad = raw["value"] * (1 if rate[:5] in ("error", "false") else -1)
            assert worst["value"].iloc[bad.argmax()] > 1 / groups - 0.05  # of 1,000 draws


def test_equal_groups_are_probably_close_and_the_papers_posterior_has_no_pooled_rows():
    target, prediction, features = people(8000)
    table = evaluate(target, prediction, sensitive_features=features)
    below = rows_of(table, "statistical_parity", "race", BELOW_EPSILON)["value"].item()
    odds = rows_of(table, "equalized_odds", "race", BELOW_EPSILON)["value"].item()
    dirichlet = Evaluator(interval="dirichlet")
    papers = evaluate(target, prediction, sensitive_features=features, evaluator=dirichlet)
    assert below > 0.8
    assert below > rows_of(papers, "statistical_parity", "race", BELOW_EPSILON)["value"].item()
    assert 0 < odds <= below
    assert not papers["statistic"].isin([POOLED, WORST]).any()


def test_a_group_unlike_the_others_and_one_without_rows_say_so():
    generator = np.random.default_rng(1)
    race = np.repeat(list("abcdefgh"), 150)
    prediction = (generator.random(1200) < np.where(race == "h", 0.9, 0.3)).astype(int)
    target = np.where(race == "a", 0, generator.integers(0, 2, 1200))
    table = evaluate(target, prediction, sensitive_features={"race": race})
    pooled = rows_of(table, "selection_rate", "race", POOLED).set_index("group")
    assert list(pooled.index[pooled["status"] != "ok"]) == ["h"]
    assert "unlike the other groups" in pooled["reason"]["h"]
    pooled = rows_of(table, "true_positive_rate", "race", POOLED).set_index("group")
    assert pooled["status"]["a"] == "insufficient"
    assert pooled["reason"]["a"] == "no positives: from the other groups alone"
    assert 0 < pooled["lower"]["a"] < pooled["upper"]["a"] < 1
    nobody = evaluate(0 * target, prediction, sensitive_features={"race": race})
    pooled = rows_of(nobody, "true_positive_rate", "race", POOLED)
    assert (pooled["status"] == "undefined").all()
    assert pooled["value"].isna().all()


def test_a_table_of_counts():
    table = fairbench.pooled(
        [30, 33, 5, 0, 28, 95],
        [100, 100, 10, 2, 100, 100],
        attributes={"sex": list("ffffmm"), "race": list("abcdab")},
    )
    assert list(table.index[[0, 5]]) == ["f x a", "m x b"]
    assert table["raw"].iloc[2] == 0.5
    assert (table["lower"] <= table["pooled"]).all()
    assert (table["pooled"] <= table["upper"]).all()
    assert list(table.index[table["exception"]]) == ["m x b"]
    assert table["differs"]["m x b"]
    assert (table[["rank_lower", "rank_upper"]].loc["m x b"] == 6).all()
    assert table["worst"].sum() == pytest.approx(1)
    assert table.attrs["gap_below"] == 0
    assert fairbench.pooled([30, 33, 95], [100, 100, 100], worst="largest")["worst"]["2"] > 0.99


def test_counts_that_make_no_sense_are_refused():
    for counts, sizes, options, message in (
        ([3], [2], {}, "group 0 has 3 of 2"),
        ([1, -1], [2, 2], {}, "group 1 has -1 of 2"),
        ([1, 2], [2], {}, r"counts have shape \(2,\), sizes \(1,\)"),
        ([], [], {}, "give one of each a group"),
        (["x"], [2], {}, "must be numbers"),
        ([1], [2], {"groups": ["a", "b"]}, "groups has 2 values, but there are 1 groups"),
        ([1], [2], {"attributes": {"sex": ["f", "m"]}}, "sex has 2 values"),
        ([1], [2], {"level": 1}, "level"),
        ([1], [2], {"worst": "middle"}, "valid: smallest, largest"),
    ):
        with pytest.raises(UserError, match=message):
            fairbench.pooled(counts, sizes, **options)


def stored(counts, sizes, repeats=1):
    """Return rows of a run's table: selection rates (repeats, attributes, groups) of sizes."""
    rows = [
        (repeat, "", "selection_rate", VALUE, f"a{a}", f"g{g}", count / size, size)
        for repeat in range(repeats)
        for (a, g), count in np.ndenumerate(counts[repeat])
        for size in [sizes[g]]
    ]
    names = ["repeat", "variant", "metric", "statistic", "attribute", "group", "value", "n"]
    return pd.DataFrame(rows, columns=names)


def test_groups_unlike_everyone_else_are_those_that_a_false_discovery_rate_allows():
    sizes = np.array([400, 100, 50, 10])
    counts = np.array([[[120, 30, 30, 3], [200, 10, 25, 5]]])
    groups_apart = unlike_everyone_else(stored(counts, sizes))
    p_values = differs_from_rest(counts[0], sizes).ravel()
    expected = stats.false_discovery_control(p_values, method="by")
    assert groups_apart.attrs["tests"] == 8
    assert [*groups_apart["adjusted"]] == pytest.approx(sorted(expected[expected <= 0.1]))
    sure = groups_apart[groups_apart["group"] == "g2"].iloc[0]
    assert (sure["value"], sure["n"]) == (0.6, 50)
    assert sure["rest"] == pytest.approx(153 / 510)


@pytest.mark.thorough
def test_groups_that_are_alike_are_rarely_said_to_be_unlike_everyone_else():
    draw, sizes, named = np.random.default_rng(0), np.array([300, 100, 50, 20]), 0
    for _ in range(60):
        same = draw.binomial(sizes, 0.3, (1, 2, 4)).repeat(3, axis=0)  # repeats share all rows
        named += len(unlike_everyone_else(stored(same, sizes, 3))) > 0
    assert named / 60 <= 0.1


@pytest.mark.parametrize(
    ("counts", "sizes"), [([120, 3], [400, 10]), ([4, 0, 50, 60], [4, 30, 100, 100])]
)
def test_weighted_rates_are_no_counts_and_are_not_tested(counts, sizes):
    """Nor are those that are 0 or 1 beside others."""
    table = stored(np.array([[counts]]), np.array(sizes))
    weighted = table["value"].where(table["value"].isin([0, 1]), table["value"] + 0.0003)
    groups_apart = unlike_everyone_else(table.assign(value=weighted))
    assert groups_apart.empty
    assert groups_apart.attrs["tests"] == 0
