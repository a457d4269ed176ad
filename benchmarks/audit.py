"""``fairbench audit`` on a million rows: none, few and all of them labelled."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import ROOT, show
from fairbench.core.seeds import rng

ROWS, TARGET = 1_000_000, 10.0
LABELS = {"no labels": 0, "100 labels": 100, "10,000 labels": 10_000, "all labels": ROWS}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.csv"
        frame = _predictions()
        rows = []
        for name, labels in LABELS.items():
            frame.assign(label=frame["label"].where(frame.index < labels)).to_csv(path, index=False)
            rows.append((name, *_seconds(path, Path(folder)), TARGET))
    title = f"fairbench audit, {ROWS:,} rows, two attributes, in a process of its own"
    show(title, ("", "CPU s", "wall s", "target s"), rows)


def _predictions() -> pd.DataFrame:
    draw = rng(0, "benchmark", "audit")
    score = draw.beta(0.5, 1.5, ROWS).round(6)
    return pd.DataFrame(
        {
            "sex": draw.choice(["Male", "Female"], ROWS, p=[0.67, 0.33]),
            "race": draw.choice(
                ["White", "Black", "Asian", "Other"], ROWS, p=[0.8, 0.1, 0.06, 0.04]
            ),
            "score": score,
            "label": (draw.random(ROWS) < score).astype(np.int64),
        }
    ).astype({"label": "Int64"})


def _seconds(path: Path, folder: Path) -> tuple[float, float]:
    """Return CPU and wall seconds of a whole audit, reading and writing included."""
    words = (str(path), "target=label", "score=score", "group=[sex,race]", f"out={folder / 'out'}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    command = [sys.executable, "-m", "fairbench", "audit", *words]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall
