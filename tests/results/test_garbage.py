"""What no run refers to goes; what a run, a sweep under way or another process needs stays."""

import os
import time

import numpy as np
import pytest

from fairbench.cli.jobs import _sweep_name as sweep_name
from fairbench.core.files import token
from fairbench.core.processes import working
from fairbench.results.runs import Store
from fairbench.results.upkeep import garbage, keep_sweep, note_begun, read_sweeps, remove
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


def age(path, days=3):
    os.utime(path, (time.time() - days * 86400,) * 2)


def paths(store, hours=24):
    return {file.path for file in garbage(store, hours)}


def test_a_cell_of_no_run_goes_when_old_or_asked_to(store):
    assert paths(store, 0) == {store.cell_path(cell) for cell in (OLD, NEW)}
    (result,) = garbage(store)
    assert (result.path, result.kind) == (store.cell_path(OLD), "cell of no run")
    assert result.bytes == store.cell_path(OLD).stat().st_size
    remove([result])
    assert [store.has(cell) for cell in (NEEDED, BEGUN, OLD, NEW)] == [True, True, False, True]
    assert garbage(store) == garbage(Store(store.root / "none")) == []


def test_cells_of_runs_that_were_begun_stay_for_a_month_and_no_note_of_those_that_ended(store):
    note = note_begun(store, ["b", "a"], [NEW, NEEDED])
    assert note == note_begun(store, ["a", "b"], [NEW, NEEDED])
    old, new = map(store.cell_path, (OLD, NEW))
    for days, expected in ((0, {old}), (29, {old}), (31, {note, old, new})):
        age(note, days)
        assert paths(store, 0) == expected
    ended = note_begun(store, ["a"], [NEEDED])
    assert paths(store, 0) == {note, ended, old, new}


def test_leftovers_of_kills_go_when_old(store):
    begun = store.run_path("begun")
    figures = begun / f".figures.{token()}.tmp"
    figures.mkdir()
    (figures / "half.png").write_bytes(b"1234")
    left = [
        store.cell_path(OLD).with_name(f".{OLD}.parquet.{token()}.tmp"),
        store.cell_path(OLD).with_name(f"{OLD}.parquet.damaged-20260101-120000-0a1b"),
        begun / f".metrics.parquet.{token()}.tmp",
        store.root / "sweeps" / "today" / f".outcomes.json.{token()}.tmp",
    ]
    left[-1].parent.mkdir(parents=True)
    for file in left:
        file.write_bytes(b"half")
    for path in (*left, figures):
        age(path)
    found = garbage(store)
    assert {file.path for file in found} == {*left, figures, store.cell_path(OLD)}
    assert [file.bytes for file in found if file.kind == "half-drawn figures"] == [4]
    remove(found)
    assert not any(path.exists() for path in (*left, figures))
    assert (begun / "cells.txt").exists()


def test_cells_and_their_locks_stay_while_one_is_being_computed(store):
    locks = store.root / "locks"
    locks.mkdir()
    (locks / f"{BEGUN}.lock").touch()  # of a process that was killed
    with store.lock(OLD):
        age(locks / f"{OLD}.lock")
        assert working(store.root)
        assert garbage(store, 0) == []
        assert [path.stem for path in locks.iterdir()] == [OLD]
    assert not working(store.root)
    assert not list(locks.iterdir())
    assert len(garbage(store)) == 1


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


@pytest.mark.parametrize("what", ["link", "link to a folder", "hard link", "pipe"])
def test_nothing_that_a_name_leads_to_goes(what, store, tmp_path):
    own, path = tmp_path / "own.parquet", store.cell_path(OLD)
    if what == "link to a folder":
        own, path = tmp_path / "own", path.parent
    path.rename(own)
    made = {"pipe": lambda own, path: os.mkfifo(path), "hard link": os.link}
    made.get(what, os.symlink)(own, path)
    remove(garbage(store, 0))
    (kept,) = own.iterdir() if own.is_dir() else (own,)
    assert kept.read_bytes()[:4] == b"PAR1"
    assert os.path.lexists(path) == (what != "hard link")


def test_a_loop_of_folders_ends(store):
    (store.root / "report" / "deep").mkdir(parents=True)
    (store.root / "report" / "deep" / "loop").symlink_to("..")
    deep = store.root
    for _ in range(60):
        deep = deep / "d"
    deep.mkdir(parents=True)
    assert {file.path for file in garbage(store)} == {store.cell_path(OLD)}


# What is kept of a sweep, and how it is called: one name for one sweep, however often given.


DONE = [
    {"job": "seed=1 dataset=adult", "status": "finished", "run": "a", "message": ""},
    {"job": "dataset=german seed=1", "status": "finished", "run": "b", "message": ""},
    {"job": "dataset=acs seed=1", "status": "failed", "run": None, "message": "no data"},
]


def test_a_sweep_is_called_by_what_changes_its_runs():
    name = sweep_name(["method=ensemble,baseline", "n_jobs=4", "dataset=adult"])
    assert name == "dataset=adult method=ensemble,baseline"
    words = ["dataset=adult", "hydra/launcher=slurm", "method=ensemble,baseline", "results=old"]
    assert sweep_name(words) == name
    assert sweep_name([*words, "seed=1"]) != name
    preset = sweep_name(["split.repeats=3", "experiment=fairlyuncertain/table1"])
    assert preset == "experiment=fairlyuncertain/table1 split.repeats=3"


def test_long_names_are_cut_and_stay_different():
    seeds = ",".join(map(str, range(1000)))
    one, other = (sweep_name([f"seed={seeds},{last}"]) for last in (1, 2))
    assert one != other
    assert len(one) <= 400 and one[:300] == other[:300]


def test_what_was_kept_is_read_the_oldest_first(tmp_path):
    keep_sweep(tmp_path / "sweeps" / "2026-01-02", "dataset=adult,german", DONE[::-1])
    keep_sweep(tmp_path / "sweeps" / "2026-01-01", "seed=1", [*DONE, *DONE])
    keep_sweep(tmp_path / "sweeps" / "2026-01-03", "none finished", DONE[2:])
    (tmp_path / "sweeps" / "2026-01-04").mkdir()  # killed
    kept = {"seed=1": ("a", "b"), "dataset=adult,german": ("b", "a")}
    assert read_sweeps(tmp_path) == [*kept.items()]
    assert read_sweeps(tmp_path / "nowhere") == []


@pytest.mark.parametrize("content", ["{", '"text"', '[{"status": "finished"}]', "\x00"])
def test_a_damaged_list_is_left_out_and_named(tmp_path, capsys, content):
    keep_sweep(tmp_path / "sweeps" / "one", "seed=1", DONE)
    keep_sweep(tmp_path / "sweeps" / "two", "seed=2", DONE)
    (tmp_path / "sweeps" / "one" / "outcomes.json").write_text(content)
    assert [name for name, _ in read_sweeps(tmp_path)] == ["seed=2"]
    assert "one is left out" in capsys.readouterr().err
