"""The matrix of all pairs stays legible, however many runs there are."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.runs import MATRIX, ranking_document


def printed(outperforms, ranks, names=None, ids=None):
    """Return the lines of the document of all pairs, and how many matrices it has."""
    runs = len(ranks)
    names, ids = names or ["run"] * runs, ids or ["id"] * runs
    console = Console(width=100, file=StringIO())
    print_document(ranking_document(outperforms, ranks, names, ids, "all"), console)
    lines = console.file.getvalue().splitlines()
    assert MATRIX in lines
    return lines, sum(line.startswith("──") for line in lines) - 1


@pytest.mark.parametrize(("runs", "tables"), [(2, 1), (13, 1), (18, 1), (30, 2)])
def test_a_hundred_columns_hold_every_number_whole(runs, tables):
    outperforms = np.full((runs, runs), 0.995)
    lines, result = printed(outperforms, np.arange(runs))
    assert result == tables
    text = "\n".join(lines)
    assert "…" not in text
    assert text.count(">99") == runs * (runs - 1)
    assert max(map(len, lines)) <= 100


def test_rows_and_columns_are_in_the_order_of_the_ranks():
    outperforms = np.array([[np.nan, 0.002, 0.3], [0.98, np.nan, 1.0], [0.6, 0.0, np.nan]])
    lines, _ = printed(outperforms, np.array([2, 1, 2]))
    rows = [line.split() for line in lines if line.split()[:1] and line.split()[0].isdigit()]
    assert rows[-3:] == [["1", "98", "100"], ["2", "<1", "30"], ["3", "0", "60"]]


def test_ranking_names_runs_with_ties():
    ranks = np.array([2, 1, 2])
    lines, _ = printed(np.full((3, 3), 0.5), ranks, ["lr", "svm", "nb"], ["a1", "b2", "c3"])
    rows = [
        line.split()
        for line in lines
        if line.split()[-1:] and line.split()[-1] in ("a1", "b2", "c3")
    ]
    assert rows == [
        ["1", "1", "svm", "b2"], ["2=", "2", "lr", "a1"], ["2=", "3", "nb", "c3"],
    ]  # fmt: skip
