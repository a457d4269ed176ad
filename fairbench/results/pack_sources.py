"""The tables that a pack is made of, from results folders and from other packs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairbench.core.errors import UserError
from fairbench.core.files import read_schema, read_table
from fairbench.core.fingerprint import digest
from fairbench.evaluation.columns import COSTS
from fairbench.results.cells import CorruptCellError, Store, StoredCell, packed_cell
from fairbench.results.labels_and_groups import description_in, people_path
from fairbench.results.pack_file import FORMAT, Packed
from fairbench.results.pack_tables import (
    columns_of,
    differs,
    packed,
    plain_texts,
    rows_of_metrics,
    summary_columns,
    under_settings,
    unpacked,
    without_groups,
    without_metrics,
)
from fairbench.results.packs import Pack, flattened
from fairbench.results.predictions import rows_path, split_table
from fairbench.results.record import reading
from fairbench.results.runs import Run


@dataclass(frozen=True)
class Contents:
    """Which parts of runs are packed.

    Attributes
    ----------
    metrics : names of the metrics to pack; all if empty.
    groups : whether metrics of single groups are packed, besides those of everyone and the gaps.
    people : whether target and groups of data that may not be passed on are packed, too.
    first : whether the first folder's version is kept of what differs between folders.
    """

    cells: bool = True
    predictions: bool = True
    metrics: tuple[str, ...] = ()
    groups: bool = True
    people: bool = False
    first: bool = False


@dataclass(frozen=True)
class SourceTable:
    """A table to be packed: its id, its columns, and a function that reads it."""

    name: str
    columns: pa.Schema
    read: Callable[[], Packed]


@dataclass(eq=False)
class Collected:
    """The tables to be packed, collected from all sources."""

    contents: Contents
    runs: dict[str, list[Run]] = field(default_factory=dict)  # id -> its copies in the sources
    left_out: dict[str, str] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)
    shared: int = 0
    missing: int = 0

    @classmethod
    def of(cls, sources: Sequence[Sequence[Run]], contents: Contents) -> Collected:
        """Collect runs by their ids."""
        collected = cls(contents)
        for runs in sources:
            for run in runs:
                collected.runs.setdefault(run.id, []).append(run)
        collected.runs = dict(sorted(collected.runs.items()))
        collected._compare_runs()
        return collected

    @property
    def plan(self) -> str:
        """A digest that tells whether an unfinished pack has the same sources and contents."""
        runs = [[(str(copy.path), copy.environment, copy.written) for copy in copies]
                for copies in self.runs.values()]  # fmt: skip
        return digest([FORMAT, asdict(self.contents), runs], 64)

    def tables(self, kind: str) -> list[SourceTable]:
        """Return the tables of a kind, by id."""
        if kind in ("predictions", "splits", "data") and not self.contents.predictions:
            return []
        if kind == "cells" and not self.contents.cells:
            return []
        if kind in ("summary", "metrics", "predictions"):
            tables = self._tables_of_runs(kind)
        else:
            tables = {
                "runs": self._records,
                "splits": self._splits,
                "data": self._people_of_data,
                "cells": self._cells,
            }[kind]()
        return sorted(tables, key=lambda table: table.name)

    def _records(self) -> Iterator[SourceTable]:
        """Yield the record of each run, a row of columns that all runs share."""
        records = {run.id: run.environment for run, *_ in self.runs.values()}
        names = sorted({name for record in records.values() for name in flattened(record)})
        texts = [pa.field(name, pa.string()) for name in ("names", *names, "cells")]
        columns = pa.schema([pa.field("written", pa.float64()), *texts])
        for run, *_ in self.runs.values():
            yield SourceTable(run.id, columns, partial(_record, run, columns))

    def _tables_of_runs(self, kind: str) -> Iterator[SourceTable]:
        """Yield a table of each run, from the first source that has it."""
        for runs in self.runs.values():
            if run := next((source for source in runs if has(source, kind)), None):
                read = partial(_read_table, run, kind, self.contents)
                yield SourceTable(run.id, table_columns(run, kind), read)

    def _splits(self) -> Iterator[SourceTable]:
        yield from self._by_digest("rows", _split).values()

    def _people_of_data(self) -> Iterator[SourceTable]:
        """Yield the people of each data set, and note those that may not be shared."""
        tables = self._by_digest("data", _people)
        for name in tables.keys() & self.left_out.keys():
            del self.left_out[name]
        for name, table in tables.items():
            about = description_in(unpacked(table.read()), name)
            if self.contents.people or about["redistributable"]:
                yield table
            else:
                self.left_out[name] = str(about["name"])

    def _by_digest(
        self, key: str, find: Callable[[Run, str], SourceTable | None]
    ) -> dict[str, SourceTable]:
        """Return digest -> the table that runs share, from the first run that it is found of.

        Parameters
        ----------
        key : the entry of a run's record that holds the digest.
        find : returns the table of a digest that a run has; None if it is missing.
        """
        table_of: dict[str, SourceTable] = {}
        for runs in self.runs.values():
            for run in runs:
                name = str(run.environment[key])
                if name not in table_of and (table := find(run, name)):
                    table_of[name] = table
                elif name not in table_of and run.pack and name in run.pack.about["left_out"]:
                    self.left_out[name] = run.pack.about["left_out"][name]
        return table_of

    def _cells(self) -> Iterator[SourceTable]:
        """Yield each cell of the runs once, and count those that no store has."""
        stores_of_cell: dict[str, list[Store]] = {}
        opened: dict[Path, Store] = {}
        for runs in self.runs.values():
            for run in runs:
                store = opened.setdefault(run.results, Store(run.results))
                for cell in run.cells():
                    stores = stores_of_cell.setdefault(cell, [])
                    if store not in stores and store.has(cell):
                        stores.append(store)
        for cell, stores in stores_of_cell.items():
            if stores:
                self._compare_cells(cell, stores)
                yield _cell(stores[0], cell)
        self.missing = sum(not stores for stores in stores_of_cell.values())

    def _compare_cells(self, cell: str, stores: Sequence[Store]) -> None:
        self.shared += len(stores) > 1
        for other in stores[1:]:
            first, second = (packed_cell(_stored(store, cell)) for store in (stores[0], other))
            if column := differs(first.table, second.table):
                self._differ(f"cell {cell} ({column})", stores[0].root, other.root)

    def _compare_runs(self) -> None:
        for first, *copies in self.runs.values():
            self.shared += bool(copies)
            for other in copies:
                if differing_part := difference(first, other):
                    self._differ(f"run {first.id} ({differing_part})", first.results, other.results)

    def _differ(self, what: str, first: Path, other: Path) -> None:
        if not self.contents.first:
            raise UserError(
                f"{what} is not the same in {first} and {other}: differing=first keeps the first, "
                "and `fairbench store verify` computes cells again and says which is so"
            )
        self.differing.append(what)


def difference(one: Run, other: Run) -> str:
    """Return what differs between two copies of a run, apart from run times; "" if nothing."""
    if one.environment["fingerprint"] != other.environment["fingerprint"]:
        return "other code or other cells"
    if has(one, "predictions") and has(other, "predictions"):
        tables = [_read_table(run, "predictions", Contents()).table for run in (one, other)]
        if column := differs(*tables):
            return f"its predictions: {column}"
    metric_tables = [
        without_metrics(_read_table(run, "metrics", Contents()).table, COSTS)
        for run in (one, other)
    ]
    shared_metrics = set.intersection(
        *({*table["metric"].unique().to_pylist()} for table in metric_tables)
    )
    first_table, second_table = (
        rows_of_metrics(table, sorted(shared_metrics) or [""]) for table in metric_tables
    )
    column = differs(
        *(
            metric_table.cast(columns_of(metric_table.schema))
            for metric_table in (first_table, second_table)
        )
    )
    return f"its metrics: {column}" if column else ""


def has(run: Run, kind: str) -> bool:
    """Say whether a run has a table, which a pack may have left out."""
    return run.pack is None or run.pack.where(kind, run.id) is not None


def table_columns(run: Run, kind: str) -> pa.Schema:
    """Return the columns in which a pack holds a run's table."""
    if run.pack and (file := run.pack.where(kind, run.id)):
        return file.columns
    if kind == "summary":
        names = summary_columns(run.content("summary.csv"))
        return columns_of(pa.schema([pa.field(name, pa.float64()) for name in names]), plain=True)
    path = run.path / f"{kind}.parquet"
    with reading(path):
        return columns_of(read_schema(path))


def _read_table(run: Run, kind: str, contents: Contents) -> Packed:
    """Return a run's table as a pack holds it, with the metrics and groups that are asked for."""
    if run.pack:
        stored = run.pack.table(kind, run.id)
        all_rows = Packed(plain_texts(stored.table, table_columns(run, kind)), stored.note)
    else:
        all_rows = packed(run.table(kind), plain=kind == "summary")
    if kind == "predictions":
        return all_rows
    table = rows_of_metrics(all_rows.table, under_settings(contents.metrics))
    return Packed(table if contents.groups else without_groups(table), all_rows.note)


def _record(run: Run, columns: pa.Schema) -> Packed:
    """Return the row of a run: each entry of its record as JSON."""
    flat = flattened(run.environment)
    row = {name: json.dumps(value, ensure_ascii=False) for name, value in flat.items()}
    row |= {"names": json.dumps(list(flat)), "cells": "".join(f"{cell}\n" for cell in run.cells())}
    values: Mapping[str, Any] = {**row, "written": run.written}
    return Packed(pa.table({column.name: [values.get(column.name)] for column in columns}, columns))


def _split(run: Run, name: str) -> SourceTable | None:
    """Return the rows of a split; None if the run comes from a pack without them."""
    if run.pack and run.pack.where("splits", name) is None:
        return None
    path = rows_path(run.results, name)
    try:
        table = split_table(run.results, name)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} is damaged: `fairbench store verify` a run of it") from error
    return SourceTable(name, columns_of(table.schema), lambda: packed(table))


def _people(run: Run, name: str) -> SourceTable | None:
    """Return the people of a data set as a run's folder stores them; None if it does not."""
    if run.pack:
        if run.pack.where("data", name) is None:
            return None
        table = unpacked(run.pack.table("data", name))
    else:
        path = people_path(run.results, name)
        try:
            table = read_table(path)
            description_in(table, name)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} is damaged: `fairbench store verify` a run of it") from error
    return SourceTable(name, columns_of(table.schema), lambda: packed(table))


def _cell(store: Store, cell: str) -> SourceTable:
    """Return a cell of a store, which is read when it is packed."""
    if store.pack and (file := store.pack.where("cells", cell)):
        return SourceTable(
            cell, file.columns, partial(_cell_of_pack, store.pack, cell, file.columns)
        )
    try:
        columns = columns_of(read_schema(store.cell_path(cell)))
    except (OSError, ValueError):
        columns = columns_of(packed_cell(_stored(store, cell)).table.schema)
    return SourceTable(cell, columns, lambda: packed_cell(_stored(store, cell)))


def _cell_of_pack(pack: Pack, cell: str, columns: pa.Schema) -> Packed:
    """Return a cell of another pack, unchanged."""
    packed_cell_table = pack.table("cells", cell)
    return Packed(plain_texts(packed_cell_table.table, columns), packed_cell_table.note)


def _stored(store: Store, cell: str) -> StoredCell:
    try:
        return store.read(cell)
    except CorruptCellError as error:
        raise UserError(f"{error}: run it again, which computes it anew, and pack then") from None
