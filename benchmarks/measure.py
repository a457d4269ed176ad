"""What the benchmarks measure with: CPU seconds, exact intervals of shares, and tables."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from scipy import special

from fairbench.cli.command_line import CommandLine, hydra_of
from fairbench.core.errors import DataError
from fairbench.data.dataset import Dataset
from fairbench.data.download import Archive

ROOT = Path(__file__).resolve().parents[1]


def adult() -> tuple[Dataset, str]:
    """Return Adult and its name, or a simulated population of its size where it is not found."""
    from fairbench.components.datasets import adult as found
    from fairbench.components.datasets import simulated

    try:
        return found.load(Archive.of(download=False)), "dataset=adult"
    except DataError:
        data = simulated.load(Archive.of(), n_samples=45222, n_features=101)
        size = "dataset.n_samples=45222 dataset.n_features=101"
        return data, f"dataset=simulated {size}"


def cpu_of(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call in this process."""
    started = time.process_time()
    call()
    return time.process_time() - started


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
    # Data folders are looked up from the checkout, which the empty folder is not.
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        before = os.times()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=here)
        after = os.times()
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, numbers with three digits."""
    table = Table(title=title, title_justify="left")
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row))
    Console(width=100).print(table)


def exact_interval(successes: int, trials: int, certainty: float) -> tuple[float, float]:
    """Return the exact interval of a share, of Clopper and Pearson."""
    tail, rest = (1 - certainty) / 2, trials - successes
    lower = special.betaincinv(successes, rest + 1, tail) if successes else 0.0
    upper = special.betaincinv(successes + 1, rest, 1 - tail) if rest else 1.0
    return float(lower), float(upper)
