"""Files that unfold to far more than their size are refused before they are unfolded."""

import gzip
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from openpyxl import Workbook
from pyarrow import parquet
from pyarrow.feather import write_feather

from benchmarks.faults.bombs import SHEETS, sheet
from fairbench.core import memory
from fairbench.core.errors import DataError, UserError
from fairbench.core.files import file_sha256, sealed_json, unsealed_json
from fairbench.core.memory import MEMORY
from fairbench.data import download
from fairbench.data.download import _unpack
from fairbench.data.tables import read_any_table

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
    assert list(read_any_table(path, ["a"])) == ["a"]
    with pytest.raises(UserError, match=r"t\.parquet would take about 0\.0 GB .*name fewer col"):
        read_any_table(path, ["a"], every=True)


def test_a_wide_or_a_large_text_file_is_refused_before_its_fields_are_read(tmp_path):
    wide, large = tmp_path / "wide.csv", tmp_path / "large.csv"
    wide.write_text(",".join(map(str, range(1000))) + "\n" + ",".join(["1"] * 1000))
    large.write_text("a,b\n" + "1,2\n" * ROWS)
    for path in (wide, large):
        with pytest.raises(UserError, match="would take about"):
            read_any_table(path, [])
    (tmp_path / "small.csv").write_text("a,b\n1,2\n")
    assert len(read_any_table(tmp_path / "small.csv", ["a"])) == 1


def test_an_archive_out_of_all_proportion_is_not_unpacked_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_LEAST", 1_000_000)
    content = bytes(10_000_000)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content, 9))
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", content)
    for name, member in (("t.csv.gz", ""), ("t.zip", "t.csv")):
        with pytest.raises(DataError, match=r"unfolds to more than \d+ MB"):
            _unpack(tmp_path / name, member)


@pytest.mark.parametrize("said", ["much", "0", "-1", "inf", "nan"])
def test_memory_is_a_number_above_0(monkeypatch, tmp_path, said):
    monkeypatch.setenv(MEMORY, said)
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(UserError, match=f"{MEMORY} is '{said}'; it must be a number of GB"):
        read_any_table(tmp_path / "t.csv", ["a"])


def arrow(table, path, stored):
    options = pa.ipc.IpcWriteOptions(compression=None if stored == "uncompressed" else stored)
    with pa.ipc.new_stream(path, table.schema, options=options) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("stored_as", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("write", [arrow, write_feather], ids=["stream", "file"])
def test_an_arrow_file_is_read_no_further_than_it_fits(tmp_path, monkeypatch, stored_as, write):
    path = tmp_path / "t.arrow"
    write(pa.table({"a": np.zeros(300_000), "t": ["x", "yy"] * 150_000}), str(path), stored_as)
    with pytest.raises(UserError, match=r"t\.arrow would take about 0\.0 GB"):
        read_any_table(path, ["a"])
    monkeypatch.setenv(MEMORY, "1")
    assert len(read_any_table(path, ["a", "t"])) == 300_000


@pytest.mark.parametrize("kind", ["parquet", "parquet with a dictionary", "arrow"])
def test_a_long_text_that_is_repeated_counts_each_time(tmp_path, kind):
    texts = pa.DictionaryArray.from_arrays(np.zeros(100, np.int32), ["x" * 1_000_000])
    path = tmp_path / f"t.{kind.split()[0]}"
    if kind == "arrow":
        arrow(pa.table({"group": texts}), str(path), "lz4")
    else:
        stored(path, group=texts if "dictionary" in kind else texts.cast(pa.string()))
    assert path.stat().st_size < 100_000
    with pytest.raises(UserError, match="would take about 0.1 GB"):
        read_any_table(path, ["group"])


def test_a_cell_far_off_in_a_sheet_is_refused_before_the_empty_ones_are_made(tmp_path):
    book = Workbook()
    book.active["A1"], book.active["ABC9999"] = "a", 1
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(UserError, match=r"t\.xlsx would take about"):
        read_any_table(tmp_path / "t.xlsx", ["a"])


@pytest.mark.thorough
@pytest.mark.parametrize("name, write", SHEETS, ids=[name for name, _ in SHEETS])
def test_a_workbook_that_swells_is_refused_or_read_at_once(tmp_path, monkeypatch, name, write):
    monkeypatch.setenv(MEMORY, "0.3")
    path = write(tmp_path)
    assert path.stat().st_size < 300_000
    began = time.process_time()
    try:
        assert len(read_any_table(path, ["group", "label", "score"])) == 99
    except UserError as error:
        assert len(str(error)) < 300
        assert name not in READ
    assert time.process_time() - began < 20


READ = ("merged", "dimension", "validations", "formats of cells", "views", "names")


def test_what_a_sheet_says_of_its_size_is_not_believed(tmp_path):
    rows = '<row><c r="A1"><v>7</v></c><c r="C1"><v>8</v></c></row>'
    rows += '<row r="3"><c r="B3"><v>9</v></c></row>'
    path = sheet(rows, above='<dimension ref="A1:A1"/>')(tmp_path)
    read = read_any_table(path, ["7", "8"], every=True)
    assert read.to_numpy().tolist() == [["", "", ""], ["", "9", ""]]


VALUE, STRANGE = "<row><c><v>1</v></c></row>", r"sheet1\.xml is not written as Excel does"


def merged(cells):
    return {"below": f'<mergeCells><mergeCell ref="A1:B1"/>{cells}</mergeCells>'}


@pytest.mark.parametrize("rows, more, sentence", [
    ('<row r="2"/><row r="1"/>', {}, "row 1, with 0 columns, follows row 2"),
    ('<row><c r="B1"/><c r="A1"/></row>', {}, "the cells of row 1 are not in order"),
    ('<row r="1048577"/>', {}, "row 1048577, with 0 columns"),
    ('<row><c r="XFE1"/></row>', {}, "with 16385 columns"),
    ('<row><c r="A1"><f>1+1</f></c></row>', {}, "formulas were never computed"),
    (VALUE, merged('<mergeCell ref="A2:A3"/>'), "the cells A2:A3 are merged"),
    (VALUE, merged('<mergeCell ref="A1:B2"/>'), "the cells A1:B2 are merged"),
    (VALUE, {"start": '<!DOCTYPE a [<!ATTLIST c t CDATA "s">]>'}, STRANGE),
    (VALUE, {"start": '<?xml version="1.0" encoding="cp037"?>'}, STRANGE),
])  # fmt: skip
def test_a_sheet_of_which_something_would_be_lost_is_refused(tmp_path, rows, more, sentence):
    with pytest.raises(DataError, match=sentence):
        read_any_table(sheet(rows, **more)(tmp_path), ["1"] if more else [])


def test_values_of_json_count_more_than_their_signs(monkeypatch):
    monkeypatch.setattr(memory, "_LARGE_JSON", 1000)
    content = sealed_json({"rows": [[]] * 100_000}).encode()
    with pytest.raises(UserError, match="JSON would take about"):
        unsealed_json(content)
    monkeypatch.setenv(MEMORY, "2")
    assert len(unsealed_json(content)["rows"]) == 100_000


def test_a_checksum_is_that_of_a_regular_file():
    with pytest.raises(UserError, match="is no regular file"):
        file_sha256(Path("/dev/zero"))
