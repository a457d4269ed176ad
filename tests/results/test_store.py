"""The store: whole cells or none, corruption found and set aside, one process at a time."""

import contextlib
import errno
import os
import select
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

from fairbench.core import files as written
from fairbench.core.errors import UserError
from fairbench.core.files import (
    atomic,
    sealed_json,
    unsealed_json,
    write_files,
    write_table,
    write_text,
)
from fairbench.results.runs import CorruptCellError, Store
from tests.harness import ROOT

ID, OTHER = "ab" * 10, "cd" * 10
COLUMNS = {
    "part": np.array([1, 2, 2], np.int8),
    "row": np.array([4, 1, 3], np.int32),
    "score": np.array([0.25, np.nan, -np.inf], np.float32),
}
NOTES = {"fit_seconds": 0.5, "train_rows": 7}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def files(store):
    return {path.name for path in store.root.rglob("*") if path.is_file()}


def test_what_was_written_is_read_with_its_types_and_notes(store):
    assert not store.has(ID)
    store.write(ID, COLUMNS, NOTES)
    assert store.has(ID)
    assert store.intact(ID)
    cell = store.read(ID)
    assert cell.notes == NOTES
    assert list(cell.columns) == list(COLUMNS)
    for name, values in COLUMNS.items():
        assert cell.columns[name].dtype == values.dtype
        np.testing.assert_array_equal(cell.columns[name], values)
    assert files(store) == {f"{ID}.parquet"}


# --- atomic


class Killed(BaseException):
    """The process ends here."""


def test_a_write_that_ends_in_the_middle_leaves_nothing(store, monkeypatch):
    def die(half, name, *, src_dir_fd, dst_dir_fd):
        assert os.stat(half, dir_fd=src_dir_fd).st_size
        raise Killed

    monkeypatch.setattr(written.os, "replace", die)
    with pytest.raises(Killed):
        store.write(ID, COLUMNS, NOTES)
    assert not store.has(ID)
    assert files(store) == set()


def test_a_write_that_ends_in_the_middle_keeps_what_was_there(store, tmp_path):
    path = tmp_path / "config.yaml"
    write_text(path, "seed: 0\n")
    with pytest.raises(Killed), atomic(path) as file:
        file.write(b"seed: 1\n and ha")
        assert path.read_text() == "seed: 0\n"
        raise Killed
    assert path.read_text() == "seed: 0\n"
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
    write_text(path, "seed: 2\n")
    assert path.read_text() == "seed: 2\n"


def test_a_cell_that_the_disk_refuses_late_is_not_kept(store, monkeypatch):
    def refuse(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(written, "_to_disk", refuse)
    with pytest.raises(OSError, match=ID):
        store.write(ID, COLUMNS, NOTES)
    assert files(store) == set()


def test_files_of_a_folder_are_whole_and_on_the_disk_together(tmp_path, monkeypatch):
    synchronised = []
    monkeypatch.setattr(written, "_to_disk", lambda handle: synchronised.append(os.read(handle, 9)))
    write_files(tmp_path / "run", {"a": b"1", "b": b"2"})
    assert synchronised == [b"1", b"2"]
    assert {path.name for path in tmp_path.glob("run/*")} == {"a", "b"}


def test_half_a_file_left_by_a_killed_process_is_no_cell(store):
    store.write(ID, COLUMNS, NOTES)
    whole = store.cell_path(ID)
    half = whole.with_name(f".{whole.name}.12345.tmp")
    half.write_bytes(whole.read_bytes()[:100])
    whole.unlink()
    assert not store.has(ID)
    assert not store.intact(ID)


# --- corruption


def corrupt(store, change):
    store.write(ID, COLUMNS, NOTES)
    path = store.cell_path(ID)
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: b"\0" * len(content),
    ],
    ids=["empty", "half", "one byte short", "zeros"],
)
def test_a_corrupt_cell_is_found_and_set_aside(store, change, capsys):
    path = corrupt(store, change)
    content = path.read_bytes()
    with pytest.raises(CorruptCellError, match=ID):
        store.read(ID)
    assert not store.intact(ID)
    assert not path.exists()
    (aside,) = [path for path in path.parent.iterdir() if written.is_aside(path.name)]
    assert aside.read_bytes() == content
    assert capsys.readouterr().err.startswith(f"{path} is not as it was written: set aside as ")
    store.write(ID, COLUMNS, NOTES)
    assert store.intact(ID)


@pytest.mark.parametrize(
    "metadata",
    [None, b"", b"[]", b"{}", b'{"id": "x"}', b"null", b"\xff", b'{"id": 1, "notes": 2}'],
)
def test_a_parquet_file_that_is_no_cell_is_corrupt(store, metadata):
    store.write(ID, COLUMNS, NOTES)
    path = store.cell_path(ID)
    table = pq.read_table(path)
    write_table(path, table.replace_schema_metadata(metadata and {b"fairbench": metadata}))
    with pytest.raises(CorruptCellError, match=ID):
        store.read(ID)
    assert not store.intact(ID)


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_anywhere_is_found(store, seed):
    draw = np.random.default_rng(seed)
    store.write(ID, COLUMNS, NOTES)
    path = store.cell_path(ID)
    content = path.read_bytes()
    for position in draw.integers(len(content), size=150):
        changed = bytearray(content)
        changed[position] ^= 1 << draw.integers(8)
        path.write_bytes(changed)
        with pytest.raises(CorruptCellError):
            store.read(ID)


def test_a_cell_under_another_cells_name_is_corrupt(store):
    store.write(ID, COLUMNS, NOTES)
    path = store.cell_path(OTHER)
    path.parent.mkdir(parents=True)
    path.write_bytes(store.cell_path(ID).read_bytes())
    with pytest.raises(CorruptCellError, match="the content is another cell's"):
        store.read(OTHER)
    assert not store.intact(OTHER)
    assert store.intact(ID)


def test_a_missing_cell_cannot_be_read(store):
    with pytest.raises(CorruptCellError, match=ID):
        store.read(ID)
    assert not store.intact(ID)


def test_a_seal_covers_every_bit_of_a_text():
    text = sealed_json({"a": 1, "b": "fairbench-sha256:"}).encode()
    assert unsealed_json(text) == {"a": 1, "b": "fairbench-sha256:"}
    for position in range(8 * len(text)):
        changed = bytearray(text)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(written.DamagedError):
            unsealed_json(bytes(changed))


# --- locks

HOLD = """
import sys
from pathlib import Path
from fairbench.results.runs import Store
with Store(Path(sys.argv[1])).lock(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextlib.contextmanager
def holder(store, cell_id):
    """Start a process that says when it holds the lock, and frees it when told to."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(store.root), cell_id],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            process.kill()


def says_something(process, seconds):
    return bool(select.select([process.stdout], [], [], seconds)[0])


@pytest.mark.thorough
@pytest.mark.parametrize("end", ["freed", "killed"])
def test_a_lock_is_one_processs_alone_until_it_ends(store, end):
    with holder(store, ID) as first, holder(store, OTHER) as elsewhere:
        assert first.stdout.readline() == "held\n"
        assert elsewhere.stdout.readline() == "held\n"  # another cell's is free
        with holder(store, ID) as second:
            # By the time a third process, started later, holds a free lock, it has tried.
            with holder(store, "ef" * 10) as third:
                assert third.stdout.readline() == "held\n"
            assert not says_something(second, 0.3)
            if end == "freed":
                first.stdin.write("\n")
                first.stdin.flush()
            else:
                first.kill()
            assert says_something(second, 30)
            assert second.stdout.readline() == "held\n"


def test_a_lock_leaves_no_file_and_is_freed_by_an_error(store):
    with store.lock(ID):
        assert files(store) == {f"{ID}.lock"}
    assert files(store) == set()
    with pytest.raises(Killed), store.lock(ID):
        raise Killed
    with store.lock(ID):
        pass
    assert files(store) == set()


# --- folders


def test_a_folder_that_cannot_be_made_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "results").write_text("a file where the folder should be")
    store = Store(tmp_path / "results")
    with pytest.raises(UserError) as refusal, store.lock(ID):
        pass
    assert str(refusal.value).startswith(f"results cannot be kept: {tmp_path / 'results'}")
    assert "\n" not in str(refusal.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_refused_in_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="Permission denied"), Store(tmp_path / "results").lock(ID):
        pass
