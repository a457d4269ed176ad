"""How much work a run makes beside its fits, in counts, which no other process can change.

What is measured in seconds is in docs/scale.md. Bounds are what there was when they were written:
whoever gets below one lowers it.
"""

import json
from pathlib import Path

import pytest

from tests import warm

pytestmark = pytest.mark.thorough
SWEEP = ("-m", "dataset=simulated", "dataset.n_samples=200", "split.repeats=1", "figures=false",
         "tracking=none")  # fmt: skip
FILES = 8  # that a run adds to the results folder
OPENED = {
    "written": 10,
    "read": 15,
    "folders": 105,
}  # by a run of a sweep, the table at its end too


def counted(folder, *commands):
    """Return what is counted of sweeps that are carried out one after the other."""
    words = json.dumps([[*SWEEP, *command] for command in commands])
    script = str(Path(__file__).with_name("counting.py"))
    done = warm.run([script, words], cwd=folder, timeout=240, environment={})
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def of_depths(*depths):
    """Return the words of a sweep over depths, of which one is the learner's own."""
    values = ",".join(map(str, depths))
    return ["learner.max_depth=6", "consistency.vary=learner.max_depth",
            f"consistency.values=[{values}]"]  # fmt: skip


def test_a_run_adds_few_files_and_opens_few(tmp_path):
    """Compared are sweeps of two and of six runs: what a sweep does once does not count."""
    few, many = counted(tmp_path, ["seed=range(0,2)"], ["seed=range(0,6)"])
    there = [sum(path.is_file() for path in (tmp_path / at).rglob("*")) for at in "01"]
    assert many["fits"] == 6
    assert there[1] - there[0] <= 4 * FILES
    for kind, most in OPENED.items():
        assert 0 < many[kind] - few[kind] <= 4 * most, kind


def test_variants_of_a_run_are_evaluated_together(tmp_path):
    three, nine = (of_depths(*range(6 - count, 6 + count + 1)) for count in (1, 4))
    few, many = counted(tmp_path, three, nine)
    assert few["fits"] < many["fits"] <= 9
    assert 0 < few["evaluating"] <= many["evaluating"] <= 1.1 * few["evaluating"]
