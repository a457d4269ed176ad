"""A person's path: unlabelled predictions, labels typed in over two sittings, a kill in each."""

import json

import pytest

from tests.audits.tables import predictions, written
from tests.harness import ROOT, Terminal, fairbench, verb

PROMPT = r"label of row (\d+) \([^)]*\): $"
ROWS, SITTINGS, EACH = 800, 2, 8


@pytest.mark.thorough
def test_no_label_is_lost_and_the_report_has_them(tmp_path):
    def run(*words):
        return fairbench("label", *words, cwd=tmp_path).stdout

    frame = predictions(ROWS, bias=0.3)
    truth = frame["label"].tolist()
    written(frame.drop(columns=["label", "is_labelled"]), tmp_path)
    state = "state=audit.json"
    run("next", "predictions.csv", state, "score=score", "group=[sex,race]", "by=sex")
    acknowledged = {}
    for sitting in range(SITTINGS):
        terminal = Terminal(verb("label", "ask", state), tmp_path, PYTHONPATH=str(ROOT))
        row = int(terminal.until(PROMPT)[1])
        for _ in range(EACH):
            terminal.type(f"{truth[row - 1]}\n")
            acknowledged[row] = str(truth[row - 1])
            row = int(terminal.until(PROMPT)[1])
        if sitting:
            terminal.type(f"{truth[row - 1]}\n")  # and the lights go out while it is being stored
        terminal.close()
    labels = json.loads((tmp_path / "audit.json").read_text())["labels"]
    stored = {label["row"]: label["label"] for label in labels}
    assert len(acknowledged) == SITTINGS * EACH
    assert acknowledged.items() <= stored.items()
    # Those typed as it was killed are there or not, and right if they are.
    assert len(labels) == len(stored) <= len(acknowledged) + SITTINGS - 1
    assert all(label == str(truth[row - 1]) for row, label in stored.items())
    once = run("next", state, "n=3")
    assert once == run("next", state, "n=3")
    named = {int(line.split()[0]) for line in once.splitlines() if line.strip()[:1].isdigit()}
    assert len(named) == 3 and not named & set(acknowledged)
    assert "800 rows" in run("report", state, "out=report")
    page = (tmp_path / "report" / "audit.html").read_text()
    assert "decided while labelling" in " ".join(page.split())
    content = json.loads((tmp_path / "report" / "audit.json").read_text())
    assert content["labels"] >= len(acknowledged)
    assert "passed over" not in " ".join(content["conclusions"]["notes"])
