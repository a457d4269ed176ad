"""Records of odd shape, validly sealed: ``python -m benchmarks.faults records 100000``.

A stranger who knows this project seals what they like. In each round one record of a results
folder, of a pack or of a state is replaced by one of another shape, whose seals and checksums are
right, and commands read it: a cheap one always, a costly one now and then. Each must end with an
answer or be refused in one line; nothing is written outside the folder, no command waits, and no
sign is printed that a terminal obeys.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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

from benchmarks.faults import commands
from benchmarks.faults.commands import TooLongError, carried_out, in_forks, obeyed, too_long
from benchmarks.measure import configuration, show
from benchmarks.stored import configured, pack_of, run_of
from fairbench.core.errors import UserError
from fairbench.core.files import parquet_bytes, sealed, sealed_json, unsealed_json
from fairbench.experiments.execute import carry_out
from fairbench.results import catalogue, tables
from fairbench.results.catalogue import Catalogue
from fairbench.results.record import Parts
from fairbench.results.runs import DRAWN, LAST, CorruptCellError, Run, Store, damaged_figures
from fairbench.results.upkeep import MANIFEST, read_sweeps, unpack
from fairbench.tracking.importer import NOTE, read_note
from fairbench_label.session import StateFile
from fairbench_search.tuning import (
    Dimension,
    Family,
    add_trial,
    begin_study,
    stored_trials,
)
from fairbench_watch.alarms import WatchFile

Draw = np.random.Generator
HEADER = ("record", "number", "refused", "read", "commands", "of them costly", "wrong")
SECONDS = 60  # that a command may take here, beside whatever else the machine does
# What the study that is made here searched.
_SEARCHED = Family({}, {}, (Dimension("learner.C", "interval(1,2)", low=1.0, high=2.0),))
RUNS = (
    ("method=baseline", "learner=logistic_regression"),
    ("method=baseline", "learner=gaussian_nb"),
    ("method=ensemble", "method.members=2", "learner=logistic_regression"),
)
SHARED = ("dataset=simulated", "dataset.n_samples=120", "split.repeats=2", "tracking=none")

HOSTILE = (
    "", " ", "\n", "\x00", "\x1b[31mred", "\u202egnirts", "\u200b", "\ud800", "a\u2028b",
    "x" * 5000,
    "../x", "../../outside/x", "/", "/etc/passwd", ".", "..", "nan", "true", "0", "-1", "1e999",
    "${oc.env:HOME}", "{{ 7 * 7 }}", "[red]x[/red]", "[/]", "<script>alert(1)</script>",
    "\\input{/etc/passwd}", "$x^$", "=1+1", "|a|b|", "0" * 64, "9999-99-99T99:99:99", "%s", "{0}",
    "_target_", "\ufeff", "a\tb", "\U000e0041", "\x9b2J",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 0.5, -0.0, 1e308, float("nan"), float("inf"), -float("inf"), 2**31, 2**63,
    -(2**63),
    2**64, 10**30, 10**400, 1e-320,
)  # fmt: skip
PLAIN: tuple[object, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    {"": ""},
    [None],
    {"a": {"b": {"c": [1]}}},
    [1, "a", None],
)


def odd_value(draw: Draw) -> Any:
    """Return a value that nobody expects."""
    kind = draw.random()
    if kind < 0.4:
        return HOSTILE[draw.integers(len(HOSTILE))]
    if kind < 0.65:
        return NUMBERS[draw.integers(len(NUMBERS))]
    if kind < 0.97:
        return deepcopy(PLAIN[draw.integers(len(PLAIN))])
    deep: Any = []
    for _ in range(int(draw.choice([20, 200, 900]))):
        deep = [deep] if draw.random() < 0.5 else {"a": deep}
    return deep


def odd_json(values: Any, draw: Draw) -> Any:
    """Return a tree of plain values, changed in one to three places."""
    tree = json.loads(json.dumps(values))
    for _ in range(int(draw.choice([1, 1, 1, 2, 3]))):
        tree = _changed(tree, draw)
    return tree


def _changed(tree: Any, draw: Draw) -> Any:
    """Change a tree at a random depth: each node on the way is entered with odds of four to one."""
    inner = (
        list(tree)
        if isinstance(tree, dict)
        else list(range(len(tree)))
        if isinstance(tree, list)
        else []
    )
    if inner and draw.random() < 0.8:
        at = inner[draw.integers(len(inner))]
        tree[at] = _changed(tree[at], draw)
        return tree
    if not inner:
        return odd_value(draw)
    at, kind = inner[draw.integers(len(inner))], draw.integers(7)
    if kind == 0:
        del tree[at]
    elif kind == 1:
        return odd_value(draw)
    elif kind == 2 and isinstance(tree, dict):
        tree[str(HOSTILE[draw.integers(len(HOSTILE))])] = tree.pop(at)
    elif kind == 3:
        return [tree]
    elif kind == 4 and isinstance(tree, dict):
        return list(tree.values()) if draw.random() < 0.5 else list(tree)
    elif kind == 5:
        with contextlib.suppress(RecursionError):  # what is nested too deeply stays as it is
            tree[at] = deepcopy(tree[inner[draw.integers(len(inner))]])
    else:
        extra = HOSTILE[draw.integers(len(HOSTILE))]
        if isinstance(tree, dict):
            tree[extra] = odd_value(draw)
        else:
            tree.append(odd_value(draw))
    return tree


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
    column = table.column(at)
    if kind == 1:
        return table.remove_column(at)
    if kind == 2:
        new = str(draw.choice([*names, *HOSTILE[:-3]]))
        return table.rename_columns([*names[:at], new, *names[at + 1 :]])
    if kind == 3:
        return table.append_column(names[at], column)
    if kind == 4:
        values = [odd_value(draw)] * len(table)
        return table.set_column(at, names[at], pa.array(values))
    if kind == 5:
        return table.set_column(at, names[at], _of_type(column, draw))
    if kind == 6:
        return table.set_column(at, names[at], pa.nulls(len(table), column.type))
    values = column.to_pylist()
    if kind == 7 and values:
        values[draw.integers(len(values))] = None
        return table.set_column(at, names[at], pa.array(values, column.type))
    return table.set_column(at, names[at], pa.array(_some_changed(values, draw)))


def _some_changed(values: list[Any], draw: Draw) -> list[Any]:
    """Return values of which a few are odd ones of their own type."""
    text = any(isinstance(value, str) for value in values)
    odd = HOSTILE if text else NUMBERS[:12]
    for _ in range(min(len(values), 3)):
        values[draw.integers(len(values))] = odd[draw.integers(len(odd))]
    return values


def _of_type(column: pa.ChunkedArray, draw: Draw) -> Any:
    kinds = (pa.string(), pa.float64(), pa.int8(), pa.int64(), pa.bool_(), pa.binary(),
             pa.timestamp("ns"), pa.decimal128(38, 9), pa.large_string())  # fmt: skip
    kind = kinds[draw.integers(len(kinds))]
    if draw.random() < 0.2:
        plain = column.combine_chunks()
        return plain if pa.types.is_dictionary(plain.type) else plain.dictionary_encode()
    if draw.random() < 0.3:
        return pa.array([[value] for value in column.to_pylist()])
    return column.cast(kind)


def _other_notes(table: pa.Table, notes: dict[bytes, bytes], draw: Draw) -> pa.Table:
    """Return a table whose notes, which are JSON, are of another shape."""
    name = list(notes)[draw.integers(len(notes))]
    if draw.random() < 0.2:
        del notes[name]
        return table.replace_schema_metadata(notes)
    try:
        notes[name] = json.dumps(odd_json(json.loads(notes[name]), draw)).encode()
    except ValueError:
        notes[name] = b"\xff"
    return table.replace_schema_metadata(notes)


def odd_text(content: bytes, draw: Draw) -> bytes:
    """Return the content of a text file with odd lines, fields and bytes."""
    lines, kind = content.split(b"\n"), draw.integers(6)
    at = int(draw.integers(len(lines)))
    odd = str(HOSTILE[draw.integers(len(HOSTILE))]).encode(errors="surrogatepass")
    if kind == 0:
        return odd
    if kind == 1:
        lines[at] = odd
    elif kind == 2:
        lines.insert(at, odd)
    elif kind == 3:
        del lines[at]
    elif kind == 4:
        lines[at] += b"\xff\xfe\x80"
    else:
        fields = lines[at].split(b",")
        fields[draw.integers(len(fields))] = odd
        lines[at] = b",".join(fields)
    return b"\n".join(lines)


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


@contextlib.contextmanager
def under_its_id(path: Path) -> Iterator[str]:
    """Have a run's folder under the id of its record, if that has one; yield the name it has."""
    target = path.parent
    with contextlib.suppress(LookupError, TypeError, ValueError, RecursionError):
        target = target.with_name(run_of(unsealed_json(path.read_bytes())))
    if target.exists():
        yield path.parent.name
        return
    path.parent.rename(target)
    try:
        yield target.name
    finally:
        if target.exists():
            target.rename(path.parent)


def _sealed_values(values: Any) -> bytes:
    """Return plain values with a seal; of a list, which can have none, as it is."""
    if not isinstance(values, dict):
        return json.dumps(values).encode()
    return sealed_json(values).encode()


def _open_json(path: Path, draw: Draw) -> bytes:
    return json.dumps(odd_json(json.loads(path.read_bytes()), draw)).encode()


def _lines_file(path: Path, draw: Draw) -> bytes:
    lines = path.read_bytes().splitlines(keepends=True)
    at = int(draw.integers(len(lines)))
    lines[at] = _sealed_values(odd_json(unsealed_json(lines[at]), draw))
    return b"".join(lines)


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

    whole: Path | None = None  # what it is a copy of

    def restore(self) -> None:
        """Put back what a command removed, as collecting garbage may."""
        if self.whole is None:
            return
        for path in self.whole.rglob("*"):
            own = self.root / path.relative_to(self.whole)
            if path.is_file() and not own.exists():
                own.parent.mkdir(exist_ok=True, parents=True)
                shutil.copy2(path, own)

    @property
    def runs(self) -> list[str]:
        """The ids of the runs that it began with."""
        return Place(self.whole).runs if self.whole else super().runs

    def make(self) -> None:
        """Make everything once."""
        for words in RUNS:
            carry_out(configuration(*SHARED, *words, f"results={self.results}"))
        draw = np.random.default_rng(0)
        frame = pd.DataFrame(
            {"y": draw.integers(0, 2, 200), "s": draw.random(200), "sex": list("fm") * 100}
        )
        frame.to_csv(self.root / "rows.csv", index=False)
        frame.drop(columns="y").to_csv(self.root / "unlabelled.csv", index=False)
        asked = ("target=y", "score=s", "group=sex")
        study = self.results / "tuning" / "0123456789ab"
        begin_study(study, {"learner.C": "interval(1,2)"}, again=True)
        trial = {"values": {"learner.C": 1.5}, "objectives": [0.1], "folds": 2}
        for _ in range(3):
            add_trial(study, sealed_json({**trial, "stopped": False, "seconds": 0.1, "error": ""}))
        sweep = self.results / "sweeps" / "2026-01-01"
        sweep.mkdir(parents=True)
        outcomes = [
            {"job": "method=baseline", "status": "finished", "run": run, "message": ""}
            for run in self.runs
        ]
        (sweep / "outcomes.json").write_text(json.dumps(outcomes))
        (sweep / "sweep.json").write_text(json.dumps({"name": "method=baseline"}))
        note = {
            "place": {"a": "b"},
            "stamp": [1],
            "runs": {self.runs[0]: ["a", "b", "c"]},
        }
        (self.results / NOTE).write_text(sealed_json(note))
        figures = self.results / "runs" / self.runs[0] / "figures"
        figures.mkdir(exist_ok=True)
        (figures / DRAWN).write_text(sealed_json({"files": {"a.png": "0" * 64}}))
        for command in (
            ["store", "pack", "out=pack.zip", "people=true"],
            ["label", "next", "unlabelled.csv", "state=label.json", "score=s", "group=sex"],
            ["label", "ask", "state=label.json", "1=1", "2=0"],
            ["watch", "rows.csv", *asked, "state=watch.json"],
        ):
            status, said = carried_out(command, self.root)
            if status not in (0, 1):
                raise RuntimeError(f"{command}: {said}")
        shutil.rmtree(self.results / "report", ignore_errors=True)

    def of(self, path: Path) -> str:
        """Return the id of the run whose folder a file lies in; the first one's of any other."""
        parts = path.relative_to(self.root).parts
        return parts[2] if parts[:2] == ("results", "runs") else self.runs[0]


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


@dataclass(frozen=True)
class Kind:
    """A kind of record.

    Attributes
    ----------
    pattern : where one is. share : of all records, how many are of this kind.
    make : returns one of another shape.
    cheap, costly : commands that read it; RUN is its run's id, A and B are two runs.
    """

    name: str
    pattern: str
    share: int
    make: Make
    cheap: tuple[str, ...] = ()
    costly: tuple[str, ...] = ()


def _run(place: Place, run: str) -> Run:
    return Catalogue(place.results).one(run)


LS, SHOW, TABLE = "store ls", "store show RUN", "table RUN"
OF_RUNS = (
    "report", "choose dataset=simulated", "compare A B", "tradeoff simulated",
    "table all out=t.csv", "table all out=t.tex", "table all out=t.md",
    "store verify RUN cells=0",
    "store pack out=made people=true", "store export RUN out.csv people=true", "audit RUN",
    "store gc dry_run=true",
    "store gc hours=0", "leaderboard",
)  # fmt: skip
_USED = ("audit RUN", "compare A B", "choose dataset=simulated", "report")
_ROWS = ("audit RUN", "compare A B", "store pack out=made", "report")
_EXPORT, _OF_PEOPLE = ("store export RUN out.csv people=true",), "store pack out=made people=true"
_SYNCED = (*OF_RUNS, "sync uri=sqlite:///m.db")
_LABELS = ("label report state=label.json", "label ask state=label.json 3=1")
# How the library reads a kind of record, besides what commands do.
READ: Mapping[str, tuple[Read, ...]] = {
    LAST: (
        lambda at, run: [each.label() for each in (Catalogue(at.results),)],
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
    "list of figures": (lambda at, run: damaged_figures(_run(at, run)),),
    "outcomes of a sweep": (lambda at, run: read_sweeps(at.results),),
    "note of MLflow": (lambda at, run: read_note(at.results, {"a": "b"}, (1,)),),
    "study": (
        lambda at, run: begin_study(_study(at), {"learner.C": "interval(1,2)"}, again=False),
    ),
    "trials": (lambda at, run: stored_trials(_study(at), [_SEARCHED]),),
    "pack": (lambda at, run: unpack(at.root / "pack.zip", at.root / "made"),),
    "labelling state": (lambda at, run: StateFile(at.root / "label.json").read(),),
    "watch state": (lambda at, run: WatchFile(at.root / "watch.json").read(),),
}
RUN_FILE, SPLITS, CELLS = "results/runs/*/", "results/splits/*.parquet", "results/cells/*/*.parquet"
KINDS = (
    Kind(LAST, RUN_FILE + LAST, 30, _record_file, (LS, LS, SHOW, TABLE, "table all"), _SYNCED),
    Kind("config.yaml", RUN_FILE + "config.yaml", 4, _text_file, (SHOW,), OF_RUNS[:1]),
    Kind("cells.txt", RUN_FILE + "cells.txt", 4, _text_file, (SHOW,), OF_RUNS[7:]),
    Kind(
        "summary.csv", RUN_FILE + "summary.csv", 8, _text_file, (SHOW, TABLE, "table all"), OF_RUNS
    ),
    Kind("metrics.parquet", RUN_FILE + "metrics.parquet", 10, _table_file, (SHOW, TABLE), _SYNCED),
    Kind(
        "predictions.parquet",
        RUN_FILE + "predictions.parquet",
        6,
        _table_file,
        _EXPORT,
        (*_USED, "store pack out=made"),
    ),
    Kind("rows of a split", SPLITS, 5, _table_file, _EXPORT, _ROWS),
    Kind("people", "results/data/*.parquet", 5, _table_file, _EXPORT, (*_USED, _OF_PEOPLE)),
    Kind("cell", CELLS, 4, _table_file, (), ("store verify RUN", _OF_PEOPLE)),
    Kind("index.json", "results/index.json", 5, _json_file, (LS,), ("report", "table all")),
    Kind("list of figures", f"{RUN_FILE}figures/{DRAWN}", 2, _json_file, (), ("report",)),
    Kind("outcomes of a sweep", "results/sweeps/*/*.json", 4, _open_json, (), ("report",)),
    Kind("note of MLflow", f"results/{NOTE}", 2, _json_file),
    Kind("study", "results/tuning/*/study.json", 2, _json_file),
    Kind("trials", "results/tuning/*/trials.jsonl", 4, _lines_file),
    Kind(
        "pack",
        "pack.zip",
        6,
        _pack_file,
        ("store unpack pack.zip out=made",),
        ("store ls results=pack.zip",),
    ),
    Kind("labelling state", "label.json", 5, _json_file, ("label next state=label.json",), _LABELS),
    Kind("watch state", "watch.json", 5, _json_file, (), ("watch state=watch.json",)),
)


def _study(place: Place) -> Path:
    (folder,) = (place.results / "tuning").iterdir()
    return folder


class Round:
    """One record of another shape, and what came of reading it."""

    def __init__(self, place: Place, seed: int, costly: float) -> None:
        self.place, self.seed, self.draw = place, seed, np.random.default_rng(seed)
        shares = np.array([kind.share for kind in KINDS])
        self.kind = KINDS[self.draw.choice(len(KINDS), p=shares / shares.sum())]
        self.costly, self.counts, self.wrong = costly, Counter(number=1), list[str]()

    def carry_out(self) -> None:
        """Put the record in its place, read it, and put back what was there."""
        kind, place = self.kind, self.place
        if kind.name == "index.json":
            path, before = place.results / catalogue.INDEX, None
            content = _write_index(place, self.draw)
        else:
            paths = sorted(place.root.glob(kind.pattern))
            path = paths[self.draw.integers(len(paths))]
            before = path.read_bytes()
            content = self._made(path)
        with replaced(place, path, content):
            if path.name == LAST and self.draw.random() < 0.5:
                with under_its_id(path) as run:
                    self._read(run, was=path.parent.name)
            else:
                self._read(place.of(path))
        if before is None:
            path.unlink(missing_ok=True)
        if self.counts["of them costly"]:
            place.restore()

    def _made(self, path: Path) -> bytes:
        """Return a record of another shape; not every drawn one can be written."""
        while True:
            with contextlib.suppress(pa.ArrowException, ValueError, TypeError, OverflowError):
                return self.kind.make(path, self.draw)

    def _read(self, run: str, was: str = "") -> None:
        """Have a run's record read, which may lie under another id than it was written with."""
        for read in READ.get(self.kind.name, ()):
            self._tried(f"{self.kind.name}", partial(read, self.place, run))
        words: list[str] = []
        if self.kind.cheap and self.draw.random() < CHEAP:
            words = [self.kind.cheap[self.draw.integers(len(self.kind.cheap))]]
        if self.kind.costly and self.draw.random() < self.costly:
            words.append(self.kind.costly[self.draw.integers(len(self.kind.costly))])
            self.counts["of them costly"] += 1
        for line in words:
            self.counts["commands"] += 1
            first, second = (run if name == was else name for name in self.place.runs[:2])
            named = {"RUN": run, "A": first, "B": second}
            command = [named.get(word, word) for word in line.split()]
            self._tried(line, partial(self._given, command))

    def _given(self, words: list[str]) -> None:
        """Give a command, and look at what it printed and where it wrote."""
        status, said = carried_out(words, self.place.root)
        if status not in (0, 1, 2):
            self._wrong(" ".join(words), f"status {status}")
        if signs := sorted(obeyed(said)):
            self._wrong(" ".join(words), f"prints {signs!r}")
        if status == 2:
            self.counts["refused"] = 1
            errors = [line for line in said.splitlines() if line.startswith("error: ")]
            if len(errors) != 1 or len(errors[0]) > LONGEST:
                self._wrong(" ".join(words), f"refuses by {said[-300:]!r}")
        if outside(self.place) != OUTSIDE:
            self._wrong(" ".join(words), "wrote outside")

    def _tried(self, name: str, call: Callable[[], object]) -> None:
        """Call what must answer or refuse, in time."""
        signal.alarm(SECONDS)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                call()
        except (UserError, CorruptCellError):
            self.counts["refused"] = 1
        except TooLongError:
            self._wrong(name, f"took more than {SECONDS} s")
        except BaseException as error:  # an exit is as wrong as a traceback here
            where = traceback.extract_tb(error.__traceback__)
            ours = [each for each in where if "/fairbench/" in each.filename] or list(where)
            at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
            self._wrong(name, f"{type(error).__name__} at {at}: {str(error)[:200]}")
        finally:
            signal.alarm(0)

    def _wrong(self, name: str, sentence: str) -> None:
        self.counts["wrong"] = 1
        self.wrong.append(f"record {self.seed}, {self.kind.name}, {name}: {sentence}")


LONGEST = 3000  # signs of a line that refuses
CHEAP = 0.3  # of records, how many a command reads beside the readers of the library
OUTSIDE = ("kept",)


def outside(place: Place) -> tuple[str, ...]:
    """Return the names beside the folder: who follows ``../`` writes there."""
    names = {path.name for path in place.root.parent.iterdir()} - {place.root.name}
    return tuple(sorted(names))


@contextlib.contextmanager
def replaced(place: Place, path: Path, content: bytes) -> Iterator[None]:
    """Have a record replaced, the checksums of it with it; put back all that a command changed."""
    before = {path: path.read_bytes()}
    listing = path.with_name(LAST) if path.parent.parent.name == "runs" else path
    if listing != path and listing.is_file():
        before[listing] = listing.read_bytes()
    path.write_bytes(content)
    if listing in before and listing != path:
        known = unsealed_json(before[listing])
        known["files"][path.name] = hashlib.sha256(content).hexdigest()
        listing.write_text(sealed_json(known))
    try:
        yield
    finally:
        for changed, was in before.items():
            changed.write_bytes(was)
        for made in MADE:
            remove(place.root / made)
        for aside in place.root.glob("results/*/**/*.damaged-*"):
            remove(aside)
        for function in REMEMBERED:
            function.cache_clear()


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# What the commands make in the folder they are given in.
MADE = ["made", "results/report", "results/locks", "out.csv", "t.csv", "t.tex", "t.md", "m.db"]
REMEMBERED: tuple[Any, ...] = (tables.read_people, tables._rows)


def tried(
    whole: Place, number: int, costly: float, worker: int, workers: int
) -> Counter[tuple[str, str]]:
    """Try every so many-th record in a copy of the folder; count what came of each kind."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, too_long)
    os.environ["FAIRBENCH_MAX_MEMORY"] = "2"
    total = Counter[tuple[str, str]]()
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "kept").mkdir()
        place = Place(Path(shutil.copytree(whole.root, Path(name) / "place")), whole.root)
        for seed in range(worker, number, workers):
            one = Round(place, seed, costly)
            one.carry_out()
            total.update({(one.kind.name, what): n for what, n in one.counts.items()})
            for sentence in one.wrong:
                print(sentence.encode(errors="backslashreplace").decode(), flush=True)
    return total


def main(number: int = 100_000, costly: int = 100) -> bool:
    """Print what came of so many records, a costly command after one in `costly`."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        whole = Place(Path(name) / "place")
        whole.root.mkdir()
        with contextlib.redirect_stderr(io.StringIO()):
            whole.make()
        total = sum(in_forks(partial(tried, whole, number, 1 / costly)), Counter[tuple[str, str]]())
    rows: list[list[Any]] = [
        [kind.name, *(total[kind.name, column] for column in HEADER[1:])] for kind in KINDS
    ]
    for row in rows:
        row[3] = row[1] - row[2]
    rows.append(["all", *(sum(row[i] for row in rows) for i in range(1, len(HEADER)))])
    show(f"{number} records of odd shape, {time.monotonic() - started:.0f} s", HEADER, rows)
    return not rows[-1][-1]
