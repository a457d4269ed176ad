"""Any estimator of scikit-learn by the name of its class: fits, identity, and what is refused."""

import numpy as np
import pytest

from fairbench.components.algorithms.fitters.single import Single
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.learners.random_forest import RandomForest
from fairbench.components.algorithms.learners.sklearn import learner_of
from fairbench.components.algorithms.losses import Binomial
from fairbench.components.datasets import simulated
from fairbench.core.errors import UserError
from fairbench.data.splits import RepeatedHoldout
from fairbench.experiments.compute import compute
from fairbench.experiments.contracts import Study, cells_of

TREES = "sklearn.ensemble.ExtraTreesClassifier"


def cell(learner, task="binary", seed=0):
    data = simulated.load(None, n_samples=200, task=task)
    study = Study(data, learner, NoIntervention(), Single(), seed, ("group",))
    return cells_of(study, RepeatedHoldout(repeats=1).folds(data, 0))[0]


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_it_fits_what_the_learner_of_that_class_fits(task):
    kind = "Regressor" if task == "regression" else "Classifier"
    ours = cell(RandomForest(n_estimators=7), task)
    named = cell(learner_of(f"sklearn.ensemble.RandomForest{kind}", {"n_estimators": 7}), task)
    expected, outputs = (compute(each.study, each.fold)[0] for each in (ours, named))
    assert outputs.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(outputs[name], values)


def test_class_options_and_seed_make_the_fit():
    made = [
        cell(learner_of(TREES)),
        cell(learner_of(TREES, {"n_estimators": 50})),
        cell(learner_of(TREES, {"n_estimators": 51})),
        cell(learner_of("sklearn.tree.ExtraTreeClassifier")),
        cell(learner_of(TREES), seed=1),
    ]
    assert len({each.id for each in made}) == len(made)
    assert cell(learner_of(TREES, {})).id == made[0].id


def test_a_row_counts_as_often_as_its_weight_where_weights_are_not_taken():
    x, rng = np.arange(12.0)[:, None], np.random.default_rng(0)
    weight, y = rng.integers(0, 3, 12).astype(float), np.tile([0.0, 1.0], 6)
    loss = Single().loss(simulated.load(None, n_samples=50).task)
    learner = learner_of("sklearn.neighbors.KNeighborsClassifier", {"n_neighbors": 2})
    weighted = learner.estimator(loss, 0).fit(x, y, weight).predict_proba(x)
    rows = np.repeat(np.arange(12), weight.astype(int))
    copied = learner.estimator(loss, 0).fit(x[rows], y[rows]).predict_proba(x)
    np.testing.assert_array_equal(weighted, copied)
    with pytest.raises(UserError, match="KNeighborsClassifier takes no weights"):
        learner.estimator(loss, 0).fit(x, y, weight / 2)


def test_a_value_that_an_option_cannot_have_is_refused_by_its_name():
    model = learner_of(TREES, {"n_estimators": -5}).estimator(Binomial(), 0)
    with pytest.raises(UserError, match="learner.options: The 'n_estimators' parameter .* an int"):
        model.fit(np.zeros((4, 1)), np.array([0, 1, 0, 1]))
