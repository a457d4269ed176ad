"""Alarms are seldom false, no matter how often you look, and do not depend on when that was."""

import json

import numpy as np
import pytest

from benchmarks.watch import alarms_of, boundary, delay, false_alarms
from fairbench_watch.alarms import WatchFile, look, risks
from fairbench_watch.page import gaps_now
from fairbench_watch.sequences import FROM_START, log_evidence_needed
from fairbench_watch.state import WatchOptions
from tests.audits.tables import predictions


def test_what_may_go_wrong_adds_up_to_five_percent():
    of_gap, of_scores = risks(7, 4)
    assert 7 * of_gap + 4 * of_scores == pytest.approx(0.05)
    assert 7 * risks(7, 0)[0] == pytest.approx(0.05)
    shares = 2 / np.exp(log_evidence_needed(1.0, np.arange(1000)))
    assert shares[0] == pytest.approx(FROM_START)
    assert shares.sum() == pytest.approx(1, abs=1e-3)
    assert shares.sum() < 1


@pytest.mark.thorough
def test_false_alarms_are_rare_where_gaps_are_epsilon_to_the_hair():
    assert sum(false_alarm > 0 for false_alarm in false_alarms(10, rows=8000)) <= 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_at_most_five_percent_of_watches_ever_give_a_false_alarm():
    """Three gaps of 0.05 to the hair and four scores: 100,000 rows, looked at after each."""
    result = false_alarms(60)
    assert sum(alarms > 0 for alarms in result) <= 6  # 3 expected at the most; P(> 6) < 0.04


def test_large_gaps_are_found():
    table = boundary(np.random.default_rng(0), 4000)
    kinds = {(alarm["kind"], alarm["about"]) for alarm in alarms_of(table, epsilon=0.001)}
    assert kinds == {("passed", "group: B less A, selection rate")} or len(kinds) > 1


@pytest.mark.thorough
def test_a_gap_is_found_in_time_and_as_late_as_is_said():
    mean, said, fixed = delay((0.3, 0.4), 0.5, 0.05, 5, 200)
    assert mean < 1.5 * fixed
    assert said == pytest.approx(mean, rel=0.2)


@pytest.mark.thorough
def test_it_does_not_matter_when_is_looked(tmp_path):
    """The alarm about all rows so far is at the same row after one look as after thirty."""
    frame = predictions(1500)[["sex", "score", "label"]]
    frame["score"] = np.where(frame["sex"] == "Female", frame["score"] / 2, frame["score"])
    options = WatchOptions(
        path=tmp_path / "p.csv", group=("sex",), target="label", score="score",
        metrics=("statistical_parity",),
    )  # fmt: skip
    result = []
    for name, stops in (("once", [1500]), ("often", range(750, 1501, 50))):
        file = WatchFile(tmp_path / f"{name}.json")
        for stop in stops:
            frame[:stop].to_csv(options.path, index=False)
            state = look(file, options, set())[1]
        result.append(state)
    first = [[e for e in watch.alarms if e["kind"] == "passed"][0] for watch in result]
    assert first[0]["since"] == first[1]["since"] == 0
    assert abs(first[0]["row"] - first[1]["row"]) < 20  # the first group's share is that of a look
    counts = [watch.marks[-1].counts for watch in result]
    assert json.dumps(counts[0]) == json.dumps(counts[1])


def test_how_late_an_alarm_may_be_shrinks_with_fewer_gaps(tmp_path):
    predictions(1500)[["sex", "score", "label"]].to_csv(tmp_path / "p.csv", index=False)
    rows = []
    for number, metrics in enumerate(((), ("statistical_parity",))):
        options = WatchOptions(
            path=tmp_path / "p.csv", group=("sex",), target="label", score="score", metrics=metrics
        )
        state = look(WatchFile(tmp_path / f"{number}.json"), options, set())[1]
        rows.append(gaps_now(state)[0])
    assert rows[1]["first"] < rows[0]["first"] < rows[0]["next"] < np.inf


def test_a_gap_that_cannot_grow_is_never_found(tmp_path):
    """Decisions that differ as far as they can: no rate is 0.05 further away."""
    frame = predictions(400)[["sex"]]
    frame["yes"] = (frame["sex"] == "Male").astype(int)
    frame.to_csv(tmp_path / "p.csv", index=False)
    options = WatchOptions(path=tmp_path / "p.csv", group=("sex",), prediction="yes")
    (gap,) = gaps_now(look(WatchFile(tmp_path / "s.json"), options, set())[1])
    assert (abs(gap["value"]), gap["change"]) == (1.0, np.inf)
