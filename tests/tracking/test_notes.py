"""Notes of what MLflow has: what counts in which state of the database, and what is kept."""

import pytest

from fairbench.tracking.database import stamp
from fairbench.tracking.importer import NOTE, Entry, Note, read_note, write_note

FIRST, SECOND, THIRD = (1, 100, 5, 5), (1, 200, 6, 6), (1, 300, 7, 7)
A, B = {"a": Entry("f", "1", "")}, {"b": Entry("g", "2", "[seed=0]")}
PLACE = {"database": "mlflow.db", "experiment": "fairbench", "version": "2"}


def test_runs_are_surely_there_while_nothing_is_written():
    note = Note().with_logged(A, (), FIRST, certain=True)
    assert note.of(FIRST, unchanged=True) == note.of(FIRST) == A
    assert note.of(SECOND, unchanged=True) == {}
    assert note.of(SECOND) == A


@pytest.mark.parametrize("other", [(2, 100, 5, 5), (1, 99, 6, 6), ()])
def test_of_another_or_a_smaller_file_nothing_is_noted(other):
    note = Note().with_logged(A, (), FIRST, certain=True)
    assert note.of(other) == note.of(other, unchanged=True) == {}


def test_runs_before_stay_certain_unless_somebody_else_wrote_in_between():
    note = Note().with_logged(A, (), FIRST, certain=True)
    assert note.with_logged(B, FIRST, SECOND, certain=True).of(SECOND, unchanged=True) == A | B
    broken = note.with_logged(B, SECOND, THIRD, certain=True)
    assert broken.of(THIRD, unchanged=True) == B
    assert broken.of(THIRD) == A | B
    assert broken.with_logged(A, THIRD, THIRD, certain=True).of(THIRD, unchanged=True) == A | B


def test_where_stamps_tell_not_every_change_nothing_is_certain():
    note = Note().with_logged(A, (), FIRST, certain=False)
    assert note.of(FIRST, unchanged=True) == {}
    assert note.of(FIRST) == A


def test_a_note_is_read_as_it_was_written_and_of_its_place_alone(tmp_path):
    note = Note(FIRST, A, B)
    write_note(tmp_path, PLACE, note)
    assert read_note(tmp_path, PLACE) == note
    assert read_note(tmp_path, PLACE | {"version": "1"}) == Note()
    (tmp_path / NOTE).write_text("{}")
    assert read_note(tmp_path, PLACE) == Note()
    assert read_note(tmp_path / "none", PLACE) == Note()
    write_note(tmp_path / NOTE, PLACE, note)  # where nothing can be written, no error
    assert read_note(tmp_path / NOTE, PLACE) == Note()


def test_a_stamp_is_of_the_file_and_of_what_is_written_ahead(tmp_path):
    path, ahead = tmp_path / "a.db", tmp_path / "a.db-wal"
    assert stamp(path) == ()
    path.write_bytes(b"x")
    alone = stamp(path)
    ahead.touch()
    assert stamp(path) == alone
    ahead.write_bytes(b"y")
    assert stamp(path)[:4] == alone != stamp(path)
