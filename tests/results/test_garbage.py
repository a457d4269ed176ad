"""What no run refers to goes; what a run, a sweep under way or another process needs stays."""

import os
import time

import numpy as np
import pytest

from fairbench.core.locks import working
from fairbench.results.cells import Store
from fairbench.results.garbage import garbage, note_begun, remove
from fairbench.results.run_writer import seal_run
from tests.studies import RECORD

NEEDED, BEGUN, OLD, NEW = (f"{letter}{letter}" * 10 for letter in "abcd")
CELL = {"row": np.arange(3, dtype=np.int32)}


@pytest.fixture
def store(tmp_path):
    """Return a store of four cells, of which a run needs one and an unfinished run another."""
    store = Store(tmp_path / "results")
    for cell in (NEEDED, BEGUN, OLD, NEW):
        store.write(cell, CELL, {})
    for run, cell in (("finished", NEEDED), ("begun", BEGUN)):
        store.run_path(run).mkdir(parents=True)
        (store.run_path(run) / "cells.txt").write_text(f"{cell}\n")
    seal_run(store.run_path("finished"), RECORD)
    for path in store.root.rglob("*"):
        age(path)
    os.utime(store.cell_path(NEW))
    return store


def age(path):
    days_ago = time.time() - 3 * 86400
    os.utime(path, (days_ago, days_ago))


def leftovers(store):
    """Leave what killed processes leave, and return it."""
    (store.root / "locks").mkdir()
    temporary = store.run_path("begun") / ".figures.abc"
    temporary.mkdir()
    (temporary / "half.png").write_bytes(b"1234")
    files = [
        store.cell_path(OLD).with_name(f".{OLD}.parquet.12.tmp"),
        store.cell_path(OLD).with_name(f"{OLD}.parquet.damaged-1"),
        store.run_path("begun") / ".metrics.parquet.12.tmp",
        store.root / "sweeps" / "today" / ".outcomes.json.12.tmp",
    ]
    files[-1].parent.mkdir(parents=True)
    (store.root / "locks" / f"{BEGUN}.lock").touch()
    for file in files:
        file.write_bytes(b"half")
    for each in [*files, temporary]:
        age(each)
    return {*files, temporary}


def test_an_old_cell_of_no_run_goes_alone(store):
    (found,) = garbage(store)
    assert (found.path, found.kind) == (store.cell_path(OLD), "cell of no run")
    assert found.bytes == store.cell_path(OLD).stat().st_size
    remove([found])
    assert [store.has(cell) for cell in (NEEDED, BEGUN, OLD, NEW)] == [True, True, False, True]
    assert garbage(store) == []


def test_a_new_cell_of_no_run_goes_when_asked_to(store):
    assert {each.path for each in garbage(store, 0)} == {
        store.cell_path(cell) for cell in (OLD, NEW)
    }


def test_cells_of_runs_that_were_begun_stay_for_a_month(store):
    note = note_begun(store, ["b", "a"], [NEW, NEEDED])
    assert note == note_begun(store, ["a", "b"], [NEW, NEEDED])
    assert [each.path for each in garbage(store, 0)] == [store.cell_path(OLD)]
    long_ago = time.time() - 31 * 86400
    os.utime(note, (long_ago, long_ago))
    found = {each.path for each in garbage(store, 0)}
    assert found == {note, *(store.cell_path(cell) for cell in (OLD, NEW))}


def test_a_note_of_runs_that_have_ended_goes(store):
    note = note_begun(store, ["a"], [NEEDED])
    assert note in {each.path for each in garbage(store, 0)}


def test_leftovers_of_kills_go_when_old(store):
    expected = leftovers(store)
    found = garbage(store)
    assert {each.path for each in found} == {*expected, store.cell_path(OLD)}
    assert next(each.bytes for each in found if each.kind == "half-drawn figures") == 4
    remove(found)
    assert not any(path.exists() for path in expected)
    assert (store.run_path("begun") / "cells.txt").exists()


def test_cells_and_their_locks_stay_while_one_is_being_computed(store):
    with store.lock(OLD):
        age(store.root / "locks" / f"{OLD}.lock")
        assert working(store.root)
        assert garbage(store, 0) == []
    assert not working(store.root)
    assert len(garbage(store)) == 1


def test_locks_of_killed_processes_go_and_others_stay(store):
    leftovers(store)
    with store.lock(OLD):
        garbage(store)
        assert [path.stem for path in (store.root / "locks").iterdir()] == [OLD]
    assert not list((store.root / "locks").iterdir())


def test_an_empty_folder_has_no_garbage(tmp_path):
    store = Store(tmp_path / "none")
    assert garbage(store) == []
    assert not working(store.root)


def test_rows_and_people_that_no_run_reads_go(store):
    for folder in ("splits", "data"):
        for name in ("read", "unread"):
            path = store.root / folder / f"{name}.parquet"
            path.parent.mkdir(exist_ok=True)
            path.touch()
            age(path)
    kinds = {each.path: each.kind for each in garbage(store)}
    for folder, kind in (("splits", "rows of no run"), ("data", "people of no run")):
        assert kinds[store.root / folder / "unread.parquet"] == kind
        assert store.root / folder / "read.parquet" not in kinds
