"""Commands that rerun chosen jobs: they run exactly these, in as few sweeps as products allow."""

import itertools
import shlex

import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

from fairbench.cli.rerun import commands

GRID = [
    (f"dataset={dataset}", f"method={method}", f"protect={protect}", "note='a b, c'")
    for dataset, method, protect in itertools.product("abc", "xyz", ("sex", "[sex,race]"))
]


def jobs_of(command):
    """Return the jobs that Hydra makes of a command."""
    words = shlex.split(command)
    assert words[:3] == ["python", "run.py", "-m"]
    overrides = OverridesParser.create().parse_overrides(words[3:])
    (batch,) = BasicSweeper.split_arguments(overrides, None)
    return [tuple(job) for job in batch]


@pytest.mark.parametrize(
    "kept", [[0], [0, 1], [0, 4, 8], [1, 2, 3, 17], range(18), range(0, 18, 2)]
)
def test_exactly_the_chosen_jobs(kept):
    chosen = [GRID[i] for i in kept]
    found = [job for command in commands(chosen, script="run.py") for job in jobs_of(command)]
    assert sorted(found) == sorted(chosen)


@pytest.mark.parametrize(("kept", "count"), [(range(18), 1), ([0, 2, 4], 1), ([0, 8], 2)])
def test_a_product_is_one_sweep(kept, count):
    assert len(commands([GRID[i] for i in kept], script="run.py")) == count


def test_launcher_is_kept():
    (command,) = commands([("a=1",)], script="run.py", hydra=["hydra/launcher=joblib"])
    assert command == "python run.py -m hydra/launcher=joblib a=1"
