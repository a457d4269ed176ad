"""A pack as a results folder again, in which sweeps go on without a fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from fairbench.core.errors import UserError
from fairbench.core.files import parquet_bytes, sha256, write_bytes, write_files, write_table
from fairbench.core.safe_open import make_private, opened
from fairbench.results.cells import CorruptCellError, Store, plain_id
from fairbench.results.labels_and_groups import people_path, stored_people
from fairbench.results.pack_file import PackFile
from fairbench.results.pack_tables import unpacked
from fairbench.results.packs import Pack, refuse_pack
from fairbench.results.predictions import rows_path, rows_stored
from fairbench.results.record import FILES
from fairbench.results.run_writer import seal_run, summary_text
from fairbench.results.runs import LAST, Run, config_text, read_environment


def unpack(pack: Pack, results: Path) -> tuple[int, int, list[str]]:
    """Write the contents of a pack into a folder; files that exist are kept.

    A run is written last, when all that it needs is there. What is damaged is left out.

    Returns
    -------
    How many runs and cells were written, and a line for whatever is damaged.

    Raises
    ------
    UserError : the pack has not all of its runs' metrics and predictions.
    """
    options = pack.about["options"]
    some = options["metrics"] or not options["groups"]
    if some or not options["predictions"]:
        what = "some of the metrics" if some else "no predictions"
        raise UserError(
            f"{pack.path} has {what}: its runs would not be whole; it is read as it is, and joined "
            "with others by `fairbench store merge`"
        )
    refuse_pack(results)
    unpacking = _Unpacking(pack, results)
    n_written = {kind: unpacking.write_all(kind) for kind in ("cells", "splits", "data", "runs")}
    return n_written["runs"], n_written["cells"], list(dict.fromkeys(unpacking.damages))


@dataclass(frozen=True)
class _Unpacking:
    """Writes a pack's tables into a folder, and notes what is damaged.

    The methods that write one table return whether they wrote it: False if the folder has it.
    """

    pack: Pack
    results: Path
    damages: list[str] = field(default_factory=list)

    @cached_property
    def _stores(self) -> tuple[Store, Store]:
        """The cells of the pack, and those of the folder."""
        return Store(self.pack.path), Store(self.results)

    def write_all(self, kind: str) -> int:
        """Write all tables of a kind that are not there; return how many were written."""
        write_one: Callable[[str], bool] = {
            "cells": self._write_cell,
            "splits": self._write_split,
            "data": self._write_data,
            "runs": self._write_run,
        }[kind]
        n_written = 0
        for file in self.pack.files(kind):
            for name in self._ids(file):
                with self._noting_damage():
                    n_written += write_one(name)
        return n_written

    def _ids(self, file: PackFile) -> list[str]:
        """Return the ids of the tables in a file of the pack; none if it cannot be read."""
        ids: list[str] = []
        with self._noting_damage(), self.pack.reading(file.path):
            ids = file.ids
        return ids

    @contextmanager
    def _noting_damage(self) -> Iterator[None]:
        """Add the message of an error to `damages`, and go on."""
        try:
            yield
        except (UserError, CorruptCellError) as error:
            self.damages.append(str(error))

    def _write_cell(self, cell_id: str) -> bool:
        """Write a cell unless it is there; return whether it was written."""
        pack_store, folder_store = self._stores
        if folder_store.has(cell_id):
            return False
        cell = pack_store.read(cell_id)
        folder_store.write(cell_id, cell.columns, cell.notes)
        return True

    def _write_split(self, split: str) -> bool:
        """Write the rows of a split unless they are there; return whether they were written."""
        if rows_stored(self.results, split):
            return False
        path = rows_path(self.results, split)
        write_bytes(path, parquet_bytes(unpacked(self.pack.table("splits", split))), shows=True)
        return True

    def _write_data(self, digest: str) -> bool:
        """Write the people of a data set unless they are there; return whether it was done."""
        if stored_people(self.results, digest) is not None:
            return False
        path = people_path(self.results, digest)
        make_private(path.parent)
        write_table(path, unpacked(self.pack.table("data", digest)), mode=0o600)
        return True

    def _write_run(self, run: str) -> bool:
        """Write the folder of a run unless it is there; return whether it was written."""
        path = self.results / "runs" / plain_id(run)
        return _write_run(Run(self.pack.path / "runs" / run, None, self.pack), path)


def _write_run(run: Run, path: Path) -> bool:
    """Write the folder of a run unless it is there; return whether it was written.

    The time of its last file becomes the time at which the run was finished.
    """
    if read_environment(path):
        return False
    environment = dict(run.environment)
    contents = {
        "config.yaml": config_text(environment["config"]).encode(),
        "cells.txt": run.content("cells.txt"),
        "summary.csv": summary_text(run.table("summary")).encode(),
        "metrics.parquet": parquet_bytes(run.table("metrics")),
        "predictions.parquet": parquet_bytes(run.table("predictions")),
    }
    write_files(path, contents)
    environment.pop("files")
    seal_run(path, environment, {name: sha256(contents[name]) for name in FILES})
    nanoseconds = round(run.written * 1e9)
    with open(opened(path / LAST), "rb") as file:
        os.utime(file.fileno(), ns=(nanoseconds, nanoseconds))
    return True
