"""Every loader of a file: a spoilt file is refused with file, column and row."""

import functools
import importlib

import pandas as pd
import pytest

from fairbench.core.errors import DataError
from fairbench.data.dataset import Dataset
from tests.datasets.raw_files import RAW

pytestmark = pytest.mark.parametrize("task", RAW)


@functools.cache
def raw_of(task):
    return RAW[task]()


@pytest.fixture
def raw(task):
    return raw_of(task)


def load(task, archive):
    raw = raw_of(task)
    module, function = raw.loader.split(".")
    loader = getattr(importlib.import_module(f"fairbench.components.datasets.{module}"), function)
    return loader(archive, **raw.options)


def refusal(task, files, archive, save):
    """Return what the loader says to the spoilt files."""
    save(files)
    with pytest.raises(DataError) as caught:
        load(task, archive)
    message = str(caught.value)
    assert raw_of(task).path.rsplit("/")[-1] in message
    assert "\n" not in message
    return message


def same(one, other):
    pd.testing.assert_frame_equal(one.features, other.features)
    pd.testing.assert_frame_equal(one.sensitive, other.sensitive)
    pd.testing.assert_series_equal(one.target, other.target)


def test_the_generated_file_is_read(task, raw, archive, save):
    save(raw.files)
    data = load(task, archive)
    assert isinstance(data, Dataset)
    assert len(data) == raw.rows
    assert list(data.features.index) == list(range(raw.rows))
    for attribute in data.sensitive:
        assert data.groups(attribute).cat.categories[0] == data.privileged[attribute]


def test_sensitive_columns_can_be_left_out(task, raw, archive, save):
    save(raw.files)
    module, function = raw.loader.split(".")
    loader = getattr(importlib.import_module(f"fairbench.components.datasets.{module}"), function)
    with_them = loader(archive, **{**raw.options, "keep_sensitive": True})
    without = loader(archive, **{**raw.options, "keep_sensitive": False})
    assert set(without.features) < set(with_them.features)
    pd.testing.assert_frame_equal(with_them.sensitive, without.sensitive)


def test_line_ends_of_windows_are_read_alike(task, raw, archive, save):
    save(raw.files)
    plain = load(task, archive)
    unix = {path: content.replace(b"\r\n", b"\n") for path, content in raw.files.items()}
    save({path: content.replace(b"\n", b"\r\n") for path, content in unix.items()})
    same(load(task, archive), plain)


def test_truncated_in_the_middle_of_a_row(task, raw, archive, save):
    head, lines = raw.lines()
    row = len(lines) - raw.header
    lines[-1] = raw.separator.join(lines[-1].split(raw.separator)[:2])
    message = refusal(task, raw.with_lines(head, lines), archive, save)
    assert f"row {row} has 2 fields separated by '{raw.separator}'" in message


def test_a_row_with_a_field_too_many(task, raw, archive, save):
    head, lines = raw.lines()
    row = 2 if raw.header else 3
    lines[2] += f"{raw.separator}0"
    message = refusal(task, raw.with_lines(head, lines), archive, save)
    assert f"row {row} has {len(raw.names) + 1} fields" in message


def test_an_extra_column(task, raw, archive, save):
    head, lines = raw.lines()
    cells = ["extra" if raw.header and i == 0 else "0" for i in range(len(lines))]
    wider = [f"{line}{raw.separator}{cell}" for line, cell in zip(lines, cells, strict=True)]
    if not raw.wide:
        pytest.skip("the archive's file is wide, and only some of its columns are read")
    message = refusal(task, raw.with_lines(head, wider), archive, save)
    width = len(raw.names)
    if raw.header:
        assert f"{width + 1} columns, the archive's file has {width}" in message
        assert "'extra'" in message
    else:
        assert f"row 1 has {width + 1} fields" in message


def test_another_delimiter(task, raw, archive, save):
    head, lines = raw.lines()
    spoilt = [line.replace(raw.separator, "|") for line in lines]
    message = refusal(task, raw.with_lines(head, spoilt), archive, save)
    assert any(part in message for part in ("separated by", "no column", "row 1:"))


def test_another_encoding(task, raw, archive, save):
    content = raw.files[raw.path].rstrip(b"\n")
    spoilt = {**raw.files, raw.path: content[:-1] + b"\xe9\n"}
    line = content.count(b"\n") + 1
    message = refusal(task, spoilt, archive, save)
    assert f"not UTF-8 text (line {line}, byte " in message


def test_columns_in_another_order(task, raw, archive, save):
    head, lines = raw.lines()
    turned = [raw.join(reversed(raw.split(line))) for line in lines]
    if raw.header:
        save(raw.files)
        plain = load(task, archive)
        save(raw.with_lines(head, turned))
        same(load(task, archive), plain)
    else:
        message = refusal(task, raw.with_lines(head, turned), archive, save)
        assert "column '" in message and ", row " in message


def test_a_column_is_missing(task, raw, archive, save):
    if not (raw.header and raw.target):
        pytest.skip("a file without a header: a missing column is a row with too few fields")
    files = raw.with_cell(0, raw.target, "other")
    assert f"no column '{raw.target}'" in refusal(task, files, archive, save)


@pytest.mark.parametrize("value", ["12x", "", "inf", "nan"])
def test_a_malformed_number(task, raw, value, archive, save):
    if not raw.number or (raw.gaps and not value):
        pytest.skip("no numeric column, or one where nothing means not applicable")
    message = refusal(task, raw.with_cell(2, raw.number, value), archive, save)
    assert f"column '{raw.number}', row 2: '{value}' is no number" in message


@pytest.mark.parametrize("value", ["third", ""])
def test_a_third_target_value(task, raw, value, archive, save):
    if not raw.target:
        pytest.skip("a regression")
    message = refusal(task, raw.with_cell(2, raw.target, value), archive, save)
    assert f"column '{raw.target}', row 2: '{value}' is not one of" in message


def test_a_web_page_under_the_files_name(task, raw, archive, save):
    page = b"<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head></html>\n"
    message = refusal(task, {**raw.files, raw.path: page}, archive, save)
    assert "is a web page titled '403 Forbidden', not the data" in message


def test_an_empty_file(task, raw, archive, save):
    refusal(task, {**raw.files, raw.path: b""}, archive, save)
