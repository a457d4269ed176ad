"""Files that unfold to far more than their size are refused before they are unfolded."""

import gzip
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from fairbench.core.errors import DataError, UserError
from fairbench.core.files import MEMORY
from fairbench.data import download
from fairbench.data.delimited import check_text, read_parquet
from fairbench.data.download import unpacked

ROWS = 200_000


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    monkeypatch.setenv(MEMORY, "0.01")


def stored(path, **columns):
    parquet.write_table(pa.table(columns), path, compression="zstd")
    return path


def test_a_table_that_fits_is_read_with_the_columns_that_are_wanted(tmp_path):
    zeros = np.zeros(ROWS)
    path = stored(tmp_path / "t.parquet", a=zeros, b=zeros, c=["x", "y"] * (ROWS // 2))
    assert read_parquet(path, ["a"]).column_names == ["a"]
    with pytest.raises(UserError, match=r"t\.parquet would take about 0\.0 GB .*name fewer col"):
        read_parquet(path)


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_long_text_that_is_repeated_counts_each_time(tmp_path, dictionary):
    texts = pa.DictionaryArray.from_arrays(np.zeros(100, np.int32), ["x" * 1_000_000])
    path = stored(tmp_path / "t.parquet", group=texts if dictionary else texts.cast(pa.string()))
    assert path.stat().st_size < 100_000
    with pytest.raises(UserError, match="would take about 0.1 GB"):
        read_parquet(path)


def test_a_wide_or_a_large_text_file_is_refused_unread(tmp_path):
    wide, large = tmp_path / "wide.csv", tmp_path / "large.csv"
    wide.write_text(",".join(map(str, range(1000))) + "\n" + ",".join(["1"] * 1000))
    large.write_text("a,b\n" + "1,2\n" * ROWS)
    for path in (wide, large):
        with pytest.raises(UserError, match="would take about"):
            check_text(path)
    (tmp_path / "small.csv").write_text("a,b\n1,2\n")
    check_text(tmp_path / "small.csv")


def test_an_archive_out_of_all_proportion_is_not_unpacked_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_LEAST", 1_000_000)
    content = bytes(10_000_000)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content, 9))
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", content)
    for name, member in (("t.csv.gz", ""), ("t.zip", "t.csv")):
        with pytest.raises(DataError, match=r"unfolds to more than \d+ MB"):
            unpacked(tmp_path / name, member)


@pytest.mark.parametrize("said", ["much", "0", "-1", "inf", "nan"])
def test_memory_is_a_number_above_0(monkeypatch, tmp_path, said):
    monkeypatch.setenv(MEMORY, said)
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(UserError, match=f"{MEMORY} is '{said}'; it must be a number of GB"):
        check_text(tmp_path / "t.csv")
