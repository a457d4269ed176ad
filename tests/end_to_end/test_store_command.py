"""The verb ``fairbench store`` on real runs, and results copied to another machine."""

import shlex
import shutil
import subprocess
import time

import pandas as pd
import pytest

from fairbench.core.processes import using
from fairbench.results.runs import Run, Store
from tests import warm
from tests.harness import command, fairbench, ran, run_folder, run_py, verb

pytestmark = pytest.mark.thorough

RUN = (
    "split.repeats=4", "dataset.n_samples=300", "method=ensemble", "method.members=5",
    "tracking=none", "figures=false",
)  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    cwd = tmp_path_factory.mktemp("original")
    ran(*RUN, cwd=cwd)
    return cwd


@pytest.fixture
def copied(original, tmp_path):
    """Return the folder of another machine, to which the results were copied."""
    shutil.copytree(original / "results", tmp_path / "results")
    return tmp_path


def store(*words, cwd, status=0):
    done = fairbench("store", *words, cwd=cwd, status=status, PATH="")
    return done.stdout + done.stderr


def test_a_run_is_listed_and_shown(original):
    run = run_folder(original / "results").name
    results = f"results={original}/results"
    for words in (("ls", "method=ensemble", results), (results, "ls", run[:5])):
        assert run in store(*words, cwd=original.parent)
    shown = store("show", run[:6], cwd=original)
    for expected in ("n_samples: 300", "versions", "xgboost", "error rate"):
        assert expected in shown
    table = fairbench("table", cwd=original).stdout
    assert table.splitlines()[3] in shown and f"runs/{run}" in table
    assert "unknown run" in store("show", "zz", cwd=original, status=2)


def test_a_run_is_exported_and_audited(original):
    run = run_folder(original / "results").name
    said = store("export", run, "run.csv", "repeat=1", cwd=original)
    frame = pd.read_csv(original / "run.csv")
    assert list(frame) == ["row", "fold", "target", "score", "prediction", "group"]
    assert len(frame) == frame["row"].nunique() == 60
    # The error rate of this repeat is the one that the run's own table has.
    metrics = Run(original / "results" / "runs" / run).all_metrics()
    mine = metrics.query("metric == 'error_rate' and repeat == 1 and attribute == ''")
    assert (frame["prediction"] != frame["target"]).mean() == pytest.approx(mine["value"].iloc[0])
    (command,) = [line for line in said.splitlines() if line.startswith("fairbench audit")]
    fairbench(*shlex.split(command)[1:], "out=page", cwd=original)
    said = store("export", run, "run.csv", "repeat=9", cwd=original, status=2)
    assert "has repeats 0, 1, 2, 3, not 9" in said
    assert "neither .csv nor .parquet" in store("export", run, "x.txt", cwd=original, status=2)


def test_copied_results_resume(copied):
    shutil.rmtree(run_folder(copied / "results"))  # a copy that was cut short
    cells = sorted((copied / "results" / "cells").rglob("*.parquet"))
    cells[0].rename(cells[0].with_name(f".{cells[0].name}.Ab3xYz"))  # rsync's half file
    assert "fitted 1 of 4 cells" in run_py(*RUN, cwd=copied).stdout
    assert "nothing to fit: all 4 cells were in the store" in run_py(*RUN, cwd=copied).stdout


def test_a_run_is_verified_bit_for_bit_and_another_value_in_a_whole_cell_is_found(copied):
    run = run_folder(copied / "results")
    said = store("verify", run.name, "cells=2", cwd=copied)
    assert "4 of 4 cells are as they were written" in said
    assert "2 of 2 computed again are the same, bit for bit" in said
    kept, cell = Store(copied / "results"), Run(run).cells()[0]
    columns = dict(kept.read(cell).columns)
    name = next(name for name in columns if name not in ("part", "row"))
    kept.write(cell, {**columns, name: columns[name] * 1.5}, {})
    said = store("verify", run.name, "cells=4", cwd=copied, status=1)
    assert "3 of 4 computed again are the same" in said
    assert f"differs: cell {cell}: 1 of " in said


def test_cells_that_a_resumed_run_has_found_survive_garbage_collection(copied):
    shutil.rmtree(run_folder(copied / "results"))
    cells = {path: path.stat().st_ino for path in (copied / "results" / "cells").rglob("*.parquet")}
    with using(copied / "results"):  # until the run uses the folder itself
        process = subprocess.Popen(command(*RUN), cwd=copied, stdout=subprocess.PIPE, text=True)
        locks = copied / "results" / "locks"
        while len(list(locks.glob("command-*.lock"))) < 2:
            assert process.poll() is None
            time.sleep(0.01)
    refused = 0
    while process.poll() is None:
        words = verb("store", "gc", "hours=0", "wait=0")[1:]
        done = warm.run(words, cwd=copied, timeout=240, environment={})
        refused += done.returncode == 2 and f"process {process.pid} on" in done.stderr
    assert refused
    assert "nothing to fit: all 4 cells were in the store" in process.communicate()[0]
    assert "freed 0.00 MB" in store("gc", "hours=0", cwd=copied)
    assert {path: path.stat().st_ino for path in cells} == cells
    shutil.rmtree(run_folder(copied / "results"))
    assert "cell of no run" in store("gc", "hours=0", cwd=copied)
    assert not any(path.exists() for path in cells)
