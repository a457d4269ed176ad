"""Whether labels of a group fit how the scores of the other groups are calibrated."""

from __future__ import annotations

import numpy as np
import pytest

from fairbench.audits.calibration import ALARMS
from fairbench.inference.few_labels.calibration import sigmoid
from fairbench.inference.few_labels.check import calibration_p_values


def drawn(generator, labels, slopes):
    """Draw scores, labels and groups; the log odds of a label are so many times the score's."""
    odds = generator.normal(0, 2.5, labels)
    group = np.resize(np.arange(len(slopes)), labels)
    chance = sigmoid(np.array(slopes)[group] * odds)
    label = (generator.random(labels) < chance).astype(np.int64)
    return sigmoid(odds.copy()), label, group


def smallest(slopes, labels, repeats):
    """Return the smallest p-value of each of many audits, times the groups."""
    generator = np.random.default_rng(labels)
    values = np.array(
        [
            calibration_p_values(*drawn(generator, labels, slopes), len(slopes), generator)
            for _ in range(repeats)
        ]
    )
    return values.min(axis=1) * len(slopes)


@pytest.mark.thorough
@pytest.mark.parametrize(("groups", "labels"), [(2, 20), (2, 200), (5, 100)])
def test_scores_calibrated_alike_raise_few_alarms(groups, labels):
    """Of 150 audits 4.5 are allowed; 12 are more than 3 standard errors too many."""
    values = smallest([1.0] * groups, labels, 150)
    assert (values < ALARMS).sum() < 12


@pytest.mark.thorough
@pytest.mark.parametrize(("groups", "labels"), [(2, 100), (4, 200)])
def test_an_inverted_group_of_fifty_labels_is_named(groups, labels):
    values = smallest([1.0] * (groups - 1) + [-1.0], labels, 60)
    assert (values < ALARMS).mean() > 0.95


def test_an_inverted_group_is_told_from_the_others(seed=3):
    generator = np.random.default_rng(seed)
    values = calibration_p_values(*drawn(generator, 150, [1.0, 1.0, -1.0]), 3, generator)
    assert values[2] == values.min() < 0.001


def test_of_one_group_and_of_one_label_something_is_said():
    generator = np.random.default_rng(0)
    alone = calibration_p_values(
        np.array([0.9, 0.2]), np.array([1, 0]), np.zeros(2, np.int64), 2, generator
    )
    assert 0.05 < alone[0] <= 1
    assert np.isnan(alone[1])


def test_all_labels_alike_are_no_error():
    generator = np.random.default_rng(0)
    score, group = np.full(40, 0.5), np.resize([0, 1], 40)
    values = calibration_p_values(score, np.zeros(40, np.int64), group, 2, generator)
    assert ((values > 0) & (values <= 1)).all()
