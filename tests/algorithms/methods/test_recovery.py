"""What methods recover of a simulated truth: mean, standard deviation, likelihood, coverage."""

from functools import cache

import numpy as np
import pytest

from fairbench.components.algorithms.interventions.none import NoIntervention
from fairbench.components.algorithms.learners.mlp import MLP
from fairbench.components.algorithms.learners.xgboost import XGBoost
from fairbench.components.algorithms.methods.conformal import Conformal
from fairbench.components.algorithms.methods.deep_ensemble import DeepEnsemble
from fairbench.components.algorithms.methods.normal_nll import NormalNLL
from fairbench.components.datasets import simulated
from fairbench.data.splits import Fold
from fairbench.evaluation.predictions import read_predictions
from fairbench.experiments.compute import compute, raw_outputs
from fairbench.experiments.contracts import Study

# Simulations of many replications: make test-all runs them.
pytestmark = pytest.mark.thorough

N = 20_000
TREES = XGBoost(rounds=100, max_depth=4, learning_rate=0.1)
NETWORK = MLP()


@cache
def predicted(method, learner, task="regression"):
    """Return what a method says of the last fifth, fitted to the rest, with truth and labels."""
    data = simulated.load(None, task=task, n_samples=N, seed=1)
    train, test = np.split(np.arange(N), [N * 4 // 5])
    study = Study(data, learner, NoIntervention(), method.fitter, 0, ("group",))
    columns, _ = compute(study, Fold(0, 0, train, train[:0], test))
    said = method.read(raw_outputs(columns), data.task, np.random.default_rng(2))
    keep = method.capabilities.keep_invalid
    table = read_predictions(said, data.task, "any", keep_invalid=keep)
    tested = data.take(columns["row"])
    truth = tested.truth.reset_index(drop=True).add_prefix("true_")
    groups = tested.sensitive["group"].to_numpy()
    return table.join(truth).assign(y=tested.target.to_numpy(), group=groups)


def rmse(difference):
    return float(np.sqrt((difference**2).mean()))


def nll(table, mean="mean", sd="sd"):
    r = (table["y"] - table[mean]) / table[sd]
    return float((np.log(table[sd] * np.sqrt(2 * np.pi)) + r**2 / 2).mean())


OURS = [
    NormalNLL(),
    NormalNLL("beta_nll"),
    NormalNLL("faithful_nll"),
    pytest.param(DeepEnsemble(), marks=pytest.mark.thorough),
]
LEARNERS = [
    pytest.param(TREES, id="xgboost"),
    pytest.param(NETWORK, id="mlp", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("method", OURS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("learner", LEARNERS)
def test_mean_and_sd_are_recovered_within_a_stated_error(method, learner):
    """The population's mean has an sd of 1.8; its sds span a factor of 20 between rows."""
    table = predicted(method, learner)
    assert rmse(table["mean"] - table["true_mean"]) < 0.16
    most = 0.35 if method == NormalNLL("faithful_nll") else 0.27
    assert rmse(np.log(table["sd"]) - np.log(table["true_sd"])) < most
    assert table["sd"].rank().corr(table["true_sd"].rank()) > 0.85
    assert nll(table) < nll(table, "true_mean", "true_sd") + 0.16


def covered(table, level):
    if "lower_90" in table:
        return table["y"].between(table[f"lower_{level}"], table[f"upper_{level}"])
    return table[f"set_1_{level}"].where(table["y"] == 1, table[f"set_0_{level}"]) == 1


@pytest.mark.parametrize("task", ["regression", "binary"])
@pytest.mark.parametrize("level", [50, 80, 90, 95])
def test_conformal_covers_everyone_or_each_group_as_it_says(task, level):
    def tolerance(n):
        # About as many rows calibrate as are tested; four standard errors of both.
        return 4 * np.sqrt(level / 100 * (1 - level / 100) * 2 / n)

    split = covered(predicted(Conformal(), TREES, task), level)
    assert split.mean() == pytest.approx(level / 100, abs=tolerance(len(split)))
    table = predicted(Conformal(guarantee="group"), TREES, task)
    for _, rows in table.groupby("group", observed=True):
        hit = covered(rows, level)
        assert hit.mean() == pytest.approx(level / 100, abs=tolerance(len(hit)))


def test_split_conformal_leaves_the_noisier_group_under_its_level():
    table = predicted(Conformal(), TREES)
    assert covered(table[table["group"] == "minority"], 90).mean() < 0.8
    scaled = predicted(Conformal(scaled=True), TREES)
    assert covered(scaled[scaled["group"] == "minority"], 90).mean() > 0.87
    widths = [(outputs["upper_90"] - outputs["lower_90"]).mean() for outputs in (scaled, table)]
    assert widths[0] < widths[1]
