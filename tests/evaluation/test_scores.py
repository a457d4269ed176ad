"""Rows for probabilities and uncertainties: values per group, diagrams, and every status."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench import Evaluator
from fairbench.evaluation.by_group import score_distributions
from fairbench.evaluation.metric_batches import add_estimates
from fairbench.evaluation.predictions import AllGroups
from fairbench.evaluation.scores import _set_batches, interval_batches
from fairbench.evaluation.table import DEBIASED, values_of
from fairbench.inference.survey import Design
from fairbench.metrics.probability import reliability
from fairbench.metrics.uncertainty import spread_diagram
from tests.evaluation.labelled import added, by_place, evaluate, labelled, table_of


def scored(seed=0, n=400):
    draw = np.random.default_rng(seed)
    score = draw.random(n).round(3)
    group = draw.choice(["a", "b"], n, p=[0.7, 0.3])
    target = (draw.random(n) < score ** (1 + (group == "b"))).astype(int)
    return target, score, draw.random(n) / 2, group


def rows_by_place(evaluator=None, **columns):
    target, score, uncertainty, group = scored()
    given = {"score": score, "uncertainty": uncertainty, "evaluator": evaluator, **columns}
    return by_place(evaluate(target, score > 0.5, sensitive_features=group, **given))


def test_the_papers_interval_of_a_mean_is_normal_of_the_evaluators_level():
    target, score, _, _ = scored()
    losses = (target - score) ** 2
    row = rows_by_place(Evaluator(level=0.5, interval="dirichlet"))["brier_score", "", ""]
    expected = stats.norm.interval(0.5, losses.mean(), stats.sem(losses))
    assert (row.lower, row.upper) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("residual", ["probability", "label", "label without scores"])
def test_spread_rows_use_the_residual_asked_for(residual):
    target, score, uncertainty, _ = scored()
    evaluator = Evaluator(spread_residual=residual.split()[0], spread_groups=(5,))
    result = rows_by_place(evaluator, **({"score": None} if "without" in residual else {}))
    centre = score if residual == "probability" else score > 0.5
    expected = spread_diagram(target - centre, uncertainty, 5)
    values = {"error": expected.error(), "rank_correlation": expected.rank_correlation()}
    for name, value in values.items():
        assert result[f"spread_{name}", "", "bins=5"].value == pytest.approx(value)
    for name in ("predicted", "empirical"):
        points = [result[f"spread_{name}", "", f"bins=5 bin={i}"].value for i in range(5)]
        assert points == pytest.approx(list(getattr(expected, name)))
    assert ("log_loss" in {metric for metric, *_ in result}) == ("without" not in residual)


def test_what_a_group_lacks_is_said():
    target, score, _, group = scored()
    one_class = evaluate(
        np.where(group == "b", 0, target), score > 0.5, score=score, sensitive_features=group,
        privileged={"group": "z"}, uncertainty=np.full(400, 0.22),
    )  # fmt: skip
    result = by_place(one_class)
    empty = "undefined: no rows in group 'z'"
    for metric, name, setting, status in (
        ("roc_auc", "", "", "ok"),
        ("roc_auc", "b", "", "undefined: only one class in b"),
        ("roc_auc", "z", "", empty),
        ("log_loss", "z", "", empty),
        ("expected_calibration_error", "z", "bins=15 binning=mass", empty),
        ("spread_rank_correlation", "", "bins=10", "undefined: one side is constant"),
    ):
        row = result[metric, name, setting]
        assert row.status == status
        assert np.isnan(row.value) == (status != "ok")
        assert name != "z" or row.n == 0
    everyone = evaluate([1, 1, 1], [1, 0, 1], score=[0.7, 0.4, 0.8], sensitive_features=list("aab"))
    row = by_place(everyone)["roc_auc", "", ""]
    assert row.status == "undefined: only one class in the part"


def test_the_multicalibration_error_is_the_largest_of_groups_of_a_hundred_rows():
    draw = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], [300, 150, 40])
    score = draw.uniform(0.1, 0.6, 490)
    label = (draw.random(490) < score + np.where(groups == "b", 0.3, 0)).astype(int)
    table, few = (
        evaluate(label[rows], score[rows] > 0.5, sensitive_features=groups[rows], score=score[rows])
        .query("metric == 'multicalibration_error'")
        for rows in (slice(None), slice(60))
    )  # fmt: skip
    of_groups = [reliability(label[groups == g], score[groups == g], equal_mass=True) for g in "ab"]
    largest = max(diagram.expected_calibration_error() for diagram in of_groups)
    rows = values_of(table)
    assert rows["attribute"].tolist() == ["", "group"]
    assert rows["value"].to_numpy() == pytest.approx(largest)
    assert ((rows["lower"] < 0.3) & (rows["upper"] > 0.3)).all()
    assert (rows["n"] == [150, 150]).all()
    assert (table.loc[table["statistic"] == DEBIASED, "value"].to_numpy() < largest).all()
    assert few["status"].unique().tolist() == ["undefined: no group has 100 rows"]


def test_a_gap_without_a_group_that_has_rows_has_no_interval():
    """The group of five rows has no interval of its own, and may be the one that differs."""
    draw = np.random.default_rng(0)
    score, group = draw.random(605), np.repeat(["a", "b", "c"], [300, 300, 5])
    label = (draw.random(605) < score).astype(int)

    def gap_of(rows):
        table = evaluate(
            label[rows], (score[rows] > 0.5).astype(int), sensitive_features={"g": group[rows]},
            score=score[rows],
        )  # fmt: skip
        result = table[table["metric"].isin(["log_loss_gap", "roc_auc_gap"])]
        assert len(result) == 2
        return result.set_index("metric")

    everyone, large = gap_of(np.arange(605)), gap_of(np.arange(600))
    assert everyone[["lower", "upper"]].isna().all(axis=None)
    assert everyone["status"].str.startswith("insufficient: without 'c': ").all()
    assert large[["lower", "upper"]].notna().all(axis=None)
    np.testing.assert_allclose(everyone["value"], large["value"])


# Coverage and size of sets of labels and of intervals, by group, with intervals that hold.


def rows_of(sets, target, groups, design=None):
    """Return the rows of sets (C, n) at a level of 90 %."""
    columns = {f"set_{k}_90": np.asarray(members, float) for k, members in enumerate(sets)}
    labels = pd.Series(pd.Categorical(list(groups)))
    all_groups = AllGroups.of(len(target), {"g": labels}, design)
    batches = _set_batches(np.asarray(target, float), columns, (0.8, 0.9), all_groups)
    return added(add_estimates, all_groups, list(batches))


def test_coverage_size_and_emptiness_by_hand():
    rows = rows_of([[1, 0, 1, 0], [0, 0, 1, 1]], [0, 1, 1, 0], "aabb")
    for group, coverage, size, empty in (
        ("", 2 / 4, 1, 1 / 4), ("a", 1 / 2, 1 / 2, 1 / 2), ("b", 1 / 2, 3 / 2, 0),
    ):  # fmt: skip
        row = [rows[name, group, "level=0.9"] for name in ("coverage", "set_size", "empty_sets")]
        assert [figure.value for figure in row] == pytest.approx([coverage, size, empty])
    assert rows["set_size_gap", "", "level=0.9"].value == pytest.approx(1)
    assert rows["coverage_gap", "", "level=0.9"].value == 0
    assert not [place for place in rows if place[2] == "level=0.8"]


def test_sets_of_rows_of_equal_weight_are_as_if_there_were_none():
    sets, target = np.random.default_rng(0).random((2, 60)) < 0.6, np.arange(60) % 2
    plain, weighed = (
        rows_of(sets, target, "ab" * 30, design)
        for design in (None, Design.of(60, weight=np.full(60, 2.0)))
    )
    for place in [(metric, "a", "level=0.9") for metric in ("coverage", "set_size", "empty_sets")]:
        assert weighed[place].value == pytest.approx(plain[place].value)
        assert weighed[place].lower == pytest.approx(plain[place].lower, abs=0.02)


def test_sets_that_are_all_alike_may_differ_among_others():
    rows = rows_of([[1] * 30, [0] * 30], [0] * 30, "a" * 15 + "b" * 15)
    size = rows["set_size", "a", "level=0.9"]
    assert size.lower < 0.85
    assert size.upper > 1.15
    assert size.value == 1


def test_infinite_intervals_are_counted_and_their_mean_width_has_a_status():
    y, lower = np.zeros(40), -1 - np.arange(40) / 40
    lower[30:] = -np.inf
    labels = pd.Series(pd.Categorical(["many"] * 30 + ["few"] * 10, ["many", "few"]))
    all_groups = AllGroups.of(40, {"g": labels})
    batches = interval_batches(y, {0.9: (lower, -lower)}, all_groups)
    result = added(add_estimates, all_groups, list(batches))
    assert result["infinite_intervals", "few", "level=0.9"].value == 1
    assert result["infinite_intervals", "many", "level=0.9"].value == 0
    width = result["interval_width", "few", "level=0.9"]
    infinite = "no interval of an infinite mean in group 'few'"
    assert (width.value, width.status) == (np.inf, f"insufficient: {infinite}")
    assert result["interval_width_gap", "", "level=0.9"].status == f"insufficient: {infinite}"


def test_an_evaluation_has_the_sets_of_a_binary_task():
    sets = {"set_0_90": [1.0] * 20 + [0.0] * 20, "set_1_90": [1.0] * 40}
    rows = labelled([0, 1] * 20, "ab" * 20, prediction=[1] * 40, score=[0.6] * 40, **sets)
    result = by_place(table_of(rows))
    assert result["coverage", "", "level=0.9"].value == pytest.approx(0.75)
    assert result["set_size", "", "level=0.9"].value == pytest.approx(1.5)


# The scores of each group: what pandas says of them, with intervals of their means.

GENERATOR = np.random.default_rng(0)
SEX = pd.Series(pd.Categorical(GENERATOR.choice(["m", "f"], 300), ["m", "f"]))
SCORE = GENERATOR.beta(2, 3, 300)


def test_means_and_quantiles_are_those_of_pandas():
    of_sex = {each["group"]: each for each in score_distributions(SCORE, {"sex": SEX})}
    expected = pd.Series(SCORE).groupby(SEX, observed=True)
    for name, distribution in of_sex.items():
        mean, lower, upper = distribution["mean"]
        assert mean == pytest.approx(expected.mean()[name])
        assert lower < mean < upper
        quantiles = [expected.quantile(q)[name] for q in (0.1, 0.5, 0.9)]
        assert distribution["quantiles"] == pytest.approx(quantiles)
        assert sum(distribution["density"]) == pytest.approx(1)
        assert (distribution["edges"][0], distribution["edges"][-1]) == (0, 1)
    apart = expected.mean()["f"] - expected.mean()["m"]
    assert of_sex["f"]["difference"][0] == pytest.approx(apart)
    assert np.isnan(of_sex["m"]["difference"]).all()
    first, second = score_distributions(
        np.array([5.0, 5.0, 5.0, -2.0]), {"g": pd.Series(pd.Categorical(["a", "a", "b", "b"]))}
    )
    assert (first["edges"][0], first["edges"][-1], first["density"][-1]) == (-2, 5, 1)
    assert np.isnan(second["mean"][1])


def test_means_of_numbers_have_both_ends():
    """Means of shares cannot be under 0 or above 1, and those of numbers can."""
    shares = score_distributions(SCORE, {"sex": SEX})
    numbers = score_distributions(10 * SCORE - 50, {"sex": SEX})
    for share, other in zip(shares, numbers, strict=True):
        mean, lower, upper = (10 * end - 50 for end in share["mean"])
        assert other["mean"] == pytest.approx([mean, lower, upper], abs=0.02)
        assert other["mean"][0] == pytest.approx(mean) and other["mean"][1] < lower < upper < -40
    rare = np.where(np.arange(300) % 100 == 0, 0.9, 0.0)
    assert score_distributions(rare, {"sex": SEX})[0]["mean"][1] == 0
    assert score_distributions(rare - 0.1, {"sex": SEX})[0]["mean"][1] < -0.1


def test_rows_in_clusters_and_rows_that_stand_for_nobody_are_no_more_rows():
    design = Design.of(600, clusters=np.repeat(np.arange(300), 2))
    twice = pd.Series(SEX.repeat(2).array)
    doubled = score_distributions(np.repeat(SCORE, 2), {"sex": twice}, design)
    for one, other in zip(score_distributions(SCORE, {"sex": SEX}), doubled, strict=True):
        assert other["mean"] == pytest.approx(one["mean"], abs=1e-3)
        assert other["difference"] == pytest.approx(one["difference"], abs=2e-3, nan_ok=True)
    design = Design.of(300, weight=(SEX == "m").to_numpy(float))
    first, second = score_distributions(SCORE, {"sex": SEX}, design)
    (alone,) = score_distributions(SCORE[SEX == "m"], {"sex": SEX[SEX == "m"]})
    assert first["mean"][0] == pytest.approx(alone["mean"][0])
    assert np.isnan([*second["mean"], *second["difference"], *second["quantiles"]]).all()
    assert set(second["density"]) == {0}
