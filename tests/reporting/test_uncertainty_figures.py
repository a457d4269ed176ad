"""Figures of uncertainties by group, and of individual fairness: labelled, and the metrics'."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench import Evaluator
from fairbench.core.arrays import rng
from fairbench.reporting.figures import figures
from tests.evaluation.labelled import labelled

EVALUATOR = Evaluator(draws=100, neighbours=4)


def one_repeat(seed, members=True):
    draw, n = np.random.default_rng(seed), 120
    score, target = draw.random(n), draw.integers(2, size=n)
    parts = {"aleatoric": score / 4, "epistemic": score**2 / 9} if members else {}
    data = labelled(
        target, draw.choice(["a", "b"], n), prediction=score > 0.5, score=score, **parts
    )
    table = EVALUATOR.table(
        replace(data, encoded=draw.random((n, 2))), [rng(seed, "posterior")]
    ).frame()
    return table.assign(repeat=seed, fold=0, variant="")


@pytest.fixture(scope="module")
def metrics():
    return pd.concat([one_repeat(seed) for seed in range(3)], ignore_index=True)


def drawn(metrics, name):
    return dict(figures(metrics, "simulated", "g"))[name]


def test_a_panel_for_every_part_with_a_point_for_every_group(metrics):
    figure = drawn(metrics, "uncertainties")
    assert [axes.get_xlabel() for axes in figure.axes] == ["aleatoric", "epistemic", "predictive"]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["a", "b"]
    for axes in figure.axes:
        rows = metrics[metrics["metric"] == f"{axes.get_xlabel()}_uncertainty"]
        for container, group in zip(axes.containers, "ab", strict=True):
            expected = rows.loc[rows["group"] == group, "value"].median()
            assert container.lines[0].get_xdata().item() == pytest.approx(expected)


def test_single_models_have_one_panel():
    figure = drawn(one_repeat(0, members=False), "uncertainties")
    assert [axes.get_xlabel() for axes in figure.axes] == ["predictive"]


def test_individual_fairness_has_a_panel_for_every_measure_and_outcome(metrics):
    figure = drawn(metrics, "individual_fairness")
    grid = np.array(figure.axes).reshape(4, 4)
    assert [axes.get_title() for axes in grid[0]] == [
        "true positives",
        "false positives",
        "true negatives",
        "false negatives",
    ]
    names = ["prediction", "aleatoric", "epistemic", "predictive"]
    assert [axes.get_ylabel() for axes in grid[:, 0]] == names
    rows = metrics[
        (metrics["metric"] == "individual_fairness_epistemic") & (metrics["group"] == "b")
    ]
    expected = [
        rows.loc[(rows["outcome"] == "FN") & (rows["k"] == k), "value"].mean() for k in (1, 2, 3, 4)
    ]
    (line,) = [line for line in grid[2, 3].lines if line.get_label() == "b"]
    np.testing.assert_allclose(line.get_ydata(), expected)


def test_runs_without_neighbours_have_no_such_figure(metrics):
    plain = metrics[~metrics["metric"].str.startswith("individual")]
    assert "individual_fairness" not in dict(figures(plain, "simulated", "g"))
