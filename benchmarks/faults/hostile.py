"""Hostile tables: what people's files hold by accident, and what somebody could put there.

Each case writes a file of predictions with a column of groups, and says what is expected of it: the
rows of each group, as they were written, or a part of the one sentence that refuses it.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

HEADER = ("group", "x", "label", "score", "prediction")
ROWS = 60  # of most tables: each label of a few stands in at least ten
HACK = "window.hacked=1;document.title='hacked'"
Row = list[Any]


@dataclass(frozen=True)
class Case:
    """A table, and what is expected of it.

    Attributes
    ----------
    write : writes the file into a folder, and returns its path.
    labels : the group of each row as it is in the file, empty where there is none; None where
        every verb refuses the file.
    refused : verb (``run``, ``audit``) -> a part of the sentence; ``""`` for both.
    group : the column of groups.
    words : what else ``run`` is told.
    environment : variables for both.
    score : of every row, where it is not that of :func:`rows_of`.
    """

    name: str
    write: Callable[[Path], Path]
    labels: Sequence[str] | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    group: str = "group"
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    score: float | None = None

    def refusal(self, verb: str) -> str | None:
        """Return what a verb says where it refuses the file, None where it takes it."""
        return self.refused.get(verb, self.refused.get(""))

    @property
    def groups(self) -> Counter[str]:
        """The rows of each group that is expected; those without a label are one."""
        return Counter(label or "unknown" for label in self.labels or ())


def rows_of(labels: Sequence[str]) -> list[Row]:
    """Return a row for each label; scores and labels are the same in every table of a size."""
    draw = np.random.default_rng(len(labels))
    target = draw.permutation(np.arange(len(labels)) % 2)
    score = np.clip(0.3 * target + 0.7 * draw.random(len(labels)), 0.001, 0.999).round(3)
    x = draw.normal(size=len(labels)).round(3)
    return [
        [label, float(x[i]), int(target[i]), float(score[i]), int(score[i] > 0.5)]
        for i, label in enumerate(labels)
    ]


def delimited(
    rows: Sequence[Row], header: Sequence[str] = HEADER, *, ends: str = "\r\n", sign: str = ","
) -> str:
    """Return a table as delimited text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=ends, delimiter=sign)
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _bytes(name: str, content: bytes, folder: Path) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _parquet(columns: Mapping[str, Any], folder: Path) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    path = folder / "table.parquet"
    parquet.write_table(pa.table(dict(columns)), path)
    return path


def labelled(name: str, *labels: str, rows: int = ROWS, **more: Any) -> Case:
    """Return a case of these labels in turn."""
    each = [labels[i % len(labels)] for i in range(rows)]
    content = delimited(rows_of(each)).encode()
    return Case(name, partial(_bytes, "table.csv", content), each, **more)


Refused = str | Mapping[str, str]


def text(
    name: str, content: bytes, refused: Refused = "", file: str = "table.csv", **more: Any
) -> Case:
    """Return a case of a file with this content; it has the labels a and b if it is taken."""
    return Case(name, partial(_bytes, file, content), *_expected(refused), **more)


def _expected(
    refused: Refused, labels: Sequence[str] | None = None
) -> tuple[Sequence[str] | None, Mapping[str, str]]:
    if isinstance(refused, str):
        refused = {"": refused} if refused else {}
    every = "" in refused or {"run", "audit"} <= set(refused)
    return (None if every else labels or _AB), refused


def headed(name: str, *added: str, refused: Refused = "", **more: Any) -> Case:
    """Return a case of further columns of these names, with numbers."""
    wide = [[*row, *(i + j for j in range(len(added)))] for i, row in enumerate(rows_of(_AB))]
    return text(name, delimited(wide, [*HEADER, *added]).encode(), refused, **more)


def columns(
    name: str,
    group: Any,
    refused: Refused = "",
    labels: Sequence[str] | None = None,
    added: Mapping[str, Any] = MappingProxyType({}),
) -> Case:
    """Return a case of a Parquet file with these groups."""

    def write(folder: Path) -> Path:
        values = group() if callable(group) else group
        return _parquet({**_COLUMNS, "group": values, **added}, folder)

    return Case(name, write, *_expected(refused, labels))


_AB = tuple("ab"[i % 2] for i in range(ROWS))
_STANDARD = delimited(rows_of(_AB))
_PLAIN = _STANDARD.encode()
_COLUMNS: dict[str, Any] = {
    name: [row[i] for row in rows_of(_AB)] for i, name in enumerate(HEADER) if i
}
_ACCENT, _APART = "caf\u00e9", "cafe\u0301"  # one sign, and a letter with an accent behind it
_LONG = "long " * 2000


def _changed(column: str, value: Any, at: int | None = None) -> bytes:
    """Return the plain table with another value in one row, or in all."""
    rows, place = rows_of(_AB), HEADER.index(column)
    for row in rows if at is None else [rows[at]]:
        row[place] = value
    return delimited(rows).encode()


def _loop(folder: Path) -> Path:
    path = folder / "table.csv"
    path.symlink_to(path)
    return path


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / "table.csv")
    return folder / "table.csv"


def _folder(folder: Path) -> Path:
    (folder / "table.csv").mkdir()
    return folder / "table.csv"


def _declared(folder: Path) -> Path:
    """Write a small Parquet file whose columns unfold to gigabytes."""
    import pyarrow as pa

    zeros = pa.DictionaryArray.from_arrays(np.zeros(5_000_000, np.int32), ["x" * 100])
    return _parquet(dict.fromkeys(HEADER, zeros), folder)


def _duplicates(folder: Path) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    arrays = [pa.array(_AB), pa.array(_AB), *(pa.array(column) for column in _COLUMNS.values())]
    path = folder / "table.parquet"
    parquet.write_table(pa.Table.from_arrays(arrays, ["group", "group", *_COLUMNS]), path)
    return path


def _dictionary() -> Any:
    import pyarrow as pa

    return pa.array(_AB).dictionary_encode()


LABELS = (
    labelled("square brackets", "[unknown]", "[/red]", "[bold]x[/bold]"),
    labelled("escape sequences", "\x1b[31mred", "\x1b[2J\x1b[H", "\x9b31m", "\x07bell"),
    labelled("writing turned round", "\u202egnirts", "\u2066a\u2069", "\u200fb", "abc"),
    labelled("marks without width", "a\u200bb", "ab", "\ufeffab", "a\u00adb"),
    labelled("script", f"<script>{HACK}</script>", "</script><script>alert(1)</script>", "<b>"),
    labelled(
        "markup",
        f'"><img src=x onerror="{HACK}">',
        f"'><svg/onload={HACK}>",
        f"</table></body><body onload={HACK}>",
        "<!-- ",
    ),
    labelled("markup that was escaped", "&lt;script&gt;", "&amp;", "&", "&#60;"),
    labelled("places that are scripts", f"javascript:{HACK}", "data:text/html,<script>1</script>"),
    labelled("style", "</style><style>*{display:none}</style>", "expression(alert(1))", "}"),
    labelled("templates", "{{ 7*7 }}", "{% raw %}", "${jndi:ldap://x}", "${oc.env:HOME}", "%(x)s"),
    labelled("formulas", "=cmd|' /C calc'!A0", "+1", "@x", "-2+3", "=1+1", "'=1"),
    labelled("LaTeX", "\\input{/etc/passwd}", "$x_1^2$", "$", "50 %", "a & b", "~#{}"),
    labelled("Markdown", "**a**", "| b |", "`c`", "[d](http://e)", "# f", "![](x)"),
    labelled("emoji", "\U0001f600", "\U0001f469\u200d\U0001f52c", "\U0001f1e8\U0001f1ed"),
    labelled("ends of lines", "a\nb", "a\r\nb", "a\rb", "a b"),
    labelled("tabs and blanks", "a\tb", "a b", "a  b", "a\u00a0b", "a\u2003b"),
    labelled("blanks around", "a", "a ", " a", "a\t"),
    labelled("nothing but blanks", " ", "  ", "a"),
    labelled("quotation marks", 'say "a"', "'b'", '"', '""', "`"),
    labelled("case", "Male", "male", "MALE"),
    labelled("normal forms", _ACCENT, _APART),
    labelled("forms of one letter", "\ufb01ne", "fine", "\uff21", "A", "\u0410"),
    labelled("names of nothing", "nan", "None", "NA", "null", "", "N/A"),
    labelled("unknown and missing", "unknown", "", "a"),
    labelled("truths", "True", "true", "TRUE", "False"),
    labelled("numbers as texts", "01", "1", "1.0", "1e0", "+1"),
    labelled("numbers that are none", "inf", "-inf", "1e999", "0x1"),
    labelled("large numbers", "9007199254740993", "9007199254740992", "1" * 40),
    labelled("huge labels", _LONG + "a", _LONG + "b"),
    labelled("combinations", "a x b", "a", "x", "b x c"),
    labelled("commas and semicolons", "a,b", "a;b", "a", "b"),
    labelled("names of this project", "everyone", "all", "ok", "group", "score", "ALL"),
    labelled("paths", "../../etc/passwd", "/", "C:\\x", "~", "."),
    labelled("other signs of no width", "\u3164", "\u2800", "\u115f", "a"),
    labelled("accents without end", "a" + "\u0301" * 200, "a"),
    labelled("letters of the right", "\u05d0\u05d1", "\u0627\u0628", "a"),
    labelled("private and unused signs", "\ue000", "\U000e0041", "\ufffe", "a"),
    text("a byte of value 0", _changed("group", "a\0"), "holds a byte of value 0"),
    text("a byte of value 0 at an end", _changed("group", "a\0", 3), "holds a byte of value 0"),
)
HEADERS = (
    headed("a header twice", "x", "x"),
    headed("the groups' header twice", "group", refused="2 columns are named 'group'"),
    headed("an empty header", "", ""),
    headed("headers in other letters", "\u5e74\u9f84", "\u00e9\u0301", "\U0001f600"),
    headed("a header of 200,000 signs", "h" * 200_000, refused="the header cannot be read"),
    headed("long headers", "h" * 10_000, "i" * 10_000),
    headed("brackets and markup in headers", "[x]", "<b>", "a]b", "{c}", "d=e", 'say "f"'),
    headed("lines in a header", "a\nb", "c\td"),
    headed("headers of our own columns", "value", "n", "status", "reason", "metric", "target",
           "row", "fold", "prediction.1", "uncertainty"),
    headed("formulas in headers", "=1+1", "@a"),
    headed("headers with blanks around", " y ", "z "),
    headed("2,000 columns", *(f"c{i}" for i in range(2000))),
    text("a group called score", delimited(rows_of(_AB), ["n", "x", "label", "score", "prediction"])
         .encode(), group="n"),
    text("a group called in brackets",
         delimited(rows_of(_AB), ["[g] <i>", *HEADER[1:]]).encode(), group="[g] <i>"),
    text("a group called target",
         delimited(rows_of(_AB), ["target", *HEADER[1:]]).encode(), group="target"),
    text("a group called row",
         delimited(rows_of(_AB), ["row", *HEADER[1:]]).encode(), group="row"),
    text("a group called as a metric",
         delimited(rows_of(_AB), ["status", *HEADER[1:]]).encode(), group="status"),
)  # fmt: skip
_MANY = tuple(f"g{i % 300:03}" for i in range(900))
SIZES = (
    text("no byte", b"", "no header line"),
    text("blank lines alone", b"\n\r\n\n", "no header line"),
    text("a header alone", (",".join(HEADER) + "\n").encode(), "no rows"),
    labelled("one row", "a", rows=1, refused={"run": "", "audit": "holds 1 different values"}),
    labelled("one group", "a", refused={"audit": "holds 1 different values"}),
    Case("every row a group", partial(_bytes, "table.csv", delimited(
        rows_of([f"p{i}" for i in range(ROWS)])).encode()), [f"p{i}" for i in range(ROWS)],
        {"audit": "holds 60 different values"}),
    Case("300 groups", partial(_bytes, "table.csv", delimited(rows_of(_MANY)).encode()), _MANY),
    labelled("no label anywhere", "", refused={"run": "has no value", "audit": "('unknown')"}),
    text("constant scores", _changed("score", 0.5), score=0.5),
    text("scores above 1", _changed("score", 1.5, 7), {"audit": "row 8: '1.5' is not a prob"}),
    text("scores that are not a number", _changed("score", "nan", 7),
         {"audit": "row 8: 'nan' is no number"}),
    text("infinite scores", _changed("score", "inf", 7),
         {"run": "row 8: 'inf' is no number", "audit": "row 8: 'inf' is no number"}),
    text("missing scores", _changed("score", "", 7), {"audit": "row 8: '' is no number"}),
    text("constant labels", _changed("label", 1), {"run": "a binary target"}),
    text("labels of three kinds", _changed("label", 2, 7),
         {"run": "a binary target", "audit": "row 8: '2' is not"}),
    text("a label that is missing", _changed("label", "", 7),
         {"run": "target 'label' is missing in row 8"}),
    text("a number of 400 digits", _changed("x", "9" * 400, 7), {"run": "is no number"}),
    text("a feature without values", _changed("x", "")),
    text("a feature with a text among numbers", _changed("x", "<b>", 7),
         {"run": "row 8: '<b>' is no number"}),
)  # fmt: skip
_ONE_GB = {"FAIRBENCH_MAX_MEMORY": "1"}
_WIDE = delimited([[*row, "0," + "5" * 3] for row in rows_of(_AB)], [*HEADER, "y"]).encode()
ENCODINGS = (
    text("a byte-order mark", b"\xef\xbb\xbf" + _PLAIN),
    text("UTF-16", _STANDARD.encode("utf-16")),
    text("UTF-16 without a mark", _STANDARD.encode("utf-16-le")),
    Case("Latin-1", partial(_bytes, "table.csv", delimited(
        rows_of([_ACCENT, "a"] * 30)).encode("latin-1")), [_ACCENT, "a"] * 30),
    text("two encodings", _changed("group", _ACCENT, 3) + _ACCENT.encode("latin-1")
         + b",1,1,0.5,1\n", "(line 62, byte"),
    text("bytes that are no text", _PLAIN.replace(b"a,", b"\xff\x81,", 1), "(line 2, byte"),
    text("bytes of a program", _PLAIN.replace(b"a,", b"\xff\x01,", 1), "bytes that no text has"),
    labelled("UTF-7", "+ADw-script+AD4-", "a"),
    text("lines end in CR", delimited(rows_of(_AB), ends="\r").encode()),
    text("lines end in LF", delimited(rows_of(_AB), ends="\n").encode()),
    text("ends of lines of each kind",
         _PLAIN.replace(b"\r\n", b"\r", 9).replace(b"\r\n", b"\n", 9)),
    text("blank lines between rows", _PLAIN.replace(b"\r\n", b"\r\n\r\n")),
    text("semicolons", delimited(rows_of(_AB), sign=";").encode()),
    text("tabs", delimited(rows_of(_AB), sign="\t").encode()),
    text("tabs, in a .tsv", delimited(rows_of(_AB), sign="\t").encode(), file="table.tsv"),
    text("decimal commas", _WIDE),
    text("a row too short", _PLAIN + b"a,1\r\n", "row 61 has 2 fields"),
    text("a row too long", _PLAIN + b"a,1,1,0.5,1,2\r\n", "row 61 has 6 fields"),
    text("a quotation mark that stays open", _PLAIN.replace(b"a,", b'"a,', 1),
         "row 1 has 1 fields"),
    text("quotation marks around labels", _PLAIN.replace(b"a,", b'"a",')),
    text("a bomb of gzip", gzip.compress(bytes(50_000_000)), "holds a byte of value 0"),
    text("packed with gzip", gzip.compress(_PLAIN), file="table.csv.gz"),
    text("packed, and not whole", gzip.compress(_PLAIN)[:-20], "damaged or not whole"),
    text("a spreadsheet", b"PK\x03\x04" + bytes(99), "no Excel file", file="table.xlsx"),
    text("a web page", b"<!doctype html><title>403</title>",
         "a web page", file="table.html"),
    text("Parquet that is text", _PLAIN, file="table.parquet"),
    text("text that is Parquet", b"PAR1\x15\x04" + bytes(9), "not a table in Parquet"),
    text("a million columns", b"a," * 1_000_000 + b"b\n", "are allowed", environment=_ONE_GB),
    Case("a Parquet file that unfolds", _declared, refused={"": "are allowed"},
         environment=_ONE_GB),
    Case("two columns of one name", _duplicates, refused={"": "2 columns are named 'group'"}),
    columns("groups that are lists", [[each] for each in _AB], "is of type list"),
    columns("groups that are records", [{"a": {"b": [each]}} for each in _AB], "is of type struct"),
    columns("groups that are bytes", [b"\xff"] * ROWS, "has no text in each row"),
    columns("a dictionary", _dictionary),
    columns("decimals", [Decimal(each) for each in ["1.0", "2.50"] * 30],
            labels=["1.00", "2.50"] * 30),
    columns("dates", [date(2020, 1, 1 + i % 2) for i in range(ROWS)],
            labels=["2020-01-01", "2020-01-02"] * 30),
    columns("dates among features", list(_AB),
            added={"when": [date(2020, 1, 1 + i % 28) for i in range(ROWS)]},
            refused={"run": "dates, names and free texts are no categories"}),
    columns("times among features", list(_AB),
            added={"when": [datetime(2020, 1, 1 + i % 28) for i in range(ROWS)]},
            refused={"run": "dates, names and free texts are no categories"}),
    columns("whole numbers, some missing", [1, 2, None] * 20, labels=["1", "2", ""] * 20),
    columns("numbers, some missing", [1.0, 2.5, None] * 20, labels=["1", "2.5", ""] * 20),
    columns("truths, some missing", [True, False, None] * 20, labels=["True", "False", ""] * 20),
    columns("empty and missing", ["", None, "a"] * 20, labels=["", "", "a"] * 20),
    columns("labels that end in a byte of value 0", ["a", "a\0"] * 30,
            "holds a byte of value 0 in a text"),
    columns("script in Parquet", ["<script>", "[/x]"] * 30, labels=["<script>", "[/x]"] * 30),
)  # fmt: skip
FILES = (
    Case("a folder", _folder, refused={"run": "no file", "audit": "is not a file"}),
    Case("a pipe", _fifo, refused={"run": "no file", "audit": "is not a file"}),
    Case("a link to itself", _loop, refused={"run": "no file", "audit": "is not a file"}),
    Case("a name that is too long", lambda folder: folder / f"{'n' * 300}.csv",
         refused={"": "name too long"}),
    text("a name with signs", _PLAIN, file="[red] <b>\x1b[31m $x$.csv"),
    text("a name that is no text", _PLAIN, {"run": "the name of the file is no text"},
         file=os.fsdecode(b"\xff.csv")),
    text("a name as an option", _PLAIN, file="a=b.csv"),
)  # fmt: skip
CASES = (*LABELS, *HEADERS, *SIZES, *ENCODINGS, *FILES)
