"""Notes of what MLflow has: what counts in which state of the database, and what is kept."""

import socket

import pytest

from fairbench.core.files import write_cache
from fairbench.tracking.database import stamp
from fairbench.tracking.importer import NOTE, _Entry, _write_note, comparison, read_note, ui

STAMP = (1, 100, 5, 5)
RUNS = {"a": _Entry("f", "1", ""), "b": _Entry("g", "2", "[seed=0]")}
PLACE = {"database": "mlflow.db", "experiment": "fairbench", "version": "2"}


@pytest.mark.parametrize("stamped", [STAMP, ()])
@pytest.mark.parametrize(
    ("place", "now"),
    [
        (PLACE, (1, 200, 5, 5)),
        (PLACE, (1, 100, 5, 6)),
        (PLACE, ()),
        (PLACE | {"version": "1"}, STAMP),
    ],
)
def test_of_a_database_that_was_written_or_another_nothing_is_noted(tmp_path, stamped, place, now):
    _write_note(tmp_path, PLACE, stamped, RUNS)
    assert read_note(tmp_path, place, now) == {}


def test_a_note_is_read_as_it_was_written(tmp_path):
    _write_note(tmp_path, PLACE, STAMP, RUNS)
    assert read_note(tmp_path, PLACE, STAMP) == RUNS
    (tmp_path / NOTE).write_text("{}")
    assert read_note(tmp_path, PLACE, STAMP) == {}
    assert read_note(tmp_path / "none", PLACE, STAMP) == {}
    _write_note(tmp_path / NOTE, PLACE, STAMP, RUNS)  # where nothing can be written, no error
    assert read_note(tmp_path / NOTE, PLACE, STAMP) == {}


@pytest.mark.parametrize("runs", [{"a": ["f"]}, {"a": 3}, {"a": {}}, ["a"], None], ids=str)
def test_a_note_with_other_values_is_none(tmp_path, runs):
    write_cache(tmp_path / NOTE, {"place": PLACE, "stamp": STAMP, "runs": runs})
    assert read_note(tmp_path, PLACE, STAMP) == {}


def test_a_stamp_is_of_the_file_and_of_what_is_written_ahead(tmp_path):
    path, ahead = tmp_path / "a.db", tmp_path / "a.db-wal"
    assert stamp(path) == ()
    path.write_bytes(b"x")
    alone = stamp(path)
    ahead.touch()
    assert stamp(path) == alone
    ahead.write_bytes(b"y")
    assert stamp(path)[:4] == alone != stamp(path)


# Links of the UI; ports that cannot be served at.


def test_a_comparison_is_an_address_that_a_browser_takes():
    address = comparison("http://127.0.0.1:5000", ["a", "b"], "1")
    expected = "runs=%5B%22a%22%2C%22b%22%5D&experiments=%5B%221%22%5D"
    assert address == f"http://127.0.0.1:5000/#/compare-runs?{expected}"


def test_a_port_in_use_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert ui(port) == 2
    assert f"error: port {port} is in use" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("port", ["", "http", "99999999"])
def test_a_port_that_is_none_is_refused(port, capsys):
    assert ui(port) == 2
    assert f"error: '{port}' is no port" in capsys.readouterr().err
