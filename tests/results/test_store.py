"""The store: whole cells or none, corruption found and set aside, one process at a time."""

import errno
import os

import numpy as np
import pyarrow.parquet as pq
import pytest

from fairbench.core import files as written
from fairbench.core.errors import UserError
from fairbench.results.runs import CorruptCellError, Store

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


def die(half, name, *, src_dir_fd, dst_dir_fd):
    assert os.stat(half, dir_fd=src_dir_fd).st_size
    raise Killed


def refuse(handle):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("module", "name", "ends", "error"),
    [(os, "replace", die, Killed), (written, "_to_disk", refuse, OSError)],
)
def test_a_write_that_ends_in_the_middle_leaves_nothing(
    store, monkeypatch, module, name, ends, error
):
    monkeypatch.setattr(module, name, ends)
    with pytest.raises(error, match=None if error is Killed else ID):
        store.write(ID, COLUMNS, NOTES)
    assert files(store) == set()


def test_a_write_that_ends_in_the_middle_keeps_what_was_there(store, tmp_path):
    path = tmp_path / "config.yaml"
    written.write_text(path, "seed: 0\n")
    with pytest.raises(Killed), written.atomic(path) as file:
        file.write(b"seed: 1\n and ha")
        assert path.read_text() == "seed: 0\n"
        raise Killed
    assert path.read_text() == "seed: 0\n"
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]
    written.write_text(path, "seed: 2\n")
    assert path.read_text() == "seed: 2\n"


# --- corruption


@pytest.mark.parametrize("change", [lambda content: b"", lambda content: content[:-1]])
def test_a_corrupt_cell_is_found_and_set_aside(store, change, capsys):
    store.write(ID, COLUMNS, NOTES)
    path = store.cell_path(ID)
    content = change(path.read_bytes())
    path.write_bytes(content)
    for _ in range(2):  # the second time it is missing
        with pytest.raises(CorruptCellError, match=ID):
            store.read(ID)
        assert not store.intact(ID) and not path.exists()
    (aside,) = [path for path in path.parent.iterdir() if written.is_aside(path.name)]
    assert aside.read_bytes() == content
    assert capsys.readouterr().err.startswith(f"{path} is not as it was written: set aside as ")


def test_a_flipped_bit_anywhere_and_another_cells_content_are_found(store):
    draw = np.random.default_rng(0)
    store.write(ID, COLUMNS, NOTES)
    path = store.cell_path(ID)
    content = path.read_bytes()
    for position in draw.integers(len(content), size=150):
        changed = bytearray(content)
        changed[position] ^= 1 << draw.integers(8)
        path.write_bytes(changed)
        with pytest.raises(CorruptCellError):
            store.read(ID)
    other = store.cell_path(OTHER)
    other.parent.mkdir(parents=True)
    other.write_bytes(content)
    with pytest.raises(CorruptCellError, match="the content is another cell's"):
        store.read(OTHER)


@pytest.mark.parametrize(
    "metadata", [None, b"[]", b'{"id": "x"}', b"\xff", b'{"id": 1, "notes": 2}']
)
def test_a_parquet_file_that_is_no_cell_is_corrupt(store, metadata):
    store.write(ID, COLUMNS, NOTES)
    path = store.cell_path(ID)
    table = pq.read_table(path)
    written.write_table(path, table.replace_schema_metadata(metadata and {b"fairbench": metadata}))
    assert not store.intact(ID)


def test_a_seal_covers_every_bit_of_a_text():
    text = written.sealed_json({"a": 1, "b": "fairbench-sha256:"}).encode()
    assert written.unsealed_json(text) == {"a": 1, "b": "fairbench-sha256:"}
    for position in range(8 * len(text)):
        changed = bytearray(text)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(written.DamagedError):
            written.unsealed_json(bytes(changed))


# --- folders


def test_a_folder_that_cannot_be_made_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "results").write_text("a file where the folder should be")
    store = Store(tmp_path / "results")
    with pytest.raises(UserError) as refusal, store.lock(ID):
        pass
    assert str(refusal.value).startswith(f"results cannot be kept: {tmp_path / 'results'}")
    assert "\n" not in str(refusal.value)
