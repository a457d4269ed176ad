"""The wheel, in an empty folder: arrays, runs, and components of one's own."""

from functools import partial

import pytest

from tests import harness
from tests.conformance import readers, trees

USE = """
import fairbench
table = fairbench.evaluate(
    [0, 1, 1, 0] * 20, [0, 1, 0, 0] * 20, sensitive_features={"sex": list("ffmm") * 20},
    score=[0.1, 0.8, 0.4, 0.2] * 20,
)
found = table.query("metric == 'equalized_odds' and statistic == 'value'")
print(fairbench.__file__, found.value.item())
"""


pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder that the wheel is unpacked in."""
    return trees.wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def python(site, tmp_path):
    """Return what runs Python in an empty folder, where no file of the tree can be imported."""
    found = {"PYTHONPATH": str(site), "FAIRBENCH_CACHE": str(tmp_path / "cache")}
    return partial(harness.python, cwd=tmp_path, **found)


def test_it_holds_one_package_and_evaluates_arrays(site, python):
    assert {path.name for path in site.iterdir() if path.suffix != ".dist-info"} == {"fairbench"}
    place, value = python("-c", USE).stdout.split()
    assert place.startswith(str(site)) and float(value) == 1.0
    (points,) = site.glob("*.dist-info/entry_points.txt")
    for point in (
        "fairbench = fairbench.cli.main:main",
        "[pytest11]\nfairbench = fairbench.cli.pytest_plugin",
        "[mlflow.model_evaluator]\nfairbench = fairbench.tracking.model_evaluator:",
    ):
        assert point in points.read_text()
    code = "from importlib.util import find_spec; print(find_spec('algorithms'))"
    assert python("-P", "-c", code).stdout.strip() == "None"


def test_it_runs_in_an_empty_folder_and_finds_components_of_ones_own(python, site, tmp_path):
    small = ("split.repeats=1", "tracking=none", "figures=false", "n_jobs=2")
    python("-m", "fairbench", "run", "dataset.n_samples=200", "method=ensemble", *small)
    assert {path.name for path in tmp_path.iterdir()} <= {"results", "cache"}
    # A metric of one's own is a change of the library.
    readers.put_components(tmp_path, readers.EXAMPLES.keys() - {"metric"})
    own = ("dataset=lottery", "learner=decision_tree", "intervention=equal_weights")
    assert "lottery" in python("-m", "fairbench", "run", *own, "method=margin", *small).stdout
    record = python("-m", "fairbench", "paper", "all", "record=true", status=2)
    assert record.stderr.startswith("error: the record of verdicts is written into a checkout")
    assert not (site / "data").exists()
