"""Sweeps: sharing, skipping, failing, being killed, and going on."""

import os
import signal
import subprocess
import time

import pandas as pd
import pytest

from tests.harness import (
    cells_of,
    command,
    metrics_of,
    quick,
    ran,
    run_py,
    session,
    together,
    within,
)

SWEEP = (
    "-m", "dataset.n_samples=2000", "method=binomial_nll,ensemble,self_consistency",
    "split.repeats=4", "tracking=none", "figures=false",
)  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the metrics of the sweep that nothing interrupted."""
    cwd = tmp_path_factory.mktemp("undisturbed")
    ran(*SWEEP, cwd=cwd)
    return metrics_of(cwd)


def assert_same_metrics(undisturbed, cwd):
    result = metrics_of(cwd)
    assert set(undisturbed) == set(result)
    for run, metrics in undisturbed.items():
        pd.testing.assert_frame_equal(metrics, result[run])


@pytest.mark.parametrize("launcher", quick(["basic", "submitit_slurm"], ["basic"]))
def test_plan_of_a_sweep_counts_shared_cells_once_and_submits_nothing(tmp_path, launcher):
    done = ran(*SWEEP, "plan=true", f"hydra/launcher={launcher}", cwd=tmp_path)
    assert "8 cells to compute" in done.stdout
    assert not (tmp_path / "results" / "cells").exists()
    assert not list(tmp_path.rglob(".submitit"))


@pytest.mark.parametrize("moment", quick([1, 3, 6], [3], rest=pytest.mark.slow))
def test_killed_sweep_goes_on_where_it_was(undisturbed, tmp_path, moment):
    process = subprocess.Popen(
        command(*SWEEP), cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True
    )
    while process.poll() is None and len(cells_of(tmp_path)) < moment:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = cells_of(tmp_path)
    assert moment <= len(kept) < 8
    assert f"fitted {8 - len(kept)} of 8 cells" in ran(*SWEEP, cwd=tmp_path).stdout
    after = cells_of(tmp_path)
    assert {name: after[name] for name in kept} == kept
    assert_same_metrics(undisturbed, tmp_path)


@pytest.mark.thorough
def test_two_processes_share_a_results_folder(undisturbed, tmp_path):
    printed = together(SWEEP, SWEEP, cwd=tmp_path)
    assert sum([int(text.rpartition("fitted ")[2].split()[0]) for text in printed]) == 8
    assert_same_metrics(undisturbed, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_launchers_from_another_directory(undisturbed, tmp_path, launcher):
    # A package of this name where the sweep is started does not hide the checkout's.
    (tmp_path / "datasets.py").write_text("raise RuntimeError('not this one')")
    done = ran(*SWEEP, f"hydra/launcher={launcher}", "figures=false", cwd=tmp_path)
    assert done.stderr.count("Warning") == 0
    # The bag that two of the runs share is fitted once, whoever computes it.
    assert "fitted 8 of 8 cells" in done.stdout
    assert_same_metrics(undisturbed, tmp_path)


@pytest.mark.thorough
def test_jobs_that_are_skipped_or_fail_are_listed_and_the_others_kept(tmp_path):
    done = run_py(
        "-m", "dataset=simulated,simulated_regression", "split.train=2.0,0.8", "split.repeats=1",
        "dataset.n_samples=200", "tracking=none", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    of = "simulated_regression, xgboost, binomial_nll, split.train=0.8"
    assert f"skipped: {of}: method=binomial_nll needs a binary" in done.stdout
    wrong = "split.train is 2.0; it must be"
    assert f"failed: simulated, xgboost, binomial_nll, split.train=2.0: {wrong}" in done.stdout
    assert "1 runs finished, 1 skipped, 2 failed" in done.stdout
    assert f"split.train=2.0 {wrong}" in " ".join(done.stdout.split())
    assert "the same command runs what failed again" in done.stdout.splitlines()[-1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "launcher",
    quick(["basic", "joblib", "submitit_local"], ["basic"], rest=pytest.mark.slow),
)
def test_a_cell_that_takes_too_long_is_ended_and_its_job_named(tmp_path, launcher):
    words = ("dataset.n_samples=500", "split.repeats=1", "tracking=none", "figures=false")
    ran(*words, "learner.rounds=5", cwd=tmp_path)
    limits = ("timeout_min=0.05", f"hydra/launcher={launcher}")
    done = run_py("-m", *words, "learner.rounds=5,5000000", *limits, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "1 runs finished, 0 skipped, 1 failed" in done.stdout
    why = "took longer than 0.05 minutes (timeout_min): finished cells are kept"
    assert f"learner.rounds=5000000 {why}" in " ".join(done.stdout.split())
    assert len(cells_of(tmp_path)) == 1
    assert "nothing to fit" in run_py(*words, "learner.rounds=5", cwd=tmp_path).stdout
    assert not list((tmp_path / "results" / "locks").iterdir())


@pytest.mark.thorough
def test_no_job_of_submitit_outlives_a_killed_command(tmp_path):
    words = ("-m", "learner.rounds=5000000", "tracking=none", "hydra/launcher=submitit_local")
    process = subprocess.Popen(command(*words), cwd=tmp_path, start_new_session=True)
    try:
        jobs, cells = set(), set()
        while not jobs or len(cells) < len(jobs):
            time.sleep(0.1)
            jobs = set(session(process.pid, "submitit.core._submit"))
            names = {path.name for path in tmp_path.glob("results/locks/*.lock")}
            cells = {name for name in names if not name.startswith(("command-", "folder"))}
            assert process.poll() is None
    finally:
        process.kill()
        process.wait()
    within(5, lambda: not session(process.pid, "-m\0submitit"))
