"""Every ``conf/dataset/*.yaml``: its keys are the loader's keyword parameters."""

import importlib
import inspect

import pytest
import yaml

from fairbench.data.dataset import Datasheet
from fairbench.data.download import CHECKOUT

FILES = sorted((CHECKOUT / "conf/dataset").glob("*.yaml"))


def loader_of(path):
    options = yaml.safe_load(path.read_text())
    module, _, name = options.pop("_target_").rpartition(".")
    return importlib.import_module(module), getattr(importlib.import_module(module), name), options


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_keys_are_the_loaders_keyword_parameters(path):
    _, loader, options = loader_of(path)
    parameters = inspect.signature(loader).parameters
    names = [name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
    assert list(options) == names
    assert [*parameters][0] == "archive"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_parameter_is_documented(path):
    _, loader, options = loader_of(path)
    documentation = inspect.getdoc(loader)
    for name in options:
        if name != "seed":
            assert name in documentation, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_module_has_a_card(path):
    module, _, _ = loader_of(path)
    assert isinstance(module.DATASHEET, Datasheet)
    for text in vars(module.DATASHEET).values():
        assert text and text == text.strip() and "  " not in text
