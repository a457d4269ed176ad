"""Forms of gaps of several classes: by loops over rows, scikit-learn, and draws of a posterior."""

import numpy as np
import pytest
from sklearn.metrics import multilabel_confusion_matrix

from fairbench.inference.posterior import table_draws
from fairbench.metrics.group import one_vs_rest
from fairbench.metrics.registry import MULTICLASS, confusion, metrics_of

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
