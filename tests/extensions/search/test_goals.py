"""What tuning makes small: the values are the registry's, and errors those of leaving rows out."""

import numpy as np
import pytest

from fairbench.core.errors import UserError
from fairbench.metrics.registry import confusion, metrics_of
from fairbench_search.goals import Goal, GoalRows, goals, together

NAMES = ("error_rate", "accuracy", "f1_score", "balanced_accuracy", "brier_score", "log_loss",
         "statistical_parity", "equalized_odds", "predictive_parity")  # fmt: skip


def rows(n=300, seed=0, fold=0):
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
    (goal,), given = goals([name], "binary"), rows()
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
    parts = [rows(50, seed=fold, fold=fold) for fold in range(3)]
    whole = together(parts)
    (goal,) = goals(["error_rate"], "binary")
    assert len(whole.target) == 150
    first = goal.estimate(whole.first(1))
    assert first.value == goal.estimate(parts[0]).value


def test_a_group_without_positives_is_left_out_of_the_gap_and_no_group_at_all_is_no_value():
    given = rows()
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
    given = rows()
    labels = {"prediction": given.columns["prediction"]}
    bare = GoalRows(given.fold, given.unit, given.target, given.group, labels, 3)
    with pytest.raises(UserError, match="needs a score"):
        Goal(metrics_of("binary")["log_loss"]).estimate(bare)
