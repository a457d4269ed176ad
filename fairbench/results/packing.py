"""Writing packs: from finished runs of a results folder, or of several folders and packs.

A pack is written beside where it is to be, file by file, each whole or not at all, and renamed into
place at last. Who was killed gives the same command again, and the files that are whole are kept.
The same results make the same bits: everything is in the order of ids, and nothing tells the time.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbench.core.errors import UserError
from fairbench.core.files import atomic, read_table, sealed_json, write_text
from fairbench.core.fingerprint import digest
from fairbench.core.locks import BusyError, locked
from fairbench.results.cells import CorruptCellError, Store
from fairbench.results.pack_file import FORMAT, Packed, PackFile, PackFileWriter, Sums, found_sums
from fairbench.results.packs import KINDS, PACK, Listed, flattened
from fairbench.results.people import people_path
from fairbench.results.predictions import split_table
from fairbench.results.runs import Run, reading

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes of a row group, before it is compressed, that are read to read one table.
_GROUP = {"cells": 1 << 20}
_OF_RUNS = 1 << 22
_PLAN = "plan.json"


@dataclass(frozen=True)
class Contents:
    """What of each run is packed.

    Attributes
    ----------
    metrics : their names; all where none is named.
    people : whether target and groups are packed of data that may not be given away, too.
    first : whether, of what differs between folders, that of the first is kept.
    """

    cells: bool = True
    predictions: bool = True
    metrics: tuple[str, ...] = ()
    people: bool = False
    first: bool = False


@dataclass(frozen=True)
class PackReport:
    """What became of a pack: where it is, what is in it, and what is not.

    Attributes
    ----------
    counts : how many tables of each kind.
    shared : how many runs and cells several folders have, and have alike.
    differing : what differs between folders, of which the first's was kept.
    left_out : names of data sets whose people may not be given away.
    missing : how many cells of the runs are in none of the folders.
    """

    path: Path
    bytes: int
    counts: Mapping[str, int]
    shared: int
    differing: Sequence[str]
    left_out: Sequence[str]
    missing: int


@dataclass(frozen=True)
class _Table:
    """A table that is to be packed: its columns, and how it is read."""

    name: str
    columns: pa.Schema
    read: Callable[[], Packed]


def write_pack(sources: Sequence[Sequence[Run]], out: Path, contents: Contents) -> PackReport:
    """Write a pack of runs.

    Parameters
    ----------
    sources : the runs of each folder or pack; of what several have, the first's is kept.
    out : a folder that is not there yet.

    Raises
    ------
    UserError : no runs, a place that is taken, damaged files, or runs that differ.
    """
    _check(sources, out)
    half = out.with_name(f".{out.name}.half")
    with _alone(half, out):
        collected = Collected.of(sources, contents)
        _begin(half, collected.plan)
        listed: dict[str, Listed] = {}
        for kind in KINDS:
            listed |= _write_kind(half, kind, collected.tables(kind))
        about = {
            "format": FORMAT,
            "options": {n: v for n, v in asdict(contents).items() if n != "first"},
            "left_out": dict(sorted(collected.left_out.items())),
            "files": {name: _entry(each) for name, each in sorted(listed.items())},
        }
        (half / _PLAN).unlink()
        write_text(half / PACK, sealed_json(about, indent=1))
        half.rename(out)
    counts = {kind: sum(e.tables for e in listed.values() if e.kind == kind) for kind in KINDS}
    size = sum(path.stat().st_size for path in out.iterdir())
    return PackReport(
        out, size, counts, collected.shared, collected.differing,
        sorted(set(collected.left_out.values())), collected.missing,
    )  # fmt: skip


def _entry(listed: Listed) -> dict[str, Any]:
    sums = [listed.sums.bytes, listed.sums.footer, listed.sums.sha256]
    return {**asdict(listed), "sums": sums}


def _check(sources: Sequence[Sequence[Run]], out: Path) -> None:
    if out.exists():
        raise UserError(f"out={out} is there already: name another place, or remove it first")
    for runs in sources:
        folder = runs[0].results.resolve()
        if out.resolve().is_relative_to(folder):
            raise UserError(f"out={out} lies inside {runs[0].results}: name a place beside it")


@contextmanager
def _alone(half: Path, out: Path) -> Iterator[None]:
    try:
        with locked(half.with_name(f".{out.name}.lock"), seconds=0.0):
            yield
    except BusyError as error:
        raise UserError(f"{out} is being written by {error}: wait for it") from None


def _begin(half: Path, plan: str) -> None:
    """Keep what was written of this very pack, and begin anew otherwise."""
    path = half / _PLAN
    if not path.is_file() or path.read_text(errors="replace") != plan:
        shutil.rmtree(half, ignore_errors=True)
        write_text(path, plan)


@dataclass(eq=False)
class Collected:
    """What is packed of which source."""

    contents: Contents
    runs: dict[str, list[Run]] = field(default_factory=dict)  # the same in several sources
    left_out: dict[str, str] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)
    shared: int = 0
    missing: int = 0

    @classmethod
    def of(cls, sources: Sequence[Sequence[Run]], contents: Contents) -> Collected:
        """Collect runs by their ids."""
        found = cls(contents)
        for runs in sources:
            for run in runs:
                found.runs.setdefault(run.id, []).append(run)
        found.runs = dict(sorted(found.runs.items()))
        found._compare_runs()
        return found

    @property
    def plan(self) -> str:
        """What tells whether a pack that was begun is this one."""
        runs = [[(str(r.path), r.environment, r.written) for r in each]
                for each in self.runs.values()]  # fmt: skip
        return digest([FORMAT, asdict(self.contents), runs], 64)

    def tables(self, kind: str) -> list[_Table]:
        """Return the tables of a kind, by id."""
        made: Callable[[], Iterator[_Table]] = getattr(self, f"_{kind}")
        if kind in ("predictions", "splits", "data") and not self.contents.predictions:
            return []
        if kind == "cells" and not self.contents.cells:
            return []
        return sorted(made(), key=lambda table: table.name)

    def _runs(self) -> Iterator[_Table]:
        import pyarrow as pa

        records = {run.id: run.environment for run, *_ in self.runs.values()}
        names = sorted({name for record in records.values() for name in flattened(record)})
        texts = [pa.field(name, pa.string()) for name in ("names", *names, "cells")]
        columns = pa.schema([pa.field("written", pa.float64()), *texts])
        for run, *_ in self.runs.values():
            yield _Table(run.id, columns, lambda run=run: _record(run, columns))

    def _metrics(self) -> Iterator[_Table]:
        return self._of_runs("metrics")

    def _summary(self) -> Iterator[_Table]:
        return self._of_runs("summary")

    def _predictions(self) -> Iterator[_Table]:
        return self._of_runs("predictions")

    def _of_runs(self, kind: str) -> Iterator[_Table]:
        for runs in self.runs.values():
            if run := next((each for each in runs if has(each, kind)), None):
                read = _reader(run, kind, self.contents.metrics)
                yield _Table(run.id, table_columns(run, kind), read)

    def _splits(self) -> Iterator[_Table]:
        yield from self._by_digest("rows", _split).values()

    def _data(self) -> Iterator[_Table]:
        found = self._by_digest("data", _people)
        for name in found.keys() & self.left_out.keys():
            del self.left_out[name]
        for name, table in found.items():
            about = _description(table.read())
            if self.contents.people or about["redistributable"]:
                yield table
            else:
                self.left_out[name] = str(about["name"])

    def _by_digest(self, key: str, find: Callable[[Run, str], _Table | None]) -> dict[str, _Table]:
        found: dict[str, _Table] = {}
        for runs in self.runs.values():
            for run in runs:
                name = str(run.environment[key])
                if name not in found and (table := find(run, name)):
                    found[name] = table
                elif name not in found and run.pack and name in run.pack.about["left_out"]:
                    self.left_out[name] = run.pack.about["left_out"][name]
        return found

    def _cells(self) -> Iterator[_Table]:
        stores: dict[str, list[Store]] = {}
        opened: dict[Path, Store] = {}
        for runs in self.runs.values():
            for run in runs:
                store = opened.setdefault(run.results, Store(run.results))
                for cell in run.cells():
                    places = stores.setdefault(cell, [])
                    if store not in places and store.has(cell):
                        places.append(store)
        for cell, places in stores.items():
            if places:
                self._compare_cells(cell, places)
                yield _cell(places[0], cell)
        self.missing = sum(not places for places in stores.values())

    def _compare_cells(self, cell: str, stores: Sequence[Store]) -> None:
        from fairbench.results.pack_tables import differs, packed_cell

        self.shared += len(stores) > 1
        for other in stores[1:]:
            first, second = (packed_cell(_stored(each, cell)) for each in (stores[0], other))
            if column := differs(first.table, second.table):
                self._differ(f"cell {cell} ({column})", stores[0].root, other.root)

    def _compare_runs(self) -> None:
        for first, *others in self.runs.values():
            self.shared += bool(others)
            for other in others:
                if what := difference(first, other):
                    self._differ(f"run {first.id} ({what})", first.results, other.results)

    def _differ(self, what: str, first: Path, other: Path) -> None:
        if not self.contents.first:
            raise UserError(
                f"{what} is not the same in {first} and {other}: differing=first keeps that of "
                f"{first}, and `fairbench store verify` computes cells again and says which is so"
            )
        self.differing.append(what)


COSTS = ("fit_seconds", "predict_seconds")  # metrics that no two computations have alike


def difference(one: Run, other: Run) -> str:
    """Return in what the same run differs between two folders, apart from the time it took."""
    from fairbench.results.pack_tables import columns_of, differs, of_metrics, without_metrics

    if one.environment["fingerprint"] != other.environment["fingerprint"]:
        return "other code or other cells"
    if has(one, "predictions") and has(other, "predictions"):
        tables = [_reader(each, "predictions", ())().table for each in (one, other)]
        if column := differs(*tables):
            return f"its predictions: {column}"
    found = [without_metrics(_reader(each, "metrics", ())().table, COSTS) for each in (one, other)]
    both = set.intersection(*({*each["metric"].unique().to_pylist()} for each in found))
    mine, theirs = (of_metrics(each, sorted(both) or [""]) for each in found)
    column = differs(*(each.cast(columns_of(each.schema)) for each in (mine, theirs)))
    return f"its metrics: {column}" if column else ""


def has(run: Run, kind: str) -> bool:
    """Say whether a run has a table, which a pack may have left out."""
    return run.pack is None or run.pack.where(kind, run.id) is not None


def table_columns(run: Run, kind: str) -> pa.Schema:
    """Return the columns in which a pack holds a run's table."""
    from pyarrow.parquet import read_schema

    from fairbench.results.pack_tables import columns_of

    if run.pack and (file := run.pack.where(kind, run.id)):
        return file.columns
    if kind == "summary":
        return columns_of(run.table(kind).schema, plain=True)
    path = run.path / f"{kind}.parquet"
    with reading(path):
        return columns_of(read_schema(path))


def _reader(run: Run, kind: str, metrics: Sequence[str]) -> Callable[[], Packed]:
    from fairbench.results.pack_tables import of_metrics, packed, plain_texts

    def read() -> Packed:
        if run.pack:
            stored = run.pack.table(kind, run.id)
            table = plain_texts(stored.table, table_columns(run, kind))
            found = Packed(table, stored.note)
        else:
            found = packed(run.table(kind), plain=kind == "summary")
        if kind == "predictions":
            return found
        return Packed(of_metrics(found.table, metrics), found.note)

    return read


def _record(run: Run, columns: pa.Schema) -> Packed:
    """Return the row of a run: each entry of its record as JSON."""
    import json

    import pyarrow as pa

    flat = flattened(run.environment)
    row = {name: json.dumps(value, ensure_ascii=False) for name, value in flat.items()}
    row |= {"names": json.dumps(list(flat)), "cells": "".join(f"{c}\n" for c in run.cells())}
    known: Mapping[str, Any] = {**row, "written": run.written}
    return Packed(pa.table({each.name: [known.get(each.name)] for each in columns}, columns))


def _split(run: Run, name: str) -> _Table | None:
    from fairbench.results.pack_tables import columns_of, packed

    if run.pack and run.pack.where("splits", name) is None:
        return None
    read = lambda: packed(split_table(run.results, name))  # noqa: E731
    return _Table(name, columns_of(split_table(run.results, name).schema), read)


def _people(run: Run, name: str) -> _Table | None:
    from fairbench.results.pack_tables import columns_of, packed, unpacked

    if run.pack:
        if run.pack.where("data", name) is None:
            return None
        table = unpacked(run.pack.table("data", name))
    else:
        path = people_path(run.results, name)
        try:
            table = read_table(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise UserError(f"{path} is damaged: `fairbench store verify` a run of it") from error
    return _Table(name, columns_of(table.schema), lambda: packed(table))


def _description(found: Packed) -> dict[str, Any]:
    from fairbench.results.pack_tables import unpacked
    from fairbench.results.people import described

    return described(unpacked(found))


def _cell(store: Store, cell: str) -> _Table:
    from pyarrow.parquet import read_schema

    from fairbench.results.pack_tables import columns_of, packed_cell

    if store.pack and (file := store.pack.where("cells", cell)):
        columns = file.columns
    else:
        try:
            columns = columns_of(read_schema(store.cell_path(cell)))
        except (OSError, ValueError):
            columns = columns_of(packed_cell(_stored(store, cell)).table.schema)
    return _Table(cell, columns, lambda: packed_cell(_stored(store, cell)))


def _stored(store: Store, cell: str) -> Any:
    try:
        return store.read(cell)
    except CorruptCellError as error:
        raise UserError(f"{error}: run it again, which computes it anew, and pack then") from None


def _write_kind(half: Path, kind: str, tables: Sequence[_Table]) -> dict[str, Listed]:
    """Write the files of a kind, a series for each set of columns; return what the index says."""
    by_columns: dict[str, list[_Table]] = {}
    for table in tables:
        by_columns.setdefault(str(table.columns), []).append(table)
    listed: dict[str, Listed] = {}
    for series, (_, same) in enumerate(sorted(by_columns.items()), 1):
        waiting, number = same, 1
        while waiting:
            path = half / f"{kind}-{series}-{number:03d}.parquet"
            names, sums = _kept(path, waiting) or _write_file(path, kind, waiting)
            listed[path.name] = Listed(kind, names[0], names[-1], len(names), sums)
            waiting, number = waiting[len(names) :], number + 1
    return listed


def _kept(path: Path, tables: Sequence[_Table]) -> tuple[list[str], Sums] | None:
    """Return what is in a file that was written before, if it is whole and begins these tables."""
    try:
        sums = found_sums(path)
        file = PackFile(path, sums)
        names = file.ids
        same = names == [table.name for table in tables[: len(names)]]
        return (names, sums) if same and not list(file.damaged()) else None
    except (OSError, ValueError, KeyError):
        return None


def _write_file(path: Path, kind: str, tables: Sequence[_Table]) -> tuple[list[str], Sums]:
    """Write as many tables as a file takes, at least one."""
    import os

    names = []
    mode = 0o600 if kind == "data" else 0o666
    with atomic(path) as temporary:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(handle, "wb") as file:
            columns, group = tables[0].columns, _GROUP.get(kind, _OF_RUNS)
            writer = PackFileWriter(file, KINDS[kind], columns, group=group)
            for table in tables:
                writer.add(table.name, table.read())
                names.append(table.name)
                if writer.full:
                    break
            sums = writer.close()
    return names, sums
