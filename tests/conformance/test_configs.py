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
    needed = {name for name, each in parameters.items() if each.default is each.empty}
    assert needed <= set(config) <= set(parameters)


@pytest.mark.parametrize(("group", "name"), [c for c in CHOICES if c[0] != "dataset"])
def test_yaml_defaults_are_the_code_defaults(group, name):
    """Save what tells several choices of one class apart."""
    every = [yaml.safe_load((CONF / group / f"{each}.yaml").read_text()) for each in options(group)]
    config = yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
    same = [each for each in every if each["_target_"] == config["_target_"]]
    parameters = inspect.signature(get_method(config.pop("_target_"))).parameters
    for key, value in config.items():
        default = parameters[key].default
        if len({str(each.get(key)) for each in same}) == 1:
            assert value == (list(default) if isinstance(default, tuple) else default), key


@pytest.mark.parametrize(("group", "name"), CHOICES)
def test_target_is_documented(group, name):
    config = yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
    target = get_method(config["_target_"])
    assert inspect.getdoc(target)
    assert inspect.getdoc(inspect.getmodule(target))
