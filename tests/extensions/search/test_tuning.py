"""Tuning: what is searched, that test rows have no say in it, and that it goes on after a kill."""

from contextlib import ExitStack

import numpy as np
import pandas as pd
import pytest
from hydra.core.global_hydra import GlobalHydra

from fairbench.cli.command_line import CommandLine, hydra_of
from fairbench.core.errors import UserError
from fairbench.experiments.execute import prepared
from fairbench_search.alternative import tuned
from fairbench_search.tune_verb import search_of
from tests.harness import CONF, quick

SPACE = "learner.C=tag(log,interval(0.01,10))"


def table(folder, target=None, n=120):
    """Write people to a file, with other targets where there are any."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 3))
    label = (x[:, 0] + rng.standard_normal(n) > 0).astype(int)
    people = pd.DataFrame(x, columns=list("abc")).assign(
        sex=np.where(rng.random(n) < 0.5, "f", "m"), label=label if target is None else target
    )
    folder.mkdir(exist_ok=True)
    people.to_csv(folder / "people.csv", index=False)
    return people


@pytest.fixture
def search(tmp_path):
    """Return a function that makes the search of some words."""
    GlobalHydra.instance().clear()
    with hydra_of(CONF), ExitStack() as held:

        def made(*words, folder=tmp_path / "one", trials=3):
            if not (folder / "people.csv").exists():
                table(folder)
            line = CommandLine(
                [
                    "hydra/sweeper=tune", "dataset=table", f"dataset.path={folder}/people.csv",
                    "dataset.target=label", "dataset.sensitive=[sex]", "split.repeats=2",
                    "learner=logistic_regression", "method=baseline", "figures=false",
                    "tracking=none", f"results={folder}/results", f"hydra.sweeper.trials={trials}",
                    *(words or [SPACE]),
                ],
                CONF, sweep=True,
            )  # fmt: skip
            return search_of(line, held)[0]

        yield made


def found(trials):
    """Return the values of trials, and their objectives."""
    return [
        (trial.values, [made.value for made in trial._made[trial.folds]], trial.folds)
        for trial in trials
    ]


def of_validation(gain):
    """Return what validation rows promise, without what test rows show."""
    return {name: value for name, value in gain.items() if not name.startswith("test_")}


@pytest.mark.thorough
def test_test_rows_have_no_say_in_what_is_tried_and_chosen(search, tmp_path):
    one = search()
    test = prepared(one.default_plan).cells[0].fold.test
    label = table(tmp_path / "one")["label"].to_numpy().copy()
    label[test] = 1 - label[test]
    table(tmp_path / "two", label)
    other = search(folder=tmp_path / "two")
    first, second = one.carry_out(), other.carry_out()
    assert found(first) == found(second)
    answers = [tuned(tuning)[0] for tuning in (one, other)]
    assert answers[0].position == answers[1].position
    promised, others = ([of_validation(gain) for gain in answer.gains] for answer in answers)
    assert promised == others
    wrong = [answer.gains[0]["test_value"] for answer in answers]
    assert wrong[1] == pytest.approx(1 - wrong[0])


@pytest.mark.thorough
@pytest.mark.parametrize("damaged_at", [None, 0.1, 0.4, 0.7])
def test_a_search_goes_on_after_a_kill_or_damage_and_fits_nothing_twice(
    search, tmp_path, damaged_at
):
    whole = search(folder=tmp_path / "whole", trials=4)
    expected = found(whole.carry_out())
    begun = search(trials=2)
    begun.carry_out()
    path = begun.folder / "trials.jsonl"
    content = bytearray(path.read_bytes())
    if damaged_at is None:
        content += b'{"values": {"learn'  # a kill in the middle of a line
    else:
        content[int(damaged_at * len(content))] ^= 4
    path.write_bytes(content)
    again = search(trials=4)
    assert found(again.carry_out()) == expected
    once_more = search(trials=4)
    assert found(once_more.carry_out()) == expected
    assert begun.fitted + again.fitted == whole.fitted
    assert once_more.fitted == 0


@pytest.mark.parametrize(
    "content", quick([b"", b"{}", b'{"space": {}}', b"\xff\xfe", b"[1]"], [b"{}"])
)
def test_a_study_that_is_damaged_or_of_another_space_is_refused_and_can_begin_anew(search, content):
    begun, wider = search(trials=1), "learner.C=tag(log,interval(0.01,100))"
    begun.carry_out()
    with pytest.raises(UserError, match=r"was begun with learner.C=tag.*study=NAME"):
        search(wider, trials=1).carry_out()
    search(wider, "hydra.sweeper.study=wider", trials=1).carry_out()
    (begun.folder / "study.json").write_bytes(content)
    with pytest.raises(UserError, match="is not as it was written: begin the study anew"):
        search(trials=1).carry_out()
    search(SPACE, "resume=false", trials=1).carry_out()
    with pytest.raises(UserError, match="no trial was begun"):
        tuned(search(SPACE, "hydra.sweeper.cpu_seconds=1e-9", "hydra.sweeper.study=short"))


@pytest.mark.thorough
def test_what_is_surely_worse_is_stopped(search, tmp_path):
    """A model that predicts one class for all errs more often: its last repeats are not made."""
    table(tmp_path / "one", n=1200)
    words = ("learner.C=0.0000000001,1", "split.repeats=3")
    one = search(*words, trials=9)
    trials = {float(trial.values.get("learner.C", 0)): trial for trial in one.carry_out()}
    assert not trials[1].stopped
    assert trials[1e-10].stopped
    assert trials[1e-10].folds < 3
    again, shown = search(*words, trials=9), []
    again.show = lambda number, trial: shown.append(trial.stopped)  # as each is printed
    again.carry_out()
    assert shown == [False, *(trial.stopped for trial in one.trials)]
