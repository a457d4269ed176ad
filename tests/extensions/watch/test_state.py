"""The state of a watch: plain JSON, sealed, and whole after a kill at any moment."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.core.files import sealed_json
from fairbench_watch.alarms import WatchFile, look
from fairbench_watch.state import WatchOptions
from tests.audits.tables import predictions
from tests.harness import ROOT

# Looks at the first 100, 101, ... rows of a file, and says so after each.
WATCHER = """
import sys
from pathlib import Path
from fairbench_watch.alarms import look
from fairbench_watch.alarms import WatchFile
folder = Path(sys.argv[1])
lines = (folder / "all.csv").read_text().splitlines(keepends=True)
file = WatchFile(folder / "s.json")
for rows in range(file.read().rows + 1, len(lines)):
    (folder / "p.csv").write_text("".join(lines[: rows + 1]))
    state = look(file, file.read().options, set())[1]
    print(state.rows, flush=True)
"""


@pytest.fixture
def begun(tmp_path):
    """Return the state of a file's first 100 rows; the whole file is beside it."""
    frame = predictions(3000)[["sex", "score", "label"]]
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame[:100].to_csv(tmp_path / "p.csv", index=False)
    file = WatchFile(tmp_path / "s.json")
    options = WatchOptions(
        path=tmp_path / "p.csv", group=("sex",), target="label", score="score",
        metrics=("statistical_parity",),
    )  # fmt: skip
    look(file, options, set())
    return file


def test_what_is_written_is_read(begun):
    state = begun.read()
    assert state.rows == 100
    assert WatchFile(begun.path).read() == state
    values = json.loads(begun.path.read_text())
    assert values["options"]["path"] == "p.csv"
    assert set(values["periods"][0]["labels"]) == {"0", "1"}


FAULTS = {
    "schema": ({"schema": 9}, "its schema is 9"),
    "option": ({"options": {"colour": "red", "path": ""}}, "colour"),
    "labels": ({"periods": [{"name": "", "parts": [], "labels": "01"}]}, "not one label a row"),
}


@pytest.mark.parametrize(("edit", "sentence"), FAULTS.values(), ids=FAULTS)
def test_a_file_that_is_no_state_is_refused(edit, sentence, begun):
    content = json.loads(begun.path.read_text())
    begun.path.write_text(sealed_json({**content, **edit}))
    with pytest.raises(UserError, match=sentence):
        begun.read()


@pytest.mark.parametrize("content", ["", "{}", "\x00", '{"schema": 1'])
def test_damage_is_named(content, begun):
    begun.path.write_text(content)
    with pytest.raises(UserError, match="or is damaged"):
        begun.read()


@pytest.mark.thorough
def test_no_kill_loses_a_look(begun):
    """Watchers are killed at random moments: what was said is there, and the next one goes on."""
    generator, said, folder = np.random.default_rng(0), 100, begun.path.parent
    for _ in range(4):
        command = [sys.executable, "-c", WATCHER, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as running:
            lines = [running.stdout.readline()]
            time.sleep(generator.uniform(0, 0.3))
            running.send_signal(signal.SIGKILL)
            lines += running.stdout.readlines()
        whole = [int(line) for line in lines if line.endswith("\n")]
        assert whole[0] == said + 1 or whole[0] == said + 2
        said = begun.read().rows
        assert whole[-1] <= said <= whole[-1] + 1
    marks = begun.read().marks
    assert [mark.row for mark in marks] == [100, *range(101, said + 1)]
    (folder / "p.csv").write_bytes((folder / "all.csv").read_bytes())
    assert look(begun, begun.read().options, set())[1].rows == 3000
    assert not list(folder.glob(".s.json*tmp"))
