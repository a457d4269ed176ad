"""What leads out of a folder is not followed, and what has no end is not read."""

import os
import socket

import numpy as np
import pyarrow as pa
import pytest

from fairbench.core.errors import UserError, warn
from fairbench.core.files import (
    StrangeFileError,
    guard,
    half_of,
    is_aside,
    is_file,
    make_folder,
    make_private,
    names_in,
    opened,
    parquet_bytes,
    read_bytes,
    remove,
    remove_folder,
    rename,
    set_aside,
    table_within,
    token,
    write_cache,
    write_text,
)
from fairbench.core.processes import alone, locked, using, working


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
        names_in(folder / "runs" / "one")
    assert not is_file(folder / "runs" / "one" / "index.html")
    assert names_in(folder / "runs") == ([], [], ["one"])


def test_a_guarded_folder_may_be_a_link_itself(folder):
    own = folder.with_name("own")
    own.symlink_to(folder)
    guard(own)
    (folder / "runs" / "record").write_text("text")
    assert read_bytes(own / "runs" / "record") == b"text"
    assert names_in(own / "runs") == (["record"], [], [])


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
    "use",
    [
        lambda path: write_text(path / "new", "ours"),
        lambda path: make_folder(path / "new" / "deeper"),
        lambda path: make_private(path),
        lambda path: remove(path / "index.html"),
        lambda path: rename(path / "index.html", "new"),
        lambda path: set_aside(path / "index.html", "gone"),
        lambda path: opened(path / "new", os.O_WRONLY | os.O_CREAT),
    ],
    ids=["write", "make", "close", "remove", "rename", "set aside", "open"],
)
def test_nothing_is_done_behind_a_link(use, folder):
    (folder / "runs" / "one").symlink_to(folder.parent / "outside")
    mode = (folder.parent / "outside").stat().st_mode
    with pytest.raises(StrangeFileError, match="not followed"):
        use(folder / "runs" / "one")
    assert outside(folder) == UNTOUCHED
    assert (folder.parent / "outside").stat().st_mode == mode


@pytest.mark.parametrize("kind", ["link", "pipe", "socket", "folder"])
def test_only_a_regular_file_is_removed(kind, folder):
    path = strange(folder, kind)
    with pytest.raises(StrangeFileError, match="no regular file"):
        remove(path)
    assert os.path.lexists(path)
    remove(folder / "none")


def test_a_file_with_a_second_name_is_read_and_not_written(folder):
    os.link(folder.parent / "outside" / "index.html", folder / "trials.jsonl")
    assert read_bytes(folder / "trials.jsonl") == b"mine"
    with pytest.raises(StrangeFileError, match="second name"):
        opened(folder / "trials.jsonl", os.O_WRONLY | os.O_APPEND)
    write_text(folder / "trials.jsonl", "ours")  # under this name alone
    assert outside(folder) == UNTOUCHED


@pytest.mark.parametrize("what", ["file", "link", "folder"])
def test_a_folder_goes_only_if_all_in_it_is_ours(what, folder):
    (folder / "figures").mkdir()
    (folder / "figures" / "a.png").touch()
    other = folder / "figures" / "own"
    if what == "link":
        other.symlink_to(folder.parent / "outside")
    elif what == "folder":
        other.mkdir()
    else:
        other.touch()
    assert not remove_folder(folder / "figures", lambda name: name != "own" or what != "file")
    assert {path.name for path in (folder / "figures").iterdir()} == {"a.png", "own"}
    other.rmdir() if what == "folder" else other.unlink()
    assert remove_folder(folder / "figures", lambda name: name.endswith(".png"))
    assert not (folder / "figures").exists()


def test_a_link_to_a_folder_is_no_folder_that_is_removed(folder):
    (folder / "figures").symlink_to(folder.parent / "outside")
    assert not remove_folder(folder / "figures", lambda name: True)
    assert outside(folder) == UNTOUCHED


def test_folders_are_made_below_a_guarded_one_that_is_not_there(tmp_path):
    guard(tmp_path / "new" / "results")
    write_text(tmp_path / "new" / "results" / "runs" / "one" / "record", "text")
    make_folder(tmp_path / "new" / "results" / "data", 0o700)
    assert (tmp_path / "new/results/runs/one/record").read_text() == "text"
    assert (tmp_path / "new/results/data").stat().st_mode & 0o777 == 0o700


def test_a_private_folder_is_closed_and_stays_as_strict_as_it_was(tmp_path):
    for name, mode, closed in (("open", 0o755, 0o700), ("read-only", 0o500, 0o500)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
        make_private(tmp_path / name)
        assert (tmp_path / name).stat().st_mode & 0o777 == closed


def test_that_others_may_read_a_private_file_is_said_in_a_line(tmp_path, capsys):
    warn.cache_clear()
    write_text(tmp_path / "own", "text", mode=0o600)
    assert read_bytes(tmp_path / "own", private=True) == b"text"
    assert capsys.readouterr().err == ""
    (tmp_path / "own").chmod(0o640)
    assert read_bytes(tmp_path / "own") == b"text"
    assert capsys.readouterr().err == ""
    read_bytes(tmp_path / "own", private=True)
    assert capsys.readouterr().err.count("may be read by others: chmod 600 it") == 1


def test_a_cache_is_written_over_only_what_was_sealed_here(tmp_path, capsys):
    path = tmp_path / "index.json"
    for before in (None, b"", b"\0" * 40):
        if before is not None:
            path.write_bytes(before)
        write_cache(path, {"a": 1})
        assert b'"a": 1' in path.read_bytes()
    write_cache(path, {"a": 2})
    assert b'"a": 2' in path.read_bytes()
    path.write_text('{"pages": "mine"}')
    write_cache(path, {"a": 3})
    assert path.read_text() == '{"pages": "mine"}'
    assert "no file of fairbench's, and stays" in capsys.readouterr().err


def test_names_of_half_files_and_of_those_set_aside_are_nobody_elses(tmp_path, capsys):
    assert half_of(f".a.b.parquet.{token()}.tmp") == "a.b.parquet"
    assert not any(map(half_of, [".a.tmp", ".a.12.tmp", "a.host.1.0a1b2c3d.tmp", ".swp.1.2.tmp"]))
    (tmp_path / "a").touch()
    set_aside(tmp_path / "a", "it is made again")
    (name,) = os.listdir(tmp_path)
    assert is_aside(name)
    assert not any(map(is_aside, ["a.damaged-by-rain", "a.damaged-1", "a"]))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "columns",
    [
        lambda: {"row": pa.array(np.zeros(30_000_000, np.int8))},
        lambda: {"text": pa.array(["x" * 200_000] * 3_000)},
    ],
    ids=["many rows", "one long text"],
)
def test_a_table_that_unfolds_is_refused_before_it_is_read(columns, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRBENCH_MAX_MEMORY", "0.5")
    content = parquet_bytes(pa.table(columns()))
    assert len(content) < 3_000_000
    with pytest.raises(UserError, match="GB of memory"):
        table_within(content, "table.parquet")


def test_texts_that_repeat_are_read_where_there_is_room():
    table = pa.table({"text": ["x" * 1000, "y"] * 500})
    assert table_within(parquet_bytes(table), "table.parquet").equals(table)


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
