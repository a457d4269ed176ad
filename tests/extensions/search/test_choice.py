"""The fairest of many runs over several hold-outs: what runs share is not counted as luck."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench_search.choice import (
    Shared,
    SharedRows,
    _estimates,
    choose_among,
    minimised_metric,
)

PEOPLE, SPLITS = 400, 10


def rows(runs, own, seed=0):
    """Return hold-outs in which every run makes errors that all make, or errors of its own."""
    rng = np.random.default_rng(seed)
    label, group = rng.integers(0, 2, PEOPLE), rng.integers(0, 2, PEOPLE)
    tested = [np.sort(rng.permutation(PEOPLE)[: PEOPLE // 5]) for _ in range(SPLITS)]
    row = np.concatenate(tested)
    repeat = np.repeat(np.arange(SPLITS), PEOPLE // 5)
    # Fits move all rows of a split together.
    common = 0.3 + 0.05 * rng.standard_normal((SPLITS, 1))[repeat]
    alone = 0.3 + 0.05 * rng.standard_normal((SPLITS, runs))[repeat]
    wrong = rng.random((len(row), 1)) < common
    wrong = rng.random((len(row), runs)) < alone if own else np.repeat(wrong, runs, axis=1)
    predicted = np.where(wrong, 1 - label[row][:, None], label[row][:, None])
    return SharedRows(
        repeat, np.zeros_like(repeat), row, label[row], group[row], predicted, ("a", "b"), 0.2
    )


def choice(shared, metric):
    return choose_among(Shared((), shared, None, []), minimised_metric(metric), ())


@pytest.mark.parametrize("metric", ["error_rate", "statistical_parity"])
def test_runs_that_predict_the_same_need_no_correction_and_others_do(metric):
    def ratio(own):
        judged = choice(rows(20, own), metric).judged[0]
        return np.diff(judged["corrected"])[0] / np.diff(judged["naive"])[0]

    assert ratio(own=False) == pytest.approx(1, abs=0.03)
    assert ratio(own=True) > 1.01


def test_a_choice_has_the_same_bits_again():
    first, second = (choice(rows(5, own=True), "statistical_parity") for _ in range(2))
    assert first.judged == second.judged


def with_copy(shared, of):
    """Return the same runs and one more, which predicts what one of them does."""
    columns = [*range(shared.prediction.shape[1]), of]
    return replace(shared, prediction=shared.prediction[:, columns])


def test_a_run_that_predicts_the_same_as_the_chosen_one_ties_with_it():
    shared = rows(5, own=True)
    alone = choice(shared, "statistical_parity")
    both = choice(with_copy(shared, alone.chosen_index), "statistical_parity")
    assert (
        both.chosen_index == alone.chosen_index
        and both.objectives[-1] == both.objectives[both.chosen_index]
    )
    np.testing.assert_array_equal(np.flatnonzero(both.same), [both.chosen_index, 5])
    assert both.near[-1] and not both.larger[-1]
    assert both.judged[0]["value"] == alone.judged[0]["value"]
    assert both.judged[0]["naive"] == alone.judged[0]["naive"]


def test_runs_that_predict_the_same_are_told_apart_alike():
    """Of rates that show no error in these rows, each run's is drawn: the same for equal runs."""
    shared = rows(4, own=True)
    shared.prediction[:, :2] = [0, 1]  # rates of 0 and of 1
    for of in range(4):
        twin = with_copy(shared, of)
        result = choice(twin, "equalized_odds")
        assert result.near[-1] == result.near[of] and result.larger[-1] == result.larger[of]
        estimates = _estimates(twin, minimised_metric("equalized_odds"), (), [])
        noise = estimates.candidates.part_noise
        np.testing.assert_array_equal(noise[:, of], noise[:, -1])
