"""Writing the folder of a run: whole files, and last the one that lists them and their sha256."""

from __future__ import annotations

import contextlib
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from fairbench.core.files import (
    half_of,
    is_file,
    is_folder,
    make_folder,
    most_memory,
    names_in,
    naming,
    parquet_bytes,
    read_bytes,
    remove_folder,
    rename,
    sealed_json,
    set_aside,
    sha256,
    token,
    write_bytes,
    write_files,
    write_text,
)
from fairbench.core.text import csv_text
from fairbench.data.dataset import Dataset
from fairbench.results import predictions as stored
from fairbench.results import runs
from fairbench.results.cells import Store
from fairbench.results.record import FILES, PURPOSES
from fairbench.results.runs import Run

_AGAIN = "it is made again from the cells"


@dataclass(frozen=True)
class RunWriter:
    """The folder of a run that is being made."""

    path: Path

    def finished(self, fingerprint: str) -> bool:
        """Say whether the run is finished, complete, and made from the same cells and code.

        Damaged files are set aside, also those that several runs share.
        """
        run = Run(self.path)
        environment = run.environment
        if not environment and is_file(self.path / runs.LAST):  # or one of an earlier version
            set_aside(self.path / runs.LAST, _AGAIN)
        if environment.get("fingerprint") != fingerprint:
            return False
        shared = (
            stored.rows_stored(run.results, environment["rows"]),
            stored.stored_people(run.results, environment["data"]) is not None,
        )
        return all(shared) and not self.set_aside(runs.damaged_files(run))

    def purpose(self, asked: str) -> str:
        """Return the purpose of the run: that of its record or the `asked` one, if that is higher.

        A run that was made as a demo or while tuning becomes a study when it is run as one.
        """
        run = Run(self.path)
        return max(asked, run.purpose, key=PURPOSES.index) if run.environment else asked

    def note_purpose(self, asked: str) -> None:
        """Note the `asked` purpose in the record of a finished run, if it is the higher one."""
        environment = Run(self.path).environment
        if (purpose := self.purpose(asked)) != Run(self.path).purpose:
            with Store(self.path.parents[1]).lock(self.path.name):
                seal_run(self.path, {**environment, "purpose": purpose}, environment["files"])

    def set_aside(self, names: Sequence[str]) -> Sequence[str]:
        """Set damaged files of the run aside; return those that are missing now."""
        for name in names:
            set_aside(self.path / name, _AGAIN)
        return names

    def has_figures(self) -> bool:
        """Say whether the run's figures are there and whole; damaged ones are set aside."""
        figures = Run(self.path).figures
        if not is_folder(figures):
            return False
        if runs.damaged_figures(Run(self.path)):
            set_aside(figures, "they are drawn again")
            return False
        return True

    @contextlib.contextmanager
    def drawing(self) -> Iterator[Path]:
        """Yield a folder that becomes the run's figures when the block succeeds."""
        figures = Run(self.path).figures
        folder = figures.with_name(f".{runs.FIGURES}.{token()}.tmp")
        with naming(figures), self._alone():
            make_folder(folder)
            try:
                yield folder
                names = names_in(folder)[0]
                drawn = {name: sha256(read_bytes(folder / name, most_memory())) for name in names}
                write_text(folder / runs.DRAWN, sealed_json({"files": drawn}, indent=1))
                with contextlib.suppress(OSError):  # another process has drawn the same ones
                    rename(folder, runs.FIGURES)
            finally:
                remove_folder(folder, runs.is_of_figures)

    def remove_figures(self) -> None:
        """Remove the run's figures; a folder that holds anything else is set aside."""
        figures = Run(self.path).figures
        if not remove_folder(figures, runs.is_of_figures):
            set_aside(figures, "they are drawn again")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the folder, and remove the half-drawn figures of processes that were killed."""
        with Store(self.path.parents[1]).lock(self.path.name):
            for name in names_in(self.path)[1]:
                if half_of(name) == runs.FIGURES:
                    remove_folder(self.path / name, runs.is_of_figures)
            yield

    def write(
        self,
        config: Mapping[str, Any],
        cells: Sequence[str],
        tables: Mapping[str, pd.DataFrame],
        dataset: Dataset,
        environment: dict[str, Any],
    ) -> None:
        """Write every file atomically; under a lock, so that one process writes all of them.

        Parameters
        ----------
        tables : the ``metrics``, the ``summary`` of their means over repeats, ``predictions``.
        """
        results = self.path.parents[1]
        stored.write_people(results, dataset)
        predictions, rows = stored.stored_predictions(results, tables["predictions"])
        contents = {
            "config.yaml": runs.config_text(config).encode(),
            "cells.txt": "".join(f"{cell}\n" for cell in cells).encode(),
            "summary.csv": csv_text(tables["summary"]).encode(),
            "metrics.parquet": parquet_bytes(
                pa.Table.from_pandas(tables["metrics"], preserve_index=False)
            ),
            "predictions.parquet": predictions,
        }
        record = {**environment, "data": dataset.digest, "rows": rows, "config": config}
        with self._alone():
            write_files(self.path, contents)
            seal_run(self.path, record, {name: sha256(contents[name]) for name in FILES})


def seal_run(path: Path, known: Mapping[str, Any], files: Mapping[str, str] | None = None) -> None:
    """Write the file that marks a run as finished: its record, with the sha256 of its files.

    Parameters
    ----------
    path : the folder of the run.
    known : the record without ``files``.
    files : name -> sha256; by default computed of the files that are there.
    """
    if files is None:
        present = [name for name in FILES if is_file(path / name)]
        files = {name: sha256(read_bytes(path / name, most_memory())) for name in present}
    record = sealed_json({**known, "files": files}, indent=1)
    write_bytes(path / runs.LAST, record.encode(), shows=True)


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Return the facts about this machine and checkout that can affect a result."""
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
