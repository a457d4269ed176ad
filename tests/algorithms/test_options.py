"""Options of components that cannot be are refused in a sentence that names the option."""

import pytest
from omegaconf import OmegaConf

from fairbench.components import class_named
from fairbench.core.errors import UserError
from tests.harness import CONF

# Component -> its option -> values that it refuses.
REFUSED = {
    "learner/bayesian_nn": {
        "prior_narrow": [0.0], "prior_share": [1.0], "likelihood_weight": [0.0],
        "initial_means": ["normall"],
    },
    "learner/ft_transformer": {"width": [30]},
    "learner/lightgbm": {"num_leaves": [1]},
    "learner/mlp": {"hidden": [[64, 0]], "validation": [1.0]},
    "learner/sequence_transformer": {
        "width": [6], "modalities": [["a", "a"]], "length": [0], "cut": ["left"],
        "device": ["tpu"], "dropout": [1.0],
    },
    "learner/svm": {"folds": [1]},
    "learner/tabm": {"members": [1], "device": ["gpu"]},
    "learner/xgboost": {"device": ["gpu"]},
    "intervention/disparate_impact_remover": {"repair_level": [-0.1, 1.1]},
    "intervention/disparate_mistreatment": {"constraint": ["fnr"]},
    "intervention/exponentiated_gradient": {"constraints": ["parity"], "eps": [0]},
    "intervention/fairgbm": {"constraint_type": ["TPR"]},
    "intervention/grid_search": {
        "loss": ["cubic"], "grid_size": [1], "constraint_weight": [1.1],
    },
    "intervention/linear_ferm": {"label": [2]},
    "intervention/multicalibration": {
        "held_out": [1], "tolerance": [0], "bins": [0], "smallest": [0], "among": ["all"],
    },
    "intervention/reweighing": {"strength": [1.5]},
    "intervention/threshold_optimizer": {
        "constraints": ["parity"], "objective": ["accurate"], "predict_method": ["labels"],
    },
    "method/conformal": {"guarantee": ["everyone"], "levels": [[0.905], [1.0], [0.0]]},
    "method/deep_ensemble": {"members": [1]},
    "method/self_consistency": {"members": [1]},
    "method/thresholded": {"threshold": [0.0, 1.0, 1.5]},
}  # fmt: skip
CASES = [
    (component, option, value)
    for component, options in REFUSED.items()
    for option, values in options.items()
    for value in values
]


@pytest.mark.parametrize(("component", "option", "value"), CASES)
def test_an_option_that_cannot_be_is_refused_by_its_name(component, option, value):
    config = OmegaConf.to_container(OmegaConf.load(CONF / f"{component}.yaml")) | {option: value}
    target = config.pop("_target_")
    with pytest.raises(UserError) as refused:
        class_named(target)(**config)
    said = str(value[-1] if isinstance(value, list) else value)
    assert f"{component.split('/')[0]}.{option}" in str(refused.value)
    assert said in str(refused.value)
