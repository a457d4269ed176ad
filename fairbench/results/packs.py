"""Reading packs: a finished results folder as a few Parquet files, which nobody writes to.

``pack.json`` is the index, sealed: which files there are, their sha256, and what was left out. Each
file holds tables of one kind: `KINDS`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.core.errors import UserError, warn
from fairbench.core.files import UNREADABLE, DamagedError, unsealed_json
from fairbench.core.safe_open import is_file, names_in, read_bytes
from fairbench.results.pack_file import FORMAT, FileSums, Packed, PackFile, sums_of
from fairbench.results.record import Parts, are_strings, checked, is_id

if TYPE_CHECKING:
    import pyarrow as pa

PACK = "pack.json"
_FIRST = "runs-1-001.parquet"  # which every pack has
# What a pack's files hold, and the column that has the id of each row's table: `runs` has a row a
# run, `splits` the rows of folds, and `data` the target and the groups of a data set.
KINDS: Mapping[str, str] = {
    "runs": "run",
    "summary": "run",
    "metrics": "run",
    "predictions": "run",
    "splits": "split",
    "data": "data",
    "cells": "cell",
}
CONFIG = "config."  # begins the columns of a run's configuration, one per group
_AGAIN = "fairbench store verify {0} names what is lost"
_LARGEST = 1 << 26  # bytes of an index that are read


def is_pack(folder: Path) -> bool:
    """Say whether a folder is a pack, also one that has lost its index."""
    return is_file(folder / PACK) or is_file(folder / _FIRST)


class DamagedIndexError(UserError):
    """A pack whose index is missing or damaged; the message says what to do."""


def refuse_pack(folder: Path, what: str = "") -> None:
    """Refuse to write into a pack, or to do `what` with it, which needs a results folder.

    Raises
    ------
    UserError : the folder is one.
    """
    if is_pack(folder) and what:
        raise UserError(
            f"{folder} is a pack, and {what} needs a results folder: unpack it first (fairbench "
            f"store unpack {folder} out=FOLDER)"
        )
    if is_pack(folder):
        raise UserError(
            f"{folder} is a pack, which is only read: run with results=FOLDER of your own and join "
            f"the two (fairbench store merge {folder} FOLDER out=PACK), or unpack it first "
            f"(fairbench store unpack {folder} out=FOLDER)"
        )


def written_beside(results: Path) -> Path:
    """Return where reports of results are written: into a results folder, or next to a pack."""
    return results.with_name(f"{results.resolve().name}-report") if is_pack(results) else (
        results / "report"
    )  # fmt: skip


def open_pack(folder: Path) -> Pack:
    """Return a pack with its index.

    Raises
    ------
    DamagedIndexError : the index is missing or damaged.
    UserError : the folder is no pack, or one of a later version.
    """
    if not is_pack(folder):
        raise UserError(f"{folder} is no pack: it has no {PACK}")
    try:
        stamp = (folder / PACK).lstat()
    except OSError as error:
        raise _without_index(folder) from error
    return _opened(folder, stamp.st_mtime_ns, stamp.st_ino)


@lru_cache(maxsize=4)
def _opened(folder: Path, _changed: int, _inode: int) -> Pack:
    """Return the pack in a folder; its index is read again once it has changed."""
    try:
        index = unsealed_json(read_bytes(folder / PACK, _LARGEST))
        if index["format"] > FORMAT:
            raise UserError(
                f"{folder} is a pack of format {index['format']}, and this version of fairbench "
                f"reads formats up to {FORMAT}: update fairbench"
            )
        files = {
            name: Listed(str(entry["kind"]), str(entry["first"]), str(entry["last"]),
                         int(entry["tables"]), FileSums(*entry["sums"]))
            for name, entry in index["files"].items()
        }  # fmt: skip
        if any(
            listed.kind not in KINDS or Path(name).name != name for name, listed in files.items()
        ):
            raise DamagedError("a file of no kind")
        if not are_strings(index["left_out"]):
            raise DamagedError("what was left out has no names")
    except UNREADABLE as error:
        raise _without_index(folder) from error
    return Pack(folder, index, files)


def _without_index(folder: Path) -> DamagedIndexError:
    return DamagedIndexError(
        f"{folder / PACK} is missing or damaged, and nothing of the pack is read without it: take "
        "it from a copy of the pack, or pack the results again "
        f"(fairbench store verify {folder} says which other files are whole)"
    )


@dataclass(frozen=True)
class Listed:
    """The entry of a file in a pack's index: kind, first and last id, number of tables."""

    kind: str
    first: str
    last: str
    tables: int
    sums: FileSums


@dataclass(frozen=True, eq=False)
class Pack:
    """A pack that is read.

    Attributes
    ----------
    about : its index: ``format``, ``files``, ``options`` (which parts of runs were packed),
        ``left_out`` (data sets that may not be passed on, digest -> name).
    """

    path: Path
    about: Mapping[str, Any]
    listed: Mapping[str, Listed]
    _files: dict[str, PackFile] = field(default_factory=dict)

    def file(self, name: str) -> PackFile:
        """Return one of its files."""
        if name not in self._files:
            self._files[name] = PackFile(self.path / name, self.listed[name].sums)
        return self._files[name]

    def files(self, kind: str) -> Iterator[PackFile]:
        """Yield its files of a kind."""
        return (self.file(name) for name, entry in self.listed.items() if entry.kind == kind)

    def count(self, kind: str) -> int:
        """Return how many tables of a kind it has."""
        return sum(file.tables for file in self.listed.values() if file.kind == kind)

    def ids(self, kind: str) -> Iterator[str]:
        """Yield the ids of all tables of a kind; just one file at a time is in memory."""
        for name, entry in self.listed.items():
            if entry.kind == kind:
                path = self.path / name
                with self.reading(path):
                    yield from PackFile(path, entry.sums).ids

    def where(self, kind: str, name: str) -> PackFile | None:
        """Return the file that has a table, if one does.

        Raises
        ------
        UserError : no whole file has it, and one that may have it is damaged.
        """
        refused: UserError | None = None
        for file, entry in self.listed.items():
            if entry.kind == kind and entry.first <= name <= entry.last:
                pack_file = self.file(file)
                try:
                    with self.reading(pack_file.path):
                        if name in pack_file:
                            return pack_file
                except UserError as error:
                    refused = error
        if refused:
            raise refused
        return None

    def table(self, kind: str, name: str) -> Packed:
        """Return a table, texts as dictionaries.

        Raises
        ------
        UserError : it is damaged, or was not packed.
        """
        file = self.where(kind, name)
        if file is None:
            raise UserError(f"{self.path} has no {kind} of {name}: {self._missing(kind, name)}")
        with self.reading(file.path):
            return file.table(name)

    def _missing(self, kind: str, name: str) -> str:
        if kind == "data" and name in self.about.get("left_out", {}):
            return (
                f"target and groups of {self.about['left_out'][name]} may not be given away; "
                "repeat the command of a run of this data set in a folder of your own"
            )
        return "they were left out of the pack"

    def reading(self, path: Path) -> _Reading:
        """Return a context in which errors of reading become a `UserError` that names the file."""
        return _Reading(self.path, path)

    def record(self, run: str) -> dict[str, Any]:
        """Return the record of a run, as in its ``environment.json``."""
        row = self.row(run)
        with self.reading(self.path):
            names = json.loads(row["names"])
            record = unflattened(names, {name: json.loads(row[name]) for name in names})
            return checked(record, run, Parts())

    def row(self, run: str) -> dict[str, Any]:
        """Return a run's row of `runs`, as it is stored."""
        (row,) = self.table("runs", run).table.to_pylist()
        return dict(row)

    @cached_property
    def summaries(self) -> dict[str, dict[str, Any]]:
        """Run id -> the part of its record that runs are listed by.

        Runs share equal parts. The part is empty if the run's row group is damaged. If the ids of a
        file are lost, there is a warning, or an error if that leaves no run.
        """
        records: dict[str, dict[str, Any]] = {}
        errors: list[UserError] = []
        for file in self.files("runs"):
            try:
                with self.reading(file.path):
                    records |= _summaries_of(file)
            except UserError as error:
                errors.append(error)
        if errors and not records:
            raise errors[0]
        for reason in errors:
            warn(f"runs are left out: {reason}")
        return dict(sorted(records.items()))


def _value(text: Any) -> Any:
    return json.loads(text) if isinstance(text, str) and text else None


def _summaries_of(file: PackFile) -> dict[str, dict[str, Any]]:
    """Return the summary of each run in a file; empty for those of a damaged row group."""
    records: dict[str, dict[str, Any]] = {}
    for group in range(file.groups):
        try:
            records |= _summaries(file.row_group(group))
        except DamagedError:
            records |= {run: {} for run in file.ids_of(group)}
    return records


_ALONE = ("cells", "files", "fingerprint", "cost", "data_sha256")


def _summaries(table: pa.Table) -> dict[str, dict[str, Any]]:
    """Return the records of the runs of a row group, parsing each distinct text once."""
    names = [name for name in table.column_names if name not in _ALONE]
    columns = {name: _column(table[name], plain=name in ("run", "written")) for name in names}
    ids, written, orders = (columns.pop(name) for name in ("run", "written", "names"))
    records = {}
    for index, run in enumerate(ids):
        if not is_id(run) or written[index] is None:
            raise DamagedError("a run without an id, or of no time")
        row = {name: values[index] for name, values in columns.items()}
        records[run] = unflattened([name for name in orders[index] if name in row], row)
        records[run]["written"] = written[index]
    return records


def _column(column: pa.ChunkedArray, *, plain: bool) -> list[Any]:
    if plain:
        return list(column.to_pylist())
    combined = column.combine_chunks()
    values = [_value(text) for text in combined.dictionary.to_pylist()]
    return [None if index is None else values[index] for index in combined.indices.to_pylist()]


def flattened(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's record with its configuration group by group: ``config.learner`` ..."""
    flat = {name: value for name, value in record.items() if name != "config"}
    return flat | {f"{CONFIG}{name}": value for name, value in record["config"].items()}


def unflattened(names: list[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record that was flattened."""
    record: dict[str, Any] = {name: values[name] for name in names if not name.startswith(CONFIG)}
    record["config"] = {
        name.removeprefix(CONFIG): values[name] for name in names if name.startswith(CONFIG)
    }
    return record


@dataclass(frozen=True)
class _Reading:
    """A context that turns errors of reading into a `UserError` with the file's name."""

    pack: Path
    path: Path

    def __enter__(self) -> None:
        """Begin to read."""

    def __exit__(self, kind: type[BaseException] | None, error: Any, _: object) -> None:
        """Name what is damaged."""
        if isinstance(error, UNREADABLE):
            why = f" ({error})" if isinstance(error, DamagedError) else ""
            raise UserError(
                f"{self.path} is missing or damaged{why}: {_AGAIN.format(self.pack)}"
            ) from error


def damages(pack: Pack) -> Iterator[str]:
    """Yield a line for all that is damaged or missing in a pack, reading every byte."""
    intact: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for name, entry in pack.listed.items():
        file = PackFile(pack.path / name, entry.sums)  # as it is now, not as it was opened
        try:
            lost = dict(file.damaged())
            intact[entry.kind] |= set(file.ids)
        except UNREADABLE as error:
            why = "it is missing" if isinstance(error, FileNotFoundError) else str(error)
            yield f"{file.path}: {why}: {entry.tables} {entry.kind}, {entry.first} to {entry.last}"
            continue
        for group, ids in lost.items():
            yield f"{file.path}: row group {group}: {entry.kind} of {_ids_text(ids)}"
    for kind in ("summary", "metrics"):
        for run in sorted(intact["runs"] - intact[kind]):
            yield f"{pack.path}: run {run} has no {kind}"
    names = {name for kind in names_in(pack.path) for name in kind}
    for name in sorted(names - {PACK, *pack.listed}):
        yield f"{pack.path / name}: no file of the pack; it is not read"


def _ids_text(ids: list[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def without_index(folder: Path) -> Iterator[str]:
    """Yield a line for each file of a pack whose index is damaged: whether it is whole.

    A file has the checksums of its row groups, and the index that of the file's footer. A footer is
    intact if its sha256 still occurs anywhere in what is left of the index.
    """
    try:
        index_bytes = read_bytes(folder / PACK, _LARGEST)
    except OSError:
        index_bytes = b""
    for name in names_in(folder)[0]:
        path = folder / name
        if path.suffix != ".parquet":
            continue
        try:
            file = PackFile(path, sums := sums_of(path))
            lost = [name for _, ids in file.damaged() for name in ids]
        except UNREADABLE as error:
            yield f"{path}: {error}"
            continue
        state = "whole"
        if lost:
            state = f"{len(lost)} of {len(file.ids)} tables are lost: {_ids_text(lost)}"
        if sums.sha256.encode() not in index_bytes:
            state += ", by what it says of itself, which the index no longer confirms"
        yield f"{path}: {state}"
