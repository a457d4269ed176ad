"""What a results folder has beside cells and runs: sweeps, notes, garbage; and packs of its runs.

A sweep notes its command and the runs that each finished. Garbage is what no run refers to; only
files that are fairbench's by their names and their contents are listed and removed. A command notes
the cells of its runs before it computes the first cell, and removes the note when all runs have
ended well: so the cells of a sweep that was killed are no garbage.

A pack is finished runs and what they need, in one sealed zip file that is unpacked to be read. The
file ends in the sha256 of all of it, and its manifest has the size and sha256 of every file. The
same runs make the same bytes. What is unpacked is written cells first and the record of a run last,
so that a command that is killed leaves whole cells, and no run that is not whole. Begin with
:func:`pack` and :func:`unpack`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import time
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

from fairbench.core import files, memory
from fairbench.core.errors import UserError, warn
from fairbench.core.processes import using, working
from fairbench.core.text import digest, said
from fairbench.results import runs as run_files
from fairbench.results.record import FILES, Parts, checked, is_id
from fairbench.results.runs import FIGURES, LAST, TABLES, Run, Store

_OUTCOMES = "outcomes.json"  # how each job ended
_NAME = "sweep.json"  # holds the name of the sweep


# A sweep that has ended: its name, the words that define its runs (after ``fairbench run -m`` they
# repeat it; two of one name are one sweep, given twice), and the ids of the distinct runs that it
# finished, in its order.
Sweep: TypeAlias = tuple[str, tuple[str, ...]]


def keep_sweep(folder: Path, name: str, outcomes: Sequence[Mapping[str, Any]]) -> None:
    """Write the name of a sweep, and how each of its jobs ended, into its folder.

    Parameters
    ----------
    folder : the folder of the sweep.
    name : the name of the sweep.
    outcomes : one mapping for each job: its words as ``job``, a ``status``, the id of its ``run``
        and a message.
    """
    files.write_text(folder / _NAME, json.dumps({"name": name}))
    files.write_text(folder / _OUTCOMES, json.dumps(outcomes, indent=1))


def read_sweeps(results: Path) -> list[Sweep]:
    """Return the sweeps of a results folder that finished any run, the oldest first.

    A sweep that was killed has left no outcomes; the same command again leaves those of all runs.
    """
    sweeps = []
    parent = results / "sweeps"
    for folder in (parent / name for name in files.names_in(parent)[1]):
        if files.is_file(folder / _OUTCOMES):
            try:
                jobs = json.loads(files.read_bytes(folder / _OUTCOMES, files.TEXT))
                runs = dict.fromkeys(str(job["run"]) for job in jobs if job["status"] == "finished")
                sweeps.append(
                    (str(json.loads(files.read_bytes(folder / _NAME))["name"]), tuple(runs))
                )
            except (OSError, ValueError, KeyError, TypeError):
                warn(f"{folder} is left out: {_OUTCOMES} or {_NAME} in it cannot be read")
    return [(name, runs) for name, runs in sweeps if runs]


DAY = 24.0
RUN, OWN_CELL = "run", "cell of these runs alone"
STRAY = ("half file", "half-drawn figures")
BEGUN = 30 * DAY  # hours for which the cells of runs that were begun and did not end are kept
_DEEPEST = 8  # the deepest nesting of folders in which fairbench writes
_PARQUET = b"PAR1"  # the first bytes of every stored table


@dataclass(frozen=True)
class Garbage:
    """A file or folder that may be removed, its kind, and its size."""

    path: Path
    kind: str
    bytes: int


def note_begun(store: Store, runs: Iterable[str], cells: Iterable[str]) -> Path:
    """Note the cells of runs that begin; the caller removes the file when all have ended well.

    The same runs have the same note. It is no error if the note cannot be written: then no cell
    can be written either.
    """
    path = store.root / "begun" / f"{digest(sorted(runs))}.txt"
    with contextlib.suppress(OSError):
        files.write_text(path, "".join(f"{cell}\n" for cell in cells))
    return path


def garbage(store: Store, hours: float = DAY) -> list[Garbage]:
    """Return what may be removed: untouched for `hours`, and needed by no run, finished or begun.

    The caller must hold the folder alone (`fairbench.core.processes.alone`): another command may
    have found old cells in the store and be about to read them. The cells of runs that were begun
    are spared for thirty days. No cell is garbage while one is being computed by a process that
    does not hold the folder.
    """
    cells = [] if working(store.root) else list(_unneeded(store))
    before = time.time() - 3600 * hours
    unused = [*cells, *_leftovers(store.root)]
    return [item for item in unused if _is_older(item.path, before)]


def garbage_of_runs(store: Store, runs: Sequence[Run]) -> tuple[list[Garbage], int]:
    """Return what to remove with some runs, and how many cells they have.

    The runs are first, then what they alone read. Cells, rows and people of other runs, finished or
    begun, stay. The caller must hold the folder alone, as for `garbage`.

    Raises
    ------
    UserError : another run's list of cells is missing or damaged: any cell may be one of them.
    """
    ids = {run.id for run in runs}
    needed = set(_cells_of_runs(store.root, ids))
    for note in _files(store.root / "begun", ".txt"):
        needed |= set(files.read_text(note, files.TEXT).split())
    cells = dict.fromkeys(filter(store.has, chain.from_iterable(map(_cells_of, runs))))
    own = [store.cell_path(cell) for cell in cells if cell not in needed]
    read = {run.environment.get(key) for run in runs for key in ("rows", "data")}
    found = [
        *(_garbage(run.path, RUN) for run in runs),
        *(_garbage(path, OWN_CELL) for path in own),
        *(unread for unread in _unread_tables(store.root, ids) if unread.path.stem in read),
    ]
    return found, len(cells)


def _cells_of(run: Run) -> list[str]:
    """Return the cells of a run; none if their list is damaged, as they are garbage without it."""
    try:
        return run.cells()
    except UserError:
        return []


def remove(found: Iterable[Garbage]) -> None:
    """Remove files and folders of garbage."""
    for garbage in found:
        if garbage.kind == RUN:
            # Its record first: if interrupted, no finished run is left.
            with contextlib.suppress(OSError):  # no right to
                files.remove(garbage.path / LAST)
                files.remove_folder(garbage.path / FIGURES, run_files.is_of_figures)
                files.remove_folder(
                    garbage.path, lambda name: (files.half_of(name) or name) in (*FILES, TABLES)
                )
        elif files.is_folder(garbage.path):
            files.remove_folder(garbage.path, run_files.is_of_figures)
        else:
            with contextlib.suppress(OSError):  # no right to
                files.remove(garbage.path)


def _unneeded(store: Store) -> Iterator[Garbage]:
    """Yield cells, rows and people that no run needs, and the notes of runs that have ended."""
    needed = set(_cells_of_runs(store.root))
    for note in _files(store.root / "begun", ".txt"):
        begun = set(files.read_text(note, files.TEXT).split())
        if not all(map(is_id, [note.stem, *begun])):
            continue  # no note of ours
        if begun <= needed or _is_older(note, time.time() - 3600 * BEGUN):
            yield _garbage(note, "note of runs that were begun")
        else:
            needed |= begun
    for folder in _folders(store.root / "cells"):
        for path in _files(folder, ".parquet"):
            if path.stem not in needed and _is_stored(path):
                yield _garbage(path, "cell of no run")
    yield from _unread_tables(store.root)


def _cells_of_runs(results: Path, without: Collection[str] = ()) -> Iterator[str]:
    """Yield the cells of every run, finished or begun, except the runs in `without`.

    Raises
    ------
    UserError : a finished run's list of cells is missing or damaged: any cell may be one of them.
    """
    for folder in _folders(results / "runs"):
        if folder.name in without:
            continue
        run = Run(folder)
        if run.environment:
            yield from run.cells()
        else:
            with contextlib.suppress(*files.UNREADABLE):
                yield from run_files.stored(folder, "cells.txt").decode(errors="replace").split()


def _folders(folder: Path) -> list[Path]:
    return [folder / name for name in files.names_in(folder)[1]]


def _files(folder: Path, ending: str) -> list[Path]:
    """Return the files of a folder whose names have an ending, except half-written files."""
    names = files.names_in(folder)[0]
    return [folder / name for name in names if name.endswith(ending) and not name.startswith(".")]


def _unread_tables(results: Path, without: Collection[str] = ()) -> Iterator[Garbage]:
    """Yield rows of splits and people of data sets that no finished run reads.

    Parameters
    ----------
    without : the ids of runs that are ignored.
    """
    folders = [
        run_folder for run_folder in _folders(results / "runs") if run_folder.name not in without
    ]
    finished = [run_files.read_environment(folder) for folder in folders]
    for folder, key, description in (
        ("splits", "rows", "rows of no run"),
        ("data", "data", "people of no run"),
    ):
        read = {environment.get(key) for environment in finished}
        for path in _files(results / folder, ".parquet"):
            if path.stem not in read and _is_stored(path):
                yield _garbage(path, description)


def _is_stored(path: Path) -> bool:
    """Say whether a file is a table that fairbench stores by an id, or has lost all of its content.

    After a loss of power some files hold nothing but zeros.
    """
    try:
        with open(files.opened(path), "rb") as file:
            return is_id(path.stem) and file.read(len(_PARQUET)) in (_PARQUET, bytes(4), b"")
    except OSError:
        return False


def _leftovers(results: Path) -> Iterator[Garbage]:
    """Yield half-written files of killed processes, and damaged files that were set aside."""
    waiting = [(results, 0)]
    while waiting:
        parent, depth = waiting.pop()
        here, folders, _ = files.names_in(parent)
        for name in here:
            if files.half_of(name) or files.is_aside(name):
                yield _garbage(parent / name, _ASIDE if files.is_aside(name) else "half file")
        for name in folders:
            if files.half_of(name) != FIGURES and not files.is_aside(name):
                waiting += [(parent / name, depth + 1)] if depth < _DEEPEST else []
            elif files.holds_only(parent / name, run_files.is_of_figures):
                yield _garbage(parent / name, _ASIDE if files.is_aside(name) else _HALF_DRAWN)


_ASIDE, _HALF_DRAWN = "damaged, set aside", "half-drawn figures"


def _garbage(path: Path, kind: str) -> Garbage:
    """Return a file or a folder of files as garbage, with its size."""
    inside = [path / name for name in files.names_in(path)[0]] if files.is_folder(path) else []
    return Garbage(
        path, kind, sum(about.st_size for about in map(files.entry, inside or [path]) if about)
    )


def _is_older(path: Path, before: float) -> bool:
    """Say whether a file was last changed before a time."""
    about = files.entry(path)  # None if the process that was writing it has renamed it
    return about is not None and about.st_mtime <= before


# Packs.

FORMAT, VERSION = "fairbench pack", 2
MANIFEST = "manifest.json"
_MARK, _DIGITS = b"fairbench-sha256:", 64  # the zip's comment, and the last of it
_RUN = re.compile(rf"runs/([0-9a-f]{{12}})/({'|'.join(map(re.escape, (*FILES, LAST)))})")
_SHARED = re.compile(r"(?:cells/([0-9a-z]{2})/(?=\1)|splits/|data/)([0-9a-z]{1,64})\.parquet")
# What is stored becomes a few times as small; what becomes smaller than this is no results.
_LEAST, _RATIO = 1 << 26, 100
_ODD = (*files.UNREADABLE, *run_files.NOT_ZIPPED)
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
    from fairbench.results import tables  # slow to import: listing runs does without

    store = Store(results := runs[0].results)
    wanted = sorted({cell for run in runs for cell in run.cells()}) if cells else []
    present = list(filter(store.has, wanted))
    left_out: set[str] = set()
    listed: list[dict[str, Any]] = []
    with files.atomic(out, mode=0o600) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.comment = _MARK + b"0" * _DIGITS

            def add(name: str, content: bytes) -> None:
                sum_of_file = files.sha256(content)
                listed.append({"path": name, "bytes": len(content), "sha256": sum_of_file})
                archive.writestr(run_files.zip_entry(name), content)

            for cell in present:
                add(*_shared(results, store.cell_path(cell), sealed=True))
            for split in sorted({str(run.environment["rows"]) for run in runs}):
                if files.is_file(path := tables.rows_path(results, split)):
                    if any(tables.damaged_rows(results, split)):
                        raise _damaged(path)
                    add(*_shared(results, path))
            for data in sorted({str(run.environment["data"]) for run in runs}):
                if files.is_file(path := tables.people_path(results, data)):
                    shared = _shared(results, path, sealed=True)
                    about = tables.read_people(results, data)
                    if people or about.redistributable:
                        add(*shared)
                    else:
                        left_out.add(about.name)
            for run in runs:
                for name in run.environment["files"]:
                    add(f"runs/{run.id}/{name}", run.content(name))
                add(f"runs/{run.id}/{LAST}", files.read_bytes(run.path / LAST))
            manifest = {
                "format": FORMAT, "version": VERSION, "files": listed,
                "written": {run.id: round(run.written * 1e9) for run in runs},
            }  # fmt: skip
            text = json.dumps(manifest, indent=0, ensure_ascii=False)
            archive.writestr(run_files.zip_entry(MANIFEST), text)
        file.seek(0)
        total = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        file.seek(-_DIGITS, os.SEEK_END)
        file.write(total.encode())
    return len(present), len(wanted) - len(present), left_out


def _shared(results: Path, path: Path, *, sealed: bool = False) -> tuple[str, bytes]:
    content = files.read_bytes(path, memory.most_memory())
    if sealed and not files.is_sealed(content):
        raise _damaged(path)
    return path.relative_to(results).as_posix(), content


def _damaged(path: Path) -> UserError:
    return UserError(said("results", "not_packed", path=path))


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
    from fairbench.results import tables

    with _reading(file):
        handle = files.opened(file)
    with open(handle, "rb") as stream:
        with _reading(file):
            archive = _checked_archive(stream)
            sums, written = _checked_manifest(archive, file, os.fstat(handle).st_size)
            _check_runs(archive, sums, written)

        def content(name: str) -> bytes:
            with _reading(file):
                return run_files.unzipped(archive, name, memory.most_memory(), sums[name])

        def write(name: str, mode: int = 0o666) -> None:
            files.write_bytes(results / name, content(name), mode=mode, lasting=False)

        with using(results):  # from here on, so that a refused pack makes no folder
            for run in written:
                path = results / "runs" / run
                if run_files.read_environment(path) and not _has(sums, path / LAST):
                    told = {"run": run, "results": results, "file": file}
                    raise UserError(said("results", "other_run", **told))
            store, runs, cells = Store(results), 0, 0
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
            for run in written:
                folder = f"runs/{run}/"
                inside = [name for name in sums if name.startswith(folder) and LAST not in name]
                if not all(_has(sums, results / name) for name in inside):
                    contents = {Path(name).name: content(name) for name in inside}
                    run_files.write_stored(results / folder, contents, lasting=False)
            os.sync()
            for run, finished in written.items():  # records last: then all else is on the disk
                path = results / "runs" / run / LAST
                if not _has(sums, path):
                    runs += 1
                    with files.atomic(path, lasting=False) as record:
                        record.write(content(f"runs/{run}/{LAST}"))
                        record.flush()  # of its time, whenever a kill comes
                        os.utime(record.fileno(), ns=(finished, finished))
            os.sync()
            return runs, cells


def _has(sums: Mapping[str, str], path: Path) -> bool:
    """Say whether a file of a run is the one that is packed, by the sha256 of each."""
    try:
        is_record = path.name == LAST
        content = files.read_bytes(path) if is_record else run_files.stored(path.parent, path.name)
        return files.sha256(content) == sums["/".join(path.parts[-3:])]
    except files.UNREADABLE:
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
        raise UserError(said("results", "no_pack", file=file, reason=reason)) from error


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
    memory.check_json(text := run_files.unzipped(archive, MANIFEST, files.TEXT))
    manifest = json.loads(text)
    if manifest["format"] != FORMAT:
        raise files.DamagedError("its manifest is of another format")
    if manifest["version"] != VERSION:
        theirs = str(manifest["version"])[:20]
        raise UserError(said("results", "other_version", file=file, version=theirs, own=VERSION))
    del sizes[MANIFEST]
    if {entry["path"]: entry["bytes"] for entry in manifest["files"]} != sizes:
        raise files.DamagedError("its manifest has other files, or other sizes")
    if sum(sizes.values()) > _LEAST + _RATIO * size:
        raise files.DamagedError(f"it unfolds to over {_RATIO} times its size: no results do")
    for name, most in sizes.items():
        memory.check_memory(most, name)
    written = {str(run): int(time) for run, time in manifest["written"].items()}
    sums = {str(entry["path"]): str(entry["sha256"]) for entry in manifest["files"]}
    return sums, written


def _check_runs(
    archive: zipfile.ZipFile, sums: Mapping[str, str], written: Mapping[str, int]
) -> None:
    """Refuse runs whose records are none, or list other files than those that are packed."""
    parts = Parts()
    listed: dict[str, str] = {}
    for run, finished in written.items():
        name = f"runs/{run}/{LAST}"
        content = run_files.unzipped(archive, name, files.RECORD, sums[name])
        listed_files = checked(files.unsealed_json(content), run, parts)["files"]
        listed |= {f"runs/{run}/{file}": of for file, of in listed_files.items()}
        listed[name] = sums[name]
        if not 0 <= finished < 1 << 63:
            raise files.DamagedError(f"run {run} was finished at no time")
    if listed != {name: of for name, of in sums.items() if name.startswith("runs/")}:
        raise files.DamagedError("its runs have other files than their records list")
