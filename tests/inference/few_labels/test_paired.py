from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from fairbench.core.errors import UserError
from fairbench.inference.few_labels import paired
from fairbench.inference.few_labels.bayesian_calibration import bayesian_calibration
from fairbench.inference.few_labels.paired import MODEL, paired_calibration
from fairbench.inference.few_labels.table import PartlyLabelled
from fairbench.inference.posterior import central_interval
from fairbench.metrics.group import difference
from fairbench.metrics.rates import accuracy, true_positive_rate
from tests.inference.few_labels.pools import labelled

SIMULATIONS = 100


def classifiers(generator, *, rows=400):
    """Return two classifiers of the same rows, all labelled; the second sees what the first does.

    What it sees besides is of less use in group 1.
    """
    group = (generator.random(rows) < 0.4).astype(int)
    x, z = generator.standard_normal((2, rows))
    label = (generator.random(rows) < expit(1.5 * x + (1 - 0.5 * group) * z)).astype(float)
    noise = generator.standard_normal(rows)
    first = expit(1.2 * x + 0.3 * noise)
    second = expit(1.2 * x + z)
    return tuple(PartlyLabelled.of(s, group, label, reference=0) for s in (first, second))


def differences(first, second):
    """Return what the second has more than the first: accuracies, and gaps of TPR, (..., 3)."""
    gaps = [difference(true_positive_rate, each) for each in (first, second)]
    values = [accuracy(second) - accuracy(first), gaps[1] - gaps[0]]
    return np.concatenate(values, axis=-1)


def truth(first, second):
    return differences(*(each.counts().astype(float) for each in (first, second)))


def covered(first, second, generator, labels=60):
    """Return which intervals hold the differences in the pool, (3,)."""
    rows = generator.permutation(len(first.score))[:labels]
    posterior = paired_calibration(
        *(t.showing(rows) for t in (first, second)), generator, draws=512
    )
    lower, upper = central_interval(differences(posterior.first, posterior.second))
    true = truth(first, second)
    return (lower <= true) & (true <= upper)


@pytest.mark.slow
def test_intervals_cover_where_the_model_is_true():
    shares = []
    for seed in range(SIMULATIONS):
        generator = np.random.default_rng(seed)
        first, second = classifiers(generator, rows=400)
        split = paired.split_by_pattern(first, second)
        z = generator.standard_normal(MODEL.normals(split.n_groups))
        label = labelled(split, MODEL.from_normals(z, split.n_groups), generator, MODEL).label
        pair = (replace(each, label=label) for each in (first, second))
        shares.append(covered(*pair, generator))
    # Four standard errors of 95 % are 8.7 points.
    np.testing.assert_allclose(np.mean(shares, axis=0), 0.95, atol=0.087)


@pytest.mark.thorough
def test_intervals_cover_where_it_is_not():
    generators = map(np.random.default_rng, range(SIMULATIONS))
    shares = [covered(*classifiers(each, rows=600), each) for each in generators]
    assert (np.mean(shares, axis=0) > 0.87).all()


def test_shared_labels_say_more_about_like_classifiers_than_two_posteriors():
    generator = np.random.default_rng(0)
    first, _ = classifiers(generator)
    second = replace(first, score=expit(0.9 * np.log(first.score / (1 - first.score)) + 0.1))
    second = replace(second, prediction=(second.score > 0.5).astype(np.int64))
    rows = np.arange(60)
    shown = [each.showing(rows) for each in (first, second)]
    both = paired_calibration(*shown, generator)
    apart = [bayesian_calibration(each, generator).counts for each in shown]
    narrow = (accuracy(both.second) - accuracy(both.first)).std(axis=0)
    wide = (accuracy(apart[1]) - accuracy(apart[0])).std(axis=0)
    assert (narrow < 0.6 * wide).all()


def test_labels_for_all_rows_leave_nothing_unknown():
    first, second = classifiers(np.random.default_rng(1))
    posterior = paired_calibration(first, second, np.random.default_rng(2), draws=128)
    np.testing.assert_allclose(posterior.first, np.broadcast_to(first.counts(), (128, 2, 4)))
    np.testing.assert_allclose(posterior.second, np.broadcast_to(second.counts(), (128, 2, 4)))


def test_a_classifier_differs_in_nothing_from_itself():
    first, _ = classifiers(np.random.default_rng(3), rows=200)
    shown = first.showing(np.arange(20))
    posterior = paired_calibration(shown, shown, np.random.default_rng(4), draws=128)
    np.testing.assert_array_equal(posterior.first, posterior.second)


def test_both_have_the_rows_and_decisions_they_have():
    first, second = (
        each.showing(np.arange(30)) for each in classifiers(np.random.default_rng(5), rows=300)
    )
    posterior = paired_calibration(first, second, np.random.default_rng(6), draws=128)
    for counts, table in ((posterior.first, first), (posterior.second, second)):
        decided = counts[..., :2] + counts[..., 2:]
        np.testing.assert_allclose(decided, np.broadcast_to(table.sizes(), decided.shape))
    # A draw of one is a draw of the other: the same number of positives in every group.
    positives = [counts[..., 2:].sum(axis=-1) for counts in (posterior.first, posterior.second)]
    np.testing.assert_allclose(*positives)


def test_other_rows_are_refused():
    generator = np.random.default_rng(7)
    first, second = classifiers(generator, rows=50)
    with pytest.raises(UserError, match="have 50 and 49 rows"):
        columns = {name: getattr(second, name)[1:] for name in ("score", "prediction", "group")}
        paired_calibration(first, replace(second, **columns, label=second.label[1:]), generator)
    with pytest.raises(UserError, match="differ in column 'label', first in row 4"):
        other = second.label.copy()
        other[3] = 1 - other[3]
        paired_calibration(first, replace(second, label=other), generator)
    with pytest.raises(UserError, match="the reference first"):
        paired_calibration(first, replace(second, groups=("x", "y")), generator)
