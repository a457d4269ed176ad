"""The text's columns and grid of machines, and the counts that are packed and kept."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from fairbench.components.datasets import adult as dataset
from fairbench.components.datasets import german
from fairbench.components.papers.uncertainty_matters import adult as on_adult
from fairbench.components.papers.uncertainty_matters import grid, ground_truth
from fairbench.components.papers.uncertainty_matters.ground_truth import ALGORITHMS, FOLDS, study
from fairbench.components.papers.uncertainty_matters.readings import ALONE, RHOS, RIGHT, measure
from fairbench.components.papers.uncertainty_matters.tables import read_published
from fairbench.data.features import onehot
from tests.harness import archive_with


@pytest.fixture(scope="module")
def rows():
    draw = np.random.default_rng(0)
    X, groups = draw.normal(size=(200, 4)), draw.integers(0, 2, 200)
    y = (X[:, 0] + 0.7 * draw.normal(size=200) > 0.6).astype(float)
    fold = np.stack([draw.permutation(200) % FOLDS for _ in range(2)])
    return grid.Divided(SimpleNamespace(), X, y, groups.astype(np.intp), fold, range(2))


def test_every_column_is_a_number_and_the_age_a_group():
    columns = {"purpose": pd.Categorical(["car", "tv", "car"]), "age": [24.0, 25, 40]}
    groups = pd.Series(pd.Categorical(["young", "young", "old"]))
    data = SimpleNamespace(features=pd.DataFrame(columns), groups=lambda name: groups)
    found = grid.numbered(data, "age")
    assert found.to_dict("list") == {"purpose": [0, 1, 0], "age": [1, 1, 0]}


def test_a_fold_has_the_machine_that_is_best_on_the_others(rows):
    """The first machine errs in fold 0 alone and the second in fold 1 alone, all others nowhere."""
    right = rows.y > 0
    labels = np.stack([np.where(rows.fold == k, ~right, right) for k in (0, 1)])
    chosen = rows.chosen(labels)
    assert chosen.shape == (2, FOLDS)
    np.testing.assert_array_equal(chosen[:, :2], [[0, 1]] * 2)


def test_the_fairest_is_one_of_those_that_are_nearly_as_accurate(rows):
    right = rows.y > 0
    everybody = np.zeros_like(rows.fold, bool)  # is good: fair, and right for most
    spoilt = np.where((rows.groups == 1) & ~right & (rows.fold >= 0), True, right)
    assert (rows.chosen(np.stack([spoilt, everybody])) == 1).all() == (
        (spoilt == right).mean() < (~right).mean()
    )
    fair = rows.chosen(np.stack([np.stack([right] * 2), everybody]), fairest=True)
    assert (fair == 0).all()  # both have no gap, and the second is not nearly as accurate
    # A few good loans of one group in every fold.
    few = ~right & (rows.groups == 0) & (np.arange(200) % 9 == 0) & (rows.fold >= 0)
    close = np.where(few, ~right, right)
    assert (rows.chosen(np.stack([close, np.stack([right] * 2)]), fairest=True) == 1).all()


def test_machines_are_those_of_scikit_learn(rows):
    used = grid.training(rows.fold)[3]
    Z = grid.standardised(rows.X, used)
    plain = SVC(C=1.0, gamma=0.1).fit(Z[used], rows.y[used]).decision_function(Z)
    np.testing.assert_allclose(rows.margins("SVM", 1.0, 0.1)[3], plain, atol=5e-3)


def test_the_intercept_of_all_support_vectors_is_their_mean(rows):
    used = grid.training(rows.fold)[0]
    Z = grid.standardised(rows.X, used)
    machine = SVC(C=1.0, gamma=0.1, tol=1e-6).fit(Z[used], rows.y[used])
    plain = machine.decision_function(Z)
    sign = 2 * rows.y[used][machine.support_] - 1
    expected = plain + np.mean(sign - plain[used][machine.support_])
    margins = np.tile(plain, (2 * FOLDS, 1))
    np.testing.assert_allclose(rows._averaged(margins)[0], expected, atol=1e-3)


def test_a_rule_apart_is_not_derived_from_what_its_machine_has_seen(rows, monkeypatch):
    seen, derived = [], []
    for name, calls in (("_fitted", seen), ("_derived", derived)):
        original = getattr(grid.Divided, name)

        def note(self, *given, original=original, calls=calls):
            calls.append(given)
            return original(self, *given)

        monkeypatch.setattr(grid.Divided, name, note)
    assert rows.apart("LR + Hardt").shape == rows.fold.shape
    ((_, asked),) = derived
    for part, ((own, *_), other) in enumerate(zip(seen, asked, strict=True)):
        assert not (own & other).any()
        np.testing.assert_array_equal(own | other, grid.training(rows.fold)[part])


def test_what_is_packed_has_all_rows_of_german():
    for name in ALGORITHMS:
        for choice in grid.choices(name):
            counts = grid.counts(name, choice)
            assert len(counts) >= 20
            assert (counts[:, :, :2].sum(axis=2) == [590, 110]).all()
            assert (counts[:, :, 2:].sum(axis=2) == [220, 80]).all()
        estimates = grid.estimates(name)
        assert estimates.shape[1:] == (2, 2, 2) and len(estimates) >= 5
    assert len(grid.counts("FERM", grid.EXACT_BETWEEN)) == len(grid.counts("FERM"))
    assert all(len(grid.counts(name, grid.RULE_APART)) >= 20 for name in grid.APART)


@pytest.mark.data
@pytest.mark.slow
def test_packed_counts_are_those_of_the_algorithms():
    """The first cross-validation; of FERM's machines that of the one chosen."""
    archive_with(german.GERMAN)
    for name in (*grid.FITTED, grid.RULE_APART):
        for algorithm, counts in grid.repeated(name, 0, 1).items():
            choices = grid.choices(algorithm)[: 1 if name == "FERM" else None]
            choices = (name,) if name == grid.RULE_APART else choices
            for place, choice in enumerate(choices):
                np.testing.assert_array_equal(counts[place, 0], grid.counts(algorithm, choice)[0])


ROWS = read_published().query("table in @on_adult.TABLES")
ROUNDING = 0.50001e-4  # half a unit of the last digit that adult.csv keeps


@pytest.fixture(scope="module")
def fitted():
    draw = np.random.default_rng(0)
    X, groups = draw.normal(size=(300, 4)), draw.integers(0, 2, 300)
    X[:, 1] += groups
    y = (X[:, 0] + X[:, 1] + draw.normal(size=300) > 0.5).astype(int)
    return on_adult.Machines(X, y, groups.astype(np.intp), np.arange(120))


@pytest.mark.parametrize(
    ("name", "kernel"), [("SVM", {"gamma": 0.1}), ("Linear SVM", {"kernel": "linear"})]
)
def test_machines_on_adult_are_those_of_scikit_learn(fitted, name, kernel):
    used = fitted.used
    plain = SVC(C=1.0, **kernel).fit(fitted.X[used], fitted.y[used]).predict(fitted.X)
    assert (fitted.labels(name) == plain).mean() > 0.995


def test_a_fair_machine_tells_the_groups_less_apart(fitted):
    rich = fitted.y == 1

    def gap(name):
        labels = fitted.labels(name)
        return abs(np.subtract(*(labels[rich & (fitted.groups == g)].mean() for g in (0, 1))))

    assert gap("Linear FERM") < gap("Linear SVM")
    assert gap("SVM + Hardt") < gap("SVM") + 0.1


def test_every_published_number_has_an_answer(fitted):
    result = pd.DataFrame(on_adult.answers([on_adult.joint_tables(fitted)], ROWS))
    first = result[(result["label"] == "") & (result["cause"] == "")]
    assert sorted(first["row"]) == sorted(ROWS.index)
    assert set(result["cause"]) == {"", ALONE.cause}
    assert result["mean"].between(0, 1).all()
    assert (result["label"] == RIGHT.label).sum() == 3


def test_without_rich_rows_in_a_group_there_is_nothing_to_subtract(fitted, monkeypatch):
    # The two are one problem, solved alike to any tolerance; the machines' own takes a minute here.
    monkeypatch.setattr(on_adult, "TOLERANCE", 1e-3)
    poor = replace(fitted, y=np.where(fitted.groups == 1, 0, fitted.y))
    np.testing.assert_array_equal(poor.labels("Linear FERM"), poor.labels("Linear SVM"))


@pytest.mark.data
@pytest.mark.slow
def test_kept_numbers_are_those_of_adult():
    """On every processor: the solver is solved so far that no label hangs on the order of sums.

    Labels are then the same, and so are counts and draws, which leaves the rounding of the file.
    """
    archive_with(dataset.TRAIN)
    fitted = on_adult.machines(on_adult.load())
    other_order = replace(fitted, used=fitted.used[::-1].copy())
    for name in ("SVM", "FERM", "Linear SVM", "Linear FERM"):
        np.testing.assert_array_equal(fitted.labels(name), other_order.labels(name))
    parts = [on_adult.machines(on_adult.load(), part=part) for part in range(1, on_adult.PARTS)]
    by_part = [on_adult.joint_tables(each) for each in (fitted, *parts)]
    result = pd.DataFrame(on_adult.answers(by_part, ROWS))
    kept = pd.read_csv(on_adult.NUMBERS, keep_default_na=False)
    np.testing.assert_allclose(result["mean"], kept["mean"], rtol=0, atol=ROUNDING)
    text = kept[(kept["label"] == "") & (kept["cause"] == "")].set_index("row")["mean"]
    assert ((text - ROWS["value"].astype(float)).abs() <= 0.1).mean() > 0.7


# The counts of repeated cross-validations: whose labels they are, and how they are kept.


@pytest.fixture
def small(monkeypatch):
    """Put 150 simulated people in German's place, and batches of two in those of a hundred."""
    data = ("dataset=simulated", "dataset.n_samples=150", "protect=group")
    monkeypatch.setattr(ground_truth, "DATA", data)
    monkeypatch.setattr(ground_truth, "BATCH", 2)
    study.cache_clear()
    yield
    study.cache_clear()


def test_batches_are_kept_by_what_decides_their_labels(small, tmp_path, monkeypatch):
    expected = ground_truth.counted(study("LR"), range(3))
    np.testing.assert_array_equal(ground_truth.counts("LR", 3, tmp_path), expected)
    monkeypatch.setattr(ground_truth, "counted", lambda part, cvs: np.zeros((len(cvs), 2, 4)))
    np.testing.assert_array_equal(ground_truth.counts("LR", 3, tmp_path), expected)
    assert not ground_truth.counts("LR, C = 2.0", 3, tmp_path).any()
    assert not ground_truth.counts("LR", 5, tmp_path)[4].any()


def test_labels_are_of_rows_that_the_model_has_not_seen(small):
    """A machine so flexible that it knows every row it has seen does not know the others."""
    one = replace(study("SVM"), learner=replace(study("SVM").learner, C=1e6))
    counts = ground_truth.counted(one, [1]).sum(axis=(0, 1))
    assert counts.sum() == 150 and counts[1] + counts[2] > 10


def test_names_are_those_of_the_published_table():
    published = read_published()
    assert list(ALGORITHMS) == list(published.loc[published["table"] == "12.1", "method"].unique())


@pytest.mark.thorough
@pytest.mark.data
def test_all_algorithms_are_of_one_data_set():
    archive_with(german.GERMAN)
    studies = [study(name) for name in ALGORITHMS]
    (data,) = {id(given.dataset): given.dataset for given in studies}.values()
    assert onehot(data.features).shape == (1000, 61)
    assert data.groups("age").value_counts().to_dict() == {"age > 25": 810, "age <= 25": 190}


def test_nothing_needs_to_be_run_for_any_of_the_13():
    measured = measure()
    assert list(measured.counts) == list(ALGORITHMS)
    assert (measured.ratios["SVM"] == 1).all()
    for name in ALGORITHMS:
        worths = [np.asarray(measured.effective_fraction(name, rho)) for rho in RHOS]
        assert all((worth > 0).all() and np.isfinite(worth).all() for worth in worths)
