"""Summaries of a difference: from draws and from a normal estimate."""

import numpy as np
import pytest

from fairbench.inference.few_labels.frequentist import summarise, summarise_normal


def test_draws_and_the_normal_they_come_from_agree():
    draws = np.random.default_rng(0).normal(-0.03, 0.02, 200_000)
    ours, exact = summarise(draws, 0.02), summarise_normal(-0.03, 0.02, 0.02)
    assert ours.direction == exact.direction == -1
    for name in ("estimate", "sd", "lower", "upper"):
        assert getattr(ours, name) == pytest.approx(getattr(exact, name), abs=5e-4)
    for name in ("certainty", "practically_fair"):
        assert getattr(ours, name) == pytest.approx(getattr(exact, name), abs=6e-3)


def test_limits_of_epsilon():
    draws = np.random.default_rng(1).normal(size=100)
    assert summarise(draws, 0.0).practically_fair == 0
    assert summarise(draws, np.inf).practically_fair == 1


@pytest.mark.parametrize(
    "summary", [summarise(np.array([0.1, np.nan])), summarise_normal(np.nan, 0.1)]
)
def test_undefined_stays_undefined(summary):
    assert summary.direction == 0
    assert np.isnan([summary.estimate, summary.lower, summary.practically_fair]).all()
