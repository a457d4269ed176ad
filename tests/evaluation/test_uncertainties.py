"""Rows for uncertainties: means and ratios by group, spread over variants, and among neighbours."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench import Evaluator
from fairbench.data.dataset import Task
from fairbench.evaluation import uncertainties
from fairbench.evaluation.table import OUTSIDE_BAND, VALUE
from fairbench.metrics.uncertainty import individual_fairness
from tests.evaluation.labelled import added, by_place, evaluate, labelled, table_of


def rows_of(data, *, minimum=1, negligible_sd=0.001, statistic=VALUE):
    given = uncertainties.evaluate_uncertainties, data, 0.2, negligible_sd
    return added(*given, minimum=minimum, statistic=statistic)


def two_groups(*epistemic, n=200):
    """Return `n` rows of group a, then `n` of group b, with given mean uncertainties."""
    noise = np.random.default_rng(0).gamma(20, 1 / 20, (2, n))
    columns = {"epistemic": (noise * np.reshape(epistemic, (2, 1))).ravel()}
    columns["aleatoric"] = 0.2 * noise.ravel()
    zeros = np.zeros(2 * n)
    return labelled(zeros, "a" * n + "b" * n, prediction=zeros, **columns)


def test_group_means_and_ratios_are_those_of_the_columns():
    data = two_groups(0.01, 0.02)
    result, (a, b) = rows_of(data), data.column("epistemic").reshape(2, -1).mean(axis=1)
    for group, mean, n in (("", (a + b) / 2, 400), ("a", a, 200), ("b", b, 200)):
        row = result["epistemic_uncertainty", group, ""]
        assert row.value == pytest.approx(mean)
        assert (row.n, row.status) == (n, "ok")
        assert row.lower < mean < row.upper
    for form, value in (("ratio", b / a), ("difference", b - a)):
        row = result[f"epistemic_uncertainty_{form}", "b", ""]
        assert row.value == pytest.approx(value)
        assert 0.9 * value < row.lower < value < row.upper < 1.15 * value
    outside = rows_of(data, statistic=OUTSIDE_BAND)
    assert outside["epistemic_uncertainty_ratio", "b", "band=0.2"].value > 0.999
    parts = sum(result[f"{part}_uncertainty", "b", ""].value for part in ("aleatoric", "epistemic"))
    assert result["predictive_uncertainty", "b", ""].value == pytest.approx(parts)
    columns = {name: data.column(name) for name in ("aleatoric", "epistemic")}
    groups = data.groups["g"].astype(str)
    table = by_place(evaluate(data.target, data.target, sensitive_features=groups, **columns))
    for place, row in result.items():
        assert table[place].value == pytest.approx(row.value)


@pytest.mark.parametrize("reference", [6e-8, 0.0])
def test_nothing_is_divided_by_next_to_nothing(reference):
    """Adult's epistemic uncertainties by sex, of which the paper prints the ratio 521."""
    data = two_groups(reference, 3e-5)
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
    small = rows_of(two_groups(6e-8, 3e-5), negligible_sd=0)
    assert small["epistemic_uncertainty_ratio", "b", ""].value == pytest.approx(500, rel=0.1)
    target = np.tile([-1000.0, 1000.0], 20)
    of = {"task": Task.REGRESSION, "prediction": target, "sd": np.full(40, 0.9)}
    rows = rows_of(labelled(target, "a" * 20 + "b" * 20, **of))
    said = rows["predictive_uncertainty_ratio", "b", ""].status
    assert said.startswith("undefined: predictive_uncertainty of group 'a' is 0.81, too near 0")


def test_a_single_model_has_a_predictive_uncertainty_that_is_not_split():
    for task, columns, expected in (
        (Task.BINARY, {"score": [0.2, 0.5]}, {"predictive": [0.32, 0.5]}),
        (Task.REGRESSION, {"sd": [2, 3]}, {"predictive": [4, 9]}),
        (Task.REGRESSION, {"epistemic": [2, 3]}, {"epistemic": [2, 3]}),
        (Task.BINARY, {"uncertainty": [1, 2]}, {}),
    ):
        result = uncertainties._variances(labelled([0, 1], task=task, prediction=[0, 1], **columns))
        assert {name: list(values) for name, values in result.items()} == {
            name: pytest.approx(values) for name, values in expected.items()
        }


def test_few_missing_and_invalid_rows_are_said():
    data = labelled(np.zeros(60), "a" * 40 + "b" * 20, prediction=np.zeros(60), score=[0.3] * 60)
    row = rows_of(data)["predictive_uncertainty_ratio", "b", ""]
    assert (row.value, row.status) == (1, "insufficient: n=20, an interval needs 50")
    row = rows_of(data, minimum=21)["predictive_uncertainty_ratio", "b", ""]
    assert (row.n, row.status) == (20, "insufficient: n=20 in group 'b'")
    assert np.isnan(row.lower)
    data.groups["g"] = data.groups["g"].cat.add_categories(["c"])
    row = rows_of(replace(data))["predictive_uncertainty", "c", ""]
    assert (row.n, row.status) == (0, "undefined: no rows in group 'c'")
    sds = labelled([0, 1, 2], "aab", task=Task.REGRESSION, prediction=[0, 1, 2], sd=[1, -1, 1])
    rows = rows_of(sds).values()
    assert {row.status for row in rows} == {"invalid: predictive invalid in 1 of 3 rows"}
    assert all(np.isnan(row.value) for row in rows)


# Consistency: spread over variants and over draws.

DEPTHS = {"max_depth=5": [0.1, 0.2, 0.4], "max_depth=6": [0.3, 0.2, 0.0]}
DRAWS = {"replicate=1": [0.0, 0.0, 0.3], "replicate=2": [0.0, 0.3, 0.3], "replicate=3": [0, 0, 0]}


def spread_of(uncertainty):
    values = {name: np.array(u, float) for name, u in uncertainty.items()}
    rows = added(uncertainties.evaluate_consistency, values)
    return {(metric, setting): row for (metric, _, setting), row in rows.items()}


def test_spread_over_variants_and_the_noise_of_replicates_by_hand():
    rows = spread_of({**DEPTHS, **DRAWS})
    # Individuals' population sds are 0.1, 0 and 0.2; their ranges twice that.
    of_depths = {"max_sd": 0.2, "mean_sd": 0.1, "mean_range": 0.2}
    of_draws = {"max_sd": 0.02**0.5, "mean_sd": 2 / 3 * 0.02**0.5, "mean_range": 0.2}
    for kind, variants, values in (("consistency", 2, of_depths), ("noise", 3, of_draws)):
        for name, value in values.items():
            row = rows[f"{kind}_{name}", f"variants={variants}"]
            assert (row.value, row.n, row.status) == (pytest.approx(value), 3, "ok")
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        row = rows["consistency_sd", f"variants=2 quantile={q:g}"]
        assert row.value == pytest.approx(0.2 * q)
    assert len(rows) == 2 * (3 + 5)


@pytest.mark.parametrize("few", [{}, {"max_depth=5": [0.1]}, {"replicate=1": [0.1], "x=2": [0]}])
def test_one_variant_has_no_spread(few):
    assert spread_of(few) == {}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_uncertainty_that_does_not_exist_makes_every_row_undefined(bad):
    for row in spread_of({**DEPTHS, "max_depth=7": [0.1, bad, 0.1]}).values():
        assert np.isnan(row.value)
        assert row.status == "invalid: uncertainty invalid in 1 of 3 rows"


# Individual fairness: whose, of what, among how many neighbours.

DRAW = np.random.default_rng(0)
TARGET, PREDICTION = DRAW.integers(2, size=(2, 80))
SCORE, ENCODED = DRAW.random(80), DRAW.random((80, 3))
SIMILAR = "individual_fairness_prediction"


def people(groups="ab" * 40, **columns):
    columns = {"prediction": PREDICTION, "score": SCORE, **columns}
    return replace(labelled(TARGET, groups, **columns), encoded=ENCODED)


def similar_rows(rows, k=3):
    return added(uncertainties.evaluate_individual, rows, k, "g")


def test_every_part_has_the_mean_fairness_of_its_rows():
    result, fairness = similar_rows(people()), individual_fairness(ENCODED, 3)(SCORE)
    group = np.array(list("ab" * 40))
    parts = {("", ""): np.ones(80, bool), ("b", ""): group == "b"}
    parts["a", "outcome=FP "] = (group == "a") & (TARGET == 0) & (PREDICTION == 1)
    parts["b", "outcome=FN "] = (group == "b") & (TARGET == 1) & (PREDICTION == 0)
    for (of, prefix), rows in parts.items():
        for k in (1, 3):
            row = result[SIMILAR, of, f"{prefix}k={k}"]
            assert row.value == pytest.approx(fairness[rows, k - 1].mean())
            few = f"insufficient: n={rows.sum()}, an interval needs 20"
            assert (row.n, row.status) == (rows.sum(), few if rows.sum() < 20 else "ok")
    measures, parts_of_two_groups = 2, 1 + 2 * 5
    assert len(result) == measures * parts_of_two_groups * 3


def test_labels_stand_in_for_scores_and_variances_are_compared_too():
    rows = similar_rows(people(aleatoric=SCORE / 4, epistemic=SCORE / 5))
    names = {metric.removeprefix("individual_fairness_") for metric, *_ in rows}
    assert names == {"prediction", "aleatoric", "epistemic", "predictive"}
    labels = people()
    rows = similar_rows(replace(labels, predictions=labels.predictions[["prediction"]]))
    expected = individual_fairness(ENCODED, 1)(PREDICTION.astype(float)).mean()
    assert rows[SIMILAR, "", "k=1"].value == pytest.approx(expected)


def test_missing_outcomes_groups_and_neighbours_are_said():
    """Nobody of 80 has 80 neighbours, however many are asked for: there are no rows for them."""
    rows = people("a" * 80, prediction=TARGET)
    rows.groups["g"] = rows.groups["g"].cat.add_categories(["b"])
    result = similar_rows(rows, k=100_000)
    assert result[SIMILAR, "a", "outcome=FP k=1"].status == "undefined: no FP in group 'a'"
    assert result[SIMILAR, "b", "k=1"].status == "undefined: no rows in group 'b'"
    assert result[SIMILAR, "a", "k=79"].status == "ok"
    assert {*result} == {*similar_rows(rows, k=79)}
    alone = similar_rows(rows.take(np.arange(1)))[SIMILAR, "", "k=1"]
    assert alone.status == "undefined: nobody has 1 neighbours"


def test_individual_fairness_is_asked_for_and_of_encoded_labels_only():
    tables = (table_of(people(), Evaluator(neighbours=k)).frame() for k in (0, 2))
    without, added = (set(table["metric"]) for table in tables)
    assert {name.rpartition("_")[0] for name in added - without} == {"individual_fairness"}
    assert not similar_rows(replace(people(), task=Task.REGRESSION))
    assert not similar_rows(replace(people(), encoded=None))
