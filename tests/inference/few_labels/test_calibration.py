"""Whether labels of a group fit how the scores of the other groups are calibrated."""

import numpy as np
import pytest

from fairbench.audits.kinds.binary import ALARMS
from fairbench.components.papers.few_labels.methods import expected_l1_error
from fairbench.inference.few_labels import (
    BETA,
    _elliptical_slice,
    _sigmoid,
    _smooth_tail,
    calibration_p_values,
)


def drawn(generator, labels, slopes):
    """Draw scores, labels and groups; the log odds of a label are so many times the score's."""
    odds = generator.normal(0, 2.5, labels)
    group = np.resize(np.arange(len(slopes)), labels)
    label = generator.random(labels) < _sigmoid(np.array(slopes)[group] * odds)
    return _sigmoid(odds.copy()), label.astype(np.int64), group, len(slopes)


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "labels"), [(2, 20), (2, 200), (5, 100)])
def test_scores_calibrated_alike_raise_few_alarms(groups, labels):
    """Of 150 audits 4.5 are allowed; 12 are more than 3 standard errors too many."""
    generator, slopes = np.random.default_rng(labels), [1.0] * groups
    audits = (drawn(generator, labels, slopes) for _ in range(150))
    values = (calibration_p_values(*audit, generator).min() for audit in audits)
    assert sum(value * groups < ALARMS for value in values) < 12


def test_an_inverted_group_is_told_from_the_others():
    generator = np.random.default_rng(3)
    values = calibration_p_values(*drawn(generator, 150, [1.0, 1.0, -1.0]), generator)
    assert values[2] == values.min() < 0.001


def test_of_one_group_and_of_one_label_something_is_said():
    generator, none = np.random.default_rng(0), np.zeros(40, np.int64)
    alone = calibration_p_values(np.array([0.9, 0.2]), np.array([1, 0]), none[:2], 2, generator)
    both = calibration_p_values(np.full(40, 0.5), none, np.resize([0, 1], 40), 2, generator)
    assert 0.05 < alone[0] <= 1 and np.isnan(alone[1])
    assert ((both > 0) & (both <= 1)).all()


# Elliptical slice sampling of a posterior known in closed form.


def test_normal_likelihood_gives_the_conjugate_posterior():
    noise, observed = np.array([0.3, 1.0]), np.array([1.0, -2.0])
    generator = np.random.default_rng(0)

    def log_likelihood(state):
        return -(((state - observed) / noise) ** 2).sum(axis=1) / 2

    start = generator.standard_normal((200, 2))
    draws = _elliptical_slice(log_likelihood, start, generator, warmup=50, keep=25, thin=8)
    assert draws.shape == (25, 200, 2)
    flat, variance = draws.reshape(-1, 2), 1 / (1 + 1 / noise**2)
    np.testing.assert_allclose(flat.mean(axis=0), variance * observed / noise**2, atol=0.07)
    np.testing.assert_allclose(flat.var(axis=0), variance, rtol=0.15)
    assert abs(np.corrcoef(flat, rowvar=False)[0, 1]) < 0.1


# How far an expected accuracy may lie from the true one: Ji (2020), Lemmas 4.5.1 and 4.5.2.


def test_errors_of_calibrated_probabilities_by_hand():
    """Scores .2 and .8, calibrated to .3 and .6, truly .1 and .9: accuracy .65 in place of .9."""
    mean, true = np.array([0.3, 0.6]), np.array([0.1, 0.9])
    # Both errors take accuracy away, so that the bound is met: (0.2 + 0.3) / 2 = 0.25.
    assert expected_l1_error(mean, true) == pytest.approx(0.25)
    # Where they go in opposite directions the bound is not met.
    assert expected_l1_error(np.array([0.3, 1.0]), true) == pytest.approx(0.15)


def test_the_difference_of_two_groups_is_off_by_at_most_the_sum_of_their_errors():
    draw, ratios = np.random.default_rng(0), []
    for _ in range(300):
        off, bound = 0.0, 0.0
        for sign in (1, -1):
            score = draw.beta(*draw.uniform(0.5, 3, 2), size=200)
            theta = draw.normal(0, [0.8, 0.8, 1.5], size=(41, BETA.size))
            true, *maps = _sigmoid(BETA.coefficients(theta) @ BETA.features(score))
            mean = np.mean(maps, axis=0)
            # Of an accuracy: where the decision is 1 a probability counts, elsewhere its rest.
            off += sign * (np.where(score >= 0.5, 1, -1) * (mean - true)).mean()
            bound += expected_l1_error(mean, true)
        ratios.append(abs(off) / bound)
    assert 0.8 < max(ratios) <= 1  # it is not a bound that nothing comes near


# Pareto shape and effective size of importance weights with known tails.


def test_shape_of_pareto_weights():
    uniform = np.random.default_rng(0).random((50, 4000))
    for shape in (0.2, 0.5, 1.0):
        shapes = [_smooth_tail(row**-shape)[1] for row in uniform]
        # The prior around 1/2 draws a tail of 190 towards it.
        assert np.mean(shapes) == pytest.approx((190 * shape + 5) / 200, abs=0.06)


def test_smoothing_keeps_the_body_and_the_order_and_steadies_the_mean():
    raw = np.random.default_rng(1).random((200, 2000)) ** -0.6
    assert np.std([_smooth_tail(row)[0].mean() for row in raw]) < 0.9 * np.std(raw.mean(axis=1))
    weights, _ = _smooth_tail(raw[0])
    assert (weights != raw[0]).sum() <= 3 * np.sqrt(2000)
    np.testing.assert_array_equal(np.argsort(weights), np.argsort(raw[0]))
    assert weights.max() <= raw[0].max()


def test_equal_weights_have_no_tail():
    assert _smooth_tail(np.full(100, 0.3))[1] == -np.inf
