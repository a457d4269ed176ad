"""What no run refers to goes; what a run, a sweep under way or another process needs stays."""

import os
import time

import numpy as np
import pytest

from fairbench.core.files import token
from fairbench.core.processes import working
from fairbench.results.runs import Store
from fairbench.results.upkeep import garbage, note_begun, remove
from tests.studies import sealed_record

NEEDED, BEGUN, OLD, NEW = (f"{letter}{letter}" * 10 for letter in "abcd")
CELL = {"row": np.arange(3, dtype=np.int32)}


@pytest.fixture
def store(tmp_path):
    """Return a store of four cells, of which a run needs one and an unfinished run another."""
    store = Store(tmp_path / "results")
    for cell in (NEEDED, BEGUN, OLD, NEW):
        store.write(cell, CELL, {})
    sealed_record(store.root, cells=[NEEDED])
    store.run_path("begun").mkdir()
    (store.run_path("begun") / "cells.txt").write_text(f"{BEGUN}\n")
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
    temporary = store.run_path("begun") / f".figures.{token()}.tmp"
    temporary.mkdir()
    (temporary / "half.png").write_bytes(b"1234")
    files = [
        store.cell_path(OLD).with_name(f".{OLD}.parquet.{token()}.tmp"),
        store.cell_path(OLD).with_name(f"{OLD}.parquet.damaged-20260101-120000-0a1b"),
        store.run_path("begun") / f".metrics.parquet.{token()}.tmp",
        store.root / "sweeps" / "today" / f".outcomes.json.{token()}.tmp",
    ]
    files[-1].parent.mkdir(parents=True)
    (store.root / "locks" / f"{BEGUN}.lock").touch()
    for file in files:
        file.write_bytes(b"half")
    for each in [*files, temporary]:
        age(each)
    return {*files, temporary}


def test_an_old_cell_of_no_run_goes_alone(store):
    (result,) = garbage(store)
    assert (result.path, result.kind) == (store.cell_path(OLD), "cell of no run")
    assert result.bytes == store.cell_path(OLD).stat().st_size
    remove([result])
    assert [store.has(cell) for cell in (NEEDED, BEGUN, OLD, NEW)] == [True, True, False, True]
    assert garbage(store) == []


def test_a_new_cell_of_no_run_goes_when_asked_to(store):
    assert {file.path for file in garbage(store, 0)} == {
        store.cell_path(cell) for cell in (OLD, NEW)
    }


def test_cells_of_runs_that_were_begun_stay_for_a_month(store):
    note = note_begun(store, ["b", "a"], [NEW, NEEDED])
    assert note == note_begun(store, ["a", "b"], [NEW, NEEDED])
    assert [file.path for file in garbage(store, 0)] == [store.cell_path(OLD)]
    for days, stays in ((29, True), (31, False)):
        touched = time.time() - days * 86400
        os.utime(note, (touched, touched))
        assert (note not in {file.path for file in garbage(store, 0)}) == stays
    result = {file.path for file in garbage(store, 0)}
    assert result == {note, *(store.cell_path(cell) for cell in (OLD, NEW))}


def test_a_note_of_runs_that_have_ended_goes(store):
    note = note_begun(store, ["a"], [NEEDED])
    assert note in {file.path for file in garbage(store, 0)}


def test_leftovers_of_kills_go_when_old(store):
    expected = leftovers(store)
    garbage_files = garbage(store)
    assert {file.path for file in garbage_files} == {*expected, store.cell_path(OLD)}
    (figures,) = (file for file in garbage_files if file.kind == "half-drawn figures")
    assert figures.bytes == 4
    remove(garbage_files)
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
    kinds = {file.path: file.kind for file in garbage(store)}
    for folder, kind in (("splits", "rows of no run"), ("data", "people of no run")):
        assert kinds[store.root / folder / "unread.parquet"] == kind
        assert store.root / folder / "read.parquet" not in kinds


def test_what_is_not_fairbenchs_by_name_and_content_stays(store):
    run = store.run_path("begun")
    own = [
        store.root / ".own.tmp",
        store.root / "own.damaged-by-rain",
        store.root / "cells" / "own.parquet",
        store.cell_path(OLD).with_name("Own photo.parquet"),
        store.cell_path(OLD).with_name("notmine.parquet"),
        store.root / "begun" / "own.txt",
        run / ".figures.own" / "photo.png",
        run / f".figures.{token()}.tmp" / "thesis.docx",
    ]
    for path in own:
        path.parent.mkdir(exist_ok=True)
        path.write_text("somebody's own")
        age(path)
        age(path.parent)
    remove(garbage(store, 0))
    assert all(path.read_text() == "somebody's own" for path in own)
    assert not store.has(OLD)


@pytest.mark.parametrize("what", ["link", "hard link", "pipe"])
def test_nothing_that_a_name_leads_to_goes(what, store, tmp_path):
    own, path = tmp_path / "own.parquet", store.cell_path(OLD)
    path.rename(own)
    os.mkfifo(path) if what == "pipe" else (os.link if what == "hard link" else os.symlink)(
        own, path
    )
    remove(garbage(store, 0))
    assert own.read_bytes()[:4] == b"PAR1"
    assert os.path.lexists(path) == (what != "hard link")


def test_a_loop_of_folders_ends(store):
    (store.root / "report" / "deep").mkdir(parents=True)
    (store.root / "report" / "deep" / "loop").symlink_to("..")
    deep = store.root
    for _ in range(60):
        deep = deep / "d"
    deep.mkdir(parents=True)
    assert {file.path for file in garbage(store)} == {store.cell_path(OLD)}
