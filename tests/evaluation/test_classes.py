"""Several classes: against scikit-learn, brute force, and the label that two classes are."""

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.core.errors import UserError
from fairbench.evaluation.table import values_of
from fairbench.inference.comparing import objective
from fairbench.metrics.registry import MULTICLASS, RENAMED, metrics_of
from tests.evaluation.labelled import worded

NAMES = ("low", "middle", "high")
PLACE = ["metric", "statistic", "attribute", "group", "setting"]


def drawn(n=300, classes=3, seed=0):
    """Return codes, probabilities and groups; the third group has no row of the last class."""
    draw = np.random.default_rng(seed)
    y, g = draw.integers(classes, size=n), draw.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    y[(g == "c") & (y == classes - 1)] = 0
    scores = draw.dirichlet(np.ones(classes), n) + 0.7 * np.eye(classes)[y]
    return y, scores / scores.sum(axis=1, keepdims=True), g


def evaluated(y, scores, g, **options):
    names, given = np.array(NAMES), {"score": scores, "classes": NAMES, **options}
    predicted = names[scores.argmax(1)]
    about = {"task": "multiclass", "sensitive_features": g}
    return worded(fairbench.evaluate(names[y], predicted, **about, **given))


def value(table, metric, group="", attribute="", outcome=""):
    rows = values_of(table)
    rows = rows[(rows["metric"] == metric) & (rows["group"] == group)]
    rows = rows[(rows["attribute"] == attribute) & (rows["binning"] != "mass")]
    rows = rows[rows["outcome"].eq(outcome) if outcome else rows["outcome"].isna()]
    assert len(rows) == 1
    return rows["value"].item()


def test_classes_weighted_within_each_group_are_in_the_table_without_an_interval():
    y, scores, g = drawn()
    row = evaluated(y, scores, g).query("metric == 'statistical_parity_group_weighted'").iloc[0]
    assert np.isnan(row["lower"]) and np.isnan(row["upper"]) and row["status"] == "ok"
    assert row["n"] == (g == "c").sum()
    one = evaluated(y, scores, np.full(300, "a"))
    assert "statistical_parity_group_weighted" not in set(one["metric"])


def test_metrics_that_were_renamed_are_refused_under_their_old_names():
    for old, now in RENAMED.items():
        assert old not in metrics_of(MULTICLASS) and now in metrics_of(MULTICLASS)
        with pytest.raises(UserError, match=f"'{old}' is called {now} now"):
            objective(old)


def test_a_class_that_a_group_has_not_is_left_out_of_that_group_and_named():
    table = evaluated(*drawn())
    for name in ("statistical_parity", "equal_opportunity"):
        gaps = [value(table, name, attribute="group", outcome=k) for k in NAMES]
        for form, of_gaps in (("class_mean", np.mean), ("largest", max)):
            mean = value(table, f"{name}_{form}", attribute="group")
            assert mean == pytest.approx(of_gaps(gaps))
    row = table[table["metric"] == "equal_opportunity_class_mean"].iloc[0]
    assert row["status"].startswith("insufficient: class 'high': without 'c': no positives")
    one = values_of(table[(table["metric"] == "true_positive_rate") & (table["group"] == "c")])
    assert one.set_index("outcome").loc["high", "status"].startswith("undefined: no positives")
    # A class without a gap at all makes no average undefined, but flags it.
    y, scores, g = drawn()
    y[(g != "a") & (y == 2)] = 1
    row = evaluated(y, scores, g).query("metric == 'equal_opportunity_class_mean'").iloc[0]
    assert np.isfinite(row["value"])
    assert "class 'high'" in row["status"]


def test_two_classes_are_a_label_bit_for_bit():
    draw = np.random.default_rng(1)
    y, score, g = draw.integers(2, size=200), draw.random(200), draw.choice(list("abc"), 200)
    about = {"sensitive_features": {"g": g, "h": np.roll(g, 3)}, "sample_weight": None}
    label = worded(fairbench.evaluate(y, score > 0.5, score=score, **about))
    two = fairbench.evaluate(
        y, (score > 0.5).astype(int), score=np.stack([1 - score, score], axis=1),
        task="multiclass", **about,
    )  # fmt: skip
    second = two[two["outcome"].isna() | two["outcome"].eq("1")]
    second = worded(second.assign(outcome=None)).set_index(PLACE)
    expected = label.set_index(PLACE)
    assert set(expected.index) <= set(second.index)
    columns = ["value", "lower", "upper", "n", "status"]
    pd.testing.assert_frame_equal(
        second.loc[expected.index, columns], expected[columns], check_exact=True
    )
    mean = value(worded(two), "statistical_parity_class_mean", attribute="g")
    assert mean == pytest.approx(value(label, "statistical_parity", attribute="g"))


@pytest.mark.slow
@pytest.mark.parametrize("second", [0, 1])
def test_intervals_of_averaged_gaps_cover(second):
    """Rare classes, small groups, with gaps and without: 94 to 100 % in 6000 replications."""
    draw, shares = np.random.default_rng(0), np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    gaps, held = np.abs(shares[0] - shares[second]), []
    for _ in range(120):
        y = np.r_[draw.choice(3, 90, p=shares[0]), draw.choice(3, 50, p=shares[second])]
        table = fairbench.evaluate(
            y, y, classes=[0, 1, 2], task="multiclass", sensitive_features=["a"] * 90 + ["b"] * 50,
            evaluator=fairbench.Evaluator(draws=100),
        ).drop_duplicates("metric").set_index("metric")  # fmt: skip
        truth = {"class_mean": gaps.mean(), "largest": gaps.max()}
        rows = {form: table.loc[f"statistical_parity_{form}"] for form in truth}
        held.append([row["lower"] <= truth[form] <= row["upper"] for form, row in rows.items()])
    assert np.mean(held, axis=0).min() > 0.87


@pytest.mark.thorough
def test_rows_of_no_weight_are_left_out():
    y, scores, g = drawn(200)
    kept = np.arange(200) % 4 > 0
    part = evaluated(y, scores, g, sample_weight=kept.astype(float))
    alone = evaluated(y[kept], scores[kept], g[kept])
    for metric in ("error_rate", "log_loss", "classwise_calibration_error"):
        assert value(part, metric) == pytest.approx(value(alone, metric))
    gap = ("statistical_parity_class_mean", "", "group")
    assert value(part, *gap) == pytest.approx(value(alone, *gap))


def test_columns_of_scores_go_by_their_names_and_labels_by_their_order():
    y, scores, g = drawn(60)
    frame = pd.DataFrame(scores[:, [2, 0, 1]], columns=[NAMES[k] for k in (2, 0, 1)])
    one, other = evaluated(y, scores, g), evaluated(y, scores, g, score=frame)
    np.testing.assert_array_equal(one["value"], other["value"])
    counted = fairbench.evaluate(y, scores.argmax(1), task="multiclass", sensitive_features=g)
    assert list(dict.fromkeys(counted["outcome"].dropna())) == ["0", "1", "2"]
