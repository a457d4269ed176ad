"""A person's path: unlabelled predictions, labels typed in over two sittings, a kill in each."""

import json

import pytest

from tests.audits.tables import predictions, written
from tests.harness import ROOT, Terminal, fairbench, verb

pytestmark = pytest.mark.thorough

PROMPT = r"label of row (\d+) \([^)]*\): $"
ROWS, SITTINGS, EACH = 800, 2, 8


def run(*words, cwd):
    return fairbench("label", *words, cwd=cwd).stdout


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """Walk the path; return the folder, the truth, and what was acknowledged."""
    folder = tmp_path_factory.mktemp("person")
    frame = predictions(ROWS, bias=0.3)
    truth = frame["label"].tolist()
    written(frame.drop(columns=["label", "is_labelled"]), folder)
    words = ("state=audit.json", "score=score", "group=[sex,race]", "by=sex")
    run("next", "predictions.csv", *words, cwd=folder)
    acknowledged = {}
    for sitting in range(SITTINGS):
        asking = verb("label", "ask", "state=audit.json")
        terminal = Terminal(asking, folder, PYTHONPATH=str(ROOT))
        row = int(terminal.until(PROMPT)[1])
        for _ in range(EACH):
            terminal.type(f"{truth[row - 1]}\n")
            acknowledged[row] = str(truth[row - 1])
            row = int(terminal.until(PROMPT)[1])
        if sitting:
            terminal.type(f"{truth[row - 1]}\n")  # and the lights go out while it is being stored
        terminal.close()
    return folder, truth, acknowledged


def test_no_label_is_lost(labelled):
    folder, truth, acknowledged = labelled
    content = json.loads((folder / "audit.json").read_text())
    stored = {label["row"]: label["label"] for label in content["labels"]}
    assert len(acknowledged) == SITTINGS * EACH
    assert acknowledged.items() <= stored.items()
    # Those typed as it was killed are there or not, and right if they are.
    assert len(stored) <= len(acknowledged) + SITTINGS - 1
    assert all(label == str(truth[row - 1]) for row, label in stored.items())
    assert len(content["labels"]) == len(stored)


def test_the_next_row_is_one_without_a_label(labelled):
    folder, _, acknowledged = labelled
    once, again = (run("next", "state=audit.json", "n=3", cwd=folder) for _ in range(2))
    assert once == again
    named = {int(line.split()[0]) for line in once.splitlines() if line.strip()[:1].isdigit()}
    assert len(named) == 3
    assert not named & set(acknowledged)


def test_the_report_is_opened(labelled, tmp_path):
    folder, _, acknowledged = labelled
    assert "800 rows" in run("report", "state=audit.json", f"out={tmp_path}", cwd=folder)
    assert "decided while labelling" in " ".join((tmp_path / "audit.html").read_text().split())
    content = json.loads((tmp_path / "audit.json").read_text())
    assert content["labels"] >= len(acknowledged)
    assert "passed over" not in " ".join(content["conclusions"]["notes"])
