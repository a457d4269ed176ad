"""Confusion counts per group, against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from fairbench.metrics.rates import FN, FP, TN, TP, binary_confusion, confusion, total


@pytest.mark.parametrize("n_classes", [2, 4])
def test_counts_of_every_group_match_scikit_learn(n_classes):
    draw = np.random.default_rng(n_classes)
    target, prediction = draw.integers(n_classes, size=(2, 300))
    group = draw.integers(3, size=300)
    counts = confusion(target, prediction, group, n_groups=3, n_classes=n_classes)
    for g in range(3):
        expected = confusion_matrix(
            target[group == g], prediction[group == g], labels=range(n_classes)
        )
        np.testing.assert_array_equal(counts[g], expected)


def test_binary_cells_are_in_the_order_tn_fp_fn_tp():
    target = [0, 0, 0, 1, 1, 1, 1, 1]
    prediction = [0, 0, 1, 0, 0, 0, 1, 1]
    counts = binary_confusion(target, prediction, [0] * 8, n_groups=1)
    np.testing.assert_array_equal(counts, [[2, 1, 3, 2]])
    assert (counts[0, TN], counts[0, FP], counts[0, FN], counts[0, TP]) == (2, 1, 3, 2)


def test_a_group_without_rows_is_all_zeros_and_keeps_its_place():
    counts = binary_confusion([1, 0, 1], [1, 1, 0], [0, 2, 2], n_groups=4)
    np.testing.assert_array_equal(counts, [[0, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0], [0] * 4])


def test_labels_stored_as_floats_or_booleans_count_the_same():
    target, prediction, group = [0.0, 1.0, 1.0], [True, False, True], [0, 0, 1]
    counts = binary_confusion(target, prediction, group, n_groups=2)
    np.testing.assert_array_equal(counts, [[0, 1, 1, 0], [0, 0, 0, 1]])
    assert counts.dtype == np.int64


def test_total_pools_the_groups_and_keeps_other_axes():
    counts = np.arange(24).reshape(2, 3, 4)
    pooled = total(counts)
    assert pooled.shape == (2, 1, 4)
    np.testing.assert_array_equal(pooled[1, 0], counts[1, 0] + counts[1, 1] + counts[1, 2])
