"""Garbage collection: finds and removes files that no run of a results folder refers to.

A command notes the cells of its runs before it computes the first, and removes the note when all
have ended well: the cells of a sweep that was killed are no garbage.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from fairbench.core.door import TEXT, is_file, names_in, read_text
from fairbench.core.files import ASIDE, HALF, write_text
from fairbench.core.fingerprint import digest
from fairbench.core.locks import working
from fairbench.results.cells import Store
from fairbench.results.runs import Run, read_environment

DAY = 24.0
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
    root = store.root.resolve()
    return [
        each
        for each in [*cells, *_leftovers(store.root)]
        if _untouched(each.path, before) and each.path.parent.resolve().is_relative_to(root)
    ]


def remove(found: Iterable[Garbage]) -> None:
    """Remove what was found."""
    for each in found:
        if each.path.is_dir() and not each.path.is_symlink():
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


def _needed(results: Path) -> Iterator[str]:
    """Yield the cells of every run, finished or begun.

    Raises
    ------
    UserError : a finished run's list of cells is missing or damaged: any cell may be one of them.
    """
    for folder in _folders(results / "runs"):
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


def _unread(results: Path) -> Iterator[Garbage]:
    """Yield rows of splits, and people of data sets, that no finished run reads."""
    finished = [read_environment(folder) for folder in _folders(results / "runs")]
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
