"""The store of cells: one sealed Parquet file each, written atomically, locked while made."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fairbench.core.errors import UserError, refused
from fairbench.core.files import guard, is_file, read_table, set_aside, write_table
from fairbench.core.locks import SILENCE, BusyError, locked
from fairbench.results.record import is_id, refuse_pack

if TYPE_CHECKING:
    from numpy.typing import NDArray

Columns: TypeAlias = "Mapping[str, NDArray[Any]]"
_META = b"fairbench"


def plain_id(text: str) -> str:
    """Return an id unchanged, after checking that it may be part of a file's name.

    Raises
    ------
    UserError : it may not: a stranger's files could name any path.
    """
    if not is_id(text):
        raise UserError(f"{text[:60]!r} is no id of what is stored in a results folder")
    return text


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
    """Cells and runs under one results folder; any number of processes may share it.

    Attributes
    ----------
    root : the results folder.
    wait_min : how many minutes to wait for the holder of a cell that shows no sign of life.
    """

    root: Path
    wait_min: float = SILENCE / 60

    def __post_init__(self) -> None:
        """Let no link lead out of the folder, which is no pack."""
        refuse_pack(self.root)
        guard(self.root)

    def cell_path(self, cell_id: str) -> Path:
        """Return where a cell is kept."""
        return self.root.joinpath("cells", cell_id[:2], f"{plain_id(cell_id)}.parquet")

    def run_path(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self.root / "runs" / run_id

    def has(self, cell_id: str) -> bool:
        """Say whether the cell's file is there (its content is verified when it is read)."""
        return is_file(self.cell_path(cell_id))

    @contextlib.contextmanager
    def lock(self, cell_id: str, *, wait: bool = True) -> Iterator[None]:
        """Lock the cell while the block runs; the system frees the lock if the process is killed.

        Raises
        ------
        BusyCellError : another process holds it, and `wait` is false.
        UserError : the process that holds it seems to be dead; or no lock can be made.
        """
        path = self.root.joinpath("locks", f"{plain_id(cell_id)}.lock")
        with contextlib.ExitStack() as stack:
            try:
                seconds = None if wait else 0.0
                stack.enter_context(locked(path, seconds=seconds, silence=60 * self.wait_min))
            except BusyError as error:
                if not wait:
                    raise BusyCellError(cell_id) from error
                raise UserError(
                    f"{path.stem} is being made by {error}: end it, or wait with "
                    f"wait_min={2 * self.wait_min:g}"
                ) from error
            except OSError as error:
                raise UserError(f"results cannot be kept: {refused(error)}") from error
            yield

    def write(self, cell_id: str, columns: Columns, notes: Mapping[str, Any]) -> None:
        """Store a cell, whole or not at all."""
        import pyarrow as pa  # slow to import: listing runs does without

        meta = {"id": cell_id, "notes": dict(notes)}
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        table = table.replace_schema_metadata({_META: json.dumps(meta).encode()})
        write_table(self.cell_path(cell_id), table)

    def read(self, cell_id: str) -> StoredCell:
        """Read and verify a cell.

        Raises
        ------
        CorruptCellError : unreadable, another cell's, or changed since it was written.
        """
        import pyarrow as pa

        path = self.cell_path(cell_id)
        try:
            table = read_table(path)
            meta = json.loads(table.schema.metadata[_META])
            columns = {name: table[name].to_numpy() for name in table.column_names}
            is_this_cell = meta["id"] == cell_id
            cell = StoredCell(columns, meta["notes"])
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise CorruptCellError(f"{path}: {' '.join(str(error).split())[:200]}") from error
        if not is_this_cell:
            raise CorruptCellError(f"{path}: the content is another cell's")
        return cell

    def intact(self, cell_id: str) -> bool:
        """Say whether the cell is there and whole; a damaged file is set aside."""
        if not self.has(cell_id):
            return False
        try:
            self.read(cell_id)
        except CorruptCellError:
            set_aside(self.cell_path(cell_id), "the cell is computed again")
            return False
        return True
