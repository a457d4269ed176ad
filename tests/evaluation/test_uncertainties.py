"""Rows for uncertainties by group: what is averaged, what is divided, and what is not."""

import numpy as np
import pytest

from fairbench import Evaluator, evaluate
from fairbench.core.errors import UserError
from fairbench.data.dataset import Task
from fairbench.evaluation.predictions import Groups
from fairbench.evaluation.table import OUTSIDE_BAND, VALUE, MetricTable
from fairbench.evaluation.uncertainties import (
    _skewed_means,
    evaluate_uncertainties,
    variances,
)
from tests.evaluation.labelled import by_place, labelled


def rows_of(data, *, minimum=1, negligible_sd=0.001, statistic=VALUE):
    table = MetricTable(minimum=minimum)
    evaluate_uncertainties(table, data, 0.2, negligible_sd)
    return by_place(table, statistic)


def two_groups(epistemic, aleatoric=None, n=200):
    """Return `n` rows of group a, then `n` of group b, with given mean uncertainties."""
    noise = np.random.default_rng(0).gamma(20, 1 / 20, (2, n))
    columns = {"epistemic": (noise * np.reshape(epistemic, (2, 1))).ravel()}
    columns["aleatoric"] = (noise * np.reshape(aleatoric or [0.2, 0.2], (2, 1))).ravel()
    zeros = np.zeros(2 * n)
    return labelled(zeros, "a" * n + "b" * n, prediction=zeros, **columns)


def test_group_means_and_ratios_are_those_of_the_columns():
    data = two_groups([0.01, 0.02])
    result, (a, b) = rows_of(data), data.column("epistemic").reshape(2, -1).mean(axis=1)
    for group, mean, n in (("", (a + b) / 2, 400), ("a", a, 200), ("b", b, 200)):
        row = next(
            row
            for (metric, of, _), row in result.items()
            if (metric, of) == ("epistemic_uncertainty", group)
        )
        assert row.value == pytest.approx(mean)
        assert (row.n, row.status) == (n, "ok")
        assert row.lower < mean < row.upper
    assert result["epistemic_uncertainty_ratio", "b", ""].value == pytest.approx(b / a)
    assert result["epistemic_uncertainty_difference", "b", ""].value == pytest.approx(b - a)
    outside = rows_of(data, statistic=OUTSIDE_BAND)
    assert outside["epistemic_uncertainty_ratio", "b", "band=0.2"].value > 0.999
    parts = sum(result[f"{part}_uncertainty", "b", ""].value for part in ("aleatoric", "epistemic"))
    assert result["predictive_uncertainty", "b", ""].value == pytest.approx(parts)


@pytest.mark.parametrize("reference", [6e-8, 0.0])
def test_nothing_is_divided_by_next_to_nothing(reference):
    """Adult's epistemic uncertainties by sex, of which the paper prints the ratio 521."""
    data = two_groups([reference, 3e-5])
    result, outside = rows_of(data), rows_of(data, statistic=OUTSIDE_BAND)
    for row in (
        result["epistemic_uncertainty_ratio", "b", ""],
        outside["epistemic_uncertainty_ratio", "b", "band=0.2"],
    ):
        assert np.isnan(row.value)
        assert row.status.startswith("undefined: epistemic_uncertainty of group 'a' is ")
        assert row.status.endswith("too near 0 to divide by")
    assert result["epistemic_uncertainty_difference", "b", ""].status == "ok"
    assert result["aleatoric_uncertainty_ratio", "b", ""].status == "ok"


def test_the_floor_is_an_option_and_of_the_targets_size_in_a_regression():
    small = two_groups([6e-8, 3e-5])
    ratio = rows_of(small, negligible_sd=0)["epistemic_uncertainty_ratio", "b", ""]
    assert ratio.value == pytest.approx(500, rel=0.1)
    target = np.tile([-1000.0, 1000.0], 20)
    data = labelled(
        target, "a" * 20 + "b" * 20, task=Task.REGRESSION, prediction=target, sd=np.full(40, 0.9)
    )
    row = rows_of(data)["predictive_uncertainty_ratio", "b", ""]
    assert row.status == (
        "undefined: predictive_uncertainty of group 'a' is 0.81, too near 0 to divide by"
    )


def test_a_single_model_has_a_predictive_uncertainty_that_is_not_split():
    scores = labelled([0, 1], prediction=[0, 1], score=[0.2, 0.5])
    assert {name: list(v) for name, v in variances(scores).items()} == {
        "predictive": pytest.approx([0.32, 0.5])
    }
    normals = labelled([0, 1], task=Task.REGRESSION, prediction=[0, 1], sd=[2, 3])
    assert {name: list(v) for name, v in variances(normals).items()} == {"predictive": [4, 9]}
    members = labelled([0, 1], task=Task.REGRESSION, prediction=[0, 1], epistemic=[2, 3])
    assert list(variances(members)) == ["epistemic"]
    assert not variances(labelled([0, 1], prediction=[0, 1], uncertainty=[1, 2]))
    assert not rows_of(labelled([0, 1], prediction=[0, 1]))


def test_few_and_missing_rows_are_said():
    data = labelled([0, 1, 0], "aab", prediction=[0, 1, 0], score=[0.2, 0.5, 0.4])
    row = rows_of(data, minimum=2)["predictive_uncertainty_ratio", "b", ""]
    assert (row.n, row.status) == (1, "insufficient: n=1 in group 'b'")
    assert np.isnan(row.lower)
    wider = labelled([0, 1, 0], "aab", prediction=[0, 1, 0], score=[0.2, 0.5, 0.4])
    wider.groups["g"] = wider.groups["g"].cat.add_categories(["c"])
    row = rows_of(wider)["predictive_uncertainty", "c", ""]
    assert (row.n, row.status) == (0, "undefined: no rows in group 'c'")


def test_invalid_standard_deviations_are_counted():
    data = labelled([0, 1, 2], "aab", task=Task.REGRESSION, prediction=[0, 1, 2], sd=[1, -1, 1])
    rows = rows_of(data)
    assert {row.status for row in rows.values()} == {"invalid: predictive invalid in 1 of 3 rows"}
    assert all(np.isnan(row.value) for row in rows.values())


def test_the_one_line_path_takes_the_two_variances_and_changes_nothing_else():
    draw = np.random.default_rng(0)
    target, prediction = draw.integers(2, size=(2, 100))
    parts = {name: draw.random(100) / 4 for name in ("aleatoric", "epistemic")}
    groups = ["a", "b"] * 50
    without = evaluate(target, prediction, sensitive_features=groups)
    table = evaluate(target, prediction, sensitive_features=groups, **parts)
    extra = table["metric"].str.contains("_uncertainty")
    assert extra.sum() == 3 * (3 + 3)
    assert table[~extra].reset_index(drop=True).equals(without)


def test_a_negative_floor_is_refused():
    with pytest.raises(UserError, match=r"^evaluator\.negligible_sd is -1"):
        Evaluator(negligible_sd=-1)


@pytest.mark.parametrize("rows", [(50, 50), (200, 200), (50, 500)])
@pytest.mark.parametrize("measure", ["gini", "gamma", "lognormal"])
def test_means_of_skewed_uncertainties_and_their_comparisons_cover(measure, rows):
    """At least 93 %, and three standard errors."""
    draw, count = np.random.default_rng(sum(rows)), 1000
    sample = {
        "gini": lambda shape: (lambda p: 2 * p * (1 - p))(draw.beta(1, 3, shape)),
        "gamma": lambda shape: draw.gamma(0.5, 1, shape),
        "lognormal": lambda shape: draw.lognormal(0, 1, shape),
    }[measure]
    truth = sample(2_000_000).mean()
    values = sample((sum(rows), count)).T
    groups = Groups("g", ("a", "b"), np.repeat([0, 1], rows))
    means, differences, ratios, _ = _skewed_means(values, groups, 0.95, 0.2)
    for (_, lower, upper), true in ((means, truth), (differences, 0), (ratios, 1)):
        lower, upper = lower[:, 0, 1], upper[:, 0, 1]
        assert ((lower <= true) & (true <= upper)).mean() > 0.93 - 3 * 0.008


def test_few_rows_have_values_without_intervals():
    data = labelled(np.zeros(60), "a" * 40 + "b" * 20, prediction=np.zeros(60), score=[0.3] * 60)
    row = rows_of(data)["predictive_uncertainty_ratio", "b", ""]
    assert (row.value, row.status) == (1, "insufficient: n=20, an interval needs 50")
    assert np.isnan(row.lower)
