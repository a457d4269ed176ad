"""Texts of other people's data are shown as they are: no program obeys them."""

import pandas as pd
import pytest

from fairbench.core.formats import csv_text, read_csv, visible

LABELS = (
    "[unknown]", "[/red]", "\x1b[31mred\x1b[0m", "\u202eabc", "=cmd|' /C calc'!A0", "+SUM(A1)",
    "@SUM(A1)", "-2+3", "'=quoted", "''@twice", "a\nb", "a,b", '"', "-2", "+1.5", "é \u00a0☃", "'",
    " =1", "\t @A1", "'\u2003=1", "\u200b=1", "\\x1b", "a\\\\b\x1b\\", "\\\\host\\u0001",
    "C:\\new", "a\n\\b", "\U000e0001",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("é \u00a0☃", "é \u00a0☃"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\u202eabc", "\\u202eabc"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("a\u200bb", "a\\u200bb"),
    ],
)
def test_signs_that_would_be_obeyed_are_shown_as_their_codes(text, shown):
    assert visible(text) == shown


def test_lines_stay_where_a_text_has_some():
    assert visible("a\nb\rc", lines=True) == "a\nb\\rc"


def test_a_spreadsheet_computes_nothing_and_every_text_comes_back(tmp_path):
    table = pd.DataFrame({"group": LABELS, "value": range(len(LABELS)), "=a": 0.5})
    text = csv_text(table)
    for line in text.splitlines()[1:]:
        assert line.strip()[:1] not in ("=", "@") and not line.startswith(("+S", "-2+"))
    assert visible(text.replace("\t", ""), lines=True) == text.replace("\t", "")
    assert text.startswith("group,value,'=a\n")
    (tmp_path / "t.csv").write_text(text)
    pd.testing.assert_frame_equal(read_csv(tmp_path / "t.csv"), table, check_dtype=False)


def test_numbers_are_no_formulas():
    assert csv_text(pd.DataFrame({"group": ["-2", "+1.5"], "value": [-1.0, 2.0]})) == (
        "group,value\n-2,-1.0\n+1.5,2.0\n"
    )
