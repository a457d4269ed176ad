"""The way of a run: the files that a reader follows from the command to a stored metric."""

import re
import sys
from collections import Counter

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


class Walk:
    """The functions that are handed a run's configuration by another file, with that file."""

    def __init__(self):
        self.steps = {}

    def __call__(self, frame, event, _):
        """Note a call, as a profiler of `sys.setprofile`."""
        code = frame.f_code
        if event != "call" or not (file := self.file(frame)) or code.co_name.startswith("<"):
            return
        caller = frame.f_back
        while caller and not self.file(caller):
            caller = caller.f_back
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = (frame.f_locals[name] for name in names if name not in ("self", "cls"))
        if caller and (origin := self.file(caller)) != file and any(map(carries, given)):
            self.steps[file, code.co_name, origin, caller.f_code.co_name] = None

    def file(self, frame):
        """Return which file of the library a frame is in; none in `core`, which knows no run."""
        path = frame.f_code.co_filename.removeprefix(f"{ROOT}/")
        return path if re.match("fairbench/(?!core/)", path) else ""


@pytest.mark.thorough
def test_the_way_of_a_run_is_the_one_on_the_map(tmp_path, monkeypatch, capsys):
    """At most fourteen files, none of which is entered more than three times."""
    monkeypatch.setattr(run, "set_up_process", lambda: None)
    walk = Walk()
    sys.setprofile(walk)
    try:
        assert run.run_words([*TINY, "method=baseline", f"results={tmp_path}"]) == 0
    finally:
        sys.setprofile(None)
    visits = Counter(file for file, *_ in walk.steps)
    assert "fairbench/experiments/build.py" in visits
    assert max(visits.values()) <= 3, sorted(walk.steps)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    way = page.partition("## What happens during a run")[2].partition("## ")[0]
    listed = re.findall(r"^ {3}(fairbench/\S+\.py) ", way, re.M)
    # Evaluating is a step of its own, handed arrays; the first two compose the configuration.
    evaluation = {file for file in visits if file.startswith("fairbench/evaluation/")}
    assert visits.keys() - evaluation <= set(listed)
    assert len(listed) == len(set(listed)) <= 14
    assert "nothing to fit" not in capsys.readouterr().out
