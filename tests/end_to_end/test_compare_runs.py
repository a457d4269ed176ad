"""Finished runs against each other, as ``fairbench compare`` and ``tradeoff`` have them."""

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from fairbench.cli.main import run_command
from fairbench.comparison import runs as pairs
from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.summary import Headlines
from fairbench.evaluation.table import values_of
from fairbench.experiments.execute import carry_out
from fairbench.inference.comparing import METRICS, is_dominated, objective
from fairbench.inference.survey import mean_relative_shrinkage
from fairbench.results.catalogue import Catalogue
from fairbench.results.runs import Run
from tests.correlated import probability_better
from tests.harness import configuration, quick
from tests.reporting import page_runs

COMMON = ("dataset.n_samples=300", "method=baseline", "tracking=none", "figures=false")
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
    "nll": ("dataset=simulated_regression", "split.repeats=3", "method=normal_nll"),
    "one_lr": ("split.repeats=1", "learner=logistic_regression"),
    "one_nb": ("split.repeats=1", "learner=gaussian_nb"),
}  # fmt: skip


@dataclass(frozen=True)
class Made:
    """Finished runs, by names: the results folder, and their ids."""

    folder: Path
    ids: dict[str, str]

    @classmethod
    def of(cls, folder, runs):
        """Carry out runs."""
        done = {
            name: configuration(*COMMON, *words, results=folder) for name, words in runs.items()
        }
        return cls(folder, {name: carry_out(words).plan.id for name, words in done.items()})

    def load(self, *names):
        """Return the predictions of some runs."""
        found = Catalogue(self.folder)
        return [pairs.load_predictions(found.one(self.ids[name])) for name in names]

    def compare(self, words):
        """Give the command, in which a name in braces stands for an id."""
        run_command(["compare", *words.format(**self.ids).split(), f"results={self.folder}"])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return Made.of(tmp_path_factory.mktemp("compare") / "results", RUNS)


@pytest.mark.thorough
def test_folds_are_pooled_at_their_effective_counts(results):
    """The interval of a difference widens by the root of the shrinkage."""
    runs = results.load("folds_lr", "folds_nb")
    stored = Headlines(Catalogue(results.folder).one(runs[0].id).summary(), "group").usual["error"][
        0
    ]
    assert pairs.observed_values(runs[0], pairs.Settings(), [0])[0] == pytest.approx(stored)
    sds = {}
    for rho in ("0", "1/K", "average"):
        (comparison,) = pairs.compare_pair(*runs, pairs.Settings(rho=rho, alpha=0)).comparisons
        sds[rho] = comparison.delta[:, 0].std()
    assert sds["1/K"] / sds["0"] == pytest.approx(np.sqrt(1.8), rel=0.05)
    assert sds["average"] / sds["0"] == pytest.approx(np.sqrt(0.8 / np.log(1.8)), rel=0.05)


def test_pairing_keeps_the_means_and_narrows_the_difference(results):
    runs = results.load("lr", "nb")
    paired, apart = (
        pairs.compare_pair(*runs, pairs.Settings(paired=paired)).comparisons[0].delta[:, 0]
        for paired in (True, False)
    )
    assert abs(paired.mean() - apart.mean()) < 5 * apart.std() / np.sqrt(5000)
    assert paired.std() < apart.std()


STORED = {
    ("ten", "error_rate"): -1,  # of counts, whose posterior is theirs
    ("ten", "log_loss"): -1,
    ("ten", "expected_calibration_error"): -1,
    ("ten", "predictive_uncertainty"): 1,
    ("folds", "brier_score"): -1,
    ("folds", "roc_auc"): 1,
}


@pytest.mark.parametrize(("kind", "metric"), STORED)
def test_any_stored_metric_is_compared_by_its_values_in_the_splits(results, kind, metric):
    """The probabilities are those of the correlated t-test of the two columns of values."""
    runs = results.load(f"{kind}_lr", f"{kind}_nb")
    columns = f"metric == '{metric}' and attribute == '' and variant == '' and binning != 'mass'"
    values = [values_of(run.metrics()).query(columns) for run in runs]
    rope = 0.2 * abs(values[0]["value"].mean() - values[1]["value"].mean())
    settings = pairs.Settings((metric,), (rope,), draws=40_000)
    (result,) = pairs.compare_pair(*runs, settings).comparisons
    turned = [STORED[kind, metric] * of_run["value"].to_numpy() for of_run in values]
    for name, pair in (("A >> B", turned), ("B >> A", turned[::-1])):
        exact = probability_better(*pair, test_share=0.2, rope=rope)
        assert result.events()[name] == pytest.approx(exact, abs=5 * 0.5 / np.sqrt(40_000))
    assert result.reach()[0] > rope
    observed = [pairs.observed_values(run, settings, list(run.repeats))[0] for run in runs]
    assert observed == pytest.approx([of_run["value"].mean() for of_run in values])


def test_counts_and_a_loss_are_compared_by_the_same_draws(results):
    """Each has the margin that it has alone, and they vary together as in the splits."""
    runs = results.load("ten_lr", "ten_nb")
    together = pairs.Settings(("error_rate", "brier_score"), (0.0, 0.0), draws=20_000)
    (both,) = pairs.compare_pair(*runs, together).comparisons
    tables = [values_of(run.metrics()).query("attribute == '' and variant == ''") for run in runs]
    first, second = (
        table.pivot_table(index="repeat", columns="metric", values="value") for table in tables
    )
    leads = (second - first)[["error_rate", "brier_score"]]
    expected = np.corrcoef(leads.to_numpy().T)[0, 1]
    assert np.corrcoef(both.delta.T)[0, 1] == pytest.approx(expected, abs=0.03)
    exact = probability_better(-first["error_rate"], -second["error_rate"], test_share=0.2, rope=0)
    assert both.events()["A >> B"] <= exact + 0.02
    assert (both.delta[:, 0] > 0).mean() == pytest.approx(exact, abs=0.02)


def test_regressions_and_ratios_between_groups_are_compared(results, said_by):
    ids = results.ids
    words = ["compare", f"runs=[{ids['nll']},{ids['regression']}]", f"results={results.folder}"]
    printed = said_by(*words)
    assert "RMSE" in printed and "gap in selection rate" in printed
    assert "Decided: A is better." in said_by(*words, "objectives=crps")
    words[1] = f"runs=[{ids['ten_lr']},{ids['ten_nb']}]"
    ratio = said_by(*words, "objectives=predictive_uncertainty_ratio")
    assert "nearer to 1 is better" in ratio
    assert " is ahead" in said_by(*words, "objectives=predictive_uncertainty")


def test_typical_repeats_are_compared_one_by_one_and_a_matrix_holds_both_directions(results):
    runs = results.load("lr", "nb")
    compared = pairs.compare_pair(*runs, pairs.Settings(repeats="typical"))
    events = compared.events(compared.regions(0.95))
    assert len(events) == 3
    np.testing.assert_allclose(events.sum(axis=1), 1)
    assert pairs.typical_repeat(pd.DataFrame({"a": [0.1, 0.5, 0.9], "b": [0.9, 0.5, 0.1]})) == 1
    matrix = pairs.every_pair(runs, pairs.Settings()).outperforms
    events = pairs.compare_pair(*runs, pairs.Settings()).events().median()  # of one comparison
    assert (matrix[0, 1], matrix[1, 0]) == (events["A >> B"], events["B >> A"])


def test_command_prints_the_answer_and_writes_details_table_and_figure(results, capsys):
    words = "runs=[{folds_lr},{folds_nb}] rope=[0.01,0.02] objectives=[accuracy,equal_opportunity]"
    results.compare(words)
    printed = capsys.readouterr().out
    assert "A is better in accuracy, B in the gap in true positive rate" in printed
    assert "300 rows of the data, all of which are tested" in " ".join(printed.split())
    assert "the region" not in printed and "independent rows" not in printed
    assert ".html, " in printed.splitlines()[-1]
    stem = results.folder / "report/comparison" / "{folds_lr}_{folds_nb}".format(**results.ids)
    page = stem.with_suffix(".html").read_text()
    assert "inside the region" in page
    assert "The rows of 5 pooled folds count as 0.735 of as many independent rows" in page
    assert "region of the difference" in page
    events = pd.read_csv(stem.with_suffix(".csv"), index_col="repeat")
    np.testing.assert_allclose(events.sum(axis=1), 1)


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """Return a folder with two runs, in half of whose repeats the last group has no label 0."""
    folder, rng = tmp_path_factory.mktemp("rare"), np.random.default_rng(0)
    people = pd.DataFrame({"x": rng.normal(size=200), "g": ["a", "b"] * 95 + ["c"] * 10})
    people["y"] = ((people["x"] + rng.normal(size=200) > 0) | (people["g"] == "c")).astype(int)
    people.loc[195:197, "y"] = 0
    people.assign(weight=rng.uniform(1, 3, 200)).to_csv(folder / "people.csv", index=False)
    words = ("dataset=table", f"dataset.path={folder / 'people.csv'}", "dataset.target=y",
             "dataset.sensitive=[g]", "dataset.weight=weight", "split.repeats=4",
             "tracking=none", "figures=false", "method=baseline")  # fmt: skip
    for learner in ("logistic_regression", "gaussian_nb"):
        for more in ((), ("evaluator.weights=true",)):
            carry_out(configuration(*words, f"learner={learner}", *more, results=folder))
    return folder


def of_learners(folder, *, weights=False):
    """Return the runs of `rare` whose rows are weighted, or are not."""
    return [run for run in Catalogue(folder) if bool(run.config["evaluator"]["weights"]) == weights]


def test_a_group_without_a_rate_is_left_out_as_in_the_runs_own_table(rare, said_by):
    stored = of_learners(rare)
    for run in stored:
        of_run = pairs.load_predictions(run)
        error, gap = pairs.observed_values(of_run, pairs.Settings(), [0, 1, 2, 3])
        assert [error, gap] == pytest.approx(
            [Headlines(run.summary(), "g").usual[name][0] for name in ("error", "gap")]
        )
    printed = said_by("compare", f"runs=[{stored[0].id},{stored[1].id}]", f"results={rare}")
    assert re.search(r"c is left out of the gap in .* in \d of 4 repeats: no negatives", printed)


def test_runs_of_weighted_rows_are_not_compared_by_counts_and_told(rare, said_by):
    plain, (weighted, other) = of_learners(rare), of_learners(rare, weights=True)
    with pytest.raises(UserError, match=f"run {weighted.id} weighs its rows, and is compared by"):
        run_command(["compare", weighted.id, plain[0].id, f"results={rare}"])
    words = ("compare", weighted.id, other.id, f"results={rare}")
    assert "log loss" in said_by(*words, "objectives=log_loss")  # whose values are weighted
    printed = said_by("compare", "all", f"results={rare}")
    assert all(f"left out: run {run.id} weighs its rows" in printed for run in (weighted, other))
    assert all(run.name in printed for run in plain)
    printed = said_by("tradeoff", "table", f"results={rare}")
    assert "2 runs" in printed and f"every row counts as one here: {weighted.id}" in printed


def test_the_values_of_a_run_are_those_of_its_own_table(results):
    (run,) = results.load("lr")
    names = ("error_rate", "accuracy", "equalized_odds", "equal_opportunity")
    table = Headlines(Catalogue(results.folder).one(run.id).summary(), "group")
    found = pairs.observed_values(run, pairs.Settings(names), list(run.repeats))
    assert list(found) == pytest.approx([table.estimate(name)[0] for name in names])
    assert found[0] + found[1] == pytest.approx(1) and found[-1] > 0


def test_a_run_under_two_ids_is_compared_once(results, tmp_path, capsys):
    folder = shutil.copytree(results.folder, tmp_path / "results")
    path = folder / "runs" / results.ids["lr"]
    again = page_runs.copy(path, config={"dataset.path": "./again.csv"})
    first, second = sorted((path.name, again.name))
    run_command(["compare", "runs=all", f"results={folder}", "draws=500"])
    printed = capsys.readouterr().out
    assert printed.count("Probability that the run of the row outperforms") == 5
    assert f"left out: run {second} is run {first} again" in printed
    assert printed.count(second) == 1
    with pytest.raises(UserError, match="there is nothing to compare"):
        run_command(["compare", f"runs={first},{second}", f"results={folder}"])


REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())


@pytest.mark.parametrize(("words", "message"), REFUSED.items())
def test_words_that_mean_nothing_are_refused(results, words, message):
    with pytest.raises(UserError, match=message):
        results.compare(words)


# Relative rhos from stored half-splits, as ``fairbench compare rho=relative`` has them.

FOLDS, HALVES = ("split=kfold", "split.n_folds=5"), ("split=half_splits", "split.repeats=3")
LR, NB = ("learner=logistic_regression", "learner.C=0.5"), ("learner=gaussian_nb",)
SVM = ("learner=svm", "learner.folds=0")
HALF_SPLITS = {
    "lr": (*FOLDS, *LR), "nb": (*FOLDS, *NB), "half_lr": (*HALVES, *LR), "half_nb": (*HALVES, *NB),
    "half_svm": (*HALVES, *SVM),
}  # fmt: skip
RELATIVE = pairs.Settings(("accuracy", "equal_opportunity"), rho="relative", paired=False)


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    return Made.of(tmp_path_factory.mktemp("relative") / "results", HALF_SPLITS)


def ratios(halves, **options):
    return pairs.VarianceRatios(Catalogue(halves.folder), replace(RELATIVE, **options))


def by_hand(halves, name):
    """Return accuracy's and TPR's (1 / 2J) sum (theta_j - theta_j^c)^2 of each group, (2, G)."""
    (stored,) = halves.load(name)
    target = stored.people.target.to_numpy()
    groups = stored.people.groups(stored.protect).cat.codes.to_numpy()
    total = np.zeros((2, groups.max() + 1))
    for pair in stored.repeats.values():
        for g in range(groups.max() + 1):
            hits, result = [], []
            for half in pair:
                mine = half["rows"][groups[half["rows"]] == g]
                label = dict(zip(half["rows"], half["prediction"], strict=True))
                hits.append(np.mean([label[row] == target[row] for row in mine]))
                result.append(np.mean([label[row] for row in mine if target[row] == 1]))
            total[:, g] += [(hits[0] - hits[1]) ** 2, (result[0] - result[1]) ** 2]
    return total / (2 * len(stored.repeats))


@pytest.mark.thorough
def test_ratio_is_that_of_the_halves_by_hand(halves):
    expected = by_hand(halves, "half_lr") / by_hand(halves, "half_svm")
    (run_,) = halves.load("lr")
    np.testing.assert_allclose(ratios(halves).ratios_of_rates(run_), expected)
    assert ratios(halves, rho_per="mean")(run_) == pytest.approx(expected.mean())
    np.testing.assert_allclose(ratios(halves)(run_), expected.mean(axis=0)[:, None])


@pytest.mark.thorough
def test_the_effective_sample_fraction_follows_the_ratio(halves):
    """Variance inflation 1 + (K - 1) rho is r times the reference's 1 + (K - 1) / K."""
    (run_,), result = halves.load("nb"), ratios(halves)
    r = np.clip(result(run_), (1 - 4 / 5) / 1.8, 5 / 1.8)  # rho within [-1/K, 1]
    assert pairs.effective_sample_fraction(run_, RELATIVE, result) == pytest.approx(1 / (r * 1.8))
    up = pairs.effective_sample_fraction(run_, replace(RELATIVE, rho="relative_up"), result)
    assert up == pytest.approx(mean_relative_shrinkage(result(run_), 5))


@pytest.mark.thorough
def test_each_run_is_drawn_at_its_own_fraction_unless_paired(halves):
    runs = halves.load("lr", "nb")
    fractions = dict(zip((id(run_) for run_ in runs), (2.0, 0.5), strict=True))
    sds = {}
    for paired in (False, True):
        settings = replace(RELATIVE, paired=paired, alpha=0.0, objectives=("accuracy",), rope=(0,))
        for name, chosen in (
            ("own", lambda run_: np.asarray(fractions[id(run_)])),
            ("larger", lambda run_: np.asarray(2.0)),
        ):
            (comparison,) = pairs.compare_pair(*runs, settings, chosen).comparisons
            sds[paired, name] = comparison.delta.std()
    assert sds[True, "own"] == pytest.approx(sds[True, "larger"], rel=0.05)
    assert sds[False, "own"] < 0.9 * sds[False, "larger"]


def test_the_page_has_fractions_and_ratios(halves):
    words = "runs=[{lr},{nb}] rho=relative draws=500 objectives=[accuracy,equal_opportunity]"
    page = halves.folder / "report/comparison" / "{lr}_{nb}.html".format(**halves.ids)
    halves.compare(words)
    printed = " ".join(page.read_text().split())
    assert "The rows of 5 pooled folds count as" in printed
    assert "(run B, variance ratio" in printed
    assert "pairs of rows as the smaller of the two" in printed
    halves.compare(f"{words} rho_per=group paired=false")
    (first, *others) = ratios(halves, rho_per="group")(*halves.load("lr")).ravel()
    printed = " ".join(page.read_text().split())
    assert f"variance ratio {first:.3f}/{others[0]:.3f}" in printed


def test_missing_half_splits_are_named_with_the_command_that_makes_them(halves, tmp_path):
    ids, copied = halves.ids, shutil.copytree(halves.folder, tmp_path / "results")
    for name in ("half_lr", "half_svm"):
        shutil.rmtree(copied / "runs" / ids[name])
    with pytest.raises(UserError) as refusal:
        Made(copied, ids).compare("runs=[{lr},{nb}] rho=relative_up")
    message = str(refusal.value)
    assert f"those of run {ids['lr']}, the reference learner are not in" in message
    assert ids["nb"] not in message
    commands = [set(words.split()) for words in message.split("fairbench run ")[1:]]
    common = {"dataset=simulated", "method=baseline", "dataset.n_samples=300", "split=half_splits"}
    assert {*common, "learner=logistic_regression", "learner.C=0.5"} <= commands[0]
    assert {*common, "learner=svm"} == commands[1]


def test_two_references_must_be_told_apart(halves, tmp_path):
    copied = Made(shutil.copytree(halves.folder, tmp_path / "results"), halves.ids)
    (other,) = Made.of(copied.folder, {"": (*HALVES, *SVM, "learner.C=3")}).ids.values()
    (lr,) = copied.load("lr")
    with pytest.raises(UserError, match=f"several half-split runs of the reference: .*{other}"):
        ratios(copied)(lr)
    named = ratios(copied, reference_run=copied.ids["half_svm"]).ratios_of_rates(lr)
    np.testing.assert_allclose(named, ratios(halves).ratios_of_rates(lr))


PAIRS = {
    "classes": ("evaluator.neighbours=2", "evaluator.feature_shift_rates=[0.2]",
                "evaluator.relaxations=[0.05]", "consistency=max_depth", "consistency.values=[2,3]",
                "method=ensemble"),
    "sets": ("method=conformal", "learner.max_depth=3"),
    "numbers": ("dataset=simulated_regression", "method=normal_nll"),
    "several classes": ("dataset=simulated_classes", "method=ensemble"),
}  # fmt: skip
OF_PAIRS = ("split.repeats=3", "split.validation=0.2", "tracking=none", "figures=false")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", quick(PAIRS, ["classes", "sets"], rest=pytest.mark.slow))
def test_every_metric_that_a_table_lists_is_compared_and_tabled(kind, tmp_path, capsys):
    """What has several values in a split is answered by the name that the refusal gives."""
    for depth in (2, 4):
        words = [*OF_PAIRS, *PAIRS[kind], f"learner.max_depth={depth}"]
        carry_out(configuration(*words, results=tmp_path))
    stored = list(Catalogue(tmp_path))
    runs = [pairs.load_predictions(run, tasks=tuple(Task)) for run in stored]
    tables = [Headlines(run.summary(), run.protect) for run in stored]
    summary = stored[0].summary()
    names = sorted(summary[summary["variant"] == ""]["metric"].unique())
    assert len(names) > 30
    answered = []
    for name in names:
        settings = pairs.Settings((name,), draws=200)
        try:
            (compared,) = pairs.compare_pair(*runs, settings).comparisons
        except UserError as refusal:
            named = re.search("one for each .*: name one, such as (.+?)(?: or |$)", str(refusal))
            assert named, refusal
            with pytest.raises(UserError, match="has several values in a split"):
                tables[0].estimate(name)
            names.append(named[1])  # perhaps several still
            continue
        answered.append(name)
        assert np.isfinite(compared.delta).all() and compared.delta.shape[1] == 1
        goal = objective(name, runs[0].people.task)
        shown = np.array([table.estimate(name)[0] for table in tables])
        assert np.isfinite(shown).all()
        if not goal.of_counts:
            values = [pairs.observed_values(run, settings, list(run.repeats))[0] for run in runs]
            np.testing.assert_allclose(values, shown, atol=1e-9)
            if not isinstance(goal.metric.better, float):  # the inverse of a mean is another
                first, second = goal.metric.larger_is_better(shown)
                spread = compared.delta.std() / np.sqrt(200)
                assert abs(compared.delta.mean() - (first - second)) <= 6 * spread + 1e-9
    out = tmp_path / "table.md"
    run_command(
        ["table", "all", f"metrics=[{','.join(answered)}]", f"results={tmp_path}", f"out={out}"]
    )
    header, _, *rows = [line for line in out.read_text().splitlines() if line.startswith("|")]
    assert header.count("95 % interval") == len(answered) and len(rows) == 2
    assert " - " not in " ".join(rows)


@pytest.mark.thorough
def test_one_headline_is_chosen_once_and_every_command_looks_at_it_first(tmp_path, capsys):
    """It is part of what a run is, and of no fit; runs without one are as they were."""

    def run_of(*words):
        common = ("split.repeats=2", f"learner={words[0]}", *COMMON, *words[1:])
        return carry_out(configuration(*common, results=tmp_path)).plan

    ids = [
        run_of(name, "headline=accuracy_gap").id for name in ("logistic_regression", "gaussian_nb")
    ]
    fits = sorted((tmp_path / "cells").rglob("*"))
    where, named = f"results={tmp_path}", "gap in accuracy"
    for command in (["table", "all"], ["compare", *ids], ["choose"], ["tradeoff", "simulated"]):
        run_command([*command, where])
        printed = capsys.readouterr().out
        first = printed.partition("gap in " if command[0] != "tradeoff" else "against the ")[2]
        assert first.startswith("accuracy"), printed
    run_command(["report", where])
    assert "has the best mean in gap in accuracy" in (tmp_path / "report/index.html").read_text()
    usual = run_of("logistic_regression")
    assert usual.id not in ids and "headline" not in Catalogue(tmp_path).one(usual.id).config
    assert sorted((tmp_path / "cells").rglob("*")) == fits
    capsys.readouterr()
    run_command(["table", "all", where])
    printed = capsys.readouterr()
    assert printed.err.count("note: runs have different headlines, ") == 1
    assert "gap in equalized odds" in printed.out and named not in printed.out
    with pytest.raises(UserError, match="unknown headline 'fairness'; valid: accuracy_gap, "):
        run_of("gaussian_nb", "headline=fairness")
    run_command(["store", "evaluate", where])  # composes each run's configuration again
    assert {*Catalogue(tmp_path).runs} == {*ids, usual.id}


# Trade-offs, as ``fairbench tradeoff dataset=simulated`` has them.


OF_TRADEOFF = ("split.repeats=3", "split.validation=0.2", "learner=logistic_regression")
TRADEOFFS = {
    "baseline": (),
    "postprocessed": ("evaluator.relaxations=[0,0.1,1]",),
    "reweighing": ("intervention=reweighing",),
    "ensemble": ("method=ensemble",),
    "other_split": ("split.repeats=2",),
}


@pytest.fixture(scope="module")
def tradeoffs(tmp_path_factory):
    runs = {name: (*OF_TRADEOFF, *words) for name, words in TRADEOFFS.items()}
    return Made.of(tmp_path_factory.mktemp("tradeoff") / "results", runs)


@pytest.mark.thorough
def test_runs_of_one_split_are_found_once_each_and_named(tradeoffs):
    ids, found = tradeoffs.ids, Catalogue(tradeoffs.folder)
    runs = pairs.candidates("simulated", "", found)
    names = pairs.names_of_parts(runs)
    result = {run.id: of_run for run, of_run in zip(runs, names, strict=True)}
    assert set(result) == {ids[name] for name in ("postprocessed", "reweighing", "ensemble")}
    assert result[ids["reweighing"]] == {
        "learner": "logistic regression", "intervention": "reweighing", "method": "baseline",
    }  # fmt: skip


def test_fewer_than_two_runs_are_refused(tradeoffs):
    with pytest.raises(UserError, match=r"has no finished run of german by sex; a trade-off needs"):
        pairs.candidates("german", "sex", Catalogue(tradeoffs.folder))


def test_namesakes_are_told_apart_by_the_options_that_differ():
    configs = [{"name": "grid_search", "grid": 5, "bound": bound} for bound in (0.1, 0.2)]
    configs.append({"name": "none"})
    parts = ("learner", "intervention", "method")
    listed = [
        {"config": dict.fromkeys(parts, config), "choices": dict.fromkeys(parts, config["name"])}
        for config in configs
    ]
    named = pairs.names_of_parts([Run(Path(), of_run) for of_run in listed])
    assert [names["learner"] for names in named] == ["grid search 0.1", "grid search 0.2", "none"]


@pytest.mark.thorough
def test_points_are_the_metrics_and_the_spread_is_the_posteriors(tradeoffs):
    stored = Catalogue(tradeoffs.folder).one(tradeoffs.ids["postprocessed"])
    metrics, run = values_of(stored.all_metrics()), pairs.load_predictions(stored)
    result = pairs._run_points(run, METRICS, "typical")
    error = metrics.query("metric == 'error_rate' and attribute == ''")
    for name in METRICS:
        gap = metrics.query(f"metric == '{name}' and attribute == '{run.protect[0]}'")["value"]
        assert result[name]["error"] == pytest.approx(error["value"].mean())
        assert result[name]["gap"] == pytest.approx(gap.mean())
    group = metrics.query(f"metric == 'error_rate' and attribute == '{run.protect[0]}'")
    group = group[group["repeat"] == error.sort_values("value", kind="stable")["repeat"].iloc[1]]
    # Beta variances of the groups' error rates: two of four cells are errors, each with a 1 prior.
    size, wrong = group["n"].to_numpy(), (group["n"] * group["value"]).to_numpy()
    mean = (wrong + 2) / (size + 4)
    variance = ((size / size.sum()) ** 2 * mean * (1 - mean) / (size + 5)).sum()
    assert result[METRICS[0]]["error_variance"] == pytest.approx(variance, rel=0.15)
    averaged = pairs._run_points(run, METRICS)[METRICS[0]]
    assert averaged["error"] == result[METRICS[0]]["error"]
    assert averaged["error_variance"] > 0


def test_dominance_is_of_no_larger_and_somewhere_smaller():
    values = np.array([[1, 4], [2, 2], [2, 3], [4, 1], [1, 4], [5, np.nan]])
    assert is_dominated(values).tolist() == [False, False, True, False, False, False]


@pytest.mark.thorough
def test_the_command_prints_and_writes_everything(tradeoffs, said_by):
    printed = said_by("tradeoff", "dataset=simulated", f"results={tradeoffs.folder}")
    assert "error against the equalized odds gap" in printed
    assert "error of logistic regression, baseline" in printed
    (table_file,) = (tradeoffs.folder / "report" / "tradeoff").glob("*.csv")
    assert table_file.with_suffix(".png").stat().st_size > 10_000
    table = pd.read_csv(table_file)
    assert len(table) == 3 * len(METRICS)
    for _, rows in table.groupby("metric"):
        np.testing.assert_array_equal(
            rows["dominated"], is_dominated(rows[["error", "gap"]].to_numpy())
        )
    assert table["certainty"].between(0, 1).all()
    assert table[table["metric"] != "predictive_parity"]["postprocessed_error"].notna().any()
