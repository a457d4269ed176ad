"""Hostile values in records, validly sealed: ``python -m benchmarks.faults values 20000``.

A stranger who knows this project writes what they like into one field of one record, corrects its
id, its names and its seals so that all agree, and waits for a command to read it. Each field meets
each kind of value, and each record a verb that reads results; the verbs take turns. While a command
runs, every file that it opens, every program that it starts and every module that it imports is
noted. None may be the stranger's or somebody else's; no secret of the environment may be printed or
written; no command may take more than `SECONDS` or `BYTES`, or end by a traceback.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.faults.commands import carried_out, in_forks, too_long
from benchmarks.faults.records import Place
from benchmarks.measure import ROOT, configuration, show
from fairbench.core.files import sealed_json, unsealed_json
from fairbench.core.text import digest
from fairbench.experiments.execute import carry_out
from fairbench.results.record import GROUPS, run_name
from fairbench.results.runs import LAST

SECONDS, BYTES = 10, 1_300_000_000
_SECRET = "a-secret-of-the-environment"
_VARIABLE = "FAIRBENCH_TEST_SECRET"
_CANARY = "canary_of_a_stranger"  # a file, and a module whose import makes it

# A value by its kind; AWAY is a folder beside the results with files of the stranger's, and UP the
# way to it from the folder of a learner's configurations.
HOSTILE: dict[str, Any] = {
    "a way out": "UP/stranger",
    "a way out of a folder more": "../UP/stranger",
    "a path": "AWAY/stranger.yaml",
    "a file": "AWAY/somebody.csv",
    "a pipe": "AWAY/pipe",
    "a device": "/dev/zero",
    "a password": "/etc/passwd",
    "a function": "os.system",
    "a function of the stranger's": f"{_CANARY}.touch",
    "a call": {"_target_": f"{_CANARY}.touch", "_args_": ["x"]},
    "a call in a list": [{"_target_": f"{_CANARY}.touch"}],
    "a variable": f"${{oc.env:{_VARIABLE}}}",
    "a variable in a text": f"x${{oc.env:{_VARIABLE}}}y",
    "a reference": "${learner}",
    "a resolver": "${oc.decode:'${oc.env:HOME}'}",
    "nothing at all": "???",
    "more words": f"x hydra.run.dir=AWAY learner._target_={_CANARY}.touch",
    "a sweep": "a,b",
    "choices": "choice(a,b)",
    "a range": "range(1000000)",
    "a quotation mark": "it's",
    "a backslash": "a\\'b",
    "a command": "$(touch AWAY/touched); `touch AWAY/touched`",
    "a flag": "--multirun",
    "a deletion": "~learner",
    "an addition": "+learner._target_=os.system",
    "a tag": f"!!python/object/apply:{_CANARY}.touch []",
    "an escape": "\x1b[2J\u202e",
    "a byte of value 0": "a\0b",
    "half a sign": "\ud800",
    "a line": "a\nb=c",
    "a long text": "decline race " * 20_000,
    "a huge number": 10**9,
    "a larger one": 2**62,
    "an endless number": 10**400,
    "a negative one": -1,
    "zero": 0,
    "a half": 0.5,
    "a large float": 1e308,
    "no number": float("nan"),
    "infinity": float("inf"),
    "many": list(range(20_000)),
    "a deep list": json.loads("[" * 200 + "]" * 200),
    "none": None,
    "true": True,
    "a text": "text",
    "an empty text": "",
    "a list": [],
    "a mapping": {},
}  # fmt: skip
# Verbs that read results; RUN is the record's run, and OTHER one of the same data.
VERBS = (
    "store ls", "store show RUN", "store verify RUN", "store verify RUN cells=0",
    "store evaluate RUN", "store export RUN out.csv people=true", "store gc dry_run=true",
    "store rm RUN dry_run=true", "store pack out=made people=true", "table RUN",
    "table all out=t.csv", "report", "choose dataset=simulated", "compare RUN OTHER paired=false",
    "tradeoff simulated", "leaderboard", "audit RUN", "sync uri=sqlite:///m.db",
    "dossier model-card RUN",
    "alternative dataset=simulated dataset.n_samples=120 in_use=RUN trials=2 tracking=none",
    *("store show RUN", "store verify RUN", "table RUN", "store export RUN out.csv", "audit RUN",
      "choose dataset=simulated", "compare OTHER RUN paired=false", "store ls") * 4,
)  # fmt: skip
_SMALL = ("split.repeats=2", "tracking=none")
_TUNE = (
    "tune dataset=simulated dataset.n_samples=120 learner=logistic_regression method=baseline"
    " learner.C=interval(0.5,2.0) trials=3 split.repeats=2 tracking=none"
)
STATES = ("label next state=label.json", "label report state=label.json",
          "label ask state=label.json 3=1")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One value in one field of one record, and the command that reads it.

    Attributes
    ----------
    record : its file, below the folder. field : the keys that lead to the field.
    kind : the name of the value. other : another run of the same data.
    bare : whether id and names are left as they were.
    """

    record: str
    field: tuple[Any, ...]
    kind: str
    verb: str
    other: str
    bare: bool

    def __str__(self) -> str:
        """Return the case in a line."""
        field = ".".join(map(str, self.field))
        bare = ", bare" if self.bare else ""
        return f"{Path(self.record).name} {field}: {self.kind}{bare}: fairbench {self.verb}"


def fields(values: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the keys that lead to every value of a tree, and to a new entry of each mapping."""
    if before:
        yield before
    if isinstance(values, dict):
        for name in values:
            yield from fields(values[name], (*before, name))
        yield from ((*before, f"{name}") for name in ("_target_", "other.option", "../x"))
    elif isinstance(values, list):
        for position in range(min(len(values), 2)):
            yield from fields(values[position], (*before, position))


def cases(place: Place) -> list[Case]:
    """Return every field by every kind of value, each with the verb whose turn it is."""
    verbs, study = itertools.cycle(VERBS), _TUNE
    found = []
    run, other = _comparable(place)
    records = [
        (place.results / "runs" / run / LAST, verbs),
        (next(place.results.glob("tuning/*/trials.jsonl")), [study]),
    ]
    records += [(place.root / "label.json", STATES)]
    records += [
        (path, ["sync uri=sqlite:///m.db"]) for path in sorted(place.results.glob("sweeps/*/*"))
    ]
    figures = place.results / "runs" / run / "figures" / "manifest.json"
    records += [(figures, [f"store verify {run} cells=0"])]
    for path, turns in records:
        each = itertools.cycle(turns)
        first = path.read_bytes().splitlines()[0] if path.suffix == ".jsonl" else path.read_bytes()
        for field, kind in itertools.product(fields(_plain(first)), HOSTILE):
            for bare in (
                (False, True) if str(path).endswith(LAST) and "config" in field else (True,)
            ):
                name = str(path.relative_to(place.root))
                found.append(Case(name, field, kind, next(each), other, bare))
    return found


def _comparable(place: Place) -> list[str]:
    """Return the ids of two runs of the same data."""
    runs = {
        path.parent.name: _plain(path.read_bytes()) for path in place.results.glob(f"runs/*/{LAST}")
    }
    plain = [run for run, known in sorted(runs.items()) if known["choices"]["method"] == "baseline"]
    return [run for run in plain if runs[run]["choices"]["dataset"] == "simulated"][:2]


def _plain(content: bytes) -> Any:
    try:
        return unsealed_json(content)
    except ValueError:
        return json.loads(content)


class Watch:
    """What a command opens, starts and imports, as Python's audit events tell."""

    def __init__(self, place: Place, away: Path) -> None:
        packages = (sys.prefix, sys.base_prefix, str(ROOT), "/usr", str(Path.home() / ".cache"))
        system = ("/proc", "/sys", "/dev/null", "/etc/mime.types", "/etc/localtime", "/etc/ssl")
        self.own = (str(place.root), *packages, *system)
        self.away, self.on, self.seen = str(away), False, list[str]()
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            path = os.fsdecode(os.fspath(arguments[0]))
            below = not os.path.isabs(path) and ".." not in path.split("/")
            above = f"{self.away}/".startswith(f"{path.rstrip('/')}/")  # a folder on the way
            if not below and not above and not os.path.abspath(path).startswith(self.own):
                self.seen.append(f"opens {path!r}")
        elif event in ("os.system", "os.exec", "pty.spawn"):
            self.seen.append(f"{event} {arguments[:1]!r}")
        elif event == "subprocess.Popen" and "git" not in str(arguments[0]):
            self.seen.append(f"starts {arguments[0]!r}")
        elif event == "import" and _CANARY in str(arguments[0]):
            self.seen.append(f"imports {arguments[0]!r}")


def put(place: Place, case: Case, away: Path) -> str:
    """Write the record of a case, and return the id of its run."""
    path = place.root / case.record
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    values = _plain(lines[0] if path.suffix == ".jsonl" else content)
    node = values
    for key in case.field[:-1]:
        node = node[key]
    node[case.field[-1]] = _given(HOSTILE[case.kind], away)
    run = path.parent.name
    if path.name == LAST and not case.bare:
        run = _agreeing(values, path.parent)
        path = path.parents[1] / run / LAST
    sealed = sealed_json(values) if b'"seal"' in content else json.dumps(values)
    path.write_bytes(b"".join([sealed.encode(errors="replace").strip() + b"\n", *lines[1:]])
                     if path.suffix == ".jsonl" else sealed.encode(errors="replace"))  # fmt: skip
    return run


def _given(value: Any, away: Path) -> Any:
    if not isinstance(value, str):
        return value
    up = os.path.relpath(away, ROOT / "conf" / "learner")
    return value.replace("AWAY", str(away)).replace("UP/", f"{up}/")


def _agreeing(record: dict[str, Any], folder: Path) -> str:
    """Have a record's names agree with its configuration, and its folder with both."""
    config = record["config"]
    with contextlib.suppress(TypeError, KeyError, AttributeError, ValueError):
        record["choices"] = {group: config[group]["name"] for group in GROUPS}
        record["name"] = run_name(record["choices"])
        record["seed"] = config["seed"]
    run = digest(config, 12) if isinstance(config, dict) else folder.name
    if run != folder.name:
        folder.rename(folder.with_name(run))
    return run


def tried(
    whole: Path, chosen: list[Case], worker: int, workers: int
) -> tuple[Counter[Any], list[str]]:
    """Try every so many-th case in a copy of the folder; return statuses, and what went wrong."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, too_long)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    counts, wrong = Counter[Any](), list[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        away = folder / "away"
        _fill(away)
        sys.path.append(str(away))
        os.environ |= {_VARIABLE: _SECRET, "FAIRBENCH_MAX_MEMORY": "1", "PATH": ""}
        place = Place(folder / "place")
        watch = Watch(place, away)
        copy = Copy(whole, place.root)
        for verb in (*VERBS, _TUNE):  # so that what is imported by then counts for none
            carried_out(_words(verb, *_comparable(place)), place.root)
        copy.warm = _bytes("VmRSS")  # what a command of its own would take to begin with
        for case in chosen[worker::workers]:
            copy.restore()
            for sentence in _tried(copy, case, away, watch, counts):
                wrong.append(f"{case}: {sentence}")
                print(wrong[-1].encode(errors="backslashreplace").decode(), flush=True)
    return counts, wrong


def _fill(away: Path) -> None:
    """Make the stranger's files: a component, a module, a pipe; and somebody's own."""
    away.mkdir()
    text = f"_target_: {_CANARY}.touch\npath: {away}/touched\n"
    (away / "stranger.yaml").write_text(text)
    (away / "somebody.csv").write_text("y,s,sex\n1,0.5,f\n" * 50)
    (away / f"{_CANARY}.py").write_text(
        f"def touch(*given, **named): open({str(away / 'touched')!r}, 'w')\ntouch()\n"
    )
    os.mkfifo(away / "pipe")


class Copy:
    """A copy of a folder, which is put back as it was after every command."""

    def __init__(self, whole: Path, own: Path) -> None:
        self.whole, self.own, self.warm = whole, own, 0
        shutil.copytree(whole, own)
        self.before = self._stamps()

    def _stamps(self) -> dict[str, tuple[int, ...]]:
        """Return what tells whether a file was changed, by its path."""
        found: dict[str, tuple[int, ...]] = {}
        for folder, _, names in os.walk(self.own):
            for path in (os.path.join(folder, name) for name in names):
                about = os.lstat(path)
                found[os.path.relpath(path, self.own)] = (about.st_ino, about.st_ctime_ns)
        return found

    def changed(self) -> list[Path]:
        """Return the files that are there and were not, or not so, before."""
        return [self.own / name for name, stamp in self._stamps().items()
                if self.before.get(name) != stamp]  # fmt: skip

    def restore(self) -> None:
        """Put back what was changed or removed, and remove what was made."""
        for path in self.changed():
            path.unlink()
        for folder, _, _ in os.walk(self.own, topdown=False):
            if not (self.whole / os.path.relpath(folder, self.own)).is_dir():
                os.rmdir(folder)
        for name in self.before:
            if not os.path.lexists(self.own / name):
                (self.own / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.whole / name, self.own / name)
        self.before = self._stamps()


def _words(verb: str, run: str, other: str) -> list[str]:
    named = {"RUN": run, "OTHER": other, "in_use=RUN": f"in_use={run}"}
    return [named.get(word, word) for word in verb.split()]


def _tried(copy: Copy, case: Case, away: Path, watch: Watch, counts: Counter[Any]) -> Iterator[str]:
    """Give the command of a case, and yield what is wrong."""
    place = Place(copy.own)
    run = put(place, case, away)
    Path("/proc/self/clear_refs").write_text("5")  # the most counts from now on
    size, started = _bytes("VmRSS"), time.process_time()
    watch.seen.clear()
    status, said = -1, ""
    signal.alarm(20 * SECONDS)
    try:
        watch.on = True
        status, said = carried_out(_words(case.verb, run, case.other), place.root)
    except BaseException as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        yield f"{type(error).__name__} at {Path(at.filename).name}:{at.lineno}: {error!s:.150}"
    finally:
        watch.on = False
        signal.alarm(0)
    verb, seconds = case.verb.partition(" dataset=")[0], time.process_time() - started
    counts[verb, status] += 1
    counts[verb, "ms"] += round(1000 * seconds)
    if status not in (0, 1, 2):
        yield f"status {status}"
    if "Traceback" in said:
        yield f"a traceback: {said[-200:]!r}"
    if seconds > SECONDS:
        yield f"takes {seconds:.0f} s"
    if (taken := copy.warm + _bytes("VmHWM") - size) > BYTES:
        yield f"takes {taken / 1e9:.1f} GB"
    yield from dict.fromkeys(watch.seen)
    if _SECRET in said or any(_SECRET.encode() in path.read_bytes() for path in copy.changed()):
        yield "the secret is printed or written"
    if (away / "touched").exists():
        (away / "touched").unlink()
        yield "the stranger's code ran"


def _bytes(name: str) -> int:
    """Return how many bytes the process takes now (VmRSS), or took at the most (VmHWM)."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if name in x)
    return int(line.split()[1]) * 1024


def main(number: int = 20_000, only: str = "") -> bool:
    """Print what came of so many cases, spread evenly over all, or those that have a text."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        whole = Place(Path(name) / "place")
        whole.root.mkdir()
        with contextlib.redirect_stderr(io.StringIO()):
            whole.make()
            _add_study(whole)
        everything = [case for case in cases(whole) if only in str(case)]
        step = max(len(everything) / number, 1)
        chosen = [everything[int(i * step)] for i in range(min(number, len(everything)))]
        parts = in_forks(partial(tried, whole.root, chosen))
    counts = sum((part for part, _ in parts), Counter[Any]())
    wrong = [sentence for _, sentences in parts for sentence in sentences]
    verbs = sorted({verb for verb, _ in counts})
    rows = [
        [verb, *(counts[verb, status] for status in (0, 1, 2)), round(counts[verb, "ms"] / 1000)]
        for verb in verbs
    ]
    took = f"{time.monotonic() - started:.0f} s"
    title = f"{len(chosen)} of {len(everything)} hostile values, {len(wrong)} went wrong, {took}"
    show(title, ("command", "0", "1", "2", "CPU s"), rows)
    return not wrong


def _add_study(place: Place) -> None:
    """Tune once, so that there are trials that the same command goes on from."""
    for path in place.results.glob("tuning/*"):
        shutil.rmtree(path)
    status, said = carried_out(_TUNE.split(), place.root)
    if status:
        raise RuntimeError(said)
    for method in ("method=baseline", "method=ensemble"):  # a second task, as a leaderboard needs
        words = (method, "dataset=sd1", "dataset.n_samples=120", "learner=gaussian_nb")
        carry_out(configuration(*words, *_SMALL, f"results={place.results}"))
