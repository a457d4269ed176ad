"""The summary of a run as text: what is written value by value is what a CSV writer writes."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fairbench.core.formats import csv_text
from fairbench.results.run_writer import summary_text

LABELS = [
    "",
    "a",
    "a,b",
    'say "so"',
    "two\nlines",
    "=A1+1",
    "'=quoted",
    "-2",
    "NA",
    "nan",
    "é ☃",
    None,
]
NUMBERS = [0.0, -0.0, 1.0, -3.0, 1e-5, 1e-4, 0.1, 1e9, 1e16, np.inf, 5e-324, np.nan]
COLUMNS = {
    "label": LABELS,
    "kind": pd.Categorical([*LABELS[:3], None] * 3),
    "=number": NUMBERS,
    "n": range(12),
    "bins": pd.array([15, None, 2] * 4, "Int64"),
    "nothing": np.nan,
    "none": pd.Series([None] * 12, dtype=object),
    "no kind": pd.Categorical([None] * 12, []),
}


def written(table):
    return summary_text(pa.Table.from_pandas(table, preserve_index=False))


@pytest.mark.parametrize("rows", [12, 1, 0])
def test_all_kinds_of_columns_are_written_as_csv(rows):
    table = pd.DataFrame(COLUMNS).iloc[:rows]
    assert written(table) == csv_text(table)


def test_texts_with_carriage_returns_are_all_in_quotation_marks():
    table = pd.DataFrame(COLUMNS).assign(label=["\r", *LABELS[1:]])
    assert written(table) == csv_text(table)


@pytest.mark.parametrize("seed", range(3))
def test_every_number_is_written_with_all_its_digits(seed):
    draw = np.random.default_rng(seed)
    any_bits = draw.integers(0, 2**63, 20_000).view(np.float64)
    shares = draw.integers(0, 1000, 20_000) / draw.integers(1, 1000, 20_000)
    sizes = np.exp(draw.normal(0, 10, 20_000)) * draw.choice([-1, 1], 20_000)
    for values in (any_bits, shares, sizes, draw.random(20_000).round(4)):
        numbers = pd.DataFrame({"number": values, "text": "a"})
        assert written(numbers) == csv_text(numbers)
