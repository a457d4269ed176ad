"""Rows for abstention: by hand on eight rows, and what the chosen rate may depend on."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench import Evaluator
from fairbench.core.arrays import rng
from fairbench.data.dataset import Task
from fairbench.evaluation.abstention import _RowsByUncertainty, can_abstain, evaluate_abstention
from fairbench.evaluation.predictions import Labelled
from fairbench.evaluation.table import MetricTable
from fairbench.metrics.uncertainty import keep_weights
from tests.evaluation.labelled import by_place, labelled

# Target, prediction, uncertainty, group: the two most uncertain rows are the two errors.
EIGHT = [
    (1, 1, 0.10, "a"), (0, 0, 0.20, "a"), (1, 0, 0.60, "a"), (0, 0, 0.30, "a"),
    (1, 1, 0.15, "b"), (0, 1, 0.50, "b"), (0, 0, 0.25, "b"), (1, 1, 0.35, "b"),
]  # fmt: skip


def data(rows=EIGHT):
    target, prediction, uncertainty, groups = zip(*rows, strict=True)
    return labelled(target, groups, prediction=prediction, uncertainty=uncertainty)


def rows_of(test, chooser=None, *, rates=(), candidates=(0.0,)):
    table = MetricTable()
    evaluate_abstention(table, test, chooser, rates, candidates, "g")
    return by_place(table)


@pytest.mark.parametrize(
    ("rate", "error", "parity", "odds", "kept"),
    [(0.0, 2 / 8, 1 / 2, 1 / 2, 8), (0.25, 0, 1 / 3, 0, 6), (0.5, 0, 0, 0, 4)],
)
def test_curves_by_hand(rate, error, parity, odds, kept):
    rows = rows_of(data(), rates=[rate])
    expected = {"error_rate": error, "statistical_parity": parity, "equalized_odds": odds}
    for name, value in expected.items():
        row = rows["abstention_" + name, "", f"rate={rate:g}"]
        assert row.value == pytest.approx(value)
        assert (row.n, row.status, row.attribute) == (kept, "ok", "g")


def test_error_and_abstention_of_each_group_by_hand():
    # Of the five rows kept at 3/8, three are of a (0.1, 0.2, 0.3) and two of b (0.15, 0.25).
    rows = rows_of(data(), rates=[0, 3 / 8])
    for group, error, kept in (("a", 1 / 4, 3), ("b", 1 / 4, 2)):
        assert rows["abstention_error_rate", group, "rate=0"].value == pytest.approx(error)
        assert rows["abstention_rate", group, "rate=0"].value == 0
        row = rows["abstention_error_rate", group, "rate=0.375"]
        assert (row.value, row.n) == (0, kept)
        share = rows["abstention_rate", group, "rate=0.375"]
        assert (share.value, share.n) == (pytest.approx(1 - kept / 4), 4)


def test_tied_rows_count_with_the_share_kept():
    rows = [(1, 0, 0.5, "a"), (1, 1, 0.5, "a"), (0, 0, 0.5, "b"), (0, 0, 0.5, "b")]
    result = rows_of(data(rows), rates=[0.5])
    error = result["abstention_error_rate", "", "rate=0.5"]
    assert (error.value, error.n) == (pytest.approx(1 / 4), 2)
    assert result["abstention_rate", "a", "rate=0.5"].value == pytest.approx(0.5)
    assert result["abstention_error_rate", "a", "rate=0.5"].n == 1


LACKS = "undefined: a group of the rows kept lacks what it is a share of"


@pytest.mark.parametrize(
    ("rate", "metric", "group", "status"),
    [
        (0.75, "error_rate", "", "ok"),
        (0.75, "statistical_parity", "", "ok"),
        (0.75, "equalized_odds", "", LACKS),
        (0.75, "error_rate", "b", "ok"),
        (0.875, "error_rate", "", "ok"),
        (0.875, "statistical_parity", "", LACKS),
        (0.875, "error_rate", "a", "ok"),
        (0.875, "error_rate", "b", "undefined: no rows kept in group 'b'"),
        (0.875, "rate", "b", "ok"),
    ],
)
def test_statuses_of_what_too_few_rows_leave_undefined(rate, metric, group, status):
    row = rows_of(data(), rates=[rate])["abstention_" + metric, group, f"rate={rate:g}"]
    assert row.status == status
    assert np.isnan(row.value) == (status != "ok")


def test_a_group_without_rows():
    empty = data()
    labels = empty.groups["g"].cat.add_categories(["z"])
    rows = rows_of(replace(empty, groups={"g": labels}), rates=[0])
    assert rows["abstention_rate", "z", "rate=0"].status == "undefined: no rows in group 'z'"
    error = rows["abstention_error_rate", "z", "rate=0"]
    assert (error.status, error.n) == ("undefined: no rows kept in group 'z'", 0)


def test_area_under_the_risk_coverage_curve_by_hand():
    row = rows_of(data())["area_under_risk_coverage", "", ""]
    assert row.value == pytest.approx((1 / 7 + 2 / 8) / 8)
    assert row.n == 8


@pytest.mark.parametrize(("candidates", "best"), [((0, 0.25), 0.25), ((0, 0.25, 0.5), 0.5)])
def test_the_chosen_rate_has_the_least_normalised_sum(candidates, best):
    rows = rows_of(data(), data(), candidates=candidates)
    assert rows["abstention_chosen_rate", "", ""].value == best
    parity = rows["abstained_statistical_parity", "", ""]
    assert parity.value == pytest.approx({0.25: 1 / 3, 0.5: 0}[best])


def test_a_rate_that_leaves_an_objective_undefined_is_not_chosen():
    # Odds are equal (0) among all rows; without the errors no group has a negative.
    rows = [(1, 1, 0.1, g) for g in "aabb"] + [(0, 1, 0.9, g) for g in "ab"]
    result = rows_of(data(rows), data(rows), candidates=(0, 1 / 3))
    assert result["abstention_chosen_rate", "", ""].value == 0


def test_an_objective_undefined_for_all_rows_has_no_say():
    rows = [(1, 1, 0.1, "a"), (1, 1, 0.1, "b"), (1, 1, 0.2, "a"), (1, 0, 0.9, "b")]
    assert np.isnan(rows_of(data(rows), rates=[0])["abstention_equalized_odds", "", "rate=0"].value)
    result = rows_of(data(rows), data(rows), candidates=(0, 1 / 4))
    assert result["abstention_chosen_rate", "", ""].value == 0.25


# --- through the evaluator


def simulated(seed, n=300):
    draw = np.random.default_rng(seed)
    target, prediction = draw.integers(2, size=(2, n))
    uncertainty = draw.random(n) + (target != prediction) * 0.3
    return labelled(
        target, draw.choice(["a", "b"], n), prediction=prediction, uncertainty=uncertainty
    )


def permuted(labelled_rows, seed=9):
    target = np.random.default_rng(seed).permutation(labelled_rows.target)
    return replace(labelled_rows, target=target)


def evaluated(test, validation, **options):
    table = Evaluator(draws=100, **options).table(
        test, [rng(0, "posterior")], validation=validation
    )
    return by_place(table)


def chosen(*arguments, **options):
    return evaluated(*arguments, **options)["abstention_chosen_rate", "", ""]


def best_by_hand(rows):
    """Return the best of the candidates by subsets of the rows, of which no two tie."""
    order, best = np.argsort(rows.column("uncertainty")), (np.inf, None)
    target, prediction = rows.target == 1, rows.column("prediction") == 1
    first = (rows.groups["g"] == "a").to_numpy()

    def objectives(kept):
        y, p, a = target[kept], prediction[kept], first[kept]
        gaps = [abs(p[a & c].mean() - p[~a & c].mean()) for c in (y | ~y, y, ~y)]
        return np.array([(y != p).mean(), gaps[0], max(gaps[1:])])

    everyone = objectives(order)
    for rate in (i / 100 for i in range(26)):
        total = (objectives(order[: len(order) - round(rate * len(order))]) / everyone).sum()
        best = min(best, (total, rate), key=lambda pair: pair[0])
    return best[1]


@pytest.mark.parametrize("seed", range(3))
def test_the_rate_is_chosen_on_the_rows_named(seed):
    test, validation = simulated(seed), simulated(seed + 50, n=200)
    on_validation = chosen(test, validation)
    assert (on_validation.value, on_validation.n) == (best_by_hand(validation), 200)
    on_test = chosen(test, validation, choose_on="test")
    assert (on_test.value, on_test.n) == (best_by_hand(test), 300)
    assert chosen(test, None, choose_on="test").value == on_test.value


@pytest.mark.thorough
def test_a_rate_chosen_on_validation_rows_never_depends_on_test_targets():
    test, validation = simulated(0), simulated(51, n=200)
    rates = {chosen(permuted(test, seed), validation).value for seed in range(6)}
    assert rates == {chosen(test, validation).value}
    others = {chosen(permuted(test, seed), validation, choose_on="test").value for seed in range(6)}
    assert len(others) > 1


def test_without_validation_rows_no_rate_is_chosen():
    result = evaluated(simulated(0), None)
    assert not [key for key in result if "chosen" in key[0] or "abstained" in key[0]]
    assert ("abstention_error_rate", "", "rate=0.5") in result


def test_the_protected_attribute_is_the_one_judged_by():
    rows = simulated(0)
    two = replace(rows, groups={"g": rows.groups["g"], "h": rows.groups["g"]})
    for protect, attribute in (("", "g"), ("h", "h")):
        table = Evaluator(draws=100).table(two, [rng(0, "posterior")], protect=protect).frame()
        curves = table[table["metric"] == "abstention_error_rate"]
        assert set(curves["attribute"]) == {attribute}


def test_only_ordered_classifications_abstain():
    assert can_abstain(data())
    assert not can_abstain(labelled([1, 0], prediction=[1, 0]))
    values = labelled([1, 2], prediction=[1, 2], uncertainty=[1, 2], task=Task.REGRESSION)
    assert not can_abstain(values)


def test_what_is_kept_of_several_splits_is_the_sum_of_the_weights_of_each():
    draw, splits, shares = np.random.default_rng(2), [], np.array([0, 0.07, 0.3, 0.5, 0.99])
    for n in (40, 7, 90):
        kinds = draw.integers(2, size=(2, n)), np.append(["a", "b"], draw.choice(["a", "b"], n - 2))
        (target, prediction), groups = kinds
        uncertainty = np.round(draw.random(n), 1)
        splits.append(labelled(target, groups, prediction=prediction, uncertainty=uncertainty))
    rates = np.stack([shares, shares, shares[::-1]], axis=1)
    counts = _RowsByUncertainty.of(Labelled.joined(splits), "g").counts(rates)
    for s, split in enumerate(splits):
        kept = keep_weights(split.column("uncertainty"), rates[:, s])
        for k, weights in enumerate(kept):
            chosen = split.coded["g"].codes, split.target, split.column("prediction")
            direct = np.zeros((2, 2, 2))
            np.add.at(direct, tuple(cells.astype(int) for cells in chosen), weights)
            np.testing.assert_allclose(counts[k, s], direct.reshape(2, 4), atol=1e-12)
