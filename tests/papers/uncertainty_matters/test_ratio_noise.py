"""The noise of a variance ratio against the F distribution that it has where nothing correlates."""

import numpy as np
import pytest
from scipy import stats

from fairbench.components.papers.uncertainty_matters.ratio_noise import SAMPLES, equal_ratios


def test_mean_ratio_of_many_halvings_has_the_mean_of_its_f_distribution():
    """Four independent F(J, J) ratios: their mean is J / (J - 2), their variance a fourth."""
    ratios = equal_ratios(20, 0.0, np.random.default_rng(0))
    law = stats.f(20, 20)
    assert law.mean() == pytest.approx(20 / 18)
    assert abs(ratios.mean() - law.mean()) < 5 * law.std() / np.sqrt(4 * SAMPLES)


def test_correlated_estimates_have_less_noise_and_the_same_ones_none():
    spread = [equal_ratios(5, c, np.random.default_rng(1)).std() for c in (0.0, 0.8, 1.0)]
    assert spread[0] > 1.5 * spread[1]
    assert spread[2] < 1e-12
