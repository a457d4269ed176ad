"""``fairbench alternative``: what is drawn, chosen, judged once and written; bad input."""

import csv
import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import main
from fairbench.results.catalogue import Catalogue

LOGISTIC = ("learner=logistic_regression", "tracking=none")
SMALL = ("dataset.n_samples=240", *LOGISTIC, "trials=4", "worth=0.0001")
STORED = ("learner=logistic_regression,gaussian_nb", "method=baseline", "figures=false")


def asked(folder, *words, small=SMALL):
    """Carry out the command; return the exit status, the page's figures and the log."""
    given = {word.partition("=")[0] for word in words}
    kept = [word for word in small if word.partition("=")[0] not in given]
    status = main(["alternative", *kept, *words, f"results={folder}", f"out={folder}/page"])
    if status:
        return status, {}, []
    page = json.loads((folder / "page" / "alternative.json").read_text())
    with (folder / "page" / "log.csv").open() as file:
        return status, page, list(csv.DictReader(file))


def status_of(words, small=SMALL):
    """Return the exit status of the command in a folder, the first of the words."""
    return asked(*words, small=small)[0]


def untimed(log):
    """Return the rows of a log without what their fits took."""
    return [{**row, "cpu_seconds": ""} for row in log]


@pytest.mark.thorough
def test_everything_that_was_tried_is_in_the_log_and_one_is_chosen(tmp_path, capsys):
    status, page, log = asked(tmp_path)
    assert status == 0 and len(log) == 5 == len(page["tried"])
    assert log[0]["standing"].startswith("in use")
    most = float(log[0]["error_rate"]) + 0.005
    allowed = [row for row in log if float(row["error_rate"]) <= most]
    least = min(allowed, key=lambda row: float(row["gap"]))
    (chosen,) = (row for row in log if "chosen" in row["standing"])
    assert float(chosen["gap"]) == float(least["gap"])
    shown = capsys.readouterr()
    assert "candidate 4: " in shown.err and "With 95% certainty" in shown.out
    assert max(map(len, shown.out.splitlines()[:-2])) <= 100
    assert page["search"]["chance_of_better"][0] == 0 < page["search"]["chance_of_better"][1] < 1
    assert page["search"]["drawn"] == 4 and page["search"]["ended"] == "trials"
    assert len(Catalogue(tmp_path)) == len(page["runs"])  # no other candidate saw the test rows


@pytest.mark.thorough
def test_the_same_command_goes_on_after_a_kill_and_fits_nothing_twice(tmp_path, capsys):
    _, whole, expected = asked(tmp_path / "whole")
    asked(tmp_path / "killed", "trials=2", "n_jobs=2")  # several processes try the same
    (study,) = (tmp_path / "killed" / "tuning").iterdir()
    with (study / "trials.jsonl").open("a") as file:
        file.write('{"values": {"learn')  # a kill in the middle of a line
    capsys.readouterr()
    _, page, log = asked(tmp_path / "killed")
    assert "fitted 2 cells" in capsys.readouterr().out
    assert untimed(log) == untimed(expected)
    assert page["runs"] == whole["runs"]


@pytest.mark.thorough
def test_a_draw_depends_on_its_number_and_the_seed_alone(tmp_path):
    _, _, one = asked(tmp_path / "one")
    _, _, few = asked(
        tmp_path / "few", "trials=2", "error_margin=0.2", "minimise=equal_opportunity"
    )
    assert [row["what"] for row in few] == [row["what"] for row in one[:3]]
    _, _, other = asked(tmp_path / "other", "seed=1")
    assert [row["what"] for row in other[1:]] != [row["what"] for row in one[1:]]


@pytest.mark.thorough
def test_a_plan_tries_nothing(tmp_path, capsys):
    words = ["dataset.n_samples=240", "plan=true", f"results={tmp_path}"]
    assert main(["alternative", *words]) == 0  # all that conf/alternative.yaml states can be drawn
    assert "at most 100 candidates, each of one cell" in capsys.readouterr().out
    assert not (tmp_path / "cells").exists()


def people(path, n=800, flip=None):
    """Write people to a file, the labels of some turned around."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 3))
    sex = np.where(rng.random(n) < 0.5, "f", "m")
    label = (x[:, 0] + 0.8 * (sex == "m") + rng.standard_normal(n) > 0.4).astype(int)
    if flip is not None:
        label[flip] = 1 - label[flip]
    pd.DataFrame(x, columns=list("abc")).assign(sex=sex, label=label).to_csv(path, index=False)


@pytest.mark.thorough
def test_test_rows_have_no_say_in_what_is_tried_and_chosen(tmp_path):
    from fairbench.components.datasets import table
    from fairbench.data.splits import SameTest

    pages, logs = [], []
    flip = None
    for name in ("as_it_is", "turned"):
        folder = tmp_path / name
        folder.mkdir()
        people(folder / "people.csv", flip=flip)
        words = (
            "dataset=table", f"dataset.path={folder}/people.csv", "dataset.target=label",
            "dataset.sensitive=[sex]", *LOGISTIC, "trials=9", "error_margin=0.3",
        )  # fmt: skip
        _, page, log = asked(folder, small=words)
        pages.append(page)
        logs.append(untimed(log))
        data = table.load(None, path=str(folder / "people.csv"), target="label", sensitive=["sex"])
        flip = SameTest(1, validation=0.25).folds(data, 0)[0].test
    assert logs[0] == logs[1]
    assert pages[0]["better"]
    assert pages[1]["errors"][0][0] == pytest.approx(1 - pages[0]["errors"][0][0])


@pytest.mark.thorough
def test_a_candidate_that_fails_is_in_the_log_with_the_reason(tmp_path):
    words = ("learner.C=1,-1", "intervention=none", "method=baseline")
    _, page, log = asked(tmp_path, *words, "trials=8")
    failed = [row for row in log if row["standing"] == "failed"]
    assert failed and all(row["reason"] and not row["gap"] for row in failed)
    assert len(log) == page["search"]["drawn"] + 1
    assert "failed; the log has the reasons" in " ".join(page["summary"]["unseen"])


@pytest.mark.thorough
def test_a_space_that_was_tried_whole_ends_the_search_and_nothing_more_is_gained(tmp_path):
    words = ("intervention=none", "method=thresholded", "method.threshold=0.4,0.5")
    _, page, _ = asked(tmp_path, *words, "learner.C=1", "trials=60")
    assert page["search"]["ended"] == "whole" and page["search"]["drawn"] < 60
    assert page["search"]["further_gain"] == {"1": [0, 0], "10": [0, 0], "100": [0, 0]}
    assert "every candidate there is was tried" in " ".join(page["summary"]["found"])


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_where_no_alternative_is_better_that_is_said_with_the_bound(tmp_path):
    words = ("intervention=none", "method=thresholded", "method.threshold=0.001,0.002")
    in_use = "in_use=[learner=logistic_regression,method=thresholded,method.threshold=0.0001]"
    _, page, _ = asked(tmp_path, *words, in_use)  # everyone is selected: there is no gap
    assert page["alternative"] is None and not page["better"]
    text = " ".join(page["summary"]["found"])
    assert "No alternative is better" in text
    assert "one more candidate" in text or "every candidate" in text
    assert len(page["runs"]) == 1


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_enough_ends_the_search_before_the_most_that_is_allowed(tmp_path):
    _, page, log = asked(tmp_path, "worth=0.9", "trials=60")
    assert page["search"]["ended"] == "worth" and len(log) == 2


@pytest.mark.thorough
def test_a_finished_run_can_be_the_model_in_use(tmp_path):
    words = ["dataset.n_samples=240", "tracking=none", "figures=false", f"results={tmp_path}"]
    apart = ["split=tuning", "split.repeats=1", "split.validation=0.25"]
    assert main(["run", *words, *apart, "learner.max_depth=2"]) == 0  # xgboost, the usual learner
    (run,) = Catalogue(tmp_path)
    _, page, log = asked(tmp_path, f"in_use={run.id}", "trials=1")
    assert page["runs"][0] == run.id
    assert log[0]["what"] == (
        "learner=xgboost intervention=none method=binomial_nll learner.max_depth=2"
    )


CASES = {
    "nothing": (["error_margin=0.01"], "nothing to search is named, such as dataset=german"),
    "gap": (["minimise=parity"], "unknown gap 'parity'"),
    "one": (["error_margin=1"], "error_margin is 1.0; it must be at least 0 and under 1"),
    "one candidate": (
        ["intervention=none", "method=baseline", "learner.C=1"],
        "there is one candidate alone, learner=logistic_regression",
    ),
    "several fits": (["split.repeats=3"], "3 fits of each candidate are asked for"),
    "a run": (["3f2a"], "'3f2a' is no option: write name=value, or stored=true"),
    "two data sets": (["dataset=simulated,german"], "has several values"),
    "regression": (["dataset=simulated_regression"], "has no binary target"),
    "in use": (["in_use=[dataset=adult]"], "in_use: 'dataset=adult' is no part of a model"),
    "two in use": (['in_use=["learner.C=interval(1,2)"]'], "has several values: one is in use"),
    "mixed": (["in_use=[learner=xgboost,abc]"], "is neither words such as learner=xgboost nor"),
    "weights": (["evaluator.weights=true"], "has no survey weights"),
    "worth": (["worth=0"], "worth is 0.0; it must be between 0 and 1"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_in_a_line(case, tmp_path, refused):
    words, message = CASES[case]
    small = () if case in ("nothing", "regression") else SMALL
    refused(tmp_path, *words, message=message, by=partial(status_of, small=small))


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return a results folder of finished runs."""
    folder = tmp_path_factory.mktemp("stored") / "results"
    words = ["dataset.n_samples=300", "tracking=none", f"results={folder}", *STORED]
    apart = ["split.repeats=1", "split.validation=0.25"]
    assert main(["run", "-m", *words, *apart, "intervention=none,reweighing"]) == 0
    assert main(["run", "-m", *words, "split.repeats=2", "seed=7"]) == 0
    assert main(["run", "-m", *words, *apart, "dataset.n_samples=320"]) == 0
    return folder


APART = ("stored=true", "dataset.n_samples=300", "split.validation=0.25")


@pytest.mark.thorough
def test_stored_runs_are_searched_and_nothing_bounds_what_others_would_gain(stored, capsys):
    status, page, log = asked(stored, *APART, small=())
    assert status == 0 and len(log) == 4
    assert float(log[0]["error_rate"]) == min(float(row["error_rate"]) for row in log)
    assert "search" not in page and "nothing bounds" in " ".join(page["summary"]["sure"])
    assert "No run was named as the model in use" in capsys.readouterr().out
    runs = {run.id: run for run in Catalogue(stored)}
    named = log[-1]["what"]
    assert named in runs
    _, page, log = asked(stored, *APART, f"in_use={named}", "error_margin=0.5", small=())
    assert log[0]["what"] == named == page["runs"][0]


STORED_CASES = {
    "other data": (["stored=true", "split.validation=0.25"], "they differ in dataset.n_samples"),
    "no validation rows": (["stored=true", "seed=7"], "have no validation rows to choose by"),
    "no run": (["stored=true", "dataset=german"], "no finished run matches"),
    "one run": ([*APART, "learner=gaussian_nb", "intervention=none"], "1 finished run matches"),
    "words in use": ([*APART, "in_use=[learner=xgboost]"], "the model in use is a finished run"),
    "unknown in use": ([*APART, "in_use=zzz"], "zzz"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", STORED_CASES)
def test_stored_runs_that_cannot_be_searched_are_refused_in_a_line(case, stored, refused):
    words, message = STORED_CASES[case]
    refused(stored, *words, message=message, by=partial(status_of, small=()))
