"""The best of many: what is said of the chosen candidate holds although it was chosen."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from fairbench.core.arrays import rng
from fairbench.inference.verdicts import (
    ALIKE,
    BETTER,
    OPEN,
    WORSE,
    Pairs,
    outperforms,
    posterior_draws,
    ranking,
    standings,
    student_draws,
)
from fairbench_search.corrected import (
    Candidates,
    choose,
    correction,
    joint_noise,
    larger_than,
    not_told_from_best,
)
from fairbench_search.gains import chance_of_better, further_gain, is_enough, least_gap
from tests.correlated import probability_better

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

    def candidates(self, noise):
        gaps, errors = self.noise[..., :1], self.noise[..., 1:]
        parts, values = self.gaps + noise[:, 0], self.errors + noise[:, 1]
        return Candidates(parts[:, None], gaps, ONE, values[:, None], errors, self.bounds)

    def missed(self, replications):
        """Return how often the gap and the error are missed, naively too, and relative widths."""
        result = []
        for noise in self.drawn(replications):
            candidates = self.candidates(noise)
            if (place := choose(candidates)) is None:
                continue
            both, _, _ = correction(candidates)
            row = []
            for gap, tails in zip((True, False), both, strict=True):
                value = candidates.objectives[place] if gap else candidates.values[place, 0]
                truth = abs(self.gaps[place]) if gap else self.errors[place]
                low, high = (-special.ndtri(tail) for tail in tails)
                row += [not -high <= value - truth <= low, abs(value - truth) > 1.96]
                row += [(low + high) / 3.92]
            result.append(row)
        return np.mean(result, axis=0)


def critical(tails):
    return tuple(-special.ndtri(tails))


def test_of_independent_candidates_that_are_alike_the_luckiest_end_takes_what_the_other_leaves():
    for count in (10, 50):
        population = Population(np.full(count, 9.0), draws=8000)
        lower, upper = critical(correction(population.candidates(np.zeros((count, 2))))[0][0])
        # The chosen one is as lucky as the luckiest, and never unlucky.
        assert upper == pytest.approx(stats.norm.isf(1 - (1 - 0.045) ** (1 / count)), abs=0.1)
        assert stats.norm.isf(0.05) < lower < 1.8
        assert lower + upper < (1.96 + stats.norm.isf(0.0245 / count)) * 0.95


@pytest.mark.parametrize("bound", [np.inf, 0.0])
def test_models_that_err_alike_need_no_correction(bound):
    population = Population(np.full(50, 9.0), rho=1.0, bound=bound, draws=4000)
    made = correction(population.candidates(np.zeros((50, 2))))
    assert sum(critical(made[0][0])) == pytest.approx(3.92, rel=0.03)
    widths = {
        rho: sum(critical(correction(population.candidates(np.zeros((50, 2))))[0][0]))
        for rho in (0.0, 0.7, 0.95)
        for population in [Population(np.full(50, 9.0), rho=rho, draws=4000)]
    }
    assert widths[0.0] > widths[0.7] > widths[0.95]


def test_small_gaps_cannot_be_much_smaller_than_they_are():
    def upper(size):
        population = Population(np.full(50, size), draws=4000)
        return critical(correction(population.candidates(np.zeros((50, 2))))[0][0])[1]

    assert upper(0.0) < 2.0 < upper(2.0) < upper(9.0)


def test_what_did_not_choose_needs_no_correction_unless_it_is_correlated():
    free = Population(np.full(10, 9.0), draws=4000)
    made = correction(free.candidates(free.drawn(1)[0]))
    assert sum(critical(made[0][1])) < 1.05 * 3.92
    tied = Population(np.full(10, 9.0), cross=-0.95, draws=4000)
    lower, upper = critical(correction(tied.candidates(tied.drawn(1)[0]))[0][1])
    assert lower > 2.3 > 2.1 > upper


def test_a_bound_that_errors_lie_around_corrects_the_error():
    population = Population(np.full(10, 9.0), bound=0.0)
    lower, upper = critical(correction(population.candidates(np.zeros((10, 2))))[0][1])
    assert upper > 2.2 > 1.9 > lower


def test_both_upper_ends_hold_at_once():
    population, missed = Population(np.full(10, 6.0), rho=0.5, cross=0.3, draws=1000), []
    for noise in population.drawn(300):
        candidates = population.candidates(noise)
        place = choose(candidates)
        missed.append(noise[place].min() < special.ndtri(correction(candidates)[1]))
    assert np.mean(missed) < 0.09


def test_a_clear_winner_is_hardly_corrected():
    population = Population([1.0, *[40.0] * 9])
    made = correction(population.candidates(population.drawn(1)[0]))
    assert made[2].tolist() == [True] + [False] * 9
    assert made[0][0] == pytest.approx((0.025, 0.025), rel=0.03)
    assert not_told_from_best(population.candidates(np.zeros((10, 2)))).sum() == 1


def test_nothing_is_corrected_where_nothing_is_chosen():
    population = Population([1.0], 9.0, bound=1.0)
    with pytest.raises(ValueError, match="no candidate is within"):
        correction(population.candidates(np.zeros((1, 2))))


def test_candidates_out_of_bounds_are_not_chosen():
    population = Population([1.0, 5.0], [9.0, 0.0], bound=1.0)
    assert choose(population.candidates(np.zeros((2, 2)))) == 1
    assert choose(Population([1.0], 9.0, bound=1.0).candidates(np.zeros((1, 2)))) is None


def test_several_rates_of_several_groups_are_folded():
    rng = np.random.default_rng(3)
    noise = rng.standard_normal((2000, 6, 3))
    contrasts = np.array([[1.0, -1, 0], [1, 0, -1], [0, 1, -1]])
    parts = np.array([[0.0, 4, 8]] * 6) + rng.standard_normal((6, 3))
    values = np.zeros((6, 1)), np.ones((2000, 6, 1)), np.array([np.inf])
    candidates = Candidates(parts, noise, contrasts, *values)
    np.testing.assert_allclose(candidates.objectives, np.ptp(parts, axis=1))
    np.testing.assert_allclose(candidates.errors, np.sqrt(2), rtol=0.06)
    upper = -special.ndtri(correction(candidates)[0][0][1])
    assert upper == pytest.approx(stats.norm.isf(0.045 / 6), abs=0.2)


@pytest.mark.parametrize(
    ("count", "rho", "widest"),
    [(10, 0.0, 1.15), pytest.param(10, 0.9, 1.1, marks=pytest.mark.thorough)],
)
def test_the_chosen_one_is_covered(count, rho, widest):
    missed, naive, width, of_error, _, error_width = Population(
        np.full(count, 6.0), rho=rho, draws=800
    ).missed(120)
    assert missed < 0.05
    assert of_error < 0.1
    assert width < widest
    assert error_width < 1.1
    assert naive > 0.1 or rho


POPULATIONS = {
    "equal": lambda count: np.full(count, 6.0),
    "zero": np.zeros,
    "small": lambda count: np.full(count, 2.5),
    "one best": lambda count: np.r_[2.0, np.full(count - 1, 8.0)],
    "spread": lambda count: np.linspace(2, 12, count),
    "either sign": lambda count: 6 * (-1.0) ** np.arange(count),
}


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize("name", POPULATIONS)
def test_the_chosen_one_is_covered_in_other_populations_and_within_a_bound(name, rho):
    for cross in (0.0, -0.7):
        missed, _, _, of_error, *_ = Population(
            POPULATIONS[name](20), rho=rho, cross=cross, bound=0.0, draws=1000
        ).missed(150)
        assert max(missed, of_error) < 0.11, cross  # by chance once in a thousand


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
    candidates = population.candidates(np.zeros((4, 2)))
    assert not_told_from_best(candidates).tolist() == [True, True, True, False]
    assert larger_than(candidates, choose(candidates)).tolist() == [False, False, True, True]
    free = Population([1.0, 2.0, 30.0, 40.0]).candidates(np.zeros((4, 2)))
    assert not_told_from_best(free).tolist() == [True, True, False, False]


def test_the_same_predictions_are_never_told_apart_and_correlation_tells_others_apart():
    alike = Population([5.0, 5.0, 7.0], rho=1.0)
    assert not_told_from_best(alike.candidates(np.zeros((3, 2)))).tolist() == [True, True, False]
    apart = Population([5.0, 5.0, 7.0])
    assert not_told_from_best(apart.candidates(np.zeros((3, 2)))).all()


@pytest.mark.parametrize("rows", [3, 50])
def test_joint_noise_has_the_covariance_of_its_rows(rows):
    factor = np.random.default_rng(0).standard_normal((rows, 2, 2))
    drawn = joint_noise(factor, draws=20_000, generator=np.random.default_rng(1)).reshape(-1, 4)
    flat = factor.reshape(rows, 4)
    np.testing.assert_allclose(np.cov(drawn.T), flat.T @ flat, atol=0.06 * rows)


# Rankings with ties.


def test_only_certain_differences_rank():
    outperforms = np.array([[0, 0.99, 0.97], [0, 0, 0.5], [0, 0.2, 0]])
    np.testing.assert_array_equal(ranking(outperforms), [1, 2, 2])
    np.testing.assert_array_equal(ranking(outperforms, certainty=0.5), [1, 2, 3])
    np.testing.assert_array_equal(ranking(outperforms, certainty=0.995), [1, 1, 1])


def test_diagonal_is_not_looked_at():
    np.testing.assert_array_equal(ranking(np.eye(3)), [1, 1, 1])


# Every pair: verdicts on both sides of a pair, and what outperforms by known values.

NAN = np.nan


def test_verdicts_are_of_the_event_that_is_certain_enough():
    better = np.array([[NAN, 0.95, 0.1], [0.0, NAN, 0.0], [0.3, 0.0, NAN]])
    equivalent = np.array([[NAN, 0.0, 0.1], [0.0, NAN, 0.99], [0.1, 0.99, NAN]])
    traded = np.zeros((3, 3))
    result = Pairs(better, equivalent, traded).verdicts(0.95)
    assert result[0, 1] == BETTER
    assert result[1, 0] == WORSE
    assert result[0, 2] == result[2, 0] == OPEN
    assert result[1, 2] == result[2, 1] == ALIKE
    assert (np.diag(result) == OPEN).all()
    assert Pairs(better * 0, equivalent * 0, traded + 1).verdicts(0.95)[0, 1] == OPEN


def test_known_values_outperform_beyond_the_rope_only():
    values = np.array([[0.80, -0.1], [0.82, -0.105], [0.90, -0.3]])
    result = outperforms(values, np.array([0.01, 0.01]))
    expected = np.zeros((3, 3), bool)
    expected[1, 0] = True  # two points more accurate, a gap that is larger by less than the rope
    np.testing.assert_array_equal(result, expected)
    assert not outperforms(values, np.array([1.0, 1.0])).any()


# Probabilities of being best: closed form, calibration by simulation, ties and few splits.

DRAWS = 40000


def standing(values, test_share=0.2, rope=0.0):
    return standings(values, test_share, rope=rope, draws=drawn_of(values))


def drawn_of(values):
    return student_draws(max(len(values), 2), DRAWS, rng(0, "test"))


@pytest.mark.parametrize("splits", [2, 3, 10])
@pytest.mark.parametrize("test_share", [0.0, 0.2, 0.5])
def test_two_methods_have_the_correlated_t_test(splits, test_share):
    values = np.random.default_rng(splits).normal(size=(splits, 2)) + [0.5, 0]
    expected = probability_better(*values.T, test_share)
    assert 0.02 < expected < 0.99
    assert standing(values, test_share)[0][0] == pytest.approx(expected, abs=4 * 0.5 / 200)
    near = probability_better(*values.T, test_share, rope=-0.1)
    assert standing(values, test_share, rope=0.1)[1][0] == pytest.approx(near, abs=0.01)


def test_every_difference_of_many_has_it_too():
    values = np.random.default_rng(1).normal(size=(5, 8)) + np.linspace(0, 1, 8)
    drawn = posterior_draws(values, 0.2, drawn_of(values))
    for i, j in [(0, 1), (2, 7), (6, 3)]:
        expected = probability_better(values[:, i], values[:, j], 0.2)
        assert (drawn[:, i] > drawn[:, j]).mean() == pytest.approx(expected, abs=0.01)


def test_without_overlap_it_is_the_paired_t_test():
    from scipy import stats

    first, second = np.random.default_rng(2).normal(size=(2, 9))
    p = stats.ttest_rel(first, second, alternative="greater").pvalue
    assert probability_better(first, second, 0.0) == pytest.approx(1 - p)


def test_equal_methods_share_the_probability_and_are_near():
    column = np.array([0.1, 0.4, 0.2])
    best, near = standing(np.column_stack([column, column - 1, column]))
    assert best.tolist() == [0.5, 0, 0.5]
    assert near.tolist() == [1, 0, 1]


def test_a_constant_difference_is_certain():
    assert probability_better(np.array([2.0, 3.0]), np.array([1.0, 2.0]), 0.2) == 1
    assert probability_better(np.array([2.0, 3.0]), np.array([1.0, 2.0]), 0.2, rope=1) == 0


def test_one_split_says_nothing():
    assert np.isnan(standing(np.array([[1.0, 2.0]]))).all()


@pytest.mark.parametrize(("methods", "splits"), [(2, 3), (2, 10), (6, 10)])
def test_in_independent_splits_equal_methods_are_best_equally_often(methods, splits):
    generator = np.random.default_rng(0)
    best = np.array(
        [
            standings(values, 0.0, rope=0, draws=student_draws(splits, 1000, generator))[0]
            for values in generator.normal(size=(600, splits, methods))
        ]
    )
    # The sd of a mean of 600 probabilities is at most 0.5 / sqrt(600) = 0.02.
    assert best.mean(axis=0) == pytest.approx(np.full(methods, 1 / methods), abs=0.07)
    sure = (best.max(axis=1) > 0.95).mean()
    assert sure < 0.10 + 4 * np.sqrt(0.09 / 600)
    if methods == 2:  # one of the two is in the upper twentieth in a tenth of all cases
        assert sure > 0.10 - 4 * np.sqrt(0.09 / 600)


def overlapping(generator, rows=100, splits=10, train=80):
    """Return accuracies of nearest means on one feature or the other: equal in expectation."""
    y = np.repeat([0, 1], rows // 2)
    x = generator.normal(size=(rows, 2)) + 0.5 * y[:, None]
    values = np.empty((splits, 2))
    for values_of_split in values:
        order = generator.permutation(rows)
        fit, test = order[:train], order[train:]
        low, high = x[fit][y[fit] == 0].mean(axis=0), x[fit][y[fit] == 1].mean(axis=0)
        predicted = (x[test] > (low + high) / 2) == (high > low)
        values_of_split[:] = (predicted == y[test][:, None]).mean(axis=0)
    return values


def test_in_overlapping_splits_the_correction_keeps_the_promise():
    generator = np.random.default_rng(0)
    measured = [overlapping(generator) for _ in range(600)]

    def sure(test_share):
        result = [probability_better(*values.T, test_share) for values in measured]
        return (np.abs(np.array(result) - 0.5) > 0.45).mean()

    # Nominally a tenth; without the correction more than three times as often.
    assert sure(0.2) < 0.16
    assert sure(0.0) > 0.3


# What further search may gain: the bound against its own martingale, and what is chosen.


@pytest.mark.parametrize("risk", [0.025, 0.05, 0.2])
@pytest.mark.parametrize("tried", [1, 2, 7, 100])
def test_at_the_bound_the_martingale_is_one_over_the_risk(tried, risk):
    bound = float(chance_of_better(tried, risk=risk))
    if bound < 1 - 1e-9:  # (1 - v)^-tried has no integral up to 1
        value, _ = integrate.quad(lambda v: (1 - v) ** -tried, 0, bound)
        assert value == pytest.approx(1 / risk, rel=1e-6)


def test_the_bound_holds_at_all_numbers_of_draws_at_once_and_is_not_idle():
    uniform = np.random.default_rng(0).random((4000, 300))
    least = np.minimum.accumulate(uniform, axis=1)
    bound = chance_of_better(np.arange(1, 301), risk=0.1)
    missed = (least > bound).any(axis=1).mean()
    assert 0.03 < missed < 0.1


def test_the_bound_is_the_one_of_the_paper_and_falls():
    tried = np.arange(2, 400)
    bound = chance_of_better(tried, risk=0.05)
    expected = 1 - ((tried - 1) / 0.05 + 1) ** (-1 / (tried - 1))
    np.testing.assert_allclose(bound, expected)
    assert (np.diff(bound) < 0).all()
    assert chance_of_better(1, risk=0.05) == pytest.approx(1 - np.exp(-20))


def test_the_gain_of_one_more_is_gap_times_chance_and_of_many_at_most_the_gap():
    assert further_gain(0.2, 0.1) == pytest.approx(0.02)
    assert further_gain(0.2, 0.1, more=2) == pytest.approx(0.2 * 0.19)
    assert further_gain(0.2, 0.1, more=10_000) == pytest.approx(0.2)
    assert further_gain(0.2, 1.0) == 0.2 and further_gain(0.2, 0.0, more=9) == 0


def test_the_average_gain_of_one_more_draw_is_under_the_bound_that_stopped_the_search():
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(400):
        shape = rng.uniform(0.5, 4, 2)  # of the distribution of gaps
        drawn = rng.beta(*shape, 200)
        best = np.minimum.accumulate(drawn)
        at = next((t for t in range(200) if is_enough(best[t], t + 1, worth=0.01, risk=0.05)), 199)
        fresh = rng.beta(*shape, 4000)
        bound = further_gain(best[at], chance_of_better(at + 1, risk=0.05))
        missed += np.maximum(best[at] - fresh, 0).mean() > bound
    assert missed <= 20


def test_nothing_is_enough_before_a_draw_and_a_gap_of_nothing_is_after_one():
    assert not is_enough(0.0, 0, worth=0.01, risk=0.05)
    assert is_enough(0.0, 1, worth=0.01, risk=0.05)
    assert not is_enough(0.5, 1, worth=0.01, risk=0.05)


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
    assert least_gap(gaps, errors, within=0.01) == chosen
