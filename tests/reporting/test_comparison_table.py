"""The matrix of all pairs stays legible, however many runs there are."""

from io import StringIO

import numpy as np
import pytest
from fairbench.reporting.comparison_table import matrix_tables, ranking_table
from rich.console import Console


def printed(table):
    console = Console(width=100, file=StringIO())
    console.print(table)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(("runs", "tables"), [(2, 1), (13, 1), (18, 1), (30, 2)])
def test_a_hundred_columns_hold_every_number_whole(runs, tables):
    outperforms = np.full((runs, runs), 0.995)
    found = [printed(table) for table in matrix_tables(outperforms, np.arange(runs), "all")]
    assert len(found) == tables
    text = "\n".join(line for lines in found for line in lines)
    assert "…" not in text
    assert text.count(">99") == runs * (runs - 1)
    assert max(len(line) for lines in found for line in lines) <= 100


def test_rows_and_columns_are_in_the_order_of_the_ranks():
    outperforms = np.array([[np.nan, 0.002, 0.3], [0.98, np.nan, 1.0], [0.6, 0.0, np.nan]])
    (table,) = matrix_tables(outperforms, np.array([2, 1, 2]), "three")
    rows = [
        line.split() for line in printed(table) if line.split()[:1] and line.split()[0].isdigit()
    ]
    assert rows[1:] == [["1", "98", "100"], ["2", "<1", "30"], ["3", "0", "60"]]


def test_ranking_names_runs_with_ties():
    table = ranking_table(np.array([2, 1, 2]), ["lr", "svm", "nb"], ["a1", "b2", "c3"], "three")
    rows = [line.split("│")[1:-1] for line in printed(table) if "│" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["1", "1", "svm", "b2"], ["2=", "2", "lr", "a1"], ["2=", "3", "nb", "c3"],
    ]  # fmt: skip
