"""A Parquet file that takes too much memory is refused by its footer, before it is decoded."""

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.parquet import ParquetFile

from benchmarks.faults.bombs import long_table
from fairbench.core.errors import UserError
from fairbench.core.files import MEMORY, table_within


def stored(table, **options):
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("told", [0, 9])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_rows_are_counted_whatever_the_footer_says_of_them(compression, told, monkeypatch):
    content = long_table(pa.table({"n": [1]}), 600_000, told=told, compression=compression)
    with ParquetFile(pa.BufferReader(content)) as file:
        assert file.metadata.num_rows == (told or 600_000)
    assert len(table_within(content, "t.parquet")) == 600_000
    monkeypatch.setenv(MEMORY, "0.01")
    with pytest.raises(UserError, match="would take about 0.0 GB"):
        table_within(content, "t.parquet")


@pytest.mark.parametrize(
    "column", [pa.nulls(20_000, pa.binary(1000)), pa.array(["x" * 200_000] * 100)]
)
def test_a_null_of_a_wide_type_and_a_repeated_text_take_their_widths(column, monkeypatch):
    content = stored(pa.table({"wide": column}))
    assert table_within(content, "t.parquet").num_rows == len(column)
    monkeypatch.setenv(MEMORY, "0.01")
    with pytest.raises(UserError, match="would take about"):
        table_within(content, "t.parquet")


def test_lists_are_refused_before_their_values_are_read():
    content = stored(pa.table({"a": [1, 2], "b": [[1] * 9, []]}))
    assert table_within(content, "t.parquet", ["a"]).column_names == ["a"]
    with pytest.raises(UserError, match="column 'b' is of type list"):
        table_within(content, "t.parquet")
