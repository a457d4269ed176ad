"""The tables of a results folder: metrics, what runs predict, about which rows, and whose.

A checksum shows that a table is what somebody stored, and not that it was this project. What is
asked here is what every reader of these tables relies on: each column once, of texts or of numbers.

The rows of a split's folds are the same for every run of that split and are stored once; a run's
own file has the predictions alone, in the order of those rows. Every bit of both is kept. Labels
and groups are stored once for each data set. They are about people, so only the owner of a results
folder may read these files. Last, a run's headline metrics as a notebook shows them.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from fairbench.core import files, memory
from fairbench.core.errors import UserError
from fairbench.core.files import DamagedError
from fairbench.core.options import from_plain
from fairbench.core.text import count, html, interval, number, read_csv, said
from fairbench.data.dataset import Dataset, Task
from fairbench.evaluation import table as long
from fairbench.evaluation.summary import FITS, headline
from fairbench.metrics import registry
from fairbench.results import record as records

T = TypeVar("T")

_ROWS = ("variant", "metric", "statistic", "attribute", "group", "n", "status", "reason")
METRICS = (*_ROWS, "repeat", "fold", "value")
SUMMARY = (*_ROWS, "mean", "sd", "lower", "upper", "binning", "feature")
# Columns of a run's summary in which an empty text is a text, and not a missing one.
SUMMARY_TEXTS = ("variant", "attribute", "group", "estimand", "reason", "feature", "outcome")
_TEXTS = {*long.TEXTS, "estimand"}
_PLACES = ("repeat", "fold")  # which every row has
_LARGEST = 2**53  # beyond which not every whole number is one of floating point
_COUNTS = tuple(name for name, dtype in long.SETTINGS.items() if dtype == "Int64")
# Texts that every row has one of; of the last two, one that there is.
_ALWAYS = ("variant", "metric", "attribute", "group", "statistic", "status")
_VALID = {"statistic": long.STATISTICS, "status": long.STATUSES}


def check_columns(there: Container[str], wanted: Sequence[str]) -> None:
    """Check that columns are there.

    Raises
    ------
    DamagedError : one is not.
    """
    if missing := [name for name in wanted if name not in there]:
        raise DamagedError(f"no column {missing[0]}")


def checked_metrics(
    table: pa.Table, wanted: Sequence[str] = METRICS, *, own: bool = False
) -> pa.Table:
    """Return a long table of metrics, or the rows of a run's `own` variant, after checking it.

    Parameters
    ----------
    wanted : the columns that must be there.

    Raises
    ------
    DamagedError : a column is missing, there twice, or of another type; or a row has no metric.
    """
    if own:
        table = table.filter(compute.equal(table["variant"].cast(pa.string()), ""))
    check_columns(table.column_names, wanted)
    _check_numbers(table, but=_TEXTS)
    for name in _TEXTS & {*table.column_names}:
        kinds = ["string", "large_string", *["null"] * (name not in _ALWAYS)]
        if _kind(table[name]) not in kinds:
            raise DamagedError(f"column {name} is of {table[name].type}, not of texts")
        if name in _ALWAYS:
            _check_values(name, table[name].unique().to_pylist())
    for name in {*_PLACES, *_COUNTS} & {*table.column_names}:
        whole = str(table[name].type) in (*_INTEGERS, *["null"] * (name in _COUNTS))
        if not whole or (name in _PLACES and table[name].null_count):
            raise DamagedError(f"column {name} is not of whole numbers")
    return table


_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_NUMBERS = (*_INTEGERS, "halffloat", "float", "double", "null")


def _check_numbers(table: pa.Table, but: Collection[str] = ()) -> None:
    """Check that the columns are different ones, all of numbers, as pandas reads them.

    Raises
    ------
    DamagedError : they are not.
    """
    check_plain(table)
    for name in table.column_names:
        if name in but:
            continue
        if _kind(table[name]) not in _NUMBERS:
            raise DamagedError(f"column {name} is of {table[name].type}, not of numbers")
        if str(table[name].type) in _INTEGERS:
            ends = compute.min_max(table[name]).as_py()
            if max(abs(ends["min"] or 0), abs(ends["max"] or 0)) > _LARGEST:
                raise DamagedError(f"column {name} has a number beyond {_LARGEST:,}")


def check_plain(table: pa.Table) -> None:
    """Check that the columns are different ones, of single values, and the same to pandas.

    Raises
    ------
    DamagedError : one is there twice, has lists, or is changed by what pandas noted of the table.
    """
    _check_plain(table.schema.serialize().to_pybytes())


@lru_cache(maxsize=256)
def _check_plain(written: bytes) -> None:
    """Check a schema as it is written: thousands of runs share one, and pandas reads it slowly."""
    schema = pa.ipc.read_schema(pa.py_buffer(written))
    names = schema.names
    if len({*names}) < len(names):
        raise DamagedError("a column is there twice")
    if nested := [field.name for field in schema if pa.types.is_nested(field.type)]:
        raise DamagedError(f"column {nested[0]} has several values in a row")
    notes = (schema.metadata or {}).get(b"pandas")
    if notes is None:
        return
    index = json.loads(notes)["index_columns"]
    plain = [entry for entry in index if isinstance(entry, dict) and not entry["start"]]
    if len(index) > 1 or len(plain) < len(index):
        raise DamagedError("pandas' notes of it have an index")
    if list(schema.empty_table().to_pandas().columns) != names:
        raise DamagedError("pandas' notes of it are of another table")


def _kind(column: pa.ChunkedArray) -> str:
    """Return the type of a column's values, whether they are stored as a dictionary or not."""
    kind = column.type
    return str(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _check_values(name: str, values: Iterable[Any]) -> None:
    valid = _VALID.get(name)
    for value in values:
        if not isinstance(value, str) or not (valid is None or value in valid):
            raise DamagedError(f"column {name} has {str(value)[:40]!r}")


def _check_summary(found: pd.DataFrame) -> None:
    """Check the means of a run's metrics.

    Raises
    ------
    DamagedError : a column is missing or of another type, or a row has no metric.
    """
    check_columns(found, SUMMARY)
    for name, column in found.items():
        if name not in _TEXTS and column.dtype.kind not in "biuf":
            raise DamagedError(f"column {name} is not of numbers")
        if name in _ALWAYS or (name in long.SETTINGS and name in _TEXTS):
            given = column if name in _ALWAYS else column.dropna()
            _check_values(str(name), given.unique())


def joined(tables: Mapping[str, pa.Table]) -> pd.DataFrame:
    """Return the metrics of runs, by their ids, in one table with the column ``run``."""
    if not tables:
        names = ["run", *long.KEYS, *long.COLUMNS]
        kinds = {name: "category" if name in ("run", *long.TEXTS) else "float64" for name in names}
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in kinds.items()})
    marked = [
        table.append_column(
            "run", pa.DictionaryArray.from_arrays(np.zeros(len(table), np.int32), [run])
        )
        for run, table in tables.items()
    ]
    return pa.concat_tables(marked, promote_options="permissive").unify_dictionaries().to_pandas()


def summary_in(content: bytes) -> pd.DataFrame:
    """Return the means of a run's metrics over its splits, of the file that has them.

    Raises
    ------
    DamagedError : it has another content.
    """
    summary = read_csv(io.BytesIO(content), SUMMARY_TEXTS)
    _check_summary(summary)
    texts = [name for name in ("feature", "outcome") if name in summary]
    return summary.assign(**{name: summary[name].where(summary[name] != "") for name in texts})


def joined_summaries(contents: Mapping[str, bytes]) -> pd.DataFrame:
    """Return the summaries of runs, by their ids, in one table with the column ``run``.

    Files with the same columns are parsed as one: to begin takes a parser longer than a file does.

    Raises
    ------
    DamagedError, ValueError : one of them has another content, or a text with a line break.
    """
    tables = []
    for head, some in groupby(contents.items(), lambda of_run: of_run[1].partition(b"\n")[0]):
        bodies = {run: content[len(head) + 1 :] for run, content in some}
        table = summary_in(b"\n".join([head, b"".join(bodies.values())]))
        lengths = [body.count(b"\n") for body in bodies.values()]
        tables.append(table.assign(run=np.repeat(list(bodies), lengths)))
    return pd.concat(tables, ignore_index=True)


# What runs predict, about which rows, and whose.

_META = b"fairbench"  # the entry of a table's metadata that is ours
KEYS = ("repeat", "fold", "part", "row")
VALIDATION, TEST = 1, 2
_TYPES = {"repeat": np.int16, "fold": np.int16, "part": np.int8, "row": np.int32}


def rows_path(results: Path, split: str) -> Path:
    """Return where the rows of a split are kept."""
    return results / "splits" / f"{records.plain_id(split)}.parquet"


def stored_predictions(results: Path, table: pd.DataFrame) -> tuple[bytes, str]:
    """Return the file of a run's predictions; store the rows of its split unless they are there.

    Parameters
    ----------
    table : columns `KEYS` (part 1 is validation, 2 test), then one a kind of prediction.

    Returns
    -------
    The content, and the digest of the split's rows, which :func:`read_predictions` needs.
    """
    rows = {name: table[name].to_numpy(_TYPES[name]) for name in KEYS}
    split = _rows_digest(rows)
    if not rows_stored(results, split):
        files.write_bytes(
            rows_path(results, split), files.parquet_bytes(pa.table(rows)), shows=True
        )
    columns = {
        str(name): _compact(table[name].to_numpy(np.float64)) for name in table if name not in KEYS
    }
    first: dict[bytes, str] = {}  # equal columns are stored once
    stored_as = {name: first.setdefault(column.tobytes(), name) for name, column in columns.items()}
    stored = pa.table({name: columns[name] for name in dict.fromkeys(stored_as.values())})
    meta = {_META: json.dumps(stored_as).encode()}
    return files.parquet_bytes(stored.replace_schema_metadata(meta)), split


def _rows_digest(rows: Mapping[str, NDArray[Any]]) -> str:
    """Return the digest that the rows of a split are named by."""
    return hashlib.sha256(b"".join(rows[name].tobytes() for name in KEYS)).hexdigest()[:20]


def rows_stored(results: Path, split: str) -> bool:
    """Say whether the rows of a split are stored; a damaged file is set aside."""
    return _stored(rows_path(results, split), lambda: _read_rows(results, split)) is not None


def _stored(path: Path, read: Callable[[], T]) -> T | None:
    """Return what is read of a file, if there is one; a damaged file is set aside."""
    try:
        return read()
    except FileNotFoundError:
        return None
    except files.UNREADABLE:
        files.set_aside(path, "it is written again")
        return None


def _compact(values: NDArray[np.float64]) -> NDArray[Any]:
    """Return values in the smallest type that represents every value exactly."""
    for kind in (np.int8, np.float32):
        with np.errstate(invalid="ignore", over="ignore"):
            smaller = values.astype(kind)
        if np.array_equal(smaller.astype(np.float64), values, equal_nan=True):
            return smaller
    return values


def read_predictions(
    results: Path, table: pa.Table, split: str, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return the predictions that were stored, or some of their columns, as float64.

    Raises
    ------
    UserError : the rows of the split are missing or damaged.
    ValueError, LookupError, TypeError : the content is that of another file.
    """
    stored_as = json.loads(table.schema.metadata[_META])
    _check_numbers(table)
    if not records.are_strings(stored_as) or {*KEYS} & {*stored_as}:
        raise DamagedError("its notes name no columns of predictions")
    predictions = pd.DataFrame(
        {
            name: table[stored_name].to_numpy().astype(np.float64)
            for name, stored_name in stored_as.items()
            if columns is None or name in columns
        }
    )
    try:
        rows = _rows(results, split)
    except files.UNREADABLE as error:
        raise UserError(said("results", "no_rows", path=rows_path(results, split))) from error
    if len(rows) != len(predictions):
        raise ValueError(f"{len(predictions)} rows, and {len(rows)} in its split")
    return pd.concat([rows, predictions], axis="columns")


def damaged_rows(results: Path, split: str) -> Iterator[Path]:
    """Yield the file of a split's rows, if it is missing or not as it was written."""
    return _damaged(rows_path(results, split), lambda: _read_rows(results, split))


def _damaged(path: Path, read: Callable[[], object]) -> Iterator[Path]:
    """Yield a file that cannot be read as what it was written as."""
    try:
        read()
    except files.UNREADABLE:
        yield path


def _read_rows(results: Path, split: str) -> pd.DataFrame:
    """Return the rows of a split, after checking that they are those that its digest names."""
    path = rows_path(results, split)
    table = files.table_within(files.read_bytes(path, memory.most_memory()), path.name)
    _check_numbers(table)
    rows = table.to_pandas()
    if any(rows[name].dtype != _TYPES[name] for name in KEYS) or (rows["row"] < 0).any():
        raise DamagedError("its columns are not those of a split")
    if _rows_digest({name: rows[name].to_numpy() for name in KEYS}) != split:
        raise DamagedError("the rows are not those that it is named by")
    return rows


_rows = lru_cache(maxsize=4)(_read_rows)
_DIGEST = "data"  # the entry of the metadata that holds the digest of the data set


# What is stored of a data set beside its rows; the last two are not in every version.
FACTS = (
    *("name", "task", "privileged", "target_name", "positive_label", "favourable"),
    *("redistributable", "classes", "ordered"),
)


def people_path(results: Path, digest: str) -> Path:
    """Return where the people of a data set are kept."""
    return results / "data" / f"{records.plain_id(digest)}.parquet"


def write_people(results: Path, data: Dataset) -> None:
    """Store target, groups, clusters and weights of a data set, unless they are there."""
    path = people_path(results, data.digest)
    stored = stored_people(results, data.digest)
    if stored:  # the digest that it is named by does not cover weights
        kept = stored["weight"] if "weight" in stored.column_names else []
        if data.weight is None or np.array_equal(kept, data.weight.to_numpy()):
            return
    files.make_private(path.parent)
    columns = {"target": data.target}
    columns |= {f"group.{name}": data.sensitive[name] for name in data.sensitive}
    parts = {"clusters": data.clusters, "weight": data.weight}
    columns |= {name: values for name, values in parts.items() if values is not None}
    frame = pd.DataFrame({name: values.reset_index(drop=True) for name, values in columns.items()})
    about = {name: getattr(data, name) for name in FACTS}
    about |= {"privileged": dict(data.privileged), _DIGEST: data.digest}
    meta = json.dumps(about)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    table = table.replace_schema_metadata({**table.schema.metadata, _META: meta.encode()})
    files.write_table(path, table, mode=0o600)


def stored_people(results: Path, digest: str) -> pa.Table | None:
    """Return the table of a data set's people, if there is one; a damaged file is set aside."""
    path = people_path(results, digest)
    return _stored(path, lambda: _read_people(path, digest, private=True)[0])


def damaged_people(results: Path, digest: str) -> Iterator[Path]:
    """Yield the file of a data set's people, if it is missing or not as it was written."""
    path = people_path(results, digest)
    return _damaged(path, lambda: _read_people(path, digest))


def _read_people(
    path: Path, digest: str, *, private: bool = False
) -> tuple[pa.Table, dict[str, Any]]:
    """Return a table of people and the description of their data set: its `FACTS`.

    Raises
    ------
    DamagedError : it is of another data set. Tables of earlier versions do not say of which.
    """
    table = files.read_table(path, private=private)
    meta: dict[str, Any] = json.loads(table.schema.metadata[_META])
    if meta.pop(_DIGEST, digest) != digest:
        raise DamagedError("the people are those of another data set")
    return table, meta


@lru_cache(maxsize=8)
def read_people(results: Path, digest: str) -> Dataset:
    """Return the people of a data set: all that is stored of it, which has no features.

    Raises
    ------
    UserError : the file is missing or damaged.
    """
    path = people_path(results, digest)
    try:
        table, meta = _read_people(path, digest)
        check_plain(table)
        return _people(meta, table.to_pandas())
    except files.UNREADABLE as error:
        raise UserError(said("results", "no_people", path=path)) from error


def _people(meta: Mapping[str, Any], frame: pd.DataFrame) -> Dataset:
    """Return the people of a table, after checking that a data set may have them.

    Raises
    ------
    DataError, ValueError, TypeError : no data set may.
    """
    if not {*FACTS[:-2]} <= meta.keys() <= {*FACTS}:
        raise DamagedError("the description has other parts")
    groups = [name for name in frame if name.startswith("group.")]
    if "group." in groups:
        raise DamagedError("an attribute without a name")
    parts = {
        **{name: frame.get(name) for name in ("target", "clusters", "weight")},
        "sensitive": frame[groups].rename(columns=lambda name: name.removeprefix("group.")),
        "features": pd.DataFrame(index=frame.index),
    }
    people: Dataset = from_plain(Dataset, {**meta, "task": Task(meta["task"]), **parts})
    return people


def run_html(title: str, summary: pd.DataFrame, protect: str, level: float) -> str:
    """Return the headline metrics of a run as a table of HTML; `protect` is what it protects."""
    shown = headline(summary, protect)
    shown = shown[~shown["metric"].isin(FITS)]
    rows = [
        {
            "metric": registry.label(row.metric),
            "of": f"{row.attribute}: {row.group}" if row.group else row.attribute,
            "mean": number(row.mean, 4),
            f"{100 * level:g} % interval": interval(row.lower, row.upper, 4),
            "rows": count(row.n),
        }
        for row in shown.itertuples()
    ]
    return titled_html(title, pd.DataFrame(rows))


def titled_html(title: str, table: pd.DataFrame) -> str:
    """Return a table under its title; pandas escapes what stands in it."""
    content = table.to_html(index=False, border=0) if len(table) else ""
    return f"<div><p><strong>{html(title)}</strong></p>{content}</div>"
