"""Figures of a run: labelled axes, and points that are the metrics'."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench import Evaluator
from fairbench.core.arrays import rng
from fairbench.evaluation.table import MetricTable
from fairbench.evaluation.uncertainties import evaluate_consistency
from fairbench.reporting.figures import figures
from tests.evaluation.labelled import labelled

EVALUATOR = Evaluator(draws=100, bins=4, spread_groups=(3, 5), feature_shift_rates=(0.1, 0.5))
TITLE = "simulated, xgboost"


def one_repeat(seed):
    draw, n = np.random.default_rng(seed), 200
    score = draw.random(n)
    data = labelled(
        draw.random(n) < score, draw.choice(["a", "b"], n),
        prediction=score > 0.5, score=score, uncertainty=np.sqrt(score * (1 - score)),
    )  # fmt: skip
    names = [f"feature {i}" for i in range(12)]
    features = pd.DataFrame(draw.normal(size=(n, 12)), columns=names)
    table = EVALUATOR.table(replace(data, features=features), [rng(seed, "posterior")]).frame()
    spread = MetricTable()
    uncertainty = {f"max_depth={i}": draw.random(50) for i in range(3)}
    uncertainty |= {f"replicate={i}": draw.random(50) / 4 for i in (1, 2)}
    evaluate_consistency(spread, uncertainty)
    return pd.concat([table, spread.frame()]).assign(repeat=seed, fold=0, variant="")


@pytest.fixture(scope="module")
def metrics():
    return pd.concat([one_repeat(seed) for seed in range(3)], ignore_index=True)


@pytest.fixture(scope="module")
def drawn(metrics):
    return dict(figures(metrics, TITLE, "g"))


def line(axes, label):
    (result,) = [line for line in axes.lines if line.get_label() == label]
    return np.array(result.get_xdata()), np.array(result.get_ydata())


def values(metrics, name, **where):
    rows = metrics[metrics["metric"] == name]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def test_every_figure_the_metrics_allow_is_drawn(drawn):
    assert list(drawn) == [
        "reliability", "spread", "group_rates", "abstention", "feature_shift", "consistency",
        "uncertainties",
    ]  # fmt: skip


def test_figures_of_fewer_metrics_are_fewer(metrics):
    few = metrics[metrics["metric"].isin(["selection_rate", "error_rate"])]
    assert [name for name, _ in figures(few, TITLE, "g")] == ["group_rates"]
    assert list(figures(metrics[metrics["metric"] == "nll"], TITLE, "g")) == []


def test_axes_are_labelled_and_figures_titled(drawn):
    for name, figure in drawn.items():
        titles = [axes.get_title() for axes in figure.axes]
        assert TITLE in [*titles, figure.get_suptitle()], name
        for axes in figure.axes:
            ticks = [tick.get_text() for tick in axes.get_xticklabels()]
            assert axes.get_xlabel() or any(ticks), name
            named = axes.get_ylabel() or axes.get_yticklabels()[0].get_text()
            assert named, name
        figure.canvas.draw()


@pytest.mark.parametrize(
    ("figure", "x", "y", "bins"),
    [
        ("reliability", "reliability_mean_score", "reliability_base_rate", 4),
        ("spread", "spread_predicted", "spread_empirical", 3),
    ],
)
def test_points_are_the_metrics_and_their_means_over_repeats(metrics, drawn, figure, x, y, bins):
    (axes,) = drawn[figure].axes
    sides = [values(metrics, name) for name in (x, y)]
    sides = [rows[rows["bins"] == bins] for rows in sides]
    points = set(zip(*(rows["value"] for rows in sides), strict=True))
    assert set(zip(*line(axes, "one repeat"), strict=True)) == points
    means = [rows.groupby("bin")["value"].mean().to_numpy() for rows in sides]
    order = np.argsort(means[0])
    for result, expected in zip(line(axes, "mean of repeats"), means, strict=True):
        np.testing.assert_allclose(result, expected[order])


def test_group_rates_are_medians_over_repeats_with_their_intervals(metrics, drawn):
    (axes,) = drawn["group_rates"].axes
    names = ("selection_rate", "true_positive_rate", "false_positive_rate", "error_rate")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        name.replace("_", " ") for name in names
    ]
    assert [container.get_label() for container in axes.containers] == ["a", "b"]
    for container, group in zip(axes.containers, "ab", strict=True):
        rows = [values(metrics, name, group=group, attribute="g") for name in names]
        np.testing.assert_allclose(
            container.lines[0].get_xdata().astype(float), [row["value"].median() for row in rows]
        )
        (bars,) = container.lines[2]
        for segment, row in zip(bars.get_segments(), rows, strict=True):
            ends = row[["lower", "upper"]].median()
            np.testing.assert_allclose(segment[:, 0], ends)


def test_abstention_curves_are_means_over_repeats(metrics, drawn):
    left, right = drawn["abstention"].axes
    rates = list(EVALUATOR.abstention_rates)
    for axes, label, metric, group in (
        (left, "error rate", "abstention_error_rate", ""),
        (left, "statistical parity", "abstention_statistical_parity", ""),
        (left, "equalized odds", "abstention_equalized_odds", ""),
        (right, "a", "abstention_rate", "a"),
        (right, "b", "abstention_rate", "b"),
    ):
        x, y = line(axes, label)
        np.testing.assert_allclose(x, rates)
        rows = values(metrics, metric, group=group)
        expected = [rows[rows["rate"] == rate]["value"].mean() for rate in rates]
        np.testing.assert_allclose(y, expected)


def test_boxes_of_consistency_and_noise_are_the_quantiles(metrics, drawn):
    (axes,) = drawn["consistency"].axes
    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    assert labels == ["across variants", "across draws alone"]
    medians = [line for line in axes.lines if line.get_color() == "#D55E00"]
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    for name, median, cross in zip(("consistency", "noise"), medians, crosses, strict=True):
        sds = values(metrics, f"{name}_sd")
        half = sds[sds["quantile"] == 0.5]["value"].mean()
        np.testing.assert_allclose(median.get_ydata(), half)
        top = values(metrics, f"{name}_max_sd")["value"].mean()
        np.testing.assert_allclose(cross.get_ydata(), [top])


def test_bars_are_the_ten_features_that_move_most_at_the_highest_rate(metrics, drawn):
    (axes,) = drawn["feature_shift"].axes
    rows = values(metrics, "feature_shift")
    rows = rows[rows["rate"] == 0.5]
    means = rows.groupby("feature", observed=True)["value"].mean()
    expected = means.sort_values(ascending=False)[:10]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == list(expected.index)
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], expected)


def test_variants_are_not_drawn(metrics, drawn):
    varied = metrics.assign(value=metrics["value"] / 2, variant="max_depth=5")
    both = pd.concat([varied, metrics], ignore_index=True)
    again = dict(figures(both, TITLE, "g"))
    assert list(again) == list(drawn)
    for name, figure in drawn.items():
        for axes, other in zip(figure.axes, again[name].axes, strict=True):
            assert len(axes.lines) == len(other.lines)
            for one, two in zip(axes.lines, other.lines, strict=True):
                np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())
