"""The state file: what is written is read, and no kill and no second writer loses a label."""

import contextlib
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from fairbench.core.errors import UserError
from fairbench.core.files import sealed_json, unsealed_json
from fairbench_label.session import Answer, State, StateFile
from tests.audits.tables import parse
from tests.harness import ROOT

ROWS = 10_000_000
# Labels rows first, first + step, ... and says so after each; the parent kills it at any time.
WRITER = """
import sys
from pathlib import Path
from fairbench_label.session import Answer
from fairbench_label.session import StateFile
file, first, step, number = Path(sys.argv[1]), *map(int, sys.argv[2:])
for row in range(first, first + step * number, step):
    answer = Answer(row, str(row % 2), "")
    StateFile(file).change(lambda state: state.with_answers((answer,)))
    print(row, flush=True)
"""


@pytest.fixture
def file(tmp_path):
    words = [str(tmp_path / "p.csv"), "target=y", "score=s", "group=[sex,race]", "epsilon=0.1"]
    file = StateFile(tmp_path / "audit.json")
    file.create(State(parse(words), "abc", ROWS, "sex", "worst", "top_two"))
    return file


@pytest.fixture
def write(file):
    """Start a process that labels rows, and see to its end."""
    with contextlib.ExitStack() as stack:

        def start(first, step, number):
            words = map(str, (file.path, first, step, number))
            command = [sys.executable, "-c", WRITER, *words]
            running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
            return stack.enter_context(running)

        yield start


def test_what_is_written_is_read(file):
    state = file.read()
    answers = (
        Answer(3, "yes", "2026-01-01T00:00:00+00:00"),
        Answer(5, "", ""),
        Answer(3, "no", ""),
    )
    after = file.change(lambda state: replace(state.with_answers(answers), question="gap"))
    assert after == file.read() != state
    assert file.read().labels == {3: "no", 5: ""}
    assert file.read().options.epsilon == 0.1
    content = json.loads(file.path.read_text())
    assert content["schema"] == 2
    assert content["predictions"]["path"] == "p.csv"
    assert content["labels"][0] == {"row": 3, "label": "yes", "time": "2026-01-01T00:00:00+00:00"}


def edited(**changes):
    def edit(content):
        return content | changes

    return edit


HALF = ("", '{"schema": 1', "\x00", "[]")
FAULTS = {
    "schema": (edited(schema=9), "its schema is 9; this version reads 2"),
    "no labels": (lambda content: {k: v for k, v in content.items() if k != "labels"}, "'labels'"),
    "a list": (lambda content: [content], "is not the state of an audit"),
    "row": (
        edited(labels=[{"row": ROWS + 1, "label": "1", "time": ""}]),
        "a label of row 10000001",
    ),
    "label": (edited(labels=[{"row": 1, "label": 1, "time": ""}]), "'label' is no text"),
    "option": (edited(options={"colour": "red"}), "an option 'colour'"),
    "value": (edited(options={"group": ["sex"], "score": "s", "epsilon": 3}), "epsilon is 3"),
    "question": (edited(question=None), "'question' is no text"),
    **{repr(half): (lambda _, half=half: half, "is not the state of an audit") for half in HALF},
}


@pytest.mark.parametrize(("edit", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_file_that_is_no_state_is_refused(edit, sentence, file):
    content = edit(json.loads(file.path.read_text()))
    if not isinstance(content, str):
        sealed = isinstance(content, dict)
        content = sealed_json(content) if sealed else json.dumps(content)
    file.path.write_text(content)
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


def test_a_state_of_the_schema_without_a_seal_is_read_and_sealed_at_the_next_change(file):
    values = {k: v for k, v in json.loads(file.path.read_text()).items() if k != "seal"}
    file.path.write_text(json.dumps({**values, "schema": 1}))
    file.change(lambda state: state.with_answers((Answer(3, "yes", ""),)))
    assert file.read().labels == {3: "yes"}
    assert unsealed_json(file.path.read_bytes())["schema"] == 2


@pytest.mark.thorough
def test_people_who_label_at_the_same_time_lose_nothing(file, write):
    processes = [write(first, 4, 25) for first in range(1, 5)]
    assert [process.wait(timeout=120) for process in processes] == [0] * 4
    assert set(file.read().labels) == set(range(1, 101))
    assert len(file.read().answers) == 100
