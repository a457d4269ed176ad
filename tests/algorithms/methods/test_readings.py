"""Readings of raw outputs: closed forms, brute force over pairs, scipy, and ties."""

import numpy as np
import pytest
from scipy.stats import binomtest, entropy

from fairbench.components.algorithms.methods.baseline import Baseline
from fairbench.components.algorithms.methods.binomial_nll import BinomialNLL
from fairbench.components.algorithms.methods.conformal import Conformal
from fairbench.components.algorithms.methods.constant_sd import ConstantSD
from fairbench.components.algorithms.methods.deep_ensemble import DeepEnsemble
from fairbench.components.algorithms.methods.ensemble import Ensemble
from fairbench.components.algorithms.methods.marginal import Marginal
from fairbench.components.algorithms.methods.normal_nll import NormalNLL
from fairbench.components.algorithms.methods.random import Random
from fairbench.components.algorithms.methods.thresholded import Thresholded
from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import read_predictions
from tests.conformance import grid

BINARY, REGRESSION, CLASSES = Task.BINARY, Task.REGRESSION, Task.MULTICLASS
VOTES = [Ensemble(reading=name) for name in ("majority", "sign_test", "disagreement")]
DRAWN = grid._component("method", "bayes_by_backprop")
OURS = [NormalNLL(), NormalNLL("beta_nll"), NormalNLL("faithful_nll"), ConstantSD()]
NAMES = ("normal_nll", "beta_nll", "faithful_nll")
REFERENCES = [NormalNLL(f"{name}_reference") for name in NAMES]


def read(method, raw, task=BINARY, seed=0):
    """Return a reading, checked as the pipeline checks it."""
    raw = {name: np.asarray(values, float) for name, values in raw.items()}
    columns = method.read(raw, task, np.random.default_rng(seed))
    return read_predictions(
        columns, task, "test", keep_invalid=method.capabilities.keep_invalid,
        classes=raw["score"].shape[-1] if task is CLASSES else 0,
    )  # fmt: skip


def every_vote(k):
    """Return scores of k members on k + 1 rows: row i has i votes for 1."""
    return np.where(np.arange(k) < np.arange(k + 1)[:, None], 0.9, 0.2)


def random_members(n=60, k=7):
    return np.random.default_rng(0).random((n, k))


TWO = {"score": [[0.25, 0.5, 0.25], [0.4, 0.4, 0.2]]}
SETS = {"score": [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]], "radius": [[0.7], [0.5]]}
RADII = {"mean": [10], "radius": [[1.0, np.inf]], "group_radius": [[2.0, 3.0]]}
RADII["overlapping_radius"] = [[1.5, 4.0]]
LABELS = {"score": [0.1, 0.5], "radius": [[0.2], [0.6]], "group_radius": [[0.05], [0.4]]}
NORMAL = {"prediction": [1, 2], "mean": [1, 2], "sd": [0.5, 3], "uncertainty": [0.5, 3]}


def conformal(*levels, **options):
    return Conformal(levels=levels or (0.5, 0.9), **options)


# Method, raw outputs, task, and columns by hand; a tie is label 0, or the first class.
BY_HAND = [
    (Baseline(), {"score": [0.1, 0.5, np.nextafter(0.5, 1)]}, BINARY, {"prediction": [0, 0, 1]}),
    (Baseline(), {"mean": [-1.5, 7]}, REGRESSION, {"prediction": [-1.5, 7], "mean": [-1.5, 7]}),
    (Baseline(), {"prediction": [1, 0]}, BINARY, {"prediction": [1, 0]}),
    (Baseline(), TWO, CLASSES, {"prediction": [1, 0], "score_1": [0.5, 0.4]}),
    (Thresholded(0.3), {"score": [0.1, 0.3, 0.5, 0.9]}, BINARY, {"prediction": [0, 0, 1, 1]}),
    (Thresholded(0.8), {"score": [0.1, 0.3, 0.5, 0.9]}, BINARY, {"prediction": [0, 0, 0, 1]}),
    (BinomialNLL(), {"score": [[0.2, 0.3, 0.5]]}, CLASSES, {"uncertainty": [0.31**0.5]}),
    *((BinomialNLL(), {"score": [0, 0.2, 0.5, 0.8, 1]}, BINARY, {name: [0, 0.4, 0.5, 0.4, 0]})
      for name in ("sd", "uncertainty")),
    (Ensemble(), {"score": [[0.25, 0.75], [0.25, 0.76]]}, BINARY, {"prediction": [0, 1]}),
    # The label is the majority's, and its uncertainty that of the mean.
    (VOTES[0], {"score": [[0.45, 0.45, 0.9]]}, BINARY,
     {"prediction": [0], "uncertainty": [np.std([0.45, 0.45, 0.9])]}),
    *((method, {"prediction": [[0, 1, 1]]}, BINARY, {"prediction": [1], "uncertainty": [value]})
      for method, value in zip(VOTES[1:], (1, 2 / 3), strict=True)),
    (Ensemble(), {"score": [[0.25, 0.75, 0.8]]}, BINARY,
     {"prediction": [1], "score": [0.6], "uncertainty": [np.sqrt(0.185 / 3)]}),
    (Ensemble(), {"mean": [[1, 3], [5, 7], [5, 5]]}, REGRESSION,
     {"prediction": [2, 6, 5], "mean": [2, 6, 5], "uncertainty": [1, 1, 0]}),
    (Ensemble(), {"mean": [[1, 5]]}, REGRESSION, {"uncertainty": [2], "epistemic": [4]}),
    *((method, {"score": [[0.5, 0.5, 0.9], [0.5, 0.9, 0.9]]}, BINARY, {"prediction": [0, 1]})
      for method in VOTES),
    *((method, {"score": every_vote(4)}, BINARY, {"prediction": [0, 0, 0, 1, 1]})
      for method in VOTES),
    *((method, {"mean": [1, 2], "sd": [0.5, 3]}, REGRESSION, NORMAL)
      for method in (*OURS, *REFERENCES, Marginal())),
    *((method, {"mean": [1, 2], "sd": [-0.5, 0]}, REGRESSION, {"sd": [-0.5, 0]})
      for method in REFERENCES),
    (Marginal(), {"score": [0.2, 0.2]}, BINARY, {"prediction": [0, 0], "sd": [0.4, 0.4]}),
    (DeepEnsemble(), {"mean": np.ones((1, 4)), "sd": np.full((1, 4), 0.3)}, REGRESSION,
     {"epistemic": [0], "sd": [0.3]}),
    (conformal(), RADII, REGRESSION, {"mean": [10], "lower_50": [9], "upper_50": [11],
                                      "lower_90": [-np.inf], "upper_90": [np.inf]}),
    (conformal(guarantee="group"), RADII, REGRESSION, {"lower_90": [7], "upper_90": [13]}),
    (conformal(guarantee="overlapping"), RADII, REGRESSION, {"lower_90": [6], "upper_90": [14]}),
    (conformal(guarantee="group", scaled=True), {**RADII, "sd": [0.5]}, REGRESSION,
     {"lower_50": [9], "upper_50": [11], "uncertainty": [0.5]}),
    (conformal(0.9), LABELS, BINARY, {"set_0_90": [1, 1], "set_1_90": [0, 1]}),
    (conformal(0.9, guarantee="group"), LABELS, BINARY, {"set_0_90": [0, 0], "set_1_90": [0, 0]}),
    (conformal(0.9), SETS, CLASSES, {"prediction": [0, 2], "set_0_90": [1, 0],
                                     "set_1_90": [0, 0], "set_2_90": [0, 0]}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "raw", "task", "expected"), BY_HAND)
def test_a_reading_by_hand(method, raw, task, expected):
    table = read(method, raw, task)
    for name, values in expected.items():
        np.testing.assert_allclose(table[name], values, atol=1e-12, err_msg=name)


def test_losses_of_the_fitters_are_those_of_the_names():
    for method, name in zip([*OURS[:3], *REFERENCES], NAMES * 2, strict=True):
        assert method.fitter.loss(REGRESSION).name.removesuffix("_reference") == name
        assert method.fitter.loss(REGRESSION).name == method.loss
        assert method.capabilities.tasks == {REGRESSION}
    assert ConstantSD().fitter.loss(REGRESSION).name == "squared_error"
    assert NormalNLL("beta_nll", 0.25).fitter.loss(REGRESSION).beta == 0.25
    scaled = Conformal(scaled=True).fitter
    assert (scaled.loss(REGRESSION).name, scaled.loss(BINARY).name) == ("normal_nll", "binomial")


@pytest.mark.parametrize(("raw", "task"), [("score", BINARY), ("mean", REGRESSION)])
def test_random_uncertainty_is_uniform_up_to_a_half_and_follows_its_generator(raw, task):
    values = np.full(4000, 0.7)
    table, again, other = (read(Random(), {raw: values}, task, seed) for seed in (0, 0, 1))
    expected = read(Baseline(), {raw: values}, task)
    assert table[expected.columns].equals(expected)
    uncertainty = table["uncertainty"]
    assert uncertainty.between(0, 0.5).all()
    assert uncertainty.mean() == pytest.approx(0.25, abs=0.01)
    assert uncertainty.std() == pytest.approx(0.5 / np.sqrt(12), abs=0.01)
    assert uncertainty.equals(again["uncertainty"])
    assert not uncertainty.equals(other["uncertainty"])


@pytest.mark.parametrize("method", [Ensemble(), *VOTES, DeepEnsemble(), DRAWN], ids=str)
def test_every_reading_of_members_probabilities_decomposes_the_labels_variance(method):
    members = random_members()
    table = read(method, {"score": members})
    mean = members.mean(axis=1)
    np.testing.assert_allclose(table["epistemic"], 2 * members.var(axis=1))
    np.testing.assert_allclose(table["aleatoric"] + table["epistemic"], 2 * mean * (1 - mean))
    if isinstance(method, Ensemble):
        assert not {"aleatoric", "epistemic"} & set(read(method, {"prediction": members > 0.5}))
    if "sd" in table:
        np.testing.assert_allclose(table["sd"] ** 2, mean * (1 - mean))


def test_an_ensembles_variance_is_the_sum_of_its_parts_and_that_of_the_mixture():
    draw = np.random.default_rng(0)
    means, sds = draw.normal(size=(3, 5)), draw.uniform(0.5, 2, (3, 5))
    table = read(DeepEnsemble(), {"mean": means, "sd": sds}, REGRESSION)
    np.testing.assert_allclose(table["mean"], means.mean(axis=1))
    np.testing.assert_allclose(table["sd"] ** 2, table["aleatoric"] + table["epistemic"])
    np.testing.assert_allclose(table["aleatoric"], (sds**2).mean(axis=1))
    np.testing.assert_allclose(table["epistemic"], means.var(axis=1))


@pytest.mark.parametrize("k", [1, 2, 9, 10, 31])
def test_selective_ensemble_gives_the_p_value_of_a_sign_test(k):
    table = read(Ensemble(reading="sign_test"), {"score": every_vote(k)})
    expected = [binomtest(ones, k, 0.5).pvalue for ones in range(k + 1)]
    np.testing.assert_allclose(table["uncertainty"], expected, rtol=1e-12)


def test_readings_of_the_same_models_share_their_fits():
    for reading in ("mean", "majority", "sign_test", "disagreement"):
        assert Ensemble(5, reading).fitter == Ensemble(5).fitter
    for guarantee in ("group", "overlapping"):
        assert Conformal().fitter == Conformal(guarantee=guarantee).fitter
    assert Thresholded(0.8).fitter == Baseline().fitter


# --- of several classes: (n, M, C) members


def dirichlet(n=40, m=7, c=4):
    return np.random.default_rng(0).dirichlet(np.ones(c), (n, m))


def test_votes_are_read_as_a_loop_over_pairs_and_a_sign_test_of_the_two_most_voted():
    score = dirichlet()
    pairs = read(Ensemble(members=7, reading="disagreement"), {"score": score}, CLASSES)
    signs = read(Ensemble(members=7, reading="sign_test"), {"score": score}, CLASSES)
    for i, votes in enumerate(score.argmax(axis=2)):
        differ = np.mean([votes[a] != votes[b] for a in range(7) for b in range(7) if a != b])
        assert pairs["uncertainty"][i] == pytest.approx(differ)
        second, first = np.sort(np.bincount(votes, minlength=4))[-2:]
        p_value = binomtest(int(first), int(first + second)).pvalue
        assert signs["uncertainty"][i] == pytest.approx(p_value)
        assert signs["prediction"][i] == np.bincount(votes, minlength=4).argmax()


@pytest.mark.parametrize("method", [Ensemble(), DeepEnsemble()], ids=["ensemble", "deep"])
def test_parts_of_the_entropy_are_scipys(method):
    score = dirichlet()
    table, mean = read(method, {"score": score}, CLASSES), score.mean(axis=1)
    aleatoric = entropy(score, axis=2).mean(axis=1)
    np.testing.assert_allclose(table["entropy_aleatoric"], aleatoric)
    np.testing.assert_allclose(table["entropy_epistemic"], entropy(mean, axis=1) - aleatoric)
    total = table["aleatoric"] + table["epistemic"]
    np.testing.assert_allclose(total, (mean * (1 - mean)).sum(axis=1))


@pytest.mark.parametrize("reading", ["mean", "majority", "sign_test", "disagreement"])
def test_two_classes_are_read_as_a_label(reading):
    p = random_members(50)
    method = Ensemble(members=7, reading=reading)
    label = method.read({"score": p}, BINARY, np.random.default_rng(0))
    two = method.read({"score": np.stack([1 - p, p], -1)}, CLASSES, None)
    np.testing.assert_array_equal(two["prediction"], label["prediction"])
    np.testing.assert_allclose(two["uncertainty"], label["uncertainty"], atol=1e-12)
