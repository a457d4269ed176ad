"""Kinds of names: links, pipes, devices, endless and odd names in place of whatever is stored.

Each case is one kind of name, put in place of one path of a results folder, a pack or a state, and
one command that reads or writes there. Somebody's own files lie beside the folder, where the links
lead, and within it: none may change. No command may wait, end in a traceback, or swell.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import socket
import stat
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import yaml

from benchmarks.faults import commands as given
from benchmarks.faults import records
from benchmarks.faults.commands import FAILED, RUN, Total, warm

SEED, CASES = 34, 1500
LONGEST = 10.0  # seconds of a command, without those that it waited for a core
LARGEST = 1 << 30  # bytes of memory more than the process has that all are forked from
SPARSE, MANY = 200 << 30, 100_000
ODD = "cafe\u0301"  # a name that has two forms in Unicode

# --- kinds of names


def _moved(path: Path, outside: Path) -> Path:
    """Return where what was at a path lies now, or somebody's own file where there was nothing."""
    if not os.path.lexists(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        return outside / "own.html"
    return Path(shutil.move(path, outside / "moved"))


def _link(to: str, path: Path, outside: Path, moved: Path) -> None:
    path.symlink_to(to.format(outside=outside, name=path.name, moved=moved))


def _socket(path: Path, outside: Path, _: Path) -> None:
    short = outside / "s"  # a socket's whole path has 107 bytes at most
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(short))
    os.rename(short, path)


def _sparse(path: Path, *_: Path) -> None:
    path.touch()
    os.truncate(path, SPARSE)


def _folder(path: Path, *_: Path) -> None:
    path.mkdir()
    (path / "own.txt").write_text("mine")


def _many(path: Path) -> None:
    path.mkdir()
    for number in range(MANY):
        (path / f"{number}.parquet").touch()


def _beside(name: bytes, path: Path) -> None:
    """Put a file and a folder of odd names beside a path, and in it where it is a folder."""
    for folder in (path.parent, path):
        if folder.is_dir():
            for place, make in ((name, _write), (name[:-1] + b"_", os.mkdir)):
                with contextlib.suppress(FileExistsError):
                    make(os.path.join(os.fsencode(folder), place))


def _write(path: bytes) -> None:
    with open(path, "xb") as file:
        file.write(b"mine")


# What stands in place of a path: of it, the folder of somebody's own files, and what it was.
IN_PLACE: Mapping[str, Callable[[Path, Path, Path], object]] = {
    "link to what it was": partial(_link, "{moved}"),
    "link to a file": partial(_link, "{outside}/own.html"),
    "link to a folder": partial(_link, "{outside}/folder"),
    "link to /dev/zero": partial(_link, "/dev/zero"),
    "link to nothing": partial(_link, "{outside}/nothing"),
    "link to itself": partial(_link, "{name}"),
    "link to its folder": partial(_link, "."),
    "link to the folder above": partial(_link, ".."),
    "hard link of what it was": lambda path, outside, moved: os.link(
        outside / "own.html" if moved.is_dir() else moved, path
    ),
    "hard link": lambda path, outside, _: os.link(outside / "folder" / "poetry.lock", path),
    "pipe": lambda path, *_: os.mkfifo(path),
    "socket": _socket,
    "device": lambda path, *_: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5)),  # /dev/zero
    "sparse file of 200 GB": _sparse,
    "100,000 files": lambda path, *_: _many(path),
    "folder": _folder,
    "file": lambda path, *_: path.write_text("mine"),
}
# The names of what lies beside a path.
BESIDE: Mapping[str, Callable[[Path], list[bytes]]] = {
    "name of 255 bytes": lambda _: [b"n" * 255],
    "name that is no UTF-8": lambda _: [b"\xff\xfe\x80.parquet"],
    "name in other letters": lambda path: [path.name.upper().encode()],
    "name in another form": lambda _: [
        unicodedata.normalize(form, ODD).encode() for form in ("NFC", "NFD")
    ],
}


def put(kind: str, path: Path, outside: Path) -> None:
    """Put a kind of name in place of a path, or beside it."""
    if kind in IN_PLACE:
        IN_PLACE[kind](path, outside, _moved(path, outside))
    else:
        for name in BESIDE[kind](path):
            _beside(name, path)


# --- paths, and the commands that read or write there

AGAIN = (*RUN, "tracking=none")
SEARCHED = ("dataset=simulated", "dataset.n_samples=300", "split=tuning", "split.repeats=2",
            "learner=logistic_regression", "method=baseline", "learner.C=0.1,1",
            "tracking=none")  # fmt: skip


def places(root: Path) -> dict[str, dict[str, list[str]]]:
    """Return paths in a folder that are there, or could be, and commands that use them, by place.

    These are those of `names.yaml`, with the names that are in the folder.
    """
    results = root / "results"
    cell = min((results / "cells").glob("*/*.parquet"))
    run, other, *_ = sorted(path.name for path in (results / "runs").iterdir())
    names = {
        "RUN": run,
        "OTHER": other,
        "CELL": f"{cell.parent.name}/{cell.name}",
        "FOLDER": cell.parent.name,
        "AGAIN": " ".join(AGAIN),
        "SEARCHED": " ".join(SEARCHED),
    }
    for name, folder in {"SPLITS": "splits", "DATA": "data", "SWEEP": "sweeps"}.items():
        names[name] = min((results / folder).iterdir()).name
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    named = re.sub(r"\b[A-Z]+\b", lambda word: names.get(word[0], word[0]), text)
    return dict(yaml.safe_load(named))


def make(root: Path) -> None:
    """Make the folder that every case begins with a copy of."""
    records.Place(root).make()
    for words in (["report"], ["tune", *SEARCHED], ["run", *AGAIN]):
        status, said = given.carried_out(words, root)
        if status:
            raise RuntimeError(f"{words}: {said}")
    shutil.copy(root / "rows.csv", root / "late.csv")


# --- somebody's own files


def own_files(outside: Path, root: Path) -> list[Path]:
    """Write somebody's own files where links lead to, and within the results folder: these."""
    results, elsewhere = root / "results", outside / "folder"
    run = min((results / "runs").iterdir())
    within = [
        *(results / name for name in ("poetry.lock", ".own.tmp", "own.damaged-by-rain")),
        *(results / name for name in ("locks/yarn.lock", "cells/own.parquet", "report/own.html")),
        *(run / name for name in (".figures.own/photo.png", "own.txt")),
    ]
    names = ("poetry.lock", "index.html", "environment.json", ".own.tmp", ".figures.abc/photo.png")
    for path in (outside / "own.html", *(elsewhere / name for name in names), *within):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"mine: {path.name}")
        old = time.time() - 60 * 86400
        os.utime(path, (old, old))
    return within


Seen = dict[bytes, tuple[object, ...]]


def seen(folder: Path) -> Seen:
    """Return what is in a folder: the kind, the mode, and the content of each name."""
    names: Seen = {}
    for place, folders, files in os.walk(os.fsencode(folder)):
        for name in [*folders, *files]:
            path = os.path.join(place, name)
            about = os.lstat(path)
            if stat.S_ISREG(about.st_mode) and about.st_size < SPARSE:
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).digest()
                names[path] = (about.st_mode, about.st_mtime_ns, content)
            elif stat.S_ISLNK(about.st_mode):
                names[path] = (about.st_mode, os.readlink(path))
            else:
                names[path] = (about.st_mode,)
    return names


# --- cases


@dataclass(frozen=True)
class Case:
    """A kind of name in place of a path, and a command."""

    kind: str
    path: Path
    words: str


def cases(root: Path, number: int) -> list[Case]:
    """Return so many cases, drawn evenly: each kind at each path, with other commands each time."""
    draw, known = random.Random(SEED), places(root)
    pairs = [
        (kind, Path(path), place)
        for place, of_place in known.items()
        for path in of_place["paths"]
        for kind in (*IN_PLACE, *BESIDE)
    ]
    draw.shuffle(pairs)
    turns = {}
    for place, of_place in known.items():
        draw.shuffle(of_place["commands"])
        turns[place] = itertools.cycle(of_place["commands"])
    asked = itertools.islice(itertools.cycle(pairs), number)
    return [Case(kind, path, next(turns[place])) for kind, path, place in asked]


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit status, seconds, bytes of memory, and what it printed."""

    status: int
    seconds: float
    bytes: int
    said: str


def ended(words: Sequence[str], cwd: Path, printed: Path) -> Ended:
    """Run a command in a fork of this process, which has imported what it needs, and wait."""
    from fairbench.cli.main import main as command

    def become() -> int:
        os.chdir(cwd)
        return command(list(words))

    printed.unlink(missing_ok=True)
    began, child = time.monotonic(), given.in_fork(become, printed)
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        time.sleep(0.01)
        if (time.monotonic() - began) % 1 < 0.02 and _took(began, child) > 3 * LONGEST:
            os.kill(child, signal.SIGKILL)
    seconds = _took(began, child)
    _, status, used = os.wait4(child, 0)
    said = printed.read_text(errors="replace")
    return Ended(os.waitstatus_to_exitcode(status), seconds, used.ru_maxrss << 10, said)


def _took(began: float, process: int) -> float:
    return time.monotonic() - began - given.queued(process)


def wrong_in(case: Case, folder: Path) -> Iterator[str]:
    """Yield what went wrong in a case, tried in a folder of a fork's own."""
    root, outside = folder / "case" / "work", folder / "case" / "own"
    shutil.rmtree(folder / "case", ignore_errors=True)
    shutil.copytree(folder.parent / "made", root, symlinks=True)
    within = own_files(outside, root)
    path = root / case.path
    put(case.kind, path, outside)
    before = seen(outside)
    own = {name: _content(name) for name in within if name.is_file() and name.resolve() == name}
    end = ended(case.words.split(), root, folder / "printed")
    now, named = seen(outside), str(case.path) in NAMED
    for name in sorted(before.keys() | now.keys()):
        own_link = named and (name not in before or b"/moved" in name)
        if before.get(name) != now.get(name) and not own_link:
            yield f"changed outside: {os.fsdecode(name)}"
    for path_within, content in own.items():
        if not os.path.lexists(path_within) or _content(path_within) != content:
            yield f"changed within: {path_within.relative_to(root)}"
    if "Traceback" in end.said or end.status == FAILED:
        yield f"traceback: {end.said.strip().splitlines()[-1][:150]}"
    elif end.status not in allowed(case.words):
        yield f"status {end.status}: {end.said.strip()[-150:]}"
    if end.seconds > LONGEST:
        yield f"waits: {end.seconds:.0f} s"
    if end.bytes > LARGEST + (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10):
        yield f"swells: {end.bytes / 1e9:.1f} GB"


# Of what is named on the command line, a link is the user's own: what it leads to is theirs to use.
NAMED = ("new", "new.zip", "pack.zip", "label.json", "watch.json")


def allowed(words: str) -> tuple[int, ...]:
    """Return the exit statuses that a command may end with: done, refused; and what it found."""
    if words.startswith(("store verify", "store unpack", "run", "tune", "sync")):
        return (0, 1, 2)  # what is damaged was named
    return (0, 2, 3) if words.startswith("watch") else (0, 2)


def _content(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        return str(error)


def tried(top: Path, some: Sequence[Case], worker: int, workers: int) -> Total:
    """Try every so many-th case in a folder of this fork's own; count what went wrong in each."""
    folder, total = top / str(worker), Total()
    folder.mkdir()
    for case in some[worker::workers]:
        wrong = [" ".join(what.split()) for what in wrong_in(case, folder)]
        for what in wrong:
            print(f"{case.kind} at {case.path}: fairbench {case.words}: {what}", flush=True)
        total.update(["cases", *["wrong"] * bool(wrong)])
    return total


def main(number: int = CASES) -> bool:
    """Try the cases, print a line for each that goes wrong, and say whether none did."""
    os.environ["MPLBACKEND"] = "agg"
    for name in warm().IMPORTED:
        import_module(name)
    with tempfile.TemporaryDirectory(prefix="names-") as name:
        top = Path(name)
        with multiprocessing.get_context("fork").Pool(1) as pool:  # which no case is to remember
            pool.apply(make, (top / "made",))
        some = cases(top / "made", number)
        total = sum(given.in_forks(partial(tried, top, some)), Total())
    return given.ended_well("Odd names", total)
