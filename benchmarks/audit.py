"""``fairbench audit`` on a million rows, of thousands of groups, and on a hundred million rows."""

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
LARGE = 100_000_000
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
    show(
        f"fairbench audit of decisions about {LARGE:,} people, a Parquet file",
        ("", "CPU s", "wall s", "target s", "GB", "target GB"),
        [("two attributes, all labelled", *_large())],
    )


def _large() -> tuple[float, ...]:
    """Return what an audit of decisions takes, of which only the number of each kind counts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.parquet"
        _write_decisions(path)
        words = (
            "target=repaid",
            "prediction=approved",
            "decision=yes/no",
            "favourable=true",
            "group=[sex,race]",
        )
        # ru_maxrss of children is the largest of all: this one's is said by a process between.
        code = (
            "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
            "stdout=subprocess.DEVNULL); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        command = _command(path, Path(folder), words)
        before, started = _cpu_of_children(), time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code, *command],
            check=True, cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
        wall = time.perf_counter() - started
        return _cpu_of_children() - before, wall, 60.0, int(done.stdout) / 2**20, 1.0


def _write_decisions(path: Path) -> None:
    """Write as many rows as are audited, a million at a time."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    draw, step = rng(0, "benchmark", "decisions"), 1_000_000
    names = [("person", pa.int64()), ("sex", pa.string()), ("race", pa.string())]
    schema = pa.schema([*names, ("repaid", pa.bool_()), ("approved", pa.string())])
    sexes, races = np.array(["female", "male"]), np.array(["white", "black", "asian", "other"])
    with ParquetWriter(path, schema) as writer:
        for start in range(0, LARGE, step):
            sex = draw.choice(2, step, p=[0.45, 0.55])
            race = draw.choice(4, step, p=[0.6, 0.2, 0.15, 0.05])
            repaid = draw.random(step) < 0.7 - 0.05 * sex
            approved = draw.random(step) < 0.3 + 0.4 * repaid + 0.02 * (race == 1)
            columns = [
                np.arange(start, start + step),
                sexes[sex],
                races[race],
                repaid,
                np.where(approved, "yes", "no"),
            ]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=schema))


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
    command = _command(path, folder, ("target=label", "score=score", group))
    before, started = _cpu_of_children(), time.perf_counter()
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - started
    return _cpu_of_children() - before, wall


def _command(path: Path, folder: Path, words: Sequence[str]) -> list[str]:
    out = f"out={folder / 'out'}"
    return [sys.executable, "-m", "fairbench", "audit", str(path), *words, out]


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
