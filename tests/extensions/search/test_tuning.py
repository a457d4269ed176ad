"""Tuning and its two doors: what is searched, refused, and goes on after a kill."""

import json
from contextlib import ExitStack
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import yaml
from hydra.core.global_hydra import GlobalHydra

from fairbench.cli.command_line import CommandLine, hydra_of
from fairbench.cli.main import main
from fairbench.cli.verbs.run import run_words
from fairbench.core.errors import UserError
from fairbench.experiments.execute import prepared
from fairbench.results.catalogue import Catalogue
from fairbench_search.alternative import tuned
from fairbench_search.goals import Tuning
from fairbench_search.tune_verb import search_of
from tests.harness import CONF

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
    with hydra_of(), ExitStack() as held:

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
                sweep=True,
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


@pytest.mark.thorough
@pytest.mark.parametrize("content", [b'{"space": {}}', b"\xff\xfe"])
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


DEPTHS = "learner.max_depth=interval(2,4)"
SMALL = ("dataset.n_samples=120", "split.repeats=2", "figures=false", "tracking=none")


def test_the_sweeper_has_the_options_of_the_verb_and_their_defaults():
    stored = yaml.safe_load((CONF / "hydra/sweeper/tune.yaml").read_text())
    options = Tuning()
    for field in fields(Tuning):
        default = getattr(options, field.name)
        assert stored[field.name] == (list(default) if isinstance(default, tuple) else default)


@pytest.mark.thorough
def test_both_doors_lead_to_the_same_answer(tmp_path, capsys):
    words = [*SMALL, DEPTHS, f"results={tmp_path}"]
    assert main(["tune", *words, "trials=2", "objectives=error_rate,statistical_parity"]) == 0
    printed = capsys.readouterr()
    assert "The test rows, looked at once, show" in printed.out
    assert "trial 2: max_depth=" in printed.err
    assert max(map(len, printed.out.splitlines()[:-1])) <= 100
    own = ["trials=2", "objectives=[error_rate,statistical_parity]", "format=json"]
    sweeper = ["-m", "hydra/sweeper=tune", *words, *(f"hydra.sweeper.{word}" for word in own)]
    assert run_words(sweeper) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["title"].startswith("Tuning simulated")
    assert_frontier(answer)
    assert len(list((tmp_path / "tuning").iterdir())) == 1
    assert [run.purpose for run in Catalogue(tmp_path)] == ["tuning", "tuning"]


@pytest.mark.thorough
def test_a_space_that_was_tried_whole_ends_the_search(tmp_path, capsys):
    words = ["tune", *SMALL, f"results={tmp_path}", "learner.max_depth=2,3"]
    assert main([*words, "trials=1"]) == 0
    assert "the search ended early" not in capsys.readouterr().out
    assert main([*words, "trials=40"]) == 0
    assert "the search ended early: there is no point" in capsys.readouterr().out
    (study,) = (tmp_path / "tuning").iterdir()
    assert len((study / "trials.jsonl").read_text().splitlines()) < 40


def tables(part):
    """Yield every table of a document in JSON."""
    if isinstance(part, dict):
        if part.get("kind") == "table":
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for item in part:
            yield from tables(item)


def assert_frontier(answer):
    """Compare what is called the frontier with the definition, pair by pair."""
    (table,) = (table for table in tables(answer) if table["title"] == "the trials")
    assert "frontier: no other trial" in table["caption"]
    values = {row[0]: row[2:4] for row in table["rows"]}
    for row in table["rows"]:
        beaten = any(
            all(a <= b for a, b in zip(value, row[2:4], strict=True)) and value != row[2:4]
            for value in values.values()
        )
        assert ("frontier" in row[-1]) != beaten


CASES = {
    "objective": (["objectives=eror_rate"], "unknown objective to tune for 'eror_rate': did you"),
    "no rows": (["split.validation=0"], "no validation rows to choose by: add split.validation="),
    "rows that chose": (
        ["split=holdout", "split.validation=0.2"],
        "rows that one repeat tests are validation rows of another",
    ),
    "empty interval": (["learner.gamma=interval(2,2)"], "'learner.gamma=interval(2,2)' is empty"),
    "not whole": (["learner.rounds=interval(1.5,4)"], "learner.rounds is a whole number"),
    "logarithm": (["learner.gamma=tag(log,interval(0,1))"], "a logarithm needs a number above 0"),
    "option": (["learner.max_dept=interval(2,4)"], "unknown option 'learner.max_dept': did you"),
    "no trials": (["trials=0"], "trials is 0; it must be at least 1"),
    "no seconds": (["cpu_seconds=0"], "cpu_seconds is 0; it must be above 0"),
    "weights": (["weights=1,2"], "weights= has 2 and objectives= 1"),
    "seeds": (["seed=0,1"], "'seed=0,1' cannot be tuned, as it changes what is judged"),
    "data sets": (["dataset=simulated,german"], "'dataset=simulated,german' cannot be tuned"),
    "repeats": (["split.repeats=2,3"], "'split.repeats=2,3' cannot be tuned"),
    "groups": (["protect=group,nothing"], "'protect=group,nothing' cannot be tuned"),
    "endless": (["learner.gamma=interval(0,inf)"], "'learner.gamma=interval(0,inf)' is endless"),
    "none to set": (
        ["intervention.strength=0,1"],
        "the intervention of this command has no options",
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_in_a_line(case, tmp_path, refused):
    words, message = CASES[case]
    refused("tune", *SMALL, DEPTHS, *words, f"results={tmp_path}", message=message)


@pytest.mark.thorough
def test_an_option_that_another_split_has_is_refused_in_words(tmp_path, refused):
    words = ["experiment=atlas/9_tabm", "dataset=simulated", "learner.epochs=1,2"]
    said = "split=tuning has no option 'rows': leave split.rows out, or, where an"
    refused("tune", *words, f"results={tmp_path}", message=said)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("trials=2.5", "trials is '2.5'; it must be a whole number"),
        ("level=2", "level is 2.0; it must be between 0 and 1"),
        ("weights=[nan]", "weights is 'nan'; it must be a number"),
        ("objectives=[eror_rate]", "unknown objective to tune for 'eror_rate'"),
        ("format=pdf", "unknown format 'pdf'; valid: html, json"),
    ],
)
def test_the_sweepers_options_are_refused_as_those_of_the_verb(word, message, tmp_path, refused):
    words = ["-m", "hydra/sweeper=tune", *SMALL, DEPTHS, f"results={tmp_path}"]
    refused("run", *words, f"hydra.sweeper.{word}", message=message)


@pytest.mark.thorough
def test_a_study_is_of_whose_gaps_it_judges_and_of_how_its_method_reads(tmp_path):
    words = ["tune", *SMALL, "learner.max_depth=2,3", "trials=1", f"results={tmp_path}"]
    for other in (["method=ensemble"], ["method=self_consistency"]):  # of the same cells
        assert main([*words, *other]) == 0
    assert len(list((tmp_path / "tuning").iterdir())) == 2


def test_nothing_to_tune_is_said_and_an_interval_outside_of_tuning_points_to_it(tmp_path, refused):
    results = f"results={tmp_path}"
    said = "nothing is to be tuned: give an option an interval"
    refused("tune", "dataset.n_samples=100", results, message=said)
    refused("tune", results, message="nothing to tune is named")
    said = "fairbench tune, or fairbench run -m hydra/sweeper=tune"
    refused("run", "-m", DEPTHS, results, message=said)
