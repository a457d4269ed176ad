"""How many files a run makes and opens, in counts, which no other process can change.

What is measured in seconds is in docs/scale.md. Bounds are what there was when they were written:
whoever gets below one lowers it.
"""

import json
from pathlib import Path

import pytest

from tests import warm

SWEEP = ("-m", "dataset=simulated", "dataset.n_samples=200", "split.repeats=1", "figures=false",
         "tracking=none", "data.download=false")  # fmt: skip
FILES = 8  # that a run adds to the results folder
OPENED = {"written": 10, "read": 15, "folders": 105}  # by a run, the sweep's table at its end too


@pytest.mark.thorough
def test_a_run_adds_few_files_and_opens_few(tmp_path):
    """Compared are sweeps of two and of six runs: what a sweep does once does not count."""
    script, counts, files = str(Path(__file__).with_name("counting.py")), [], []
    for runs in (2, 6):
        results = tmp_path / str(runs)
        words = [script, *SWEEP, f"seed=range(0,{runs})", f"results={results}"]
        done = warm.run(words, cwd=tmp_path, timeout=240, environment={})
        assert done.returncode == 0, done.stdout + done.stderr
        counts.append(json.loads(done.stdout.splitlines()[-1]))
        files.append(sum(path.is_file() for path in results.rglob("*")))
    few, many = counts
    assert files[1] - files[0] <= 4 * FILES
    for kind, most in OPENED.items():
        assert 0 < many[kind] - few[kind] <= 4 * most, kind
