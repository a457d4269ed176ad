"""All pairs of methods at once, what holds on a new task, plans, and winners on fresh splits."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from fairbench_rank import new_tasks, sign_flips
from fairbench_rank.sign_flips import paired_units
from tests.harness import quick


def judged(values, *, seed=0, flips=499, unit=None, **options):
    places = np.arange(values.shape[1])
    unit = places if unit is None else unit
    generator = np.random.default_rng(seed)
    paired = sign_flips.paired_units(values, places, unit, generator=generator, **options)
    return paired, sign_flips.simultaneous(paired, generator=generator, flips=flips)


def test_differences_are_those_of_a_paired_t_test():
    values = np.random.default_rng(1).normal(size=(3, 12))
    paired, _ = judged(values)
    for place, (one, other) in enumerate([(0, 1), (0, 2), (1, 2)]):
        oracle = stats.ttest_rel(values[one], values[other])
        assert paired.means[place] / paired.errors[place] == pytest.approx(oracle.statistic)
        assert paired.skewness[place] == pytest.approx(stats.skew(values[one] - values[other]))


@pytest.mark.parametrize("equal_unit_weights", [True, False])
def test_holes_change_nothing_of_pairs_without_them(equal_unit_weights):
    random = np.random.default_rng(2)
    values, group = random.normal(size=(4, 60)), np.repeat(np.arange(20), 3)
    unit = random.permutation(np.repeat(np.arange(10), 2))
    unit[:3] = unit[0]
    whole, part = values, np.concatenate([values, np.full((1, 60), np.nan)])
    part[4, :30] = random.normal(size=30)
    how = {"equal_unit_weights": equal_unit_weights, "generator": np.random.default_rng(0)}
    unit = np.unique(unit, return_inverse=True)[1]
    full, holed = (paired_units(values, group, unit, **how) for values in (whole, part))
    kept = holed.second < 4
    for name in ("means", "errors", "squares", "centred", "skewness", "sizes"):
        assert getattr(holed, name)[kept] == pytest.approx(getattr(full, name), abs=1e-12), name


def test_a_pair_is_compared_on_what_both_have():
    values = np.array([[1.0, 2, 3, 9], [0, 1, 2, np.nan], [5, 5, 5, 5]])
    paired, _ = judged(values)
    assert paired.means[0] == pytest.approx(1) and paired.sizes.tolist() == [3, 4, 3]


def test_splits_of_a_task_count_once_and_families_alike():
    values = np.array([[1.0, 1, 5, 5, 5, 5], [0.0] * 6])
    group, unit = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 1, 1])
    for by_family, mean in ((True, 3), (False, 11 / 3)):
        how = {"equal_unit_weights": by_family, "generator": np.random.default_rng(0)}
        assert paired_units(values, group, unit, **how).means[0] == pytest.approx(mean)


def test_few_questions_right_and_wrong_are_judged_as_by_mcnemars_exact_test():
    gained, lost = 9, 1
    values = np.zeros((2, 10))
    values[0, :gained], values[1, gained:] = 1, 1
    _, held = judged(values, flips=19999, binary=True)
    exact = 2 * stats.binom.cdf(lost, gained + lost, 0.5)
    assert held.p_values[0] == pytest.approx(exact, abs=0.003)


def test_methods_that_are_equal_everywhere_are_not_told_apart():
    values = np.tile(np.random.default_rng(0).normal(size=20), (3, 1))
    _, held = judged(values)
    assert not held.better.any() and held.may_be_best.all()
    assert (held.limits.lower == 0).all() and (held.limits.upper == 0).all()


def test_differences_that_do_not_vary_have_no_interval_that_is_known():
    _, held = judged(np.array([[1.0] * 4, [0.0] * 4]))
    assert not held.better.any()
    assert np.isinf([held.limits.lower[0], held.limits.upper[0]]).all()


def test_large_differences_are_told_apart_and_ranks_follow():
    values = np.random.default_rng(3).normal(size=(4, 30)) + [[3], [3.0], [1.5], [0]]
    _, held = judged(values)
    assert held.better.sum(axis=0).tolist() == [0, 0, 2, 3]  # of those that are surely ahead
    assert held.better.sum(axis=1).tolist() == [2, 2, 1, 0]  # and surely behind
    assert held.may_be_best.tolist() == [True, True, False, False]


def test_methods_that_beat_each_other_in_a_circle_may_all_be_the_best():
    random = np.random.default_rng(7)
    values = np.full((3, 60), np.nan)
    for place, (better, worse) in enumerate([(0, 1), (1, 2), (2, 0)]):
        cells = slice(20 * place, 20 * place + 20)
        values[better, cells] = 1 + 0.1 * random.normal(size=20)
        values[worse, cells] = 0.1 * random.normal(size=20)
    _, held = judged(values)
    assert held.better.sum() == 3 and held.may_be_best.all()


def test_what_is_told_apart_and_nothing_else_has_an_interval_on_one_side():
    random = np.random.default_rng(4)
    for _ in range(30):
        values = random.normal(size=(5, 9)) + random.normal(size=(5, 1))
        paired, held = judged(values)
        told = held.p_values <= held.level
        assert ((held.limits.lower >= 0) | (held.limits.upper <= 0))[told].all()
        assert ((held.limits.lower <= 0) & (held.limits.upper >= 0))[~told].all()
        assert ((held.limits.lower <= paired.means) & (paired.means <= held.limits.upper)).all()


def test_normal_quantiles_and_students_turn_into_each_other():
    freedom = np.array([2.0, 5, 50])
    again = float(sign_flips.as_normal(sign_flips.as_student(2.5, 5.0), 5.0))
    as_student = sign_flips.as_student
    assert as_student(2.5, freedom) == pytest.approx(as_student(again, freedom))
    exact = stats.norm.isf(stats.t.sf(4.0, 20))
    assert float(sign_flips.as_normal(np.array(4.0), 20.0)) == pytest.approx(exact, abs=0.01)


def test_strata_count_alike_and_what_they_differ_by_is_no_error():
    random = np.random.default_rng(5)
    strata = np.repeat([0, 1], [400, 100])
    values = random.normal(size=(2, 500)) + np.array([[0], [1]]) * (strata == 1) * 5
    places = np.arange(500)
    paired = sign_flips.paired_units(values, places, places, strata=strata, generator=random)
    gap = values[0] - values[1]
    of_strata = [gap[strata == stratum] for stratum in (0, 1)]
    assert paired.means[0] == pytest.approx(np.mean([gaps.mean() for gaps in of_strata]))
    variance = sum(gaps.var(ddof=1) / len(gaps) for gaps in of_strata) / 4
    assert paired.errors[0] == pytest.approx(np.sqrt(variance), rel=0.005)


ALIKE = {
    "normal": lambda random, shape: random.normal(size=shape),
    "heavy": lambda random, shape: random.standard_t(2, size=shape),
    "skewed": lambda random, shape: np.exp(1.5 * random.normal(size=shape)),
    "right or wrong": lambda random, shape: (random.random(shape) < 0.7).astype(float),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ALIKE)
@pytest.mark.parametrize(("methods", "units"), [(8, 3), (4, 7), (10, 15), (3, 60)])
def test_methods_that_are_alike_are_seldom_told_apart(kind, methods, units):
    """Of 150 tables 7.5 are expected at 5 %, and over 17 are no chance."""
    random = np.random.default_rng(6)
    wrong = 0
    for _ in range(150):
        _, held = judged(ALIKE[kind](random, (methods, units)), flips=299)
        told = held.better.any() or not held.may_be_best.all()
        wrong += bool(told or ((held.limits.lower > 0) | (held.limits.upper < 0)).any())
    assert wrong <= 17


def on_new_task(values, unit=None, *, epsilon=0.1, seed=0):
    unit = np.arange(values.shape[1]) if unit is None else unit
    generator = np.random.default_rng(seed)
    return new_tasks.on_new_task(values, unit, epsilon=epsilon, generator=generator)


def test_probabilities_are_those_counted_where_tasks_are_many():
    values = np.random.default_rng(0).normal(size=(3, 4000)) + [[0.5], [0], [0]]
    new, largest = on_new_task(values, epsilon=0.3), values.max(axis=0)
    assert new.near == pytest.approx((values >= largest - 0.3).mean(axis=1), abs=0.003)
    assert new.best == pytest.approx((values == largest).mean(axis=1), abs=0.003)
    assert new.best.sum() == pytest.approx(1)


def test_few_tasks_carry_no_large_probability():
    new = on_new_task(np.zeros((2, 8)) + [[1], [0.0]])
    assert new.few and new.near[0] == new_tasks.MOST_OF_FEW and new.near[1] < 0.3


def test_a_large_family_of_tasks_counts_once():
    values = np.zeros((2, 12))
    values[0, :10], values[1, 10:] = 1, 1
    new = on_new_task(values, np.array([0] * 10 + [1, 2]))
    assert new.best[1] > new.best[0]


@pytest.mark.thorough
@pytest.mark.parametrize("holes", quick([0.0, 0.2], [0.0], rest=pytest.mark.slow))
def test_probabilities_are_calibrated(holes):
    """In bins of what was said, the share of new tasks is near it: to 5 points, by 400 tables."""
    random = np.random.default_rng(1)
    said, true = [], []
    for _ in range(400):
        methods, tasks = int(random.choice([2, 5, 12])), int(random.choice([3, 8, 30]))
        centre = random.normal(size=(methods, 1)) * random.choice([0, 0.01, 0.03])
        spread, heavy = random.choice([0.01, 0.03]), random.random() < 0.5
        draw = (lambda shape: random.standard_t(3, size=shape)) if heavy else random.standard_normal
        values = centre + spread * draw((methods, tasks))
        values[:, 1:][random.random((methods, tasks - 1)) < holes] = np.nan
        new = new_tasks.on_new_task(values, np.arange(tasks), epsilon=0.01, generator=random)
        fresh = centre + spread * draw((methods, 500))
        said.append(new.near)
        true.append((fresh >= fresh.max(axis=0) - 0.01).mean(axis=1))
    said, true = np.concatenate(said), np.concatenate(true)
    capped = said == new_tasks.MOST_OF_FEW
    assert true[capped].mean() >= new_tasks.MOST_OF_FEW - 0.05
    for low in (0, 0.2, 0.4, 0.6):
        within = (said >= low) & (said < low + 0.2) & ~capped
        assert said[within].mean() == pytest.approx(true[within].mean(), abs=0.05)


def test_units_needed_are_the_fewest_with_which_the_interval_is_short_enough():
    spread = np.array([0.02, 0.2, 0.0001])
    needed = new_tasks.units_needed(spread, 0.01, 3.0)
    assert (new_tasks.reach(needed, 3.0) * spread <= 0.01).all()
    assert (new_tasks.reach(needed[:2] - 1, 3.0) * spread[:2] > 0.01).all()
    assert needed[2] == 3 and new_tasks.units_needed(np.array([1e9]), 0.01, 3.0)[0] == np.inf


def test_the_noise_of_splits_is_told_from_what_tasks_differ_by():
    random = np.random.default_rng(3)
    group = np.repeat(np.arange(400), 5)
    difference = random.normal(0, 0.03, 400)[group] + random.normal(0, 0.05, 2000)
    parts = new_tasks.variance_parts(difference, group, np.arange(400))
    variance, noise = parts
    assert noise == pytest.approx(0.05**2 / 5, rel=0.1)
    assert variance - noise == pytest.approx(0.03**2, rel=0.2)
    assert new_tasks.times_as_many(parts, 0.001, 400, 3.0) == np.inf
    assert new_tasks.times_as_many(parts, 1.0, 400, 3.0) < 1
    assert new_tasks.variance_parts(difference[:3], np.arange(3), np.arange(3)) is None


def test_halves_of_noise_name_another_winner_and_halves_of_a_difference_do_not():
    random = np.random.default_rng(4)
    group = np.repeat(np.arange(10), 4)
    noise = random.normal(size=(5, 40))
    clear = noise + 10 * np.arange(5)[:, None]
    winner = partial(new_tasks.fresh_winner, generator=random)
    one, other = (winner(values, group, np.arange(10)) for values in (noise, clear))
    assert one["halved"] == new_tasks.SPLITS and one["overall"] > 0.4 and one["within_task"] > 0.4
    assert other["overall"] == other["within_task"] == 0
    by_unit = winner(noise, np.arange(40), np.arange(40))
    assert by_unit["halved"] == new_tasks.UNITS and np.isnan(by_unit["within_task"])


def test_tasks_of_one_of_two_methods_tell_nothing_of_which_is_nearer_the_best():
    random = np.random.default_rng(0)
    values = 0.7 + 0.1 * random.standard_normal(400) + 0.03 * random.standard_normal((2, 400))
    values[0] += 0.02
    both = on_new_task(values[:, :200], epsilon=0.01)
    values[1, 200:] = np.nan
    forecast = on_new_task(values, epsilon=0.01)
    np.testing.assert_allclose(forecast.near, both.near, atol=0.02)
    np.testing.assert_allclose(forecast.best, both.best, atol=0.02)


def test_few_tasks_of_a_rival_leave_a_probability_as_open_as_these_few():
    """Drawn rivals add no successes: 10 of 10 shared tasks are 10, whatever else was run."""
    values = np.tile([[0.8], [0.7]], 40) + 0.001 * np.random.default_rng(1).random((2, 40))
    few, many = (on_new_task(values[:, :tasks], epsilon=0.01) for tasks in (10, 40))
    assert few.near[0] < many.near[0]
    values[1, 10:] = np.nan
    np.testing.assert_allclose(on_new_task(values, epsilon=0.01).near, few.near, atol=0.02)


def test_plans_have_the_power_of_the_noncentral_t():
    for units in (10, 40, 200):
        quantile = float(sign_flips.as_student(3.0, units - 1))
        distance = float(new_tasks.reach(units, 3.0)) * units**0.5
        assert stats.nct.sf(quantile, units - 1, distance) == pytest.approx(0.8, abs=0.04)
        # The sd of a unit whose sample's sd is as often too small as too large.
        sd = 0.1 * (units * (units - 1) / stats.chi2.median(units - 1)) ** 0.5
        assert new_tasks.usual_spread(0.1, units) == pytest.approx(sd, rel=0.01)
    variance, noise = parts = 0.0016, 0.0005
    times = new_tasks.times_as_many(parts, 0.008, 400, 3.0)
    left = (variance - noise + noise / times) ** 0.5
    assert left * new_tasks.reach(400, 3.0) == pytest.approx(0.008)
