"""The raw files of the data sets, of which ``raw_files.csv`` beside this file says where each is.

Each has the checksum and the size of its uncompressed content, the address that it is downloaded
from, the page that a person would look at, and of a zip archive the file inside.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from fairbench.data.dataset import Source


@cache
def _raw_files() -> dict[str, Source]:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as table:
        return {
            row["path"]: Source(
                row["path"],
                row["sha256"],
                (row["url"],) if row["url"] else (),
                row["page"],
                row["member"],
                int(row["size"]),
            )
            for row in csv.DictReader(table)
        }


def raw_file(path: str) -> Source:
    """Return the raw file that lies at a place under a search folder."""
    return _raw_files()[path]
