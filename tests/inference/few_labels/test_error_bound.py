"""How far an expected accuracy may lie from the true one: Ji (2020), Lemmas 4.5.1 and 4.5.2."""

import numpy as np
import pytest

from fairbench.inference.few_labels.calibration import BETA, expected_l1_error, sigmoid


def accuracy(score, probability):
    """Return the accuracy that some probabilities of label 1 give the decisions score >= 1/2."""
    return np.where(score >= 0.5, probability, 1 - probability).mean(axis=-1)


def drawn_maps(draw, score, number):
    """Return beta calibrations of scores, (number, n), with parameters from a wide normal."""
    theta = draw.normal(0, [0.8, 0.8, 1.5], size=(number, BETA.size))
    slopes = np.column_stack([np.exp(theta[:, :-1]), theta[:, -1]])
    return sigmoid(slopes @ BETA.features(score))


def test_by_hand():
    """Scores .2 and .8, calibrated to .3 and .6, truly .1 and .9: accuracy .65 in place of .9."""
    score, mean, true = np.array([0.2, 0.8]), np.array([0.3, 0.6]), np.array([0.1, 0.9])
    assert accuracy(score, mean) == pytest.approx((0.7 + 0.6) / 2)
    assert accuracy(score, true) == pytest.approx((0.9 + 0.9) / 2)
    # Both errors take accuracy away, so that the bound is met: (0.2 + 0.3) / 2 = 0.25.
    assert expected_l1_error(mean, true) == pytest.approx(0.25)
    # Where they go in opposite directions the bound is not met.
    assert abs(accuracy(score, np.array([0.3, 1.0])) - 0.9) == pytest.approx(0.05)
    assert expected_l1_error(np.array([0.3, 1.0]), true) == pytest.approx(0.15)


def test_the_difference_of_two_groups_is_off_by_at_most_the_sum_of_their_errors():
    draw, ratios = np.random.default_rng(0), []
    for _ in range(300):
        off, bound = 0.0, 0.0
        for sign in (1, -1):
            score = draw.beta(*draw.uniform(0.5, 3, 2), size=200)
            (true,) = drawn_maps(draw, score, 1)
            posterior = drawn_maps(draw, score, 40)
            off += sign * (accuracy(score, posterior).mean() - accuracy(score, true))
            bound += expected_l1_error(posterior.mean(axis=0), true)
        ratios.append(abs(off) / bound)
    assert max(ratios) <= 1
    assert max(ratios) > 0.8  # it is not a bound that nothing comes near
