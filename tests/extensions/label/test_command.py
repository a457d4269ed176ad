"""next, label and report from their words: what a person types, and each mistake's one sentence."""

import json

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import main
from tests.audits.tables import predictions, written

USUAL = ("target=label", "score=score", "group=[sex,race]")


@pytest.fixture
def table(tmp_path):
    """Return a table of 300 rows whose first 3 are labelled in the file itself."""
    frame = predictions(300).drop(columns="is_labelled").astype({"label": object})
    frame.loc[3:, "label"] = None
    return written(frame.assign(person=[f"P{i}" for i in range(300)]), tmp_path)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "audit.json"


@pytest.fixture
def begun(table, state, capsys):
    assert main(["label", "next", str(table), f"state={state}", *USUAL]) == 0
    capsys.readouterr()
    return state


def run(capsys, *words, status=0):
    """Run a command and return what it printed; what it refuses is one sentence."""
    assert main(["label", *map(str, words)]) == status
    printed = capsys.readouterr()
    if status:
        assert printed.err.startswith("error: ")
        assert printed.err.count("\n") == 1
        assert printed.out == ""
        return printed.err
    return printed.out


def named(printed):
    """Return the rows that a table of next names."""
    firsts = (line.split()[0] for line in printed.splitlines() if line.strip())
    return [int(first) for first in firsts if first.isdigit()]


def test_next_names_rows_and_says_why(table, state, capsys):
    out = run(capsys, "next", table, f"state={state}", *USUAL, "n=4")
    assert "In which group are predictions least often right?" in out
    assert "which only steers what is labelled next: " in out
    assert "3 of 300 rows have labels" in " ".join(out.split())
    assert out.count("P(worst)") == len(named(out)) == 4
    assert not {1, 2, 3} & set(named(out))
    assert max(map(len, out.splitlines()[:-1])) <= 100
    # Only the state is needed from now on, and the same state gives the same rows.
    assert named(run(capsys, "next", f"state={state}", "n=4")) == named(out)


def test_labels_are_stored_in_order(begun, capsys):
    assert "2 stored: 5 of 300" in run(capsys, "ask", f"state={begun}", "17=1", "18=0")
    assert "1 stored: 6 of 300" in run(capsys, "ask", f"state={begun}", "20=1")
    assert "1 stored, 1 were there already" in run(capsys, "ask", f"state={begun}", "20=1", "9=?")
    labels = json.loads(begun.read_text())["labels"]
    assert [(label["row"], label["label"]) for label in labels] == [
        (17, "1"), (18, "0"), (20, "1"), (9, ""),
    ]  # fmt: skip


def test_overwriting_is_asked_for_and_remembered(begun, capsys):
    run(capsys, "ask", f"state={begun}", "17=1")
    sentence = run(capsys, "ask", f"state={begun}", "17=0", "18=1", status=2)
    assert "row 17 is labelled 1 already; overwrite=true replaces it" in sentence
    run(capsys, "ask", f"state={begun}", "17=0", "overwrite=true")
    labels = json.loads(begun.read_text())["labels"]
    assert [(label["row"], label["label"]) for label in labels] == [(17, "1"), (17, "0")]


def test_labels_of_the_file_are_there_already(begun, table, capsys):
    mine = int(pd.read_csv(table)["label"][1])
    assert "0 stored, 1 were there" in run(capsys, "ask", f"state={begun}", f"2={mine}")
    sentence = run(capsys, "ask", f"state={begun}", f"2={1 - mine}", status=2)
    assert f"row 2 is labelled {mine} already" in sentence
    run(capsys, "ask", f"state={begun}", f"2={1 - mine}", "overwrite=true")


FAULTS = {
    "row 0": (["ask", "0=1"], "row 0 does not exist: predictions.csv has rows 1 to 300"),
    "row 301": (["ask", "301=1"], "row 301 does not exist"),
    "row -1": (["ask", "-1=1"], "'-1' is no row"),
    "row 1.5": (["ask", "1.5=1"], "'1.5' is no row"),
    "label": (["ask", "17=2"], "row 17: label '2' is neither '0' nor '1'"),
    "no label": (["ask", "17="], "row 17: label '' is neither '0' nor '1'"),
    "twice": (["ask", "17=1", "17=0"], "row 17 is given two labels"),
    "option": (["ask", "overwite=true"], "option 'overwite': did you mean overwrite"),
    "overwrite": (["ask", "17=1", "overwrite=yes"], "overwrite is 'yes'; it must be true or false"),
    "labels file": (["ask", "labels=none.csv"], "none.csv is not a file"),
    "n": (["next", "n=0"], "n is 0; it must be at least 1"),
    "part": (["next", "part=3/2"], "part is '3/2'; it must be such as 1/2"),
    "question": (["next", "question=wurst"], "unknown question 'wurst': did you mean worst"),
    "strategy": (["next", "strategy=best"], "unknown strategy 'best'"),
    "other score": (["next", "score=age"], "was started with another score: leave score= out"),
    "other by": (["next", "by=sex"], "was started with another by"),
    "seed": (["next", "seed=5"], "was started with another seed"),
    "report option": (["report", "seed=5"], "option 'seed'"),
    "two files": (["next", "a.csv", "b.csv"], "unexpected word 'b.csv'"),
}


@pytest.mark.parametrize(("words", "sentence"), FAULTS.values(), ids=FAULTS)
def test_fault_is_one_sentence_and_changes_nothing(words, sentence, begun, capsys):
    before = begun.read_bytes()
    assert sentence in run(capsys, *words, f"state={begun}", status=2)
    assert begun.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["next"], "no state file is named"),
        (["next", "state=new.json", *USUAL], "give a file of predictions"),
        (["next", "{table}", "state=new.json", *USUAL, "by=age"], "group in by= 'age'"),
        (["next", "{table}", "state=new.json", "prediction=sex", "group=race"], "decision="),
        (["next", "none.csv", "state=new.json", *USUAL], "none.csv is not a file"),
        (["ask", "state=none.json"], "none.json does not exist: start it with"),
        (["report", "state=none.json"], "none.json does not exist"),
    ],
)
def test_what_cannot_begin(words, sentence, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = [word.format(table=table) for word in words]
    assert sentence in run(capsys, *words, status=2)
    assert not (tmp_path / "new.json").exists()


@pytest.mark.parametrize("command", ["next", "ask", "report"])
def test_changed_predictions_are_refused(command, begun, table, capsys):
    table.write_text(table.read_text().replace("P7,", "P8,").replace("P7\n", "P8\n"))
    assert "has changed since this audit began" in run(
        capsys, command, f"state={begun}", *(["17=1"] if command == "ask" else []), status=2
    )


def test_names_of_labels_are_learnt(tmp_path, state, capsys):
    """With positive=approved alone, the first other label names the negative one."""
    frame = predictions(100).drop(columns=["label", "is_labelled"])
    path = written(frame, tmp_path)
    run(capsys, "next", path, f"state={state}", "score=score", "group=sex", "positive=approved")
    run(capsys, "ask", f"state={state}", "3=approved", "4=refused", "5=refused")
    sentence = run(capsys, "ask", f"state={state}", "6=denied", status=2)
    assert "row 6: label 'denied' is neither 'refused' nor 'approved'" in sentence
    out = run(capsys, "next", f"state={state}", "question=calibration")
    assert "3 of 100" in " ".join(out.split())


@pytest.mark.thorough
@pytest.mark.parametrize("words", [["report"], ["report", "{table}"]])
def test_report_has_the_labels_so_far(words, begun, tmp_path, capsys):
    rows = np.random.default_rng(0).permutation(np.arange(4, 301))[:30]
    run(capsys, "ask", f"state={begun}", *(f"{row}={row % 2}" for row in rows))
    words = [word.format(table=tmp_path / "predictions.csv") for word in words]
    out = run(capsys, *words, f"state={begun}", f"out={tmp_path / 'r'}", "epsilon=0.2")
    assert out.startswith("In which group are predictions least often right?")
    page = (tmp_path / "r" / "audit.html").read_text()
    assert "300 rows, 33 of them with a label" in page
    assert "decided while labelling" in " ".join(page.split())
    content = json.loads((tmp_path / "r" / "audit.json").read_text())
    assert (content["labels"], content["options"]["epsilon"]) == (33, 0.2)


def test_predictions_can_be_elsewhere(begun, table, tmp_path, capsys):
    moved = table.rename(tmp_path / "moved.csv")
    assert "is not a file" in run(capsys, "next", f"state={begun}", status=2)
    run(capsys, "next", moved, f"state={begun}")
    assert "1 stored" in run(capsys, "ask", f"state={begun}", "17=1")
