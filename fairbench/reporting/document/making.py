"""The record of how a document was made: when, from which file, by which command."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from fairbench.core import VERSION
from fairbench.core.files import file_sha256
from fairbench.core.processes import source_date
from fairbench.reporting.document.model import Made


def made_from(path: Path, seed: int) -> Made:
    """Return how this document is made: from a file, a run or a table in memory.

    ``SOURCE_DATE_EPOCH`` says what time it is, where it is set: the same document is then written
    to the last byte when it is made again.

    Parameters
    ----------
    path : the path of the file. For a run or a table in memory, the last part of the path is its
        name, and there is no digest.
    """
    digest = file_sha256(path) if path.is_file() else ""
    return Made(_now().strftime("%Y-%m-%d %H:%M UTC"), VERSION, seed, path.name, digest)


def _now() -> datetime:
    epoch = source_date()
    return datetime.now(UTC) if epoch is None else datetime.fromtimestamp(epoch, UTC)
