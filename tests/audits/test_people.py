"""Several people and one state: nothing is counted twice or lost, and each is told in a line."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from benchmarks.faults import states
from fairbench.cli.main import main
from fairbench.core.errors import UserError, warn
from fairbench_label import session as answering
from fairbench_label.questions import go_on, resume
from fairbench_label.session import Answer, StateFile, store
from fairbench_watch import alarms as look_module
from fairbench_watch.alarms import WatchFile, look
from fairbench_watch.state import WatchOptions
from tests.audits.tables import predictions, written


@pytest.fixture
def shared(tmp_path, capsys):
    """Return the state of an audit that is being labelled."""
    path = written(predictions(40).drop(columns=["label", "is_labelled"]), tmp_path)
    words = [str(path), f"state={tmp_path / 'audit.json'}", "score=score", "group=sex"]
    assert main(["label", "next", *words]) == 0
    capsys.readouterr()
    warn.cache_clear()
    return StateFile(tmp_path / "audit.json")


@pytest.fixture
def watched(tmp_path):
    """Return the file of a watch, and a function that writes a table and looks at it."""
    file = WatchFile(tmp_path / "watch.json")
    usual = {"group": ("sex",), "target": "label", "score": "score"}

    def look_at(frame, name="p.csv", **chosen):
        path = written(frame, tmp_path, name)
        return look(file, WatchOptions(path=path, **usual, **chosen), {"path"})

    return file, look_at


def rows(number, seed=0):
    return predictions(number, seed=seed)[["sex", "score", "label"]]


def weeks(*names, each=60):
    """Return rows of these weeks."""
    return rows(each * len(names)).assign(week=np.repeat(names, each))


def test_a_hard_link_is_warned_of(shared, tmp_path, capsys):
    os.link(shared.path, tmp_path / "hard.json")
    store(shared, resume(shared, Path()), {3: "1"})
    assert "other names, which are hard links" in capsys.readouterr().err


def test_the_last_answer_counts_whatever_the_clocks_say(shared, monkeypatch):
    session = resume(shared, Path())
    store(shared, session, {3: "1"})

    class Behind(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2001, 1, 1, tzinfo=UTC)

    monkeypatch.setattr(answering, "datetime", Behind)
    store(shared, session, {3: "0"}, overwrite=True)
    assert shared.read().answers[1].time < shared.read().answers[0].time
    assert resume(shared, Path()).state.labels == {3: "0"}


def test_who_goes_on_takes_back_nothing_that_another_has_asked(shared, monkeypatch):
    change = shared.change

    def late(mine):
        change(lambda state: replace(state, question="gap").with_answers((Answer(3, "1", ""),)))
        return change(mine)

    monkeypatch.setattr(StateFile, "change", lambda _, mine: late(mine))
    options = shared.read().options
    go_on(shared, options, set(), {"strategy": "random"})
    state = shared.read()
    assert (state.question, state.strategy, state.labels) == ("gap", "random", {3: "1"})
    with pytest.raises(UserError, match="comes too late"):
        go_on(shared, options, set(), {"stop": 9})


@pytest.mark.thorough
@pytest.mark.parametrize("first", [True, False], ids=["first look", "later look"])
def test_two_looks_at_once_count_each_row_once(first, watched, monkeypatch, capsys):
    file, look_at = watched
    table = rows(300)
    if not first:
        look_at(table[:100])
    read = look_module.read_watched

    def slowly(*words):
        monkeypatch.setattr(look_module, "read_watched", read)
        result = read(*words)
        assert look_at(table[:200])[1].rows == 200  # another person's, meanwhile
        return result

    monkeypatch.setattr(look_module, "read_watched", slowly)
    before, after = look_at(table[:200])
    assert (before.rows, after.rows, after.marks[-1].labels) == (200, 200, 200)
    assert file.read() == after
    assert "was changed by another look meanwhile" in capsys.readouterr().err
    assert look_at(table)[1].rows == 300


def test_a_week_that_comes_twice_under_another_name_is_not_counted_twice(watched):
    file, look_at = watched
    week = weeks("week 7").assign(score=lambda frame: frame["score"].round(1))
    look_at(week, time="week")
    before = file.path.read_bytes()
    assert look_at(week)[1].rows == 60  # the same again
    for name in ("week 07", "Week 7", "week  7"):
        with pytest.raises(UserError, match="was looked at as 'week 7': spell it so"):
            look_at(week.assign(week=name), "again.csv")
    with pytest.raises(UserError, match=r"rows of period 'week 8' are those of 'week 7', in the"):
        look_at(week.assign(week="week 8"), "copy.csv")
    assert file.path.read_bytes() == before
    alike = week.assign(week="week 8", sex="Male", score=0.1, label=0)
    assert look_at(alike, "alike.csv")[1].rows == 120
    # All rows of week 9 are of one kind, as those of week 8: that is no sign of a copy.
    assert look_at(alike.assign(week="week 9"), "alike.csv")[1].rows == 180


def test_a_week_that_is_missing_is_named_and_refused_when_it_comes(tmp_path, said_by, refused):
    words = ["target=label", "score=score", "group=sex", "time=week"]
    words += [f"state={tmp_path / 's.json'}", f"out={tmp_path / 'page'}"]
    said = said_by("watch", written(weeks("week 1", "week 2", "week 4"), tmp_path), *words)
    assert "Periods of which no row came, between 'week 2' and 'week 4' (1)" in said
    late = written(weeks("week 3"), tmp_path, "late.csv")
    refused("watch", late, *words, message="a watch goes forward; leave these rows out")


@pytest.mark.thorough
def test_two_people_who_are_killed_lose_nothing_and_count_nothing_twice():
    assert states.main(4)
