"""The picture of a comparison: what is written on it is what was computed."""

import numpy as np
import pytest

from fairbench.inference.comparing.practical_difference import Comparison, highest_density_region
from fairbench.reporting.comparison_figures import comparison_figure

NAMES = ("accuracy", "equal_opportunity")


def drawn(delta, rope=(0.01, 0.02), level=0.95):
    comparison = Comparison(NAMES, delta, np.array(rope))
    region = highest_density_region(delta, level)
    figure = comparison_figure(comparison, region, "german by age", ("ferm", "svm"))
    figure.canvas.draw()
    return figure, comparison, region


@pytest.fixture(scope="module")
def normal():
    return np.random.default_rng(0).normal([0.01, -0.05], [0.02, 0.05], size=(3000, 2))


def test_axes_say_which_side_is_better_and_the_algorithms_are_named(normal):
    figure, _, _ = drawn(normal)
    (axes,) = figure.axes
    assert axes.get_xlabel() == "accuracy: A ahead by  (A better →)"
    assert axes.get_ylabel() == "gap in true positive rate: A ahead by  (A better →)"
    assert axes.get_title() == "german by age"
    assert [text.get_text() for text in figure.texts] == ["A: ferm", "B: svm"]


def test_corners_hold_the_events_within_the_region(normal):
    figure, comparison, region = drawn(normal)
    events = comparison.events(region.inside)
    texts = {text.get_text(): text.get_position() for text in figure.axes[0].texts}
    expected = {
        f"A ≫ B\n{events['A >> B']:.2f}": (0.97, 0.97),
        f"B ≫ A\n{events['B >> A']:.2f}": (0.03, 0.03),
        f"A accuracy,\nB equal opportunity\n{events['A accuracy, B equal_opportunity']:.2f}":
            (0.97, 0.03),
        f"B accuracy,\nA equal opportunity\n{events['B accuracy, A equal_opportunity']:.2f}":
            (0.03, 0.97),
        f"A ≈ B  {events['A ~ B']:.2f}": (0.5, 0.97),
    }  # fmt: skip
    assert texts == expected


def test_rectangle_is_the_rope_and_the_view_holds_the_region(normal):
    figure, _, region = drawn(normal)
    (axes,) = figure.axes
    (rectangle,) = axes.patches
    corner = (rectangle.get_x(), rectangle.get_y(), rectangle.get_width(), rectangle.get_height())
    assert corner == pytest.approx((-0.01, -0.02, 0.02, 0.04))
    for (low, high), (left, right) in zip(
        region.bounds, (axes.get_xlim(), axes.get_ylim()), strict=True
    ):
        assert left < low < high < right


@pytest.mark.parametrize("level", [0.3, 0.99])
@pytest.mark.parametrize("rope", [(0.0, 0.0), (0.01, np.inf), (np.inf, np.inf)])
def test_any_level_and_rope_can_be_drawn(normal, level, rope):
    figure, _, _ = drawn(normal, rope, level)
    assert bool(figure.axes[0].patches) == np.isfinite(rope).all()


@pytest.mark.parametrize("constant", [[0], [0, 1]])
def test_differences_that_do_not_vary_are_drawn_as_points(normal, constant):
    delta = normal.copy()
    delta[:, constant] = 0
    figure, _, _ = drawn(delta)
    points = figure.axes[0].lines[-1].get_xydata()
    np.testing.assert_array_equal(points, delta)
