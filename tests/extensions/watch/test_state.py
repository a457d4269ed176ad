"""The state of a watch after kills, rows that come twice, and how seldom an alarm is false."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from benchmarks.watch import POPULATIONS, delay, false_alarms
from fairbench.core.errors import UserError
from fairbench.core.files import sealed_json
from fairbench_watch.alarms import WatchFile, beyond_chance, look, risks
from fairbench_watch.page import gaps_now, repeats_sentence
from fairbench_watch.sequences import FROM_START, log_evidence_needed
from fairbench_watch.state import WatchOptions, drawn
from tests.audits.tables import predictions
from tests.harness import ROOT


def frame(rows, *, seed=0):
    """Return predictions with identifiers and scores of many digits."""
    result = predictions(rows, seed=seed)[["sex", "score", "label"]]
    return result.assign(person=[f"p{seed}-{row}" for row in range(rows)])


@pytest.fixture
def watch(tmp_path):
    """Return a function that writes a table and looks at it, with or without identifiers."""

    def once(table, name="s", **chosen):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        options = {"group": ("sex",), "target": "label", "score": "score", **chosen}
        file = WatchFile(tmp_path / f"{name}.json")
        look(file, WatchOptions(path=tmp_path / f"{name}.csv", **options), set())
        return file.read()

    return once


def counts(state):
    return np.array(state.marks[-1].counts["sex"]).round(9).tolist()


@pytest.mark.thorough
@pytest.mark.parametrize("chosen", [{"id": "person"}, {}], ids=["identifiers", "alike"])
@pytest.mark.parametrize("order", ["adjacent", "again", "shuffled"])
def test_rows_that_come_twice_are_counted_once(watch, chosen, order):
    table = frame(400)
    places = {
        "adjacent": np.repeat(np.arange(400), 2),
        "again": np.tile(np.arange(400), 2),
        "shuffled": np.random.default_rng(0).permutation(np.repeat(np.arange(400), 2)),
    }[order]
    whole = watch(table, "whole", **chosen)
    doubled = watch(table.iloc[places], "doubled", **chosen)
    assert whole.repeats == 0
    assert (doubled.repeats, doubled.rows) == (400, 800)
    assert counts(doubled) == counts(whole)
    assert doubled.marks[-1].labels == 400
    assert "no more rows are alike than chance brings about" in repeats_sentence(
        watch(table, "plain")
    )
    assert "Repeats: 400 rows" in repeats_sentence(doubled)


def test_repeats_of_a_later_look_are_no_news(watch):
    table = frame(300)
    first = watch(table, id="person")
    again = watch(pd.concat([table, table]), id="person")
    assert (again.repeats, again.rows, again.marks) == (300, 600, first.marks)
    more = watch(pd.concat([table, table, frame(50, seed=1)]), id="person")
    assert (more.repeats, more.marks[-1].row, more.marks[-1].labels) == (300, 650, 350)


@pytest.mark.thorough
@pytest.mark.parametrize("chosen", [{"id": "person"}, {}], ids=["identifiers", "alike"])
def test_the_label_of_a_repeat_counts_where_the_first_had_none(watch, chosen):
    table = frame(300).astype({"label": str})
    early = table.assign(label="")
    watch(early, **chosen)
    state = watch(pd.concat([early, table]), **chosen)
    assert state.marks[-1].labels == 300
    late = watch(pd.concat([table, table]), **chosen)
    assert counts(late) == counts(state) == counts(watch(table, "whole", **chosen))


def test_people_who_are_alike_by_chance_are_all_counted(watch):
    table = frame(1500)
    state = watch(table.assign(score=table["score"].round(2)))
    assert (state.repeats, state.once) == (0, False)
    assert "taken to be of different people" in repeats_sentence(state)


FAULTS = {
    "its schema is 9": lambda content: {"schema": 9},
    "colour": lambda content: {"options": {"colour": "red", "path": ""}},
    "not one label a row": lambda content: {"periods": [{"name": "", "parts": [], "labels": "01"}]},
    "is cut off": lambda content: {"seen": content["seen"][:-3]},
    "or is damaged": None,
}


@pytest.mark.thorough
@pytest.mark.parametrize("sentence", FAULTS)
def test_a_file_that_is_no_state_is_refused(sentence, watch, tmp_path):
    watch(frame(100))
    file = WatchFile(tmp_path / "s.json")
    content = json.loads(file.path.read_text())
    if part := FAULTS[sentence]:
        whole = [sealed_json({**content, **part(content)})]
    else:
        whole = ["", "{}", "\x00", '{"schema": 1']
    for text in whole:
        file.path.write_text(text)
        with pytest.raises(UserError, match=sentence):
            file.read()


def test_a_blank_identifier_is_refused(watch):
    with pytest.raises(UserError, match="identifier"):
        watch(frame(100).assign(person=""), id="person")


# Looks at ever more rows of a file, and says so after each.
WATCHER = """
import sys
from pathlib import Path
from fairbench_watch.alarms import WatchFile, look
folder = Path(sys.argv[1])
lines = (folder / "all.csv").read_text().splitlines(keepends=True)
file = WatchFile(folder / "s.json")
for rows in range(file.read().rows + 1, len(lines)):
    (folder / "s.csv").write_text("".join(lines[: rows + 1]))
    print(look(file, file.read().options, set())[1].rows, flush=True)
"""


@pytest.mark.thorough
def test_no_kill_loses_a_look_or_counts_a_row_twice(watch, tmp_path):
    """Watchers are killed at random moments: what was said is there, and the next one goes on."""
    table = pd.concat([frame(600), frame(600)[::-1], frame(300, seed=1)])
    table.to_csv(tmp_path / "all.csv", index=False)
    watch(table[:100], id="person")
    generator, said, file = np.random.default_rng(0), 100, WatchFile(tmp_path / "s.json")
    for _ in range(4):
        command = [sys.executable, "-c", WATCHER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as running:
            lines = [running.stdout.readline()]
            time.sleep(generator.uniform(0, 0.3))
            running.send_signal(signal.SIGKILL)
            lines += running.stdout.readlines()
        whole = [int(line) for line in lines if line.endswith("\n")]
        assert said + 1 <= whole[0] <= said + 2
        said = file.read().rows
        assert whole[-1] <= said <= whole[-1] + 1
    assert [mark.row for mark in file.read().marks] == [*range(100, min(said, 600) + 1)]
    state = watch(table, id="person")
    assert (state.repeats, state.rows) == (600, 1500)
    assert not list(tmp_path.glob(".s.json*tmp"))
    once = watch(pd.concat([frame(600), frame(300, seed=1)]), "whole", id="person")
    assert counts(state) == counts(once)


# Rows that are alike by chance are not taken for repeats, nor repeats for chance.


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [30, 1000, 30_000, 10**7])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_chance_is_not_taken_for_repeats_and_repeats_not_for_chance(kinds, spread):
    """Looked at after each of 60 batches, of kinds of rows that are alike or unlike in number."""
    draw, result = np.random.default_rng(kinds), 0
    for _ in range(5):
        chance = np.exp(spread * draw.standard_normal(kinds))
        rows = draw.choice(kinds, 3000, p=chance / chance.sum())
        result += any(
            beyond_chance(np.unique(rows[:stop], return_counts=True)[1])
            for stop in range(50, 3001, 50)
        )
        if kinds >= 1000 and not spread:
            assert beyond_chance(np.unique(np.tile(rows[:1000], 2), return_counts=True)[1])
    assert result <= 1


def test_what_may_go_wrong_adds_up_to_five_percent():
    of_gap, of_scores = risks(7, 4)
    assert 7 * of_gap + 4 * of_scores == pytest.approx(0.05)
    assert 7 * risks(7, 0)[0] == pytest.approx(0.05)
    shares = 2 / np.exp(log_evidence_needed(1.0, np.arange(1000)))
    assert shares[0] == pytest.approx(FROM_START)
    assert shares.sum() == pytest.approx(1, abs=1e-3)
    assert shares.sum() < 1


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("watches", "most", "size"),
    [
        pytest.param(10, 2, {"rows": 8000}, marks=pytest.mark.thorough),
        # 3 are expected at the most, and over 6 with a probability of under 0.04.
        pytest.param(60, 6, {}, marks=pytest.mark.slow),
    ],
)
def test_at_most_five_percent_of_watches_ever_give_a_false_alarm(watches, most, size):
    """Three gaps of 0.05 to the hair and four scores, looked at after each row, of 100,000."""
    assert sum(alarms > 0 for alarms in false_alarms(watches, **size)) <= most


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [1, 5, 10])
@pytest.mark.parametrize(
    ("rates", "share", "epsilon"),
    [
        pytest.param(*population, marks=pytest.mark.slow if place else pytest.mark.thorough)
        for place, population in enumerate(POPULATIONS)
    ],
)
def test_a_gap_is_found_within_half_more_rows_than_a_fixed_test_needs(rates, share, epsilon, gaps):
    """The fixed test: two-sided 5 %, power 80 %, its level shared between as many gaps."""
    mean, said, fixed = delay(rates, share, epsilon, gaps, 200)
    assert mean <= 1.5 * fixed
    assert said == pytest.approx(mean, rel=0.2)


@pytest.mark.thorough
def test_it_does_not_matter_when_is_looked(watch):
    """The alarm about all rows so far is at the same row after one look as after thirty."""
    table = frame(1500)
    table["score"] = np.where(table["sex"] == "Female", table["score"] / 2, table["score"])
    once = watch(table, "once", metrics=("statistical_parity",))
    for stop in range(750, 1501, 50):
        often = watch(table[:stop], "often", metrics=("statistical_parity",))
    first = [[e for e in state.alarms if e["kind"] == "passed"][0] for state in (once, often)]
    assert first[0]["since"] == first[1]["since"] == 0
    assert abs(first[0]["row"] - first[1]["row"]) < 20  # the first group's share is that of a look
    assert json.dumps(once.marks[-1].counts) == json.dumps(often.marks[-1].counts)


@pytest.mark.thorough
def test_limits_are_computed_where_charts_show_them(watch):
    """A long watch has many marks, and charts of at most 200 and the last."""
    table = frame(2000).assign(week=np.arange(2000) // 4)
    early = table.head(1800)
    marks = watch(early, "weeks", time="week", metrics=("statistical_parity",)).marks
    kept = [mark.row for mark in marks if mark.limits]
    assert len(marks) == 450
    assert kept == [mark.row for mark in drawn(marks)]
    assert 100 < len(kept) <= 201
    later = watch(table, "weeks", time="week", metrics=("statistical_parity",)).marks
    assert {*kept} <= {mark.row for mark in later if mark.limits}
    assert [mark.limits for mark in later[:450] if mark.row in kept] == [
        mark.limits for mark in marks if mark.limits
    ]
    assert all(mark.limits for mark in drawn(later))


def test_how_late_an_alarm_may_be_shrinks_with_fewer_gaps(watch):
    every = gaps_now(watch(frame(1500), "every"))[0]
    one = gaps_now(watch(frame(1500), "one", metrics=("statistical_parity",)))[0]
    assert one["first"] < every["first"] < every["next"] < np.inf


def test_a_gap_that_cannot_grow_is_never_found(watch):
    """Decisions that differ as far as they can: no rate is 0.05 further away."""
    table = frame(400).assign(yes=lambda rows: (rows["sex"] == "Male").astype(int))
    (gap,) = gaps_now(watch(table, target="", score="", prediction="yes"))
    assert (abs(gap["value"]), gap["change"]) == (1.0, np.inf)
