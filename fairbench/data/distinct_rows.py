"""The distinct rows of a large Parquet file, and how often each comes, read batch by batch.

Whatever depends on counts alone (rates by group, gaps, ratios) is the same of these rows, each with
its number, as of all rows. A hundred million rows of a few columns with few values are a few dozen
distinct rows, so that the memory needed depends on a batch, and not on the file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.files import check_parquet, is_text
from fairbench.data.delimited import as_texts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

Times = NDArray[np.int64]

MANY_ROWS = 5_000_000  # fewer rows are read like any other table, which takes seconds
MOST_DISTINCT = 100_000  # rows, and values of a column; more are not counted here
_BATCH = 1 << 20
_TIMES = "times"


def times_of(frame: pd.DataFrame) -> Times | None:
    """Return how often each row of a table occurs, (n,); None if no row is repeated."""
    times = frame.attrs.get(_TIMES)
    return None if times is None else np.array(times, np.int64)


def tally(codes: NDArray[np.integer], times: Times | None = None, *, least: int = 0) -> Times:
    """Return how often each code comes (K,), K being `least` at least.

    Parameters
    ----------
    codes : (n,) from 0.
    times : (n,) how often each row comes; once by default.
    """
    counts: Times = np.bincount(codes, times, minlength=least).astype(np.int64)
    return counts  # sums of whole numbers are exact in floats up to 2**53


def distinct_rows(path: Path, columns: Sequence[str]) -> pd.DataFrame | None:
    """Return the distinct rows of a Parquet file as strings, in the order of their first rows.

    The index is the number of the first such row; :func:`times_of` returns how often each occurs.

    Parameters
    ----------
    columns : the columns that are read.

    Returns
    -------
    None where there are more than :data:`MOST_DISTINCT` of them.

    Raises
    ------
    UserError : a part of it takes more memory than is allowed, or a column has no text in each row.
    ArrowException, OSError : it is not such a file.
    """
    from pyarrow import OSFile
    from pyarrow.parquet import ParquetFile

    counter = _Counter(path.name, list(columns))
    with open(path, "rb") as raw, OSFile(os.fsencode(path)) as source:

        def part(first: int, size: int) -> bytes:
            return os.pread(raw.fileno(), size, first)

        with ParquetFile(source) as file:
            texts = [field.name for field in file.schema_arrow if is_text(field)]
            for group in range(file.metadata.num_row_groups):
                long = check_parquet(file, part, path.name, columns=columns, groups=[group])
                if any(text.prefixed for text in long.values()):
                    return None  # Arrow makes no dictionaries of this type: every value is stored
            metadata = file.metadata
        with ParquetFile(source, metadata=metadata, read_dictionary=texts) as file:
            return counter.frame() if counter.read(file) else None


class _Counter:
    """Counts the distinct rows of batches."""

    def __init__(self, file: str, columns: list[str]) -> None:
        self.file, self.columns = file, columns
        self.values: list[dict[str, int]] = [{} for _ in columns]  # text -> code, of each column
        self.rows: dict[tuple[int, ...], int] = {}  # codes of a distinct row -> its index
        self.first: list[int] = []
        self.times: list[int] = []
        self.read_so_far = 0

    def read(self, file: ParquetFile) -> bool:
        """Count all batches of a file; return whether there are few enough distinct rows."""
        return all(map(self.count, file.iter_batches(_BATCH, columns=self.columns)))

    def count(self, batch: pa.RecordBatch) -> bool:
        """Count a batch of rows; return whether there are few enough distinct ones so far."""
        cell = np.zeros(len(batch), np.int64)
        codes_of_columns: list[
            NDArray[np.int64]
        ] = []  # of each column: codes of the values of this batch
        for column_index, name in enumerate(self.columns):
            codes, of_batch = self._codes(batch.column(name), column_index)
            if len(self.values[column_index]) > MOST_DISTINCT:
                return False
            cell *= len(of_batch)
            cell += codes
            codes_of_columns.append(of_batch)
        size = int(np.prod([len(of_batch) for of_batch in codes_of_columns], dtype=np.float64))
        if size <= 4 * MOST_DISTINCT:
            numbers = np.bincount(cell, minlength=size)
            present = np.flatnonzero(numbers)
            numbers = numbers[present]
        else:
            present, numbers = np.unique(cell, return_counts=True)
        if len(present) > MOST_DISTINCT:
            return False
        self._add(cell, present, numbers, codes_of_columns)
        self.read_so_far += len(batch)
        return len(self.rows) <= MOST_DISTINCT

    def _codes(
        self, column: pa.Array, column_index: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return a code for each row of the batch, and what these codes are in the whole file."""
        import pyarrow as pa

        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        table = pa.table({self.columns[column_index]: column.dictionary})
        # Texts as any table has them; the last is of rows without a value.
        texts = [*as_texts(table, self.file)[self.columns[column_index]], ""]
        code_of_text = self.values[column_index]
        file_codes = np.array(
            [code_of_text.setdefault(str(text), len(code_of_text)) for text in texts], np.int64
        )
        codes = column.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
        return codes, file_codes

    def _add(
        self,
        cell: NDArray[np.int64],
        present: NDArray[np.int64],
        numbers: NDArray[np.int64],
        codes_of_columns: Sequence[NDArray[np.int64]],
    ) -> None:
        """Count the distinct rows of a batch, and note where new ones were first seen.

        Parameters
        ----------
        cell : (n,) the number of each row's combination of values.
        present, numbers : the combinations that occur, and how often each.
        codes_of_columns : for each column, the codes of its values in this batch.
        """
        parts = np.unravel_index(present, [len(of_batch) for of_batch in codes_of_columns])
        codes = np.stack(
            [
                column_codes[part]
                for column_codes, part in zip(codes_of_columns, parts, strict=True)
            ],
            axis=-1,
        )
        new: dict[int, int] = {}
        for cell_code, number, key in zip(
            present.tolist(), numbers.tolist(), map(tuple, codes.tolist()), strict=True
        ):
            if key not in self.rows:
                self.rows[key] = len(self.rows)
                self.first.append(-1)
                self.times.append(0)
            distinct_index = self.rows[key]
            self.times[distinct_index] += number
            if self.first[distinct_index] < 0 or self.first[distinct_index] >= self.read_so_far:
                new[cell_code] = distinct_index
        for cell_code, distinct_index in new.items():
            first_row = self.read_so_far + int((cell == cell_code).argmax())
            before = self.first[distinct_index]
            self.first[distinct_index] = first_row if before < 0 else min(before, first_row)

    def frame(self) -> pd.DataFrame:
        """Return the distinct rows as strings."""
        order = np.argsort(self.first, kind="stable")
        codes = np.array(list(self.rows), np.int64).reshape(len(self.rows), len(self.columns))[
            order
        ]
        columns = {
            name: np.array(list(self.values[column_index]), object)[codes[:, column_index]]
            for column_index, name in enumerate(self.columns)
        }
        frame = pd.DataFrame(columns, index=np.array(self.first, np.int64)[order], dtype=str)
        frame.attrs[_TIMES] = np.array(self.times, np.int64)[order].tolist()
        return frame
