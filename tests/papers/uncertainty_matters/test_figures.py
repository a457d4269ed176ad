"""The pictures of Uncertainty Matters show what they are given."""

import numpy as np
import pandas as pd
import pytest

from papers.uncertainty_matters.figures import areas_figure, pair_figure
from papers.uncertainty_matters.measured import RHOS, Measured
from papers.uncertainty_matters.tables import AREA

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
