"""Comparing finished runs, as ``fairbench compare runs=[A,B]`` does."""

import shutil

import numpy as np
import pandas as pd
import pytest

from fairbench.cli.main import run_command
from fairbench.comparison.runs import (
    Settings,
    compare_pair,
    every_pair,
    load_predictions,
    observed_values,
    typical_repeat,
)
from fairbench.core.errors import UserError
from fairbench.evaluation.table import values_of
from fairbench.experiments.execute import carry_out
from fairbench.metrics.registry import binary_confusion
from fairbench.results.catalogue import Catalogue
from tests.correlated import probability_better
from tests.harness import configuration
from tests.reporting import page_runs

COMMON = ("dataset.n_samples=300", "method=baseline", "tracking=none")
RUNS = {
    "folds_lr": ("split=kfold", "split.n_folds=5", "learner=logistic_regression"),
    "folds_nb": ("split=kfold", "split.n_folds=5", "learner=gaussian_nb"),
    "lr": ("split.repeats=3", "learner=logistic_regression"),
    "nb": ("split.repeats=3", "learner=gaussian_nb"),
    "ten_lr": ("split.repeats=10", "learner=logistic_regression"),
    "ten_nb": ("split.repeats=10", "learner=gaussian_nb"),
    "other_seed": ("split.repeats=3", "learner=gaussian_nb", "seed=1"),
    "other_data": ("split.repeats=3", "learner=gaussian_nb", "dataset.n_samples=200"),
    "regression": ("dataset=simulated_regression", "split.repeats=3", "method=marginal"),
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a results folder with every run of RUNS, and their ids."""
    folder, ids = tmp_path_factory.mktemp("compare") / "results", {}
    for name, overrides in RUNS.items():
        ids[name] = carry_out(configuration(*COMMON, *overrides, results=folder)).plan.id
    return folder, ids


def load(results, name):
    folder, ids = results
    return load_predictions(Catalogue(folder).one(ids[name]))


@pytest.mark.thorough
def test_predictions_read_back_are_those_the_metrics_were_made_of(results):
    run = load(results, "folds_lr")
    assert [len(folds) for folds in run.repeats.values()] == [5]
    rows = np.concatenate([fold["rows"] for fold in run.repeats[0]])
    np.testing.assert_array_equal(np.sort(rows), np.arange(300))
    metrics = Catalogue(results[0]).one(run.id).all_metrics()
    errors = metrics.query("metric == 'error_rate' and attribute == '' and variant == ''")
    for fold, value in zip(run.repeats[0], errors["value"], strict=True):
        target = run.people.target.to_numpy()[fold["rows"]]
        assert (fold["prediction"] != target).mean() == pytest.approx(value)


def test_folds_are_pooled_at_their_effective_counts(results):
    """The interval of a difference widens by the root of the shrinkage."""
    runs = [load(results, name) for name in ("folds_lr", "folds_nb")]
    sds = {}
    for rho in ("0", "1/K", "average"):
        (comparison,) = compare_pair(*runs, Settings(rho=rho, alpha=0)).comparisons
        sds[rho] = comparison.delta[:, 0].std()
    assert sds["1/K"] / sds["0"] == pytest.approx(np.sqrt(1.8), rel=0.05)
    assert sds["average"] / sds["0"] == pytest.approx(np.sqrt(0.8 / np.log(1.8)), rel=0.05)


def test_pairing_keeps_the_means_and_narrows_the_difference(results):
    runs = [load(results, name) for name in ("lr", "nb")]
    paired, apart = (
        compare_pair(*runs, Settings(paired=paired)).comparisons[0].delta[:, 0]
        for paired in (True, False)
    )
    assert abs(paired.mean() - apart.mean()) < 5 * apart.std() / np.sqrt(5000)
    assert paired.std() < apart.std()


def test_repeats_are_averaged_by_the_corrected_t_test(results):
    """With one objective the probabilities are the correlated t-test's, in closed form."""
    runs = [load(results, name) for name in ("ten_lr", "ten_nb")]
    settings = Settings(objectives=("accuracy",), rope=(0.01,), draws=40_000)
    (result,) = compare_pair(*runs, settings).comparisons
    target = runs[0].people.target.to_numpy()
    accuracies = [
        np.array(
            [(f[0]["prediction"] == target[f[0]["rows"]]).mean() for f in run.repeats.values()]
        )
        for run in runs
    ]
    events = result.events()
    for name, pair in (("A >> B", accuracies), ("B >> A", accuracies[::-1])):
        exact = probability_better(*pair, test_share=0.2, rope=0.01)
        assert events[name] == pytest.approx(exact, abs=5 * 0.5 / np.sqrt(40_000))
    assert result.reach()[0] > 0.01


def test_typical_repeats_are_compared_one_by_one_and_a_matrix_holds_both_directions(results):
    runs = [load(results, name) for name in ("lr", "nb")]
    compared = compare_pair(*runs, Settings(repeats="typical"))
    events = compared.events(compared.regions(0.95))
    assert len(events) == 3
    np.testing.assert_allclose(events.sum(axis=1), 1)
    assert typical_repeat(pd.DataFrame({"a": [0.1, 0.5, 0.9], "b": [0.9, 0.5, 0.1]})) == 1
    matrix = every_pair(runs, Settings()).outperforms
    events = compare_pair(*runs, Settings()).events().median()  # of one comparison
    assert (matrix[0, 1], matrix[1, 0]) == (events["A >> B"], events["B >> A"])


@pytest.mark.parametrize(
    ("names", "paired", "words"),
    [
        (("lr", "other_seed"), True, "different rows.*paired=false"),
        (("lr", "folds_nb"), False, "has 1 folds and .* 5"),
        (("lr", "other_data"), False, "only runs of one data set"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(results, names, paired, words):
    with pytest.raises(UserError, match=words):
        compare_pair(*(load(results, name) for name in names), Settings(paired=paired))


def test_command_prints_the_answer_and_writes_details_table_and_figure(results, capsys):
    folder, ids = results
    words = (f"runs=[{ids['folds_lr']},{ids['folds_nb'][:8]}]", "rope=[0.01,0.02]")
    run_command(["compare", *words, f"results={folder}"])
    printed = capsys.readouterr().out
    assert "A is better in accuracy, B in the gap in true positive rate" in printed
    assert "300 rows of the data, all of which are tested" in " ".join(printed.split())
    assert "the region" not in printed and "independent rows" not in printed
    assert ".html, " in printed.splitlines()[-1]
    stem = folder / "report" / "comparison" / f"{ids['folds_lr']}_{ids['folds_nb']}"
    page = stem.with_suffix(".html").read_text()
    assert "inside the region" in page
    assert "The rows of 5 pooled folds count as 0.735 of as many independent rows" in page
    assert stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    events = pd.read_csv(stem.with_suffix(".csv"), index_col="repeat")
    np.testing.assert_allclose(events.sum(axis=1), 1)


@pytest.mark.parametrize("name", ["lr", "nb"])
def test_the_values_of_a_run_are_those_of_its_own_table(results, name):
    run = load(results, name)
    accuracy, gap = observed_values(run, Settings(), list(run.repeats))
    summary = values_of(Catalogue(results[0]).one(run.id).summary())
    summary = summary[(summary["variant"] == "") & (summary["group"] == "")]
    means = summary.groupby(["metric", "attribute"])["mean"].first()
    assert accuracy == pytest.approx(1 - means["error_rate", ""])
    assert gap == pytest.approx(means["equal_opportunity", run.protect[0]])
    assert gap > 0


def test_a_run_under_two_ids_is_compared_once(results, tmp_path, capsys):
    folder = shutil.copytree(results[0], tmp_path / "results")
    ids = results[1]
    path = folder / "runs" / ids["lr"]
    again = page_runs.copy(path, config={"dataset.path": "./again.csv"})
    first, second = sorted((path.name, again.name))
    run_command(["compare", "runs=all", f"results={folder}", "draws=500"])
    printed = capsys.readouterr().out
    assert printed.count("Probability that the run of the row outperforms") == 3
    assert f"left out: run {second} is run {first} again" in printed
    assert printed.count(second) == 1
    with pytest.raises(UserError, match="there is nothing to compare"):
        run_command(["compare", f"runs={ids['lr']},{again.name}", f"results={folder}"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["runs=[lr,nb", "draws=5"], "cannot be read"),
        (["runs=[{lr}]"], "it needs at least two"),
        (["draws=500"], "nothing to compare"),
        (["runs=[{lr},{nb}]", "rope=[0.01]"], "rope is .* each of 2"),
        (["runs=[{lr},{nb}]", "rope=[a,b]"], "rope is 'a'; it must be a number"),
        (["runs=[{lr},{nb}]", "rho=half"], "rho is 'half'; valid"),
        (["runs=[{lr},{nb}]", "predictive=true"], "needs repeats=typical"),
        (["runs=[{lr},{nb}]", "paired=maybe"], "it must be true or false"),
        (["runs=[{lr},{nb}]", "objectives=[acuracy,dp]"], "did you mean accuracy"),
        (["runs=[{lr},{nb}]", "protect=height"], "unknown sensitive attribute"),
        (["runs=[{lr},{regression}]"], "is of a regression"),
        (["rums=[{lr},{nb}]"], "unknown option 'rums': did you mean runs"),
    ],
)
def test_words_that_mean_nothing_are_refused(results, words, message):
    folder, ids = results
    with pytest.raises(UserError, match=message):
        run_command(["compare", *(word.format(**ids) for word in words), f"results={folder}"])


def test_groups_are_those_asked_for(results):
    run, other = load(results, "lr"), load(results, "nb")
    attribute = run.people.sensitive.columns[-1]
    settings = Settings(
        objectives=("accuracy_gap",), rope=(0.0,), protect=(attribute,), repeats="typical"
    )
    comparison = compare_pair(run, other, settings).comparisons[0]
    groups = run.people.groups(attribute).cat.codes.to_numpy()
    gaps = []
    for fold in (run.repeats[0][0], other.repeats[0][0]):
        target = run.people.target.to_numpy()[fold["rows"]]
        counts = binary_confusion(target, fold["prediction"], groups[fold["rows"]], n_groups=2)
        rates = counts[:, [0, 3]].sum(axis=1) / counts.sum(axis=1)
        gaps.append(abs(rates[1] - rates[0]))
    # More is better: A's gap enters with a minus sign. The prior and |.| pull towards 0.
    assert abs(comparison.delta.mean() - (gaps[1] - gaps[0])) < comparison.delta.std()
