"""What is said of a candidate holds although it was chosen, and what tuning gains."""

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from fairbench.metrics.registry import named
from fairbench_search import gains
from fairbench_search.choice import Stored
from fairbench_search.corrected import (
    Candidates,
    choose,
    correction,
    joint_noise,
    not_told_from_best,
)

ONE = np.ones((1, 1))


class Population:
    """Candidates with one signed difference and one error each, normal with sd 1."""

    def __init__(self, gaps, errors=0.0, *, rho=0.0, cross=0.0, bound=np.inf, draws=2000, seed=0):
        self.gaps, self.rho, self.cross = np.asarray(gaps, float), rho, cross
        self.errors = np.broadcast_to(np.asarray(errors, float), self.gaps.shape)
        self.bounds, self.rng = np.array([bound]), np.random.default_rng(seed)
        self.noise = self.drawn(draws)

    def drawn(self, count):
        shared = self.rng.standard_normal((count, 1, 2))
        own = self.rng.standard_normal((count, len(self.gaps), 2))
        noise = np.sqrt(self.rho) * shared + np.sqrt(1 - self.rho) * own
        noise[..., 0] = self.cross * noise[..., 1] + np.sqrt(1 - self.cross**2) * noise[..., 0]
        return noise

    def candidates(self, noise=0.0):
        noise = noise + np.zeros((len(self.gaps), 2))
        gaps, errors = self.noise[..., :1], self.noise[..., 1:]
        parts, values = self.gaps + noise[:, 0], self.errors + noise[:, 1]
        return Candidates(parts[:, None], gaps, ONE, values[:, None], errors, self.bounds)


def critical(tails):
    return tuple(-special.ndtri(tails))


def correction_of(population, quantity=0):
    """Return the critical values of the gap, or of the error, where nothing was drawn."""
    return critical(correction(population.candidates())[quantity])


def test_of_independent_candidates_that_are_alike_the_luckiest_end_takes_what_the_other_leaves():
    for count in (10, 50):
        population = Population(np.full(count, 9.0), draws=8000)
        lower, upper = correction_of(population)
        # The chosen one is as lucky as the luckiest, and never unlucky.
        assert upper == pytest.approx(stats.norm.isf(1 - (1 - 0.045) ** (1 / count)), abs=0.1)
        assert stats.norm.isf(0.05) < lower < 1.8
        assert lower + upper < (1.96 + stats.norm.isf(0.0245 / count)) * 0.95


@pytest.mark.parametrize("bound", [np.inf, 0.0])
def test_models_that_err_alike_need_no_correction(bound):
    alike = Population(np.full(50, 9.0), rho=1.0, bound=bound, draws=4000)
    assert sum(correction_of(alike)) == pytest.approx(3.92, rel=0.03)
    populations = (Population(np.full(50, 9.0), rho=rho, draws=4000) for rho in (0.0, 0.7, 0.95))
    widths = [sum(correction_of(population)) for population in populations]
    assert widths == sorted(widths, reverse=True)


def test_small_gaps_cannot_be_much_smaller_than_they_are():
    uppers = [correction_of(Population(np.full(50, at), draws=4000))[1] for at in (0.0, 2.0, 9.0)]
    assert uppers[0] < 2.0 < uppers[1] < uppers[2]


def test_what_did_not_choose_needs_no_correction_unless_it_is_correlated():
    free = Population(np.full(10, 9.0), draws=4000)
    made = correction(free.candidates(free.drawn(1)[0]))
    assert sum(critical(made[1])) < 1.05 * 3.92
    tied = Population(np.full(10, 9.0), cross=-0.95, draws=4000)
    lower, upper = critical(correction(tied.candidates(tied.drawn(1)[0]))[1])
    assert lower > 2.3 > 2.1 > upper


def test_a_bound_that_errors_lie_around_corrects_the_error():
    lower, upper = correction_of(Population(np.full(10, 9.0), bound=0.0), 1)
    assert upper > 2.2 > 1.9 > lower


def test_a_clear_winner_is_hardly_corrected():
    population = Population([1.0, *[40.0] * 9])
    made = correction(population.candidates(population.drawn(1)[0]))
    assert made[0] == pytest.approx((0.025, 0.025), rel=0.03)
    assert not_told_from_best(population.candidates()).sum() == 1


def test_candidates_out_of_bounds_are_not_chosen():
    population = Population([1.0, 5.0], [9.0, 0.0], bound=1.0)
    assert choose(population.candidates()) == 1
    none = Population([1.0], 9.0, bound=1.0).candidates()
    assert choose(none) is None
    with pytest.raises(ValueError, match="no candidate is within"):
        correction(none)


def test_several_rates_of_several_groups_are_folded():
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((2000, 6, 3))
    contrasts = np.array([[1.0, -1, 0], [1, 0, -1], [0, 1, -1]])
    parts = np.array([[0.0, 4, 8]] * 6) + rng.standard_normal((6, 3))
    values = np.zeros((6, 1)), np.ones((2000, 6, 1)), np.array([np.inf])
    candidates = Candidates(parts, noise, contrasts, *values)
    np.testing.assert_allclose(candidates.objectives, np.ptp(parts, axis=1))
    np.testing.assert_allclose(candidates.errors, np.sqrt(2), rtol=0.06)
    upper = -special.ndtri(correction(candidates)[0][1])
    assert upper == pytest.approx(stats.norm.isf(0.045 / 6), abs=0.2)


@pytest.mark.thorough
@pytest.mark.parametrize("bound", [np.inf, 4.0])
def test_the_best_is_among_those_not_told_from_it(bound):
    gaps, errors = np.linspace(4, 10, 12), np.resize([0.0, 9.0], 12)
    population = Population(gaps, errors, rho=0.8, bound=bound)
    best = 0 if np.isinf(bound) else int(np.flatnonzero(errors <= bound)[0])
    kept = [not_told_from_best(population.candidates(gaps)) for gaps in population.drawn(150)]
    assert np.mean(kept, axis=0)[best] > 0.93
    assert np.sum(kept) < 150 * 8


def test_a_larger_gap_may_be_best_where_smaller_ones_may_miss_the_bound():
    population = Population([1.0, 2.0, 30.0, 40.0], [3.9, 3.9, 0.0, 0.0], bound=4.0)
    candidates = population.candidates()
    assert not_told_from_best(candidates).tolist() == [True, True, True, False]
    free = Population([1.0, 2.0, 30.0, 40.0]).candidates()
    assert not_told_from_best(free).tolist() == [True, True, False, False]


def test_the_same_predictions_are_never_told_apart_and_correlation_tells_others_apart():
    alike = Population([5.0, 5.0, 7.0], rho=1.0)
    assert not_told_from_best(alike.candidates()).tolist() == [True, True, False]
    apart = Population([5.0, 5.0, 7.0])
    assert not_told_from_best(apart.candidates()).all()


@pytest.mark.parametrize("splits", [2, 3])
@pytest.mark.parametrize("step", [0.0, 0.2])
def test_the_best_of_few_splits_is_rarely_left_out_and_what_is_far_behind_always(splits, step):
    """Errors that few splits show are often far too small."""
    truth, rng = np.array([0, step, 2 * step, 1000]) + 10, np.random.default_rng(0)
    nothing, metric = np.zeros((2, 4, 1)), named("mae", "regression")

    def kept():
        values = truth + rng.standard_normal((splits, 4))
        candidates = Stored((), (metric,), (), values[..., None], nothing, 1e-9, []).candidates
        return not_told_from_best(candidates)

    left_out = 1 - np.mean([kept() for _ in range(300)], axis=0)
    assert left_out[0] < 0.05 and left_out[3] > 0.95


@pytest.mark.parametrize("rows", [3, 50])
def test_joint_noise_has_the_covariance_of_its_rows(rows):
    factor = np.random.default_rng(0).standard_normal((rows, 2, 2))
    drawn = joint_noise(factor, draws=20_000, generator=np.random.default_rng(1)).reshape(-1, 4)
    flat = factor.reshape(rows, 4)
    np.testing.assert_allclose(np.cov(drawn.T), flat.T @ flat, atol=0.06 * rows)


# What further search may gain: the bound, and what is chosen.


def test_the_bound_is_the_one_of_the_paper_and_falls():
    tried = np.arange(2, 400)
    bound = gains.chance_of_better(tried, risk=0.05)
    expected = 1 - ((tried - 1) / 0.05 + 1) ** (-1 / (tried - 1))
    np.testing.assert_allclose(bound, expected)
    assert (np.diff(bound) < 0).all()
    assert gains.chance_of_better(1, risk=0.05) == pytest.approx(1 - np.exp(-20))


def test_the_gain_of_one_more_is_gap_times_chance_and_of_many_at_most_the_gap():
    assert gains.further_gain(0.2, 0.1) == pytest.approx(0.02)
    assert gains.further_gain(0.2, 0.1, more=2) == pytest.approx(0.2 * 0.19)
    assert gains.further_gain(0.2, 0.1, more=10_000) == pytest.approx(0.2)


@pytest.mark.parametrize(("gap", "tried", "enough"), [(0, 0, False), (0, 1, True), (0.5, 1, False)])
def test_nothing_is_enough_before_a_draw_and_a_gap_of_nothing_is_after_one(gap, tried, enough):
    assert gains.is_enough(gap, tried, worth=0.01, risk=0.05) == enough


@pytest.mark.parametrize(
    ("gaps", "errors", "chosen"),
    [
        ([0.2, 0.1, 0.05], [0.3, 0.3, 0.3], 2),
        ([0.2, 0.1, 0.05], [0.3, 0.31, 0.32], 1),  # the last one errs too often
        ([0.2, 0.2, 0.3], [0.3, 0.1, 0.1], 0),  # none has a smaller gap
        ([0.2, 0.1, 0.1], [0.3, 0.3, 0.29], 2),  # of equal gaps, the less error
        ([0.2, np.nan, 0.1], [0.3, np.nan, 0.3], 2),  # the second failed
        ([0.2, np.nan], [0.3, np.nan], 0),
        ([0.2], [0.3], 0),
    ],
)
def test_the_smallest_gap_whose_error_is_allowed_is_chosen(gaps, errors, chosen):
    assert gains.least_gap(gaps, errors, within=0.01) == chosen


PLAIN = 0.025, 0.025
FOLDED = np.array([[1.0, -1.0], [-1.0, 1.0]])


def rate(wrong, sides=ONE):
    """Return the error rate of rows, (n,) of 0 and 1."""
    value = wrong.mean()
    return gains.GoalEstimate(
        np.array([value]), (wrong - value)[:, None] / len(wrong), np.zeros(1), sides, 1.0
    )


def gap(selected, group):
    """Return the difference of selection rates of two groups, of either sign."""
    parts, influence = [], []
    for g in (0, 1):
        mask = group == g
        parts.append(selected[mask].mean())
        influence.append(np.where(mask, selected - parts[-1], 0) / mask.sum())
    least = np.array([1 / (group == g).sum() ** 2 for g in (0, 1)])
    return gains.GoalEstimate(np.array(parts), np.stack(influence, axis=1), least, FOLDED, 1.0)


def judging_rows(rows, each=1):
    """Return rows, so many of each person."""
    return pd.DataFrame({"fold": 0, "unit": np.arange(rows) // each})


def test_the_interval_of_a_gain_is_that_of_the_paired_difference():
    rng = np.random.default_rng(0)
    one, two = (rng.random((2, 400)) < [[0.3], [0.25]]).astype(float)
    result = gains.gain_limits(rate(one), rate(two), judging_rows(400), PLAIN)
    difference = one - two
    expected = stats.norm.interval(0.95, difference.mean(), difference.std() / 20)
    assert result == pytest.approx(expected)
    fresh = gains.gain_limits(rate(one), rate(two), judging_rows(400), PLAIN, fresh=100)
    expected = stats.norm.interval(0.95, difference.mean(), difference.std() * np.sqrt(5) / 20)
    assert fresh == pytest.approx(expected)


def test_rows_of_one_person_count_as_one():
    wrong = np.repeat(np.random.default_rng(0).random(100) < 0.3, 4).astype(float)
    below, above = gains.value_limits(rate(wrong), judging_rows(400, each=4), PLAIN)
    error = wrong.std() / np.sqrt(100)
    assert (above - below) == pytest.approx(2 * 1.96 * error, rel=1e-3)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(("before", "after"), [(0.0, 0.0), (0.2, 0.02)])
def test_the_gain_in_a_gap_is_covered_where_its_sign_is_not_known(before, after, fresh):
    """Selections of two models that agree in most rows; the gap's sign may be either."""
    rng, rows, covered, group = np.random.default_rng(1), 400, [], np.arange(400) % 2

    def gaps_of_drawn():
        score, other = rng.random((2, rows))
        other = np.where(rng.random(rows) < 0.1, other, score)
        pairs = (score, before), (other, after)
        return (gap((draws < 0.4 + size * group).astype(float), group) for draws, size in pairs)

    for _ in range(150):
        one, two = gaps_of_drawn()
        many = {"fresh": rows} if fresh else {}
        low, high = gains.gain_limits(one, two, judging_rows(rows), PLAIN, **many)
        first, second = (drawn.value for drawn in gaps_of_drawn()) if fresh else (before, after)
        truth = first - second
        covered.append(low <= truth <= high)
    assert np.mean(covered) > 0.9


def tails_of(noise, fresh=0.0):
    """Return the critical values of the gain, of that on fresh rows and of the value of the best.

    Trials have one value; the noise is that of the default, and of each.
    """
    count = len(noise)
    tails = gains.chosen_tails(
        np.eye(count)[:, :1],
        noise=noise[:, None],
        unseen=np.zeros((count, 1)),
        fresh=np.full((count, 1), fresh),
        weights=np.ones(1),
    )
    return [critical(of) for of in tails[0]]


def test_the_promised_gain_of_the_luckiest_trial_reaches_further_down():
    """Of ten trials, what the default and all have in common is no luck."""
    noise = np.c_[np.eye(11)[:, 1:], np.full(11, 3.0)]
    lucky = pytest.approx(stats.norm.isf(1 - (1 - 0.045) ** (1 / 10)), abs=0.1)
    (below, above), (fresh, _), (_, upper) = tails_of(noise)
    assert below == fresh == lucky and 1.645 < above < 1.75 < 2 < upper < 2.4
    (below, _), fresh, (_, upper) = tails_of(noise * (np.arange(11) < 10), fresh=1.0)
    assert below == lucky and upper == lucky
    assert 2.3 < fresh[0] < 2.55 < below
    assert np.ravel(tails_of(noise[:2])) == pytest.approx(np.full(6, 1.96), abs=0.01)
