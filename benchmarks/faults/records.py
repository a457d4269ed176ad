"""Records of odd shape, validly sealed: ``python -m benchmarks.faults records 100000``.

A stranger who knows this project seals what they like. In each round one record of a results
folder, of a pack or of a state is replaced by one of another shape or with hostile values, whose
id, seals and checksums are right, and the library and commands read it: a cheap one now and then, a
costly one seldom. Each must end with an answer or be refused in one line, in `SECONDS` and `BYTES`.
Every file that is opened meanwhile, every program that starts and every module that is imported is
noted: none may be the stranger's or somebody else's. Nothing is written outside the folder, no
secret of the environment is printed or written, and no sign is printed that a terminal obeys.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.faults import commands
from benchmarks.measure import ROOT, configuration
from benchmarks.stored import configured, laid_out, pack_of, run_of
from fairbench.core.errors import UserError
from fairbench.core.files import parquet_bytes, sealed, sealed_json, unsealed_json
from fairbench.experiments.execute import carry_out
from fairbench.results import catalogue, tables
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import Parts
from fairbench.results.runs import LAST, CorruptCellError, Run, Store
from fairbench.results.upkeep import MANIFEST, read_sweeps, unpack
from fairbench.tracking.importer import NOTE, read_note
from fairbench_label.session import StateFile
from fairbench_watch.alarms import WatchFile

Draw = np.random.Generator
SECONDS = 60  # that a command may take here, beside whatever else the machine does
BYTES = 1_300_000_000  # of memory that it may take beside what the process has
RUNS = (
    ("method=baseline", "learner=logistic_regression"),
    ("method=baseline", "learner=gaussian_nb"),
    ("method=ensemble", "method.members=2", "learner=logistic_regression"),
)
SHARED = ("dataset=simulated", "dataset.n_samples=120", "split.repeats=2", "tracking=none")

# In traps, AWAY is a folder beside the results with files of the stranger's, and UP the way to it
# from the folder of a learner's configurations.
_SECRET, _VARIABLE = "a-secret-of-the-environment", "FAIRBENCH_TEST_SECRET"
_CANARY = "canary_of_a_stranger"  # a file, and a module whose import makes it
HOSTILE: tuple[str, ...] = (*commands.LISTED["signs"], "x" * 5000)
TRAPS: tuple[object, ...] = (*commands.LISTED["traps"], "decline race " * 20_000)
NUMBERS = (
    *(0, 1, -1, 2, 0.5, -0.0, 1e308, float("nan"), float("inf"), -float("inf"), 2**31, 2**63),
    *(-(2**63), 2**64, 10**30, 10**400, 1e-320),
)
PLAIN: tuple[object, ...] = (
    *(None, True, False, [], {}, [[]], {"": ""}, [None], {"a": {"b": {"c": [1]}}}, [1, "a", None]),
    list(range(20_000)),
)


def odd_value(draw: Draw) -> Any:
    """Return a value that nobody expects."""
    kind = draw.random()
    if kind < 0.97:
        plain = HOSTILE if kind < 0.3 else TRAPS if kind < 0.5 else NUMBERS if kind < 0.7 else PLAIN
        return _led_away(deepcopy(one_of(plain, draw)))
    deep: Any = []
    for _ in range(int(draw.choice([20, 200, 900]))):
        deep = [deep] if draw.random() < 0.5 else {"a": deep}
    return deep


def one_of(values: Sequence[Any], draw: Draw) -> Any:
    """Return one of some values, all of which are as likely."""
    return values[int(draw.integers(len(values)))]


def _led_away(value: Any) -> Any:
    """Return a value whose paths lead to the stranger's folder, which this fork has."""
    away = os.environ.get("AWAY", "/nowhere")
    if isinstance(value, str):
        up = os.path.relpath(away, ROOT / "conf" / "learner")
        return value.replace("AWAY", away).replace("UP/", f"{up}/")
    return value


def odd_json(values: Any, draw: Draw) -> Any:
    """Return a tree of plain values, changed in one to three places."""
    tree = json.loads(json.dumps(values))
    for _ in range(int(draw.choice([1, 1, 1, 2, 3]))):
        tree = _changed(tree, draw)
    return tree


def _changed(tree: Any, draw: Draw) -> Any:
    """Change a tree at a random depth: each node on the way is entered with odds of four to one."""
    if not isinstance(tree, dict | list) or not tree:
        return odd_value(draw)
    pairs = list(tree.items() if isinstance(tree, dict) else enumerate(tree))
    at = draw.integers(len(pairs))
    name, value = pairs[at]
    hostile = one_of(HOSTILE, draw)
    if draw.random() < 0.8:
        pairs[at] = name, _changed(value, draw)
    elif draw.random() < 3 / 7:
        return one_of((odd_value(draw), [tree], [one_of(pair, draw) for pair in pairs]), draw)
    else:
        other, more = one_of(pairs, draw)[1], (hostile, odd_value(draw))
        ways = [(hostile, value)], [(name, other)], [(name, value), more]
        pairs[at : at + 1] = one_of([[], *ways], draw)
    return dict(pairs) if isinstance(tree, dict) else [value for _, value in pairs]


def odd_table(table: pa.Table, draw: Draw) -> pa.Table:
    """Return a table of other columns, types, rows or notes."""
    for _ in range(int(draw.choice([1, 1, 1, 2, 3]))):
        with contextlib.suppress(pa.ArrowException, ValueError, TypeError, OverflowError):
            table = _other_table(table, draw)
    return table


def _other_table(table: pa.Table, draw: Draw) -> pa.Table:
    names, kind = table.column_names, draw.integers(10)
    if kind == 9 and (notes := table.schema.metadata):
        return _other_notes(table, dict(notes), draw)
    if not names or kind == 0:
        return table.slice(0, int(draw.choice([0, 0, 1])))
    at = int(draw.integers(len(names)))
    name, column = names[at], table.column(at)
    if kind == 1:
        return table.remove_column(at)
    if kind == 2:
        new = str(draw.choice([*names, *HOSTILE[:-3]]))
        return table.rename_columns([*names[:at], new, *names[at + 1 :]])
    if kind == 3:
        return table.append_column(name, column)
    values = column.to_pylist()
    ways: tuple[Callable[[], Any], ...] = (
        lambda: pa.array([odd_value(draw)] * len(table)),
        lambda: _of_type(column, draw),
        lambda: pa.nulls(len(table), column.type),
        lambda: pa.array([None, *values[1:]], column.type),
        lambda: pa.array(_some_changed(values, draw)),
    )
    return table.set_column(at, name, one_of(ways, draw)())


def _some_changed(values: list[Any], draw: Draw) -> list[Any]:
    """Return values of which a few are odd ones of their own type."""
    odd = HOSTILE if any(isinstance(value, str) for value in values) else NUMBERS[:12]
    for _ in range(min(len(values), 3)):
        values[draw.integers(len(values))] = one_of(odd, draw)
    return values


def _of_type(column: pa.ChunkedArray, draw: Draw) -> Any:
    kinds = (pa.string(), pa.float64(), pa.int8(), pa.int64(), pa.bool_(), pa.binary(),
             pa.timestamp("ns"), pa.decimal128(38, 9), pa.large_string())  # fmt: skip
    if draw.random() < 0.2:
        plain = column.combine_chunks()
        return plain if pa.types.is_dictionary(plain.type) else plain.dictionary_encode()
    if draw.random() < 0.3:
        return pa.array([[value] for value in column.to_pylist()])
    return column.cast(one_of(kinds, draw))


def _other_notes(table: pa.Table, notes: dict[bytes, bytes], draw: Draw) -> pa.Table:
    """Return a table whose notes, which are JSON, are of another shape."""
    note = notes.pop(name := one_of(list(notes), draw))
    if draw.random() >= 0.2:
        try:
            notes[name] = json.dumps(odd_json(json.loads(note), draw)).encode()
        except ValueError:
            notes[name] = b"\xff"
    return table.replace_schema_metadata(notes)


def odd_text(content: bytes, draw: Draw) -> bytes:
    """Return the content of a text file with odd lines, fields and bytes."""
    lines = content.split(b"\n")
    at = int(draw.integers(len(lines)))
    odd = str(one_of(HOSTILE, draw)).encode(errors="surrogatepass")
    line, fields = lines[at], lines[at].split(b",")
    fields[draw.integers(len(fields))] = odd
    ways = [odd], [odd, line], [line + b"\xff\xfe\x80"], [b",".join(fields)]
    lines[at : at + 1] = one_of([[], *ways], draw)
    return odd if draw.random() < 1 / 6 else b"\n".join(lines)


def _json_file(path: Path, draw: Draw) -> bytes:
    return _sealed_values(odd_json(unsealed_json(path.read_bytes()), draw))


def _record_file(path: Path, draw: Draw) -> bytes:
    """Return a record of another shape, or of another configuration with what follows from it."""
    record = unsealed_json(path.read_bytes())
    if draw.random() < 0.5:
        return _sealed_values(odd_json(record, draw))
    record["config"] = odd_json(record["config"], draw)
    with contextlib.suppress(LookupError, TypeError, AttributeError, ValueError):
        record = configured(record, {})
    return _sealed_values(record)


def under_its_id(path: Path) -> str:
    """Have a run's folder under the id of its record, if that has one; return the name it has."""
    target = path.parent
    with contextlib.suppress(LookupError, TypeError, ValueError, RecursionError):
        target = target.with_name(run_of(unsealed_json(path.read_bytes())))
    if target.exists():
        return path.parent.name
    path.parent.rename(target)
    return target.name


def _sealed_values(values: Any) -> bytes:
    """Return plain values with a seal; of a list, which can have none, as it is."""
    if not isinstance(values, dict):
        return json.dumps(values).encode()
    return sealed_json(values).encode()


def _open_json(path: Path, draw: Draw) -> bytes:
    return json.dumps(odd_json(json.loads(path.read_bytes()), draw)).encode()


def _table_file(path: Path, draw: Draw) -> bytes:
    """Return a Parquet file of another table, sealed as all that have a seal."""
    table = odd_table(pq.read_table(path), draw)
    has_seal = b"seal" in pq.read_metadata(path).metadata
    return sealed_table(table) if has_seal else parquet_bytes(table)


def sealed_table(table: pa.Table) -> bytes:
    """Return what `write_table` writes, which waits for the disk."""
    notes = {**(table.schema.metadata or {}), b"seal": _BLANK_SEAL}
    return sealed(parquet_bytes(table.replace_schema_metadata(notes)))


_BLANK_SEAL = b"fairbench-sha256:" + b"0" * 64


def _text_file(path: Path, draw: Draw) -> bytes:
    return odd_text(path.read_bytes(), draw)


def _pack_file(path: Path, draw: Draw) -> bytes:
    """Return a pack with another manifest, or another record of a run."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(files.pop(MANIFEST))
    if draw.random() < 0.5:
        return pack_of(files, odd_json(manifest, draw))
    record = min(name for name in files if name.endswith(LAST))
    odd = odd_json(unsealed_json(files[record]), draw)
    files[record] = sealed_json(odd if isinstance(odd, dict) else {"": odd}).encode()
    return pack_of(files)


@dataclass(frozen=True)
class Place(commands.Place):
    """A folder that the commands are given in: results, a pack of them, and states."""

    def make(self) -> None:
        """Make everything once."""
        self.root.mkdir()
        for words in RUNS:
            end = carry_out(configuration(*SHARED, *words, f"results={self.results}"))
            laid_out(end.prepared.folder.path)
        draw = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"y": draw.integers(0, 2, 200), "s": draw.random(200), "sex": list("fm") * 100}
        )
        frame.to_csv(self.root / "rows.csv", index=False)
        frame.drop(columns="y").to_csv(self.root / "unlabelled.csv", index=False)
        outcome = {"job": "method=baseline", "status": "finished", "message": ""}
        note = {"place": {"a": "b"}, "stamp": [1], "runs": {self.runs[0]: ["a", "b", "c"]}}
        for name, text in {
            "sweeps/2026-01-01/outcomes.json": json.dumps(
                [outcome | {"run": r} for r in self.runs]
            ),
            "sweeps/2026-01-01/sweep.json": json.dumps({"name": "method=baseline"}),
            NOTE: sealed_json(note),
        }.items():
            path = self.results / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for command in (
            "store pack out=pack.zip people=true",
            "label next unlabelled.csv state=label.json score=s group=sex",
            "label ask state=label.json 1=1 2=0",
            "watch rows.csv target=y score=s group=sex state=watch.json",
        ):
            status, said = commands.carried_out(command.split(), self.root)
            if status not in (0, 1):
                raise RuntimeError(f"{command}: {said}")
        shutil.rmtree(self.results / "report", ignore_errors=True)


def _write_index(place: Place, draw: Draw) -> bytes:
    """Return an index of the runs as they are, of another shape."""
    folder, parts = place.results / "runs", Parts()
    stamps = catalogue._stamps(folder)
    listed = {name: catalogue._summary(folder / name, stamps[name], parts) for name in stamps}
    path = place.results / catalogue.INDEX
    with patch.object(catalogue, "_RECENT", -1e9):
        catalogue._write(path, listed, stamps)
    return _json_file(path, draw)


Make = Callable[[Path, Draw], bytes]
Read = Callable[[Place, str], object]


def _run(place: Place, run: str) -> Run:
    return Catalogue(place.results).one(run)


# How the library reads a kind of record, besides what commands do.
READ: Mapping[str, tuple[Read, ...]] = {
    LAST: (
        lambda at, run: Catalogue(at.results).label(),
        lambda at, run: Catalogue(at.results).to_dataframe(),
    ),
    "cells.txt": (lambda at, run: _run(at, run).cells(),),
    "summary.csv": (lambda at, run: _run(at, run).summary(),),
    "metrics.parquet": (
        lambda at, run: _run(at, run).all_metrics(),
        lambda at, run: Catalogue(at.results).metrics,
    ),
    "predictions.parquet": (lambda at, run: _run(at, run).predictions(),),
    "rows of a split": (lambda at, run: _run(at, run).predictions(),),
    "people": (lambda at, run: _run(at, run).people(),),
    "cell": (lambda at, run: [Store(at.results).read(cell) for cell in _run(at, run).cells()],),
    "outcomes of a sweep": (lambda at, run: read_sweeps(at.results),),
    "note of MLflow": (lambda at, run: read_note(at.results, {"a": "b"}, (1,)),),
    "pack": (lambda at, run: unpack(at.root / "pack.zip", at.root / "made"),),
    "labelling state": (lambda at, run: StateFile(at.root / "label.json").read(),),
    "watch state": (lambda at, run: WatchFile(at.root / "watch.json").read(),),
}
_MAKES: Mapping[str, Make] = {
    "record": _record_file, "text": _text_file, "table": _table_file, "json": _json_file,
    "open json": _open_json, "pack": _pack_file,
}  # fmt: skip
KINDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


class Watch:
    """What is opened, started and imported meanwhile, as Python's audit events tell."""

    def __init__(self, root: Path, away: Path) -> None:
        packages = (sys.prefix, sys.base_prefix, str(ROOT), "/usr", str(Path.home() / ".cache"))
        system = ("/proc", "/sys", "/dev/null", "/etc/mime.types", "/etc/localtime", "/etc/ssl")
        self.own = (str(root), *packages, *system)
        tempfile.tempdir = str(root)  # files are copied for MLflow
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


def fill(away: Path) -> None:
    """Make the stranger's files: a component, a module, a pipe; and somebody's own."""
    away.mkdir()
    (away / "stranger.yaml").write_text(f"_target_: {_CANARY}.touch\npath: {away}/touched\n")
    (away / "somebody.csv").write_text("y,s,sex\n1,0.5,f\n" * 50)
    (away / f"{_CANARY}.py").write_text(
        f"def touch(*given, **named): open({str(away / 'touched')!r}, 'w')\ntouch()\n"
    )
    os.mkfifo(away / "pipe")


class Round:
    """One record of another shape, and what came of reading it."""

    def __init__(self, own: Path, watch: Watch, seed: int, costly: float) -> None:
        self.watch, self.place = watch, Place(own)
        self.runs, self.seed, self.draw = self.place.runs, seed, np.random.default_rng(seed)
        shares = np.array([kind["share"] for kind in KINDS.values()])
        self.name = [*KINDS][self.draw.choice(len(KINDS), p=shares / shares.sum())]
        self.kind = KINDS[self.name]
        self.costly, self.counts, self.wrong = costly, Counter(number=1), list[str]()

    def carry_out(self) -> None:
        """Put the record in its place, and read it."""
        place = self.place
        if self.name == "index.json":
            path, content = place.results / catalogue.INDEX, _write_index(place, self.draw)
        else:
            path = one_of(sorted(place.root.glob(self.kind["at"])), self.draw)
            content = self._made(path)
        path.write_bytes(content)
        listing = path.with_name(LAST)
        if path.parent.parent.name == "runs" and path != listing:
            known = unsealed_json(listing.read_bytes())
            known["files"][path.name] = hashlib.sha256(content).hexdigest()
            listing.write_text(sealed_json(known))
        parts, was = path.relative_to(place.root).parts, ""
        run = parts[2] if parts[:2] == ("results", "runs") else self.runs[0]
        if path == listing and self.draw.random() < 0.5:
            run, was = under_its_id(path), path.parent.name
        self._read(run, was)
        if (touched := Path(self.watch.away) / "touched").exists():
            touched.unlink()
            self._wrong("all", "the stranger's code ran")

    def _made(self, path: Path) -> bytes:
        """Return a record of another shape; not every drawn one can be written."""
        while True:
            with contextlib.suppress(pa.ArrowException, ValueError, TypeError, OverflowError):
                return _MAKES[self.kind["as"]](path, self.draw)

    def _read(self, run: str, was: str) -> None:
        """Have a run's record read, which may lie under another id than it was written with."""
        for read in READ.get(self.name, ()):
            self._tried(self.name, partial(read, self.place, run))
        lines: list[str] = []
        for what, often in (("cheap", CHEAP), ("costly", self.costly)):
            if what in self.kind and self.draw.random() < often:
                lines.append(one_of(self.kind[what], self.draw))
                self.counts["of them costly"] += what == "costly"
        first, second = (run if name == was else name for name in self.runs[:2])
        for line in lines:
            self.counts["commands"] += 1
            self._tried(line, partial(self._given, command_of(line, run, first, second)))

    def _given(self, words: list[str]) -> None:
        """Give a command, and look at what it printed and where it wrote."""
        status, said = commands.carried_out(words, self.place.root)
        wrong = partial(self._wrong, " ".join(words))
        if status not in (0, 1, 2):
            wrong(f"status {status}")
        if signs := sorted(commands.obeyed(said)):
            wrong(f"prints {signs!r}")
        if status == 2:
            self.counts["refused"] = 1
            errors = [line for line in said.splitlines() if line.startswith("error: ")]
            if len(errors) != 1 or len(errors[0]) > LONGEST:
                wrong(f"refuses by {said[-300:]!r}")
        if {path.name for path in self.place.root.parent.iterdir()} != BESIDE:
            wrong("wrote outside")
        written = (path.read_bytes() for path in self.place.root.rglob("*") if path.is_file())
        if any(_SECRET.encode() in each for each in (said.encode(errors="replace"), *written)):
            wrong("the secret is printed or written")

    def _tried(self, name: str, call: Callable[[], object]) -> None:
        """Call what must answer or refuse, in time and memory, of its own files."""
        Path("/proc/self/clear_refs").write_text("5")  # the most counts from now on
        size, self.watch.on = _bytes("VmRSS"), True
        self.watch.seen.clear()
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                call()
        except (UserError, CorruptCellError):
            self.counts["refused"] = 1
        except commands.TooLongError:
            self._wrong(name, f"took more than {SECONDS} s")
        except BaseException as error:  # an exit is as wrong as a traceback here
            where = traceback.extract_tb(error.__traceback__)
            ours = [each for each in where if "/fairbench/" in each.filename] or list(where)
            at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
            self._wrong(name, f"{type(error).__name__} at {at}: {str(error)[:200]}")
        finally:
            signal.alarm(0)
            self.watch.on = False
        if (taken := _bytes("VmHWM") - size) > BYTES:
            self._wrong(name, f"takes {taken / 1e9:.1f} GB")
        for what in dict.fromkeys(self.watch.seen):
            self._wrong(name, what)

    def _wrong(self, name: str, sentence: str) -> None:
        self.counts["wrong"] = 1
        self.wrong.append(f"record {self.seed}, {self.name}, {name}: {sentence}")


def _bytes(name: str) -> int:
    """Return how many bytes the process takes now (VmRSS), or took at the most (VmHWM)."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if name in x)
    return int(line.split()[1]) * 1024


LONGEST = 3000  # signs of a line that refuses
CHEAP = 0.3  # of records, how many a command reads beside the readers of the library
BESIDE = {"place", "away"}  # who follows ``../`` writes there
# What remembers what was read of a folder.
REMEMBERED: tuple[Any, ...] = (tables.read_people, tables._rows)


def command_of(line: str, run: str, first: str, second: str) -> list[str]:
    """Return the words of a command on a run, or on two."""
    named = {"RUN": run, "A": first, "B": second}
    return [named.get(word, word) for word in line.split()]


def tried(whole: Path, number: int, costly: float, worker: int, workers: int) -> commands.Total:
    """Try every so many-th record in a copy of the folder; count what came of them."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, commands.too_long)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    total = commands.Total()
    with tempfile.TemporaryDirectory() as name:
        away, own = Path(name) / "away", Path(name) / "place"
        fill(away)
        sys.path.append(str(away))
        told = {_VARIABLE: _SECRET, "FAIRBENCH_MAX_MEMORY": "1", "PATH": "", "AWAY": str(away)}
        os.environ |= told
        shutil.copytree(whole, own)
        watch = Watch(own, away)
        first, second = Place(own).runs[:2]
        for line in KINDS[LAST]["costly"]:  # so that what is imported by then counts for none
            commands.carried_out(command_of(line, first, first, second), own)
        for seed in range(worker, number, workers):
            shutil.rmtree(own)
            shutil.copytree(whole, own)
            for function in REMEMBERED:
                function.cache_clear()
            one = Round(own, watch, seed, costly)
            one.carry_out()
            total += one.counts
            for sentence in one.wrong:
                print(sentence.encode(errors="backslashreplace").decode(), flush=True)
    return total


def main(number: int = 100_000, costly: int = 100) -> bool:
    """Print what came of so many records, a costly command after one in `costly`."""
    with tempfile.TemporaryDirectory() as name:
        whole = Place(Path(name) / "place")
        with contextlib.redirect_stderr(io.StringIO()):
            whole.make()
        call = partial(tried, whole.root, number, 1 / costly)
        total = sum(commands.in_forks(call), commands.Total())
    return commands.ended_well("Records of odd shape", total)
