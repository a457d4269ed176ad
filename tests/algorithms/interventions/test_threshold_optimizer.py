"""The threshold optimiser equals fairlearn around the plain estimator."""

import fairlearn.postprocessing
import numpy as np
import pytest

from fairbench.components.algorithms.interventions.threshold_optimizer import ThresholdOptimizer
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.losses import Binomial
from fairbench.core.errors import UserError
from fairbench.data.features import Encoding
from tests.algorithms.interventions.encoded import rows

NAMES = {
    "demographic_parity": "demographic_parity",
    "equalized_odds": "equalized_odds",
    "equal_opportunity": "true_positive_rate_parity",
}


@pytest.mark.parametrize("constraints", NAMES)
@pytest.mark.parametrize("predict_method", ["auto", "predict"])
@pytest.mark.parametrize(
    ("learner", "encoding"),
    [(LogisticRegression(), Encoding.STANDARD), (XGBoost(), Encoding.STANDARD)],
    ids=["logistic_regression", "xgboost"],
)
def test_equals_fairlearn_called_directly(learner, encoding, predict_method, constraints):
    train, test = rows(encoding)
    plain = learner.estimator(Binomial(), 0).fit(train.X, train.y)
    theirs = fairlearn.postprocessing.ThresholdOptimizer(
        estimator=plain,
        constraints=NAMES[constraints],
        predict_method=predict_method,
        prefit=True,
    ).fit(train.X, train.y, sensitive_features=train.groups.astype(str))
    intervention = ThresholdOptimizer(constraints=constraints, predict_method=predict_method)
    ours = train.fit(intervention.wrap(learner.estimator(Binomial(), 0), 0))
    np.testing.assert_array_equal(
        test.outputs(ours, 7)["prediction"],
        theirs.predict(test.X, sensitive_features=test.groups.astype(str), random_state=7),
    )


@pytest.mark.parametrize("encoding", [Encoding.ONEHOT, Encoding.NATIVE])
def test_the_layout_of_the_frame_does_not_matter(encoding):
    def predictions(encoding):
        train, test = rows(encoding)
        learner = XGBoost(features=encoding)
        model = train.fit(ThresholdOptimizer().wrap(learner.estimator(Binomial(), 0), 0))
        return test.outputs(model)["prediction"]

    # Bins and splits are those of the dense matrix, up to rows at a threshold.
    assert np.mean(predictions(encoding) != predictions(Encoding.STANDARD)) < 0.1


@pytest.mark.parametrize(
    ("option", "value"),
    [("constraints", "parity"), ("objective", "accurate"), ("predict_method", "labels")],
)
def test_unknown_names_are_refused_with_the_valid_ones(option, value):
    with pytest.raises(UserError, match=f"intervention.{option} '{value}'.*valid: "):
        ThresholdOptimizer(**{option: value})
