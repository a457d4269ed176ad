"""What leads out of a folder is not followed, and what has no end is not read."""

import os
import socket

import numpy as np
import pyarrow as pa
import pytest

from fairbench.core.door import StrangeFileError, check_folder, guard, is_file, names_in, read_bytes
from fairbench.core.errors import UserError
from fairbench.core.files import parquet_bytes, read_parquet, write_text
from fairbench.core.locks import alone, locked, using, working


@pytest.fixture
def folder(tmp_path):
    """Return a guarded folder, and one beside it that is somebody's own."""
    results, outside = tmp_path / "results", tmp_path / "outside"
    for place in (results / "runs", outside):
        place.mkdir(parents=True)
    for name in ("poetry.lock", "index.html"):
        (outside / name).write_text("mine")
    guard(results)
    return results


def outside(folder):
    return {path.name: path.read_text() for path in (folder.parent / "outside").iterdir()}


UNTOUCHED = {"poetry.lock": "mine", "index.html": "mine"}


def strange(folder, kind):
    """Make a file of a kind that is never read, and return its path."""
    path = folder / "file"
    if kind == "link":
        path.symlink_to(folder.parent / "outside" / "index.html")
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 200 << 30)
    return path


@pytest.mark.parametrize("kind", ["link", "endless", "pipe", "socket", "folder", "sparse"])
@pytest.mark.timeout(10)
def test_only_a_regular_file_of_a_size_is_read(kind, folder):
    path = strange(folder, kind)
    with pytest.raises(OSError, match="link|regular|directory|200|214,748,364,800"):
        read_bytes(path)
    assert is_file(path) == (kind == "sparse")


def test_a_link_to_a_folder_is_not_followed_below_a_guarded_one(folder):
    (folder / "runs" / "one").symlink_to(folder.parent / "outside")
    with pytest.raises(StrangeFileError, match="not followed"):
        read_bytes(folder / "runs" / "one" / "index.html")
    with pytest.raises(StrangeFileError, match="not followed"):
        check_folder(folder / "runs" / "one")
    assert not is_file(folder / "runs" / "one" / "index.html")
    assert names_in(folder / "runs") == ([], [])


def test_a_guarded_folder_may_be_a_link_itself(folder):
    own = folder.with_name("own")
    own.symlink_to(folder)
    guard(own)
    (folder / "runs" / "record").write_text("text")
    assert read_bytes(own / "runs" / "record") == b"text"
    assert names_in(own / "runs") == (["record"], [])


def test_nothing_is_written_where_a_link_leads(folder):
    (folder / "report").symlink_to(folder.parent / "outside")
    with pytest.raises(OSError, match="not followed"):
        write_text(folder / "report" / "index.html", "ours")
    assert outside(folder) == UNTOUCHED


def test_a_link_is_replaced_and_what_it_leads_to_stays(folder):
    (folder / "index.json").symlink_to(folder.parent / "outside" / "index.html")
    write_text(folder / "index.json", "ours")
    assert (folder / "index.json").read_text() == "ours"
    assert outside(folder) == UNTOUCHED


@pytest.mark.parametrize(
    "columns",
    [
        {"row": pa.array(np.zeros(30_000_000, np.int8))},
        {"text": pa.array(["x" * 200_000] * 10_000)},
    ],
    ids=["many rows", "one long text"],
)
def test_a_table_that_unfolds_is_refused_before_it_is_read(columns, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRBENCH_MAX_MEMORY", "0.5")
    content = parquet_bytes(pa.table(columns))
    assert len(content) < 3_000_000
    with pytest.raises(UserError, match="GB of memory"):
        read_parquet(content, "table.parquet")


def test_texts_that_repeat_are_read_where_there_is_room():
    table = pa.table({"text": ["x" * 1000, "y"] * 500})
    assert read_parquet(parquet_bytes(table), "table.parquet").equals(table)


@pytest.mark.parametrize("use", [using, lambda folder: alone(folder, 0.0)])
@pytest.mark.parametrize("kind", ["folder", "link", "hard link"])
def test_locks_of_others_are_neither_removed_nor_written_over(use, kind, folder):
    own, locks = folder.parent / "outside" / "poetry.lock", folder / "locks"
    if kind == "folder":
        locks.symlink_to(own.parent)
    else:
        locks.mkdir()
        (os.link if kind == "hard link" else os.symlink)(own, locks / "folder.lock")
    with pytest.raises(UserError, match="locks"), use(folder):
        pass
    assert outside(folder) == UNTOUCHED


def test_what_is_no_lock_of_ours_stays_among_the_locks(folder):
    (folder / "locks").mkdir()
    (folder / "locks" / "poetry.lock").write_text("mine")
    assert not working(folder)
    with pytest.raises(StrangeFileError, match="no lock"), locked(folder / "locks/poetry.lock"):
        pass
    assert (folder / "locks" / "poetry.lock").read_text() == "mine"
