"""Events of a comparison: they sum to 1, and have the right limits."""

import numpy as np
import pytest
from scipy import stats

from fairbench.core.errors import UserError
from fairbench.inference.comparing.objectives import objective, objectives
from fairbench.inference.comparing.practical_difference import (
    Comparison,
    compare,
    event_names,
    highest_density_region,
)
from fairbench.inference.posterior import independent_draws, paired_draws

FIRST = np.array([[300, 20, 30, 100], [90, 15, 25, 40]])
SECOND = np.array([[280, 40, 40, 90], [95, 10, 15, 50]])
NAMES = ("accuracy", "equal_opportunity", "false_positive_rate_gap", "statistical_parity")


def comparison(names, rope, draws=4000, seed=0):
    tables = independent_draws(FIRST, SECOND, draws, np.random.default_rng(seed))
    return compare(*tables, [objective(name) for name in names], [rope] * len(names))


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize("rope", [0.0, 0.01, 0.05])
def test_outcomes_and_events_sum_to_one(m, rope):
    compared = comparison(NAMES[:m], rope)
    assert compared.outcomes().shape == (3,) * m
    assert compared.outcomes().sum() == pytest.approx(1)
    assert sum(compared.events().values()) == pytest.approx(1)
    inside = highest_density_region(compared.delta).inside
    assert sum(compared.events(inside).values()) == pytest.approx(1)


def test_two_objectives_have_the_papers_five_events():
    assert event_names(("accuracy", "dp")) == [
        "A >> B", "B >> A", "A ~ B", "A accuracy, B dp", "B accuracy, A dp",
    ]  # fmt: skip
    assert len(event_names("abc")) == 3 + 27 - 2 * (2**3 - 1) - 1


def test_draws_of_known_outcomes_are_counted_where_they_belong():
    delta = np.array([[2, 2], [2, 0], [0, 2], [0, 0], [0, -2], [-2, -2], [2, -2], [-2, 2]]) / 100
    compared = Comparison(("accuracy", "dp"), delta, np.array([0.01, 0.01]))
    assert [8 * p for p in compared.events().values()] == [3, 2, 1, 1, 1]
    only = np.arange(8) >= 6
    assert list(compared.events(only).values()) == [0, 0, 0, 0.5, 0.5]


def test_without_a_rope_nothing_is_equivalent_and_with_an_infinite_one_everything_is():
    none, all_ = comparison(NAMES[:2], 0.0), comparison(NAMES[:2], np.inf)
    assert none.events()["A ~ B"] == 0
    assert none.events()["A >> B"] == (none.delta > 0).all(axis=1).mean()
    assert all_.events()["A ~ B"] == 1


def test_an_algorithm_is_equivalent_to_itself_whatever_the_rope():
    joint = np.zeros((2, 8))
    joint[:, [0b000, 0b011, 0b100, 0b111]] = FIRST  # A and B predict alike
    tables = paired_draws(joint, 500, np.random.default_rng(0), alpha=0)
    compared = compare(*tables, [objective(name) for name in NAMES[:2]], [0, 0])
    assert compared.events()["A ~ B"] == 1
    region = highest_density_region(compared.delta)
    assert region.inside.all()
    assert region.size == 0


def test_swapping_the_algorithms_swaps_the_events():
    tables = independent_draws(FIRST, SECOND, 2000, np.random.default_rng(0))
    objectives = [objective(name) for name in NAMES[:2]]
    one, other = (compare(*pair, objectives, [0.01, 0.01]) for pair in (tables, tables[::-1]))
    np.testing.assert_array_equal(one.outcomes(), other.outcomes()[::-1, ::-1])


def test_event_of_one_objective_is_the_probability_of_two_betas():
    draws = 40000
    compared = comparison(["accuracy"], 0.0, draws)
    grid = np.linspace(0, 1, 20001)
    # One group's accuracy is Beta; with two the sum is not, so compare one group alone.
    tables = independent_draws(FIRST[:1], SECOND[:1], draws, np.random.default_rng(1))
    compared = compare(*tables, [objective("accuracy")], [0.0])
    one, other = (
        stats.beta(c[0, [0, 3]].sum() + 2, c[0, [1, 2]].sum() + 2) for c in (FIRST, SECOND)
    )
    exact = np.trapezoid(one.pdf(grid) * other.cdf(grid), grid)
    error = np.sqrt(exact * (1 - exact) / draws)
    assert abs(compared.events()["A >> B"] - exact) < 5 * error


def test_draws_where_an_objective_is_undefined_are_left_out_and_counted():
    first = np.tile(FIRST, (4, 1, 1)).astype(float)
    first[0, 0] = (5, 5, 0, 0)  # no positives
    compared = compare(first, first, [objective("equal_opportunity")], [0.01])
    assert len(compared.delta) == 3
    assert compared.undefined == 0.25
    first[:, 0] = (5, 5, 0, 0)
    with pytest.raises(UserError, match="equal_opportunity is undefined in every draw"):
        compare(first, first, [objective("equal_opportunity")], [0.01])


@pytest.mark.parametrize("rope", [[0.01], [0.01, -0.1], [0.01, np.nan], [0.1, 0.1, 0.1]])
def test_rope_that_does_not_fit_is_refused(rope):
    tables = independent_draws(FIRST, SECOND, 10, np.random.default_rng(0))
    with pytest.raises(UserError, match="rope is .* each of 2 objectives"):
        compare(*tables, [objective(name) for name in NAMES[:2]], rope)


def test_a_perfect_and_fair_algorithm_is_better_in_every_objective():
    perfect = np.array([[[50.0, 0, 0, 50], [25, 0, 0, 25]]])
    poor = np.array([[[40.0, 10, 10, 40], [25, 0, 20, 5]]])
    for name, objective_of_name in objectives().items():
        if not name.endswith("_difference"):  # those are the other group's advantage
            assert objective_of_name(perfect) > objective_of_name(poor), name


def test_unknown_objective_is_named_with_its_neighbours():
    with pytest.raises(UserError, match="unknown objective 'equalised_odds': did you mean equal"):
        objective("equalised_odds")


def test_signed_differences_need_two_groups():
    with pytest.raises(UserError, match="needs two groups, not 3"):
        objective("equal_opportunity_difference")(np.ones((1, 3, 4)))
