"""Events of a comparison: they sum to 1, and have the right limits."""

from itertools import product
from math import gamma, pi

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fairbench.core.errors import UserError
from fairbench.inference.comparing import (
    Comparison,
    at_equal_fairness,
    compare,
    event_names,
    frontier,
    highest_density_region,
    lead_of_values,
    objective,
    points,
)
from fairbench.inference.posterior import independent_draws, paired_draws
from fairbench.inference.repeats import student_draws
from fairbench.metrics import registry

FIRST = np.array([[300, 20, 30, 100], [90, 15, 25, 40]])
SECOND = np.array([[280, 40, 40, 90], [95, 10, 15, 50]])
NAMES = ("accuracy", "equal_opportunity", "false_positive_rate_gap", "statistical_parity")


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize("rope", [0.0, 0.01, 0.05])
def test_events_sum_to_one(m, rope):
    tables = independent_draws(FIRST, SECOND, 4000, np.random.default_rng(0))
    compared = compare(*tables, [objective(name) for name in NAMES[:m]], [rope] * m)
    inside = highest_density_region(compared.delta).inside
    for events in (compared.events(), compared.events(inside)):
        assert sum(events.values()) == pytest.approx(1)


def test_two_objectives_have_the_papers_five_events():
    assert event_names(("accuracy", "dp")) == [
        "A >> B", "B >> A", "A ~ B", "A accuracy, B dp", "B accuracy, A dp",
    ]  # fmt: skip
    assert len(event_names("abc")) == 3 + 27 - 2 * (2**3 - 1) - 1


def test_draws_of_known_outcomes_are_counted_where_they_belong():
    delta = np.array([[2, 2], [2, 0], [0, 2], [0, 0], [0, -2], [-2, -2], [2, -2], [-2, 2]]) / 100
    compared = Comparison(("accuracy", "dp"), delta, np.array([0.01, 0.01]))
    assert [8 * p for p in compared.events().values()] == [3, 2, 1, 1, 1]
    assert list(compared.events(np.arange(8) >= 6).values()) == [0, 0, 0, 0.5, 0.5]


def test_an_algorithm_is_equivalent_to_itself_whatever_the_rope():
    joint = np.zeros((2, 8))
    joint[:, [0b000, 0b011, 0b100, 0b111]] = FIRST  # A and B predict alike
    tables = paired_draws(joint, 500, np.random.default_rng(0), alpha=0)
    compared = compare(*tables, [objective(name) for name in NAMES[:2]], [0, 0])
    assert compared.events()["A ~ B"] == 1
    region = highest_density_region(compared.delta)
    assert region.inside.all() and region.size == 0


def test_draws_where_an_objective_is_undefined_are_left_out_and_counted():
    first, goals = np.tile(FIRST, (4, 1, 1)).astype(float), [objective("equal_opportunity")]
    first[0, 0] = (5, 5, 0, 0)  # no positives
    compared = compare(first, first, goals, [0.01])
    assert (len(compared.delta), compared.undefined) == (3, 0.25)
    first[:, 0] = (5, 5, 0, 0)
    with pytest.raises(UserError, match="equal_opportunity is undefined in every draw"):
        compare(first, first, goals, [0.01])


@pytest.mark.parametrize("rope", [[0.01], [0.01, -0.1], [0.01, np.nan], [0.1, 0.1, 0.1]])
def test_rope_that_does_not_fit_is_refused(rope):
    tables = independent_draws(FIRST, SECOND, 10, np.random.default_rng(0))
    with pytest.raises(UserError, match="rope is .* each of 2 objectives"):
        compare(*tables, [objective(name) for name in NAMES[:2]], rope)


def test_a_perfect_and_fair_algorithm_is_better_in_every_objective():
    perfect = np.array([[[50.0, 0, 0, 50], [25, 0, 0, 25]]])
    poor = np.array([[[40.0, 10, 10, 40], [25, 0, 20, 5]]])
    metrics = registry.metrics_of(registry.BINARY, "rate", "widest")
    goals = [objective(name) for name, metric in metrics.items() if metric.direction]
    assert len(goals) > 15 and all(goal.of_counts for goal in goals)
    for goal in goals:
        assert goal(perfect) > goal(poor), goal.metric.name


@pytest.mark.parametrize(
    ("name", "better", "sign"),
    [
        ("log_loss", "lower", 1),
        ("roc_auc", "higher", -1),
        ("log_loss_gap", "lower", 1),
        ("epistemic_uncertainty_ratio", 1.0, -1),
        ("consistency_mean_sd", "lower", 1),
        ("epistemic_uncertainty", "neither", -1),
    ],
)
def test_what_is_no_function_of_counts_has_the_direction_of_its_metric_or_name(name, better, sign):
    goal = objective(name)
    assert (goal.of_counts, goal.metric.better) == (False, better)
    values = np.array([[0.4, 0.8], [0.5, 0.9], [0.3, 0.75]])
    student = student_draws(3, 4000, np.random.default_rng(0))
    assert np.sign(lead_of_values(values, goal, 0.2, student).mean()) == sign


def test_signed_differences_need_two_groups():
    with pytest.raises(UserError, match="needs two groups, not 3"):
        objective("equal_opportunity_difference")(np.ones((1, 3, 4)))


# Highest-density regions: sizes and contents known in closed form.


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize(
    ("sds", "correlation", "rows", "off"),
    [
        ([0.03, 0.1], 0, 20_000, 0.04),
        ([0.03, 0.1], -0.8, 20_000, 0.04),
        ([1, 0.1, 2], 0.6, 5000, 0.08),
        ([0, 1], 0, 2000, 0),
    ],
)
def test_a_region_of_a_normal_sample_is_its_ellipsoid(sds, correlation, rows, off, level):
    m, shape = len(sds), np.eye(len(sds))
    shape[0, -1] = shape[-1, 0] = correlation
    covariance = np.outer(sds, sds) * shape
    draws = np.random.default_rng(0).multivariate_normal(np.zeros(m), covariance, rows)
    region = highest_density_region(draws, level)
    ball = pi ** (m / 2) / gamma(m / 2 + 1) * stats.chi2.ppf(level, m) ** (m / 2)
    assert region.size == pytest.approx(ball * np.sqrt(np.linalg.det(covariance)), rel=off)
    assert region.inside.mean() == pytest.approx(level, abs=1e-3)
    if m == 2 and off:
        distance = np.einsum("ti,ij,tj->t", draws, np.linalg.inv(covariance), draws)
        assert ((distance <= stats.chi2.ppf(level, 2)) == region.inside).mean() > 0.97
    assert (region.density is None) == (m > 2 or not off)


def test_one_objective_has_the_shortest_interval():
    region = highest_density_region(np.random.default_rng(3).exponential(size=(20000, 1)))
    assert region.size == pytest.approx(-np.log(0.05), rel=0.05)
    assert region.bounds[0, 0] < 0.01


def test_density_integrates_to_one_and_its_threshold_bounds_the_region():
    region = highest_density_region(np.random.default_rng(1).normal(size=(5000, 2)) * (1, 0.01))
    grid = region.density
    cell = np.diff(grid.x[:2])[0] * np.diff(grid.y[:2])[0]
    assert grid.values.sum() * cell == pytest.approx(1, abs=1e-6)
    assert (grid.values >= grid.threshold).sum() * cell == pytest.approx(region.size)
    peak = np.unravel_index(grid.values.argmax(), grid.values.shape)
    assert abs(grid.x[peak[0]]) < 0.4 and abs(grid.y[peak[1]]) < 0.004


def test_region_of_two_clusters_leaves_the_gap_out():
    draws = np.random.default_rng(2).normal(size=(8000, 2))
    draws[:4000, 0] += 20
    density = highest_density_region(draws).density
    assert (density.values[np.abs(density.x - 10) < 2] < density.threshold).all()


def test_objectives_that_are_almost_the_same_have_a_finite_region():
    one = np.random.default_rng(6).normal(size=4000)
    draws = np.column_stack([one, one + 1e-9 * np.random.default_rng(7).normal(size=4000)])
    region = highest_density_region(draws)
    assert np.isfinite(region.size)
    assert region.inside.mean() == pytest.approx(0.95, abs=1e-3)
    assert region.density.values.min() > -1e-4 * region.density.values.max()


def test_points_are_held_as_the_draws_are():
    draws = np.random.default_rng(6).normal(size=(4000, 2)) * (0.02, 0.3)
    region = highest_density_region(draws)
    agree = region.density.holds(draws) == region.inside
    assert agree.mean() > 0.999  # a draw on the contour may fall either way by rounding
    far = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, -9.0], [0.09, 0.0]])
    np.testing.assert_array_equal(region.density.holds(far), [True, False, False, False])


def test_an_error_has_one_spread_whatever_gap_it_stands_beside_and_however_few_the_repeats():
    """Both repeats have 12 errors in 60 rows; in the first, the last group has no label 0."""
    first = [[0, 3, 2, 7], [1, 1, 0, 9], [13, 1, 2, 7], [3, 0, 2, 7], [0, 0, 1, 1]]
    second = [[4, 1, 2, 11], [2, 0, 2, 9], [6, 1, 1, 7], [4, 2, 0, 2], [1, 1, 2, 2]]
    of = points(np.array([[first], [second]]), "people", test_share=0.2)
    assert {point["error"] for point in of.values()} == {0.2}
    (variance,) = {point["error_variance"] for point in of.values()}
    half = 0.5 * np.sqrt(0.75 * 0.2 * 0.8 / 60)  # of what the counts of both repeats give
    assert half * 0.9 < variance**0.5 < 3 * half
    assert {point["left_out"] for point in of.values()} == {0}
    assert [of[name]["without_group"] for name in ("equalized_odds", "equal_opportunity")] == [1, 0]
    assert of["equalized_odds"]["gap"] == (1.0 + 0.5) / 2


# The frontier of thresholds: whose it is, and what it has at a given gap.

CURVE = pd.DataFrame(
    {"constraint": "parity", "error": [0.3, 0.2, 0.1], "gap": [0.02, 0.1, 0.2], "base": 0}
)


def metrics(validation_error):
    """Return errors and gaps of two repeats; the stricter relaxation has more error, less gap."""
    at_once = {"error_rate": 0.2, "gap": 0.3, "validation_error_rate": validation_error}
    rows = pd.DataFrame(
        [*product((0, 1), (0.05, 1), at_once)], columns=["repeat", "relaxation", "metric"]
    )
    strict = (rows["relaxation"] == 0.05) * np.where(rows["metric"] == "gap", -0.1, 0.1)
    value = rows["metric"].map(at_once) + strict + 0.1 * rows["repeat"]
    named = {"metric": "postprocessed_" + rows["metric"], "attribute": "sex", "variant": ""}
    return rows.assign(value=value, constraint="equalized_odds", **named)


def test_the_base_is_best_on_validation_rows_and_its_values_are_means_over_repeats():
    without = metrics(0.1).assign(metric="error_rate")
    curve = frontier([without, metrics(0.4), metrics(0.2)], "sex").sort_values("relaxation")
    expected = [[0.05, 0.35, 0.25, 2], [1, 0.25, 0.35, 2]]
    np.testing.assert_allclose(curve[["relaxation", "error", "gap", "base"]], expected)


def test_without_postprocessed_scores_of_the_attribute_there_is_no_frontier():
    assert frontier([metrics(0.1)], "age").empty
    assert np.isnan(at_equal_fairness(frontier([], "age"), "equalized_odds", 0.5))


@pytest.mark.parametrize(
    ("gap", "error"), [(0.01, np.nan), (0.02, 0.3), (0.15, 0.15), (0.2, 0.1), (0.9, 0.1)]
)
def test_two_points_are_mixed_to_reach_a_gap_between_them(gap, error):
    assert at_equal_fairness(CURVE, "parity", gap) == pytest.approx(error, nan_ok=True)
    assert np.isnan(at_equal_fairness(CURVE, "other", gap))


def test_a_point_that_is_worse_in_both_is_never_mixed_in():
    worse = pd.concat([CURVE, CURVE.iloc[:1].assign(error=0.6, gap=0.15)])
    for gap in (0.02, 0.12, 0.15, 0.3):
        assert at_equal_fairness(worse, "parity", gap) == at_equal_fairness(CURVE, "parity", gap)
