"""The wheel, in an empty folder: arrays, audits, runs, and components of one's own."""

import shlex
from functools import partial

import numpy as np
import pandas as pd
import pytest

from tests import harness, warm
from tests.conformance import readers, trees
from tests.harness import ROOT, quick

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


# What four people type first, in a checkout and from the wheel: few refusals, short screens.


NOTEBOOK = """
import fairbench, pandas as pd
loans = pd.read_csv("loans.csv", sep=";", decimal=",")
report = fairbench.audit(
    loans, target=loans.outcome == "repaid", score=loans.score / 100, groups=["sex"],
    favourable="True", positive="True",
)
print(*report.findings["sentence"], sep="\\n")
print(fairbench.evaluate(
    loans.outcome == "repaid", loans.score > 60, sensitive_features=loans[["sex", "race"]],
).query("metric == 'equalized_odds' and statistic == 'value'")[["attribute", "value", "lower"]])
"""
# Who: the commands of each goal, of which all but the last may be refused. ANSWERS stands for the
# command before with what its refusal asks for.
ANSWERS = "and the answers"
WAYS = {
    "a student with a method of their own": [
        ["run method=mine", "run method=margin split.repeats=2 tracking=none"],
        ["run -m method=margin,ensemble split.repeats=2 tracking=none"],
        ["compare objectives=log_loss", "compare runs=all objectives=area_under_risk_coverage"],
        ["table"],
        ["report"],
    ],
    "an analyst of a bank": [
        ["audit loans.csv", "audit loans.csv target=outcome score=score group=sex,age", ANSWERS],
        ["audit loans.csv target=outcome prediction=decided group=sex,race", ANSWERS],
    ],
    "an auditor of deciles": [
        [
            "audit ratings.csv target=again score=decile group=race,sex",
            "audit ratings.csv target=again score=decile group=race,sex scale=rating threshold=4",
            "audit ratings.csv target=again score=decile group=race,sex scale=rating threshold=4 "
            "favourable=0",
        ],
        ["audit plan groups=[0.8,0.2] rate=0.3"],
    ],
    "a notebook": [["notebook.py"]],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """Return a folder with the files that these people bring."""
    draw, rows = np.random.default_rng(3), 3000
    people = pd.DataFrame(
        {"sex": draw.choice(["female", "male"], rows), "race": draw.choice([*"abc"], rows)}
    )
    chance = 1 / (1 + np.exp(-draw.normal(0.3, 1, rows) - 0.5 * (people["sex"] == "male")))
    happens = draw.random(rows) < chance
    people.assign(
        age=draw.integers(18, 80, rows),
        score=(100 * chance).round(1),
        decided=np.where(chance > 0.6, "approved", "declined"),
        outcome=np.where(happens, "repaid", "defaulted"),
    ).to_csv(tmp_path / "loans.csv", index=False, sep=";", decimal=",")
    people.assign(decile=pd.qcut(chance, 10, labels=False) + 1, again=happens.astype(int)).to_csv(
        tmp_path / "ratings.csv", index=False
    )
    (tmp_path / "notebook.py").write_text(NOTEBOOK)
    for kind, place in ((".py", "algorithms/methods"), (".yaml", "conf/method")):
        (tmp_path / place).mkdir(parents=True)
        text = (ROOT / "docs/examples/method/margin").with_suffix(kind).read_text()
        (tmp_path / place / f"margin{kind}").write_text(text)
    return tmp_path


def answers(error):
    """Return the words that a refusal asks for, the last one of those to choose from."""
    last = error.splitlines()[-1].partition("give ")[2]
    parts = [shlex.split(part.replace(", ", " ")) for part in last.split("; and ")]
    return [word for part in parts for word in (part[-1:] if part[:2] == ["one", "of"] else part)]


@pytest.mark.parametrize("place", quick(["checkout", "wheel"], ["checkout"], rest=pytest.mark.slow))
@pytest.mark.parametrize("who", WAYS)
def test_nobody_is_refused_thrice_and_every_screen_is_short(who, place, request, folder):
    tree = ROOT if place == "checkout" else request.getfixturevalue("site")
    for goal in WAYS[who]:
        refusals, words = 0, []
        for command in goal:
            if command == ANSWERS:
                given = answers(done.stderr)  # noqa: F821 -- of the command before
                names = {word.partition("=")[0] for word in given}
                words = [word for word in words if word.partition("=")[0] not in names] + given
            else:
                words = shlex.split(command)
            done = warm.run(
                words if words == ["notebook.py"] else ["-m", "fairbench", *words],
                cwd=folder, timeout=240, environment={"FAIRBENCH_CACHE": str(folder)}, tree=tree,
            )  # fmt: skip
            assert done.returncode in (0, 2) and "Traceback" not in done.stderr, done.stderr
            refusals += done.returncode == 2
            assert len((done.stdout + done.stderr).splitlines()) <= 60, done.stdout
        assert done.returncode == 0, done.stderr
        assert refusals < 3
