"""Runs are listed and filtered by what was chosen; mistaken words are refused."""

import json
from dataclasses import replace

import pytest

from fairbench.core.errors import UserError
from fairbench.results.listing import list_runs, one_run, runs_lines

CHOICES = {"split": "holdout", "learner": "xgboost", "intervention": "none", "evaluator": "default"}


@pytest.fixture
def results(tmp_path):
    runs = {
        "aa01": ("adult", "ensemble", "sex x race", 0),
        "aa02": ("adult", "binomial_nll", "sex", 0),
        "bb03": ("german", "ensemble", "sex", 7),
    }
    for run, (dataset, method, protect, seed) in runs.items():
        environment = {
            "choices": {**CHOICES, "dataset": dataset, "method": method},
            "protect": protect,
            "seed": seed,
        }
        folder = tmp_path / "runs" / run
        folder.mkdir(parents=True)
        (folder / "environment.json").write_text(json.dumps(environment))
        depth = 6 if dataset == "adult" else 3
        (folder / "config.yaml").write_text(f"learner:\n  max_depth: {depth}\nlabel: null\n")
    (tmp_path / "runs" / "cc04").mkdir()
    (tmp_path / "runs" / "cc05").mkdir()
    (tmp_path / "runs" / "cc05" / "environment.json").write_text("half a fi")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {"aa01", "aa02", "bb03"}),
        (["dataset=adult"], {"aa01", "aa02"}),
        (["dataset=adult,german", "method=ensemble"], {"aa01", "bb03"}),
        (["protect=sexxrace"], {"aa01"}),
        (["seed=7"], {"bb03"}),
        (["aa"], {"aa01", "aa02"}),
        (["bb", "aa02"], {"aa02", "bb03"}),
        (["aa", "method=ensemble"], {"aa01"}),
        (["intervention=reweighing"], set()),
        (["cc"], set()),
        (["learner.max_depth=6"], {"aa01", "aa02"}),
        (["learner.max_depth=3,6", "method=ensemble"], {"aa01", "bb03"}),
        (["learner.max_depth=9"], set()),
    ],
)
def test_words_choose_runs(results, words, expected):
    assert {run.id for run in list_runs(results, words)} == expected


def test_an_unknown_key_is_refused_with_the_nearest(results):
    with pytest.raises(UserError, match="unknown key 'methd': did you mean method"):
        list_runs(results, ["methd=ensemble"])


def test_an_option_that_no_run_has_is_refused_with_the_nearest(results):
    with pytest.raises(
        UserError, match="option 'learner.max_dept': did you mean learner.max_depth"
    ):
        list_runs(results, ["learner.max_dept=6"])


def test_what_all_runs_have_in_common_is_said_once(results):
    text = "\n".join(runs_lines(list_runs(results)))
    assert text.count("xgboost") == 1
    assert "intervention=none" in text
    assert text.count("binomial_nll") == 1


def test_lines_fit_a_hundred_characters(results):
    runs = list_runs(results)
    long = replace(runs[0], choices={key: 40 * key[0] for key in runs[0].choices})
    lines = runs_lines([long, *runs])
    assert max(map(len, lines)) == 100
    assert all("…" in line for line in lines if line.startswith("aa01") and "ddd" in line)
    assert sum(line.startswith(("aa0", "bb0")) for line in lines) == 4


def test_one_run_is_found_by_the_beginning_of_its_id(results):
    assert one_run("bb", results).path.name == "bb03"
    with pytest.raises(UserError, match="2 finished runs .* begin with 'aa': aa01, aa02"):
        one_run("aa", results)
    with pytest.raises(UserError, match="0 finished runs"):
        one_run("zz", results)
    with pytest.raises(UserError, match="0 finished runs"):
        one_run("/aa", results)
