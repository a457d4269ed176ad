"""Starting a printed command as its reader does, made small by the rules of ``commands.yaml``."""

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import yaml

from tests import warm
from tests.conformance import readers, trees
from tests.conformance.printed import CAPITALS, Printed, filled
from tests.harness import ROOT
from tests.papers import stand_ins

SECONDS = 120.0
PRINTED, WORKING = "printed", "working"  # of a rule's `until`
LEAST_CPU = 2.0  # seconds in which a command fails that does not work
MAKE = "make"
IDS = ("3f2a", "b71c", "90cd")  # what pages call runs
MADE = ("out", "board", "pilot", "atlas", "mine", "mine.zip", "adult.zip")
SMALL = ("split.repeats=2", "tracking=none", "figures=false", "data.verify=false")


@dataclass(frozen=True)
class Rule:
    """What makes some commands small; ``commands.yaml`` says what its parts mean."""

    of: str
    add: Sequence[str] = ()
    change: dict[str, str] = field(default_factory=dict)
    before: Sequence[str] = ()
    until: Sequence[str] = ()
    status: Sequence[int] = ()
    raw: str = ""
    help: str = ""
    slow: bool = False

    def is_of(self, command: Printed) -> bool:
        """Return whether it is of a command."""
        return re.search(self.of, shlex.join(command.words).replace("'", "")) is not None


@cache
def rules() -> list[Rule]:
    """Return the rules in their order."""
    text = (ROOT / "tests" / "conformance" / "commands.yaml").read_text(encoding="utf-8")
    return [Rule(**each) for each in yaml.safe_load(text)["rules"]]


@dataclass
class Place:
    """A reader's folder, which is a clone whose ``fairbench`` is started there.

    Attributes
    ----------
    kept : the files and results that commands may need, as they were before any of them.
    fresh : whether Python is started anew for each command.
    """

    folder: Path
    kept: Path
    fresh: bool = False

    def run(self, words: Sequence[str], raw: str = "", **options: Any) -> Any:
        """Start a command line in the folder; see :func:`tests.warm.run`."""
        data = trees.raw_files() if raw == "own" else str(self.kept / "raw")
        environment = {"FAIRBENCH_DATA": data, "FAIRBENCH_CACHE": str(self.kept / f"cache{raw}")}
        return warm.run(
            python_words(words), cwd=self.folder, timeout=SECONDS, environment=environment,
            tree=self.folder, fresh=self.fresh or words[0] == MAKE, **options,
        )  # fmt: skip

    def restore(self) -> None:
        """Have the folder's files and results be as they were."""
        made = [self.folder / name for name in MADE]
        own = self.folder / "results"
        results = {path for path in own.glob("*") if path.name not in trees.RESULTS}
        for path in (*made, *results, *self.folder.glob("*-audit"), *self.folder.glob("*.json")):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        shutil.copytree(self.kept / "files", self.folder, dirs_exist_ok=True)

    def there(self, patterns: Sequence[str]) -> set[Path]:
        """Return the files and folders that some patterns find."""
        return {path for pattern in patterns for path in self.folder.glob(pattern)}


def python_words(words: Sequence[str]) -> list[str]:
    """Return a command line as what Python is given."""
    name, *rest = words
    if name == "fairbench":
        return ["-m", "fairbench", *rest]
    if name == MAKE:
        code = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
        own = (f"VENV={sys.prefix}", "-o", f"{sys.prefix}/.installed")
        return ["-c", code, MAKE, *own, *rest]
    return list(rest)


def prepare(tree: Path, kept: Path) -> Place:
    """Write files and stand-ins of raw files, and run what pages take to be finished in a clone."""
    files = kept / "files"
    files.mkdir(parents=True)
    readers.put_files(files)
    stand_ins.write(kept / "raw")
    place = Place(tree, kept)
    place.restore()
    run = ("fairbench", "run", "-m", *SMALL)
    words = ["dataset=german,adult", "method=baseline,ensemble,self_consistency", "purpose=study"]
    done = place.run([*run, *words])
    assert done.returncode == 0, done.stdout + done.stderr
    own = shutil.ignore_patterns("README.md")
    shutil.copytree(place.folder / "results", files / "results", ignore=own)
    return place


def start(command: Printed, place: Place) -> str:
    """Start a command; return what is wrong with what it does, and nothing if it works."""
    chosen = [rule for rule in rules() if rule.is_of(command)]
    place.restore()
    ids = finished(place.folder / "results")
    before = [shlex.split(text) for rule in chosen for text in rule.before]
    words = small(command, chosen)
    raw = "".join(rule.raw for rule in chosen)
    for place_of_line, asked in enumerate([*before, words]):
        last = place_of_line == len(before)
        line = [_with_ids(word, ids) for word in asked]
        until = [pattern for rule in chosen for pattern in rule.until] if last else []
        old = place.there(until)
        stop = partial(_has_begun, place, until, old) if until else None
        try:
            done = place.run(line, raw, until=stop)
        except subprocess.TimeoutExpired as late:
            return f"{command}, started as '{shlex.join(line)}': {late}"
        said = f"{command}, started as '{shlex.join(line)}': exit {done.returncode}, "
        said += done.stdout[-1500:] + done.stderr[-1500:]
        statuses = [0, *(status for rule in chosen for status in rule.status)] if last else [0]
        ended = done.returncode == -signal.SIGTERM and bool(until)
        missing = "the raw file" in done.stderr and raw == "own" and not trees.raw_files()
        if "Traceback" in done.stderr and not ended:
            return said
        if not (done.returncode in statuses or ended or missing):
            return said
    return ""


def _has_begun(
    place: Place, until: Sequence[str], before: set[Path], printed: Path, pid: int
) -> bool:
    """Return whether a command has stored, printed or begun what its rules wait for."""
    has_printed = PRINTED in until and printed.stat().st_size
    is_working = WORKING in until and warm.cpu_seconds(pid) > LEAST_CPU
    return bool(has_printed or is_working or place.there(until) - before)


def finished(results: Path) -> list[str]:
    """Return the ids of runs, those first that can be compared with one another."""
    paths = {path.parent.name: path for path in results.glob("runs/*/environment.json")}
    texts = {name: path.read_text() for name, path in paths.items()}
    return sorted(texts, key=lambda name: ("german" not in texts[name], "table8" in texts[name]))


def small(command: Printed, chosen: Sequence[Rule]) -> list[str]:
    """Return the words of a command, made small by rules."""
    words = list(command.words)
    if any(rule.help for rule in chosen):
        return [*[word for word in words if "=" not in word], "--help"]
    for rule in chosen:
        for old, new in rule.change.items():
            words = [re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w.])", new, word) for word in words]
    kept = ("RUN", "PD")
    words = [word if word.partition("=")[2] in kept else filled(word) for word in words]
    words = [word for word in words if word in kept or not CAPITALS.fullmatch(word)]
    for added in (word for rule in chosen for word in rule.add):
        name = added.partition("=")[0] if "=" in added else ""
        words = [*(word for word in words if not name or word.partition("=")[0] != name), added]
    return words


def _with_ids(word: str, ids: Sequence[str]) -> str:
    """Return a word in which the names that pages have for runs are those of finished ones."""
    names = dict(zip(IDS, ids, strict=False)) | {"RUN": ids[0], "A": ids[0], "B": ids[1]}
    for name, own in names.items():
        word = re.sub(rf"(?<![\w.]){name}(?![\w.])", own, word)
    return word.replace(",...]", "]")
