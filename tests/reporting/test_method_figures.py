"""Figures of several methods: one look a method, points that are the metrics', nothing left out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench import Evaluator
from fairbench.core.arrays import rng
from fairbench.evaluation.table import MetricTable
from fairbench.evaluation.uncertainties import evaluate_consistency
from fairbench.reporting import figures as method_figures
from tests.evaluation.labelled import labelled

EVALUATOR = Evaluator(
    draws=100, spread_groups=(4, 40), abstention_rates=(0.0, 0.5), feature_shift_rates=(0.2, 0.5)
)
METHODS = ("one_method", "another", "third")


def evaluated(dataset, method, repeat):
    draw, n = np.random.default_rng([len(dataset), len(method), repeat]), 120
    score = draw.random(n)
    rows = labelled(
        draw.random(n) < score, draw.choice(["a", "b"], n),
        prediction=score > 0.5, score=score, uncertainty=draw.random(n),
    )  # fmt: skip
    names = [f"a feature with the rather long name {i}" for i in range(12)]
    features = pd.DataFrame(draw.normal(size=(n, 12)), columns=names)
    table = EVALUATOR.table(replace(rows, features=features), [rng(repeat, "posterior")]).frame()
    spread = MetricTable()
    variants = {f"max_depth={i}": draw.random(50) for i in range(3)}
    if method != "another":
        variants |= {f"replicate={i}": draw.random(50) / 4 for i in (1, 2)}
    evaluate_consistency(spread, variants)
    keys = {"repeat": repeat, "fold": 0, "variant": "", "dataset": dataset, "method": method}
    return pd.concat([table, spread.frame()]).assign(**keys)


@pytest.fixture(scope="module")
def metrics():
    parts = [
        evaluated(dataset, method, repeat)
        for dataset, methods in (("first", METHODS[:2]), ("second", METHODS))
        for method in methods
        for repeat in (0, 1)
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def drawn(metrics):
    return {
        f"{kind}:{name}": figure
        for kind, draw in method_figures.DRAWN.items()
        for name, figure in draw(metrics)
    }


def mean(metrics, **where):
    rows = metrics
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows["value"].mean()


def line(axes, label):
    (result,) = [line for line in axes.lines if line.get_label() == label]
    return result


@pytest.mark.thorough
def test_every_figure_is_drawn_with_a_panel_for_each_data_set(drawn):
    assert list(drawn) == [
        "consistency:", "spread:groups4", "spread:groups40", "abstention:error_rate",
        "abstention:statistical_parity", "abstention:equalized_odds",
        "abstention:mean_feature_shift", "abstention:feature_shift_rate0.2",
        "abstention:feature_shift_rate0.5", "group_errors:", "group_abstention:",
    ]  # fmt: skip
    for name, figure in drawn.items():
        assert [axes.get_title() for axes in figure.axes] == ["first", "second"]
        assert figure.get_supxlabel(), name
        assert figure.get_supylabel() or figure.axes[0].get_yticklabels()[0].get_text(), name


def test_the_legend_names_methods_that_only_some_panels_have(drawn):
    for name in ("spread:groups4", "abstention:error_rate", "abstention:feature_shift_rate0.5"):
        (legend,) = drawn[name].legends
        labels = {text.get_text() for text in legend.get_texts()} - {"calibrated"}
        assert labels == {"one method", "another", "third"}


def test_a_method_looks_alike_in_every_panel_and_like_no_other(drawn):
    looks = {
        (method, line.get_color(), line.get_marker())
        for axes in drawn["abstention:error_rate"].axes
        for line in axes.lines
        for method in [line.get_label()]
    }
    assert len(looks) == len({look[1:] for look in looks}) == 3


def test_curves_are_means_over_repeats(metrics, drawn):
    axes = drawn["abstention:equalized_odds"].axes[1]
    for rate, value in zip(*line(axes, "third").get_data(), strict=True):
        where = {"dataset": "second", "method": "third", "rate": rate}
        expected = mean(metrics, metric="abstention_equalized_odds", **where)
        assert value == pytest.approx(expected)


def test_curves_of_groups_are_means_over_repeats(metrics, drawn):
    for kind, metric in (("errors", "error_rate"), ("abstention", "rate")):
        axes = drawn[f"group_{kind}:"].axes[1]
        names = [text.get_text() for text in axes.get_legend().get_texts()]
        assert names == list(dict.fromkeys(metrics.loc[metrics["group"] != "", "group"]))
        dashes = [get_line.get_linestyle() for get_line in axes.get_legend().get_lines()]
        assert len(set(dashes)) == len(names) == 2
        for group, dash in zip(names, dashes, strict=True):
            (curve,) = [
                line
                for line in axes.lines
                if line.get_label() == "third" and line.get_linestyle() == dash
            ]
            assert list(curve.get_xdata()) == [0.0, 0.5]
            where = {"dataset": "second", "method": "third", "group": group}
            expected = [
                mean(metrics, metric=f"abstention_{metric}", rate=rate, **where)
                for rate in (0.0, 0.5)
            ]
            np.testing.assert_allclose(curve.get_ydata(), expected)
    assert list(drawn["group_abstention:"].axes[0].lines[0].get_ydata())[0] == 0


def test_diagrams_are_means_over_repeats_of_each_group_of_rows(metrics, drawn):
    result = np.array(line(drawn["spread:groups4"].axes[0], "another").get_data())
    for i in range(4):
        where = {"dataset": "first", "method": "another", "bins": 4, "bin": i}
        expected = [
            mean(metrics, metric=f"spread_{side}", **where) for side in ("predicted", "empirical")
        ]
        np.testing.assert_allclose(result[:, i], expected)


def test_the_features_that_move_most_are_drawn_in_order(metrics, drawn):
    axes = drawn["abstention:feature_shift_rate0.5"].axes[1]
    x = np.stack([line(axes, method).get_xdata() for method in METHODS])
    assert x.shape == (3, 10)
    assert (np.diff(x.max(axis=0)) <= 0).all()
    shifts = metrics[(metrics["metric"] == "feature_shift") & (metrics["dataset"] == "second")]
    shifts = shifts[shifts["rate"] == 0.5]
    assert x.max() == pytest.approx(shifts.groupby(["method", "feature"])["value"].mean().max())
    assert all(len(label.get_text()) <= 22 for label in axes.get_yticklabels())


def test_boxes_of_variants_and_of_draws_alone(metrics, drawn):
    first, second = drawn["consistency:"].axes
    crosses = [line for line in second.lines if line.get_marker() == "x"]
    assert len(crosses) == 5  # three methods, two of which have replicates
    expected = {
        mean(metrics, metric=f"{kind}_max_sd", dataset="second", method=method)
        for kind in ("consistency", "noise")
        for method in METHODS
    }
    result = sorted(float(cross.get_xdata()[0]) for cross in crosses)
    np.testing.assert_allclose(result, sorted(value for value in expected if not np.isnan(value)))
    labels = [label.get_text() for label in second.get_yticklabels()]
    assert labels == ["one method", "another", "third"]


@pytest.mark.thorough
def test_labels_fit_a_single_panel(metrics):
    for kind, draw in method_figures.DRAWN.items():
        for name, figure in draw(metrics[metrics["dataset"] == "first"]):
            figure.canvas.draw()
            label = figure.texts[0].get_window_extent()
            assert label.x0 >= 0, (kind, name)
            assert label.x1 <= figure.bbox.x1, (kind, name)
