"""Figure 6's series: mean and sd over splits of ratios and means, a place for every size."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.papers.uncertainty_fairness import capacity, figures
from fairbench.components.papers.uncertainty_fairness.capacity import (
    METRICS,
    NETWORKS,
    mean_series,
    ratio_series,
)
from fairbench.core.errors import UserError
from fairbench.reporting.papers.running import Effort

GROUPS = {"race": ("African-American", "Caucasian"), "sex": ("Female", "Male")}
EPISTEMIC = "epistemic_uncertainty"


def splits(ratio):
    """Return three splits whose second group has 0.1 of everything, the first `ratio` times it."""
    rows = [
        ("compas", "0", repeat, metric, attribute, group, 0.1 * times)
        for metric in METRICS
        for attribute, pair in GROUPS.items()
        for repeat, of_first in enumerate(ratio)
        for group, times in zip(pair, (of_first, 1.0), strict=True)
    ]
    columns = ["dataset", "run", "repeat", "metric", "attribute", "group", "value"]
    return pd.DataFrame(rows, columns=columns)


SIZES = {25: splits([1.0, 1.0, 1.0]), 400: splits([1.0, 2.0, 3.0])}


def test_series_are_over_splits_of_each_size():
    series = ratio_series(SIZES, "sex", EPISTEMIC)
    np.testing.assert_allclose(series, [[1, 0], [2, 1]], atol=1e-12)
    of_black = mean_series(SIZES, "race", "black", EPISTEMIC)
    np.testing.assert_allclose(of_black, 0.1 * series, atol=1e-12)


def test_the_figure_has_the_papers_three_panels_and_a_place_for_each_size():
    panels = figures.by_units(SIZES, "").axes
    assert [axes.get_title() for axes in panels] == [name.replace("_", " ") for name in METRICS]
    for axes in panels:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["25", "400"]
        lines = {line.get_label(): line.get_ydata() for line in axes.lines}
        np.testing.assert_allclose(lines["black"], [0.1, 0.2])
        np.testing.assert_allclose(lines["male"], [0.1, 0.1])


def test_sizes_are_told_apart_by_the_option_that_was_swept(monkeypatch):
    runs = pd.concat(frame.assign(**{"learner.hidden": f"[{n}]"}) for n, frame in SIZES.items())
    asked = []

    def needed(experiment, results, **chosen):
        asked.append((experiment, chosen))
        return runs

    monkeypatch.setattr(capacity, "needed", needed)
    for networks in NETWORKS:
        sizes = capacity.by_size(networks, None)
        assert {units: len(ours) for units, ours in sizes.items()} == {25: 36, 400: 36}
    option = "learner__initial_means"
    assert asked == [
        ("figure6", {option: "normal"}),
        ("figure6", {option: "uniform"}),
        ("figure6_trained", {}),
    ]


@pytest.mark.parametrize(
    ("figure", "experiment"),
    [("2", "compas"), ("4", "figure4"), ("5", "figure5"), ("6", "figure6")],
)
def test_a_figure_without_runs_says_which_command_makes_them(figure, experiment, tmp_path):
    with pytest.raises(UserError, match=f"-m experiment=uncertainty_fairness/{experiment}$"):
        list(getattr(figures, f"figure_{figure}")(tmp_path, Effort.FIRST))


def test_the_synthetic_sets_are_drawn_by_group_and_label(tmp_path):
    ((name, drawn),) = figures.figure_3(tmp_path, Effort.FIRST)
    assert name == ""
    assert [axes.get_title() for axes in drawn.axes] == ["sd1", "sd2", "sd3"]
    for axes in drawn.axes:
        assert [len(points.get_offsets()) for points in axes.collections] == [20, 20, 20, 20]


def test_confidence_is_of_the_label_that_is_predicted():
    score = np.array([0.05, 0.95, 0.55, 0.45, 1.0, 0.5])
    target = np.array([0, 0, 1, 1, 1, 0])
    bins = figures.confidence_bins(score, target, np.zeros(6))
    np.testing.assert_allclose(bins.index, [0.5, 0.9])
    np.testing.assert_allclose(bins["confidence"], [1.6 / 3, 2.9 / 3])
    np.testing.assert_allclose(bins["accuracy"], [2 / 3, 2 / 3])
    np.testing.assert_allclose(bins["share"], [0.5, 0.5])
