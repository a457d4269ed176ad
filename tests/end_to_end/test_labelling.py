"""Labels that a person types in a terminal, which is killed: none is lost, and all are reported."""

import json

import pytest

from tests.audits.tables import predictions, written
from tests.harness import ROOT, Terminal, fairbench, verb

PROMPT = r"label of row (\d+) \([^)]*\): $"


@pytest.mark.thorough
def test_no_label_is_lost_and_the_report_has_them(tmp_path):
    def run(*words):
        return fairbench("label", *words, cwd=tmp_path).stdout

    frame, state = predictions(800, bias=0.3), "state=audit.json"
    truth = frame["label"].astype(str).tolist()
    written(frame.drop(columns=["label", "is_labelled"]), tmp_path)
    run("next", "predictions.csv", state, "score=score", "group=[sex,race]", "by=sex")
    terminal = Terminal(verb("label", "ask", state), tmp_path, PYTHONPATH=str(ROOT))
    row, acknowledged = int(terminal.until(PROMPT)[1]), {}
    for _ in range(8):
        terminal.type(f"{truth[row - 1]}\n")
        acknowledged[row] = truth[row - 1]
        row = int(terminal.until(PROMPT)[1])
    terminal.type(f"{truth[row - 1]}\n")  # and the lights go out while it is being stored
    terminal.close()
    labels = json.loads((tmp_path / "audit.json").read_text())["labels"]
    stored = {label["row"]: label["label"] for label in labels}
    assert stored in (acknowledged, acknowledged | {row: truth[row - 1]})
    named = run("next", state, "n=3").splitlines()
    named = {int(line.split()[0]) for line in named if line.strip()[:1].isdigit()}
    assert len(named) == 3 and not named & set(acknowledged)
    assert "800 rows" in run("report", state, "out=report")
    content = json.loads((tmp_path / "report" / "audit.json").read_text())
    assert content["labels"] == len(stored)
    assert "passed over" not in " ".join(content["conclusions"]["notes"])
