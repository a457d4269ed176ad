"""The fairest of many runs, and an alternative to a model in use; what is made small."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.alternative import coverage
from fairbench.core.errors import UserError
from fairbench.metrics.registry import BINARY, confusion, metrics_of, named
from fairbench_search.alternative import Alternative, compare_models, gap_named
from fairbench_search.choice import Shared, SharedRows, _estimates, choose_among
from fairbench_search.gains import GoalRows, together
from fairbench_search.goals import Goal, Tuning, goals
from fairbench_search.tuning import Dimension, DrawnSearch, Family, Trial

PEOPLE, SPLITS = 400, 10


def holdouts(runs, own, seed=0):
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
    return choose_among(Shared((), shared, None, []), named(metric, BINARY), ())


@pytest.mark.parametrize("metric", ["error_rate", "statistical_parity"])
def test_runs_that_predict_the_same_need_no_correction_and_others_do(metric):
    def ratio(own):
        judged = choice(holdouts(20, own), metric).judged[0]
        return np.diff(judged["corrected"])[0] / np.diff(judged["naive"])[0]

    assert ratio(own=False) == pytest.approx(1, abs=0.03)
    assert ratio(own=True) > 1.01


def test_a_choice_has_the_same_bits_again():
    first, second = (choice(holdouts(5, own=True), "statistical_parity") for _ in range(2))
    assert first.judged == second.judged


def with_copy(shared, of):
    """Return the same runs and one more, which predicts what one of them does."""
    columns = [*range(shared.prediction.shape[1]), of]
    return replace(shared, prediction=shared.prediction[:, columns])


def test_a_run_that_predicts_the_same_as_the_chosen_one_ties_with_it():
    shared = holdouts(5, own=True)
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
    shared = holdouts(4, own=True)
    shared.prediction[:, :2] = [0, 1]  # rates of 0 and of 1
    for of in range(4):
        twin = with_copy(shared, of)
        result = choice(twin, "equalized_odds")
        assert result.near[-1] == result.near[of] and result.larger[-1] == result.larger[of]
        estimates = _estimates(twin, named("equalized_odds", BINARY), (), [])
        noise = estimates.candidates.part_noise
        np.testing.assert_array_equal(noise[:, of], noise[:, -1])


PARITY = gap_named("statistical_parity")


def people(count=400, seed=0):
    """Return people, and two models of which the second selects less in the first group."""
    rng = np.random.default_rng(seed)
    label, group = rng.integers(0, 2, count), rng.integers(0, 2, count)
    first = (rng.random(count) < np.where(group == 0, 0.7, 0.4)).astype(int)
    second = np.where((group == 0) & (rng.random(count) < 0.4), 0, first)
    nothing = np.zeros(count, int)
    predicted = np.column_stack([first, second])
    return SharedRows(nothing, nothing, np.arange(count), label, group, predicted, ("a", "b"))


def test_values_are_those_of_the_predictions_and_lie_in_their_intervals():
    shared = people()
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
    shared = people()
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
    shared = people()
    same = SharedRows(
        shared.repeat, shared.fold, shared.row, shared.target, shared.group,
        shared.prediction[:, [0, 0]], shared.names,
    )  # fmt: skip
    both = compare_models(same, PARITY)
    assert both.gap_change[0] == both.error_change[0] == 0 and both.verdict == "open"
    assert all(flip["gained"] == flip["lost"] == 0 for flip in both.flips)


def test_rows_that_judged_several_candidates_have_wider_intervals():
    one, three = (compare_models(people(), PARITY, looks=looks) for looks in (1, 3))
    assert one.gaps[1][0] == three.gaps[1][0]
    for name in ("gap_change", "error_change"):
        narrow, wide = getattr(one, name), getattr(three, name)
        assert wide[1] < narrow[1] and narrow[2] < wide[2]
    assert three.flips[-1]["share"][2] > one.flips[-1]["share"][2]


@pytest.mark.parametrize("metric", ["equalized_odds", "predictive_parity", "accuracy_gap"])
def test_every_gap_can_be_made_smaller(metric):
    both = compare_models(people(), gap_named(metric))
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
    both, tried = compare_models(people(), PARITY), [{"gap": 0.2}, {"gap": 0.05}]
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


NAMES = ("error_rate", "accuracy", "f1_score", "balanced_accuracy", "brier_score", "log_loss",
         "statistical_parity", "equalized_odds", "predictive_parity")  # fmt: skip


def judged_rows(n=300, seed=0, fold=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    score = np.clip(rng.random(n) * 0.8 + 0.1 * group, 0.01, 0.99)
    target = (rng.random(n) < score).astype(float)
    prediction = (score > 0.5).astype(float)
    columns = {"score": score, "prediction": prediction}
    return GoalRows(np.full(n, fold), np.arange(n), target, group, columns, 3)


def value(name, given):
    """Return the metric as the registry has it."""
    metric = metrics_of("binary")[name]
    if not metric.rates:
        return metric(given.target, *(given.columns[need] for need in metric.needs)).mean()
    group = given.group if metric.is_gap else np.zeros(len(given.target), int)
    counts = confusion(given.target, given.columns["prediction"], group, n_groups=given.groups)
    counts = counts.reshape(-1, 4) if metric.is_gap else counts.sum(axis=0).reshape(4)
    return float(metric(counts))


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_metric_and_errors_what_a_row_changes(name):
    (goal,), given = goals([name], "binary"), judged_rows()
    result = goal.estimate(given)
    assert goal.sign * result.value == pytest.approx(value(name, given))
    without = []
    for left_out in range(0, 300, 30):
        kept = np.arange(300) != left_out
        columns = {key: values[kept] for key, values in given.columns.items()}
        parts = (column[kept] for column in (given.fold, given.unit, given.target, given.group))
        without.append(goal.sign * value(name, GoalRows(*parts, columns, 3)))
    changes = result.value - np.array(without)
    assert result.linear[::30] == pytest.approx(changes, rel=0.1, abs=2e-4)


def test_folds_are_put_together_and_taken_apart_again():
    parts = [judged_rows(50, seed=fold, fold=fold) for fold in range(3)]
    whole = together(parts)
    (goal,) = goals(["error_rate"], "binary")
    assert len(whole.target) == 150
    first = goal.estimate(whole.first(1))
    assert first.value == goal.estimate(parts[0]).value


def test_a_group_without_positives_is_left_out_of_the_gap_and_no_group_at_all_is_no_value():
    given = judged_rows()
    target = np.where(given.group == 2, 0, given.target)
    few = GoalRows(given.fold, given.unit, target, given.group, given.columns, 3)
    (goal,) = goals(["equal_opportunity"], "binary")
    assert np.isfinite(goal.estimate(few).value)
    assert len(goal.estimate(few).sides) == 2
    none = GoalRows(given.fold, given.unit, 0 * target, given.group, given.columns, 3)
    assert np.isnan(goal.estimate(none).value)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["eror_rate"], "unknown objective to tune for 'eror_rate': did you mean error_rate"),
        (["roc_auc"], "unknown objective to tune for 'roc_auc'; valid: "),
        ([], "objectives= is empty"),
        (["brier_score", "brier_score"], "names one twice"),
    ],
)
def test_other_objectives_are_refused(names, message):
    with pytest.raises(UserError, match=message):
        goals(names, "binary")


def test_an_objective_of_what_the_method_does_not_give_is_refused():
    given = judged_rows()
    labels = {"prediction": given.columns["prediction"]}
    bare = GoalRows(given.fold, given.unit, given.target, given.group, labels, 3)
    with pytest.raises(UserError, match="needs a score"):
        Goal(metrics_of("binary")["log_loss"]).estimate(bare)
