"""The real files, where they are found: rows, columns, base rates and groups as published."""

import functools
import importlib

import pytest
import yaml

from fairbench.download import CHECKOUT, Archive
from fairbench.encoding import onehot_names
from fairbench.errors import DataError

# task: rows, one-hot columns, base rate (or mean of the target), and the groups' sizes.
EXPECTED = {
    "adult": (
        45222,
        102,
        0.2478,
        {"sex": {"Male": 30527, "Female": 14695}, "age": {"age >= 25": 37914, "age < 25": 7308}},
    ),
    "german": (
        1000,
        57,
        0.3,
        {"age": {"age >= 25": 851, "age < 25": 149}, "sex": {"male": 690, "female": 310}},
    ),
    "compas": (
        6167,
        406,
        0.4555,
        {"sex": {"Male": 4994, "Female": 1173}, "age": {"25 to 45": 3528}},
    ),
    "compas_violent": (4010, 332, 0.1626, {"sex": {"Male": 3173, "Female": 837}}),
}


@functools.cache
def load(task):
    """Return a task's data set as its YAML asks for it, or skip where a file is not found."""
    options = yaml.safe_load((CHECKOUT / f"conf/dataset/{task}.yaml").read_text())
    module, _, name = options.pop("_target_").rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)(Archive.of(download=False), **options)
    except DataError as error:
        if "not found in" not in str(error):
            raise
        pytest.skip(f"raw file not found: {error}")


@pytest.mark.data
@pytest.mark.parametrize("task", EXPECTED)
def test_figures(task):
    rows, columns, rate, groups = EXPECTED[task]
    data = load(task)
    assert len(data) == rows
    if columns is not None:
        assert len(onehot_names(data.features)) == columns
    assert data.target.mean() == pytest.approx(rate, abs=5e-5)
    for attribute, sizes in groups.items():
        found = data.sensitive[attribute].value_counts().to_dict()
        assert {label: found[label] for label in sizes} == sizes


@pytest.mark.data
def test_adult_has_the_archives_own_split():
    assert load("adult").partition.value_counts().to_dict() == {"train": 30162, "test": 15060}
