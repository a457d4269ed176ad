"""``fairbench tune``, and the sweeper of the same name: one concept, two doors; bad input."""

import json
from dataclasses import fields
from functools import partial

import pytest
import yaml

from fairbench.cli.main import main
from fairbench.cli.run import run
from fairbench.results.catalogue import Catalogue
from fairbench_search.tune_verb import TuningOptions
from tests.harness import CONF, ROOT

SPACE = "learner.max_depth=interval(2,4)"
SMALL = ("dataset.n_samples=120", "split.repeats=2", "figures=false", "tracking=none")


def test_the_sweeper_has_the_options_of_the_verb_and_their_defaults():
    stored = yaml.safe_load((CONF / "hydra/sweeper/tune.yaml").read_text())
    options = TuningOptions()
    for field in fields(TuningOptions):
        default = getattr(options, field.name)
        assert stored[field.name] == (list(default) if isinstance(default, tuple) else default)


@pytest.mark.thorough
def test_both_doors_lead_to_the_same_answer(tmp_path, capsys):
    words = [*SMALL, SPACE, f"results={tmp_path}"]
    assert main(["tune", *words, "trials=2", "objectives=error_rate,statistical_parity"]) == 0
    printed = capsys.readouterr()
    assert "The test rows, looked at once, show" in printed.out
    assert "trial 2: max_depth=" in printed.err
    assert max(map(len, printed.out.splitlines()[:-1])) <= 100
    own = ["trials=2", "objectives=[error_rate,statistical_parity]", "format=json"]
    sweeper = ["-m", "hydra/sweeper=tune", *words, *(f"hydra.sweeper.{word}" for word in own)]
    assert run(sweeper, ROOT) == 0
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
    refused("tune", *SMALL, SPACE, *words, f"results={tmp_path}", message=message)


@pytest.mark.thorough
def test_an_option_that_another_split_has_is_refused_in_words(tmp_path, refused):
    words = ["experiment=atlas/9_tabm", "dataset=simulated", "learner.epochs=1,2"]
    said = "split=tuning has no option 'rows': leave split.rows out, or, where an"
    refused("tune", *words, f"results={tmp_path}", message=said)


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
    words = ["-m", "hydra/sweeper=tune", *SMALL, SPACE, f"results={tmp_path}"]
    refused(*words, f"hydra.sweeper.{word}", message=message, by=partial(run, root=ROOT))


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
    refused("-m", SPACE, results, message=said, by=partial(run, root=ROOT))
