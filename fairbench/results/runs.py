"""The cells and the runs of a results folder: where they lie, how they are written and read.

Begin with :class:`Run`, a finished run, read from its folder: configuration, metrics, predictions
and origin. The metrics of several runs are read together by :func:`read_metrics`. Cells are one
sealed Parquet file each, written atomically, locked while made (:class:`Store`). The folder of a
run is written by :class:`RunWriter`: its files in one zip file, as they are small and many, and
last the record that lists them and their sha256. Earlier versions wrote each by itself, which
:func:`stored` reads as well.
"""

from __future__ import annotations

import contextlib
import io
import json
import platform
import stat
import subprocess
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fairbench.core import files
from fairbench.core.errors import UserError, refused
from fairbench.core.files import read_bytes, set_aside, sha256
from fairbench.core.memory import most_memory
from fairbench.core.processes import SILENCE, BusyError, locked
from fairbench.core.text import csv_text, said
from fairbench.results import record as records

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from fairbench.data.dataset import Dataset

LAST = "environment.json"
TABLES = "tables.zip"  # has the files of a run but its record and its figures
FIGURES = "figures"
_META = b"fairbench"  # the entry of a table's metadata that is ours
WRITTEN = "written"  # index entry: when the record was written, in seconds since 1970


# Cells.

Columns: TypeAlias = "Mapping[str, NDArray[Any]]"


class CorruptCellError(Exception):
    """A cell file that cannot be read, or whose content is not what was written."""


class BusyCellError(Exception):
    """A cell that another process is computing."""


@dataclass(frozen=True)
class StoredCell:
    """A cell read back: its columns, and what was noted when it was computed."""

    columns: dict[str, NDArray[Any]]
    notes: dict[str, Any]


@dataclass(frozen=True)
class Store:
    """Cells and runs under one results folder; any number of processes may share it.

    Attributes
    ----------
    root : the results folder.
    wait_min : how many minutes to wait for the holder of a cell that shows no sign of life.
    """

    root: Path
    wait_min: float = SILENCE / 60

    def __post_init__(self) -> None:
        """Let no link lead out of the folder, which is no pack."""
        records.refuse_pack(self.root)
        files.guard(self.root)

    def cell_path(self, cell_id: str) -> Path:
        """Return where a cell is kept."""
        return self.root.joinpath("cells", cell_id[:2], f"{records.plain_id(cell_id)}.parquet")

    def run_path(self, run_id: str) -> Path:
        """Return the folder of a run."""
        return self.root / "runs" / run_id

    def has(self, cell_id: str) -> bool:
        """Say whether the cell's file is there (its content is verified when it is read)."""
        return files.is_file(self.cell_path(cell_id))

    @contextlib.contextmanager
    def lock(self, cell_id: str, *, wait: bool = True) -> Iterator[None]:
        """Lock the cell while the block runs; the system frees the lock if the process is killed.

        Raises
        ------
        BusyCellError : another process holds it, and `wait` is false.
        UserError : the process that holds it seems to be dead; or no lock can be made.
        """
        path = self.root.joinpath("locks", f"{records.plain_id(cell_id)}.lock")
        with contextlib.ExitStack() as stack:
            try:
                seconds = None if wait else 0.0
                stack.enter_context(locked(path, seconds=seconds, silence=60 * self.wait_min))
            except BusyError as error:
                if not wait:
                    raise BusyCellError(cell_id) from error
                told = {"cell": path.stem, "minutes": 2 * self.wait_min}
                raise UserError(said("results", "being_made", error=error, **told)) from error
            except OSError as error:
                raise UserError(f"results cannot be kept: {refused(error)}") from error
            yield

    def write(self, cell_id: str, columns: Columns, notes: Mapping[str, Any]) -> None:
        """Store a cell, whole or not at all."""
        import pyarrow as pa  # slow to import: listing runs does without

        meta = {"id": cell_id, "notes": dict(notes)}
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        table = table.replace_schema_metadata({_META: json.dumps(meta).encode()})
        files.write_table(self.cell_path(cell_id), table)

    def read(self, cell_id: str) -> StoredCell:
        """Read and verify a cell.

        Raises
        ------
        CorruptCellError : unreadable, another cell's, or changed since it was written.
        """
        import pyarrow as pa

        path = self.cell_path(cell_id)
        try:
            table = files.read_table(path)
            meta = json.loads(table.schema.metadata[_META])
            columns = {name: table[name].to_numpy() for name in table.column_names}
            is_this_cell = meta["id"] == cell_id
            cell = StoredCell(columns, meta["notes"])
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise CorruptCellError(f"{path}: {' '.join(str(error).split())[:200]}") from error
        if not is_this_cell:
            raise CorruptCellError(f"{path}: the content is another cell's")
        return cell

    def intact(self, cell_id: str) -> bool:
        """Say whether the cell is there and whole; a damaged file is set aside."""
        if not self.has(cell_id):
            return False
        try:
            self.read(cell_id)
        except CorruptCellError:
            set_aside(self.cell_path(cell_id), "the cell is computed again")
            return False
        return True


# Runs.


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run: the folder ``results/runs/<id>``; its ``environment.json`` is written last.

    That file is sealed and has the sha256 of the others: what is read is what was written.
    It needs nothing else than the results folder it lies in: neither raw data, nor a checkout's
    configurations, nor the code of its method.

    Attributes
    ----------
    listed : the run's entries of the catalogue's index, by which runs are listed
        and selected. All else is read from the run's own files, and checked.
    """

    path: Path
    listed: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        """The id: a hash of what the run is."""
        return self.path.name

    @property
    def results(self) -> Path:
        """The results folder that the run lies in."""
        return self.path.parents[1]

    @property
    def figures(self) -> Path:
        """Where the run's figures are drawn; written whole or not at all."""
        return self.path / FIGURES

    @cached_property
    def environment(self) -> dict[str, Any]:
        """The record of a finished run: choices, options, data, versions, machine, files.

        Raises
        ------
        UserError : an index lists the run, and its record is damaged, or is not what was listed.
        """
        record = read_environment(self.path)
        if self.listed:
            with records.reading(self.path / LAST):
                entries = (*records.SUMMARY, "config")
                if any(repr(record.get(name)) != repr(self.listed.get(name)) for name in entries):
                    raise files.DamagedError("the record is not what was listed")
        return record

    @property
    def summarised(self) -> Mapping[str, Any]:
        """The configuration and the entries `SUMMARY` by which runs are listed and selected."""
        return self.environment if self.listed is None else self.listed

    @property
    def choices(self) -> dict[str, str]:
        """The option chosen for each group: ``dataset``, ``learner``, ``method`` ..."""
        return dict(self.summarised["choices"])

    @property
    def name(self) -> str:
        """A short name for people: data set, learner, intervention, method."""
        return str(self.summarised["name"])

    @property
    def protect(self) -> str:
        """The attribute, or combination, of the headline metrics."""
        return str(self.summarised["protect"])

    @property
    def headline(self) -> str:
        """The gap that it is first looked at by; empty for the usual one of its task."""
        return str(self.summarised["config"].get("headline") or "")

    @property
    def level(self) -> float:
        """The level of its intervals."""
        return float(self.summarised["config"].get("evaluator", {}).get("level", 0.95))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that `protect` joins."""
        return tuple(self.protect.split(" x "))

    @property
    def verified(self) -> bool:
        """Whether its raw files were compared with the checksums that are known of them."""
        dataset = self.config.get("dataset")
        return not isinstance(dataset, dict) or dataset.get(records.VERIFIED) is not False

    @property
    def purpose(self) -> str:
        """The purpose of the run, one of `PURPOSES`; a study if its record does not say."""
        return str(self.summarised.get("purpose") or records.STUDY)

    @property
    def seed(self) -> int:
        """The root seed of the run."""
        return int(self.summarised["seed"])

    @property
    def finished(self) -> datetime:
        """When the run was finished."""
        return datetime.fromtimestamp(self.written)

    @property
    def written(self) -> float:
        """When the run was finished, in seconds since 1970."""
        if self.listed and self.listed[WRITTEN]:
            return float(self.listed[WRITTEN])
        return (self.path / LAST).stat().st_mtime_ns / 1e9

    @property
    def config(self) -> dict[str, Any]:
        """The run's configuration: every component by its name, with its options."""
        with records.reading(self.path / LAST):
            return dict(self.environment["config"])

    def content(self, name: str) -> bytes:
        """Return one of `FILES` as it was written.

        Raises
        ------
        UserError : it is missing or damaged.
        """
        with records.reading(place_of(self.path, name)):
            content = stored(self.path, name)
            if sha256(content) != self.environment.get("files", {}).get(name):
                raise files.DamagedError("the content is not what was written")
            return content

    def read_parquet(
        self, kind: str, texts: Collection[str] = (), columns: Collection[str] = ()
    ) -> pa.Table:
        """Return a table that is a Parquet file of the run's folder.

        Parameters
        ----------
        kind : the name of the file, without its ending.
        texts : columns to read as dictionaries; names that the table does not have are ignored.
        columns : columns to read, ignoring names that it does not have; all by default.
        """
        path = self.path / f"{kind}.parquet"
        with records.reading(place_of(self.path, path.name)):
            return files.table_within(self.content(path.name), str(path), columns or None, texts)

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """The metrics of the run's own variant, in the columns that `Catalogue.metrics` has."""
        return read_metrics([self])

    def all_metrics(self) -> pd.DataFrame:
        """Return the run's long table of metrics, of all of its variants."""
        from fairbench.results.tables import checked_metrics

        with records.reading(place_of(self.path, "metrics.parquet")):
            return checked_metrics(self.read_parquet("metrics")).to_pandas()

    def summary(self) -> pd.DataFrame:
        """Return the means of the run's metrics over its splits, with their intervals."""
        from fairbench.results.tables import summary_in

        with records.reading(place_of(self.path, "summary.csv")):
            return summary_in(self.content("summary.csv"))

    def predictions(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return repeat, fold, part (2 is test), row and predictions of each row."""
        from fairbench.results.tables import read_predictions

        table = self.read_parquet("predictions")
        with records.reading(place_of(self.path, "predictions.parquet")):
            return read_predictions(self.results, table, str(self.environment["rows"]), columns)

    def people(self) -> Dataset:
        """Return target and groups of every row of the data set."""
        from fairbench.results.tables import read_people

        return read_people(self.results, str(self.environment["data"]))

    def __repr__(self) -> str:
        """Return which run it is, in a line."""
        return f"<run {self.id}: {self.name}>" if self.summarised else f"<run {self.id}>"

    def _repr_html_(self) -> str:
        """Return the headline metrics as a notebook shows them."""
        from fairbench.results.tables import run_html

        return run_html(f"Run {self.id}: {self.name}", self.summary(), self.protect, self.level)

    def cells(self) -> list[str]:
        """Return the ids of the run's cells."""
        ids = self.content("cells.txt").decode(errors="replace").split()
        with records.reading(place_of(self.path, "cells.txt")):
            if not all(map(records.is_id, ids)):  # they are parts of paths
                raise files.DamagedError("an id of a cell is none")
        return ids

    def damaged_files(self) -> list[str]:
        """Return which of its `FILES` are missing or not as they were written."""
        sums = self.environment["files"]
        return [name for name in records.FILES if _sum(self.path, name) != sums.get(name)]


def read_environment(path: Path, parts: records.Parts | None = None) -> dict[str, Any]:
    """Return the record of a run's folder; empty if the run is not finished.

    A run whose file is damaged is not finished, nor is one of an earlier version, or one that lies
    under the id of another.
    """
    try:
        return records.checked(
            files.unsealed_json(read_bytes(path / LAST)), path.name, parts or records.Parts()
        )
    except files.UNREADABLE:
        return {}


def _sum(folder: Path, name: str) -> str | None:
    try:
        return sha256(stored(folder, name))
    except files.UNREADABLE:
        return None


def place_of(folder: Path, name: str) -> Path:
    """Return which file of a run's folder has one of its `FILES`: `TABLES`, or one of that name."""
    tables = folder / TABLES
    return tables if files.is_file(tables) else folder / name


def stored(folder: Path, name: str) -> bytes:
    """Return one of the `FILES` in the folder of a run, as it is.

    Raises
    ------
    OSError, LookupError, ValueError : it is missing, or damaged.
    """
    most = most_memory() if name.endswith(".parquet") else files.TEXT
    try:
        handle = files.opened(folder / TABLES)
    except FileNotFoundError:
        return read_bytes(folder / name, most)
    with open(handle, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return unzipped(archive, name, most)
        except NOT_ZIPPED as error:
            raise files.DamagedError(f"{TABLES} is not what was written") from error


# What reading a zip file raises that is none, beside `UNREADABLE`.
NOT_ZIPPED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)


def unzipped(archive: zipfile.ZipFile, name: str, most: int, expected: str = "") -> bytes:
    """Return the content of a file in a zip file, after comparing it with its sha256 if it has one.

    Raises
    ------
    DamagedError : it is longer than `most` bytes, or another one.
    LookupError : there is none.
    """
    size = archive.getinfo(name).file_size
    if size > most:
        raise files.DamagedError(f"{name} is too long")
    with archive.open(name) as member:
        content = member.read(size)  # without a size, all that it unfolds to
    if expected and sha256(content) != expected:
        raise files.DamagedError(f"{name} is not what its manifest says")
    return content


def zip_entry(name: str) -> zipfile.ZipInfo:
    """Return how a file is noted in a zip file: the same on every machine and day."""
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o600) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def write_stored(folder: Path, contents: Mapping[str, bytes], *, lasting: bool = True) -> None:
    """Write the `FILES` of a run, whole or not at all, in place of those that are there."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in contents.items():
            packed = name.endswith(".parquet")
            archive.writestr(zip_entry(name), content, zipfile.ZIP_STORED if packed else None)
    files.write_bytes(folder / TABLES, buffer.getvalue(), lasting=lasting, shows=True)
    for name in records.FILES:
        files.remove(folder / name)


def is_of_figures(name: str) -> bool:
    """Say whether a file of this name is one of those in a folder of figures."""
    name = files.half_of(name) or name
    return name.endswith(".png") or name == "manifest.json"  # which earlier versions wrote


def read_metrics(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the metrics of runs, of their own variants, with the column ``run``."""
    from fairbench.evaluation.table import TEXTS
    from fairbench.results.tables import checked_metrics, joined

    tables = {}
    for run in runs:
        with records.reading(place_of(run.path, "metrics.parquet")):
            tables[run.id] = checked_metrics(run.read_parquet("metrics", TEXTS), own=True)
    return joined(tables)


_TOGETHER = 100  # runs


def read_summaries(runs: Sequence[Run]) -> Iterator[pd.DataFrame]:
    """Yield the summaries of runs, of some at a time, in one table with the column ``run``.

    Raises
    ------
    UserError : one is missing or damaged.
    """
    import pandas as pd

    from fairbench.results.tables import joined_summaries

    for first in range(0, len(runs), _TOGETHER):
        some = runs[first : first + _TOGETHER]
        try:
            yield joined_summaries({run.id: run.content("summary.csv") for run in some})
        except files.UNREADABLE:  # one by one, which says which of them is damaged
            yield pd.concat([run.summary().assign(run=run.id) for run in some], ignore_index=True)


_AGAIN = "it is made again from the cells"


class RunWriter(Run):
    """A run that is being made, and its folder; its record may be written while it is in use."""

    @property
    def environment(self) -> dict[str, Any]:
        """The record as it is now; empty if the run is not finished."""
        return read_environment(self.path)

    def is_finished(self, fingerprint: str) -> bool:
        """Say whether the run is finished, complete, and made from the same cells and code.

        Damaged files are set aside, also those that several runs share.
        """
        from fairbench.results import tables

        environment = self.environment
        if not environment and files.is_file(self.path / LAST):  # or one of an earlier version
            set_aside(self.path / LAST, _AGAIN)
        if environment.get("fingerprint") != fingerprint:
            return False
        whole = tables.rows_stored(self.results, environment["rows"])
        whole &= tables.stored_people(self.results, environment["data"]) is not None
        damaged = {place_of(self.path, name) for name in self.damaged_files()}
        for path in damaged if whole else ():
            set_aside(path, _AGAIN)
        return whole and not damaged

    def highest_purpose(self, asked: str) -> str:
        """Return the purpose of the run: that of its record or the `asked` one, if that is higher.

        A run that was made as a demo or while tuning becomes a study when it is run as one.
        """
        return max(asked, self.purpose, key=records.PURPOSES.index) if self.environment else asked

    def note_purpose(self, asked: str) -> None:
        """Note the `asked` purpose in the record of a finished run, if it is the higher one."""
        record = self.environment
        if (purpose := self.highest_purpose(asked)) != self.purpose:
            with Store(self.results).lock(self.id):
                seal_run(self.path, {**record, "purpose": purpose}, record["files"])

    @contextlib.contextmanager
    def drawing(self) -> Iterator[Path]:
        """Yield a folder that becomes the run's figures when the block succeeds."""
        folder = self.figures.with_name(f".{FIGURES}.{files.token()}.tmp")
        with files.naming(self.figures), self._alone():
            files.make_folder(folder)
            try:
                yield folder
                with contextlib.suppress(OSError):  # another process has drawn the same ones
                    files.rename(folder, FIGURES)
            finally:
                files.remove_folder(folder, is_of_figures)

    def remove_figures(self) -> None:
        """Remove the run's figures; a folder that holds anything else is set aside."""
        if not files.remove_folder(self.figures, is_of_figures):
            set_aside(self.figures, "they are drawn again")

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the folder, and remove the half-drawn figures of processes that were killed."""
        with Store(self.results).lock(self.id):
            for name in files.names_in(self.path)[1]:
                if files.half_of(name) == FIGURES:
                    files.remove_folder(self.path / name, is_of_figures)
            yield

    def write(
        self,
        config: Mapping[str, Any],
        cells: Sequence[str],
        tables: Mapping[str, pd.DataFrame],
        dataset: Dataset,
        environment: dict[str, Any],
    ) -> None:
        """Write every file atomically; under a lock, so that one process writes all of them.

        Parameters
        ----------
        tables : the ``metrics``, the ``summary`` of their means over repeats, ``predictions``.
        """
        import pyarrow as pa
        import yaml

        from fairbench.results.tables import stored_predictions, write_people

        write_people(self.results, dataset)
        predictions, rows = stored_predictions(self.results, tables["predictions"])
        metrics = pa.Table.from_pandas(tables["metrics"], preserve_index=False)
        # libyaml's writer if it is installed.
        dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        text = yaml.dump(dict(config), Dumper=dumper, sort_keys=False, allow_unicode=True)
        contents = {
            "config.yaml": text.encode(),
            "cells.txt": "".join(f"{cell}\n" for cell in cells).encode(),
            "summary.csv": csv_text(tables["summary"]).encode(),
            "metrics.parquet": files.parquet_bytes(metrics),
            "predictions.parquet": predictions,
        }
        record = {**environment, "data": dataset.digest, "rows": rows, "config": config}
        with self._alone():
            write_stored(self.path, contents)
            sums = {name: sha256(contents[name]) for name in records.FILES}
            seal_run(self.path, record, sums)


def seal_run(path: Path, known: Mapping[str, Any], sums: Mapping[str, str] | None = None) -> None:
    """Write the file that marks a run as finished: its record, with the sha256 of its files.

    Parameters
    ----------
    path : the folder of the run.
    known : the record without ``files``.
    sums : name -> sha256; by default computed of the files that are there.
    """
    if sums is None:
        found = {name: _sum(path, name) for name in records.FILES}
        sums = {name: of_it for name, of_it in found.items() if of_it}
    record = files.sealed_json({**known, "files": sums}, indent=1)
    files.write_bytes(path / LAST, record.encode(), shows=True)


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Return the facts about this machine and checkout that can affect a result."""
    return {"python": platform.python_version(), "cpu": _cpu_model(), **_git()}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _git() -> dict[str, Any]:
    """Return commit and dirtiness of the checkout; empty outside one."""

    def ask(*words: str) -> str:
        result = subprocess.run(
            ["git", *words], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
        return result.stdout.strip()

    try:
        dirty = bool(ask("status", "--porcelain", "--untracked-files=no"))
        return {"git_commit": ask("rev-parse", "HEAD"), "git_dirty": dirty}
    except (OSError, subprocess.CalledProcessError):
        return {}
