"""Rows for probabilities and uncertainties: values per group, diagrams, and every status."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from fairbench import Evaluator
from fairbench.core.arrays import rng
from fairbench.evaluation.by_group import score_distributions
from fairbench.evaluation.metric_batches import add_estimates
from fairbench.evaluation.predictions import AllGroups
from fairbench.evaluation.scores import _largest_calibration_error, _set_batches, interval_batches
from fairbench.evaluation.table import DEBIASED, MetricTable, values_of
from fairbench.inference.scores import Bins
from fairbench.inference.survey import Design
from fairbench.metrics.probability import multicalibration_error, nll_of_sd, reliability
from fairbench.metrics.uncertainty import spread_diagram
from tests.evaluation.labelled import by_place, evaluate, labelled


def scored(seed=0, n=400):
    draw = np.random.default_rng(seed)
    score = draw.random(n).round(3)
    group = draw.choice(["a", "b"], n, p=[0.7, 0.3])
    target = (draw.random(n) < score ** (1 + (group == "b"))).astype(int)
    return target, score, draw.random(n) / 2, group


def table_of(evaluator=None, **columns):
    target, score, uncertainty, group = scored()
    given = {"score": score, "uncertainty": uncertainty, **columns}
    return evaluate(target, score > 0.5, sensitive_features=group, evaluator=evaluator, **given)


def value(table, metric, group="", setting=""):
    rows = values_of(table)
    rows = rows.query("metric == @metric and group == @group and setting == @setting")
    assert len(rows) == 1
    return rows["value"].iloc[0]


@pytest.mark.parametrize("group", ["", "a", "b"])
def test_scores_of_everyone_and_of_each_group_match_scikit_learn(group):
    target, score, uncertainty, groups = scored()
    rows = (groups == group) | (group == "")
    y, p, table = target[rows], score[rows], table_of()
    clipped = np.clip(p, 1e-15, 1 - 1e-15)
    assert value(table, "log_loss", group) == pytest.approx(log_loss(y, clipped))
    assert value(table, "brier_score", group) == pytest.approx(brier_score_loss(y, p))
    assert value(table, "roc_auc", group) == pytest.approx(roc_auc_score(y, p))
    nll = nll_of_sd(y, p > 0.5, uncertainty[rows]).mean()
    assert value(table, "nll", group) == pytest.approx(nll)
    for binning in ("width", "mass"):
        expected = reliability(y, p, equal_mass=binning == "mass").expected_calibration_error()
        result = value(table, "expected_calibration_error", group, f"bins=15 binning={binning}")
        assert result == pytest.approx(expected)
        assert expected > 0
    n = table.query("metric == 'roc_auc' and group == @group")["n"].iloc[0]
    assert n == rows.sum()


@pytest.mark.parametrize("level", [0.95, 0.5])
def test_the_papers_interval_of_a_mean_is_normal_of_the_evaluators_level(level):
    target, score, _, _ = scored()
    losses = (target - score) ** 2
    evaluator = Evaluator(level=level, interval="dirichlet")
    rows = table_of(evaluator).query("metric == 'brier_score' and group == ''")
    expected = stats.norm.interval(level, losses.mean(), stats.sem(losses))
    np.testing.assert_allclose(rows[["lower", "upper"]].iloc[0], expected, rtol=1e-9)


def test_reliability_rows_are_the_points_of_the_diagram():
    target, score, _, _ = scored()
    table = table_of(Evaluator(bins=8))
    base_rate, mean_score = calibration_curve(target, score, n_bins=8)
    for metric, expected in (
        ("reliability_base_rate", base_rate),
        ("reliability_mean_score", mean_score),
    ):
        rows = table[table["metric"] == metric]
        np.testing.assert_allclose(rows["value"], expected)
        assert list(rows["setting"]) == [f"bins=8 bin={i}" for i in range(8)]
        assert rows["n"].sum() == len(score)


@pytest.mark.parametrize("residual", ["probability", "label"])
def test_spread_rows_use_the_residual_asked_for(residual):
    target, score, uncertainty, _ = scored()
    table = table_of(Evaluator(spread_residual=residual, spread_groups=(5, 8)))
    centre = score if residual == "probability" else score > 0.5
    for groups in (5, 8):
        expected = spread_diagram(target - centre, uncertainty, groups)
        setting = f"bins={groups}"
        assert value(table, "spread_error", setting=setting) == pytest.approx(expected.error())
        correlation = value(table, "spread_rank_correlation", setting=setting)
        assert correlation == pytest.approx(expected.rank_correlation())
        for i in range(groups):
            point = f"{setting} bin={i}"
            result = value(table, "spread_predicted", setting=point)
            assert result == pytest.approx(expected.predicted[i])
            result = value(table, "spread_empirical", setting=point)
            assert result == pytest.approx(expected.empirical[i])


def test_without_scores_the_spread_is_about_the_label():
    target, score, uncertainty, _ = scored()
    table = table_of(score=None)
    expected = spread_diagram(target - (score > 0.5), uncertainty, 10).error()
    assert value(table, "spread_error", setting="bins=10") == pytest.approx(expected)
    assert not set(table["metric"]) & {"log_loss", "brier_score", "roc_auc"}
    assert "nll" not in set(table_of(uncertainty=None)["metric"])


def one_class_table(**options):
    target, score, _, group = scored()
    target = np.where(group == "b", 0, target)
    return evaluate(target, score > 0.5, score=score, sensitive_features=group, **options)


@pytest.mark.parametrize(
    ("group", "status"), [("", "ok"), ("a", "ok"), ("b", "undefined: only one class in b")]
)
def test_roc_auc_of_a_group_with_one_class(group, status):
    result = one_class_table().query("metric == 'roc_auc' and group == @group").iloc[0]
    assert result["status"] == status
    assert np.isnan(result["value"]) == (status != "ok")
    assert result["n"] == (scored()[3] == group).sum() or group == ""


def test_roc_auc_of_everyone_with_one_class():
    table = evaluate([1, 1, 1], [1, 0, 1], score=[0.7, 0.4, 0.8], sensitive_features=list("aab"))
    result = table.query("metric == 'roc_auc' and group == ''").iloc[0]
    assert result["status"] == "undefined: only one class in the part"


@pytest.mark.parametrize(
    "metric", ["log_loss", "brier_score", "roc_auc", "expected_calibration_error"]
)
def test_an_empty_group_is_said_to_be_empty(metric):
    table = one_class_table(privileged={"group": "z"})
    rows = table.query("metric == @metric and group == 'z'")
    assert set(rows["status"]) == {"undefined: no rows in group 'z'"}
    assert set(rows["n"]) == {0}
    assert rows["value"].isna().all()


def test_a_constant_uncertainty_has_no_rank_correlation():
    table = table_of(uncertainty=np.full(400, 0.22))
    result = table.query("metric == 'spread_rank_correlation'").iloc[0]
    assert result["status"] == "undefined: one side is constant"
    assert np.isnan(result["value"])


def test_the_multicalibration_error_is_the_largest_of_groups_of_a_hundred_rows():
    draw = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], [300, 150, 40])
    score = draw.uniform(0.1, 0.6, 490)
    label = (draw.random(490) < score + np.where(groups == "b", 0.3, 0)).astype(int)
    table = evaluate(label, score > 0.5, sensitive_features=groups, score=score)
    of_groups = [(label[groups == g], score[groups == g]) for g in "ab"]
    largest = multicalibration_error(*zip(*of_groups, strict=True))
    both = table[table["metric"] == "multicalibration_error"]
    rows = values_of(both)
    assert rows["attribute"].tolist() == ["", "group"]
    assert rows["value"].to_numpy() == pytest.approx(largest)
    assert ((rows["lower"] < 0.3) & (rows["upper"] > 0.3)).all()
    assert (rows["n"] == [150, 150]).all()
    less = both[both["statistic"] == DEBIASED]
    assert (less["value"].to_numpy() < largest).all()


def test_the_multicalibration_error_of_few_rows_is_undefined():
    target, score, _, group = (column[:60] for column in scored())
    table = evaluate(target, score > 0.5, sensitive_features=group, score=score)
    rows = table[table["metric"] == "multicalibration_error"]
    assert rows["status"].unique().tolist() == ["undefined: no group has 100 rows"]


@pytest.mark.thorough
@pytest.mark.parametrize("off", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("sizes", [[1000, 300, 100], [150] * 6])
def test_the_interval_of_a_largest_calibration_error_covers(sizes, off):
    """Scores are uniform on [0.2, 0.8], and labels of the second group likelier by `off`."""
    draw, held = np.random.default_rng(0), []
    codes = np.repeat(np.arange(len(sizes)), sizes)
    for _ in range(200):
        score = np.sort(draw.uniform(0.2, 0.8, len(codes)))
        group = draw.permutation(codes)
        label = (draw.random(len(codes)) < score + off * (group == 1)).astype(float)
        cells = [bins_by_mass(score[group == g], label[group == g]) for g in range(len(sizes))]
        stacked = (np.stack(part) for part in zip(*cells, strict=True))
        result = _largest_calibration_error(Bins(*stacked))
        held.append(result.lower <= off <= result.upper)
    assert np.mean(held) > 0.93


def bins_by_mass(score, label, bins=15):
    cell = np.arange(len(score)) * bins // len(score)
    size = np.bincount(cell, minlength=bins).astype(float)
    return size, np.bincount(cell, label, bins), np.bincount(cell, score, bins) / size


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
    table = MetricTable()
    batches = list(_set_batches(np.asarray(target, float), columns, (0.8, 0.9), all_groups, 0))
    add_estimates(table, all_groups, batches)
    return by_place(table)


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


def test_sets_that_are_all_alike_may_differ_among_others():
    rows = rows_of([[1] * 30, [0] * 30], [0] * 30, "a" * 15 + "b" * 15)
    size = rows["set_size", "a", "level=0.9"]
    assert size.lower < 0.85
    assert size.upper > 1.15
    assert size.value == 1


def sizes(design, replications, rows, classes, share):
    draw = np.random.default_rng(5)
    group = np.repeat(np.arange(replications), rows)
    size = draw.choice(classes + 1, replications * rows, p=share)
    sets = np.arange(classes)[:, None] < size
    return rows_of(sets, np.zeros(len(size)), [f"{g:04d}" for g in group], design)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("classes", "share"),
    [(2, [0.05, 0.9, 0.05]), (2, [0, 0.97, 0.03]), (4, [0.1, 0.5, 0.2, 0.15, 0.05])],
)
@pytest.mark.parametrize("rows", [30, 200])
def test_the_interval_of_a_mean_size_covers(classes, share, rows, monkeypatch):
    # The groups stand for 600 samples; their pairs are not of interest here.
    monkeypatch.setattr("fairbench.evaluation.metric_batches._add_differences", lambda *_: None)
    monkeypatch.setattr("fairbench.evaluation.metric_batches._add_gaps", lambda *_: None)
    result = sizes(None, 600, rows, classes, share)
    truth = float(np.arange(classes + 1) @ share)
    held = [
        row.lower <= truth <= row.upper
        for (name, group, _), row in result.items()
        if name == "set_size" and group
    ]
    assert len(held) == 600
    assert np.mean(held) > 0.93


def test_rows_of_equal_weight_are_as_if_there_were_none():
    sets, target = np.random.default_rng(0).random((2, 60)) < 0.6, np.arange(60) % 2
    plain = rows_of(sets, target, "ab" * 30)
    weighed = rows_of(sets, target, "ab" * 30, Design.of(60, weight=np.full(60, 2.0)))
    for place in plain:
        if place[0] in ("coverage", "set_size", "empty_sets"):
            assert weighed[place].value == pytest.approx(plain[place].value)
            assert weighed[place].lower == pytest.approx(plain[place].lower, abs=0.02)


def test_infinite_intervals_are_counted_and_their_mean_width_has_a_status():
    y, lower = np.zeros(40), -1 - np.arange(40) / 40
    lower[30:] = -np.inf
    labels = pd.Series(pd.Categorical(["many"] * 30 + ["few"] * 10, ["many", "few"]))
    all_groups, table = AllGroups.of(40, {"g": labels}), MetricTable()
    add_estimates(
        table, all_groups, list(interval_batches(y, {0.9: (lower, -lower)}, all_groups, 0))
    )
    result = by_place(table)
    assert result["infinite_intervals", "few", "level=0.9"].value == 1
    assert result["infinite_intervals", "many", "level=0.9"].value == 0
    width = result["interval_width", "few", "level=0.9"]
    infinite = "no interval of an infinite mean in group 'few'"
    assert (width.value, width.status) == (np.inf, f"insufficient: {infinite}")
    gap = result["interval_width_gap", "", "level=0.9"]
    assert gap.status == f"insufficient: {infinite}"


def test_an_evaluation_has_the_sets_of_a_binary_task():
    sets = {"set_0_90": [1.0] * 20 + [0.0] * 20, "set_1_90": [1.0] * 40}
    ones, score = [1.0] * 40, [0.6] * 40
    data = labelled([0.0, 1.0] * 20, "ab" * 20, prediction=ones, score=score, **sets)
    metrics = Evaluator().table(data, [rng(0, "test")]).frame()
    result = metrics[metrics["level"] == 0.9].set_index(["metric", "group"])["value"]
    assert result["coverage", ""] == pytest.approx(0.75)
    assert result["set_size", ""] == pytest.approx(1.5)


# The scores of each group: what pandas says of them, with intervals of their means.

GENERATOR = np.random.default_rng(0)
SEX = pd.Series(pd.Categorical(GENERATOR.choice(["m", "f"], 300), ["m", "f"]))
SCORE = GENERATOR.beta(2, 3, 300)


def test_means_and_quantiles_are_those_of_pandas():
    result = {
        score_distribution["group"]: score_distribution
        for score_distribution in score_distributions(SCORE, {"sex": SEX})
    }
    expected = pd.Series(SCORE).groupby(SEX, observed=True)
    for name, distribution in result.items():
        assert distribution["mean"][0] == pytest.approx(expected.mean()[name])
        assert distribution["mean"][1] < distribution["mean"][0] < distribution["mean"][2]
        assert distribution["quantiles"] == pytest.approx(
            [expected.quantile(q)[name] for q in (0.1, 0.5, 0.9)]
        )
        assert sum(distribution["density"]) == pytest.approx(1)
        assert (distribution["edges"][0], distribution["edges"][-1]) == (0, 1)
    assert result["f"]["difference"][0] == pytest.approx(
        expected.mean()["f"] - expected.mean()["m"]
    )
    assert np.isnan(result["m"]["difference"]).all()


def test_equal_weights_change_nothing_and_double_rows_widen():
    plain = score_distributions(SCORE, {"sex": SEX})
    design = Design.of(600, clusters=np.repeat(np.arange(300), 2))
    twice = pd.Series(SEX.repeat(2).array)
    doubled = score_distributions(np.repeat(SCORE, 2), {"sex": twice}, design)
    for one, other in zip(plain, doubled, strict=True):
        assert other["mean"] == pytest.approx(one["mean"], abs=1e-3)
        assert other["difference"] == pytest.approx(one["difference"], abs=2e-3, nan_ok=True)


def test_any_values_have_a_range_and_few_rows_no_interval():
    values = np.array([5.0, 5.0, 5.0, -2.0])
    groups = pd.Series(pd.Categorical(["a", "a", "b", "b"]))
    first, second = score_distributions(values, {"g": groups})
    assert (first["edges"][0], first["edges"][-1]) == (-2, 5)
    assert first["density"][-1] == 1
    assert np.isnan(second["mean"][1])
    assert score_distributions(np.full(4, 3.0), {"g": groups})[0]["density"][0] == 1


def test_means_of_numbers_have_both_ends():
    """Means of shares cannot be under 0 or above 1, and those of numbers can."""
    shares = score_distributions(SCORE, {"sex": SEX})
    for share, other in zip(
        shares, score_distributions(10 * SCORE - 50, {"sex": SEX}), strict=True
    ):
        mean, lower, upper = (10 * end - 50 for end in share["mean"])
        assert other["mean"] == pytest.approx([mean, lower, upper], abs=0.02)
        assert other["mean"][0] == pytest.approx(mean) and other["mean"][1] < lower < upper < -40
    rare = np.where(np.arange(300) % 100 == 0, 0.9, 0.0)
    assert score_distributions(rare, {"sex": SEX})[0]["mean"][1] == 0
    assert score_distributions(rare - 0.1, {"sex": SEX})[0]["mean"][1] < -0.1


def test_a_group_that_stands_for_nobody_has_no_scores():
    design = Design.of(300, weight=(SEX == "m").to_numpy(float))
    first, second = score_distributions(SCORE, {"sex": SEX}, design)
    (alone,) = score_distributions(SCORE[SEX == "m"], {"sex": SEX[SEX == "m"]})
    assert first["mean"][0] == pytest.approx(alone["mean"][0])
    assert np.isnan([*second["mean"], *second["difference"], *second["quantiles"]]).all()
    assert set(second["density"]) == {0}
