"""The public code's steps, against what they do to normal draws and to fractions of a row."""

import numpy as np
import pytest
from scipy import stats

from fairbench.components.papers.uncertainty_matters import public_code
from fairbench.components.papers.uncertainty_matters.public_code import (
    BANDWIDTH,
    fitted_region,
    fixed_bandwidth_region,
    steps,
    truncated_draws,
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A coarser grid and fewer draws than the public code has."""
    for name, value in {"DRAWS": 3000, "KERNELS": 2000, "GRID": 60}.items():
        monkeypatch.setattr(public_code, name, value)


def test_a_fixed_bandwidth_makes_a_circle_of_a_narrow_cloud():
    """Density of sds (0.01, 0.05) under a kernel of 0.15: an ellipse of axes 0.150 and 0.158."""
    draws = np.random.default_rng(0).normal(0, [0.01, 0.05], size=(6000, 2))
    points = np.array([[0.0, 0.0], [0.09, 0.0], [0.0, 0.2]])
    area, inside = fixed_bandwidth_region(draws, points)
    smooth = np.hypot([0.01, 0.05], BANDWIDTH)
    scaled = np.quantile(((draws / smooth) ** 2).sum(axis=1), 0.95)
    assert area == pytest.approx(np.pi * scaled * smooth.prod(), rel=0.08)
    assert inside == pytest.approx(2 / 3)  # 0.09 is nine sds of the first objective away
    fitted, held = fitted_region(draws, points)
    assert fitted == pytest.approx(np.pi * stats.chi2.ppf(0.95, 2) * 0.01 * 0.05, rel=0.1)
    assert held == pytest.approx(1 / 3)


def test_fractions_of_rows_are_cut_off():
    counts = np.array([[10.4, 0.3, 2.2, 4.9], [1.3, 1.3, 1.3, 1.3]])
    tables = truncated_draws(counts, 500, np.random.default_rng(1))
    np.testing.assert_array_equal(tables.sum(axis=-1), np.tile([17, 5], (500, 1)))


@pytest.mark.thorough
def test_each_step_widens_the_draws(monkeypatch):
    monkeypatch.setattr(public_code, "KERNELS", 500)
    counts = np.tile([[400, 60, 80, 60], [80, 20, 20, 30]], (5, 1, 1))
    areas = {name: area for name, area, _, _ in steps(counts, "1/K")}
    assert len(areas) == 6
    ratio = areas["predictive, fitted bandwidth"] / areas["posterior, fitted bandwidth"]
    assert ratio == pytest.approx(2, rel=0.1)
    assert areas["posterior, bandwidth 0.15"] > 1.5 * areas["posterior, fitted bandwidth"]
