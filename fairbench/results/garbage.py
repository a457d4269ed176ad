"""Garbage collection: finds and removes files that no run of a results folder refers to.

A command notes the cells of its runs before it computes the first, and removes the note when all
have ended well: the cells of a sweep that was killed are no garbage.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from fairbench.core.door import TEXT, is_file, names_in, read_text
from fairbench.core.errors import UserError
from fairbench.core.files import ASIDE, HALF, write_text
from fairbench.core.fingerprint import digest
from fairbench.core.locks import working
from fairbench.results.cells import Store
from fairbench.results.runs import LAST, Run, read_environment

DAY = 24.0
OWN_CELL = "cell of these runs alone"
STRAY = ("half file", "half-drawn figures")
BEGUN = 30 * DAY  # hours for which the cells of runs that were begun and did not end are kept
# What killed processes leave, by the form of its name; and damaged files that were set aside.
_LEFT = {"half file": HALF, "half-drawn figures": ".figures.*", "damaged, set aside": ASIDE}


@dataclass(frozen=True)
class Garbage:
    """A file or folder that may go, what it is, and its size."""

    path: Path
    kind: str
    bytes: int


def note_begun(store: Store, runs: Iterable[str], cells: Iterable[str]) -> Path:
    """Note the cells of runs that begin; the file is to be removed when all have ended well.

    The same runs have the same note. Where none can be written, nothing else can.
    """
    path = store.root / "begun" / f"{digest(sorted(runs))}.txt"
    with contextlib.suppress(OSError):
        write_text(path, "".join(f"{cell}\n" for cell in cells))
    return path


def garbage(store: Store, hours: float = DAY) -> list[Garbage]:
    """Return what may go: untouched for `hours`, and needed by no run, finished or begun.

    Whoever collects garbage has the folder alone (`fairbench.core.locks.alone`): a command that
    uses it may have found old cells in the store and be about to read them. The cells of runs that
    were begun are spared for thirty days, and all while one is being computed by who does not say
    that it uses the folder. What a link within the folder leads to is somebody else's, and stays.
    """
    cells = [] if working(store.root) else list(_unreferenced(store))
    before = time.time() - 3600 * hours
    every = _within(store.root, [*cells, *_leftovers(store.root)])
    return [each for each in every if _untouched(each.path, before)]


def of_runs(store: Store, runs: Sequence[Run]) -> list[Garbage]:
    """Return what goes when runs are removed: the runs first, then what they alone read.

    Cells, rows and people of other runs, finished or begun, stay. Whoever removes runs has the
    folder alone, as who collects garbage.

    Raises
    ------
    UserError : another run's list of cells is missing or damaged: any cell may be one of them.
    """
    ids = {run.id for run in runs}
    needed = set(_needed(store.root, ids))
    for note in _files(store.root / "begun", ".txt"):
        needed |= set(read_text(note, TEXT).split())
    cells = dict.fromkeys(cell for run in runs for cell in cells_of(run) if cell not in needed)
    read = {run.environment.get(key) for run in runs for key in ("rows", "data")}
    paths = [path for path in map(store.cell_path, cells) if is_file(path)]
    every = [
        *(_garbage(run.path, "run") for run in runs),
        *(_garbage(path, OWN_CELL) for path in paths),
        *(each for each in _unread(store.root, ids) if each.path.stem in read),
    ]
    return _within(store.root, every)


def cells_of(run: Run) -> list[str]:
    """Return the cells of a run; none where their list is damaged: they are garbage without it."""
    try:
        return run.cells()
    except UserError:
        return []


def _within(results: Path, every: Iterable[Garbage]) -> list[Garbage]:
    """Return what lies in the folder itself, and not in one that a link within leads to."""
    root = results.resolve()
    return [each for each in every if each.path.parent.resolve().is_relative_to(root)]


def remove(found: Iterable[Garbage]) -> None:
    """Remove what was found."""
    for each in found:
        if each.path.is_dir() and not each.path.is_symlink():
            # A run of which the removal is broken off is not a finished one.
            with contextlib.suppress(OSError):
                (each.path / LAST).unlink(missing_ok=True)
            shutil.rmtree(each.path, ignore_errors=True)
        else:
            each.path.unlink(missing_ok=True)


def _unreferenced(store: Store) -> Iterator[Garbage]:
    needed = set(_needed(store.root))
    for note in _files(store.root / "begun", ".txt"):
        begun = set(read_text(note, TEXT).split())
        if begun <= needed or _untouched(note, time.time() - 3600 * BEGUN):
            yield _garbage(note, "note of runs that were begun")
        else:
            needed |= begun
    for folder in _folders(store.root / "cells"):
        for path in _files(folder, ".parquet"):
            if path.stem not in needed:
                yield _garbage(path, "cell of no run")
    yield from _unread(store.root)


def _needed(results: Path, without: Collection[str] = ()) -> Iterator[str]:
    """Yield the cells of every run, finished or begun, but for some of these ids.

    Raises
    ------
    UserError : a finished run's list of cells is missing or damaged: any cell may be one of them.
    """
    for folder in _folders(results / "runs"):
        if folder.name in without:
            continue
        run, begun = Run(folder), folder / "cells.txt"
        if run.environment:
            yield from run.cells()
        elif is_file(begun):
            yield from read_text(begun, TEXT).split()


def _folders(folder: Path) -> list[Path]:
    return [folder / name for name in names_in(folder)[1]]


def _files(folder: Path, ending: str) -> list[Path]:
    """Return the files of a folder whose names end so; half files are none."""
    names = names_in(folder)[0]
    return [folder / name for name in names if name.endswith(ending) and not name.startswith(".")]


def _unread(results: Path, without: Collection[str] = ()) -> Iterator[Garbage]:
    """Yield rows of splits, and people of data sets, that no finished run reads but for some."""
    folders = [each for each in _folders(results / "runs") if each.name not in without]
    finished = [read_environment(folder) for folder in folders]
    for folder, key, what in (
        ("splits", "rows", "rows of no run"),
        ("data", "data", "people of no run"),
    ):
        read = {known.get(key) for known in finished}
        for path in _files(results / folder, ".parquet"):
            if path.stem not in read:
                yield _garbage(path, what)


def _leftovers(results: Path) -> Iterator[Garbage]:
    """Yield what killed processes leave, and damaged files that were set aside."""
    for place, folders, files in os.walk(results):
        left = {name: kind for name in [*folders, *files] if (kind := _left(name))}
        yield from (_garbage(Path(place, name), kind) for name, kind in left.items())
        folders[:] = [name for name in folders if name not in left]


def _left(name: str) -> str:
    return next((kind for kind, form in _LEFT.items() if fnmatchcase(name, form)), "")


def _garbage(path: Path, kind: str) -> Garbage:
    inside = [Path(place, name) for place, _, files in os.walk(path) for name in files]
    return Garbage(path, kind, sum(file.lstat().st_size for file in inside or [path]))


def _untouched(path: Path, before: float) -> bool:
    try:
        return path.lstat().st_mtime <= before
    except FileNotFoundError:  # a process that was at work has finished it
        return False
