"""Every YAML of conf/ names a class or function, and offers just what that takes."""

import inspect

import yaml
from hydra.utils import get_method

from tests.harness import CONF, options

GROUPS = ("dataset", "split", "learner", "intervention", "method", "evaluator")
CHOICES = [(group, name) for group in GROUPS for name in options(group)]


def stored(group, name):
    """Return the options of a choice and what it names."""
    config = yaml.safe_load((CONF / group / f"{name}.yaml").read_text())
    return config, get_method(config.pop("_target_"))


def test_keys_are_the_parameters_of_the_target():
    for group, name in CHOICES:
        config, target = stored(group, name)
        parameters = dict(inspect.signature(target).parameters)
        if group == "dataset":
            assert next(iter(parameters)) == "archive", name
            parameters.pop("archive")
        needed = {key for key, each in parameters.items() if each.default is each.empty}
        assert needed <= set(config) <= set(parameters), (group, name)


def test_yaml_defaults_are_the_code_defaults():
    """Save what tells several choices of one class apart."""
    for group, name in CHOICES:
        if group == "dataset":
            continue
        config, target = stored(group, name)
        every = [stored(group, option) for option in options(group)]
        same = [node for node, other in every if other is target]
        parameters = inspect.signature(target).parameters
        for key, value in config.items():
            default = parameters[key].default
            if len({str(node.get(key)) for node in same}) == 1:
                expected = list(default) if isinstance(default, tuple) else default
                assert value == expected, (group, name, key)
