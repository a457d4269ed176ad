"""Every YAML of conf/ names a class or function, and offers just what that takes."""

import inspect

import pytest
import yaml
from hydra.utils import get_method

from tests.harness import CONF, options

GROUPS = ("dataset", "split", "learner", "intervention", "method", "evaluator")
CHOICES = [(group, name) for group in GROUPS for name in options(group)]


@pytest.mark.parametrize(("group", "name"), CHOICES)
def test_keys_are_the_parameters_of_the_target(group, name):
    config = yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
    target = get_method(config.pop("_target_"))
    parameters = dict(inspect.signature(target).parameters)
    if group == "dataset":
        assert next(iter(parameters)) == "archive"
        parameters.pop("archive")
    assert set(config) == set(parameters)


@pytest.mark.parametrize(("group", "name"), [c for c in CHOICES if c[0] != "dataset"])
def test_yaml_defaults_are_the_code_defaults(group, name):
    config = yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
    target = get_method(config.pop("_target_"))
    for key, parameter in inspect.signature(target).parameters.items():
        default = parameter.default
        assert config[key] == (list(default) if isinstance(default, tuple) else default), key


@pytest.mark.parametrize(("group", "name"), CHOICES)
def test_target_is_documented(group, name):
    config = yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
    target = get_method(config["_target_"])
    assert inspect.getdoc(target)
    assert inspect.getdoc(inspect.getmodule(target))
