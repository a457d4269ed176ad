"""Tuning and the search for an alternative: what is tried, chosen, judged once, and refused."""

import csv
import json
from contextlib import ExitStack
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hydra.core.global_hydra import GlobalHydra

from fairbench.cli.command_line import CommandLine, hydra_of
from fairbench.cli.main import main
from fairbench.cli.verbs.run import run_words
from fairbench.components.datasets import table
from fairbench.core.errors import UserError
from fairbench.data.splits import SameTest
from fairbench.experiments.execute import prepared
from fairbench.results.catalogue import Catalogue
from fairbench_search.alternative import tuned
from fairbench_search.tune_verb import search_of

pytestmark = pytest.mark.thorough
LOGISTIC = ("learner=logistic_regression", "tracking=none")
SPACE = "learner.C=tag(log,interval(0.01,10))"


def put_people(folder, n=120, flip=None):
    """Write people to a file, the labels of some turned around."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 3))
    sex = np.where(rng.random(n) < 0.5, "f", "m")
    label = (x[:, 0] + 0.8 * (sex == "m") + rng.standard_normal(n) > 0.4).astype(int)
    if flip is not None:
        label[flip] = 1 - label[flip]
    people = pd.DataFrame(x, columns=list("abc")).assign(sex=sex, label=label)
    folder.mkdir(exist_ok=True)
    people.to_csv(folder / "people.csv", index=False)


def of_people(folder):
    """Return the words that name the people of a folder."""
    file = f"dataset.path={folder}/people.csv"
    return "dataset=table", file, "dataset.target=label", "dataset.sensitive=[sex]"


@pytest.fixture
def search(tmp_path):
    """Return a function that makes the search of some words."""
    GlobalHydra.instance().clear()
    with hydra_of(), ExitStack() as held:

        def made(*words, folder=tmp_path / "one", trials=3):
            if not (folder / "people.csv").exists():
                put_people(folder)
            words = [
                "hydra/sweeper=tune", *of_people(folder), "split.repeats=2", *LOGISTIC,
                "method=baseline", "figures=false", f"results={folder}/results",
                f"hydra.sweeper.trials={trials}", *(words or [SPACE]),
            ]  # fmt: skip
            return search_of(CommandLine(words, sweep=True), held)

        yield made


def found(trials):
    """Return the values of trials, and their objectives."""
    return [
        (trial.values, [made.value for made in trial._made[trial.folds]], trial.folds)
        for trial in trials
    ]


def test_test_rows_have_no_say_in_what_is_tried_and_chosen(search, tmp_path):
    one = search()
    test = prepared(one.default_plan).cells[0].fold.test
    put_people(tmp_path / "two", flip=test)
    other = search(folder=tmp_path / "two")
    assert found(one.carry_out()) == found(other.carry_out())
    answers = [tuned(tuning)[0] for tuning in (one, other)]
    assert answers[0].position == answers[1].position
    for gain, same in zip(*(answer.gains for answer in answers), strict=True):
        assert all(gain[name] == same[name] for name in gain if not name.startswith("test_"))
    wrong = [answer.gains[0]["test_value"] for answer in answers]
    assert wrong[1] == pytest.approx(1 - wrong[0])


def test_a_search_goes_on_and_fits_nothing_twice(search, tmp_path):
    whole = search(folder=tmp_path / "whole", trials=4)
    expected = found(whole.carry_out())
    begun, again, once_more = (search(trials=trials) for trials in (2, 4, 4))
    begun.carry_out()
    for one in (again, once_more):
        assert found(one.carry_out()) == expected
    assert begun.fitted + again.fitted == whole.fitted and once_more.fitted == 0


def test_another_study_is_another_search_and_one_can_begin_anew(search):
    begun, other, anew = (
        search(SPACE, word, trials=1)
        for word in ("hydra.sweeper.study=", "hydra.sweeper.study=other", "resume=false")
    )
    first, second, third = (one.carry_out()[1].values for one in (begun, other, anew))
    assert first == third != second
    assert (begun.fitted, other.fitted, anew.fitted) == (4, 2, 4)
    with pytest.raises(UserError, match="no trial was begun"):
        tuned(search(SPACE, "hydra.sweeper.cpu_seconds=1e-9"))


def test_what_is_surely_worse_is_stopped(search, tmp_path):
    """A model that predicts one class for all errs more often: its last repeats are not made."""
    put_people(tmp_path / "one", n=1200)
    words = ("learner.C=0.0000000001,1", "split.repeats=3")
    one = search(*words, trials=9)
    trials = {float(trial.values.get("learner.C", 0)): trial for trial in one.carry_out()}
    assert not trials[1].stopped
    assert trials[1e-10].stopped and trials[1e-10].folds < 3
    again, shown = search(*words, trials=9), []
    again.show = lambda number, trial: shown.append(trial.stopped)  # as each is printed
    again.carry_out()
    assert shown == [False, *(trial.stopped for trial in one.trials)]


DEPTHS = "learner.max_depth=interval(2,4)"
SMALL = ("dataset.n_samples=120", "split.repeats=2", "figures=false", "tracking=none")


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
    (*_, trials) = answer["sections"][-1]["blocks"]
    assert "frontier: no other trial" in trials["caption"]
    values = np.array([row[2:4] for row in trials["rows"]], float)
    for mine, row in zip(values, trials["rows"], strict=True):
        beaten = ((values <= mine).all(axis=1) & (values < mine).any(axis=1)).any()
        assert ("frontier" in row[-1]) != beaten
    assert [run.purpose for run in Catalogue(tmp_path)] == ["tuning", "tuning"]


def test_a_space_that_was_tried_whole_ends_the_search(tmp_path, said_by):
    words = ["tune", *SMALL, f"results={tmp_path}", "learner.max_depth=2,3"]
    assert "the search ended early" not in said_by(*words, "trials=1")
    assert "the search ended early: there is no point" in said_by(*words, "trials=40")


CASES = {
    "no rows": (["split.validation=0"], "no validation rows to choose by: add split.validation="),
    "rows that chose": (
        ["split=holdout", "split.validation=0.2"],
        "one repeat tests are validation rows of another",
    ),
    "empty interval": (["learner.gamma=interval(2,2)"], "'learner.gamma=interval(2,2)' is empty"),
    "not whole": (["learner.rounds=interval(1.5,4)"], "learner.rounds is a whole number"),
    "logarithm": (["learner.gamma=tag(log,interval(0,1))"], "a logarithm needs a number above 0"),
    "weights": (["weights=1,2"], "weights= has 2 and objectives= 1"),
    "seeds": (["seed=0,1"], "'seed=0,1' cannot be tuned, as it changes what is judged"),
    "endless": (["learner.gamma=interval(0,inf)"], "'learner.gamma=interval(0,inf)' is endless"),
    "none to set": (["intervention.strength=0,1"], "intervention of this command has no options"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_in_a_line(case, tmp_path, refused):
    words, message = CASES[case]
    refused("tune", *SMALL, DEPTHS, *words, f"results={tmp_path}", message=message)


def test_an_option_that_another_split_has_is_refused_in_words(tmp_path, refused):
    words = ["experiment=atlas/9_tabm", "dataset=simulated", "learner.epochs=1,2"]
    said = "split=tuning has no option 'rows': leave split.rows out, or, where an"
    refused("tune", *words, f"results={tmp_path}", message=said)


def test_the_sweepers_options_are_refused_as_those_of_the_verb(tmp_path, refused):
    words = ["-m", "hydra/sweeper=tune", *SMALL, DEPTHS, f"results={tmp_path}"]
    refused("run", *words, "hydra.sweeper.weights=[nan]", message="'nan'; it must be a number")
    refused("run", *words, "hydra.sweeper.format=pdf", message="format")


# A less discriminatory alternative to a model in use.

FEW = ("dataset.n_samples=240", *LOGISTIC, "trials=4", "worth=0.0001")


def asked(folder, *words, small=FEW):
    """Carry out the command; return the exit status, the page's figures and the log."""
    given = {word.partition("=")[0] for word in words}
    kept = [word for word in small if word.partition("=")[0] not in given]
    status = main(["alternative", *kept, *words, f"results={folder}", f"out={folder}/page"])
    if status:
        return status, {}, []
    page = json.loads((folder / "page" / "alternative.json").read_text())
    log = csv.DictReader((folder / "page" / "log.csv").read_text().splitlines())
    return status, page, [*log]


def status_of(words, small=FEW):
    """Return the exit status of the command in a folder, the first of the words."""
    return asked(*words, small=small)[0]


def untimed(log):
    """Return the rows of a log without what their fits took."""
    return [{**row, "cpu_seconds": ""} for row in log]


def test_everything_that_was_tried_is_in_the_log_and_one_is_chosen(tmp_path, capsys):
    status, page, log = asked(tmp_path)
    assert status == 0 and len(log) == 5 == len(page["tried"])
    assert log[0]["standing"].startswith("in use")
    most = float(log[0]["error_rate"]) + 0.005
    least = min(float(row["gap"]) for row in log if float(row["error_rate"]) <= most)
    (chosen,) = (row for row in log if "chosen" in row["standing"])
    assert float(chosen["gap"]) == least
    shown = capsys.readouterr()
    assert "candidate 4: " in shown.err and "With 95% certainty" in shown.out
    assert max(map(len, shown.out.splitlines()[:-2])) <= 100
    assert page["search"]["chance_of_better"][0] == 0 < page["search"]["chance_of_better"][1] < 1
    assert page["search"]["drawn"] == 4 and page["search"]["ended"] == "trials"
    assert len(Catalogue(tmp_path)) == len(page["runs"])  # no other candidate saw the test rows


def test_the_same_command_goes_on_with_any_processes_and_fits_nothing_twice(tmp_path, capsys):
    _, whole, expected = asked(tmp_path / "whole")
    asked(tmp_path / "killed", "trials=2", "n_jobs=2")  # several processes try the same
    capsys.readouterr()
    _, page, log = asked(tmp_path / "killed")
    assert "fitted 2 cells" in capsys.readouterr().out
    assert untimed(log) == untimed(expected)
    assert page["runs"] == whole["runs"]
    # A draw depends on its number and the seed alone.
    words = ("trials=2", "error_margin=0.2", "minimise=equal_opportunity")
    _, _, few = asked(tmp_path / "whole", *words)
    _, _, other = asked(tmp_path / "whole", "seed=1")
    drawn, same, others = ([row["what"] for row in of] for of in (log, few, other))
    assert same == drawn[:3] and others[1:] != drawn[1:]


def test_a_plan_tries_nothing(tmp_path, said_by):
    """All that conf/alternative.yaml states can be drawn."""
    words = ["dataset.n_samples=240", "plan=true", f"results={tmp_path}"]
    assert "at most 100 candidates, each of one cell" in said_by("alternative", *words)
    assert not (tmp_path / "cells").exists()


def test_test_rows_have_no_say_in_an_alternative(tmp_path):
    pages, logs, flip = [], [], None
    for folder in (tmp_path / "as_it_is", tmp_path / "turned"):
        put_people(folder, n=800, flip=flip)
        of = {"path": f"{folder}/people.csv", "target": "label", "sensitive": ["sex"]}
        words = (*of_people(folder), *LOGISTIC, "trials=9", "error_margin=0.3")
        _, page, log = asked(folder, small=words)
        pages.append(page)
        logs.append(untimed(log))
        flip = SameTest(1, validation=0.25).folds(table.load(None, **of), 0)[0].test
    assert logs[0] == logs[1]
    assert pages[0]["better"]
    assert pages[1]["errors"][0][0] == pytest.approx(1 - pages[0]["errors"][0][0])


def test_a_candidate_that_fails_is_in_the_log_with_the_reason(tmp_path):
    words = ("learner.C=1,-1", "intervention=none", "method=baseline")
    _, page, log = asked(tmp_path, *words, "trials=8")
    failed = [row for row in log if row["standing"] == "failed"]
    assert failed and all(row["reason"] and not row["gap"] for row in failed)
    assert len(log) == page["search"]["drawn"] + 1
    assert "failed; the log has the reasons" in " ".join(page["summary"]["unseen"])


def test_of_a_space_that_was_tried_whole_nothing_more_is_gained(tmp_path):
    """Nor is there an alternative among models that decide as the one in use does."""
    words = ("intervention=none", "method=thresholded", "method.threshold=0.5,0.5000001")
    in_use = "in_use=[learner=logistic_regression,method=thresholded,method.threshold=0.5]"
    _, page, _ = asked(tmp_path, *words, in_use, "learner.C=1", "trials=60")
    searched, found = page["search"], " ".join(page["summary"]["found"])
    assert searched["ended"] == "whole" and searched["drawn"] < 60
    assert searched["further_gain"] == {"1": [0, 0], "10": [0, 0], "100": [0, 0]}
    assert "every candidate there is was tried" in found and "No alternative is better" in found
    assert page["alternative"] is None and not page["better"] and len(page["runs"]) == 1


def test_that_the_group_is_needed_is_said_and_can_be_left_out(tmp_path, capsys, refused):
    words = ("learner=logistic_regression", "intervention=threshold_optimizer", "error_margin=0.3")
    _, page, _ = asked(tmp_path / "with", *words)
    assert page["alternative"]["group_at_prediction"]
    assert "It needs each person's group at prediction time" in " ".join(page["summary"]["found"])
    said = "it needs a person's group at prediction time"
    capsys.readouterr()
    refused(tmp_path / "without", *words, "without_group=true", message=said, by=status_of)
    _, page, log = asked(tmp_path / "some", "without_group=true")
    assert not any(row["group_at_prediction"] == "True" for row in log)
    assert any("threshold_optimizer" in name for name in page["search"]["left_out"])


def test_test_rows_that_have_judged_another_candidate_are_corrected_for(tmp_path):
    loose = ("error_margin=0.4", "trials=6")
    _, first, _ = asked(tmp_path, "error_margin=0.4", "trials=2")
    _, second, _ = asked(tmp_path, *loose)
    _, alone, _ = asked(tmp_path / "alone", *loose)
    assert first["candidates_judged"] == alone["candidates_judged"] == 1
    assert first["better"] and first["runs"] != second["runs"]
    assert second["candidates_judged"] == 2
    assert second["gap_change"][1] < alone["gap_change"][1]
    _, again, _ = asked(tmp_path, *loose)  # no further candidate is judged
    assert again["candidates_judged"] == 2
    _, other, _ = asked(tmp_path, *loose, "intervention=none")  # another search, the same rows
    assert other["candidates_judged"] == 2 + (other["runs"][-1] not in second["runs"])


def test_enough_ends_the_search_before_the_most_that_is_allowed(tmp_path):
    _, page, log = asked(tmp_path, "worth=0.9", "trials=60")
    assert page["search"]["ended"] == "worth" and len(log) == 2


REFUSED = {
    "nothing": (["error_margin=0.01"], "nothing to search is named, such as dataset=german"),
    "gap": (["minimise=disparate_impact"], "unknown gap 'disparate_impact'"),
    "one candidate": (
        ["intervention=none", "method=baseline", "learner.C=1"],
        "there is one candidate alone",
    ),
    "several fits": (["split.repeats=3"], "3 fits of each candidate are asked for"),
    "two data sets": (["dataset=simulated,german"], "has several values"),
    "regression": (["dataset=simulated_regression"], "has no binary target"),
    "in use": (["in_use=[dataset=adult]"], "in_use: 'dataset=adult' is no part of a model"),
    "two in use": (['in_use=["learner.C=interval(1,2)"]'], "has several values: one is in use"),
    "mixed": (["in_use=[learner=xgboost,abc]"], "abc]: write words such as learner=xgboost"),
    "weights": (["evaluator.weights=true"], "has no survey weights"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_alternative_is_refused_in_a_line(case, tmp_path, refused):
    words, message = REFUSED[case]
    small = () if case in ("nothing", "regression") else FEW
    refused(tmp_path, *words, message=message, by=partial(status_of, small=small))
