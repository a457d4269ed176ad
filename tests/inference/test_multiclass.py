"""Multi-class averages: identities, and scikit-learn as the oracle."""

import numpy as np
import pytest
from sklearn.metrics import f1_score as sklearn_f1
from sklearn.metrics import multilabel_confusion_matrix, recall_score

from fairbench.inference.confusion_matrix import AVERAGES, macro, micro, one_versus_rest
from fairbench.inference.posterior import table_draws
from fairbench.metrics.group import equal_opportunity
from fairbench.metrics.rates import (
    accuracy,
    binary_confusion,
    confusion,
    f1_score,
    positive_predictive_value,
    true_positive_rate,
)

CLASSES = 4


@pytest.fixture(scope="module")
def labels():
    draw = np.random.default_rng(0)
    target = draw.integers(CLASSES, size=900)
    wrong = draw.random(900) < 0.3
    return (
        target,
        np.where(wrong, draw.integers(CLASSES, size=900), target),
        draw.integers(2, size=900),
    )


@pytest.fixture(scope="module")
def tables(labels):
    return confusion(*labels, n_groups=2, n_classes=CLASSES).reshape(2, -1)


def test_one_versus_rest_is_scikit_learns(labels, tables):
    target, prediction, _ = labels
    mine = one_versus_rest(tables.sum(axis=0), CLASSES)
    expected = multilabel_confusion_matrix(target, prediction).reshape(CLASSES, 4)
    np.testing.assert_array_equal(mine, expected)


def test_micro_recall_precision_and_f1_are_the_accuracy(tables):
    hits = tables.reshape(2, CLASSES, CLASSES).trace(axis1=1, axis2=2) / tables.sum(axis=-1)
    for metric in (true_positive_rate, positive_predictive_value, f1_score):
        np.testing.assert_allclose(micro(metric, tables, CLASSES), hits)


def test_macro_averages_are_scikit_learns(labels, tables):
    target, prediction, group = labels
    for g in range(2):
        pair = target[group == g], prediction[group == g]
        recall, f1 = recall_score(*pair, average="macro"), sklearn_f1(*pair, average="macro")
        assert macro(true_positive_rate, tables, CLASSES)[g] == pytest.approx(recall)
        assert macro(f1_score, tables, CLASSES)[g] == pytest.approx(f1)


def test_two_classes_alike_in_every_average(labels):
    target, prediction, group = labels[0] % 2, labels[1] % 2, labels[2]
    binary = binary_confusion(target, prediction, group, n_groups=2)
    for average in AVERAGES.values():
        np.testing.assert_allclose(average(accuracy, binary, 2), accuracy(binary))


def test_averages_of_posterior_draws_keep_the_draws(tables):
    draws = table_draws(tables, 300, np.random.default_rng(1))
    for average in AVERAGES.values():
        values = average(equal_opportunity, draws, CLASSES)
        assert values.shape == (300,)
        assert abs(values.mean() - average(equal_opportunity, tables, CLASSES)) < 0.05
