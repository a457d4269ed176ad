"""A pack: finished runs and what they need, in one sealed zip file that is unpacked to be read.

The file ends in the sha256 of all of it, and its manifest has the size and sha256 of every file.
The same runs make the same bytes. What is unpacked is written cells first and the record of a run
last, so that a command that is killed leaves whole cells, and no run that is not whole. Begin with
:func:`pack` and :func:`unpack`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO

from fairbench.core import files
from fairbench.core.errors import UserError
from fairbench.results import tables
from fairbench.results.record import FILES, Parts, checked, refuse_pack
from fairbench.results.runs import LAST, Run, Store, read_environment

FORMAT, VERSION = "fairbench pack", 2
MANIFEST = "manifest.json"
_MARK, _DIGITS = b"fairbench-sha256:", 64  # the zip's comment, and the last of it
_RUN = re.compile(rf"runs/([0-9a-f]{{12}})/({'|'.join(map(re.escape, (*FILES, LAST)))})")
_SHARED = re.compile(r"(?:cells/([0-9a-z]{2})/(?=\1)|splits/|data/)([0-9a-z]{1,64})\.parquet")
# What is stored becomes a few times as small; what becomes smaller than this is no results.
_LEAST, _RATIO = 1 << 26, 100
_ODD = (*files.UNREADABLE, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)
_BLOCK = 1 << 20


def pack(
    runs: Sequence[Run], out: Path, *, cells: bool = True, people: bool = False
) -> tuple[int, int, set[str]]:
    """Write runs of one results folder as a pack, whole or not at all.

    Parameters
    ----------
    runs : at least one.
    out : the file that is written.
    cells : whether the cells of the runs are packed.
    people : whether target and groups are packed of data that may not be passed on, too.

    Returns
    -------
    How many of their cells were packed, how many are not there to be, and the names of the data
    sets whose target and groups were left out, as they may not be passed on.

    Raises
    ------
    UserError : a file is missing or damaged.
    """
    store = Store(runs[0].results)
    wanted = sorted({cell for run in runs for cell in run.cells()}) if cells else []
    present = list(filter(store.has, wanted))
    left_out: set[str] = set()
    listed: list[dict[str, Any]] = []
    with files.atomic(out, mode=0o600) as file:
        summed = _Summed(file)
        with zipfile.ZipFile(summed, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
            archive.comment = _MARK + b"0" * _DIGITS
            for name, content in _contents(runs, store, present, people, left_out):
                sum_of_file = files.sha256(content)
                listed.append({"path": name, "bytes": len(content), "sha256": sum_of_file})
                archive.writestr(_entry(name), content)
            manifest = {
                "format": FORMAT, "version": VERSION, "files": listed,
                "written": {run.id: round(run.written * 1e9) for run in runs},
            }  # fmt: skip
            text = json.dumps(manifest, indent=0, ensure_ascii=False)
            archive.writestr(_entry(MANIFEST), text)
        file.seek(-_DIGITS, os.SEEK_END)
        file.write(summed.total.hexdigest().encode())
    return len(present), len(wanted) - len(present), left_out


def _entry(name: str) -> zipfile.ZipInfo:
    """Return how a file is noted in the zip: the same on every machine and day."""
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o600) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


class _Summed:
    """A file that is written once from its begin to its end, with the sha256 of its content."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.total = hashlib.sha256()

    def write(self, content: bytes) -> int:
        self.total.update(content)
        return self._file.write(content)

    def flush(self) -> None:
        self._file.flush()


def _contents(
    runs: Sequence[Run], store: Store, cells: Sequence[str], people: bool, left_out: set[str]
) -> Iterator[tuple[str, bytes]]:
    """Yield the path in the pack and the content of every file, what runs share before them."""
    results = store.root
    for cell in cells:
        yield _shared(results, store.cell_path(cell), sealed=True)
    for split in sorted({str(run.environment["rows"]) for run in runs}):
        if files.is_file(path := tables.rows_path(results, split)):
            if any(tables.damaged_rows(results, split)):
                raise _damaged(path)
            yield _shared(results, path)
    for data in sorted({str(run.environment["data"]) for run in runs}):
        if files.is_file(path := tables.people_path(results, data)):
            name, content = _shared(results, path, sealed=True)
            about = tables.description_in(files.read_table(path), data)
            if people or about["redistributable"]:
                yield name, content
            else:
                left_out.add(str(about["name"]))
    for run in runs:
        for name in run.environment["files"]:
            yield f"runs/{run.id}/{name}", run.content(name)
        yield f"runs/{run.id}/{LAST}", files.read_bytes(run.path / LAST)


def _shared(results: Path, path: Path, *, sealed: bool = False) -> tuple[str, bytes]:
    content = files.read_bytes(path, files.most_memory())
    if sealed and not files.is_sealed(content):
        raise _damaged(path)
    return path.relative_to(results).as_posix(), content


def _damaged(path: Path) -> UserError:
    return UserError(
        f"{path} is damaged: repeat the command of a run that needs it, which makes it again, and "
        "pack then"
    )


def unpack(file: Path, results: Path) -> tuple[int, int]:
    """Write the runs of a pack, and what they need, into a results folder.

    What is there already stays: a cell by its id, and a run whose record is the same. A damaged
    file of these is replaced.

    Returns
    -------
    How many runs and cells were written.

    Raises
    ------
    UserError : the file is no whole pack, or the folder has another run of the same id. Nothing is
        written then.
    """
    if file.is_dir():
        refuse_pack(file)  # of the last version
    with _reading(file):
        handle = files.opened(file)
    with open(handle, "rb") as stream:
        with _reading(file):
            archive = _checked_archive(stream)
            sums, written = _checked_manifest(archive, file, os.fstat(handle).st_size)
            _check_runs(archive, sums, written)
        for run in written:
            if read_environment(path := results / "runs" / run) and not _has(sums, path / LAST):
                raise UserError(
                    f"run {run} is in {results} already, and is not the same as in {file}: unpack "
                    "into another folder"
                )
        return _write(file, archive, sums, written, results)


def _has(sums: Mapping[str, str], path: Path) -> bool:
    """Say whether a file of a run is the one that is packed, by the sha256 of each."""
    try:
        packed = sums["/".join(path.parts[-3:])]
        return files.sha256(files.read_bytes(path, files.most_memory())) == packed
    except OSError:
        return False


@contextlib.contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Name the pack in the error of what is none, or is damaged."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror or error}") from error
    except _ODD as error:
        reason = error if isinstance(error, files.DamagedError) else "its content has another shape"
        raise UserError(
            f"{file} is no whole pack ({reason}): nothing of it is read; get it again, or pack the "
            "runs again"
        ) from error


def _checked_archive(stream: IO[bytes]) -> zipfile.ZipFile:
    """Return the zip archive in a file, after comparing all of it with the sha256 at its end."""
    size = os.fstat(stream.fileno()).st_size
    stream.seek(max(size - len(_MARK) - _DIGITS, 0))
    if stream.read(len(_MARK)) != _MARK:
        raise files.DamagedError("it does not end as one")
    stream.seek(0)
    total = hashlib.sha256()
    for first in range(0, size - _DIGITS, _BLOCK):
        total.update(stream.read(min(_BLOCK, size - _DIGITS - first)))
    total.update(b"0" * _DIGITS)
    if stream.read() != total.hexdigest().encode():
        raise files.DamagedError("it is not what was packed")
    return zipfile.ZipFile(stream)


def _checked_manifest(
    archive: zipfile.ZipFile, file: Path, size: int
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the sha256 of the files in a pack of so many bytes, and when its runs were finished.

    The former are by path, the latter by id in nanoseconds since 1970.

    Raises
    ------
    DamagedError, LookupError, TypeError : the manifest is none, or the archive is not as it says.
    UserError : a pack of a later version, or one that would take too much memory.
    """
    sizes = {entry.orig_filename: entry.file_size for entry in archive.infolist()}
    if len(sizes) < len(archive.infolist()):
        raise files.DamagedError("a file is there twice")
    for entry in archive.infolist():
        name = entry.orig_filename
        if name != MANIFEST and not (_RUN.fullmatch(name) or _SHARED.fullmatch(name)):
            raise files.DamagedError(f"{name[:60]!r} is no file of one")
        is_plain = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG)
        if not is_plain or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise files.DamagedError(f"{name} is no regular file that is packed as one is here")
    files.check_json(text := _content(archive, MANIFEST, files.TEXT))
    manifest = json.loads(text)
    if manifest["format"] != FORMAT:
        raise files.DamagedError("its manifest is of another format")
    if manifest["version"] != VERSION:
        raise UserError(
            f"{file} is a pack of version {str(manifest['version'])[:20]}, and this fairbench "
            f"reads version {VERSION}: update it"
        )
    del sizes[MANIFEST]
    if {entry["path"]: entry["bytes"] for entry in manifest["files"]} != sizes:
        raise files.DamagedError("its manifest has other files, or other sizes")
    if sum(sizes.values()) > _LEAST + _RATIO * size:
        raise files.DamagedError(f"it unfolds to over {_RATIO} times its size: no results do")
    for name, most in sizes.items():
        files.check_memory(most, name)
    written = {str(run): int(time) for run, time in manifest["written"].items()}
    sums = {str(entry["path"]): str(entry["sha256"]) for entry in manifest["files"]}
    return sums, written


def _content(archive: zipfile.ZipFile, name: str, most: int, expected: str = "") -> bytes:
    """Return the content of a file of a pack, after comparing it with its sha256 if it has one."""
    size = archive.getinfo(name).file_size
    if size > most:
        raise files.DamagedError(f"{name} is too long")
    with archive.open(name) as member:
        content = member.read(size)  # without a size, all that it unfolds to
    if expected and files.sha256(content) != expected:
        raise files.DamagedError(f"{name} is not what its manifest says")
    return content


def _check_runs(
    archive: zipfile.ZipFile, sums: Mapping[str, str], written: Mapping[str, int]
) -> None:
    """Refuse runs whose records are none, or list other files than those that are packed."""
    parts = Parts()
    listed: dict[str, str] = {}
    for run, finished in written.items():
        name = f"runs/{run}/{LAST}"
        content = _content(archive, name, files.RECORD, sums[name])
        listed_files = checked(files.unsealed_json(content), run, parts)["files"]
        listed |= {f"runs/{run}/{file}": digest for file, digest in listed_files.items()}
        listed[name] = sums[name]
        if not 0 <= finished < 1 << 63:
            raise files.DamagedError(f"run {run} was finished at no time")
    if listed != {name: of for name, of in sums.items() if name.startswith("runs/")}:
        raise files.DamagedError("its runs have other files than their records list")


def _write(
    file: Path,
    archive: zipfile.ZipFile,
    sums: Mapping[str, str],
    written: Mapping[str, int],
    results: Path,
) -> tuple[int, int]:
    """Write what the folder lacks, the records of runs last; then all of it is on the disk."""
    runs = cells = 0

    def write(name: str, mode: int = 0o666) -> None:
        with _reading(file):
            content = _content(archive, name, files.most_memory(), sums[name])
        files.write_bytes(results / name, content, mode=mode, lasting=False)

    store = Store(results)
    for name in sums:
        kind, stem = name.partition("/")[0], Path(name).stem
        if kind == "cells" and not store.intact(stem):
            write(name)
            cells += 1
        elif kind == "splits" and not tables.rows_stored(results, stem):
            write(name)
        elif kind == "data" and tables.stored_people(results, stem) is None:
            files.make_private(results / "data")
            write(name, 0o600)
        elif kind == "runs" and Path(name).name != LAST and not _has(sums, results / name):
            write(name)
    os.sync()
    for run in written:
        path = results / "runs" / run / LAST
        if not _has(sums, path):
            runs += 1
            write(f"runs/{run}/{LAST}")
            with open(files.opened(path), "rb") as record:
                os.utime(record.fileno(), ns=(written[run], written[run]))
    os.sync()
    return runs, cells
