"""Two joblib workers beside one: the wall time of FairlyUncertain's Table 1 grid on two cores."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial

from benchmarks.measure import ROOT, environment, show, wall_of

REPEATS = 2


def main() -> None:
    seconds = {workers: wall_of(partial(_sweep, workers)) for workers in (1, 2)}
    rows = [
        *((f"{workers} workers, s", second, "") for workers, second in seconds.items()),
        ("times as fast", seconds[1] / seconds[2], ">= 1.8"),
    ]
    show(f"Table 1, {REPEATS} repeats, in fresh processes", ("", "measured", "target"), rows)


def _sweep(workers: int) -> None:
    command = [
        sys.executable,
        str(ROOT / "run.py"),
        "-m",
        "experiment=fairlyuncertain/table1",
        f"split.repeats={REPEATS}",
        "hydra/launcher=joblib",
        f"hydra.launcher.n_jobs={workers}",
        "tracking=none",
        "data.download=false",
    ]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(command, cwd=folder, env=environment(), check=True, capture_output=True)
