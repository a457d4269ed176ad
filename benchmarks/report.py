"""The page over 1,000 runs: seconds and memory, in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import ROOT, show
from benchmarks.stored import configured, copied
from fairbench.results.run_writer import seal_run
from fairbench.results.runs import read_environment

DATASETS, ARMS = 20, 50
SWEEP = ("dataset=simulated", "method=baseline,ensemble", "intervention=none,reweighing")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        _run("run.py", "-m", *SWEEP, "figures=false", "tracking=none", f"results={results}")
        _multiply(results / "runs")
        before, started = os.times(), time.perf_counter()
        memory = _run("fairbench/__main__.py", "report", f"results={results}")
        after, seconds = os.times(), time.perf_counter() - started
        page = (results / "report" / "index.html").stat().st_size
    cpu = after.children_user - before.children_user
    row = ("report", cpu, seconds, memory / 1e6, page / 1e6)
    title = f"report over {DATASETS * ARMS} runs (targets: 20 CPU s, 0.4 GB)"
    show(title, ("", "CPU s", "wall s", "memory GB", "page MB"), [row])


def _run(*words: str) -> float:
    """Run a command of this checkout and return the most memory it held, in kB."""
    measured = (
        "import resource, runpy, sys; sys.argv = sys.argv[1:]\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", measured, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return float(done.stdout.split()[-1])


def _multiply(runs: Path) -> None:
    """Turn a few finished runs into many, of several data sets and with values of their own."""
    originals = sorted(runs.iterdir())
    for i in range(DATASETS * ARMS):
        dataset, arm = divmod(i, ARMS)
        _copy(originals[arm % len(originals)], dataset, arm)
    for original in originals:
        shutil.rmtree(original)


def _copy(source: Path, dataset: int, arm: int) -> None:
    options = {"dataset.seed": dataset, "learner.rounds": 100 + arm}
    path = copied(source, configured(read_environment(source), options))
    metrics = pd.read_parquet(path / "metrics.parquet")
    noise = np.random.default_rng([dataset, arm]).normal(0, 0.01, len(metrics))
    metrics.assign(value=metrics["value"] + noise).to_parquet(path / "metrics.parquet")
    seal_run(path, read_environment(path))
