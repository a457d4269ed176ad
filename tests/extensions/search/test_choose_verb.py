"""The fairest of many finished runs, as ``fairbench choose where='error_rate<=0.4'``."""

import json
import shlex
import shutil

import numpy as np
import pytest

from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.core.text import number
from fairbench.evaluation.summary import Headlines
from fairbench.evaluation.table import values_of
from fairbench.experiments.execute import carry_out
from fairbench.metrics.registry import BINARY, named
from fairbench.results.catalogue import Catalogue
from fairbench_search.choice import Bound, SharedRows, choose, choose_among, shared_rows
from tests.harness import configuration, quick
from tests.reporting import page_runs

COMMON = ("dataset.n_samples=400", "tracking=none", "figures=false", "method=baseline")
SPLITS = {
    "one": ("split.repeats=1",),
    "several": ("split.repeats=3",),
    "apart": ("split.repeats=1", "split.validation=0.25"),
    "folds": ("split=kfold", "split.n_folds=3"),
}
RUNS = {
    "lr": ("learner=logistic_regression",),
    "nb": ("learner=gaussian_nb",),
    "reweighing": ("learner=logistic_regression", "intervention=reweighing"),
}
LOOSE = (Bound.read("error_rate<=0.9"),)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a results folder, and the ids of the runs of every split."""
    folder, ids = tmp_path_factory.mktemp("choose") / "results", {}
    for split, options in SPLITS.items():
        for words in RUNS.values():
            end = carry_out(configuration(*COMMON, *options, *words, results=folder))
            ids.setdefault(split, []).append(end.plan.id)
    return folder, ids


def made(results, split, metric="equalized_odds", bounds=LOOSE, **options):
    folder, ids = results
    runs = [Catalogue(folder).one(id_) for id_ in ids[split]]
    return choose_among(shared_rows(runs), named(metric, BINARY), bounds, **options)


@pytest.mark.thorough
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("metric", ["equalized_odds", "statistical_parity", "error_rate"])
def test_the_smallest_is_chosen_and_its_values_are_those_of_its_table(results, split, metric):
    choice = made(results, split, metric, bounds=(LOOSE[0], Bound.read("selection_rate<=1")))
    assert choice.objectives[choice.chosen_index] == choice.objectives[choice.eligible].min()
    assert choice.near[choice.chosen_index]
    assert choice.apart == (split == "apart")
    run = choice.runs[choice.chosen_index]
    table = values_of(run.summary()).query("variant == '' and group == ''")
    for judged in choice.judged:
        for limits in (judged["naive"], judged["corrected"]):
            assert limits[0] <= judged["value"] <= limits[1]
        assert judged["at_once"][1] >= judged["value"]
        assert judged["corrected"] == judged["naive"] or not choice.apart
        name, attribute = judged["metric"].name, run.protect if judged["metric"].is_gap else ""
        row = table.query(f"metric == '{name}' and attribute == '{attribute}'").iloc[0]
        # The table's mean is of the splits' gaps, its interval of the gap of their means.
        if not judged["metric"].is_gap or split in ("one", "apart"):
            assert judged["value"] == pytest.approx(row["mean"])
        np.testing.assert_allclose(judged["naive"], (row["lower"], row["upper"]))


@pytest.mark.thorough
@pytest.mark.parametrize("split", SPLITS)
def test_where_a_run_s_table_has_another_number_both_say_why(results, split, said_by):
    folder, ids = results
    chosen = said_by("choose", *ids[split], f"results={folder}")
    choice = made(results, split, bounds=())
    run, objective = choice.runs[choice.chosen_index], choice.judged[0]
    printed = said_by("table", *ids[split], f"results={folder}")
    shown = number(Headlines(run.summary(), run.protect).usual["gap"][0])
    differ = shown != number(objective["value"])
    several = split in ("several", "folds")
    assert (not differ or several) and (differ or split != "folds")
    said = (
        f"fairbench table {run.id} shows {shown} as the gap in equalized odds, the mean of the "
        f"splits' gaps. Here it is {number(objective['value'])}, the gap of the mean rates"
    )
    assert (said in chosen) == differ and shown in printed
    # Another quantity has another name.
    assert ("gap in equalized odds of the mean rates " in chosen) == several
    why = "a gap is the mean of the splits' gaps, not the gap of mean rates as in choose"
    assert (why in printed) == several


@pytest.mark.thorough
def test_runs_that_weigh_their_rows_are_refused(results):
    folder, ids = results
    runs = [Catalogue(folder).one(id_) for id_ in ids["one"]]
    runs[1].config["evaluator"]["weights"] = True
    with pytest.raises(UserError, match=f"1 of these runs, such as {runs[1].id}, weigh"):
        choose_among(shared_rows(runs), named("error_rate", BINARY), ())


@pytest.mark.parametrize("split", quick(["several", "folds"], ["several"]))
@pytest.mark.parametrize(
    ("metric", "sign"),
    quick(
        [
            ("log_loss", 1),
            ("roc_auc", -1),
            ("consistency_of_nobody", 0),
            ("predictive_uncertainty_ratio", 2),
        ],
        [("log_loss", 1)],
        several=True,
    ),
)
def test_any_stored_metric_is_chosen_by_and_has_its_table_s_value(results, split, metric, sign):
    """The interval by itself is the table's; of two alike, the correction moves it by little."""
    runs = [Catalogue(results[0]).one(id_) for id_ in results[1][split]]
    if not sign:
        with pytest.raises(UserError, match="has no metric 'consistency_of_nobody'"):
            choose(runs, metric)
        return
    choice = choose(runs, metric, ("brier_score<=1",))
    tables = [Headlines(run.summary(), run.protect).estimate(metric) for run in choice.runs]
    means = np.array(tables)[:, 0]
    ordered = np.abs(np.log(means)) if sign == 2 else sign * means
    assert choice.chosen_index == ordered.argmin()
    judged = choice.judged[0]
    value, lower, upper = tables[choice.chosen_index]
    if sign == 2:
        value = min(value, 1 / value)
        assert np.isnan([lower, *judged["naive"], *judged["corrected"]]).all()
    else:
        np.testing.assert_allclose(judged["naive"], (lower, upper))
        assert judged["corrected"][0] <= judged["value"] <= judged["corrected"][1]
        wider = np.diff(judged["corrected"])[0] / (upper - lower)
        assert 0.97 < wider < 2
    assert judged["value"] == pytest.approx(value) == choice.shown[choice.chosen_index]
    with pytest.raises(UserError, match="none of 3 runs has brier_score<=0.01: the smallest"):
        choose(runs, metric, ("brier_score<=0.01",))


@pytest.fixture(scope="module")
def two_repeats(tmp_path_factory):
    """Return a results folder of two models, one of them twice, and two regressions."""
    folder = tmp_path_factory.mktemp("two") / "results"
    regression = "dataset=simulated_regression"
    for words in (
        RUNS["lr"],
        RUNS["nb"],
        (*RUNS["lr"], "protect=group"),
        (regression, "method=marginal"),
        (regression, "method=marginal", "learner=lightgbm"),
    ):
        carry_out(configuration(*COMMON, "split.repeats=2", *words, results=folder))
    return folder


def test_upper_limits_of_two_metrics_at_once_take_half_the_error_rate_each(two_repeats):
    """In two splits, errors look as if they always went together, or always apart."""
    runs = list(Catalogue(two_repeats).select(dataset="simulated"))
    for name in ("brier_score", "roc_auc", "f1_score"):
        _, error = choose(runs, name).judged
        both, alone = (error[of][1] - error["value"] for of in ("at_once", "naive"))
        assert both >= alone * (1 - 1e-9)


def test_a_run_that_is_another_again_is_no_second_candidate(two_repeats, said_by):
    runs = list(Catalogue(two_repeats).select(dataset="simulated"))
    printed = said_by("choose", "dataset=simulated", f"results={two_repeats}")
    assert "among 2" in printed and "left out: run" in printed
    again = [run for run in runs if run.choices["learner"] == "logistic_regression"]
    with pytest.raises(UserError, match=r"again .*; a choice needs at least two"):
        choose(again)


def test_a_way_out_of_regressions_is_found_for_what_they_store(two_repeats, capsys):
    for metric, chosen in (("rmse", 2), ("log_loss", 3)):
        with pytest.raises(UserError) as refused:
            run_command(["choose", f"objective={metric}", f"results={two_repeats}"])
        said, command = str(refused.value).split(" runs can be chosen from: ")
        assert said.endswith(f"; {chosen}")
        run_command(shlex.split(command)[1:])
        assert "The best of 2 runs" in capsys.readouterr().out
    with pytest.raises(UserError, match="no two finished runs of .* that have rmse and error_rate"):
        words = ["objective=rmse", "where=error_rate<=1"]
        run_command(["choose", *words, f"results={two_repeats}"])


@pytest.mark.parametrize(
    ("repeat", "fold", "row", "kind"),
    [
        ([0, 0, 0, 0], [0, 0, 0, 0], [3, 5, 7, 9], "one"),
        ([0, 0, 1, 1], [0, 0, 0, 0], [3, 5, 5, 7], "repeats"),
        ([0, 0, 1, 1], [0, 0, 0, 0], [3, 5, 3, 5], "same"),
        ([0, 0, 0, 0], [0, 0, 1, 1], [3, 5, 7, 9], "folds"),
    ],
)
def test_it_is_known_how_splits_share_rows(repeat, fold, row, kind):
    label, group = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    predicted = np.array([[0, 1], [1, 1], [0, 0], [0, 0]])
    places = (np.array(column) for column in (repeat, fold, row))
    rows = SharedRows(*places, label, group, predicted, ("a", "b"))
    assert rows.splits.kind == kind
    assert rows.counts.shape == (1 if kind == "one" else 2, 2, 2, 4)
    np.testing.assert_array_equal(
        rows.counts.sum(axis=0), [[[1, 0, 0, 1], [1, 0, 1, 0]], [[0, 1, 0, 1], [1, 0, 1, 0]]]
    )


def test_a_bound_leaves_runs_out_and_says_when_none_is_left(results):
    every = made(results, "one")
    errors = every.values[:, 0]
    bound = Bound.read(f"error_rate<{np.sort(errors)[1]:.6f}")
    assert made(results, "one", bounds=(bound,)).eligible.sum() <= 2
    opposite = Bound.read("accuracy>=0.1")
    assert made(results, "one", bounds=(opposite,)).eligible.all()
    twice = made(results, "one", "error_rate", bounds=(bound, opposite))
    assert [judged["metric"].name for judged in twice.judged] == ["error_rate", "accuracy"]
    assert twice.values.shape[1] == 1
    with pytest.raises(UserError, match=r"none of 3 runs has error_rate<=0: the smallest"):
        made(results, "one", bounds=(Bound.read("error_rate<=0"),))


def test_the_command_says_what_was_chosen_in_words(results, capsys, said_by):
    folder, ids = results
    printed = said_by("choose", *ids["one"], f"results={folder}", "where=error_rate<=0.6")
    assert "3 of 3 runs have an error rate of at most 0.6 on the test rows. Of these" in printed
    assert "Corrected for the choice among 3" in printed
    printed = said_by("choose", *ids["apart"], f"results={folder}")
    assert "which did not choose" in printed
    assert "as means over 3 repeats" in said_by(
        "choose", *ids["several"], f"results={folder}", "objective=error_rate"
    )
    for kind in ("json", "html", "markdown", "latex"):
        run_command(["choose", "split=kfold", f"results={folder}", f"format={kind}"])
        printed = capsys.readouterr().out
        assert all(id_ in printed for id_ in ids["folds"])
        assert kind != "json" or json.loads(printed)


def test_a_tie_is_said_to_be_one(results, tmp_path, said_by):
    """A component under another name that predicts the same is another run."""
    folder, ids = results
    shutil.copytree(folder, tmp_path / "results")
    chosen = made(results, "several").runs[made(results, "several").chosen_index]
    path = tmp_path / "results" / "runs" / chosen.id
    twin = page_runs.copy(path, config={"learner": "twin"}, fingerprint="twin").name
    printed = said_by("choose", *ids["several"], twin, f"results={tmp_path / 'results'}")
    assert "It is a tie with " in printed
    assert any(f"({run}): their predictions" in printed for run in (twin, chosen.id))
    assert " tied: " in printed


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], r"they differ in split \(holdout in 9, kfold in 3\)"),
        (["split=holdout"], r"differ in .*split.repeats \(1 in 6, 3 in 3\)"),
        (
            ["split=kfold", "objective=selection_rate"],
            "objective=selection_rate: neither more nor less of it is better",
        ),
        (["split=kfold", "where=error_rate=0.1"], "is no comparison"),
        (["split=kfold", "where=error<=0.1"], "has no metric 'error': did you mean"),
        (["split=kfold", "where=error_rate<=15"], "a number between 0 and 1"),
        (["split=kfold", "error_rate<=0.1"], "is a comparison: write where="),
        (["split=kfold", "level=1"], "level is 1.0"),
        (["minimize=error_rate"], "unknown option 'minimize'"),
        (["minimise=error_rate"], "minimise= is called objective= here"),
        (["from=nothing"], "unknown experiment 'nothing'"),
    ],
)
def test_a_wrong_command_is_refused(results, words, message):
    with pytest.raises(UserError, match=message):
        run_command(["choose", *words, f"results={results[0]}"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([], 3),
        (["split=holdout", "objective=error_rate", "where=error_rate<=0.9"], 3),
        (["split=holdout", "split.validation=0", "learner=logistic_regression"], 2),
        (["learner=svm"], 3),
    ],
)
def test_a_dead_end_shows_a_way_out_as_a_command_that_starts(results, words, chosen, capsys):
    with pytest.raises(UserError) as refused:
        run_command(["choose", *words, f"results={results[0]}"])
    said, command = str(refused.value).split(" runs can be chosen from: ")
    assert said.endswith(f"; {chosen}")
    start, verb, *again = shlex.split(command)
    assert (start, verb) == ("fairbench", "choose")
    assert {word for word in words if word.startswith(("objective", "where"))} <= {
        word.replace("=[", "=").rstrip("]") for word in again
    }
    run_command([verb, *again])
    assert f"The best of {chosen} runs" in capsys.readouterr().out


def test_runs_that_no_word_tells_apart_are_named_in_the_command(results, tmp_path, capsys):
    """As those fitted before and after the data changed."""
    folder, ids = results
    for part in ("runs", "data", "splits"):
        shutil.copytree(folder / part, tmp_path / part)
    for path in (tmp_path / "runs").iterdir():
        if path.name not in ids["one"]:
            shutil.rmtree(path)
    path = tmp_path / "runs" / ids["one"][0]
    shutil.copytree(path, tmp_path / "alone" / "runs" / path.name)
    with pytest.raises(UserError, match="1 finished run matches .*run another on the same splits"):
        run_command(["choose", f"results={tmp_path / 'alone'}"])
    page_runs.copy(path, config={"learner.C": 2.0}, data="0" * 20, fingerprint="other")
    with pytest.raises(UserError, match="differ in the data, whose files have changed") as refused:
        run_command(["choose", f"results={tmp_path}"])
    command = shlex.split(str(refused.value).partition("chosen from: ")[2])
    assert sorted(command[2:5]) == sorted(ids["one"])
    run_command(command[1:])
    assert "The best of 3 runs" in capsys.readouterr().out


@pytest.mark.thorough
def test_intervals_of_another_level_are_not_taken_for_those_of_95_percent(tmp_path):
    folder = tmp_path / "results"
    for words in RUNS["lr"], RUNS["nb"]:
        level = ("evaluator.level=0.5", "split.repeats=2")
        carry_out(configuration(*COMMON, *level, *words, results=folder))
    with pytest.raises(UserError, match="evaluator.level=0.5: a choice by what runs store"):
        run_command(["choose", "objective=log_loss", f"results={folder}"])
