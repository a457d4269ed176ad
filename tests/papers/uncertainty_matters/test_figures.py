"""The pictures of Uncertainty Matters show what they are given."""

import numpy as np
import pytest

from fairbench.components.papers import PAPERS
from fairbench.components.papers.engine.mapping import Paper
from fairbench.components.papers.engine.matching import Effort
from fairbench.components.papers.engine.running import function_of
from fairbench.components.papers.uncertainty_matters import figures, grid
from fairbench.components.papers.uncertainty_matters.ground_truth import ALGORITHMS
from fairbench.components.papers.uncertainty_matters.readings import ALONE
from fairbench.components.papers.uncertainty_matters.tables import Pair
from fairbench.metrics.registry import true_positive_rate

PAPER = Paper.read("uncertainty_matters", PAPERS)
NEEDS_ADULT = ("14.1", "15.2")
NAMES = ("Linear SVM + Hardt", "FERM")


@pytest.fixture(scope="module")
def counts():
    tables = np.tile([[400, 60, 80, 60], [80, 20, 20, 30]], (7, 1, 1))
    tables[:, 0, 0] += 5 * np.arange(7)
    tables[:, 0, 1] -= 5 * np.arange(7)
    return tables


@pytest.fixture(scope="module")
def pair(counts):
    return Pair(ALONE, NAMES, (counts, counts[::-1]))


def areas(axes):
    """Return the area within each region's outline, in the order drawn: shoelace formula."""
    found = []
    for curve in (each for each in axes.collections if not each.get_fill()):
        x, y = max((path.vertices for path in curve.get_paths()), key=len).T
        found.append(abs(np.sum(x * np.roll(y, 1) - y * np.roll(x, 1))) / 2)
    return found


def test_a_point_a_cross_validation(counts):
    rates = {"equal opportunity": true_positive_rate, "demographic parity": figures.predicted_good}
    figure = figures.instability_figure({"SVM": counts, "FERM": counts}, rates)
    opportunity, parity = figure.axes
    assert [len(line.get_xdata()) for line in opportunity.lines] == [7, 7]
    right = (400 + 60 + 80 + 30) / 750
    assert opportunity.lines[0].get_xdata()[0] == pytest.approx(right)
    gap = abs(400 / 460 - 80 / 100)
    assert opportunity.lines[0].get_ydata()[0] == pytest.approx(gap)
    assert parity.lines[0].get_ydata()[0] == pytest.approx(abs(480 / 600 - 100 / 150))


def test_rates_of_predicted_rows():
    tables = np.array([[10.0, 20, 30, 60]])  # TN, FP, FN, TP
    assert figures.predicted_good(tables) == pytest.approx((20 + 60) / 120)
    assert figures.right_if_predicted(tables) == pytest.approx(60 / 80)


def test_the_quoted_difference_is_that_of_the_text(pair):
    figure = figures.quoted_figure(dict.fromkeys(figures.QUOTED, pair))
    marked = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "D"]
    assert [line.get_xdata()[0] for line in marked] == pytest.approx([0.10, -0.08])
    assert [line.get_ydata()[0] for line in marked] == pytest.approx([0.04, -0.10])


def test_a_ratio_of_one_algorithm_stands_at_its_variance():
    reference = np.random.default_rng(0).normal(0.7, 0.01, size=(12, 2, 2, 2))
    (axes,) = figures.ratio_figure(0.7 + 2 * (reference - 0.7), reference).axes
    lines = [line for line in axes.lines if len(line.get_xdata()) == 12]
    assert len(lines) == 4
    for line in lines:
        np.testing.assert_allclose(line.get_ydata(), 4)  # twice the spread


def test_the_smaller_group_has_the_wider_region():
    tables = {name: grid.counts(name)[0] * 0.7 for name in ALGORITHMS}
    figure = figures.groups_figure(tables, ("age > 25", "age <= 25"), 2000)
    for axes in figure.axes[: len(tables)]:
        larger, smaller = areas(axes)
        assert smaller > larger, axes.get_title()
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "age > 25",
        "age <= 25",
    ]


@pytest.mark.parametrize("figure", [name for name in PAPER.figures if name not in NEEDS_ADULT])
def test_every_declared_figure_is_drawn_from_what_is_packed(figure, tmp_path):
    drawn = list(function_of(PAPER.figure(figure)["function"])(tmp_path, Effort.FIRST))
    assert drawn and len({end for end, _ in drawn}) == len(drawn)
    assert all(picture.axes for _, picture in drawn)
