"""What a Parquet file takes is measured by what decoding goes by, whatever its footer says."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.parquet import ParquetFile

from benchmarks.faults.bombs import long_table
from fairbench.core.errors import UserError
from fairbench.core.files import MEMORY, read_parquet
from fairbench.core.parquet_pages import page_bounds, page_sizes

ROWS = 50_000


def stored(table, **options):
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def measured(content, measure, *part):
    with ParquetFile(pa.BufferReader(content)) as file:
        groups = range(file.metadata.num_row_groups)
        return measure(file, *part, groups, [[i] for i in range(file.metadata.num_columns)])


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "lz4", "zstd", "gzip"])
def test_pages_take_what_the_footer_of_an_honest_file_says(compression, version):
    texts = np.where(np.arange(ROWS) % 7 == 0, "yes", "no")
    table = pa.table({"n": np.arange(ROWS), "t": texts, "e": pa.nulls(ROWS, pa.float64())})
    content = stored(
        table, compression=compression, data_page_version=version, row_group_size=20_000,
        data_page_size=4096,
    )  # fmt: skip
    sizes = measured(content, page_sizes, lambda first, size: content[first : first + size])
    bounds = measured(content, page_bounds)
    with ParquetFile(pa.BufferReader(content)) as file:
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    for place, (size, bound) in enumerate(zip(sizes, bounds, strict=True)):
        said = sum(group.column(place).total_uncompressed_size for group in groups)
        assert size.values == ROWS == bound.values
        assert 0 <= said - size.unfolded < said  # a footer counts the headers, too
        assert size.unfolded <= bound.unfolded
        assert size.longest <= size.unfolded
        assert not size.prefixed


@pytest.mark.parametrize("told", [0, 9])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_rows_are_counted_whatever_the_footer_says_of_them(compression, told, monkeypatch):
    content = long_table(pa.table({"n": [1]}), 600_000, told=told, compression=compression)
    with ParquetFile(pa.BufferReader(content)) as file:
        assert file.metadata.num_rows == (told or 600_000)
    assert len(read_parquet(content, "t.parquet")) == 600_000
    monkeypatch.setenv(MEMORY, "0.01")
    with pytest.raises(UserError, match="would take about 0.0 GB"):
        read_parquet(content, "t.parquet")


def test_texts_told_by_those_before_are_counted_as_they_are_written_out(monkeypatch):
    table = pa.table({"t": ["x" * 200_000] * 1000})
    encoding = {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY"}}
    content = stored(table, **encoding)
    assert len(content) < 300_000
    monkeypatch.setenv(MEMORY, "0.1")
    with pytest.raises(UserError, match="would take about 0.2 GB"):
        read_parquet(content, "t.parquet")
    few = stored(table.slice(0, 3), **encoding)
    assert read_parquet(few, "t.parquet").equals(table.slice(0, 3))


def test_a_null_of_a_wide_type_takes_its_width(monkeypatch):
    content = stored(pa.table({"wide": pa.nulls(20_000, pa.binary(1000))}))
    monkeypatch.setenv(MEMORY, "0.01")
    with pytest.raises(UserError, match="would take about"):
        read_parquet(content, "t.parquet")


def test_lists_are_refused_before_their_values_are_read():
    content = stored(pa.table({"a": [1, 2], "b": [[1] * 9, []]}))
    assert read_parquet(content, "t.parquet", ["a"]).column_names == ["a"]
    with pytest.raises(UserError, match="column 'b' is of type list"):
        read_parquet(content, "t.parquet")


def test_a_page_whose_header_is_cut_off_is_no_table(monkeypatch):
    content = stored(pa.table({"n": np.arange(1000)}), compression="zstd")
    monkeypatch.setenv(MEMORY, "0.5")  # too little for what zstd might unfold to
    broken = content[:4] + b"\xff" * 40 + content[44:]
    with pytest.raises(pa.ArrowInvalid, match="header of a page"):
        read_parquet(broken, "t.parquet")
