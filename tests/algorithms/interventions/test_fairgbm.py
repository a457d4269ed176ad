"""FairGBM: the package called directly, and the learner itself without its multipliers."""

import fairgbm
import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.interventions.fairgbm import FairGBM
from fairbench.components.algorithms.learners.lightgbm import LightGBM
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError
from fairbench.data.features import Encoding
from tests.algorithms.interventions.encoded import Rows, rows, wrapped


def model(**options):
    return wrapped(FairGBM(**options), LightGBM(rounds=30), 2)


@pytest.mark.parametrize("constraint_type", ["FPR,FNR", "FPR", "FNR"])
def test_equals_the_package_called_directly(constraint_type):
    train, test = rows(Encoding.ONEHOT, n=900)
    ours = train.fit(model(constraint_type=constraint_type, multiplier_learning_rate=0.3))
    parameters = {
        "objective": "constrained_cross_entropy",
        "constraint_type": constraint_type,
        "multiplier_learning_rate": 0.3,
        "seed": 2,
        "num_threads": 1,
        "verbosity": -1,
    }
    groups = pd.factorize(train.groups, sort=True)[0]
    data = fairgbm.Dataset(train.X, train.y, constraint_group=groups)
    theirs = fairgbm.train(parameters, data, 30).predict(test.X)
    np.testing.assert_array_equal(test.outputs(ours)["score"], theirs)


def test_without_multipliers_it_is_the_learner():
    train, test = rows(Encoding.ONEHOT, n=900, n_groups=2)
    weight = np.random.default_rng(0).integers(0, 3, size=len(train.y)).astype(float)
    ours = train.fit(model(multiplier_learning_rate=0), weight)
    learner = LightGBM(rounds=30).estimator(Binomial(), 2)
    plain = learner.fit(train.X, train.y, sample_weight=weight).predict_proba(test.X)[:, 1]
    np.testing.assert_array_equal(test.outputs(ours)["score"], plain)


def test_refuses_what_it_cannot_do():
    train, _ = rows(Encoding.ONEHOT, n=600, n_groups=2)
    with pytest.raises(UserError, match="copies of rows.*fractions"):
        train.fit(model(), np.full(len(train.y), 0.5))
    lacking = Rows(train.X, train.y * (train.groups == "majority").to_numpy(), train.groups)
    with pytest.raises(UserError, match="label 1 in every group.*group 'minority'"):
        lacking.fit(model())
    assert np.isfinite(lacking.outputs(lacking.fit(model(constraint_type="FPR")))["score"]).all()
