"""Relative rhos from stored half-splits, as ``fairbench compare rho=relative`` has them."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from fairbench.cli.main import run_command
from fairbench.comparison.runs import (
    Settings,
    VarianceRatios,
    compare_pair,
    effective_sample_fraction,
    load_predictions,
)
from fairbench.core.errors import UserError
from fairbench.experiments.execute import carry_out
from fairbench.inference.survey import mean_relative_shrinkage
from fairbench.results.catalogue import Catalogue
from tests.harness import CONF, configuration

COMMON = ("dataset.n_samples=400", "method=baseline", "tracking=none", "figures=false")
FOLDS, HALVES = ("split=kfold", "split.n_folds=5"), ("split=half_splits", "split.repeats=3")
LR, NB = ("learner=logistic_regression", "learner.C=0.5"), ("learner=gaussian_nb",)
SVM = ("learner=svm", "learner.folds=0")
RUNS = {
    "lr": (*FOLDS, *LR), "nb": (*FOLDS, *NB), "half_lr": (*HALVES, *LR), "half_nb": (*HALVES, *NB),
    "half_svm": (*HALVES, *SVM),
}  # fmt: skip
RELATIVE = Settings(rho="relative", paired=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a results folder with every run of RUNS, and their ids."""
    folder = tmp_path_factory.mktemp("relative") / "results"
    return folder, {name: run(folder, *words) for name, words in RUNS.items()}


def run(folder, *words):
    return carry_out(configuration(*COMMON, *words, results=folder)).plan.id


def load(results, name):
    folder, ids = results
    return load_predictions(Catalogue(folder).one(ids[name]))


def ratios(results, **options):
    return VarianceRatios(CONF, Catalogue(results[0]), replace(RELATIVE, **options))


def by_hand(results, name):
    """Return accuracy's and TPR's (1 / 2J) sum (theta_j - theta_j^c)^2 of each group, (2, G)."""
    stored = load(results, name)
    target = stored.people.target.to_numpy()
    groups = stored.people.groups(stored.protect).cat.codes.to_numpy()
    total = np.zeros((2, groups.max() + 1))
    for halves in stored.repeats.values():
        for g in range(groups.max() + 1):
            hits, result = [], []
            for half in halves:
                mine = half["rows"][groups[half["rows"]] == g]
                label = dict(zip(half["rows"], half["prediction"], strict=True))
                hits.append(np.mean([label[row] == target[row] for row in mine]))
                result.append(np.mean([label[row] for row in mine if target[row] == 1]))
            total[:, g] += [(hits[0] - hits[1]) ** 2, (result[0] - result[1]) ** 2]
    return total / (2 * len(stored.repeats))


@pytest.mark.thorough
def test_ratio_is_that_of_the_halves_by_hand(results):
    expected = by_hand(results, "half_lr") / by_hand(results, "half_svm")
    run_ = load(results, "lr")
    np.testing.assert_allclose(ratios(results).ratios_of_rates(run_), expected)
    assert ratios(results, rho_per="mean")(run_) == pytest.approx(expected.mean())
    np.testing.assert_allclose(ratios(results)(run_), expected.mean(axis=0)[:, None])


def test_the_effective_sample_fraction_follows_the_ratio(results):
    """Variance inflation 1 + (K - 1) rho is r times the reference's 1 + (K - 1) / K."""
    run_, result = load(results, "nb"), ratios(results)
    r = np.clip(result(run_), (1 - 4 / 5) / 1.8, 5 / 1.8)  # rho within [-1/K, 1]
    assert effective_sample_fraction(run_, RELATIVE, result) == pytest.approx(1 / (r * 1.8))
    up = effective_sample_fraction(run_, replace(RELATIVE, rho="relative_up"), result)
    assert up == pytest.approx(mean_relative_shrinkage(result(run_), 5))


def test_each_run_is_drawn_at_its_own_fraction_unless_paired(results):
    runs = [load(results, name) for name in ("lr", "nb")]
    fractions = dict(zip((id(run_) for run_ in runs), (2.0, 0.5), strict=True))
    sds = {}
    for paired in (False, True):
        settings = replace(RELATIVE, paired=paired, alpha=0.0, objectives=("accuracy",), rope=(0,))
        for name, chosen in (
            ("own", lambda run_: np.asarray(fractions[id(run_)])),
            ("larger", lambda run_: np.asarray(2.0)),
        ):
            (comparison,) = compare_pair(*runs, settings, chosen).comparisons
            sds[paired, name] = comparison.delta.std()
    assert sds[True, "own"] == pytest.approx(sds[True, "larger"], rel=0.05)
    assert sds[False, "own"] < 0.9 * sds[False, "larger"]


def test_reference_itself_has_ratio_one(results):
    stored = load(results, "half_svm")
    np.testing.assert_allclose(ratios(results).ratios_of_rates(stored), 1)


def test_the_page_has_fractions_and_ratios(results):
    folder, ids = results
    words = [f"runs=[{ids['lr']},{ids['nb']}]", "rho=relative", "draws=500"]
    page = folder / "report" / "comparison" / f"{ids['lr']}_{ids['nb']}.html"
    run_command(["compare", *words, f"results={folder}"])
    printed = " ".join(page.read_text().split())
    assert "The rows of 5 pooled folds count as" in printed
    assert "(run B, variance ratio" in printed
    assert "pairs of rows as the smaller of the two" in printed
    run_command(["compare", *words, "rho_per=group", "paired=false", f"results={folder}"])
    (first, *others) = ratios(results, rho_per="group")(load(results, "lr")).ravel()
    printed = " ".join(page.read_text().split())
    assert f"variance ratio {first:.3f}/{others[0]:.3f}" in printed


def test_missing_half_splits_are_named_with_the_command_that_makes_them(results, tmp_path):
    folder, ids = results
    copied = shutil.copytree(folder, tmp_path / "results")
    for name in ("half_lr", "half_svm"):
        shutil.rmtree(copied / "runs" / ids[name])
    words = [f"runs=[{ids['lr']},{ids['nb']}]", "rho=relative_up", f"results={copied}"]
    with pytest.raises(UserError) as refusal:
        run_command(["compare", *words])
    message = str(refusal.value)
    assert f"those of run {ids['lr']}, the reference learner are not in" in message
    assert ids["nb"] not in message
    commands = [set(words.split()) for words in message.split("fairbench run ")[1:]]
    common = {"dataset=simulated", "method=baseline", "dataset.n_samples=400", "split=half_splits"}
    assert {*common, "learner=logistic_regression", "learner.C=0.5"} <= commands[0]
    assert {*common, "learner=svm"} == commands[1]


def test_two_references_must_be_told_apart(results, tmp_path):
    folder, ids = results
    copied = shutil.copytree(folder, tmp_path / "results")
    other = run(copied, *HALVES, "learner=svm", "learner.C=3", "learner.folds=0")
    lr = load_predictions(Catalogue(copied).one(ids["lr"]))
    with pytest.raises(UserError, match=f"several half-split runs of the reference: .*{other}"):
        ratios((copied, ids))(lr)
    named = ratios((copied, ids), reference_run=ids["half_svm"]).ratios_of_rates(lr)
    np.testing.assert_allclose(named, ratios(results).ratios_of_rates(load(results, "lr")))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "message"),
    [(["rho=relatively"], "valid: average, 1/K, relative, relative_up, or a number"),
     (["rho_per=fold"], "unknown rho_per 'fold'"),
     (["rho=relative", "reference_run=nothing"], "unknown run 'nothing' in")],
)  # fmt: skip
def test_words_that_mean_nothing_are_refused(results, words, message):
    folder, ids = results
    with pytest.raises(UserError, match=message):
        run_command(["compare", f"runs=[{ids['lr']},{ids['nb']}]", *words, f"results={folder}"])
