"""What a store of 100,000 small cells takes, and what one cell of Adult does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.measure import adult, configuration, cpu_of, wall_of
from fairbench.core.fingerprint import digest
from fairbench.experiments import pipeline
from fairbench.experiments.compute import compute
from fairbench.results.cells import Columns, Store
from fairbench.results.garbage import garbage

CELLS, MANY = 100_000, 10_000_000
ROWS, PER_RUN, SAMPLE, DURABLE = 100, 100, 5_000, 100
Row = tuple[str, float | str, str]


def many() -> tuple[list[Row], dict[str, float]]:
    """Return the rows of a table on many cells, and the CPU seconds that grow with their number."""
    ids = [digest(i) for i in range(CELLS)]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        durable = wall_of(lambda: _store(store, ids[:DURABLE])) / DURABLE
        with patch.object(os, "fsync"):  # waiting for the disk is told apart, above
            written = cpu_of(lambda: _store(store, ids[DURABLE:]))
        _refer(store, ids)
        seconds = {"write": written, **_seconds(store, ids)}
        sizes = [path.stat() for path in (store.root / "cells").rglob("*.parquet")]
    return [
        ("files", f"{len(sizes):,}", ""),
        ("kB a cell, as bytes", sum(size.st_size for size in sizes) / CELLS / 1000, ""),
        ("kB a cell, on disk", sum(size.st_blocks for size in sizes) * 0.512 / CELLS, ""),
        ("ms a write, waiting for the disk", 1000 * durable, ""),
        *((f"{name}, s CPU", value, "") for name, value in seconds.items()),
    ], seconds


def _store(store: Store, ids: list[str]) -> None:
    for cell in ids:
        with store.lock(cell):
            store.write(cell, _small(cell), {"fit_seconds": 0.1})


def _small(cell: str) -> Columns:
    draw = np.random.default_rng(int(cell[:8], 16))
    return {
        "part": np.full(ROWS, 2, np.int8),
        "row": np.arange(ROWS, dtype=np.int32),
        "score": draw.random(ROWS, dtype=np.float32),
    }


def _refer(store: Store, ids: list[str]) -> None:
    """Have runs refer to all the cells."""
    for start in range(0, CELLS, PER_RUN):
        store.run_path(str(start)).mkdir(parents=True)
        names = "\n".join(ids[start : start + PER_RUN])
        (store.run_path(str(start)) / "cells.txt").write_text(names)


def _seconds(store: Store, ids: list[str]) -> dict[str, float]:
    sample = np.random.default_rng(0).choice(ids, SAMPLE).tolist()
    read = cpu_of(lambda: [store.read(cell) for cell in sample])
    return {
        "list": cpu_of(lambda: sum(1 for _ in (store.root / "cells").glob("*/*.parquet"))),
        "ask whether each is there": cpu_of(lambda: [store.has(cell) for cell in ids]),
        "find those of no run (gc)": cpu_of(lambda: garbage(store)),
        "read and verify": read * CELLS / SAMPLE,
    }


def of_adult() -> Iterator[Row]:
    """Yield CPU and size of cells with the scores of 2 and of 10 members."""
    few, cpu = _bag(2)
    yield "ms CPU, 2 members", 1000 * cpu, "< 10"
    more, cpu = _bag(10)
    yield "ms CPU, 10 members", 1000 * cpu, "< 10"
    member = (more - few) / 8
    yield "kB a member", member, "< 25"
    yield "kB without members", few - 2 * member, "< 80"


def _bag(members: int, times: int = 20) -> tuple[float, float]:
    """Return kB and CPU seconds of a bag's cell."""
    words = [*adult()[1].split(), "method=ensemble", f"method.members={members}"]
    run = pipeline.prepare(configuration(*words))
    columns, notes = compute(run.cells[0].study, run.cells[0].fold)
    ids = [digest(i) for i in range(times)]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        cpu = cpu_of(lambda: _store_and_read(store, ids, columns, notes))
        return store.cell_path(ids[0]).stat().st_size / 1000, cpu / times


def _store_and_read(store: Store, ids: list[str], columns: Columns, notes: dict[str, Any]) -> None:
    for cell in ids:
        with store.lock(cell):
            store.write(cell, columns, notes)
        store.read(cell)
