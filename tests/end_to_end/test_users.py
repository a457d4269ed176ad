"""What four people type first, in a checkout and from the wheel: few refusals, short screens."""

import shlex

import numpy as np
import pandas as pd
import pytest

from tests import warm
from tests.conformance import trees
from tests.harness import ROOT, quick

pytestmark = pytest.mark.thorough

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


PLACES = quick(["checkout", "wheel"], ["checkout"], rest=pytest.mark.slow)


@pytest.fixture(scope="module", params=PLACES)
def tree(request, tmp_path_factory):
    """Return the folder that fairbench is imported from."""
    return ROOT if request.param == "checkout" else trees.wheel(tmp_path_factory.mktemp("wheel"))


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


@pytest.mark.parametrize("who", WAYS)
def test_nobody_is_refused_thrice_and_every_screen_is_short(who, tree, folder):
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
