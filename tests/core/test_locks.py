"""Locks: alone or shared, named when they are waited for, removed when nobody holds them."""

import errno
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from fairbench.core import errors, processes
from fairbench.core.errors import UserError, warn
from fairbench.core.files import unsealed_json
from fairbench.core.processes import BusyError, JsonFile, alone, locked, using, working
from fairbench.results.runs import BusyCellError, Store
from tests.harness import ROOT

USER = """
import sys
from pathlib import Path
from fairbench.core.processes import using
with using(Path(sys.argv[1])):
    print("used", flush=True)
    sys.stdin.readline()
"""
# Adds 1 to a number in a file, alone each time.
COUNTER = """
import sys
from pathlib import Path
from fairbench.core.processes import locked
number = Path(sys.argv[1])
for _ in range(200):
    with locked(number.with_suffix(".lock")):
        number.write_text(str(int(number.read_text()) + 1))
"""


@pytest.fixture
def user(tmp_path):
    """Return a process that uses a folder until it is told or killed."""
    command = [sys.executable, "-c", USER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=ROOT, **pipes) as process:
        assert process.stdout.readline() == "used\n"
        yield process
        process.kill()


def left(folder):
    return sorted(path.name for path in (folder / "locks").iterdir())


def test_a_lock_is_ones_alone_and_names_its_holder(tmp_path):
    path = tmp_path / "locks" / "a.lock"
    with locked(path):
        assert working(tmp_path)
        for shared in (False, True):
            with pytest.raises(BusyError, match=f"process {os.getpid()} on .*"):
                locked(path, shared=shared, seconds=0).__enter__()
    assert not path.exists()
    assert not working(tmp_path)


def test_a_shared_lock_is_shared_and_its_file_goes_with_the_last(tmp_path):
    path = tmp_path / "a.lock"
    with locked(path, shared=True):
        with locked(path, shared=True, seconds=0):
            pass
        assert path.exists()
        with pytest.raises(BusyError):
            locked(path, seconds=0.1).__enter__()
    assert not path.exists()


def test_another_persons_lock_is_waited_for_and_taken_once_it_is_free(tmp_path, monkeypatch):
    """Of a file that somebody else has made, one may have the right to read alone."""
    path = tmp_path / "one.lock"
    path.write_text("process 1 on their machine")  # left by a kill
    opened = processes.opened

    def refused(name, flags=os.O_RDONLY):
        if flags & os.O_RDWR:
            raise PermissionError(errno.EACCES, "Permission denied", str(name))
        return opened(name, flags)

    monkeypatch.setattr(processes, "opened", refused)
    with locked(path), pytest.raises(BusyError), locked(path, seconds=0):
        pass
    assert not path.exists()


@pytest.mark.thorough
def test_processes_that_remove_the_file_each_time_are_alone_each_time(tmp_path):
    number = tmp_path / "number"
    number.write_text("0")
    command = [sys.executable, "-c", COUNTER, str(number)]
    running = [subprocess.Popen(command, cwd=ROOT) for _ in range(4)]
    assert [process.wait(timeout=120) for process in running] == [0] * 4
    assert number.read_text() == "800"
    assert [path.name for path in tmp_path.iterdir()] == ["number"]


def test_who_uses_a_folder_is_named_to_whom_wants_it_alone(tmp_path, user):
    with using(tmp_path), pytest.raises(UserError) as refusal, alone(tmp_path, 0.1):
        pass
    assert "in use by process" in str(refusal.value)
    assert f"process {os.getpid()} on" in str(refusal.value)
    assert f"process {user.pid} on" in str(refusal.value)
    user.communicate("\n")
    with alone(tmp_path, 0):
        assert left(tmp_path) == ["folder.lock"]
    assert left(tmp_path) == []


def test_what_a_killed_command_leaves_is_removed_by_the_next(tmp_path, user):
    user.kill()
    user.wait()
    assert len(left(tmp_path)) == 2
    with using(tmp_path):
        assert len(left(tmp_path)) == 2  # its own
        assert not working(tmp_path)
    assert left(tmp_path) == []


def test_reading_makes_no_folder(tmp_path):
    with using(tmp_path / "none", make=False), alone(tmp_path / "none", 0):
        pass
    assert not list(tmp_path.iterdir())


def test_without_locks_the_command_says_so_once_and_goes_on(tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    errors.warn.cache_clear()
    for _ in range(2):
        with using(tmp_path), locked(tmp_path / "locks" / "ab.lock"):
            pass
    assert capsys.readouterr().err.count("has no locks: give it one command at a time") == 1
    assert left(tmp_path) == []
    assert processes._holder(tmp_path / "none") == "another process"


@pytest.mark.thorough
def test_who_lives_is_waited_for_and_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(processes, "_SIGN", 0.05)
    monkeypatch.setattr(processes, "_FIRST", 0.2)
    path, held, over = tmp_path / "a.lock", threading.Event(), threading.Event()

    def hold():
        with locked(path):
            held.set()  # the file is there a moment before it is locked
            over.wait(1.5)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(10)
    began = time.monotonic()
    with locked(path, silence=0.6):
        assert time.monotonic() - began > 0.9
    holder.join()
    said = capsys.readouterr().err
    assert said.count("waiting for process") == 1
    assert f"process {os.getpid()} on {os.uname().nodename}, since " in said


def test_who_shows_no_sign_of_life_is_waited_for_no_longer(tmp_path):
    path = tmp_path / "a.lock"
    with locked(path):  # the first sign of life comes after seconds
        began = time.monotonic()
        with pytest.raises(BusyError, match=r"process .*, which has shown no sign of life for 0"):
            locked(path, silence=0.3).__enter__()
    assert 0.3 <= time.monotonic() - began < 5


def test_a_cell_whose_holder_seems_dead_is_not_waited_for(tmp_path):
    store = Store(tmp_path, wait_min=0.005)
    with store.lock("ab"):
        with pytest.raises(BusyCellError):
            store.lock("ab", wait=False).__enter__()
        with pytest.raises(UserError, match=r"ab is being made by process .* wait_min=0.01"):
            store.lock("ab").__enter__()


# A state is for who keeps it; a link to a state that several people share stays one.


class Counts(JsonFile[int]):
    """A number in a file."""

    of, start, otherwise = "a count", "count", "or count anew"

    def parse(self, content):
        return int(unsealed_json(content)["count"])

    def values(self, state):
        return {"count": state}


def test_a_state_is_for_who_made_it_and_stays_so_or_open_which_is_said(tmp_path, capsys):
    warn.cache_clear()
    counts = Counts(tmp_path / "state.json")
    counts.create(1)
    for mode, said in ((0o600, 0), (0o644, 1)):
        counts.path.chmod(counts.path.stat().st_mode | mode)
        counts.change(lambda count: count + 1)
        assert stat.S_IMODE(counts.path.stat().st_mode) == mode
        assert capsys.readouterr().err.count("may be read by others: chmod 600 it") == said
    assert counts.read() == 3


def test_a_link_to_a_state_that_is_shared_stays_a_link(tmp_path):
    (tmp_path / "shared").mkdir()
    shared, mine = Counts(tmp_path / "shared" / "state.json"), Counts(tmp_path / "mine.json")
    shared.create(1)
    mine.path.symlink_to(shared.path)
    mine.change(lambda count: count + 1)
    assert mine.path.is_symlink()
    assert shared.read() == mine.read() == 2


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.write_text('{"count": 1}'),
    ],
    ids=["pipe", "endless", "not sealed"],
)
def test_what_is_no_state_is_refused_at_once(tmp_path, make):
    counts = Counts(tmp_path / "state.json")
    make(counts.path)
    with pytest.raises(UserError, match="is not the state of a count"):
        counts.read()


def test_a_state_names_files_of_its_own_folder_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "rows.csv").write_text("y\n1\n")
    (tmp_path / "mine" / "link.csv").symlink_to(tmp_path / "rows.csv")
    counts = Counts(tmp_path / "mine" / "state.json")
    inner = tmp_path / "mine" / "parts" / "rows.csv"
    assert counts.path_in_folder(inner) == inner
    for name in ("../rows.csv", "link.csv", "/etc/passwd", "parts/../../rows.csv", "a\0b"):
        with pytest.raises(UserError, match="outside of its folder"):
            counts.path_in_folder(counts.folder / name)
