"""Splits: parts that are disjoint, exhaustive, of the right size and the same for every method."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.data.splits import KFold, Predefined, RepeatedHoldout, SampledHoldout, half_splits

N = 103


@pytest.fixture
def data(make_dataset):
    return make_dataset(N, partition=pd.Series(["train"] * 70 + ["test"] * 33))


@pytest.fixture
def clustered(make_dataset):
    """Return 103 rows in 40 clusters of one to seven rows, in no order."""
    labels = np.random.default_rng(0).integers(40, size=N)
    labels[:40] = np.arange(40)
    return make_dataset(N, clusters=pd.Series([f"twins {label}" for label in labels]))


ALL = [
    RepeatedHoldout(repeats=3),
    RepeatedHoldout(repeats=2, train=0.6, validation=0.25),
    KFold(n_folds=4, repeats=2),
    KFold(n_folds=5, stratified=False, validation=0.3),
    half_splits(repeats=3),
    Predefined(repeats=2),
    Predefined(validation=0.2),
]
DRAWN = ALL[:5]


def parts(fold):
    return fold.train, fold.validation, fold.test


def assert_equal(folds, others):
    for fold, other in zip(folds, others, strict=True):
        assert (fold.repeat, fold.fold) == (other.repeat, other.fold)
        assert [*map(list, parts(fold))] == [*map(list, parts(other))]


def rows_tested(folds):
    return [fold.test.tolist() for fold in folds]


@pytest.mark.parametrize("split", ALL, ids=str)
def test_parts_are_disjoint_exhaustive_and_sorted(data, split):
    for fold in split.folds(data, seed=0):
        np.testing.assert_array_equal(np.sort(np.concatenate(parts(fold))), np.arange(N))
        for rows in parts(fold):
            assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("split", DRAWN, ids=str)
def test_another_seed_data_set_or_repeat_gives_other_rows(data, make_dataset, split):
    folds = rows_tested(split.folds(data, seed=0))
    assert len({*map(tuple, folds)}) == len(folds)
    assert folds != rows_tested(split.folds(data, seed=1))
    assert folds != rows_tested(split.folds(make_dataset(N, name="other"), seed=0))


@pytest.mark.parametrize("split", ALL, ids=str)
def test_rows_depend_on_neither_features_nor_groups_nor_other_draws(data, make_dataset, split):
    expected = split.folds(data, seed=0)
    target = data.target.set_axis(np.arange(N) + 500)
    if not getattr(split, "stratified", False):
        target = 1 - target
    about = {"partition": data.partition, "sensitive": data.sensitive[["sex"]], "target": target}
    other = make_dataset(N, seed=9, **about)
    np.random.default_rng(0).random(10)
    assert_equal(split.folds(other, seed=0), expected)


def test_a_repeat_does_not_depend_on_how_many_there_are(data):
    five, three = (RepeatedHoldout(repeats=r, validation=0.1).folds(data, 0) for r in (5, 3))
    assert_equal(five[:3], three)
    assert_equal(KFold(3, repeats=2).folds(data, 0)[:3], KFold(3, repeats=1).folds(data, 0))


@pytest.mark.parametrize("split", [s for s in ALL if hasattr(s, "validation")], ids=str)
def test_validation_is_a_share_of_the_training_part_and_leaves_the_test_rows(data, split):
    of_shares = (replace(split, validation=share) for share in (0.25, 0))
    with_it, without = (each.folds(data, 0) for each in of_shares)
    for fold, plain in zip(with_it, without, strict=True):
        assert len(fold.validation) == round(0.25 * len(plain.train))
        np.testing.assert_array_equal(fold.test, plain.test)
        np.testing.assert_array_equal(np.union1d(fold.train, fold.validation), plain.train)


@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("n_folds", [2, 7, N])
def test_k_fold_tests_every_row_once_a_repeat(data, n_folds, stratified):
    folds = KFold(n_folds, repeats=3, stratified=stratified).folds(data, seed=0)
    assert [(f.repeat, f.fold) for f in folds] == [(r, k) for r in range(3) for k in range(n_folds)]
    for repeat in range(3):
        rows = sum(rows_tested(folds[repeat * n_folds :][:n_folds]), [])
        assert sorted(rows) == list(range(N))
    sizes = {len(fold.test) for fold in folds}
    assert max(sizes) - min(sizes) <= 1


def test_k_fold_keeps_the_share_of_positives_within_one_row(make_dataset):
    target = pd.Series((np.random.default_rng(0).random(N) < 0.15).astype(int))
    data = make_dataset(N, target=target)
    planned, plain = (
        [target[f.test].sum() for f in KFold(6, 20, stratified=is_planned).folds(data, seed=0)]
        for is_planned in (True, False)
    )
    assert np.ptp(planned) <= 1 and np.ptp(plain) > 3


def test_k_fold_of_a_regression_is_not_stratified(make_dataset):
    data = make_dataset(N, task=Task.REGRESSION, target=pd.Series(np.linspace(0, 1, N)))
    expected = KFold(5, stratified=False).folds(data, seed=0)
    assert_equal(KFold(5).folds(data, seed=0), expected)


@pytest.mark.parametrize("split", [*DRAWN, SampledHoldout(3, validation=0.2, rows=50)], ids=str)
def test_clusters_never_straddle_parts(clustered, split):
    for fold in split.folds(clustered, seed=0):
        train, validation, test = (set(clustered.clusters[rows]) for rows in parts(fold))
        assert not (train & test or train & validation or validation & test)


def test_clusters_are_dealt_out_by_number_not_by_row(clustered):
    labels = clustered.clusters.to_numpy()
    (fold,) = RepeatedHoldout(repeats=1, train=0.75).folds(clustered, seed=0)
    assert len(set(labels[fold.train])) == 30
    folds = [set(labels[fold.test]) for fold in KFold(8).folds(clustered, seed=0)]
    assert {len(fold) for fold in folds} == {5}
    assert len(set().union(*folds)) == 40


def test_predefined_uses_the_archives_own_marks_and_draws_only_the_validation_part(make_dataset):
    marks = np.random.default_rng(0).choice(["train", "test"], N)
    data = make_dataset(N, partition=pd.Series(marks))
    folds = Predefined(repeats=3).folds(data, seed=0)
    assert [(fold.repeat, fold.fold) for fold in folds] == [(0, 0), (1, 0), (2, 0)]
    for fold in folds:
        np.testing.assert_array_equal(fold.test, np.flatnonzero(marks == "test"))
    one, two = Predefined(repeats=2, validation=0.3).folds(data, seed=0)
    (other,) = Predefined(validation=0.3).folds(data, seed=1)
    assert len({fold.validation.tobytes() for fold in (one, two, other)}) == 3


def test_a_split_that_leaves_a_part_empty_is_refused(make_dataset):
    for split, clusters, sentence in (
        (Predefined(), None, "split=predefined needs a data set with its own test part; toy has"),
        (KFold(11), None, "split.n_folds is 11, but toy has 10 rows"),
        (RepeatedHoldout(train=0.999), None, "fold 0 has 10 training and 0 test rows"),
        (RepeatedHoldout(train=0.5, validation=0.99), None, "fold 0 has 0 training and 5 test"),
        (KFold(4), pd.Series(np.arange(10) % 3), "fold 3 has 10 training and 0 test rows of 10;"),
    ):
        with pytest.raises(UserError, match=sentence):
            split.folds(make_dataset(10, clusters=clusters), seed=0)


def test_predefined_refuses_clusters_that_cross_from_training_to_test_rows(make_dataset):
    marks = pd.Series(["train"] * 6 + ["test"] * 4)
    together = pd.Series([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    assert Predefined().folds(make_dataset(10, partition=marks, clusters=together), seed=0)
    crossing = pd.Series([*"aabbcccbdd"])
    with pytest.raises(UserError, match=r"2 clusters of .* training and test rows \(first: b\)"):
        Predefined().folds(make_dataset(10, partition=marks, clusters=crossing), seed=0)


def test_a_sample_is_drawn_once_for_a_data_set_and_a_seed(data):
    split = SampledHoldout(repeats=3, validation=0.25, rows=60)
    folds = split.folds(data, seed=0)
    rows = [{*np.concatenate(parts(fold)).tolist()} for fold in folds]
    assert {fold.rows for fold in folds} == {len(rows[0])} == {60}
    assert rows[0] == rows[1] == rows[2]
    assert_equal(split.folds(data, seed=0), folds)
    assert rows[0] != {*np.concatenate(parts(split.folds(data, 1)[0])).tolist()}
    assert rows_tested(folds)[0] != rows_tested(folds)[1]
    whole = RepeatedHoldout(repeats=2, validation=0.2)
    assert_equal(SampledHoldout(2, 0.8, 0.2, rows=N).folds(data, 0), whole.folds(data, 0))
