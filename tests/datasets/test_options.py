"""Every ``conf/dataset/*.yaml``: its keys are the loader's keyword parameters."""

import inspect
import re

import pytest
import yaml

from fairbench.components import CHECKOUT, imported
from fairbench.data.dataset import family_of

FILES = sorted((CHECKOUT / "conf/dataset").glob("*.yaml"))


def loader_of(path):
    options = yaml.safe_load(path.read_text())
    module, _, name = options.pop("_target_").rpartition(".")
    return imported(module), getattr(imported(module), name), options


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_keys_are_the_loaders_keyword_parameters_which_are_documented(path):
    module, loader, options = loader_of(path)
    archive, *others = inspect.signature(loader).parameters.values()
    assert archive.name == "archive"
    assert list(options) == [each.name for each in others if each.kind is each.KEYWORD_ONLY]
    assert {*options} - {"seed"} <= {*re.findall(r"\w+", inspect.getdoc(loader))}
    for text in (vars(module.DATASHEET) | {"family": family_of(module)}).values():
        assert text and text == text.strip() and "  " not in text


def test_data_sets_of_the_same_people_or_source_are_one_family():
    family = {path.stem: family_of(loader_of(path)[0]) for path in FILES}
    for parent, names in {
        "german": {"german", "south_german_credit"},
        "hmda_boston": {"hmda_boston", "loan_application"},
        "compas": {"compas", "compas_violent", "compas_zafar"},
        "student": {"student_mat", "student_por"},
        "acs": {name for name in family if name.startswith("acs")},
        "law_school": {name for name in family if name.startswith("law_school")},
        "recid": {"recid"},
    }.items():
        assert {name for name in family if family[name] == parent} == names
    simulated = ("sd1", "sd2", "sd3", "simulated", "simulated_sequences")
    assert {family[name] for name in simulated} == {"simulated"}
