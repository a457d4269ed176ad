"""Combinations that cannot work are refused in one sentence, which names what can."""

import re

import pytest

from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.methods.baseline import Baseline
from fairbench.core.errors import IncompatibleError, UserError
from fairbench.experiments import build as compatibility
from fairbench.experiments import pipeline
from tests.harness import TINY, configuration

OF_NUMBERS, OF_CLASSES = "dataset=simulated_regression ", "dataset=simulated_classes "
OF_SEQUENCES = "dataset=simulated_sequences method=baseline "
SEQUENCES = f"{OF_SEQUENCES}learner=sequence_transformer "
# Choices, what the sentence says, and what it advises.
REFUSED = [
    (OF_NUMBERS + "method=binomial_nll",
     "method=binomial_nll needs a binary target or one of several classes, and "
     "dataset=simulated_regression is a regression: use method=baseline, beta_nll"),
    ("learner=svm learner.max_rows=99", "takes 99 rows and dataset=simulated has 200 .raise "),
    (OF_NUMBERS + "method=baseline intervention=hardt",
     "intervention=hardt needs a binary target, .* use intervention=disparate_impact_remover"),
    ("intervention=ferm method=baseline",
     "needs a learner with a kernel, which learner=xgboost has not: use learner=svm"),
    ("intervention=linear_ferm method=baseline learner=svm",
     "which learner=svm has not: use learner=linear_svm or logistic_regression"),
    ("intervention=fairgbm", "use learner=lightgbm"),
    ("method=bayes_by_backprop", "a posterior over weights, .* use learner=bayesian_nn"),
    ("method=mc_dropout learner=mlp", "use learner=mlp learner.dropout=0.1"),
    ("method=network_members", "members of its own, .* use learner=tabm"),
    ("method=bayes_by_backprop learner=bayesian_nn intervention=hardt",
     "which intervention=hardt does not pass on: use intervention=none or reweighing"),
    (OF_NUMBERS + "learner=random_forest method=normal_nll",
     "method=normal_nll minimises normal_nll, and learner=random_forest only minimises "
     "binomial, softmax, squared_error: use learner=bayesian_nn, mlp, tabm or xgboost"),
    (OF_NUMBERS + "intervention=grid_search method=normal_nll",
     "intervention=grid_search only takes binomial, squared_error: use method=baseline"),
    (OF_CLASSES + "method=baseline learner=svm",
     "dataset=simulated_classes is of several classes: use learner=bayesian_nn"),
    ("intervention=threshold_optimizer method=binomial_nll",
     "reads a probability, and intervention=threshold_optimizer predicts labels only: "
     "use method=baseline, ensemble"),
    ("dataset.n_groups=3 learner=svm intervention=ferm method=baseline",
     "intervention=ferm compares at most 2 groups, and group of dataset=simulated has 3 "),
    ("learner=sequence_transformer method=baseline",
     "learner=sequence_transformer takes sequences, and dataset=simulated has"),
    (OF_SEQUENCES + "learner=xgboost",
     "learner=xgboost takes columns, and dataset=simulated_sequences has sequences: "
     "use learner=sequence_transformer"),
    (SEQUENCES + "intervention=disparate_impact_remover",
     "takes columns, and dataset=simulated_sequences has sequences: use intervention="),
    (SEQUENCES + "evaluator.neighbours=3", "evaluator.neighbours compares columns, and dataset="),
    (SEQUENCES + "evaluator.feature_shift_rates=[0.1]",
     "evaluator.feature_shift_rates compares columns, and "),
]  # fmt: skip


def names_in(advice):
    return set(re.split(r", | or |=| ", advice.strip(", "))) - {""}


@pytest.mark.parametrize(("choices", "sentence"), REFUSED, ids=[case[0] for case in REFUSED])
def test_a_combination_that_cannot_work_is_refused_with_what_can(choices, sentence, tmp_path):
    cause, _, advice = f" {sentence}".partition(" use ")
    with pytest.raises(IncompatibleError, match=cause.strip() or None) as refused:
        pipeline.prepare(configuration(*choices.split(), *TINY, results=tmp_path))
    # What is added later may be advised as well.
    assert names_in(advice) <= names_in(str(refused.value).rpartition(" use ")[2])
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_package_that_is_missing_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(compatibility, "find_spec", lambda name: name != "fairgbm" or None)
    with pytest.raises(IncompatibleError, match=r"package fairgbm, .*\(pip install fairgbm\): use"):
        pipeline.prepare(configuration("learner=lightgbm", *TINY, results=tmp_path))


UNASKED = (None, None, None, "", True)  # split, evaluator ... of which no combination is refused


def test_a_component_that_inherits_from_no_contract_is_told_what_to_write(make_dataset):
    class Plain:
        encoding = None

    parts = (Plain(), NoIntervention(), Baseline(), ("group",))
    names = {"learner": "plain", "intervention": "none", "method": "baseline"}
    with pytest.raises(UserError, match=r"learner=plain .* write class Plain\(Learner\)"):
        compatibility._refusal(compatibility._Components(make_dataset(10), *parts, names, *UNASKED))
