"""Readings of raw outputs: closed forms, brute force over pairs, and ties."""

import itertools

import numpy as np
import pytest
from scipy.stats import binomtest

from fairbench.components.algorithms.methods.baseline import Baseline
from fairbench.components.algorithms.methods.binomial_nll import BinomialNLL
from fairbench.components.algorithms.methods.ensemble import Ensemble
from fairbench.components.algorithms.methods.random import Random
from fairbench.components.algorithms.methods.thresholded import Thresholded
from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import read_predictions

BINARY, REGRESSION = Task.BINARY, Task.REGRESSION
METHODS = [
    Baseline(),
    BinomialNLL(),
    Ensemble(),
    Random(),
    Ensemble(reading="sign_test"),
    Ensemble(reading="disagreement"),
]
VOTES = [Ensemble(reading=name) for name in ("majority", "sign_test", "disagreement")]


def read(method, raw, task=BINARY, seed=0):
    """Return a reading, checked as the pipeline checks it."""
    raw = {name: np.asarray(values, float) for name, values in raw.items()}
    columns = method.read(raw, task, np.random.default_rng(seed))
    return read_predictions(columns, task, type(method).__name__)


def every_vote(k):
    """Return scores of k members on k + 1 rows: row i has i votes for 1."""
    return np.where(np.arange(k) < np.arange(k + 1)[:, None], 0.9, 0.2)


def random_members(n=60, k=7):
    return np.random.default_rng(0).random((n, k))


# --- single models


def test_baseline_labels_by_a_half_and_a_tie_is_zero():
    score = [0.1, 0.5, np.nextafter(0.5, 1), 0.9]
    table = read(Baseline(), {"score": score})
    assert list(table.columns) == ["prediction", "score"]
    assert table["prediction"].tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal(table["score"], score)


def test_a_threshold_is_the_same_for_everyone_and_a_half_is_the_baseline():
    raw = {"score": [0.1, 0.3, 0.5, 0.7, 0.9]}
    assert list(read(Thresholded(0.3), raw)["prediction"]) == [0, 0, 1, 1, 1]
    assert list(read(Thresholded(0.8), raw)["prediction"]) == [0, 0, 0, 0, 1]
    assert read(Thresholded(), raw).equals(read(Baseline(), raw))
    assert Thresholded(0.8).fitter == Baseline().fitter  # another threshold fits nothing again
    for threshold in (0.0, 1.0, 1.5):
        with pytest.raises(UserError, match=r"method.threshold is .* between 0 and 1"):
            Thresholded(threshold)


def test_baseline_passes_on_means_and_bare_predictions():
    table = read(Baseline(), {"mean": [-1.5, 7]}, REGRESSION)
    assert table.to_dict("list") == {"prediction": [-1.5, 7], "mean": [-1.5, 7]}
    assert read(Baseline(), {"prediction": [1, 0]}).to_dict("list") == {"prediction": [1, 0]}


def test_binomial_nll_claims_the_sd_of_a_label_drawn_with_its_probability():
    score = np.array([0, 0.2, 0.5, 0.8, 1])
    table = read(BinomialNLL(), {"score": score})
    np.testing.assert_allclose(table["sd"], [0, 0.4, 0.5, 0.4, 0], atol=1e-12)
    np.testing.assert_array_equal(table["uncertainty"], table["sd"])
    assert table["prediction"].tolist() == [0, 0, 0, 1, 1]
    labels = np.random.default_rng(0).random((20_000, 5)) < score
    np.testing.assert_allclose(labels.std(axis=0), table["sd"], atol=0.01)


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


# --- bags


def test_ensemble_is_the_mean_and_the_population_sd_of_its_members():
    members = random_members()
    table = read(Ensemble(), {"score": members})
    np.testing.assert_allclose(table["score"], members.sum(axis=1) / 7)
    variance = (members**2).mean(axis=1) - members.mean(axis=1) ** 2
    np.testing.assert_allclose(table["uncertainty"], np.sqrt(variance))
    np.testing.assert_array_equal(table["prediction"], members.mean(axis=1) > 0.5)


def test_ensemble_of_a_regression_predicts_the_mean():
    members = np.array([[1.0, 3.0], [5.0, 5.0]])
    table = read(Ensemble(), {"mean": members}, REGRESSION)
    assert table.to_dict("list") == {
        "prediction": [2, 5],
        "mean": [2, 5],
        "uncertainty": [1, 0],
        "epistemic": [1, 0],
    }


@pytest.mark.parametrize("method", [Ensemble(), *VOTES], ids=str)
def test_every_reading_of_members_probabilities_decomposes_the_labels_variance(method):
    members = random_members()
    table = read(method, {"score": members})
    mean = members.mean(axis=1)
    np.testing.assert_allclose(table["epistemic"], 2 * members.var(axis=1))
    np.testing.assert_allclose(table["aleatoric"] + table["epistemic"], 2 * mean * (1 - mean))
    labels = read(method, {"prediction": members > 0.5})
    assert not {"aleatoric", "epistemic"} & set(labels)


def test_a_mean_of_exactly_a_half_is_label_zero():
    table = read(Ensemble(), {"score": [[0.25, 0.75], [0.25, 0.76]]})
    assert table["prediction"].tolist() == [0, 1]


@pytest.mark.parametrize("k", [1, 2, 9, 10, 31])
def test_selective_ensemble_gives_the_p_value_of_a_sign_test(k):
    table = read(Ensemble(reading="sign_test"), {"score": every_vote(k)})
    expected = [binomtest(ones, k, 0.5).pvalue for ones in range(k + 1)]
    np.testing.assert_allclose(table["uncertainty"], expected, rtol=1e-12)


@pytest.mark.parametrize("k", [2, 9, 10])
def test_self_consistency_is_the_share_of_pairs_that_disagree(k):
    votes = every_vote(k)
    table = read(Ensemble(reading="disagreement"), {"score": votes})
    pairs = itertools.combinations(range(k), 2)
    disagree = np.mean([(votes[:, i] > 0.5) != (votes[:, j] > 0.5) for i, j in pairs], axis=0)
    np.testing.assert_allclose(table["uncertainty"], disagree, atol=1e-12)


@pytest.mark.parametrize("method", VOTES, ids=str)
def test_the_majority_decides_and_a_tie_is_zero(method):
    even, odd = (read(method, {"score": every_vote(k)})["prediction"] for k in (4, 5))
    assert even.tolist() == [0, 0, 0, 1, 1]
    assert odd.tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("method", VOTES, ids=str)
def test_a_members_score_of_exactly_a_half_is_a_vote_for_zero(method):
    raw = {"score": [[0.5, 0.5, 0.9], [0.5, 0.9, 0.9]]}
    assert read(method, raw)["prediction"].tolist() == [0, 1]


@pytest.mark.parametrize("method", VOTES[1:], ids=str)
def test_votes_come_from_bare_predictions_too(method):
    members = random_members()
    labels = (members > 0.5).astype(float)
    of_labels, of_scores = read(method, {"prediction": labels}), read(method, {"score": members})
    assert of_labels.equals(of_scores[of_labels.columns])


def test_the_majoritys_label_has_the_uncertainty_of_the_mean():
    raw = {"score": [[0.45, 0.45, 0.9]]}
    voted, mean = read(Ensemble(reading="majority"), raw), read(Ensemble(), raw)
    assert (voted["prediction"].item(), mean["prediction"].item()) == (0, 1)
    assert voted["uncertainty"].item() == mean["uncertainty"].item()
    assert "score" not in voted


# --- what all have in common


def test_methods_of_labels_are_for_binary_targets():
    of_values = [method for method in METHODS if REGRESSION in method.capabilities.tasks]
    assert of_values == [Baseline(), Ensemble(), Random()]


@pytest.mark.parametrize("reading", ["mean", "majority", "sign_test", "disagreement"])
def test_readings_share_the_bag_of_their_size(reading):
    assert Ensemble(5, reading).fitter == Ensemble(5).fitter
    assert Ensemble(5, reading).fitter.members == 5


def test_self_consistency_needs_a_pair():
    with pytest.raises(UserError, match=r"^method\.members is 1; "):
        Ensemble(1, "disagreement")
