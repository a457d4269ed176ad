"""Writing the folder of a run: whole files, the one that marks the run as finished last."""

from __future__ import annotations

import contextlib
import json
import platform
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from fairbench.core.files import atomic, csv_text, write_text
from fairbench.data.dataset import Dataset
from fairbench.results.people import write_people
from fairbench.results.predictions import write_predictions
from fairbench.results.runs import Run, read_environment


@dataclass(frozen=True)
class RunWriter:
    """The folder of a run that is being made."""

    path: Path

    def finished(self, fingerprint: str) -> bool:
        """Say whether the run is there, made from these very cells and this very code."""
        return read_environment(self.path).get("fingerprint") == fingerprint

    @contextlib.contextmanager
    def drawing(self) -> Iterator[Path]:
        """Yield a folder that becomes the run's figures when the block succeeds."""
        self.path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".figures.", dir=self.path) as temporary:
            folder = Path(temporary) / "figures"
            folder.mkdir()
            yield folder
            with contextlib.suppress(OSError):  # another process has drawn the same ones
                folder.replace(Run(self.path).figures)

    def write(
        self,
        config: str,
        cells: Sequence[str],
        tables: RunTables,
        dataset: Dataset,
        environment: dict[str, Any],
    ) -> None:
        """Write every file atomically."""
        results = self.path.parents[1]
        write_people(results, dataset)
        rows = write_predictions(results, self.path / "predictions.parquet", tables.predictions)
        write_text(self.path / "config.yaml", config)
        write_text(self.path / "cells.txt", "\n".join(cells) + "\n")
        write_text(self.path / "summary.csv", csv_text(tables.summary))
        with atomic(self.path / "metrics.parquet") as temporary:
            tables.metrics.to_parquet(temporary, index=False)
        known = {**environment, "data": dataset.digest, "rows": rows}
        write_text(self.path / "environment.json", json.dumps(known, indent=2))


@dataclass(frozen=True, eq=False)
class RunTables:
    """The tables of a run: its metrics, their means over repeats, its predictions."""

    metrics: pd.DataFrame
    summary: pd.DataFrame
    predictions: pd.DataFrame


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Return what of this machine and checkout can bear on a result."""
    return {"python": platform.python_version(), "cpu": _cpu_model(), **_git()}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _git() -> dict[str, Any]:
    """Return commit and dirtiness of the checkout; empty outside one."""

    def ask(*words: str) -> str:
        result = subprocess.run(
            ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
        return result.stdout.strip()

    try:
        dirty = bool(ask("status", "--porcelain", "--untracked-files=no"))
        return {"git_commit": ask("rev-parse", "HEAD"), "git_dirty": dirty}
    except (OSError, subprocess.CalledProcessError):
        return {}
