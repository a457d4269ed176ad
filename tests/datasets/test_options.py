"""Every ``conf/dataset/*.yaml``: its keys are the loader's keyword parameters."""

import inspect

import pytest
import yaml

from fairbench.components import CHECKOUT, imported
from fairbench.data.dataset import Datasheet, family_of

FILES = sorted((CHECKOUT / "conf/dataset").glob("*.yaml"))


def loader_of(path):
    options = yaml.safe_load(path.read_text())
    module, _, name = options.pop("_target_").rpartition(".")
    return imported(module), getattr(imported(module), name), options


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_keys_are_the_loaders_keyword_parameters(path):
    _, loader, options = loader_of(path)
    parameters = inspect.signature(loader).parameters
    names = [
        name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY
    ]
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
    texts = vars(module.DATASHEET) | {"family": family_of(module)}
    for text in texts.values():
        assert text and text == text.strip() and "  " not in text


def test_data_sets_of_the_same_people_or_source_are_one_family():
    family = {path.stem: family_of(loader_of(path)[0]) for path in FILES}
    by_family: dict[str, set[str]] = {}
    for name, parent in family.items():
        by_family.setdefault(parent, set()).add(name)
    assert by_family["german"] == {"german", "south_german_credit"}
    assert by_family["hmda_boston"] == {"hmda_boston", "loan_application"}
    assert by_family["compas"] == {"compas", "compas_violent", "compas_zafar"}
    assert by_family["student"] == {"student_mat", "student_por"}
    assert by_family["acs"] == {name for name in family if name.startswith("acs")}
    assert by_family["law_school"] == {name for name in family if name.startswith("law_school")}
    assert by_family["simulated"] >= {"sd1", "sd2", "sd3", "simulated", "simulated_sequences"}
    assert family["recid"] == "recid"
