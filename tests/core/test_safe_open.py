"""What leads out of a folder is not followed, and what has no end is not read."""

import os
import socket

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.parquet import ParquetFile

from benchmarks.faults.bombs import long_table
from fairbench.core import files
from fairbench.core.errors import UserError, warn
from fairbench.core.files import table_within
from fairbench.core.memory import MEMORY
from fairbench.core.processes import alone, locked, using, working


@pytest.fixture
def folder(tmp_path):
    """Return a guarded folder, and one beside it that is somebody's own."""
    results, outside = tmp_path / "results", tmp_path / "outside"
    for place in (results / "runs", outside):
        place.mkdir(parents=True)
    for name in ("poetry.lock", "index.html"):
        (outside / name).write_text("mine")
    files.guard(results)
    return results


def outside(folder):
    return {path.name: path.read_text() for path in (folder.parent / "outside").iterdir()}


UNTOUCHED = {"poetry.lock": "mine", "index.html": "mine"}


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))


STRANGE = {
    "link": lambda path: path.symlink_to(path.parents[1] / "outside" / "index.html"),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "pipe": os.mkfifo,
    "socket": make_socket,
    "folder": os.mkdir,
    "sparse": lambda path: [path.touch(), os.truncate(path, 200 << 30)],
}


def strange(folder, kind):
    """Make a file of a kind that is never read, and return its path."""
    STRANGE[kind](folder / "file")
    return folder / "file"


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.timeout(10)
def test_only_a_regular_file_of_a_size_is_read(kind, folder):
    path = strange(folder, kind)
    with pytest.raises(OSError, match="link|regular|directory|200|214,748,364,800"):
        files.read_bytes(path)
    assert files.is_file(path) == (kind == "sparse")


def test_a_guarded_folder_may_be_a_link_itself(folder):
    own = folder.with_name("own")
    own.symlink_to(folder)
    files.guard(own)
    (folder / "runs" / "record").write_text("text")
    assert files.read_bytes(own / "runs" / "record") == b"text"
    assert files.names_in(own / "runs") == (["record"], [], [])


def test_a_link_is_replaced_and_what_it_leads_to_stays(folder):
    (folder / "index.json").symlink_to(folder.parent / "outside" / "index.html")
    files.write_text(folder / "index.json", "ours")
    assert (folder / "index.json").read_text() == "ours"
    assert outside(folder) == UNTOUCHED


@pytest.mark.parametrize(
    "use",
    [
        lambda path: files.write_text(path / "new", "ours"),
        lambda path: files.make_folder(path / "new" / "deeper"),
        files.make_private,
        lambda path: files.remove(path / "index.html"),
        lambda path: files.rename(path / "index.html", "new"),
        lambda path: files.set_aside(path / "index.html", "gone"),
        lambda path: files.opened(path / "new", os.O_WRONLY | os.O_CREAT),
        lambda path: files.read_bytes(path / "index.html"),
        files.names_in,
    ],
)
def test_nothing_is_done_behind_a_link(use, folder):
    (folder / "runs" / "one").symlink_to(folder.parent / "outside")
    mode = (folder.parent / "outside").stat().st_mode
    with pytest.raises(files.StrangeFileError, match="not followed"):
        use(folder / "runs" / "one")
    assert not files.is_file(folder / "runs" / "one" / "index.html")
    assert files.names_in(folder / "runs") == ([], [], ["one"])
    assert not files.remove_folder(folder / "runs" / "one", lambda name: True)
    assert outside(folder) == UNTOUCHED
    assert (folder.parent / "outside").stat().st_mode == mode


@pytest.mark.parametrize("kind", ["link", "pipe", "socket", "folder"])
def test_only_a_regular_file_is_removed(kind, folder):
    path = strange(folder, kind)
    with pytest.raises(files.StrangeFileError, match="no regular file"):
        files.remove(path)
    assert os.path.lexists(path)
    files.remove(folder / "none")


def test_a_file_with_a_second_name_is_read_and_not_written(folder):
    os.link(folder.parent / "outside" / "index.html", folder / "trials.jsonl")
    assert files.read_bytes(folder / "trials.jsonl") == b"mine"
    with pytest.raises(files.StrangeFileError, match="second name"):
        files.opened(folder / "trials.jsonl", os.O_WRONLY | os.O_APPEND)
    files.write_text(folder / "trials.jsonl", "ours")  # under this name alone
    assert outside(folder) == UNTOUCHED


@pytest.mark.parametrize("what", ["file", "link", "folder"])
def test_a_folder_goes_only_if_all_in_it_is_ours(what, folder):
    figures, other = folder / "figures", folder / "figures" / "own"
    figures.mkdir()
    (figures / "a.png").touch()
    if what == "link":
        other.symlink_to(folder.parent / "outside")
    else:
        other.mkdir() if what == "folder" else other.touch()
    assert not files.remove_folder(figures, lambda name: name != "own" or what != "file")
    assert {path.name for path in figures.iterdir()} == {"a.png", "own"}
    other.rmdir() if what == "folder" else other.unlink()
    assert files.remove_folder(figures, lambda name: name.endswith(".png"))
    assert not figures.exists()


def test_folders_are_made_below_a_guarded_one_that_is_not_there(tmp_path):
    files.guard(tmp_path / "new" / "results")
    files.write_text(tmp_path / "new" / "results" / "runs" / "one" / "record", "text")
    files.make_folder(tmp_path / "new" / "results" / "data", 0o700)
    assert (tmp_path / "new/results/runs/one/record").read_text() == "text"
    assert (tmp_path / "new/results/data").stat().st_mode & 0o777 == 0o700


def test_a_private_folder_is_closed_and_stays_as_strict_as_it_was(tmp_path):
    for name, mode, closed in (("open", 0o755, 0o700), ("read-only", 0o500, 0o500)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
        files.make_private(tmp_path / name)
        assert (tmp_path / name).stat().st_mode & 0o777 == closed


def test_that_others_may_read_a_private_file_is_said_in_a_line(tmp_path, capsys):
    warn.cache_clear()
    files.write_text(tmp_path / "own", "text", mode=0o600)
    for mode, private, times in ((0o600, True, 0), (0o640, False, 0), (0o640, True, 1)):
        (tmp_path / "own").chmod(mode)
        assert files.read_bytes(tmp_path / "own", private=private) == b"text"
        said = capsys.readouterr().err
        assert said.count("may be read by others: chmod 600 it") == len(said.splitlines()) == times


def test_a_cache_is_written_over_only_what_was_sealed_here(tmp_path, capsys):
    path = tmp_path / "index.json"
    files.write_cache(path, {"a": 0})
    for before in (b"", b"\0" * 40):
        path.write_bytes(before)
        for value in (1, 2):
            files.write_cache(path, {"a": value})
            assert f'"a": {value}'.encode() in path.read_bytes()
    path.write_text('{"pages": "mine"}')
    files.write_cache(path, {"a": 3})
    assert path.read_text() == '{"pages": "mine"}'
    assert "no file of fairbench's, and stays" in capsys.readouterr().err


def test_names_of_half_files_and_of_those_set_aside_are_nobody_elses(tmp_path, capsys):
    assert files.half_of(f".a.b.parquet.{files.token()}.tmp") == "a.b.parquet"
    others = [".a.tmp", ".a.12.tmp", "a.host.1.0a1b2c3d.tmp", ".swp.1.2.tmp"]
    assert not any(map(files.half_of, others))
    (tmp_path / "a").touch()
    files.set_aside(tmp_path / "a", "it is made again")
    (name,) = os.listdir(tmp_path)
    assert files.is_aside(name)
    assert not any(map(files.is_aside, ["a.damaged-by-rain", "a.damaged-1", "a"]))


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
    path = folder / "locks" / "poetry.lock"
    path.parent.mkdir()
    path.write_text("mine")
    assert not working(folder)
    with pytest.raises(files.StrangeFileError, match="no lock of fairbench"), locked(path):
        pass
    assert path.read_text() == "mine"


# A Parquet file that takes too much memory is refused by its footer, before it is decoded.


def parquet_of(table, **options):
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("told", [0, 9])
@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_rows_are_counted_whatever_the_footer_says_of_them(compression, told, monkeypatch):
    content = long_table(pa.table({"n": [1]}), 600_000, told=told, compression=compression)
    with ParquetFile(pa.BufferReader(content)) as file:
        assert file.metadata.num_rows == (told or 600_000)
    assert len(table_within(content, "t.parquet")) == 600_000
    monkeypatch.setenv(MEMORY, "0.01")
    with pytest.raises(UserError, match="would take about 0.0 GB"):
        table_within(content, "t.parquet")


def test_a_null_of_a_wide_type_takes_its_width(monkeypatch):
    content = parquet_of(pa.table({"wide": pa.nulls(20_000, pa.binary(1000))}))
    assert table_within(content, "t.parquet").num_rows == 20_000
    monkeypatch.setenv(MEMORY, "0.01")
    with pytest.raises(UserError, match="would take about"):
        table_within(content, "t.parquet")


def test_lists_are_refused_before_their_values_are_read():
    content = parquet_of(pa.table({"a": [1, 2], "b": [[1] * 9, []]}))
    assert table_within(content, "t.parquet", ["a"]).column_names == ["a"]
    with pytest.raises(UserError, match="column 'b' is of type list"):
        table_within(content, "t.parquet")
