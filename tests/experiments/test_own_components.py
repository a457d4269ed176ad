"""Components of one's own: in the folder that one is in, and in installed packages."""

import re
import sys
from importlib.metadata import EntryPoint

import pytest

from fairbench import components
from fairbench.core.errors import UserError
from fairbench.core.processes import failure
from fairbench.experiments.execute import WorkUnit, _work
from tests.harness import ROOT, fairbench, ran, run_py

SMALL = ("split.repeats=1", "tracking=none", "figures=false")


def own(folder, name="own_tree"):
    """Put the example of a learner into a folder, under a name that no contributor has taken."""
    example = ROOT / "docs" / "examples" / "learner" / "decision_tree"
    for kind, suffix in (("algorithms/learners", ".py"), ("conf/learner", ".yaml")):
        (folder / kind).mkdir(parents=True)
        text = example.with_suffix(suffix).read_text().replace("decision_tree.", f"{name}.")
        (folder / kind / f"{name}{suffix}").write_text(text)
    return folder


@pytest.fixture
def anew(monkeypatch):
    """Have folders be looked for anew, and forgotten afterwards."""
    components.folders.cache_clear()
    packages = [components.imported(f"algorithms{part}") for part in ("", ".learners", ".methods")]
    before = [list(package.__path__) for package in packages]
    components.folders.cache_clear()
    yield
    for package, path in zip(packages, before, strict=True):
        package.__path__[:] = path
    for name in [name for name in sys.modules if name.endswith("learners.own_tree")]:
        del sys.modules[name]
    components.folders.cache_clear()


EXPERIMENT = """
# @package _global_
dataset: {n_samples: 200}
split: {repeats: 1}
hydra:
  sweeper:
    params:
      method: choice(baseline,binomial_nll)
      evaluator.spread_groups: "[5,10],[20]"
      evaluator.neighbours: range(3,4)
"""


@pytest.mark.thorough
def test_experiments_of_a_folder_that_has_nothing_else(tmp_path):
    """They are swept, alone and with their folder, shown composed, and on the page of runs."""
    folder = tmp_path / "conf" / "experiment"
    (folder / "set").mkdir(parents=True)
    for name in ("mine", "set/a", "set/b"):
        (folder / f"{name}.yaml").write_text(EXPERIMENT)
    done = ran("-m", "experiment=mine", "tracking=none", "figures=false", cwd=tmp_path)
    assert "4 runs finished" in done.stdout
    both = ran("-m", "experiment=set", "tracking=none", "plan=true", cwd=tmp_path).stdout
    assert both.count("simulated, xgboost") == 4  # jobs that are equal are one
    for words in (("experiment=mine", "--cfg", "job"), ("--cfg", "job", "experiment=mine")):
        assert "n_samples: 200" in ran(*words, cwd=tmp_path).stdout
    assert "mine, set, " in ran("--help", cwd=tmp_path).stdout
    for name in ("mine", "set"):
        page = fairbench("report", f"experiment={name}", cwd=tmp_path).stdout
        assert page.startswith("4 runs on ")
    wrong = run_py("-m", "experiment=mein", cwd=tmp_path)
    assert wrong.returncode == 2 and "did you mean mine?" in wrong.stderr
    (folder / "mine.yaml").write_text("# @package _global_\ntracking: none\n")
    wrong = run_py("experiment=mine", cwd=tmp_path)
    assert wrong.returncode == 2 and "by defaults, as 'override /tracking: none'" in wrong.stderr


@pytest.mark.thorough
def test_data_sets_of_the_folder_are_known_to_the_verb_of_data(tmp_path):
    """Also one that is a choice of options of ours, and one without a datasheet."""
    example = ROOT / "docs" / "examples" / "dataset" / "lottery"
    code = re.sub(r"DATASHEET = .*?\n\)\n", "", example.with_suffix(".py").read_text(), flags=re.S)
    for name, text in {
        "datasets/lottery.py": code.replace("import Dataset, Datasheet,", "import Dataset,"),
        "conf/dataset/lottery.yaml": example.with_suffix(".yaml").read_text(),
        "conf/dataset/mine.yaml": "# Mine.\ndefaults: [table]\npath: mine.csv\n"
        "target: won\npositive: 'yes'\nsensitive: [sex]\n",
        "mine.csv": example.with_suffix(".csv").read_text(),
        "data/lottery/lottery.csv": example.with_suffix(".csv").read_text(),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name in ("lottery", "mine"):
        shown = fairbench("data", name, cwd=tmp_path).stdout
        assert re.search(r"rows +240\n", shown) and f"run dataset={name}" in shown
        assert re.search(rf"^  {name} ", fairbench("data", cwd=tmp_path).stdout, re.M)
        done = ran(f"dataset={name}", "method=baseline", *SMALL, cwd=tmp_path)
        assert f"{name}, xgboost, baseline" in done.stdout


def test_a_module_of_the_name_of_ours_is_refused(tmp_path):
    own(tmp_path, "xgboost")
    done = run_py("dataset.n_samples=200", *SMALL, cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "algorithms/learners/xgboost.py: rename it" in done.stderr


def test_a_package_that_declares_components_is_found(tmp_path, monkeypatch, anew):
    own(tmp_path / "their_components")
    (tmp_path / "their_components" / "__init__.py").touch()
    point = EntryPoint("theirs", "their_components", "fairbench.components")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(components, "entry_points", lambda group: [point])
    assert tmp_path / "their_components" in components.folders()
    made = components.imported("algorithms.learners.own_tree")
    assert made.__name__ == "fairbench.components.algorithms.learners.own_tree"
    assert components.folders()[-1] == tmp_path / "their_components"


def test_an_entry_point_of_no_package_is_named(monkeypatch, anew):
    point = EntryPoint("theirs", "json.decoder", "fairbench.components")
    monkeypatch.setattr(components, "entry_points", lambda group: [point])
    with pytest.raises(UserError, match="'theirs' of fairbench.components names json.decoder"):
        components.folders()


def test_a_module_that_is_nowhere_is_named():
    with pytest.raises(UserError, match="the module algorithms.learners.no_such, which is in none"):
        components.imported("algorithms.learners.no_such")


@pytest.mark.parametrize(
    ("name", "installed", "command"),
    [
        ("torch", True, "pip install 'fairbench-harness[networks]'"),
        ("mcgrad.table", True, "pip install 'fairbench-harness[mcgrad]'"),
        ("torch", False, "make setup"),
        ("mcgrad", False, "pip install '.[mcgrad]'"),
    ],
)
def test_what_is_missing_names_the_command_of_this_installation(
    name, installed, command, monkeypatch, tmp_path
):
    needed = ["rich>=13; extra == 'audit'", 'torch==2; extra == "networks"',
              'mcgrad==0.1; extra == "mcgrad"', "numpy>=2"]  # fmt: skip
    monkeypatch.setattr("fairbench.core.processes.requires", lambda name: needed)
    if installed:
        monkeypatch.setattr("fairbench.core.processes._CHECKOUT", tmp_path / "nowhere")
    said = failure(ModuleNotFoundError("no", name=name))
    assert said[0] == f"the package {name.partition('.')[0]} is not installed: {command}"
    for own in ("fairbench.nothing", "sklearn.treee", "nowhere"):
        assert failure(ModuleNotFoundError("no", name=own))[1]  # a traceback


def test_a_cell_that_needs_a_missing_package_fails_in_a_line(monkeypatch):
    def fails(task):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr("fairbench.experiments.execute.prepared", fails)
    done = _work(WorkUnit(None))
    assert done.error.startswith("the package torch is not installed") and not done.trace
