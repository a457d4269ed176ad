"""What the benchmarks measure with: CPU seconds of calls and of whole processes, and a table."""

from __future__ import annotations

import importlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from fairbench.cli.command_line import CommandLine, hydra_of
from fairbench.core.errors import DataError
from fairbench.data.dataset import Dataset
from fairbench.data.download import Archive

ROOT = Path(__file__).resolve().parents[1]


def adult() -> tuple[Dataset, str]:
    """Return Adult and its name, or a simulated population of its size where it is not found."""
    return _real_or_simulated("adult", n_samples=45222, n_features=101)


def german() -> tuple[Dataset, str]:
    """Return German credit and its name, or a simulated population of its size."""
    return _real_or_simulated("german", n_samples=1000, n_features=57)


def _real_or_simulated(name: str, *, n_samples: int, n_features: int) -> tuple[Dataset, str]:
    from fairbench.components.datasets import simulated

    try:
        load = importlib.import_module(f"fairbench.components.datasets.{name}").load
        return load(Archive.of(download=False)), f"dataset={name}"
    except DataError:
        data = simulated.load(Archive.of(), n_samples=n_samples, n_features=n_features)
        size = f"dataset.n_samples={n_samples} dataset.n_features={n_features}"
        return data, f"dataset=simulated {size}"


def cpu_of(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call in this process."""
    started = time.process_time()
    call()
    return time.process_time() - started


def wall_of(call: Callable[[], object]) -> float:
    """Return the seconds a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def configuration(*words: str) -> dict[str, Any]:
    """Compose a configuration as run.py would, of data at hand."""
    (composed,) = configurations(*words)
    return composed


def configurations(*words: str) -> list[dict[str, Any]]:
    """Compose the jobs of a sweep as ``run.py -m`` would, of data at hand."""
    conf = ROOT / "conf"
    with hydra_of(conf):
        line = CommandLine([*words, "data.download=false"], conf, sweep=True)
        return [line.compose(job) for job in line.jobs]


def cpu_of_process(command: Sequence[str]) -> float:
    """Return the CPU seconds of a command, run in an empty folder, children included."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.times()
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, env=environment()
        )
        after = os.times()
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def environment() -> dict[str, str]:
    """Return the environment of a run in an empty folder."""
    # Data folders are looked up from the checkout, which the empty folder is not.
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def line(x: Sequence[float], y: Sequence[float]) -> NDArray[np.float64]:
    """Return slope and intercept of the least-squares line."""
    return np.polyfit(x, y, 1)


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, numbers with three digits."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row))
    Console(width=100).print(table)
