"""Files of few bytes that unfold to gigabytes: ``python -m benchmarks.faults bombs [PART]``.

Each is of a format that is read, and is given to the verbs that read it, which are allowed one GB.
A verb must end by itself: done, or refused in one line, in little time, and never with more memory
than that and what the interpreter and its packages take.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from openpyxl import Workbook
from pyarrow import parquet

from benchmarks.faults.commands import RUN, Place
from benchmarks.measure import ROOT
from benchmarks.stored import laid_out, pack_of
from fairbench.core.files import sealed, sealed_json, sha256, unsealed_json
from fairbench.core.memory import MEMORY

ALLOWED_GB, OTHERS_MB = 1, 300  # what is allowed, and what may come on top
MOST_S, GIVEN_UP_S = 10.0, 300.0  # CPU seconds that a verb may take; seconds until it is killed
ROWS, LONG = 12_000_000, 1_000_000  # rows of a table that is far too long; letters of a text
TABLE = ("target=label", "score=score", "group=[group]")
Bomb = tuple[str, Callable[[Path], Path]]  # its name, and what writes it into a folder


@dataclass(frozen=True)
class Ended:
    """How a command ended: its status, its largest memory in MB, its CPU seconds, its words."""

    status: int
    peak: float
    seconds: float
    said: str

    @property
    def wrong(self) -> str:
        """What should not have been."""
        if "Traceback" in self.said:
            return "a traceback"
        if self.status not in (0, 1, 2):
            return f"status {self.status}"
        if self.peak > 1024 * ALLOWED_GB + OTHERS_MB:
            return "too much memory"
        return "too long" if self.seconds > MOST_S else ""


def given(folder: Path, *words: str) -> Ended:
    """Give a command of fairbench in a folder."""
    with tempfile.TemporaryFile("w+") as output:
        command = subprocess.Popen(
            [sys.executable, "-m", "fairbench", *words], cwd=folder, stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT), MEMORY: str(ALLOWED_GB)},
        )  # fmt: skip
        end, peak = time.monotonic() + GIVEN_UP_S, 0.0
        while not (ended := os.wait4(command.pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                command.kill()
            peak = max(peak, _peak(command.pid))
            time.sleep(0.01)
        _, status, usage = ended
        command.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read()
    seconds = usage.ru_utime + usage.ru_stime
    return Ended(command.returncode, peak, seconds, said)


def _peak(process: int) -> float:
    """Return the most memory, in MB, that a process took so far, once it is a program of its own.

    What the system says of a child that has ended counts the memory of who started it.
    """
    with suppress(OSError):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    return 0.0


def main(part: str = "") -> bool:
    """Print how each verb ended, and return whether all did as they must.

    Parameters
    ----------
    part : of what the bombs are: table, results, pack or state; of all by default.
    """
    held = True
    kinds = {"table": _tables, "results": _results, "pack": _packs, "state": _states}
    for kind, cases in kinds.items():
        if part not in ("", kind):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name, place, words in cases(Path(folder)):
                ended = given(place, *words)
                held &= not ended.wrong
                last = (ended.said.strip().splitlines() or [""])[-1]
                verb = " ".join(words[:2] if words[0] in ("store", "label") else words[:1])
                end = ended.wrong or f"status {ended.status}"
                spent = f"{ended.peak:.0f} MB, {ended.seconds:.1f} s of CPU"
                print(f"{kind}: {name} | {verb}: {end}, {spent}: {last[:100]}", flush=True)
    return held


# Bombs by name, each with a folder and the words of a command to give in it.
Cases = Iterator[tuple[str, Path, tuple[str, ...]]]


def _tables(root: Path) -> Cases:
    for name, write in TABLES:
        with tempfile.TemporaryDirectory(dir=root) as folder:
            yield name, Path(folder), ("audit", f"path={write(Path(folder))}", *TABLE, "out=out")


def _results(root: Path) -> Cases:
    plain = Place(root / "plain")
    plain.root.mkdir()
    if (ended := given(plain.root, "run", *RUN, "tracking=none")).status:
        raise AssertionError(ended.said)
    run = plain.runs[0]
    verbs = (
        ("store", "ls"), ("store", "show", run), ("report",), ("store", "pack", "out=new.zip"),
        ("store", "verify", run, "cells=1"), ("store", "export", run, "out.csv", "people=true"),
        ("audit", run, "out=out"),
    )  # fmt: skip
    for name, damage in RESULTS:
        with plain.copied("results") as place:
            damage(place.results)
            yield from ((name, place.root, words) for words in verbs)


def _packs(root: Path) -> Cases:
    for name, entries in PACKS:
        (root / "pack.zip").write_bytes(pack_of(entries()))
        yield name, root, ("store", "unpack", "pack.zip", "out=new")
        shutil.rmtree(root / "new", ignore_errors=True)


def _states(root: Path) -> Cases:
    for name, text in STATES:
        (root / "state.json").write_text(text())
        for words in (("label", "report"), ("watch",)):
            yield name, root, (*words, "state=state.json")


def long_table(table: pa.Table, rows: int, *, told: int = 0, compression: str = "lz4") -> bytes:
    """Return a sealed Parquet file that repeats the first row of a table.

    Parameters
    ----------
    told : how many rows the footer says there are; as there are by default.
    """
    metadata = dict(table.schema.metadata or {})
    metadata[b"seal"] = b"fairbench-sha256:" + b"0" * 64
    part = rows // 12
    columns = [pa.repeat(column[0], part) for column in table.columns]
    schema = table.schema.with_metadata(metadata)
    repeated = pa.Table.from_arrays(columns, schema=schema)
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, schema, compression=compression) as writer:
        for _ in range(12):
            writer.write_table(repeated, row_group_size=part)
    content = sink.getvalue().to_pybytes()
    return sealed(_told(content, 12 * part, told) if told else content)


def _told(content: bytes, rows: int, told: int) -> bytes:
    """Return a Parquet file whose footer says another number of rows, in as many bytes."""
    before = _varint(2 * rows, 1)
    after = _varint(2 * told, len(before))
    at = content.index(before, len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    return content[:at] + after + content[at + len(before) :]


def _varint(number: int, length: int) -> bytes:
    """Return a number as Thrift writes it, in so many bytes at least."""
    signs: list[int] = []
    while number or len(signs) < length:
        signs.append(number & 127 | 128)
        number >>= 7
    return bytes([*signs[:-1], signs[-1] & 127])


def _table(repeats: int = 1, letters: int = 1) -> pa.Table:
    texts = pa.DictionaryArray.from_arrays(np.zeros(repeats, np.int32), ["a" * letters])
    return pa.table({"group": texts, "label": np.zeros(repeats), "score": np.zeros(repeats)})


def _csv(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def _packed_csv(name: str, opened: Callable[..., Any]) -> Bomb:
    def write(folder: Path) -> Path:
        with opened(folder / name, "wb") as file:
            file.write(b"group,label,score\n")
            for _ in range(50):
                file.write(b"a,0,0.5\n" * 500_000)
        return folder / name

    return name, write


def _zip(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "table.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", b"a,0,0.5\n" * 10_000_000)
    return folder / "table.zip"


def _book() -> dict[str, str]:
    """Return the parts of a workbook of one sheet, by name."""
    book, file = Workbook(), io.BytesIO()
    book.active["A1"] = "a text"
    book.save(file)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


_BOOK = _book()
_WORKBOOK = _BOOK["xl/workbook.xml"]
_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_TABLE = "".join(
    f'<row r="{row}">'
    + "".join(f'<c r="{column}{row}" t="str"><v>{cell}</v></c>' for column, cell in
              zip("ABC", cells, strict=True))
    + "</row>"
    for row, cells in enumerate([("group", "label", "score"), *[("ab"[i % 2], i % 3 % 2, i / 99)
                                                               for i in range(99)]], start=1)
)  # fmt: skip


def sheet(
    rows: str, *, start: str = "", above: str = "", below: str = "", **parts: str
) -> Callable[[Path], Path]:
    """Return what writes a workbook of one sheet, with more in the sheet and in other parts.

    Parameters
    ----------
    parts : the name of a part, such as ``styles`` or ``workbook``, and its content.
    """

    def write(folder: Path) -> Path:
        xml = f"{start}<worksheet {_MAIN}>{above}<sheetData>{rows}</sheetData>{below}</worksheet>"
        more = {f"xl/{name}.xml": text for name, text in parts.items()}
        with zipfile.ZipFile(folder / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in {**_BOOK, **more, "xl/worksheets/sheet1.xml": xml}.items():
                archive.writestr(name, text)
        return folder / "t.xlsx"

    return write


_RANGES = " ".join(f"A{2 * i + 1}" for i in range(100_000))
SHEETS: tuple[Bomb, ...] = (
    ("far cell", sheet('<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576">'
                        "<v>1</v></c></row>")),
    ("far cell alone", sheet('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')),
    ("wide rows", sheet('<row><c r="XFD1"><v>1</v></c></row>' * 50_000)),
    ("open cells", sheet("<row>" + "<c><f>" * 100_000 + "</row>")),
    ("merged", sheet(_TABLE, below="<mergeCells>"
                      + '<mergeCell ref="A200:C200"/>' * 40_000 + "</mergeCells>")),
    ("merged, open", sheet(_TABLE, below="<mergeCells>" + "<mergeCell " * 40_000)),
    ("dimension", sheet(_TABLE, above='<dimension ref="A1:XFD1048576"/>')),
    ("row numbers", sheet('<row r="' + "9" * 4301 + '"><c r="A1"><v>1</v></c></row>')),
    ("digits", sheet(_TABLE + '<row r="101"><c r="A101"><v>' + "9" * 4301 + "</v></c></row>")),
    ("cells in a row", lambda f: sheet("<row>" + "<c/>" * 6_000_000 + "</row>")(f)),
    ("elements in a cell", lambda f: sheet("<row><c>" + "<a>" * 12_000_000)(f)),
    ("validations", sheet(_TABLE, below=f'<dataValidations><dataValidation sqref="{_RANGES}"/>'
                           "</dataValidations>")),
    ("formats of cells", sheet(_TABLE, below=f'<conditionalFormatting sqref="{_RANGES}"/>')),
    ("views", sheet(_TABLE, above=f'<sheetViews><sheetView workbookViewId="0"><selection sqref="'
                     f'{_RANGES}"/></sheetView></sheetViews>')),
    ("styles", sheet(_TABLE, styles=f"<styleSheet {_MAIN}><cellXfs>" + "<xf/>" * 1_000_000
                      + "</cellXfs></styleSheet>")),
    ("a format", sheet(_TABLE, styles=f'<styleSheet {_MAIN}><numFmts><numFmt numFmtId="200" '
                        f'formatCode="{"[" * 300_000}"/></numFmts><cellXfs><xf numFmtId="200"/>'
                        "</cellXfs></styleSheet>")),
    ("names", sheet(_TABLE, workbook=_WORKBOOK.replace("<definedNames/>", "<definedNames>"
        + '<definedName name="a" localSheetId="0">1</definedName>' * 30_000 + "</definedNames>"))),
    ("one sheet often", sheet(_TABLE * 30, workbook=re.sub(
        "<sheet .*?/>", lambda one: one[0] * 5_001, _WORKBOOK))),
    ("shared texts", lambda f: sheet(_TABLE, sharedStrings=f"<sst {_MAIN}>" + "<si/>" * 6_000_000
                                      + "</sst>")(f)),
    ("long text in sheets", sheet(
        "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(1, 20_001)),
        sharedStrings=f"<sst {_MAIN}><si><t>{'a' * 1_000_000}</t></si></sst>")),
)  # fmt: skip


def _sparse(folder: Path) -> Path:
    path = _csv(folder, "table.csv", b"group,label,score\n")
    os.truncate(path, 200 << 30)
    return path


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def _long(folder: Path, rows: int = 4 * ROWS, letters: int = 1, **how: Any) -> Path:
    content = long_table(_table(1, letters), rows, **how)
    return _csv(folder, "table.parquet", content)


TABLES: tuple[Bomb, ...] = (
    ("rows", _long),
    ("told rows", partial(_long, told=9)),
    ("zstd", partial(_long, told=9, compression="zstd")),
    ("long text", partial(_long, rows=ROWS, letters=LONG)),
    _packed_csv("table.csv.gz", partial(gzip.open, compresslevel=1)),
    _packed_csv("table.csv.bz2", partial(bz2.open, compresslevel=1)),
    _packed_csv("table.csv.xz", partial(lzma.open, preset=0)),
    ("zip", _zip),
    *SHEETS,
    ("one line", lambda folder: _csv(folder, "table.csv", b"a" * (1 << 30))),
    ("a long line", lambda folder: _csv(folder, "table.csv", b"a" * (330 << 20))),
    ("columns", lambda folder: _csv(
        folder, "table.csv", b",".join(b"%d" % i for i in range(10**6)) + b"\n" + b"1," * 10**6)),
    ("quotation", lambda folder: _csv(
        folder, "table.csv", b'group,label,score\n"' + b"a,\n" * (60 << 20))),
    ("deep JSON", lambda folder: _csv(folder, "table.json", b"[" * (100 << 20))),
    ("sparse", _sparse),
    ("pipe", _fifo),
    ("zeros", lambda folder: Path("/dev/zero")),
    ("folder", lambda folder: folder),
)  # fmt: skip


def _in_results(kind: str, *, told: int = 0) -> Bomb:
    """Return a bomb in place of a table of a results folder."""

    def damage(results: Path) -> Path:
        _laid_out(results)
        paths = results.glob(f"**/{kind}.parquet"), (results / kind).glob("**/*.parquet")
        path = next(path for each in paths for path in sorted(each))
        _replaced(results, path, long_table(parquet.read_table(path), ROWS, told=told))
        return results

    return f"{kind}{' told' * bool(told)}", damage


def _laid_out(results: Path) -> None:
    for path in (results / "runs").iterdir():
        laid_out(path)


def _replaced(results: Path, path: Path, content: bytes) -> None:
    """Replace a file, and have the record of its run name the new one."""
    path.write_bytes(content)
    record = path.parent / "environment.json"
    if record.is_file():
        values = unsealed_json(record.read_bytes())
        values["files"][path.name] = sha256(content)
        record.write_text(sealed_json(values))
    shutil.rmtree(results / "report", ignore_errors=True)
    (results / "index.json").unlink(missing_ok=True)


def _record(change: Callable[[str], str]) -> Callable[[Path], Path]:
    def damage(results: Path) -> Path:
        (record,) = results.glob("runs/*/environment.json")
        text = sealed_json({**unsealed_json(record.read_bytes()), "more": "MORE"})
        blank = text[: text.index("fairbench-sha256:") + 17] + "0" * 64 + '"}\n'
        record.write_bytes(sealed(blank.replace('"MORE"', change(blank)).encode()))
        (results / "index.json").unlink(missing_ok=True)
        return results

    return damage


def _summary(results: Path) -> Path:
    _laid_out(results)
    (path,) = results.glob("runs/*/summary.csv")
    head = path.read_bytes().split(b"\n")[:2]
    _replaced(results, path, head[0] + b"\n" + (head[1] + b"\n") * ((250 << 20) // len(head[1])))
    return results


def _aliases(results: Path) -> Path:
    _laid_out(results)
    (path,) = results.glob("runs/*/config.yaml")
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    _replaced(results, path, "\n".join(lines).encode())
    return results


RESULTS: tuple[Bomb, ...] = (
    *(_in_results(kind) for kind in ("metrics", "predictions", "splits", "data", "cells")),
    _in_results("metrics", told=9),
    _in_results("splits", told=9),
    ("deep record", _record(lambda _: "[" * 100_000 + "]" * 100_000)),
    ("wide record", _record(lambda _: "[" + "[]," * 5_000_000 + "[]]")),
    ("summary", _summary),
    ("aliases", _aliases),
)


PACKS: tuple[tuple[str, Callable[[], dict[str, bytes]]], ...] = (
    ("one file of zeros", lambda: {"cells/ab/ab.parquet": bytes(1200 << 20)}),
    ("many files of zeros", lambda: {f"splits/{i}.parquet": bytes(12 << 20) for i in range(100)}),
)
STATES: tuple[tuple[str, Callable[[], str]], ...] = (
    ("lists", lambda: _sealed_text('{"rows": [' + "[]," * (60 << 20) + "[]]")),
    ("deep", lambda: _sealed_text('{"rows": ' + "[" * 1_000_000 + "]" * 1_000_000)),
)


def _sealed_text(start: str) -> str:
    text = f'{start}, "seal": "fairbench-sha256:{"0" * 64}"}}\n'
    return sealed(text.encode()).decode()
