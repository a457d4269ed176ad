"""Notes of what MLflow has: what counts in which state of the database, and what is kept."""

import pytest

from fairbench.tracking.database import stamp
from fairbench.tracking.importer import NOTE, Entry, read_note, write_note

STAMP = (1, 100, 5, 5)
RUNS = {"a": Entry("f", "1", ""), "b": Entry("g", "2", "[seed=0]")}
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
    write_note(tmp_path, PLACE, stamped, RUNS)
    assert read_note(tmp_path, place, now) == {}


def test_a_note_is_read_as_it_was_written(tmp_path):
    write_note(tmp_path, PLACE, STAMP, RUNS)
    assert read_note(tmp_path, PLACE, STAMP) == RUNS
    (tmp_path / NOTE).write_text("{}")
    assert read_note(tmp_path, PLACE, STAMP) == {}
    assert read_note(tmp_path / "none", PLACE, STAMP) == {}
    write_note(tmp_path / NOTE, PLACE, STAMP, RUNS)  # where nothing can be written, no error
    assert read_note(tmp_path / NOTE, PLACE, STAMP) == {}


def test_a_stamp_is_of_the_file_and_of_what_is_written_ahead(tmp_path):
    path, ahead = tmp_path / "a.db", tmp_path / "a.db-wal"
    assert stamp(path) == ()
    path.write_bytes(b"x")
    alone = stamp(path)
    ahead.touch()
    assert stamp(path) == alone
    ahead.write_bytes(b"y")
    assert stamp(path)[:4] == alone != stamp(path)
