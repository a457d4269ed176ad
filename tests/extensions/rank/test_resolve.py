"""``fairbench resolve METRIC budget=TIME``: rounds, the record, going on, and bad input."""

import json
import os
import subprocess
import sys
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

from fairbench.cli.main import main
from fairbench.core.errors import UserError
from fairbench.results.catalogue import Catalogue
from fairbench_rank.resolve import seconds_of_text
from tests.harness import ROOT

SWEEP = (
    "dataset.n_samples=120,140,160,180,200,220", "learner=gaussian_nb,logistic_regression",
    "method=baseline", "split.repeats=2", "figures=false", "tracking=none",
)  # fmt: skip


@pytest.fixture(autouse=True)
def ticking(monkeypatch):
    """Have half a second go by whenever the time is asked for, however slow the machine."""
    clock = SimpleNamespace(monotonic=partial(next, count(step=0.5)))
    monkeypatch.setattr("fairbench_rank.resolve.time", clock)


def resolved(folder, capsys, *more):
    """Run the sweep with a budget; return its exit status, what it printed, and its record."""
    status = main(["resolve", "error_rate", "budget=5s", *SWEEP, f"results={folder}", *more])
    printed = capsys.readouterr()
    (record,) = folder.glob("resolve/*/rounds.json")
    return status, printed.out, json.loads(record.read_text())


@pytest.mark.thorough
def test_rounds_add_splits_and_the_page_says_what_they_bought(tmp_path, capsys):
    status, printed, record = resolved(tmp_path, capsys)
    assert status == 0
    rounds = record["rounds"]
    assert [entry["number"] for entry in rounds] == list(range(1, len(rounds) + 1))
    assert "approaches may have the least error_rate on average over tasks" in printed
    (page,) = tmp_path.glob("resolve/*/resolve.json")
    told = json.loads(page.read_text())
    assert [entry["splits"] for entry in told["rounds"]] == [entry["splits"] for entry in rounds]
    assert told["reason"] in ("budget", "bound", "resolved")
    longest = {}
    for stored in Catalogue(tmp_path):
        repeats = int(stored.config["split"]["repeats"])
        task = f"simulated n_samples={stored.config['dataset']['n_samples']}, group"
        longest[task] = max(longest.get(task, 0), repeats)
    assert {task: longest[task] for task in rounds[-1]["splits"]} == rounds[-1]["splits"]
    before = len(rounds)
    again = resolved(tmp_path, capsys, "resume=true")[2]["rounds"]
    assert again[:before] == rounds  # no round is made twice


@pytest.mark.thorough
def test_a_record_that_is_damaged_is_refused(tmp_path, capsys):
    resolved(tmp_path, capsys)
    (record,) = tmp_path.glob("resolve/*/rounds.json")
    record.write_text(record.read_text().replace('"fits"', '"fit"'))
    assert main(["resolve", "error_rate", "budget=5s", *SWEEP, f"results={tmp_path}"]) == 2
    assert "rounds.json is not as it was written: remove it" in capsys.readouterr().err


@pytest.mark.thorough
def test_what_is_killed_goes_on(tmp_path, capsys):
    words = ["resolve", "error_rate", "budget=60s", *SWEEP, f"results={tmp_path}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "fairbench", *words], cwd=ROOT, text=True, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    for line in process.stdout:
        if line.startswith("round 2"):
            break
    process.kill()
    process.wait()
    process.stdout.close()
    cells = {path.name for path in tmp_path.glob("cells/*/*")}
    status, _, record = resolved(tmp_path, capsys)
    assert status == 0 and len(record["rounds"]) >= 2
    assert cells <= {path.name for path in tmp_path.glob("cells/*/*")}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["error_rate"], "budget= is missing: fairbench resolve error_rate budget=2h"),
        (["budget=2h"], "no metric is named"),
        (["error_rate", "budget=2"], "budget=2 is no time: write 90s, 30m, 2h or 1d"),
        (["error_rate", "budget=0h"], "budget=0h is no time"),
        (["error_rate", "budget=-1h"], "budget=-1h is no time"),
        (["eror_rate", "budget=1m"], "did you mean error_rate"),
        (["selection_rate", "budget=1m"], "neither higher nor lower values"),
        (["error_rate", "budget=1m", "plan=true"], "plan=true plans an experiment"),
        (["error_rate", "budget=1m", "split=test_file"], ""),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_bad_input_is_refused_in_a_line(words, line, tmp_path, capsys):
    assert main(["resolve", *words, *SWEEP[:3], f"results={tmp_path}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and len(error.splitlines()) == 1 and line in error
    assert not (tmp_path / "cells").exists()


def test_one_run_is_no_sweep(tmp_path, capsys):
    words = ["error_rate", "method=baseline", "budget=1m", f"results={tmp_path}"]
    assert main(["resolve", *words]) == 2
    assert "compares the runs of a sweep, and this is one run" in capsys.readouterr().err


def test_times_are_read():
    assert seconds_of_text("1.5h") == 5400.0
    with pytest.raises(UserError, match="is no time"):
        seconds_of_text("soon")
