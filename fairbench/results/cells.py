"""The store of cells: one checksummed Parquet file each, written atomically, locked while made."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from fairbench.core.errors import UserError
from fairbench.core.files import atomic

Columns = Mapping[str, NDArray[Any]]
_META = b"fairbench"


class CorruptCellError(Exception):
    """A cell file that cannot be read, or whose content is not what was written."""


class BusyCellError(Exception):
    """A cell that another process is computing."""


@dataclass(frozen=True)
class StoredCell:
    """A cell read back: its columns, and what was noted when it was computed."""

    columns: dict[str, NDArray[Any]]
    notes: dict[str, Any]


@dataclass(frozen=True)
class Store:
    """Cells and runs under one results folder; any number of processes may share it."""

    root: Path

    def cell_path(self, cell_id: str) -> Path:
        """Return where a cell is kept."""
        return self.root / "cells" / cell_id[:2] / f"{cell_id}.parquet"

    def run_path(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self.root / "runs" / run_id

    def has(self, cell_id: str) -> bool:
        """Say whether the cell's file is there (its content is verified when it is read)."""
        return self.cell_path(cell_id).is_file()

    @contextlib.contextmanager
    def lock(self, cell_id: str, *, wait: bool = True) -> Iterator[None]:
        """Hold the cell: others that want to compute it wait. Freed by the system on a kill.

        Raises
        ------
        BusyCellError : another process holds it, and `wait` is false.
        """
        path = self.root / "locks" / f"{cell_id}.lock"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"results cannot be kept in {self.root}: {error}") from error
        try:
            held = FileLock(path).acquire(blocking=wait)
        except Timeout as error:
            raise BusyCellError(cell_id) from error
        with held:
            yield
            # Whoever waits on the removed file finds the cell finished when it wakes.
            path.unlink(missing_ok=True)

    def write(self, cell_id: str, columns: Columns, notes: Mapping[str, Any]) -> None:
        """Store a cell, whole or not at all."""
        meta = {"id": cell_id, "checksum": checksum(columns), "notes": dict(notes)}
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        table = table.replace_schema_metadata({_META: json.dumps(meta).encode()})
        path = self.cell_path(cell_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")

    def read(self, cell_id: str) -> StoredCell:
        """Read and verify a cell.

        Raises
        ------
        CorruptCellError : unreadable, another cell's, or changed since it was written.
        """
        path = self.cell_path(cell_id)
        try:
            # Half the time of pq.read_table, which looks for a folder of files.
            with pq.ParquetFile(path) as file:
                table = file.read()
            meta = json.loads(table.schema.metadata[_META])
            columns = {name: table[name].to_numpy() for name in table.column_names}
            mine = meta["id"] == cell_id and meta["checksum"] == checksum(columns)
            cell = StoredCell(columns, meta["notes"])
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise CorruptCellError(f"{path}: {' '.join(str(error).split())[:200]}") from error
        if not mine:
            raise CorruptCellError(f"{path}: the content is not what was written")
        return cell

    def intact(self, cell_id: str) -> bool:
        """Say whether the cell is there and whole; a corrupt file is set aside."""
        if not self.has(cell_id):
            return False
        try:
            self.read(cell_id)
        except CorruptCellError:
            path = self.cell_path(cell_id)
            path.replace(path.with_suffix(".corrupt"))
            return False
        return True


def checksum(columns: Columns) -> str:
    """Return a hash of names, types and values."""
    total = hashlib.sha256()
    for name, values in columns.items():
        array = np.ascontiguousarray(values)
        total.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
        total.update(array.data)
    return total.hexdigest()
