"""Writing packs: from finished runs of a results folder, or of several folders and packs.

A pack is written beside where it is to be, file by file, each whole or not at all, and renamed into
place at last. Who was killed gives the same command again, and the files that are whole are kept.
The same results make the same bits: everything is in the order of ids, and nothing tells the time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Any

from fairbench.core.errors import UserError
from fairbench.core.files import (
    UNREADABLE,
    atomic,
    half_of,
    sealed_json,
    unsealed_json,
    write_text,
)
from fairbench.core.locks import BusyError, locked
from fairbench.core.safe_open import (
    TEXT,
    entry,
    names_in,
    read_bytes,
    remove,
    remove_folder,
    rename,
)
from fairbench.results.pack_file import FORMAT, FileSums, PackFile, PackFileWriter
from fairbench.results.pack_sources import Collected, Contents, SourceTable
from fairbench.results.packs import KINDS, PACK, Listed
from fairbench.results.runs import Run

# Bytes of a row group, before it is compressed, that are read to read one table.
_GROUP = {"cells": 1 << 20}
_OF_RUNS = 1 << 22
_PLAN = "plan.json"


@dataclass(frozen=True)
class PackReport:
    """What became of a pack: where it is, what is in it, and what is not.

    Attributes
    ----------
    counts : how many tables of each kind.
    shared : how many runs and cells several folders have, and have alike.
    differing : what differs between folders, of which the first's was kept.
    left_out : names of data sets whose people may not be given away.
    missing : how many cells of the runs are in none of the folders.
    """

    path: Path
    bytes: int
    counts: Mapping[str, int]
    shared: int
    differing: Sequence[str]
    left_out: Sequence[str]
    missing: int


def write_pack(sources: Sequence[Sequence[Run]], out: Path, contents: Contents) -> PackReport:
    """Write a pack of runs.

    Parameters
    ----------
    sources : the runs of each folder or pack; of what several have, the first's is kept.
    out : a folder that is not there yet.

    Raises
    ------
    UserError : no runs, a place that is taken, damaged files, or runs that differ.
    """
    _check(sources, out)
    place = out.with_name(f".{out.name}.half")
    with _alone(place, out):
        collected = Collected.of(sources, contents)
        half = _Half(place, collected.plan)
        listed: dict[str, Listed] = {}
        for kind in KINDS:
            listed |= half.write_kind(kind, collected.tables(kind))
        about = {
            "format": FORMAT,
            "options": {n: v for n, v in asdict(contents).items() if n != "first"},
            "left_out": dict(sorted(collected.left_out.items())),
            "files": {name: _entry(file_entry) for name, file_entry in sorted(listed.items())},
        }
        write_text(place / PACK, sealed_json(about, indent=1))
        half.clear({PACK, *listed})
        rename(place, out.name)
    counts = {kind: sum(e.tables for e in listed.values() if e.kind == kind) for kind in KINDS}
    written = [entry(out / name) for name in names_in(out)[0]]
    size = sum(file.st_size for file in written if file)
    return PackReport(
        out, size, counts, collected.shared, collected.differing,
        sorted(set(collected.left_out.values())), collected.missing,
    )  # fmt: skip


def _entry(listed: Listed) -> dict[str, Any]:
    return {**asdict(listed), "sums": astuple(listed.sums)}


def _check(sources: Sequence[Sequence[Run]], out: Path) -> None:
    if out.exists():
        raise UserError(f"out={out} is there already: name another place, or remove it first")
    for runs in sources:
        folder = os.path.realpath(runs[0].results)
        if Path(os.path.realpath(out)).is_relative_to(folder):
            raise UserError(f"out={out} lies inside {runs[0].results}: name a place beside it")


@contextmanager
def _alone(half: Path, out: Path) -> Iterator[None]:
    try:
        with locked(half.with_name(f".{out.name}.lock"), seconds=0.0):
            yield
    except BusyError as error:
        raise UserError(f"{out} is being written by {error}: wait for it") from None


@dataclass
class _Half:
    """A pack that is being written: where, and the sums of the files that are whole.

    The sums are noted beside the files: what was damaged between a kill and now is written anew.

    Parameters
    ----------
    plan : what tells this very pack from others; what is there of another one is removed.
    """

    path: Path
    plan: str
    sums: dict[str, FileSums] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read what was noted."""
        try:
            noted = unsealed_json(read_bytes(self.path / _PLAN, TEXT))
            if noted["plan"] == self.plan:
                self.sums = {name: FileSums(*sums) for name, sums in noted["sums"].items()}
                return
        except UNREADABLE:
            pass
        if not remove_folder(self.path, _is_of_packs):
            raise UserError(
                f"{self.path} is in the way, and is not half a pack: move it away, or name another "
                "place with out="
            )

    def write_kind(self, kind: str, tables: Sequence[SourceTable]) -> dict[str, Listed]:
        """Write the files of a kind, a series for each set of columns; return their entries."""
        by_columns: dict[str, list[SourceTable]] = {}
        for table in tables:
            by_columns.setdefault(str(table.columns), []).append(table)
        listed: dict[str, Listed] = {}
        for series, (_, same) in enumerate(sorted(by_columns.items()), 1):
            waiting, number = same, 1
            while waiting:
                name = f"{kind}-{series}-{number:03d}.parquet"
                names = self._whole_file(name, waiting) or self._write(name, kind, waiting)
                listed[name] = Listed(kind, names[0], names[-1], len(names), self.sums[name])
                waiting, number = waiting[len(names) :], number + 1
        return listed

    def _whole_file(self, name: str, tables: Sequence[SourceTable]) -> list[str]:
        """Return what is in a file that was written before, if it is whole; nothing otherwise."""
        try:
            file = PackFile(self.path / name, self.sums[name])
            same = file.ids == [table.name for table in tables[: len(file.ids)]]
            return file.ids if same and not list(file.damaged()) else []
        except UNREADABLE:
            return []

    def _write(self, name: str, kind: str, tables: Sequence[SourceTable]) -> list[str]:
        names, self.sums[name] = _write_file(self.path / name, kind, tables)
        sums = {file: list(astuple(file_sums)) for file, file_sums in self.sums.items()}
        noted = sealed_json({"plan": self.plan, "sums": sums})
        write_text(self.path / _PLAN, noted, lasting=False)
        return names

    def clear(self, needed: set[str]) -> None:
        """Remove what is no part of the pack: the notes, and half files of who was killed."""
        for name in names_in(self.path)[0]:
            if name not in needed and _is_of_packs(name):
                remove(self.path / name)


_FILE = re.compile(rf"({'|'.join(KINDS)})-[0-9]+-[0-9]+\.parquet")


def _is_of_packs(name: str) -> bool:
    """Say whether a file of this name is one of a pack, or of half a pack."""
    name = half_of(name) or name
    return name in (PACK, _PLAN) or _FILE.fullmatch(name) is not None


def _write_file(path: Path, kind: str, tables: Sequence[SourceTable]) -> tuple[list[str], FileSums]:
    """Write as many tables as a file takes, at least one."""
    names = []
    with atomic(path, mode=0o600 if kind == "data" else 0o666) as file:
        columns, group = tables[0].columns, _GROUP.get(kind, _OF_RUNS)
        writer = PackFileWriter(file, KINDS[kind], columns, group=group)
        for table in tables:
            writer.add(table.name, table.read())
            names.append(table.name)
            if writer.full:
                break
        sums = writer.close()
    return names, sums
