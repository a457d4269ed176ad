"""A model in use and the alternative on test rows, and simulated searches of known truth."""

import numpy as np
import pytest

from benchmarks.alternative import coverage
from fairbench.core.errors import UserError
from fairbench_search.alternative import Alternative, compare_models, gap_named
from fairbench_search.choice import SharedRows
from fairbench_search.goals import Tuning
from fairbench_search.tuning import Dimension, DrawnSearch, Family, Trial

PARITY = gap_named("statistical_parity")


def rows(count=400, seed=0):
    """Return people, and two models of which the second selects less in the first group."""
    rng = np.random.default_rng(seed)
    label, group = rng.integers(0, 2, count), rng.integers(0, 2, count)
    first = (rng.random(count) < np.where(group == 0, 0.7, 0.4)).astype(int)
    second = np.where((group == 0) & (rng.random(count) < 0.4), 0, first)
    nothing = np.zeros(count, int)
    predicted = np.column_stack([first, second])
    return SharedRows(nothing, nothing, np.arange(count), label, group, predicted, ("a", "b"))


def test_values_are_those_of_the_predictions_and_lie_in_their_intervals():
    shared = rows()
    both = compare_models(shared, PARITY)
    for place in (0, 1):
        predicted = shared.prediction[:, place]
        rates = [predicted[shared.group == code].mean() for code in (0, 1)]
        assert both.gaps[place][0] == pytest.approx(abs(rates[0] - rates[1]))
        assert both.errors[place][0] == pytest.approx((predicted != shared.target).mean())
    for change, values in ((both.gap_change, both.gaps), (both.error_change, both.errors)):
        assert change[0] == pytest.approx(values[1][0] - values[0][0])
    for value, lower, upper in (*both.gaps, *both.errors, both.gap_change, both.error_change):
        assert lower <= value <= upper
    assert both.verdict == "better" and both.people == 400


def test_flips_are_counted_in_every_group_and_add_up():
    shared = rows()
    *groups, everyone = compare_models(shared, PARITY).flips
    first, second = shared.prediction.T
    for code, flips in enumerate(groups):
        members = shared.group == code
        assert flips["group"] == shared.names[code] and flips["people"] == members.sum()
        assert flips["lost"] == (members & (first == 1) & (second == 0)).sum()
        assert flips["gained"] == (members & (first == 0) & (second == 1)).sum()
    assert everyone["people"] == 400 and everyone["lost"] == sum(group["lost"] for group in groups)
    assert everyone["share"][0] == pytest.approx((first != second).mean())
    assert everyone["share"][1] < everyone["share"][0] < everyone["share"][2]


def test_a_model_beside_itself_changes_nothing():
    shared = rows()
    same = SharedRows(
        shared.repeat, shared.fold, shared.row, shared.target, shared.group,
        shared.prediction[:, [0, 0]], shared.names,
    )  # fmt: skip
    both = compare_models(same, PARITY)
    assert both.gap_change[0] == both.error_change[0] == 0 and both.verdict == "open"
    assert all(flip["gained"] == flip["lost"] == 0 for flip in both.flips)


def test_rows_that_judged_several_candidates_have_wider_intervals():
    one, three = (compare_models(rows(), PARITY, looks=looks) for looks in (1, 3))
    assert one.gaps[1][0] == three.gaps[1][0]
    for name in ("gap_change", "error_change"):
        narrow, wide = getattr(one, name), getattr(three, name)
        assert wide[1] < narrow[1] and narrow[2] < wide[2]
    assert three.flips[-1]["share"][2] > one.flips[-1]["share"][2]


@pytest.mark.parametrize("metric", ["equalized_odds", "predictive_parity", "accuracy_gap"])
def test_every_gap_can_be_made_smaller(metric):
    both = compare_models(rows(), gap_named(metric))
    assert both.gap_change[1] <= both.gap_change[0] <= both.gap_change[2]


def test_what_is_no_gap_is_refused():
    for name in ("error_rate", "disparate_impact", "statistical_party"):
        with pytest.raises(UserError, match="unknown gap"):
            gap_named(name)


def test_the_certificate_of_a_space_that_was_tried_whole_is_nothing():
    whole, some = (answer(values) for values in ("1234", "12345"))
    assert whole.search.chance == whole.bounds[100]["true"] == whole.bounds[1]["seen"] == 0
    few, more = some.bounds[1], some.bounds[10]
    assert 0 < few["seen"] < few["true"] < more["true"] <= some.comparison.gaps[1][2]


def answer(values):
    """Return the answer of a search that has tried four of these values."""
    trials = [Trial({"learner.C": value}) for value in values[:4]]
    families = [Family({}, {}, (Dimension("learner.C", values, tuple(values)),))]
    search = DrawnSearch(Tuning(level=0.95), families, None, None, trials=trials)
    both, tried = compare_models(rows(), PARITY), [{"gap": 0.2}, {"gap": 0.05}]
    return Alternative("german", "sex", tried, 1, 0.0, 100, both, ("a", "b"), search=search)


@pytest.mark.thorough
def test_a_few_simulated_searches_are_covered():
    result = coverage(range(40), people=200, trials=40)
    assert (result.loc[["chance of better", "further gain"], "covered"] >= 0.95).all()
    assert (result["covered"] >= 0.85).all()


@pytest.mark.slow
def test_two_hundred_simulated_searches_are_covered():
    result = coverage(range(200), people=400)
    assert (result.loc[["gap", "error", "gap in use", "change of gap"], "covered"] >= 0.94).all()
    bounds = ["chance of better", "further gain", "gain of ten"]
    assert (result.loc[bounds, "covered"] >= 0.95).all()
    assert result.attrs["stopped by the rule"] > 0.3
