"""Every loader of a text file: it is read in any writing, and spoilt is refused in one line."""

import pandas as pd
import pytest

from fairbench.core.errors import DataError
from fairbench.data.dataset import Task
from tests.datasets.raw_files import RAW
from tests.harness import THOROUGH

# One of each way to write a file: they are read by the same functions.
WAYS = ("acs", "adult", "bank", "communities", "compas", "credit_default", "dutch_census", "german")
MARKS = {task: () if task in (*WAYS, "resume", "twins") else THOROUGH for task in RAW}


def same(one, other):
    pd.testing.assert_frame_equal(one.features, other.features)
    pd.testing.assert_frame_equal(one.sensitive, other.sensitive)
    pd.testing.assert_series_equal(one.target, other.target)


def turned(raw):
    """Return path -> content, with the columns in another order."""
    head, lines = raw.lines()
    return raw.with_lines(head, [raw.join(reversed(raw.split(line))) for line in lines])


@pytest.mark.parametrize("raw", [pytest.param(raw, marks=MARKS[raw.task]) for raw in RAW.values()],
                         ids=RAW)  # fmt: skip
def test_a_file_is_read_with_any_line_ends_and_order_of_columns(raw, load):
    data = load(raw.task)
    assert len(data) == raw.rows
    assert list(data.features.index) == list(range(raw.rows))
    assert data.task is Task.REGRESSION or data.target.dtype.kind == "i"
    for attribute in data.sensitive:
        assert data.groups(attribute).cat.categories[0] == data.privileged[attribute]
    unix = raw.content.replace(b"\r\n", b"\n")
    same(load(raw.task, {raw.path: unix.replace(b"\n", b"\r\n")}), data)
    if raw.header:
        same(load(raw.task, turned(raw)), data)
    without = load(raw.task, keep_sensitive=False)
    assert set(without.features) < set(data.features)
    pd.testing.assert_frame_equal(without.sensitive, data.sensitive)


def spoilt(raw):
    """Yield what is wrong with a file, path -> content, and what is said of it."""
    (head, lines), sign, width = raw.lines(), raw.separator, len(raw.names)
    short = [*lines[:-1], sign.join(lines[-1].split(sign)[:2])]
    row = f"row {len(lines) - raw.header} has 2 fields separated by '{sign}'"
    yield "a short row", raw.with_lines(head, short), row
    long = [*lines[:2], f"{lines[2]}{sign}0", *lines[3:]]
    yield "a long row", raw.with_lines(head, long), f"row {3 - raw.header} has {width + 1} fields"
    if raw.wide:
        cells = ["extra" if raw.header else "0", *"0" * (len(lines) - 1)]
        wider = raw.with_lines(head, map(sign.join, zip(lines, cells, strict=True)))
        columns = f"{width + 1} columns, the archive's file has {width}.*'extra'"
        yield "a column more", wider, columns if raw.header else f"row 1 has {width + 1} fields"
    pipes = raw.with_lines(head, [line.replace(sign, "|") for line in lines])
    yield "another delimiter", pipes, "separated by|no column|row 1:"
    text = raw.content.rstrip(b"\n")
    last = rf"not UTF-8 text \(line {len(text.splitlines())}, byte "
    yield "no text", {raw.path: text[:-1] + b"\xe9\n"}, last
    page = b"<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head></html>\n"
    yield "a web page", {raw.path: page}, "is a web page, not the data"
    yield "nothing", {raw.path: b""}, "header|Empty CSV file|@data|no column|2 header lines"
    if not raw.header:
        yield "columns in another order", turned(raw), "column '.*, row "
    elif raw.target:
        yield "no target", raw.with_cell(0, raw.target, "other"), f"no column '{raw.target}'"
    of_column = (
        (raw.number, "is no number", ("12x", "inf", "nan", *[""] * (not raw.gaps))),
        (raw.target, "is not one of", ("third", "")),
    )
    for column, is_none, values in of_column:
        for value in values if column else ():
            said = f"column '{column}', row 2: '{value}' {is_none}"
            yield f"{column} '{value}'", raw.with_cell(2, column, value), said


@pytest.mark.parametrize(
    ("raw", "files", "sentence"),
    [
        pytest.param(raw, files, sentence, marks=MARKS[raw.task], id=f"{raw.task}: {what}")
        for raw in RAW.values()
        for what, files, sentence in spoilt(raw)
    ],
)
def test_a_spoilt_file_is_refused_in_one_line(raw, files, sentence, load):
    with pytest.raises(DataError, match=sentence) as caught:
        load(raw.task, files)
    message = str(caught.value)
    assert raw.path.rsplit("/")[-1] in message and "\n" not in message
