"""The verb from its words: what a person types and is asked, by row or by the customer's number.

Each mistake gets one sentence.
"""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.core.files import sealed_json
from fairbench_label.questions import resume
from fairbench_label.session import Answer, StateFile, check_labels, store
from fairbench_label.verb import label_in_turn
from tests.audits.tables import predictions, why_not, written

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
def run(state, capsys, refused):
    """Return a function that gives a part of the verb: what it prints, or how it is refused."""

    def given(*words, status=0):
        words = ["label", *map(str, words), f"state={state}"]
        if status:
            return refused(*words)
        assert main(words) == 0
        return capsys.readouterr().out

    return given


@pytest.fixture
def begun(table, run):
    run("next", table, *USUAL)
    return run


def stored(state):
    """Return the rows and labels of a state file, in their order."""
    return [(label["row"], label["label"]) for label in json.loads(state.read_text())["labels"]]


def named(printed):
    """Return the rows that a table of next names."""
    return [int(row) for row in re.findall(r"^ *(\d+) ", printed, re.M)]


def test_next_names_rows_and_says_why(table, run):
    out = run("next", table, *USUAL, "n=4")
    assert "So far, 3 of 300 rows have labels." in out
    assert out.count("P(worst)") == len(named(out)) == 4 and not {1, 2, 3} & {*named(out)}
    assert max(map(len, out.splitlines()[:-1])) <= 100
    # Only the state is needed from now on, and the same state gives the same rows.
    assert named(run("next", "n=4")) == named(out)


@pytest.mark.thorough
def test_labels_are_stored_in_order_and_replaced_where_that_is_asked_for(begun, table, state):
    assert "2 stored: 5 of 300" in begun("ask", "17=1", "18=0")
    assert "1 stored: 6 of 300" in begun("ask", "20=1")
    assert "1 stored, 1 were there already" in begun("ask", "20=1", "9=?")
    sentence = begun("ask", "17=0", "18=1", status=2)
    assert "row 17 is labelled 1 already; overwrite=true replaces it" in sentence
    begun("ask", "17=0", "overwrite=true")
    assert stored(state) == [(17, "1"), (18, "0"), (20, "1"), (9, ""), (17, "0")]
    mine = int(pd.read_csv(table)["label"][1])  # of the file itself
    assert "0 stored, 1 were there" in begun("ask", f"2={mine}")
    assert f"row 2 is labelled {mine} already" in begun("ask", f"2={1 - mine}", status=2)
    begun("ask", f"2={1 - mine}", "overwrite=true")


FAULTS = {
    "row 0": (["ask", "0=1"], "row 0 does not exist: predictions.csv has rows 1 to 300"),
    "row 301": (["ask", "301=1"], "row 301 does not exist"),
    "row 1.5": (["ask", "1.5=1"], "'1.5' is no row"),
    "label": (["ask", "17=2"], "row 17: label '2' is neither '0' nor '1'"),
    "twice": (["ask", "17=1", "17=0"], "row 17 is given two labels"),
    "part": (["next", "part=3/2"], "part is '3/2'; it must be such as 1/2"),
    "question": (["next", "question=wurst"], "unknown question 'wurst': did you mean worst"),
    "metric": (["next", "metric=acuracy"], "unknown metric 'acuracy': did you mean accuracy"),
    "gap": (["next", "metric=statistical_parity"], "valid: accuracy"),
    "other score": (["next", "score=age"], "was started with another score: leave score= out"),
    "other by": (["next", "by=sex"], "was started with another by"),
}


@pytest.mark.parametrize(("words", "sentence"), FAULTS.values(), ids=FAULTS)
def test_fault_is_one_sentence_and_changes_nothing(words, sentence, begun, state):
    before = state.read_bytes()
    assert sentence in begun(*words, status=2)
    assert state.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["next", "state=new.json", *USUAL], "give a file of predictions"),
        (["next", "{table}", "state=new.json", *USUAL, "by=age"], "group in by= 'age'"),
        (["next", "{table}", "state=new.json", "prediction=sex", "group=race"], "decision="),
        (["next", "{table}", "state=new.json", *USUAL, "labelled=person"], "labelled= is of"),
        (["ask", "state=none.json"], "none.json does not exist: start it with"),
    ],
)
def test_what_cannot_begin(words, sentence, table, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    refused("label", *(word.format(table=table) for word in words), message=sentence)
    assert not (tmp_path / "new.json").exists()


@pytest.mark.parametrize("words", [["next"], ["ask", "17=1"], ["report"]])
def test_predictions_can_be_elsewhere_and_changed_ones_are_refused(words, begun, table, tmp_path):
    moved = table.rename(tmp_path / "moved.csv")
    assert "is not a file" in begun(*words, status=2)
    begun("next", moved)
    begun(*words)
    moved.write_text(moved.read_text().replace("P7,", "P8,").replace("P7\n", "P8\n"))
    assert "has changed since this audit began" in begun(*words, status=2)


def test_names_of_labels_are_learnt(tmp_path, run):
    """With positive=approved alone, the first other label names the negative one."""
    path = written(predictions(100).drop(columns=["label", "is_labelled"]), tmp_path)
    run("next", path, "score=score", "group=sex", "positive=approved")
    said = "row 3: label ' APPROVED' is 'approved' in another spelling: write approved"
    assert said in run("ask", "3= APPROVED", status=2)
    run("ask", "3=approved", "4=refused", "5=refused")
    sentence = run("ask", "6=denied", status=2)
    assert "row 6: label 'denied' is neither 'refused' nor 'approved'" in sentence
    assert "3 of 100" in " ".join(run("next", "question=calibration").split())


def test_labels_of_which_no_name_was_said_need_the_positive_one(file, run):
    assert "start another state with positive=LABEL, the one" in run("ask", "3=ja", status=2)
    run("ask", "3=1")
    assert "positive" not in run("ask", "4=ja", status=2)


@pytest.mark.thorough
def test_report_has_the_labels_so_far(begun, table, tmp_path):
    begun("ask", *(f"{row}={row % 2}" for row in range(4, 301, 10)))
    out = begun("report", table, f"out={tmp_path / 'r'}", "epsilon=0.2")
    assert out.startswith("In which group are predictions least often right?")
    content = json.loads((tmp_path / "r" / "audit.json").read_text())
    assert (content["labels"], content["options"]["epsilon"]) == (33, 0.2)


# Rows by the customer's number (id=): shown, asked for, answered; label files of any format.

BY_ID = ("target=label", "score=score", "group=sex", "id=customer", "positive=ja")


@pytest.fixture
def by_id(tmp_path, run):
    frame = predictions(120, labels=0)[["sex", "score"]].assign(label="")
    frame["customer"] = [f"C-{1001 + row}" for row in frame.index]
    run("next", written(frame, tmp_path, "loans.csv"), *BY_ID)
    return run


def test_rows_are_named_and_answered_by_identifier(by_id, state):
    # A column of the table, and the command to go on with.
    assert by_id("next", "n=3").count("C-1") == 4
    assert "1 stored: 1 of 120" in by_id("ask", "C-1042=ja")
    assert stored(state) == [(42, "ja")]
    for word, said in (
        ("C-1042=nein", "row 42 (customer C-1042) is labelled ja already"),
        ("C-9042=ja", "unknown customer of loans.csv 'C-9042': did you mean"),
        ("42=ja", "unknown customer of loans.csv '42'"),
    ):
        assert said in by_id("ask", word, status=2)
    assert stored(state) == [(42, "ja")]
    assert "(customer C-1" in sitting(StateFile(state))[0]


@pytest.mark.parametrize("start", ["A B", "K=A=", "it's ", "Anna-"])
def test_the_command_that_next_prints_answers_an_identifier_of_any_signs(start, run, tmp_path):
    ids = [start + chr(ord("A") + row) for row in range(20)]
    frame = predictions(20, labels=0)[["sex", "score"]].assign(customer=ids, label="")
    printed = run("next", written(frame, tmp_path), *BY_ID)
    command = shlex.split(" ".join(printed[printed.index("fairbench label ask") :].split()))
    assert "1 stored: 1 of 20" in run("ask", command[-1].replace("=LABEL", "=ja"))


ANSWERS = pd.DataFrame({"customer": ["C-1007", "C-1008", "C-1009"], "label": ["ja", "", "nein"]})


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["new.csv", "new.xlsx"])
def test_label_files_are_of_any_format(name, by_id, state, tmp_path):
    def ask(frame, **more):
        frame.to_csv(tmp_path / "new.csv", sep=";", index=False)
        frame.to_excel(tmp_path / "new.xlsx", index=False)
        return by_id("ask", f"labels={tmp_path / name}", **more)

    assert "2 stored: 2 of 120" in ask(ANSWERS)
    assert stored(state) == [(7, "ja"), (9, "nein")]
    said = ask(ANSWERS.rename(columns={"customer": "who"}), status=2)
    assert "has no column 'customer'" in said


OF_ROWS = {"truth": np.arange(200) * 1.5, "guess": np.arange(200) / 3, "low": 0, "high": 9}


@pytest.mark.parametrize(
    ("column", "row", "cell", "said"),
    [
        ("score", 42, "high", "row 42 (customer C-42): 'high' is no number"),
        # Rows that are left out, which have no truth, keep their numbers.
        ("low", 42, 10, "row 42 (customer C-42): '10' is not at most 'high'"),
        ("customer", 10, "", "'customer', row 10: '' is not an identifier"),
        ("customer", 10, "C-5", "'customer' holds 'C-5' in row 5 and in row 10: a row is"),
    ],
)
def test_an_audit_says_whom_a_row_is_of_and_refuses_what_is_no_identifier(column, row, cell, said):
    frame = predictions(200).assign(**OF_ROWS, customer=[f"C-{row}" for row in range(1, 201)])
    frame.loc[:9, "truth"] = None
    asked = {"target": "label", "score": "score", "groups": "sex", "id": "customer"}
    if column == "low":
        asked |= {"target": "truth", "score": "", "prediction": "guess", "bounds": ["low", "high"]}
    fairbench.audit(frame, **asked)
    frame = frame.astype({column: object})
    frame.loc[row - 1, column] = cell
    assert said in why_not(frame, **asked)


# A sitting: what is asked, what is shown, and that every answer is stored before the next.


@pytest.fixture
def file(tmp_path, run, state):
    frame = predictions(40).drop(columns=["label", "is_labelled"]).assign(note="[b]ordinary[/b]")
    run("next", written(frame, tmp_path), "score=score", "group=sex")
    return StateFile(state)


def sitting(file, *answers, between=lambda prompt: None):
    """Sit with answers ready; return the prompts."""
    prompts, left = [], list(answers)

    def ask(prompt):
        prompts.append(prompt)
        between(prompt)
        if not left:
            raise EOFError
        return left.pop(0)

    label_in_turn(file, resume(file, Path()), (1, 1), ask)
    return prompts


def answered(file):
    return [label for _, label in stored(file.path)]


def test_answers_are_stored_one_by_one(file, capsys):
    seen = []
    sitting(file, "1", " 0 ", "?", "q", between=lambda _: seen.append(answered(file)))
    assert seen == [[], ["1"], ["1", "0"], ["1", "0", ""]]
    out = capsys.readouterr().out
    assert "Stopped: 2 of 40 rows have labels" in out
    assert "[b]ordinary[/b]" in out and "race" in out
    assert "score" not in out  # which would sway


def test_a_mistake_is_asked_again(file, capsys):
    prompts = sitting(file, "yes", "", "1")
    assert prompts[0] == prompts[1] == prompts[2] != prompts[3]
    assert capsys.readouterr().out.count("is neither '0' nor '1'") == 2
    assert answered(file) == ["1"]


@pytest.mark.parametrize("mine", ["1", "0"])
def test_another_person_who_was_quicker_is_kept(mine, file, capsys):
    def other(prompt):
        if not answered(file):
            session = resume(file, Path())
            store(file, session, check_labels(session, {int(prompt.split()[3]): "1"}))

    prompts = sitting(file, mine, "q", between=other)
    assert prompts[0] != prompts[1]
    assert answered(file) == ["1"]
    said = " ".join(capsys.readouterr().out.split())
    stays = "which stays: your 0 was not stored. To replace it: fairbench label" in said
    assert stays == (mine == "0")


# The state file.


def test_what_is_written_is_read(file):
    state = file.read()
    answers = Answer(3, "yes", "2026-01-01T00:00:00+00:00"), Answer(5, "", ""), Answer(3, "no", "")
    after = file.change(lambda state: replace(state.with_answers(answers), question="gap"))
    assert after == file.read() != state
    assert file.read().labels == {3: "no", 5: ""}
    content = json.loads(file.path.read_text())
    assert (content["schema"], content["predictions"]["path"]) == (2, "predictions.csv")
    assert content["labels"][0] == {"row": 3, "label": "yes", "time": "2026-01-01T00:00:00+00:00"}


def edited(**changes):
    return lambda content: content | changes


DAMAGES = {
    "schema": (edited(schema=9), "its schema is 9; this version reads 2"),
    "no labels": (lambda content: {k: v for k, v in content.items() if k != "labels"}, "'labels'"),
    "row": (edited(labels=[{"row": 41, "label": "1", "time": ""}]), "a label of row 41"),
    "label": (edited(labels=[{"row": 1, "label": 1, "time": ""}]), "'1' is no str"),
    "half a sign": (
        edited(labels=[{"row": 1, "label": "\ud800", "time": ""}]),
        "a text has half a sign",
    ),
    "option": (edited(options={"colour": "red"}), "'colour'"),
    "value": (edited(options={"group": ["sex"], "score": "s", "epsilon": 3}), "epsilon is 3"),
    "question": (edited(question=None), "'None' is no str"),
}


@pytest.mark.parametrize(("edit", "sentence"), DAMAGES.values(), ids=DAMAGES)
def test_a_file_that_is_no_state_is_refused(edit, sentence, file):
    file.path.write_text(sealed_json(edit(json.loads(file.path.read_text()))))
    with pytest.raises(UserError, match=sentence):
        file.read()


def test_an_edited_label_is_damage_and_is_named(file):
    file.change(lambda state: state.with_answers((Answer(3, "yes", ""),)))
    file.path.write_text(file.path.read_text().replace('"yes"', '"yet"'))
    with pytest.raises(UserError, match="or is damaged: the content is not what was written"):
        file.read()


def test_two_cannot_begin_one_file(file):
    with pytest.raises(UserError, match="was started by another process"):
        file.create(file.read())
