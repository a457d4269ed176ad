"""Hostile tables: what people's files hold by accident, and what somebody could put there.

Each case writes a file of predictions with a column of groups, and says what is expected of it: the
rows of each group, as they were written, or a part of the one sentence that refuses it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import os
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.faults.commands import LISTED, Total, ended_well, obeyed, warm
from benchmarks.measure import ROOT
from fairbench.core.text import csv_text, read_csv, visible
from fairbench.evaluation.table import VALUE, values_of
from fairbench.results.runs import Run

HEADER = ("group", "x", "label", "score", "prediction")
ROWS = 60  # of most tables: each label of a few stands in at least ten
HACK = "window.hacked=1;document.title='hacked'"
Row = list[Any]


@dataclass(frozen=True)
class Case:
    """A table, and what is expected of it.

    Attributes
    ----------
    write : writes the file into a folder, and returns its path.
    labels : the group of each row as it is in the file, empty where there is none; None where
        every verb refuses the file.
    refused : verb (``run``, ``audit``) -> a part of the sentence; ``""`` for both.
    group : the column of groups.
    environment : variables for both.
    score : of every row, where it is not that of :func:`rows_of`.
    """

    name: str
    write: Callable[[Path], Path]
    labels: Sequence[str] | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    group: str = "group"
    environment: Mapping[str, str] = field(default_factory=dict)
    score: float | None = None

    def refusal(self, verb: str) -> str | None:
        """Return what a verb says where it refuses the file, None where it takes it."""
        return self.refused.get(verb, self.refused.get(""))

    @property
    def groups(self) -> Counter[str]:
        """The rows of each group that is expected; those without a label are one."""
        return Counter(label or "unknown" for label in self.labels or ())


def rows_of(labels: Sequence[str]) -> list[Row]:
    """Return a row for each label; scores and labels are the same in every table of a size."""
    draw = np.random.default_rng(len(labels))
    target = draw.permutation(np.arange(len(labels)) % 2)
    score = np.clip(0.3 * target + 0.7 * draw.random(len(labels)), 0.001, 0.999).round(3)
    x = draw.normal(size=len(labels)).round(3)
    return [
        [label, float(x[i]), int(target[i]), float(score[i]), int(score[i] > 0.5)]
        for i, label in enumerate(labels)
    ]


def delimited(
    rows: Sequence[Row], header: Sequence[str] = HEADER, *, ends: str = "\r\n", sign: str = ","
) -> str:
    """Return a table as delimited text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=ends, delimiter=sign)
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _bytes(name: str, content: bytes, folder: Path) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _parquet(columns: Mapping[str, Any], folder: Path) -> Path:
    path = folder / "table.parquet"
    pq.write_table(pa.table(dict(columns)), path)
    return path


def labelled(name: str, *labels: str, rows: int = ROWS, **more: Any) -> Case:
    """Return a case of these labels in turn."""
    each = [labels[i % len(labels)] for i in range(rows)]
    content = delimited(rows_of(each)).encode()
    return Case(name, partial(_bytes, "table.csv", content), each, **more)


Refused = str | Mapping[str, str]


def text(
    name: str, content: bytes, refused: Refused = "", file: str = "table.csv", **more: Any
) -> Case:
    """Return a case of a file with this content; it has the labels a and b if it is taken."""
    return Case(name, partial(_bytes, file, content), *_expected(refused), **more)


def _expected(
    refused: Refused, labels: Sequence[str] | None = None
) -> tuple[Sequence[str] | None, Mapping[str, str]]:
    if isinstance(refused, str):
        refused = {"": refused} if refused else {}
    every = "" in refused or {"run", "audit"} <= set(refused)
    return (None if every else labels or _AB), refused


def headed(name: str, *added: str, refused: Refused = "", **more: Any) -> Case:
    """Return a case of further columns of these names, with numbers."""
    wide = [[*row, *(i + j for j in range(len(added)))] for i, row in enumerate(rows_of(_AB))]
    return text(name, delimited(wide, [*HEADER, *added]).encode(), refused, **more)


def columns(
    name: str, group: Any, refused: Refused = "", labels: Sequence[str] | None = None, **added: Any
) -> Case:
    """Return a case of a Parquet file with these groups."""

    def write(folder: Path) -> Path:
        values = group() if callable(group) else group
        return _parquet({**_COLUMNS, "group": values, **added}, folder)

    return Case(name, write, *_expected(refused, labels))


_AB = tuple("ab"[i % 2] for i in range(ROWS))
_STANDARD = delimited(rows_of(_AB))
_PLAIN = _STANDARD.encode()
_COLUMNS: dict[str, Any] = {
    name: [row[i] for row in rows_of(_AB)] for i, name in enumerate(HEADER) if i
}
_LONG = "long " * 2000


def _changed(column: str, value: Any, at: int | None = None) -> bytes:
    """Return the plain table with another value in one row, or in all."""
    rows, place = rows_of(_AB), HEADER.index(column)
    for row in rows if at is None else [rows[at]]:
        row[place] = value
    return delimited(rows).encode()


def _in_place(make: Callable[[Path], object]) -> Callable[[Path], Path]:
    """Return what makes something else than a file in its place."""

    def write(folder: Path) -> Path:
        make(path := folder / "table.csv")
        return path

    return write


def _declared(folder: Path) -> Path:
    """Write a small Parquet file whose columns unfold to gigabytes."""
    zeros = pa.DictionaryArray.from_arrays(np.zeros(5_000_000, np.int32), ["x" * 100])
    return _parquet(dict.fromkeys(HEADER, zeros), folder)


def _duplicates(folder: Path) -> Path:
    arrays = list(map(pa.array, (_AB, _AB[::-1], *_COLUMNS.values())))
    path = folder / "table.parquet"
    pq.write_table(pa.Table.from_arrays(arrays, ["group", "group", *_COLUMNS]), path)
    return path


def _of_kind(kind: str) -> Iterator[Case]:
    """Yield the cases of a kind that `tables.yaml` has."""
    for name, more in _DECLARED[kind].items():
        if "headers" in more:
            yield headed(name, *more.pop("headers"), **more)
        elif "column" in more:
            changed = _changed(more.pop("column"), more.pop("value"), more.pop("row", None))
            yield text(name, changed, **more)
        elif "groups" in more:
            groups, labels = ([*islice(cycle(more.pop(each, _AB)), ROWS)] for each in _IN_TURN)
            yield columns(name, groups, labels=labels, **more)
        else:
            yield labelled(name, *more.pop("labels"), **more)


_IN_TURN = ("groups", "labels")
_DECLARED = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
LABELS = (
    *(
        labelled(name, *(label.replace("HACK", HACK) for label in labels))
        for name, labels in LISTED["labels"].items()
    ),
    labelled("huge labels", _LONG + "a", _LONG + "b"),
    text("a byte of value 0", _changed("group", "a\0"), "holds a byte of value 0"),
    text("a byte of value 0 at an end", _changed("group", "a\0", 3), "holds a byte of value 0"),
)
HEADERS = (
    *_of_kind("headers"),
    headed("a header of 200,000 signs", "h" * 200_000, refused="the header cannot be read"),
    headed("long headers", "h" * 10_000, "i" * 10_000),
    headed("2,000 columns", *(f"c{i}" for i in range(2000))),
    text("a group called score", delimited(rows_of(_AB), ["n", "x", "label", "score", "prediction"])
         .encode(), group="n"),
    *(text(f"a group called {name}", delimited(rows_of(_AB), [name, *HEADER[1:]]).encode(),
           group=name) for name in ("[g] <i>", "target", "row", "status")),
)  # fmt: skip
SIZES = (
    *_of_kind("sizes"),
    text("blank lines alone", b"\n\r\n\n", "no header line"),
    labelled("every row a group", *(f"p{i}" for i in range(ROWS)),
             refused={"audit": "holds 60 different values"}),
    labelled("300 groups", *(f"g{i:03}" for i in range(300)), rows=900),
    text("a number of 400 digits", _changed("x", "9" * 400, 7), {"run": "is no number"}),
)  # fmt: skip
_ONE_GB = {"FAIRBENCH_MAX_MEMORY": "1"}
ENCODINGS = (
    *_of_kind("types"),
    text("bytes that are no text", _PLAIN.replace(b"a,", b"\xff\x81,", 1), "(line 2, byte"),
    text("bytes of a program", _PLAIN.replace(b"a,", b"\xff\x01,", 1), "bytes that no text has"),
    labelled("UTF-7", "+ADw-script+AD4-", "a"),
    text("lines end in LF", delimited(rows_of(_AB), ends="\n").encode()),
    text("ends of lines of each kind",
         _PLAIN.replace(b"\r\n", b"\r", 9).replace(b"\r\n", b"\n", 9)),
    text("tabs, in a .tsv", delimited(rows_of(_AB), sign="\t").encode(), file="table.tsv"),
    text("a row too short", _PLAIN + b"a,1\r\n", "row 61 has 2 fields"),
    text("a row too long", _PLAIN + b"a,1,1,0.5,1,2\r\n", "row 61 has 6 fields"),
    text("a quotation mark that stays open", _PLAIN.replace(b"a,", b'"a,', 1),
         "row 1 has 1 fields"),
    text("quotation marks around labels", _PLAIN.replace(b"a,", b'"a",')),
    text("a bomb of gzip", gzip.compress(bytes(50_000_000)), "holds a byte of value 0"),
    text("Parquet that is text", _PLAIN, file="table.parquet"),
    text("text that is Parquet", b"PAR1\x15\x04" + bytes(9), "not a table in Parquet"),
    text("a million columns", b"a," * 1_000_000 + b"b\n", "are allowed", environment=_ONE_GB),
    Case("a Parquet file that unfolds", _declared, refused={"": "are allowed"},
         environment=_ONE_GB),
    Case("two columns of one name", _duplicates, refused={"": "2 columns are named 'group'"}),
    columns("groups that are bytes", [b"\xff"] * ROWS, "has no text in each row"),
    columns("a dictionary", lambda: pa.array(_AB).dictionary_encode()),
    columns("decimals", [Decimal(each) for each in ["1.0", "2.50"] * 30],
            labels=["1.00", "2.50"] * 30),
    columns("dates among features", list(_AB),
            when=[date(2020, 1, 1 + i % 28) for i in range(ROWS)],
            refused={"run": "dates, names and free texts are no categories"}),
    columns("times among features", list(_AB),
            when=[datetime(2020, 1, 1 + i % 28) for i in range(ROWS)],
            refused={"run": "dates, names and free texts are no categories"}),
)  # fmt: skip
FILES = (
    Case("a folder", _in_place(Path.mkdir), refused={"run": "no file", "audit": "is not a file"}),
    Case("a pipe", _in_place(os.mkfifo), refused={"run": "no file", "audit": "is not a file"}),
    Case("a link to itself", _in_place(lambda path: path.symlink_to(path)),
         refused={"run": "no file", "audit": "is not a file"}),
    Case("a name that is too long", lambda folder: folder / f"{'n' * 300}.csv",
         refused={"": "name too long"}),
    text("a name with signs", _PLAIN, file="[red] <b>\x1b[31m $x$.csv"),
    text("a name that is no text", _PLAIN, {"run": "the name of the file is no text"},
         file=os.fsdecode(b"\xff.csv")),
    text("a name as an option", _PLAIN, file="a=b.csv"),
)  # fmt: skip
CASES = (*LABELS, *HEADERS, *SIZES, *ENCODINGS, *FILES)


# Hostile tables through the commands: ``python -m benchmarks.faults tables``.
#
# Each table of :mod:`benchmarks.faults.tables` is given to ``run``, ``store export``, ``audit``
# and ``fairbench.evaluate``. It is refused in one line, or the groups that come out have the rows
# that were written: all of them, each in its own group, with the rates that counting them gives.

RUN = ("learner=logistic_regression", "method=baseline", "split=kfold", "split.n_folds=2",
       "tracking=none", "figures=false", "results=../results")  # fmt: skip
LONGEST = 3000  # signs of a sentence that refuses
Done = CompletedProcess[str]


def main() -> bool:
    """Try all tables; print what came of them, and return whether nothing was wrong."""
    total = Total()
    with tempfile.TemporaryDirectory() as name:
        for result in tried(CASES, Path(name)):
            verbs = [verb for verb, taken in result.taken.items() if taken]
            total.update(["tables", *(f"taken by {verb}" for verb in verbs)])
            total["wrong"] += bool(result.wrong)
            for sentence in result.wrong:
                print(f"{result.case.name}: {visible(sentence)}", flush=True)
    return ended_well("Hostile tables", total)


def start(words: list[str], cwd: Path, environment: Mapping[str, str]) -> Done:
    """Run a command in a fork of a process that has imported what most commands need."""
    done: Done = warm().run(words, cwd=cwd, timeout=300, environment=dict(environment))
    return done


def tried(cases: Sequence[Case], root: Path) -> Iterator[Trial]:
    """Give each table to every verb, in a folder of its own, and yield what came of it."""
    for number, case in enumerate(cases):
        folder = root / f"case{number}"
        folder.mkdir()
        trial = Trial(case, folder, case.write(folder).name)
        trial.carry_out()
        yield trial


@dataclass
class Trial:
    """One table, given to every verb: by which it was taken, and what was wrong."""

    case: Case
    folder: Path
    file: str
    taken: dict[str, bool] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def carry_out(self) -> None:
        """Give it to every verb, and note what came of it."""
        words = [f"dataset.path={_quoted(self.file)}", "dataset.target=label", *RUN]
        words.append(f"dataset.sensitive={json.dumps([self.case.group])}")
        if done := self._verb("run", [str(ROOT / "run.py"), "dataset=table", *words]):
            outcome = re.search(r"results/runs/([0-9a-f]+)", " ".join(done.stdout.split()))
            if outcome:
                self._exported(outcome[1])
            else:
                self.wrong.append("run: no run is named")
        group = '"{}"'.format(self.case.group.replace('"', '""'))
        words = [f"path={self.file}", "target=label", "score=score", f"group=[{group}]", "out=out"]
        if self._verb("audit", ["-m", "fairbench", "audit", *words]):
            self._audited()
        if self.case.labels and any(self.taken.values()):
            self._evaluated()

    def _verb(self, verb: str, words: list[str]) -> Done | None:
        """Give a command; return what it printed if it took the table."""
        done = start(words, self.folder, self.case.environment)
        said, refusal = done.stdout + done.stderr, self.case.refusal(verb)
        if "Traceback" in said:
            self.wrong.append(f"{verb}: {said[said.index('Traceback') :].strip().splitlines()[-1]}")
        if signs := obeyed(said):
            self.wrong.append(f"{verb}: prints {sorted(signs)!r}")
        self.taken[verb] = done.returncode == 0
        lines = done.stderr.splitlines()
        if refusal is None:
            if done.returncode:
                self.wrong.append(f"{verb}: refuses: {done.stderr[-300:]}")
        elif done.returncode != 2 or len(lines) != 1 or not lines[0].startswith("error: "):
            self.wrong.append(f"{verb}: status {done.returncode}, {done.stderr[-300:]!r}")
        elif refusal not in lines[0] or len(lines[0]) > LONGEST:
            self.wrong.append(f"{verb}: says {lines[0][:300]!r}, not {refusal!r}")
        return None if done.returncode else done

    def _exported(self, run: str) -> None:
        """Compare a run's predictions and metrics with the rows that were written."""
        labels = [label or "unknown" for label in self.case.labels or ()]
        for suffix, written in (("csv", _guarded), ("parquet", str)):
            words = ["-m", "fairbench", "store", "export", run, f"out.{suffix}", "people=true"]
            if not self._verb("export", [*words, "results=../results"]):
                return
            exported = _read(self.folder / f"out.{suffix}")
            if sorted(int(row["row"]) for row in exported) != list(range(len(labels))):
                self.wrong.append(f"export: {len(exported)} rows of {len(labels)}")
                return
            shown = {label: written(label) for label in labels}
            column = list(exported[0])[-1]
            for row in exported:
                if row[column] != shown[labels[int(row["row"])]]:
                    self.wrong.append(f"export to {suffix}: row {row['row']} is {row[column]!r}")
                    return
        chosen = (int(row["row"]) for row in exported if float(row["prediction"]) == 1)
        metrics = Run(self.folder.parent / "results" / "runs" / run).all_metrics()
        self._counted("run", metrics, Counter(labels[row] for row in chosen))

    def _audited(self) -> None:
        """Compare an audit's JSON with the rows that were written."""
        data = json.loads((self.folder / "out" / "audit.json").read_text(encoding="utf-8"))
        if "sizes" in data:
            metrics = pd.DataFrame(data["metrics"])
            self._sized("audit", {size["group"]: size["rows"] for size in data["sizes"]})
        else:  # so many groups are estimated together
            names = {"rate": "metric", "raw": "value", "rows": "n"}
            groups = pd.DataFrame(data["groups"]).rename(columns=names)
            metrics = groups.assign(statistic=VALUE, attribute=self.case.group)
        # How many rows of each group have a score above one half.
        given = self.case.score
        rows = rows_of(self.case.labels or ())
        chosen = (row for row in rows if (row[3] if given is None else given) > 0.5)
        self._counted("audit", metrics, Counter(row[0] or "unknown" for row in chosen))

    def _evaluated(self) -> None:
        """Compare what the library makes of the same rows."""
        import fairbench

        rows = rows_of(self.case.labels or ())
        labels, _, target, score, decision = map(list, zip(*rows, strict=True))
        groups = {self.case.group: labels}
        with warnings.catch_warnings():  # on labels that look alike
            warnings.simplefilter("ignore")
            table = fairbench.evaluate(target, decision, score=score, sensitive_features=groups)
        chosen = Counter(row[0] or "unknown" for row in rows if row[4])
        self._counted("evaluate", table, chosen)

    def _counted(self, verb: str, metrics: pd.DataFrame, selected: Counter[str]) -> None:
        """Compare rows and rates of each group with what counting gives."""
        metrics = values_of(metrics)
        mine = metrics[(metrics["metric"] == "selection_rate") & (metrics["group"] != "")]
        mine = mine[mine["attribute"] == self.case.group]
        self._sized(verb, mine.groupby("group", observed=True)["n"].sum().to_dict())
        chosen = (mine["value"].fillna(0) * mine["n"]).groupby(mine["group"]).sum()
        for group, number in chosen.items():
            if not math.isclose(number, selected[str(group)], abs_tol=1e-6):
                self.wrong.append(f"{verb}: {number:g} of {group!r}, not {selected[str(group)]}")

    def _sized(self, verb: str, found: Mapping[str, int]) -> None:
        expected = self.case.groups
        names = {name for name in {*found, *expected} if found.get(name) != expected.get(name)}
        if names:
            pairs = {name: (found.get(name), expected.get(name)) for name in names}
            self.wrong.append(f"{verb}: rows found and expected: {pairs}"[:300])


def _read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of an exported file, of which CSV is all text."""
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _guarded(text: str) -> str:
    """Return a text as it is written into CSV, after a look at what a reader gets back."""
    written = csv_text(pd.DataFrame({"text": [text, "x"], "n": [0, 1]}))
    back = read_csv(io.BytesIO(written.encode()), ["text"])["text"].iloc[0]
    if back != text:
        raise AssertionError(f"{text!r} is read back as {back!r}")
    return next(csv.DictReader(io.StringIO(written, newline="")))["text"]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
