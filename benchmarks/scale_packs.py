"""What packs of very many small cells take: ``python -m benchmarks scale_packs``.

Two packs of 65,536 cells each are written as ``fairbench store pack`` writes them, of cells that
are made here rather than fitted; they are listed, read, verified and merged. Ten million cells are
only listed: their pack has the footers of its 153 files, with ids, rows and notes as they would be,
and no row groups.
"""

from __future__ import annotations

import json
import resource
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.parquet import ParquetWriter

from benchmarks.measure import cpu_of, show
from benchmarks.scale_cells import ROWS
from fairbench.core.files import sealed_json, write_text
from fairbench.core.fingerprint import digest
from fairbench.results.catalogue import Catalogue
from fairbench.results.cells import Store, StoredCell, packed_cell
from fairbench.results.pack_file import FORMAT, MOST_TABLES, Packed, PackFileWriter, sums_of
from fairbench.results.pack_sources import Contents
from fairbench.results.packing import write_pack
from fairbench.results.packs import KINDS, PACK, Listed, damages, flattened, open_pack

MANY, PER_RUN, SAMPLE = 10_000_000, 128, 5_000
TINY = 4  # rows
Row = tuple[str, float | str]


def main() -> None:
    """Print what packs of small and of tiny cells take, and the listing of ten million."""
    with tempfile.TemporaryDirectory() as folder:  # first, since it tells the most memory so far
        table = list(of_many(Path(folder)))
    show(f"a pack of {MANY:,} cells, footers only", ("", "measured"), table)
    for rows in (TINY, ROWS):
        with tempfile.TemporaryDirectory() as folder:
            table = list(of_two(Path(folder), rows))
        show(f"two packs of {MOST_TABLES:,} cells of {rows} rows", ("", "measured"), table)


def of_two(folder: Path, rows: int) -> Iterator[Row]:
    """Yield what the writing, reading and joining of two packs takes."""
    packs = [folder / "one", folder / "other"]
    ids = [sorted(digest([place, i]) for i in range(MOST_TABLES)) for place in range(2)]
    made = [[(cell, _cell(cell, rows)) for cell in each] for each in ids]
    seconds = [cpu_of(partial(write, *each)) for each in zip(packs, made, strict=True)]
    del made
    yield "write a pack, s CPU", sum(seconds) / 2
    size = sum(path.stat().st_size for path in packs[0].glob("cells-*"))
    yield "bytes a cell", size / MOST_TABLES
    pack, store = open_pack(packs[0]), Store(packs[0])
    yield "list its ids, s CPU", cpu_of(lambda: list(pack.ids("cells")))
    yield "ask whether each is there, s CPU", cpu_of(lambda: [store.has(cell) for cell in ids[0]])
    yield "ms a cell, read in order", 1000 * cpu_of(lambda: _read(store, ids[0][:SAMPLE])) / SAMPLE
    drawn = np.random.default_rng(0).choice(ids[0], SAMPLE // 10).tolist()
    yield "ms a cell, read at random", 1000 * cpu_of(lambda: _read(store, drawn)) / len(drawn)
    yield "verify every byte, s CPU", cpu_of(lambda: _whole(packs[0]))
    yield "merge the two, s CPU", cpu_of(lambda: _merged(packs, folder / "both"))
    yield "list the runs of both, s CPU", cpu_of(lambda: Catalogue(folder / "both").runs)


def _read(store: Store, ids: Sequence[str]) -> None:
    for cell in ids:
        store.read(cell)


def _whole(pack: Path) -> None:
    if [line for line in damages(open_pack(pack)) if "has no" not in line]:
        raise RuntimeError("the pack is damaged")


def _merged(packs: Sequence[Path], out: Path) -> None:
    report = write_pack([list(Catalogue(pack)) for pack in packs], out, Contents())
    if report.counts["cells"] != 2 * MOST_TABLES:
        raise RuntimeError(f"{report.counts['cells']} cells were merged")


def write(out: Path, cells: Sequence[tuple[str, Packed]]) -> None:
    """Write a pack of cells, and of runs that have them."""
    out.mkdir()
    listed: dict[str, Listed] = {}
    ids = [cell for cell, _ in cells]
    runs = [ids[i : i + PER_RUN] for i in range(0, len(ids), PER_RUN)]
    records = {digest(of_run, 12): _record(of_run) for of_run in runs}
    for kind, tables in (("runs", iter(sorted(records.items()))), ("cells", iter(cells))):
        listed |= dict(_written(out, kind, tables))
    _write_index(out, listed)


def _written(
    out: Path, kind: str, tables: Iterator[tuple[str, Packed]]
) -> Iterator[tuple[str, Listed]]:
    name, group = f"{kind}-1-001.parquet", (1 << 20 if kind == "cells" else 1 << 22)
    first = next(tables)
    names = [first[0]]
    with open(out / name, "wb") as file:
        writer = PackFileWriter(file, KINDS[kind], first[1].table.schema, group=group)
        writer.add(*first)
        for table in tables:
            writer.add(*table)
            names.append(table[0])
        yield name, Listed(kind, names[0], names[-1], len(names), writer.close())


def _write_index(out: Path, listed: dict[str, Listed]) -> None:
    options = {n: v for n, v in asdict(Contents()).items() if n != "first"}
    files = {name: asdict(each) for name, each in listed.items()}
    for file in files.values():
        file["sums"] = list(file["sums"].values())
    about = {"format": FORMAT, "options": options, "left_out": {}, "files": files}
    write_text(out / PACK, sealed_json(about, indent=1))


def _cell(cell: str, rows: int) -> Packed:
    draw = np.random.default_rng(int(cell[:8], 16))
    columns: dict[str, NDArray[Any]] = {
        "part": np.full(rows, 2, np.int8),
        "row": np.arange(rows, dtype=np.int32),
        "score": draw.random(rows, dtype=np.float32),
    }
    return packed_cell(StoredCell(columns, {"fit_seconds": 0.1}))


def _record(cells: Sequence[str]) -> Packed:
    record = {
        "name": "small", "choices": {"dataset": "small"}, "seed": 0, "protect": "sex",
        "data": digest("data"), "rows": digest("rows"), "fingerprint": digest("code"),
        "versions": {}, "config": {"dataset": {"name": "small"}},
    }  # fmt: skip
    flat = flattened(record)
    row = {name: json.dumps(value) for name, value in flat.items()}
    texts = {"names": json.dumps(list(flat)), **row, "cells": "".join(f"{c}\n" for c in cells)}
    return Packed(pa.table({"written": [0.0], **{name: [text] for name, text in texts.items()}}))


def of_many(folder: Path) -> Iterator[Row]:
    """Yield what it takes to list the cells of a large pack, and to look for some of them."""
    _write_footers(folder / "many")
    pack, store = open_pack(folder / "many"), Store(folder / "many")
    yield "files", str(len(pack.listed))
    yield "MB of footers", sum(each.sums.bytes for each in pack.listed.values()) / 1e6
    count: list[int] = []
    yield "list the ids, s CPU", cpu_of(lambda: count.append(sum(1 for _ in pack.ids("cells"))))
    yield "ids listed", f"{count[0]:,}"
    yield "GB of memory so far, at most", _gigabytes()
    drawn = [f"{i:020x}" for i in np.random.default_rng(0).integers(MANY, size=SAMPLE)]
    yield f"look for {SAMPLE:,} at random, s CPU", cpu_of(lambda: [store.has(c) for c in drawn])
    yield "GB of memory after that, at most", _gigabytes()


def _gigabytes() -> float:
    """Return the most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _write_footers(out: Path) -> None:
    out.mkdir()
    listed: dict[str, Listed] = {}
    for number, start in enumerate(range(0, MANY, MOST_TABLES), 1):
        ids = [f"{i:020x}" for i in range(start, min(start + MOST_TABLES, MANY))]
        path = out / f"cells-1-{number:03d}.parquet"
        about = {
            "format": FORMAT, "key": KINDS["cells"], "groups": [], "ids": ids,
            "rows": [ROWS] * len(ids), "notes": ['{"fit_seconds": 0.1}'], "noted": [0] * len(ids),
        }  # fmt: skip
        text = json.dumps(about, separators=(",", ":"))
        schema = pa.schema([pa.field(KINDS["cells"], pa.string()), *_cell(ids[0], 1).table.schema])
        with ParquetWriter(path, schema) as writer:
            writer.add_key_value_metadata({"fairbench.pack": text})
        listed[path.name] = Listed("cells", ids[0], ids[-1], len(ids), sums_of(path))
    _write_index(out, listed)
