"""Files of folders that a stranger may have filled are opened through one door."""

import ast
from pathlib import Path

import pytest

from tests.harness import ROOT

BEHIND = (
    *sorted((ROOT / "fairbench" / "results").glob("*.py")),
    *(ROOT / "fairbench" / "core" / f"{name}.py" for name in ("locks", "state_file")),
    ROOT / "fairbench" / "experiments" / "tuning_trials.py",
    ROOT / "fairbench" / "tracking" / "notes.py",
)
READERS = {"read_bytes", "read_text", "read_metadata", "glob"}
# What is read of the machine, and half files of a state, whose folder its user names.
ALLOWED = {
    "Path('/proc/cpuinfo').read_text()",
    "self.place.parent.glob(f'.{self.place.name}.*.tmp')",
}


def calls(path):
    """Yield the calls of a module that open a file by its path."""
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call) or ast.unparse(call) in ALLOWED:
            continue
        name, what = call.func, call.args[0] if call.args else None
        if isinstance(name, ast.Attribute) and name.attr in READERS:
            yield call
        opens = isinstance(name, ast.Name) and name.id == "open"
        through = isinstance(what, ast.Call) and ast.unparse(what.func) == "opened"
        if opens and not through and ast.unparse(what) != "handle":
            yield call


@pytest.mark.parametrize("path", BEHIND, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_opened_beside_the_door(path):
    assert not [f"line {call.lineno}: {ast.unparse(call)}" for call in calls(path)]


def test_what_opens_a_file_is_found(tmp_path):
    module = Path(tmp_path / "module.py")
    module.write_text("open(path)\npath.read_bytes()\nopen(opened(path))\nopen(handle)\n")
    assert [call.lineno for call in calls(module)] == [1, 2]
