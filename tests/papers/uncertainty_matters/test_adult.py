"""Section 14.1's machines, and what their counts on a test file say of the printed numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from datasets import adult as dataset
from fairbench.data.download import Archive
from papers.uncertainty_matters import adult
from papers.uncertainty_matters.readings import RIGHT
from papers.uncertainty_matters.tables import read_published

ROWS = read_published().query("table in @adult.TABLES")


@pytest.fixture(scope="module")
def fitted():
    draw = np.random.default_rng(0)
    X, groups = draw.normal(size=(300, 4)), draw.integers(0, 2, 300)
    X[:, 1] += groups
    y = (X[:, 0] + X[:, 1] + draw.normal(size=300) > 0.5).astype(int)
    return adult.Machines(X, y, groups.astype(np.intp), np.arange(120))


def test_machines_are_those_of_scikit_learn(fitted):
    used = fitted.used
    plain = SVC(C=1.0, gamma=0.1).fit(fitted.X[used], fitted.y[used]).predict(fitted.X)
    assert (fitted.labels("SVM") == plain).mean() > 0.995
    linear = SVC(C=1.0, kernel="linear").fit(fitted.X[used], fitted.y[used]).predict(fitted.X)
    assert (fitted.labels("Linear SVM") == linear).mean() > 0.995


def test_a_fair_machine_tells_the_groups_less_apart(fitted):
    rich = fitted.y == 1

    def gap(name):
        labels = fitted.labels(name)
        first, second = (labels[rich & (fitted.groups == g)].mean() for g in (0, 1))
        return abs(first - second)

    assert gap("Linear FERM") < gap("Linear SVM")
    assert gap("SVM + Hardt") < gap("SVM") + 0.1


def test_every_published_number_has_an_answer(fitted):
    found = pd.DataFrame(adult.answers(adult.joint_tables(fitted), ROWS))
    assert sorted(found.loc[found["label"] == "", "row"]) == sorted(ROWS.index)
    assert found["mean"].between(0, 1).all()
    assert (found["label"] == RIGHT.label).sum() == 3


@pytest.mark.data
@pytest.mark.slow
def test_kept_numbers_are_those_of_adult():
    if Archive.of(download=False).locate(dataset.TRAIN) is None:
        pytest.skip("not found")
    found = pd.DataFrame(adult.numbers(ROWS, None))
    kept = pd.read_csv(adult.NUMBERS)
    np.testing.assert_allclose(found["mean"], kept["mean"], atol=1e-4)
    off = (kept["mean"] - ROWS["value"].astype(float)[kept["row"]].to_numpy()).abs()
    assert (off[kept["label"].isna()] <= 0.1).mean() > 0.9
