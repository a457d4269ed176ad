"""A sitting: what is asked, what is shown, and that every answer is stored before the next."""

import json
from pathlib import Path

import pytest

from fairbench.cli.main import main
from fairbench_label.questions import resume
from fairbench_label.session import StateFile, check_labels, store
from fairbench_label.verb import label_in_turn
from tests.audits.tables import predictions, written


@pytest.fixture
def file(tmp_path, capsys):
    frame = predictions(40).drop(columns=["label", "is_labelled"]).assign(note="[b]ordinary[/b]")
    path, state = written(frame, tmp_path), tmp_path / "audit.json"
    assert main(["label", "next", str(path), f"state={state}", "score=score", "group=sex"]) == 0
    capsys.readouterr()
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


def stored(file):
    return [label["label"] for label in json.loads(file.path.read_text())["labels"]]


def test_answers_are_stored_one_by_one(file, capsys):
    seen = []
    sitting(file, "1", " 0 ", "?", "q", between=lambda _: seen.append(stored(file)))
    assert seen == [[], ["1"], ["1", "0"], ["1", "0", ""]]
    assert "Stopped: 2 of 40 rows have labels" in capsys.readouterr().out


def test_a_mistake_is_asked_again(file, capsys):
    prompts = sitting(file, "yes", "", "1")
    assert prompts[0] == prompts[1] == prompts[2] != prompts[3]
    assert capsys.readouterr().out.count("is neither '0' nor '1'") == 2
    assert stored(file) == ["1"]


def test_the_row_is_shown_without_what_would_sway(file, capsys):
    sitting(file)
    out = capsys.readouterr().out
    assert "[b]ordinary[/b]" in out
    assert "race" in out
    assert "score" not in out


@pytest.mark.parametrize("mine", ["1", "0"])
def test_another_person_who_was_quicker_is_kept(mine, file, capsys):
    def other(prompt):
        if not stored(file):
            session = resume(file, Path())
            row = int(prompt.split()[3])
            store(file, session, check_labels(session, {row: "1"}))

    prompts = sitting(file, mine, "q", between=other)
    assert prompts[0] != prompts[1]
    assert stored(file) == ["1"]
    said = " ".join(capsys.readouterr().out.split())
    assert ("which stays: your 0 was not stored. To replace it: fairbench label" in said) == (
        mine == "0"
    )
    assert ("from another person: it counts once" in said) == (mine == "1")
