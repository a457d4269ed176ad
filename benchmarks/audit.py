"""``fairbench audit`` on a million rows, none, few and all labelled, and of thousands of groups."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.measure import ROOT, show
from fairbench.core.seeds import rng

ROWS, TARGET = 1_000_000, 10.0
# Groups of each column, rows, and the seconds they may take.
MANY = {
    "300": ((300,), 30_000, 4.0),
    "10 x 6 x 5": ((10, 6, 5), 30_000, 4.0),
    "3,000": ((3_000,), 100_000, 10.0),
    "20 x 15 x 10": ((20, 15, 10), 100_000, 10.0),
}
LABELS = {"no labels": 0, "100 labels": 100, "10,000 labels": 10_000, "all labels": ROWS}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.csv"
        frame = _predictions()
        rows = []
        for name, labels in LABELS.items():
            frame.assign(label=frame["label"].where(frame.index < labels)).to_csv(path, index=False)
            rows.append((name, *_seconds(path, Path(folder), "group=[sex,race]"), TARGET))
    title = f"fairbench audit, {ROWS:,} rows, two attributes, in a process of its own"
    header = ("", "CPU s", "wall s", "target s")
    show(title, header, rows)
    show("fairbench audit of many groups", header, [*_many()])


def _many() -> Iterator[tuple[str, float, float, float]]:
    for name, (sizes, n_rows, target) in MANY.items():
        with tempfile.TemporaryDirectory() as folder:
            path, columns = Path(folder) / "predictions.csv", [f"g{i}" for i in range(len(sizes))]
            _of_groups(sizes, n_rows).to_csv(path, index=False)
            seconds = _seconds(path, Path(folder), f"group=[{','.join(columns)}]")
            yield f"{name} groups, {n_rows:,} rows", *seconds, target


def _of_groups(sizes: Sequence[int], n_rows: int) -> pd.DataFrame:
    """Return predictions for people of groups that differ by the values of each column."""
    draw = rng(0, "benchmark", "many groups")
    codes = [draw.integers(size, size=n_rows) for size in sizes]
    logit = sum(draw.normal(0, 0.3, size)[code] for size, code in zip(sizes, codes, strict=True))
    label = draw.random(n_rows) < 1 / (1 + np.exp(-logit))
    score = 1 / (1 + np.exp(-(label + draw.normal(0, 1, n_rows) - 0.5)))
    columns = {f"g{i}": [f"v{c}" for c in code.tolist()] for i, code in enumerate(codes)}
    return pd.DataFrame({**columns, "score": score.round(6), "label": label.astype(int)})


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


def _seconds(path: Path, folder: Path, group: str) -> tuple[float, float]:
    """Return CPU and wall seconds of a whole audit, reading and writing included."""
    words = (str(path), "target=label", "score=score", group, f"out={folder / 'out'}")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    command = [sys.executable, "-m", "fairbench", "audit", *words]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, wall
