"""Forms of gaps of several classes: by loops over rows, scikit-learn, and draws of a posterior."""

import numpy as np
import pytest
from sklearn.metrics import multilabel_confusion_matrix, recall_score

from fairbench.inference.posterior import table_draws
from fairbench.metrics.group import one_vs_rest
from fairbench.metrics.registry import MULTICLASS, confusion, metrics_of, selection_rate

CLASSES = 4
OF_CLASSES = metrics_of(MULTICLASS)


@pytest.fixture(scope="module")
def labels():
    draw = np.random.default_rng(0)
    target, group = draw.choice(CLASSES, 900, p=[0.5, 0.3, 0.15, 0.05]), draw.integers(2, size=900)
    wrong = draw.random(900) < np.where((group == 1) & (target == 0), 0.5, 0.2)
    return target, np.where(wrong, draw.integers(CLASSES, size=900), target), group


@pytest.fixture(scope="module")
def counts(labels):
    return confusion(*labels, n_groups=2, n_classes=CLASSES)


def test_each_class_against_the_rest_is_scikit_learns(labels, counts):
    target, prediction, _ = labels
    expected = multilabel_confusion_matrix(target, prediction).reshape(CLASSES, 4)
    np.testing.assert_array_equal(one_vs_rest(counts).sum(axis=1), expected)


def test_equation_11_weighs_each_class_by_how_often_it_is_the_label(labels, counts):
    """The sum over classes of P(Y = k) |P(k | k, group 0) - P(k | k, group 1)|, row by row."""
    target, prediction, group = labels
    recalls = [
        recall_score(target[group == g], prediction[group == g], average=None) for g in (0, 1)
    ]
    gaps = np.abs(recalls[0] - recalls[1])
    expected = sum(
        sum(label == k for label in target) / len(target) * gaps[k] for k in range(CLASSES)
    )
    assert OF_CLASSES["equal_opportunity_weighted"](counts) == pytest.approx(expected)
    assert OF_CLASSES["equal_opportunity_class_mean"](counts) == pytest.approx(gaps.mean())
    assert OF_CLASSES["equal_opportunity_largest"](counts) == pytest.approx(gaps.max())
    assert abs(expected - gaps.mean()) > 0.01  # the forms are told apart by this test


def test_equation_9_weighs_each_class_by_how_often_it_is_the_label(labels, counts):
    target, prediction, group = labels
    shares = [np.bincount(prediction[group == g], minlength=CLASSES) for g in (0, 1)]
    gaps = np.abs(shares[0] / shares[0].sum() - shares[1] / shares[1].sum())
    label_shares = np.bincount(target) / len(target)
    assert OF_CLASSES["statistical_parity_weighted"](counts) == pytest.approx(
        (label_shares * gaps).sum()
    )
    assert OF_CLASSES["statistical_parity_class_mean"](counts) == pytest.approx(gaps.mean())
    assert OF_CLASSES["statistical_parity_largest"](counts) == pytest.approx(gaps.max())
    predicted_shares = np.bincount(prediction) / len(prediction)
    assert abs(((label_shares - predicted_shares) * gaps).sum()) > 1e-3  # which weights is seen


def test_equation_13_weighs_classes_within_each_group_and_compares_every_pair():
    """Three groups; the sums over classes by hand, the largest difference over the pairs."""
    target = [0, 0, 1, 2] + [0, 1, 1, 2] + [2, 2, 2, 0]
    prediction = [0, 1, 1, 2] + [0, 0, 1, 0] + [2, 2, 2, 2]
    group = [0] * 4 + [1] * 4 + [2] * 4
    counts = confusion(target, prediction, group, n_groups=3, n_classes=3)
    first = 2 / 4 * 1 / 4 + 1 / 4 * 2 / 4 + 1 / 4 * 1 / 4
    second = 1 / 4 * 3 / 4 + 2 / 4 * 1 / 4 + 1 / 4 * 0 / 4
    third = 1 / 4 * 0 / 4 + 0 / 4 * 0 / 4 + 3 / 4 * 4 / 4
    assert [first, second, third] == [0.3125, 0.3125, 0.75]
    assert OF_CLASSES["statistical_parity_group_weighted"](counts) == pytest.approx(0.75 - 0.3125)


def test_equation_15_equals_equation_7(labels, counts):
    """Recalls weighted by a group's own labels are its accuracy."""
    target, prediction, group = labels
    sums = [
        recall_score(target[group == g], prediction[group == g], average="weighted") for g in (0, 1)
    ]
    assert OF_CLASSES["equal_opportunity_micro"](counts) == pytest.approx(abs(sums[0] - sums[1]))


def test_equation_5_is_0_for_every_classifier(counts):
    """Added up, a group's tables predict each row once: one prediction in C is positive."""
    summed = one_vs_rest(counts).sum(axis=0)
    np.testing.assert_allclose(selection_rate(summed), 1 / CLASSES)


def test_added_up_tables_give_the_gap_in_accuracy(labels, counts):
    target, prediction, group = labels
    micro = [
        recall_score(target[group == g], prediction[group == g], average="micro") for g in (0, 1)
    ]
    assert OF_CLASSES["equal_opportunity_micro"](counts) == pytest.approx(abs(micro[0] - micro[1]))


def test_draws_of_a_posterior_are_summed_up_draw_by_draw(counts):
    """The paper's posterior of several classes: Dirichlet tables, a metric of each."""
    tables = table_draws(counts.reshape(2, -1), 300, np.random.default_rng(1))
    drawn = tables.reshape(300, 2, CLASSES, CLASSES)
    values = OF_CLASSES["equal_opportunity_weighted"](drawn)
    assert values.shape == (300,)
    for place in (0, 299):
        table = drawn[place]
        recalls = np.einsum("gkk->gk", table) / table.sum(axis=-1)
        weight = table.sum(axis=(0, 2)) / table.sum()
        expected = (weight * np.abs(recalls[0] - recalls[1])).sum()
        assert values[place] == pytest.approx(expected)
    # 900 rows: the posterior lies around the gap of the counts.
    assert abs(values.mean() - OF_CLASSES["equal_opportunity_weighted"](counts)) < 2 * values.std()
