"""Every loader of a file: a spoilt file is refused with file, column and row."""

import re

import pandas as pd
import pytest

from fairbench.core.errors import DataError
from fairbench.data.dataset import Task
from tests.datasets.raw_files import RAW
from tests.harness import quick

every_task = pytest.mark.parametrize("task", RAW)
# One of each way to write a file: they are read by the same functions.
WAYS = ("acs", "adult", "bank", "communities", "compas", "credit_default", "dutch_census", "german")
each_way = pytest.mark.parametrize("task", quick(RAW, (*WAYS, "resume", "twins")))


@pytest.fixture
def raw(task):
    return RAW[task]


@pytest.fixture
def refusal(task, raw, load):
    """Return a function that returns what the loader says to spoilt files."""

    def said(files):
        with pytest.raises(DataError) as caught:
            load(task, files)
        message = str(caught.value)
        assert raw.path.rsplit("/")[-1] in message
        assert "\n" not in message
        return message

    return said


def same(one, other):
    pd.testing.assert_frame_equal(one.features, other.features)
    pd.testing.assert_frame_equal(one.sensitive, other.sensitive)
    pd.testing.assert_series_equal(one.target, other.target)


@pytest.mark.thorough
@every_task
def test_the_generated_file_is_read_with_any_line_ends(task, raw, load):
    data = load(task)
    assert len(data) == raw.rows
    assert list(data.features.index) == list(range(raw.rows))
    assert data.task is Task.REGRESSION or data.target.dtype.kind == "i"
    for attribute in data.sensitive:
        assert data.groups(attribute).cat.categories[0] == data.privileged[attribute]
    unix = raw.content.replace(b"\r\n", b"\n")
    same(load(task, {raw.path: unix.replace(b"\n", b"\r\n")}), data)
    without = load(task, keep_sensitive=False)
    assert set(without.features) < set(data.features)
    pd.testing.assert_frame_equal(without.sensitive, data.sensitive)


@each_way
def test_rows_of_another_length(raw, refusal):
    head, lines = raw.lines()
    short = raw.separator.join(lines[-1].split(raw.separator)[:2])
    message = refusal(raw.with_lines(head, [*lines[:-1], short]))
    row = len(lines) - raw.header
    assert f"row {row} has 2 fields separated by '{raw.separator}'" in message
    lines[2] += f"{raw.separator}0"
    message = refusal(raw.with_lines(head, lines))
    assert f"row {3 - raw.header} has {len(raw.names) + 1} fields" in message


@each_way
def test_an_extra_column(raw, refusal):
    if not raw.wide:
        pytest.skip("the archive's file is wide, and only some of its columns are read")
    head, (first, *lines) = raw.lines()
    cells = ["extra" if raw.header else "0", *"0" * len(lines)]
    pairs = zip([first, *lines], cells, strict=True)
    message = refusal(raw.with_lines(head, map(raw.separator.join, pairs)))
    width = len(raw.names)
    if raw.header:
        assert f"{width + 1} columns, the archive's file has {width}" in message
        assert "'extra'" in message
    else:
        assert f"row 1 has {width + 1} fields" in message


@each_way
def test_another_delimiter(raw, refusal):
    head, lines = raw.lines()
    message = refusal(raw.with_lines(head, [line.replace(raw.separator, "|") for line in lines]))
    assert any(part in message for part in ("separated by", "no column", "row 1:"))


@each_way
def test_another_kind_of_content(raw, refusal):
    content = raw.content.rstrip(b"\n")
    lines = content.count(b"\n") + 1
    page = b"<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head></html>\n"
    for spoilt, sentence in (
        (content[:-1] + b"\xe9\n", f"not UTF-8 text (line {lines}, byte "),
        (page, "is a web page titled '403 Forbidden', not the data"),
        (b"", ""),
    ):
        assert sentence in refusal({raw.path: spoilt})


@each_way
def test_columns_in_another_order(task, raw, load, refusal):
    head, lines = raw.lines()
    turned = raw.with_lines(head, [raw.join(reversed(raw.split(line))) for line in lines])
    if raw.header:
        same(load(task, turned), load(task))
    else:
        assert re.search("column '.*, row ", refusal(turned))


@each_way
def test_a_column_is_missing(raw, refusal):
    if not (raw.header and raw.target):
        pytest.skip("a file without a header: a missing column is a row with too few fields")
    assert f"no column '{raw.target}'" in refusal(raw.with_cell(0, raw.target, "other"))


@each_way
@pytest.mark.parametrize("value", ["12x", "", "inf", "nan"])
def test_a_malformed_number(raw, value, refusal):
    if not raw.number or (raw.gaps and not value):
        pytest.skip("no numeric column, or one where nothing means not applicable")
    message = refusal(raw.with_cell(2, raw.number, value))
    assert f"column '{raw.number}', row 2: '{value}' is no number" in message


@each_way
@pytest.mark.parametrize("value", ["third", ""])
def test_a_third_target_value(raw, value, refusal):
    if not raw.target:
        pytest.skip("a regression")
    message = refusal(raw.with_cell(2, raw.target, value))
    assert f"column '{raw.target}', row 2: '{value}' is not one of" in message
