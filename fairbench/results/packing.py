"""Writing packs: from finished runs of a results folder, or of several folders and packs.

A pack is written to a folder next to its path, file by file, each whole or not at all, and renamed
at the end. If the command is killed, the same command continues and keeps the whole files. The same
results make the same bits: everything is in the order of ids, and no time is recorded.
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
    """A pack that was written: its path, and what it holds and lacks.

    Attributes
    ----------
    path : where the pack is.
    bytes : how many bytes its files have.
    counts : how many tables of each kind it has.
    shared : the numbers of runs and cells that several folders have, with equal content.
    differing : what differs between folders; the version of the first folder was kept.
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
    UserError : no runs, a path that exists, damaged files, or runs that differ.
    """
    _check_out(sources, out)
    half_path = out.with_name(f".{out.name}.half")
    with _locked(half_path, out):
        collected = Collected.of(sources, contents)
        half = _HalfPack(half_path, collected.plan)
        listed: dict[str, Listed] = {}
        for kind in KINDS:
            listed |= half.write_kind(kind, collected.tables(kind))
        about = {
            "format": FORMAT,
            "options": {name: value for name, value in asdict(contents).items() if name != "first"},
            "left_out": dict(sorted(collected.left_out.items())),
            "files": {name: _plain_entry(of_file) for name, of_file in sorted(listed.items())},
        }
        write_text(half_path / PACK, sealed_json(about, indent=1))
        half.clear({PACK, *listed})
        rename(half_path, out.name)
    statuses = [entry(out / name) for name in names_in(out)[0]]
    return PackReport(
        path=out,
        bytes=sum(status.st_size for status in statuses if status),
        counts={
            kind: sum(of_file.tables for of_file in listed.values() if of_file.kind == kind)
            for kind in KINDS
        },
        shared=collected.shared,
        differing=collected.differing,
        left_out=sorted(set(collected.left_out.values())),
        missing=collected.missing,
    )


def _plain_entry(listed: Listed) -> dict[str, Any]:
    return {**asdict(listed), "sums": astuple(listed.sums)}


def _check_out(sources: Sequence[Sequence[Run]], out: Path) -> None:
    """Refuse a path for the pack that exists, or that lies inside one of the sources."""
    if out.exists():
        raise UserError(f"out={out} is there already: name another place, or remove it first")
    for runs in sources:
        folder = os.path.realpath(runs[0].results)
        if Path(os.path.realpath(out)).is_relative_to(folder):
            raise UserError(f"out={out} lies inside {runs[0].results}: name a place beside it")


@contextmanager
def _locked(half: Path, out: Path) -> Iterator[None]:
    """Lock the path of a pack, so that one process alone writes it."""
    try:
        with locked(half.with_name(f".{out.name}.lock"), seconds=0.0):
            yield
    except BusyError as error:
        raise UserError(f"{out} is being written by {error}: wait for it") from None


@dataclass
class _HalfPack:
    """A pack that is being written, with the sums of its whole files.

    The sums are written down next to the files, so that a file that was damaged after a kill is
    written again.

    Parameters
    ----------
    path : the folder in which it is written.
    plan : identifies this pack; files of a different one are removed.
    sums : the sums of the files that are whole, by name.
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
        for series, (_, of_series) in enumerate(sorted(by_columns.items()), 1):
            waiting = of_series
            number = 1
            while waiting:
                name = f"{kind}-{series}-{number:03d}.parquet"
                ids = self._whole_file(name, waiting) or self._write(name, kind, waiting)
                listed[name] = Listed(
                    kind=kind,
                    first=ids[0],
                    last=ids[-1],
                    tables=len(ids),
                    sums=self.sums[name],
                )
                waiting = waiting[len(ids) :]
                number += 1
        return listed

    def _whole_file(self, name: str, tables: Sequence[SourceTable]) -> list[str]:
        """Return the ids in a file that was written before, if it is whole; none otherwise."""
        try:
            file = PackFile(self.path / name, self.sums[name])
            has_these_tables = file.ids == [table.name for table in tables[: len(file.ids)]]
            return file.ids if has_these_tables and not list(file.damaged()) else []
        except UNREADABLE:
            return []

    def _write(self, name: str, kind: str, tables: Sequence[SourceTable]) -> list[str]:
        """Write a file, and note its sums; return the ids of the tables in it."""
        ids, self.sums[name] = _write_file(self.path / name, kind, tables)
        sums = {file: list(astuple(file_sums)) for file, file_sums in self.sums.items()}
        note = sealed_json({"plan": self.plan, "sums": sums})
        write_text(self.path / _PLAN, note, lasting=False)
        return ids

    def clear(self, needed: set[str]) -> None:
        """Remove what is no part of the pack: notes, and half-written files of killed processes."""
        for name in names_in(self.path)[0]:
            if name not in needed and _is_of_packs(name):
                remove(self.path / name)


_FILE = re.compile(rf"({'|'.join(KINDS)})-[0-9]+-[0-9]+\.parquet")


def _is_of_packs(name: str) -> bool:
    """Say whether a file of this name is one of a pack, or of half a pack."""
    name = half_of(name) or name
    return name in (PACK, _PLAN) or _FILE.fullmatch(name) is not None


def _write_file(path: Path, kind: str, tables: Sequence[SourceTable]) -> tuple[list[str], FileSums]:
    """Write as many tables as a file takes, at least one; return their ids and the file's sums."""
    ids = []
    with atomic(path, mode=0o600 if kind == "data" else 0o666) as file:
        group = _GROUP.get(kind, _OF_RUNS)
        writer = PackFileWriter(file, KINDS[kind], tables[0].columns, group=group)
        for table in tables:
            writer.add(table.name, table.read())
            ids.append(table.name)
            if writer.full:
                break
        sums = writer.close()
    return ids, sums
