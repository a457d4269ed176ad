"""Rows by the customer's number (id=): shown, asked for, answered; label files of any format."""

import numpy as np
import pandas as pd
import pytest

import fairbench
from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench_label.questions import resume
from fairbench_label.session import StateFile
from fairbench_label.verb import label_in_turn
from tests.audits.tables import predictions

ROWS = 120
IDS = [f"C-{1000 + row}" for row in range(1, ROWS + 1)]
USUAL = ("target=label", "score=score", "group=sex", "id=customer", "positive=ja")


@pytest.fixture
def begun(tmp_path, capsys):
    """Return a function that runs a part of the verb on a started state."""
    frame = predictions(ROWS, labels=0)[["sex", "score"]].assign(customer=IDS, label="")
    path, state = tmp_path / "loans.csv", tmp_path / "s.json"
    frame.to_csv(path, index=False)

    def run(*words, status=0):
        assert main(["label", *words, f"state={state}"]) == status
        printed = capsys.readouterr()
        if status:
            assert printed.err.count("\n") == 1
            assert len(printed.err) <= 307
            return printed.err
        return " ".join(printed.out.split())

    run("next", str(path), *USUAL)
    run.state = StateFile(state)
    return run


def labels(begun):
    return begun.state.read().labels


def test_rows_are_named_and_answered_by_identifier(begun):
    named = begun("next", "n=3")
    assert named.count("C-1") == 4  # a column of the table, and the command to go on with
    assert "1 stored: 1 of 120" in begun("ask", "C-1042=ja")
    assert labels(begun) == {42: "ja"}
    assert "row 42 (customer C-1042) is labelled ja already" in begun(
        "ask", "C-1042=nein", status=2
    )


def test_an_identifier_that_is_not_there_gets_the_nearest(begun):
    assert "unknown customer of loans.csv 'C-9042': did you mean" in begun(
        "ask", "C-9042=ja", status=2
    )
    assert "unknown customer of loans.csv '42'" in begun("ask", "42=ja", status=2)
    assert not labels(begun)


def test_a_person_is_asked_by_identifier(begun, capsys):
    prompts = []

    def ask(prompt):
        prompts.append(prompt)
        return "q"

    label_in_turn(begun.state, resume(begun.state, begun.state.read().options.path), (1, 1), ask)
    assert "(customer C-1" in prompts[0]
    assert "(customer C-1" in capsys.readouterr().out


ANSWERS = pd.DataFrame({"customer": ["C-1007", "C-1008", "C-1009"], "label": ["ja", "", "nein"]})
FORMATS = {
    "semicolons": ("new.csv", lambda frame, path: frame.to_csv(path, sep=";", index=False)),
    "Excel": ("new.xlsx", lambda frame, path: frame.to_excel(path, index=False)),
}


@pytest.mark.parametrize(("name", "write"), FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("by", ["customer", "row"])
def test_label_files_are_of_any_format(name, write, by, begun, tmp_path):
    frame = ANSWERS if by == "customer" else ANSWERS[["label"]].assign(row=[7, 8, 9])
    write(frame, tmp_path / name)
    assert "2 stored: 2 of 120" in begun("ask", f"labels={tmp_path / name}")
    assert labels(begun) == {7: "ja", 9: "nein"}


def test_a_label_file_without_the_columns_is_refused(begun, tmp_path):
    ANSWERS.rename(columns={"customer": "who"}).to_csv(tmp_path / "new.csv", index=False)
    said = begun("ask", f"labels={tmp_path / 'new.csv'}", status=2)
    assert "columns customer or row and label are needed, not who, label" in said


def people():
    frame = predictions(200)[["sex", "score", "label"]].astype({"score": object})
    return frame.assign(customer=[f"C-{row}" for row in range(1, 201)])


def audit(frame, **options):
    return fairbench.audit(frame, target="label", groups="sex", id="customer", **options)


def test_messages_on_a_row_of_an_audit_say_whom_it_is_of():
    frame = people()
    frame.loc[41, "score"] = "high"
    with pytest.raises(UserError, match=r"row 42 \(customer C-42\): 'high' is no number"):
        audit(frame, score="score")
    numbers = people().assign(truth=np.arange(200) * 1.5, guess=np.arange(200) / 3, low=0, high=9)
    numbers.loc[:9, "truth"] = None  # rows that are left out keep their numbers
    numbers.loc[41, "low"] = 10
    with pytest.raises(UserError, match=r"row 42 \(customer C-42\): '10' is not at most 'high'"):
        fairbench.audit(
            numbers, target="truth", prediction="guess", groups="sex", id="customer",
            bounds=["low", "high"],
        )  # fmt: skip


def test_an_identifier_that_repeats_or_is_missing_is_refused():
    frame = people()
    audit(frame, score="score")
    frame.loc[9, "customer"] = ""
    with pytest.raises(UserError, match="'customer', row 10: '' is not an identifier"):
        audit(frame, score="score")
    frame.loc[[9, 77], "customer"] = "C-5"
    with pytest.raises(UserError, match="'customer' holds 'C-5' in row 5 and in row 10: a row is"):
        audit(frame, score="score")
