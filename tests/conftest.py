"""Fixtures that several test modules share."""

import os

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import main
from fairbench.components import FOLDER
from fairbench.data.dataset import Dataset, Task


def pytest_collection_modifyitems(items):
    """Begin with the longest tests: the last one to end keeps the other worker waiting."""
    first = ("tests/slurm/", "test_the_site_is_built_without_a_warning")
    items.sort(key=lambda item: not any(name in item.nodeid for name in first))


@pytest.fixture(autouse=True)
def _no_folder_of_a_command_before():
    """Have a command in this process tell its workers its own folder, and no later command."""
    os.environ.pop(FOLDER, None)
    yield
    os.environ.pop(FOLDER, None)


@pytest.fixture
def make_dataset():
    """Return a factory of small valid data sets, any part of which can be replaced."""

    def make(n=60, *, seed=0, **parts):
        draw = np.random.default_rng(seed)
        columns = {
            "age": draw.normal(40, 10, n),
            "employed": draw.random(n) < 0.5,
            "city": pd.Categorical(draw.choice(["Bern", "Oslo", "Rome"], n)),
        }
        defaults = {
            "name": "toy",
            "task": Task.BINARY,
            "features": pd.DataFrame(columns),
            "target": pd.Series((np.arange(n) % 3 == 0).astype(int), name="default"),
            "sensitive": pd.DataFrame(
                {
                    "sex": pd.Categorical(np.where(np.arange(n) % 2, "Female", "Male")),
                    "race": pd.Categorical(np.where(np.arange(n) % 5, "White", "Black")),
                }
            ),
            "privileged": {"sex": "Male", "race": "White"},
            "target_name": "default",
        }
        return Dataset(**{**defaults, **parts})

    return make


@pytest.fixture
def said_by(capsys):
    """Return a function that gives a command here, and returns what it prints, on one line."""

    def said(*words, status=0):
        capsys.readouterr()
        assert main([*map(str, words)]) == status
        return " ".join(capsys.readouterr().out.split())

    return said


@pytest.fixture
def refused(capsys):
    """Return a function that has words be refused in one line, and returns the line."""

    def line(*words, message="", by=main):
        assert by([*map(str, words)]) == 2
        printed = capsys.readouterr()
        assert not printed.out
        assert printed.err.startswith("error: ") and printed.err.count("\n") == 1
        assert message in printed.err
        return printed.err

    return line
