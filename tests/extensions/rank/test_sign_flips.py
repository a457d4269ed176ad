"""All pairs of methods at once: what is told apart is so, whatever the scores are like."""

import numpy as np
import pytest
from scipy import stats

from fairbench_rank import sign_flips


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
    generator = np.random.default_rng(0)
    full, holed = (
        sign_flips.paired_units(
            values, group, np.unique(unit, return_inverse=True)[1],
            equal_unit_weights=equal_unit_weights, generator=generator,
        )
        for values in (whole, part)
    )  # fmt: skip
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
    generator = np.random.default_rng(0)
    by_family = sign_flips.paired_units(values, group, unit, generator=generator)
    by_task = sign_flips.paired_units(
        values, group, unit, equal_unit_weights=False, generator=generator
    )
    assert by_family.means[0] == pytest.approx(3) and by_task.means[0] == pytest.approx(11 / 3)


def test_few_questions_right_and_wrong_are_judged_as_by_mcnemars_exact_test():
    gained, lost = 9, 1
    values = np.zeros((2, 10))
    values[0, :gained], values[1, gained:] = 1, 1
    _, held = judged(values, flips=19999, binary=True)
    assert held.p_values[0] == pytest.approx(
        2 * stats.binom.cdf(lost, gained + lost, 0.5), abs=0.003
    )


def test_methods_that_are_equal_everywhere_are_not_told_apart():
    values = np.tile(np.random.default_rng(0).normal(size=20), (3, 1))
    _, held = judged(values)
    assert not held.better.any() and held.may_be_best.all()
    assert (held.limits.lower == 0).all() and (held.limits.upper == 0).all()


def test_differences_that_do_not_vary_have_no_interval_that_is_known():
    values = np.array([[1.0] * 4, [0.0] * 4])
    _, held = judged(values)
    assert not held.better.any()
    assert np.isinf(held.limits.lower[0]) and np.isinf(held.limits.upper[0])


def test_large_differences_are_told_apart_and_ranks_follow():
    values = np.random.default_rng(3).normal(size=(4, 30)) + [[3], [3.0], [1.5], [0]]
    _, held = judged(values)
    assert held.first_rank.tolist() == [1, 1, 3, 4] and held.last_rank.tolist() == [2, 2, 3, 4]
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
    assert sign_flips.as_student(2.5, freedom) == pytest.approx(
        sign_flips.as_student(
            float(sign_flips.as_normal(sign_flips.as_student(2.5, 5.0), 5.0)), freedom
        )
    )
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


@pytest.mark.parametrize("methods", [6, 12, 20])
def test_of_many_equally_good_methods_none_is_seldom_said_not_to_be_the_best(methods):
    """Of 100 tables 5 are expected, and over 14 are no chance."""
    random = np.random.default_rng(methods)
    tables = (judged(random.normal(size=(methods, 25)), flips=199)[1] for _ in range(100))
    assert sum(not held.may_be_best.all() for held in tables) <= 14


@pytest.mark.parametrize("methods", [3, 20])
def test_a_failure_is_said_to_be_seen_only_where_it_is(methods):
    """Where all but one method fail on so few units, any two are told apart in 5 % of tables."""
    random, units = np.random.default_rng(8), 20
    share = sign_flips.unseen_share(units, methods, 0.05)
    wrong = unseen = 0
    for _ in range(100):
        failed = random.random((methods, units)) < share
        failed[0] = False
        values = random.normal(size=failed.shape) - 25 * failed
        values[1:] += 25 * share
        unseen += bool((~failed[1:].any(axis=1)).any())
        wrong += bool(judged(values, flips=199)[1].better.any())
    assert unseen <= 9 and wrong <= 14
