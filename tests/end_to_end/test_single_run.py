"""One run, as a user starts it."""

import json
import signal
import subprocess
import sys

import pytest

from fairbench.results.runs import Run
from tests.harness import ROOT, command, ran, run_folder, run_py

# A shell's background jobs ignore interrupts, and their children with them.
HEED_INTERRUPTS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
SMALL = ("split.repeats=3", "dataset.n_samples=400")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of the default run, made once, and what it printed."""
    cwd = tmp_path_factory.mktemp("run")
    return cwd, run_py(*SMALL, cwd=cwd)


def test_default_run_prints_a_table_and_where_things_are(finished):
    cwd, done = finished
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any("error rate" in line for line in lines)
    assert max(map(len, lines[:-1])) <= 100
    assert lines[-1].startswith("fitted 3 of 3 cells in ")
    assert f"files: results/runs/{run_folder(cwd / 'results').name}; MLflow: sqlite:" in lines[-1]


def test_run_folder_is_whole(finished):
    folder = run_folder(finished[0] / "results")
    metrics = Run(folder).all_metrics()
    assert set(metrics["repeat"]) == {0, 1, 2}
    assert len(Run(folder).cells()) == 3
    assert Run(folder).config["dataset"]["n_samples"] == 400
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["seed"] == 0
    assert environment["versions"]["numpy"]
    figures = {path.name for path in (folder / "figures").iterdir()}
    expected = ("abstention", "group_rates", "reliability", "spread", "uncertainties")
    assert figures == {*(f"{name}.png" for name in expected), "manifest.json"}


def run_and_list_modules(*arguments, cwd):
    """Return what a run.py prints, and the modules it has loaded when it ends."""
    code = (
        f"import runpy, sys; sys.argv = {['run.py', *arguments]!r}; sys.path[0] = {str(ROOT)!r}\n"
        f"try: runpy.run_path({str(ROOT / 'run.py')!r}, run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True
    )
    printed, _, modules = done.stdout.rstrip().rpartition("\n")
    return printed, set(modules.split())


def test_help_teaches_and_imports_nothing_heavy(tmp_path):
    printed, loaded = run_and_list_modules("--help", cwd=tmp_path)
    assert "fairbench run dataset=german method=binomial_nll" in printed
    assert "method=  how models are fitted" in printed and "baseline, " in printed
    assert "seed=0           the seed that every random draw is made from" in printed
    assert "--help all explains all of it" in printed
    whole, _ = run_and_list_modules("--help", "all", cwd=tmp_path)
    assert "evaluator.draws=1000            posterior draws" in whole
    assert "split.repeats=10      how many random splits are made" in whole
    assert "fairlyuncertain/table1" in whole and "--help all" not in whole
    assert len(printed.splitlines()) <= 40 < len(whole.splitlines())
    assert max(map(len, [*printed.splitlines(), *whole.splitlines()])) <= 100
    of_another, _ = run_and_list_modules("learner=lightgbm", "--help", cwd=tmp_path)
    assert "learner.num_leaves=31" in of_another and "learner.gamma" not in of_another
    assert not loaded & {"numpy", "pandas", "sklearn", "xgboost", "mlflow", "torch"}


@pytest.mark.thorough
def test_a_run_imports_only_what_it_uses(tmp_path):
    printed, loaded = run_and_list_modules(*SMALL, "tracking=none", cwd=tmp_path)
    assert "fitted 3 of 3 cells" in printed
    assert "xgboost" in loaded
    assert not loaded & {"mlflow", "torch", "jax", "fairlearn"}


@pytest.mark.thorough
def test_one_class_in_training_is_undefined_not_wrong(tmp_path):
    rows = ["x,y,g"] + [f"{i % 7},{int(i == 0)},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "rare.csv").write_text("\n".join(rows) + "\n")
    table = ("dataset=table", "dataset.path=rare.csv", "dataset.target=y", "dataset.sensitive=[g]")
    ran(*table, "split.repeats=6", "tracking=none", cwd=tmp_path)
    metrics = Run(run_folder(tmp_path / "results")).all_metrics()
    errors = metrics.query("metric == 'error_rate' and attribute == ''")
    undefined = errors[errors["value"].isna()]
    assert set(undefined["status"]) == {"undefined"}
    assert set(undefined["reason"]) == {"only class 0 among 48 training rows"}
    assert 0 < len(undefined) < 6


@pytest.mark.thorough
def test_interrupting_keeps_finished_cells(tmp_path):
    words = ("dataset.n_samples=20000", "method=ensemble", "split.repeats=40", "tracking=none")
    process = subprocess.Popen(
        [sys.executable, "-c", HEED_INTERRUPTS, *command(*words)],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    cells = tmp_path / "results" / "cells"
    while process.poll() is None and not list(cells.rglob("*.parquet")):
        pass
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: finished cells are kept; the same command goes on" in error
    assert "Traceback" not in error
