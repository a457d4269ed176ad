"""Whole weights are copies of rows to every intervention that takes weights."""

import numpy as np
import pytest

from fairbench.components.algorithms.interventions.disparate_mistreatment import (
    DisparateMistreatment,
)
from fairbench.components.algorithms.interventions.exponentiated_gradient import (
    ExponentiatedGradient,
)
from fairbench.components.algorithms.interventions.grid_search import GridSearch
from fairbench.components.algorithms.interventions.hardt import Hardt
from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.interventions.reweighing import Reweighing
from fairbench.components.algorithms.interventions.threshold_optimizer import ThresholdOptimizer
from fairbench.components.algorithms.learners.logistic_regression import LogisticRegression
from tests.algorithms.interventions.encoded import rows, wrapped

INTERVENTIONS = [
    DisparateMistreatment(),
    ExponentiatedGradient(max_iter=8),
    GridSearch(),
    Hardt(),
    Hardt(derived_from="scores"),
    NoIntervention(),
    Reweighing(),
    ThresholdOptimizer(),
    ThresholdOptimizer(predict_method="predict", constraints="equal_opportunity"),
]
LEARNER = LogisticRegression(tol=1e-10, max_iter=10_000)


@pytest.mark.parametrize("intervention", INTERVENTIONS, ids=str)
def test_a_whole_weight_is_a_number_of_copies(intervention):
    train, _ = rows(n_groups=2, base_rate_gap=2.0)
    n = len(train.y)
    weight = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n)).astype(float)
    copies = train.take(np.repeat(np.arange(n), weight.astype(int)))
    fits = [(train, weight), (copies, None), (train, None)]
    models = [part.fit(wrapped(intervention, LEARNER), given) for part, given in fits]
    weighted, copied, plain = (next(iter(train.outputs(each).values())) for each in models)
    # Estimators agree to their solver's tolerance, so a row at a threshold may differ.
    assert np.mean(np.abs(weighted - copied) > 2e-3) < 0.01
    assert np.mean(np.abs(weighted - plain) > 2e-3) > 0.01
