"""Tables as a pack holds them: of few types, with a note from which the original is restored.

Texts are strings, not dictionaries, and all numbers of a run's summary are floats. The note has the
original schema and categories, and is the same for most runs.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from fairbench.core.formats import read_csv
from fairbench.evaluation.columns import TEXTS
from fairbench.results.pack_file import Packed

_TEXTS = (*TEXTS, "estimand")


def columns_of(schema: pa.Schema, *, plain: bool = False) -> pa.Schema:
    """Return the columns in which a pack holds a table with a schema.

    Parameters
    ----------
    plain : whether the table comes from a CSV file, whose types are guessed from values: then
        columns of known names are texts, and all others floats.
    """
    return pa.schema([pa.field(column.name, _type(column, plain)) for column in schema])


def _type(field: pa.Field, plain: bool) -> pa.DataType:
    kind = _plain(field.type)
    if plain:
        return pa.string() if field.name in _TEXTS else pa.float64()
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_null(kind) else kind


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def packed(table: pa.Table, *, plain: bool = False) -> Packed:
    """Return a table as a pack holds it."""
    categories = {
        column.name: table[column.name].combine_chunks().dictionary.to_pylist()
        for column in table.schema
        if pa.types.is_dictionary(column.type)
    }
    columns = columns_of(table.schema, plain=plain)
    schema = table.schema.with_metadata(_without_seal(table.schema.metadata))
    columns_and_categories = [
        base64.b64encode(schema.serialize().to_pybytes()).decode(),
        categories,
    ]
    is_unchanged = schema.equals(columns, check_metadata=True)
    return Packed(
        _cast(table, columns),
        "" if is_unchanged else json.dumps(columns_and_categories, ensure_ascii=False),
    )


def _without_seal(metadata: dict[bytes, bytes] | None) -> dict[bytes, bytes] | None:
    return {name: value for name, value in (metadata or {}).items() if name != b"seal"} or None


def plain_texts(table: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return a table that was read from a pack, with texts as strings."""
    return _cast(table, columns)


def _cast(table: pa.Table, columns: pa.Schema) -> pa.Table:
    return table.replace_schema_metadata(None).cast(columns)


def unpacked(found: Packed) -> pa.Table:
    """Return a table as it was before it was packed."""
    if not found.note:
        return _cast(found.table, columns_of(found.table.schema))
    schema, categories = _parse_note(found.note)
    columns = [_restored(found.table[column.name], column, categories) for column in schema]
    return pa.table(columns, schema=schema)


@lru_cache(maxsize=64)
def _parse_note(note: str) -> tuple[pa.Schema, dict[str, Any]]:
    """Return the schema and the categories in a note."""
    text, categories = json.loads(note)
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))), categories


def with_dictionaries(found: Packed) -> pa.Table:
    """Return a table as it was before packing, except that all of its texts are dictionaries."""
    schema, _ = _parse_note(found.note)
    return found.table.replace_schema_metadata(schema.metadata)


def _restored(values: pa.ChunkedArray, field: pa.Field, categories: dict[str, Any]) -> pa.Array:
    """Return the values of a column in the type that they had before they were packed."""
    if pa.types.is_null(_plain(field.type)):  # Arrow casts nothing to it
        return pa.nulls(len(values), field.type)
    if not pa.types.is_dictionary(field.type):
        is_encoded = pa.types.is_dictionary(values.type)
        return (values.cast(values.type.value_type) if is_encoded else values).cast(field.type)
    names = pa.array(categories[field.name], field.type.value_type)
    plain = values.cast(field.type.value_type).combine_chunks()
    codes = compute.index_in(plain, names).cast(field.type.index_type)
    return pa.DictionaryArray.from_arrays(codes, names, ordered=field.type.ordered)


def summary_columns(content: bytes) -> list[str]:
    """Return the columns of a run's summary."""
    return content.partition(b"\n")[0].decode().strip().split(",")


def exact_summary(content: bytes, texts: Sequence[str]) -> pd.DataFrame:
    """Return a run's summary with every digit, and whole numbers as integers.

    pandas' fast parser of numbers loses the last digit, and turns a column of whole numbers with a
    missing one into floats.

    Parameters
    ----------
    texts : columns in which an empty text is not missing.
    """
    summary = read_csv(io.BytesIO(content), summary_columns(content))
    for name in summary:
        values = summary[name].to_list()
        if not any(values) and name not in texts:
            summary[name] = np.nan
        elif name not in _TEXTS:
            summary[name] = _numbers(values)
        elif name not in texts:
            summary[name] = summary[name].where(summary[name] != "")
    return summary


def _numbers(texts: Sequence[str]) -> pd.Series:
    numbers = pd.Series(np.array([text or "nan" for text in texts], str).astype(float))
    if not "".join(texts).replace("-", "").isdigit():
        return numbers
    return numbers.astype("int64" if all(texts) else "Int64")


def without_groups(table: pa.Table) -> pa.Table:
    """Return the rows about everyone, or about all groups of an attribute together."""
    return table.filter(compute.equal(table["group"].cast(pa.string()), ""))


def under_settings(names: Sequence[str]) -> list[str]:
    """Return names of metrics, and their names where labels are withheld or thresholds relaxed."""
    prefixes = ("", "abstention_", "postprocessed_", "postprocessed_validation_")
    forms = [f"{prefix}{name}" for name in names for prefix in prefixes]
    return [*forms, "postprocessed_gap"] if names else []


def rows_of_metrics(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows of some metrics; all rows if no name is given."""
    if not names:
        return table
    metrics = table["metric"].cast(pa.string())
    return table.filter(compute.is_in(metrics, pa.array(names, pa.string())))


def without_metrics(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows of all but some metrics."""
    metrics = table["metric"].cast(pa.string())
    return table.filter(compute.invert(compute.is_in(metrics, pa.array(names, pa.string()))))


def differs(one: pa.Table, other: pa.Table) -> str:
    """Return the first column in which two tables differ in any bit, empty if they are the same."""
    if one.column_names != other.column_names or len(one) != len(other):
        return "number of rows or columns"
    return next((name for name in one.column_names if not _same(one[name], other[name])), "")


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    first_values, second_values = (_values(column) for column in (one, other))
    if first_values.dtype != second_values.dtype:
        return False
    if first_values.dtype == object:
        return bool(first_values.tolist() == second_values.tolist())
    return bool(first_values.tobytes() == second_values.tobytes())


def _values(column: pa.ChunkedArray) -> NDArray[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return np.asarray(column.to_numpy())
