"""The pictures of Uncertainty Matters show what they are given."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.papers import PAPERS
from fairbench.components.papers.uncertainty_matters.figures import (
    PRIORS,
    adult_figure,
    areas_figure,
    pair_figure,
    priors_figure,
    ratios_figure,
    regions_figure,
    rhos_figure,
)
from fairbench.components.papers.uncertainty_matters.measured import RHOS, Measured
from fairbench.components.papers.uncertainty_matters.one_partition import Pair
from fairbench.components.papers.uncertainty_matters.readings import CHOSEN
from fairbench.components.papers.uncertainty_matters.tables import AREA
from fairbench.reporting.papers.mapping import Paper
from fairbench.reporting.papers.running import Effort, function_of

PAPER = Paper.read("uncertainty_matters", PAPERS)
FIGURES = list(PAPER.figures)
NAMES = ("SVM", "Disparate impact remover + SVM")


@pytest.fixture(scope="module")
def measured():
    counts = np.tile([[400, 60, 80, 60], [80, 20, 20, 30]], (7, 1, 1))
    counts[:, :, 0] += np.arange(7)[:, None]
    return Measured({name: counts + 5 * i for i, name in enumerate(NAMES)}, draws=1000)


def test_pair_shows_every_cross_validation_and_the_rope(measured):
    figure = pair_figure(measured, NAMES)
    panels = figure.axes
    assert [axes.get_title() for axes in panels[:2]] == ["SVM", "DI remover + SVM"]
    points = [line for axes in panels for line in axes.lines if line.get_marker() == "."]
    assert len(points) == 7  # two groups twice, two algorithms, one difference
    assert {len(line.get_xdata()) for line in points} == {7}
    (rope,) = panels[3].patches
    assert rope.get_width() == pytest.approx(0.02)
    assert "estimates of 7" in figure.get_suptitle()


def test_areas_stand_by_rho_with_the_published_ones():
    rows = pd.DataFrame(
        {"method": name, "setting": rho, "metric": AREA, "published": 0.02, "posterior": 0.01 * i,
         "posterior sd": 0.001, "predictive": np.nan}
        for i, name in enumerate(NAMES, start=1) for rho in RHOS
    )  # fmt: skip
    figure = areas_figure(rows)
    assert [axes.get_title() for axes in figure.axes] == list(RHOS)
    for axes in figure.axes:
        published = next(line for line in axes.lines if line.get_marker() == "x")
        np.testing.assert_allclose(published.get_xdata(), 0.02)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["DI remover + SVM", "SVM"]


def outlines(axes, labels):
    """Return the area within each region's outline, by its label: shoelace formula."""
    curves = [collection for collection in axes.collections if not collection.get_fill()]
    result = {}
    for label, curve in zip(labels, curves, strict=True):
        x, y = max((path.vertices for path in curve.get_paths()), key=len).T
        result[label] = abs(np.sum(x * np.roll(y, 1) - y * np.roll(x, 1))) / 2
    return result


@pytest.fixture(scope="module")
def pair(measured):
    names = ("SVM + Hardt", "Linear SVM + Hardt")
    return Pair(CHOSEN, names, tuple(measured.counts[name] for name in NAMES))


def labels_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_larger_rho_has_a_larger_region(pair):
    (axes,) = rhos_figure(pair, 3000).axes
    assert labels_of(axes)[:-1] == list(RHOS)
    areas = outlines(axes, RHOS)
    assert areas["rho in [0,1/K]"] < areas["rho=1/K"]
    # An area goes with what a count is worth: 0.713 at the one, 0.526 at the other.
    assert areas["rho in [0,1/K]"] / areas["rho=1/K"] == pytest.approx(0.526 / 0.713, rel=0.15)


def test_a_prior_of_one_in_a_cell_changes_little_of_a_thousand_rows(pair):
    (axes,) = priors_figure(pair, 3000).axes
    areas = outlines(axes, PRIORS)
    assert areas["Dir(1)"] == pytest.approx(areas["Dir(0)"], rel=0.2)
    assert labels_of(axes)[-1] == "A - B in each of 7 cross-validations"


def test_the_same_rows_tell_two_machines_better_apart():
    """Of 3000 rows both err on the same ones, but for a few."""
    joint = np.array([[1000, 20, 20, 150, 100, 15, 15, 700], [500, 10, 10, 80, 60, 8, 8, 350]])
    figure = adult_figure({("SVM", "FERM"): joint}, 3000)
    (axes,) = figure.axes
    areas = outlines(axes, ["independent", "on the same rows"])
    assert areas["on the same rows"] < 0.7 * areas["independent"]


def test_ratios_of_one_algorithm_stand_at_its_variance():
    draw = np.random.default_rng(0)
    reference = draw.normal(0.7, 0.01, size=(50, 2, 2, 2))
    estimates = {"SVM": reference, "LR": 0.7 + 2 * (reference - 0.7)}
    (axes,) = ratios_figure(estimates, pd.Series({"LR": 3.0})).axes
    fives, whole, implied = (line for line in axes.lines if line.get_marker() in "oDx")
    assert len(fives.get_xdata()) == 10
    np.testing.assert_allclose(fives.get_xdata(), 4)  # twice the spread
    np.testing.assert_allclose([*whole.get_xdata(), *implied.get_xdata()], [4, 3])


def test_every_algorithm_has_its_region(measured):
    figure = regions_figure(measured)
    shown = [axes.get_title() for axes in figure.axes if axes.axison]
    assert shown == ["SVM (7)", "DI remover + SVM (7)"]


@pytest.mark.parametrize("figure", [name for name in FIGURES if name != "14.1"])
def test_every_declared_figure_is_drawn_from_what_is_packed(figure, tmp_path):
    drawn = list(function_of(PAPER.figure(figure)["function"])(tmp_path, Effort.FIRST))
    assert drawn and len({end for end, _ in drawn}) == len(drawn)
    assert all(picture.axes for _, picture in drawn)
