"""What commands leave beside the runs: their sweeps, notes of what was begun, and garbage.

A sweep notes its command and the runs that each finished. Garbage is what no run refers to; only
files that are fairbench's by their names and their contents are listed and removed. A command notes
the cells of its runs before it computes the first cell, and removes the note when all runs have
ended well: so the cells of a sweep that was killed are no garbage.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbench.core import files
from fairbench.core.errors import UserError, warn
from fairbench.core.processes import working
from fairbench.core.text import digest
from fairbench.results.record import FILES, is_id
from fairbench.results.runs import FIGURES, LAST, Run, Store, is_of_figures, read_environment

_OUTCOMES = "outcomes.json"  # how each job ended
_NAME = "sweep.json"  # holds the name of the sweep
_EXPERIMENT = "experiment"
_LONGEST = 400


@dataclass(frozen=True)
class Sweep:
    """A sweep that has ended.

    Attributes
    ----------
    name : the words that define its runs: after ``fairbench run -m`` they repeat it. Two
        sweeps of one name are one sweep, given twice.
    runs : the ids of the distinct runs that it finished, in its order.
    """

    name: str
    runs: tuple[str, ...]


def sweep_name(words: Sequence[str], parts: Sequence[str]) -> str:
    """Return the name of the sweep that words of a command line ask for.

    Words that change no run, such as ``n_jobs=4``, and the order of words do not count. A very long
    name is cut, and ends in a digest of the whole.

    Parameters
    ----------
    words : the words of the command line.
    parts : the groups of a run's configuration, in the order in which a name has them:
        ``dataset``, ``split`` ...
    """
    order = [_EXPERIMENT, *parts]
    job_name = [word for word in words if _config_group(word) in order]
    name = shlex.join(sorted(job_name, key=lambda word: order.index(_config_group(word))))
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 12]}... {digest(name, 8)}"


def _config_group(word: str) -> str:
    """Return the group of a word such as ``learner.gamma=1``."""
    return word.partition("=")[0].partition(".")[0]


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


def read_sweeps(results: Path, parts: Sequence[str]) -> list[Sweep]:
    """Return the sweeps of a results folder that finished any run, the oldest first.

    A sweep that was killed has left no outcomes; the same command again leaves those of all runs.

    Parameters
    ----------
    parts : the same parameter as of :func:`sweep_name`.
    """
    sweeps = []
    parent = results / "sweeps"
    for folder in (parent / name for name in files.names_in(parent)[1]):
        if files.is_file(folder / _OUTCOMES):
            try:
                sweeps.append(_read_sweep(folder, parts))
            except (OSError, ValueError, KeyError, TypeError):
                warn(f"{folder} is left out: {_OUTCOMES} or {_NAME} in it cannot be read")
    return [sweep for sweep in sweeps if sweep.runs]


def _read_sweep(folder: Path, parts: Sequence[str]) -> Sweep:
    """Return the sweep of a folder; older folders have the words of jobs instead of a name."""
    outcomes = json.loads(files.read_bytes(folder / _OUTCOMES, files.TEXT))
    runs = dict.fromkeys(str(row["run"]) for row in outcomes if row["status"] == "finished")
    if files.is_file(folder / _NAME):
        name = str(json.loads(files.read_bytes(folder / _NAME))["name"])
    else:
        name = _name_of_jobs((str(row.get("job", "")) for row in outcomes), parts)
    return Sweep(name, tuple(runs))


def _name_of_jobs(jobs: Iterable[str], parts: Sequence[str]) -> str:
    """Return the name of a sweep whose jobs alone were kept: its preset, or all values."""
    values: dict[str, dict[str, None]] = {}
    for job in jobs:
        for word in shlex.split(job):
            option, _, value = word.partition("=")
            values.setdefault(option, {})[value] = None
    shown = {_EXPERIMENT: values[_EXPERIMENT]} if _EXPERIMENT in values else values
    words = [f"{option}={','.join(of_option)}" for option, of_option in shown.items()]
    return sweep_name(words, parts)


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
        needed |= set(files.read_text(note, files.TEXT).split())
    cells = dict.fromkeys(cell for run in runs for cell in cells_of(run) if cell not in needed)
    read = {run.environment.get(key) for run in runs for key in ("rows", "data")}
    paths = [path for path in map(store.cell_path, cells) if files.is_file(path)]
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
            # Its record first: if interrupted, no finished run is left.
            with contextlib.suppress(OSError):  # no right to
                files.remove(garbage.path / LAST)
                files.remove_folder(garbage.path / FIGURES, is_of_figures)
                files.remove_folder(garbage.path, _is_of_run)
        elif files.is_folder(garbage.path):
            files.remove_folder(garbage.path, is_of_figures)
        else:
            with contextlib.suppress(OSError):  # no right to
                files.remove(garbage.path)


def _is_of_run(name: str) -> bool:
    return (files.half_of(name) or name) in FILES


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
        cells_of_begun = folder / "cells.txt"
        if run.environment:
            yield from run.cells()
        elif files.is_file(cells_of_begun):
            yield from files.read_text(cells_of_begun, files.TEXT).split()


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
            elif files.holds_only(parent / name, is_of_figures):
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
