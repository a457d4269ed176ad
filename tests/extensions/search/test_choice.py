"""The fairest of many runs, and an alternative to a model in use: chosen, said and refused."""

import json
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks.alternative import coverage
from fairbench.cli.main import run_command
from fairbench.core.errors import UserError
from fairbench.evaluation.summary import Headlines
from fairbench.evaluation.table import values_of
from fairbench.experiments.execute import carry_out
from fairbench.metrics.registry import BINARY, confusion, metrics_of, named
from fairbench.results.catalogue import Catalogue
from fairbench_search.alternative import compare_models, gap_named
from fairbench_search.choice import (
    Bound,
    Shared,
    SharedRows,
    Stored,
    _estimates,
    choose,
    choose_among,
    shared_rows,
)
from fairbench_search.goals import Goal, Tuning, goals
from tests.harness import CONF, configuration, quick

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


def runs_of(results, split):
    return [Catalogue(results[0]).one(id_) for id_ in results[1][split]]


def made(results, split, metric="equalized_odds", bounds=LOOSE):
    return choose_among(shared_rows(runs_of(results, split)), named(metric, BINARY), bounds)


@pytest.mark.thorough
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("metric", ["equalized_odds", "statistical_parity", "error_rate"])
def test_the_smallest_is_chosen_and_its_values_are_those_of_its_table(results, split, metric):
    choice = made(results, split, metric, bounds=(*LOOSE, Bound.read("selection_rate<=1")))
    assert choice.objectives[choice.chosen_index] == choice.objectives[choice.eligible].min()
    assert choice.near[choice.chosen_index] and choice.apart == (split == "apart")
    run = choice.runs[choice.chosen_index]
    table = values_of(run.summary()).query("variant == '' and group == ''")
    for judged in choice.judged:
        for limits in (judged["naive"], judged["corrected"]):
            assert limits[0] <= judged["value"] <= limits[1]
        assert judged["corrected"] == judged["naive"] or not choice.apart
        name, attribute = judged["metric"].name, run.protect if judged["metric"].is_gap else ""
        row = table.query(f"metric == '{name}' and attribute == '{attribute}'").iloc[0]
        # The table's mean is of the splits' gaps, its interval of the gap of their means.
        if not judged["metric"].is_gap or split in ("one", "apart"):
            assert judged["value"] == pytest.approx(row["mean"])
        np.testing.assert_allclose(judged["naive"], (row["lower"], row["upper"]))


def test_runs_that_weigh_their_rows_are_refused(results):
    runs = runs_of(results, "one")
    runs[1].config["evaluator"]["weights"] = True
    with pytest.raises(UserError, match=f"1 of these runs, such as {runs[1].id}, weigh"):
        choose_among(shared_rows(runs), named("error_rate", BINARY), ())


ORDER = {
    "log_loss": lambda mean: mean,
    "roc_auc": lambda mean: -mean,
    "predictive_uncertainty_ratio": lambda mean: np.abs(np.log(mean)),
}


@pytest.mark.parametrize("split", quick(["several", "folds"], ["several"]))
@pytest.mark.parametrize("metric", quick(ORDER, ["log_loss"]))
def test_any_stored_metric_is_chosen_by_and_has_its_table_s_value(results, split, metric):
    """The interval by itself is the table's; of two alike, the correction moves it by little."""
    choice = choose(runs_of(results, split), metric, ("brier_score<=1",))
    tables = [Headlines(run.summary(), run.protect).estimate(metric) for run in choice.runs]
    assert choice.chosen_index == ORDER[metric](np.array(tables)[:, 0]).argmin()
    judged, (value, lower, upper) = choice.judged[0], tables[choice.chosen_index]
    if metric.endswith("_ratio"):
        value = min(value, 1 / value)
        assert np.isnan([lower, *judged["naive"], *judged["corrected"]]).all()
    else:
        np.testing.assert_allclose(judged["naive"], (lower, upper))
        assert judged["corrected"][0] <= judged["value"] <= judged["corrected"][1]
        assert 0.97 < np.diff(judged["corrected"])[0] / (upper - lower) < 2
    assert judged["value"] == pytest.approx(value) == choice.shown[choice.chosen_index]
    with pytest.raises(UserError, match="none of 3 runs has brier_score<=0.01: the smallest"):
        choose(runs_of(results, split), metric, ("brier_score<=0.01",))


@pytest.fixture(scope="module")
def two_repeats(tmp_path_factory):
    """Return a results folder of two models, one of them twice, and two regressions."""
    folder = tmp_path_factory.mktemp("two") / "results"
    numbers = ("dataset=simulated_regression", "method=marginal")
    again = (*RUNS["lr"], "protect=group")
    for words in (RUNS["lr"], RUNS["nb"], again, numbers, (*numbers, "learner=lightgbm")):
        carry_out(configuration(*COMMON, "split.repeats=2", *words, results=folder))
    return folder


def test_a_run_that_is_another_again_is_no_second_candidate(two_repeats, said_by):
    printed = said_by("choose", "dataset=simulated", f"results={two_repeats}")
    assert "among 2" in printed and "left out: run" in printed
    again = [*Catalogue(two_repeats).select(learner="logistic_regression", method="baseline")]
    with pytest.raises(UserError, match=r"again .*; a choice needs at least two"):
        choose(again)


def test_runs_of_other_tasks_are_chosen_among_by_what_they_store(two_repeats, capsys):
    words = ["dataset=simulated_regression", "objective=rmse", f"results={two_repeats}"]
    run_command(["choose", *words])
    assert "The best of 2 runs" in capsys.readouterr().out
    with pytest.raises(UserError, match="metric 'error_rate'"):
        run_command(["choose", *words, "where=error_rate<=1"])


@pytest.mark.parametrize(
    ("kind", "repeat", "fold", "row"),
    [
        ("one", [0, 0, 0, 0], [0, 0, 0, 0], [3, 5, 7, 9]),
        ("repeats", [0, 0, 1, 1], [0, 0, 0, 0], [3, 5, 5, 7]),
        ("same", [0, 0, 1, 1], [0, 0, 0, 0], [3, 5, 3, 5]),
        ("folds", [0, 0, 0, 0], [0, 0, 1, 1], [3, 5, 7, 9]),
    ],
)
def test_it_is_known_how_splits_share_rows(kind, repeat, fold, row):
    label, group = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    predicted = np.array([[0, 1], [1, 1], [0, 0], [0, 0]])
    rows = SharedRows(*map(np.array, (repeat, fold, row)), label, group, predicted, ("a", "b"))
    assert (rows.splits.kind, len(rows.counts)) == (kind, 1 if kind == "one" else 2)
    counts = [[[1, 0, 0, 1], [1, 0, 1, 0]], [[0, 1, 0, 1], [1, 0, 1, 0]]]
    np.testing.assert_array_equal(rows.counts.sum(axis=0), counts)


def test_a_bound_leaves_runs_out_and_says_when_none_is_left(results):
    errors = made(results, "one").values[:, 0]
    bound = Bound.read(f"error_rate<{np.sort(errors)[1]:.6f}")
    opposite = Bound.read("accuracy>=0.1")
    assert made(results, "one", bounds=(bound,)).eligible.sum() <= 2
    assert made(results, "one", bounds=(opposite,)).eligible.all()
    twice = made(results, "one", "error_rate", bounds=(bound, opposite))
    assert [judged["metric"].name for judged in twice.judged] == ["error_rate", "accuracy"]
    assert twice.values.shape[1] == 1
    with pytest.raises(UserError, match=r"none of 3 runs has error_rate<=0: the smallest"):
        made(results, "one", bounds=(Bound.read("error_rate<=0"),))


def test_a_bound_on_a_ratio_is_of_the_number_that_the_objective_has():
    """Of a ratio over 1 that is its reciprocal, so that four fifths leave out who is favoured."""
    bound, means = Bound.read("disparate_impact>=0.8"), np.array([0.7, 0.785, 1.2, 1.27])
    values, naive = np.stack([means * 0.99, means * 1.01])[..., None], [(0.025, 0.025)] * 2
    bounded = np.concatenate([0.3 + 0 * values, values], axis=-1)
    metrics = named("error_rate", BINARY), bound.metric
    bounded = Stored((), metrics, (bound,), bounded, bounded, 0.2, [])
    assert bounded.candidates.eligible.tolist() == [False, False, True, False]
    free = Stored((), (bound.metric,), (), values, values, 0.2, [])
    for run in range(4):
        (judged,), (_, kept) = (of.judge_run(run, naive=naive) for of in (free, bounded))
        assert judged == kept and kept["value"] == pytest.approx(bounded.rates[run, 1])
    with pytest.raises(UserError, match="at most 1: write disparate_impact>=0.8 for"):
        Bound.read("disparate_impact<=1.25")


def test_the_command_says_what_was_chosen_in_words(results, capsys, said_by):
    folder, ids = results
    printed = said_by("choose", *ids["one"], f"results={folder}", "where=error_rate<=0.6")
    assert "3 of 3 runs have error_rate<=0.6 on the test rows. Of these" in printed
    assert "Corrected for the choice among 3" in printed
    printed = said_by("choose", *ids["apart"], f"results={folder}")
    assert "which did not choose" in printed
    assert "on the validation rows, which chose; the values of the chosen run above are" in printed
    words = [*ids["several"], f"results={folder}"]
    assert "as means over the splits" in said_by("choose", *words, "objective=error_rate")
    printed, table = (said_by(verb, *words) for verb in ("choose", "table"))  # have other gaps
    assert "fairbench table shows the mean of the splits' gaps; here it" in printed
    assert "equalized odds of the mean rates" in printed and "not the gap of mean rates" in table
    run_command(["choose", "split=kfold", f"results={folder}", "format=json"])
    answer = str(json.loads(capsys.readouterr().out))
    assert all(id_ in answer for id_ in ids["folds"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "these 12 runs do not all predict the same rows for .*: 3 of simulated, "),
        (["split=holdout"], r"3 of simulated, holdout, protect=group, repeats=3, .* \(as \w+\)"),
        (["split=kfold", "learner=gaussian_nb"], r"1 finished run matches \(.*needs at least two"),
        (["split=kfold", "objective=selection_rate"],
         "objective=selection_rate: neither more nor less of it is better"),
        (["split=kfold", "where=error_rate=0.1"], "is no comparison"),
        (["split=kfold", "where=error<=0.1"], "has no metric 'error': did you mean"),
        (["split=kfold", "where=error_rate<=15"], "a number between 0 and 1"),
        (["split=kfold", "error_rate<=0.1"], "is a comparison: write where="),
        (["split=kfold", "level=1"], "level is 1.0"),
        (["minimize=error_rate"], "unknown option 'minimize'"),
        (["from=nothing"], "unknown experiment 'nothing'"),
    ],
)  # fmt: skip
def test_a_wrong_command_is_refused(results, words, message):
    with pytest.raises(UserError, match=message):
        run_command(["choose", *words, f"results={results[0]}"])


@pytest.mark.thorough
def test_intervals_of_another_level_are_not_taken_for_those_of_95_percent(tmp_path):
    for words in RUNS["lr"], RUNS["nb"]:
        level = ("evaluator.level=0.5", "split.repeats=2")
        carry_out(configuration(*COMMON, *level, *words, results=tmp_path))
    with pytest.raises(UserError, match="evaluator.level=0.5: a choice by what runs store"):
        run_command(["choose", "objective=log_loss", f"results={tmp_path}"])


# Choices among predictions that are made up.

PEOPLE, REPEATS = 400, 10


def holdouts(runs):
    """Return hold-outs in which every run makes errors of its own."""
    rng = np.random.default_rng(0)
    label, group = rng.integers(0, 2, PEOPLE), rng.integers(0, 2, PEOPLE)
    row = np.concatenate([np.sort(rng.permutation(PEOPLE)[: PEOPLE // 5]) for _ in range(REPEATS)])
    repeat = np.repeat(np.arange(REPEATS), PEOPLE // 5)
    # Fits move all rows of a split together.
    wrong = rng.random((len(row), runs)) < 0.3 + 0.05 * rng.standard_normal((REPEATS, runs))[repeat]
    predicted = np.where(wrong, 1 - label[row][:, None], label[row][:, None])
    return SharedRows(
        repeat, np.zeros_like(repeat), row, label[row], group[row], predicted, ("a", "b"), 0.2
    )


def choice_of(shared, metric):
    return choose_among(Shared((), shared, None, []), named(metric, BINARY), ())


@pytest.mark.parametrize("metric", ["error_rate", "statistical_parity"])
def test_runs_that_predict_the_same_need_no_correction_and_others_do(metric):
    own = holdouts(20)
    for shared, least, most in (
        (replace(own, prediction=own.prediction[:, [0] * 20]), 0.97, 1.03),
        (own, 1.01, 3),
    ):
        first, again = (choice_of(shared, metric).judged for _ in range(2))
        assert first == again  # to the bit
        assert least < np.diff(first[0]["corrected"])[0] / np.diff(first[0]["naive"])[0] < most


def test_runs_that_predict_the_same_are_told_apart_alike():
    """Of rates that show no error in these rows, each run's is drawn: the same for equal runs."""
    shared = holdouts(4)
    shared.prediction[:, :2] = [0, 1]  # rates of 0 and of 1
    for of in range(4):
        twin = replace(shared, prediction=shared.prediction[:, [*range(4), of]])
        near = choice_of(twin, "equalized_odds").near
        assert near[-1] == near[of]
        noise = _estimates(twin, named("equalized_odds", BINARY), (), []).candidates.part_noise
        np.testing.assert_array_equal(noise[:, of], noise[:, -1])


def test_values_and_flips_are_those_of_the_predictions():
    """Of people of whom the second model selects fewer than the first in the first group."""
    rng, nothing = np.random.default_rng(0), np.zeros(400, int)
    label, group = rng.integers(0, 2, (2, 400))
    first = (rng.random(400) < np.where(group == 0, 0.7, 0.4)).astype(int)
    second = np.where((group == 0) & (rng.random(400) < 0.4), 0, first)
    models = pd.DataFrame({0: first, 1: second})
    about = np.arange(400), label, group, models.to_numpy(), ("a", "b")
    both = compare_models(SharedRows(nothing, nothing, *about), gap_named("statistical_parity"))
    gaps = np.ptp(models.groupby(group).mean().to_numpy(), axis=0)
    errors = (models != label[:, None]).mean().to_numpy()
    for said, true, change in (
        (both.gaps, gaps, both.gap_change),
        (both.errors, errors, both.error_change),
    ):
        assert [of[0] for of in said] == pytest.approx(true)
        assert change[0] == pytest.approx(np.diff(true)[0])
    flips = pd.DataFrame(both.flips)
    lost, gained = ((first > second), (first < second))
    members = [group == 0, group == 1, np.full(400, True)]
    assert flips["group"].tolist() == ["a", "b", ""] and both.people == 400
    for name, of in (("people", members[-1]), ("lost", lost), ("gained", gained)):
        assert flips[name].tolist() == [(of & mine).sum() for mine in members]
    share = both.flips[-1]["share"]
    assert share[0] == pytest.approx((first != second).mean()) and both.verdict == "better"
    limited = (*both.gaps, *both.errors, both.gap_change, both.error_change, share)
    assert all(lower <= value <= upper for value, lower, upper in limited)


@pytest.mark.parametrize(
    ("searches", "size", "least"),
    [
        pytest.param(40, {"people": 200, "trials": 40}, 0.85, marks=pytest.mark.thorough),
        pytest.param(200, {"people": 400}, 0.94, marks=pytest.mark.slow),
    ],
)
def test_simulated_searches_are_covered(searches, size, least):
    result = coverage(range(searches), **size)
    assert (result.loc[["chance of better", "further gain"], "covered"] >= 0.95).all()
    assert (result["covered"].dropna() >= least).all()
    assert searches < 200 or result.loc["stopped by the rule", "true"] > 0.3


# What is made small: values, and what a row changes.

NAMES = ("error_rate", "accuracy", "f1_score", "balanced_accuracy", "brier_score", "log_loss",
         "statistical_parity", "equalized_odds", "predictive_parity")  # fmt: skip


def judged_rows(n=300):
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n)
    score = np.clip(rng.random(n) * 0.8 + 0.1 * group, 0.01, 0.99)
    target = (rng.random(n) < score).astype(float)
    return pd.DataFrame({
        "fold": 0, "unit": np.arange(n), "target": target, "group": pd.Categorical(group),
        "score": score, "prediction": (score > 0.5).astype(float),
    })  # fmt: skip


def value(name, given):
    """Return the metric as the registry has it."""
    metric = metrics_of("binary")[name]
    if not metric.rates:
        return metric(*(given[need].to_numpy() for need in ("target", *metric.needs))).mean()
    group = given["group"].cat.codes.to_numpy()
    counts = confusion(given["target"], given["prediction"], group, n_groups=3).reshape(-1, 4)
    return float(metric(counts if metric.is_gap else counts.sum(axis=0)))


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_metric_and_errors_what_a_row_changes(name):
    (goal,), given = goals([name], "binary"), judged_rows()
    result = goal.estimate(given)
    assert goal.sign * result.value == pytest.approx(value(name, given))
    without = []
    for left_out in range(0, 300, 30):
        without.append(goal.sign * value(name, given.drop(left_out)))
    changes = result.value - np.array(without)
    assert result.linear[::30] == pytest.approx(changes, rel=0.1, abs=2e-4)


def test_a_group_without_positives_is_left_out_of_the_gap_and_no_group_at_all_is_no_value():
    given, (goal,) = judged_rows(), goals(["equal_opportunity"], "binary")
    few = goal.estimate(given.assign(target=given["target"].where(given["group"] != 2, 0)))
    assert np.isfinite(few.value) and len(few.sides) == 2
    assert np.isnan(goal.estimate(given.assign(target=0.0)).value)


def test_other_objectives_are_refused_and_those_of_what_the_method_does_not_give():
    for names, message in (
        (["roc_auc"], "unknown objective to tune for 'roc_auc'; valid: "),
        ([], "objectives= is empty"),
        (["brier_score", "brier_score"], "names one twice"),
    ):
        with pytest.raises(UserError, match=message):
            goals(names, "binary")
    with pytest.raises(UserError, match="needs a score"):
        Goal(metrics_of("binary")["log_loss"]).estimate(judged_rows().drop(columns="score"))


def test_the_sweeper_has_the_options_of_the_verb_and_their_defaults():
    stored = yaml.safe_load((CONF / "hydra/sweeper/tune.yaml").read_text())
    options = Tuning()
    for field in fields(Tuning):
        default = getattr(options, field.name)
        assert stored[field.name] == (list(default) if isinstance(default, tuple) else default)


def test_nothing_to_tune_is_said_and_an_interval_outside_of_tuning_points_to_it(tmp_path, refused):
    results = f"results={tmp_path}"
    said = "nothing is to be tuned: give an option an interval"
    refused("tune", "dataset.n_samples=100", results, message=said)
    refused("tune", results, message="nothing to tune is named")
    said = "fairbench tune, or fairbench run -m hydra/sweeper=tune"
    refused("run", "-m", "learner.max_depth=interval(2,4)", results, message=said)
