"""Garbage collection: finds and removes files that no run of a results folder refers to.

Only files that are fairbench's by their names and their contents are listed and removed. A command
notes the cells of its runs before it computes the first cell, and removes the note when all runs
have ended well: so the cells of a sweep that was killed are no garbage.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairbench.core.errors import UserError
from fairbench.core.files import half_of, is_aside, write_text
from fairbench.core.fingerprint import digest
from fairbench.core.locks import working
from fairbench.core.safe_open import (
    TEXT,
    entry,
    holds_only,
    is_file,
    is_folder,
    names_in,
    opened,
    read_text,
    remove_folder,
)
from fairbench.core.safe_open import remove as remove_file
from fairbench.results.cells import Store
from fairbench.results.record import FILES, is_id
from fairbench.results.runs import FIGURES, LAST, Run, is_of_figures, read_environment

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
        write_text(path, "".join(f"{cell}\n" for cell in cells))
    return path


def garbage(store: Store, hours: float = DAY) -> list[Garbage]:
    """Return what may be removed: untouched for `hours`, and needed by no run, finished or begun.

    The caller must hold the folder alone (`fairbench.core.locks.alone`): another command may have
    found old cells in the store and be about to read them. The cells of runs that were begun are
    spared for thirty days. No cell is garbage while one is being computed by a process that does
    not hold the folder.
    """
    cells = [] if working(store.root) else list(_unneeded(store))
    before = time.time() - 3600 * hours
    unused = [*cells, *_leftovers(store.root)]
    return [item for item in unused if _is_older(item.path, before)]


def garbage_of_runs(store: Store, runs: Sequence[Run]) -> list[Garbage]:
    """Return what to remove with some runs: the runs first, then what they alone read.

    Cells, rows and people of other runs, finished or begun, stay. The caller must hold the folder
    alone, as for `garbage`.

    Raises
    ------
    UserError : another run's list of cells is missing or damaged: any cell may be one of them.
    """
    ids = {run.id for run in runs}
    needed = set(_cells_of_runs(store.root, ids))
    for note in _files(store.root / "begun", ".txt"):
        needed |= set(read_text(note, TEXT).split())
    cells = dict.fromkeys(cell for run in runs for cell in cells_of(run) if cell not in needed)
    read = {run.environment.get(key) for run in runs for key in ("rows", "data")}
    paths = [path for path in map(store.cell_path, cells) if is_file(path)]
    return [
        *(_garbage(run.path, RUN) for run in runs),
        *(_garbage(path, OWN_CELL) for path in paths),
        *(unread for unread in _unread_tables(store.root, ids) if unread.path.stem in read),
    ]


def cells_of(run: Run) -> list[str]:
    """Return the cells of a run; none if their list is damaged, as they are garbage without it."""
    try:
        return run.cells()
    except UserError:
        return []


def remove(found: Iterable[Garbage]) -> None:
    """Remove files and folders of garbage."""
    for garbage in found:
        if garbage.kind == RUN:
            _remove_run(garbage.path)
        elif is_folder(garbage.path):
            remove_folder(garbage.path, is_of_figures)
        else:
            with contextlib.suppress(OSError):  # no right to
                remove_file(garbage.path)


def _remove_run(folder: Path) -> None:
    """Remove the files of a run, its record first: if interrupted, no finished run is left."""
    with contextlib.suppress(OSError):  # no right to
        remove_file(folder / LAST)
        remove_folder(folder / FIGURES, is_of_figures)
        remove_folder(folder, lambda name: (half_of(name) or name) in FILES)


def _unneeded(store: Store) -> Iterator[Garbage]:
    """Yield cells, rows and people that no run needs, and the notes of runs that have ended."""
    needed = set(_cells_of_runs(store.root))
    for note in _files(store.root / "begun", ".txt"):
        begun = set(read_text(note, TEXT).split())
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
        cells_of_begun = folder / "cells.txt"
        if run.environment:
            yield from run.cells()
        elif is_file(cells_of_begun):
            yield from read_text(cells_of_begun, TEXT).split()


def _folders(folder: Path) -> list[Path]:
    return [folder / name for name in names_in(folder)[1]]


def _files(folder: Path, ending: str) -> list[Path]:
    """Return the files of a folder whose names have an ending, except half-written files."""
    names = names_in(folder)[0]
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
    finished = [read_environment(folder) for folder in folders]
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
        with open(opened(path), "rb") as file:
            return is_id(path.stem) and file.read(len(_PARQUET)) in (_PARQUET, bytes(4), b"")
    except OSError:
        return False


def _leftovers(results: Path) -> Iterator[Garbage]:
    """Yield half-written files of killed processes, and damaged files that were set aside."""
    waiting = [(results, 0)]
    while waiting:
        parent, depth = waiting.pop()
        files, folders, _ = names_in(parent)
        for name in files:
            if half_of(name) or is_aside(name):
                yield _garbage(parent / name, _ASIDE if is_aside(name) else "half file")
        for name in folders:
            if half_of(name) != FIGURES and not is_aside(name):
                waiting += [(parent / name, depth + 1)] if depth < _DEEPEST else []
            elif holds_only(parent / name, is_of_figures):
                yield _garbage(parent / name, _ASIDE if is_aside(name) else "half-drawn figures")


_ASIDE = "damaged, set aside"


def _garbage(path: Path, kind: str) -> Garbage:
    """Return a file or a folder of files as garbage, with its size."""
    inside = [path / name for name in names_in(path)[0]] if is_folder(path) else []
    return Garbage(
        path, kind, sum(about.st_size for about in map(entry, inside or [path]) if about)
    )


def _is_older(path: Path, before: float) -> bool:
    """Say whether a file was last changed before a time."""
    about = entry(path)  # None if the process that was writing it has renamed it
    return about is not None and about.st_mtime <= before
