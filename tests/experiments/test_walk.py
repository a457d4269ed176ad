"""The way of a run: the files that a reader follows from the command to a stored metric."""

import re
import sys

import pytest
from omegaconf import DictConfig

from fairbench.cli.verbs import run
from tests.harness import ROOT, TINY

# What a configuration becomes on its way; what of it has been evaluated are arrays.
CARRIED = {"Components", "PlannedRun", "Study", "Cell"}


def carries(value):
    """Return whether a value is a configuration of a run, or what one became."""
    if isinstance(value, DictConfig | dict):
        return {"dataset", "learner", "seed"} <= set(value)
    if isinstance(value, list | tuple):
        return any(map(carries, value[:2]))
    return type(value).__name__ in CARRIED


@pytest.mark.thorough
def test_the_way_of_a_run_is_the_one_on_the_map(tmp_path, monkeypatch, capsys):
    """At most fourteen files; `core` knows no run, and what is evaluated are arrays."""
    monkeypatch.setattr(run, "set_up_process", lambda: None)
    visited = set()

    def visit(frame, event, _):
        """Note the file of a function that is handed a run's configuration."""
        code = frame.f_code
        path = code.co_filename.removeprefix(f"{ROOT}/")
        if event == "call" and re.match("fairbench/(?!core/|evaluation/)", path):
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            given = (frame.f_locals[name] for name in names if name not in ("self", "cls"))
            if code.co_name[0] != "<" and any(map(carries, given)):
                visited.add(path)

    sys.setprofile(visit)
    try:
        assert run.run_words([*TINY, "method=baseline", f"results={tmp_path}"]) == 0
    finally:
        sys.setprofile(None)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    way = page.partition("## What happens during a run")[2].partition("## ")[0]
    listed = re.findall(r"^ {3}(fairbench/\S+\.py) ", way, re.M)
    assert {"fairbench/experiments/build.py"} <= visited <= set(listed)
    assert len(listed) == len(set(listed)) <= 14
    assert "nothing to fit" not in capsys.readouterr().out
