"""Every declared metric: a plain sentence, a function that runs, and NaN with a reason."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.metrics import confusion_matrix

from fairbench import evaluate
from fairbench.evaluation.table import setting_text
from fairbench.metrics import registry
from fairbench.metrics import registry as rates
from fairbench.metrics.registry import (
    BINARY,
    FN,
    FP,
    MULTICLASS,
    REGRESSION,
    TN,
    TP,
    Metric,
    binary_confusion,
    confusion,
    declared,
    find,
    label,
    metrics_of,
    total,
)

COUNTS = np.array([[5, 2, 3, 7], [4, 1, 6, 9]])
CLASS_COUNTS = np.array([[[5, 2, 3], [1, 7, 2], [0, 2, 4]], [[4, 1, 6], [3, 9, 1], [2, 2, 8]]])
ROWS = {
    "target": np.array([0.0, 1, 1, 0, 1, 0]),
    "prediction": np.array([0.0, 1, 0, 1, 1, 0]),
    "score": np.array([0.2, 0.9, 0.4, 0.6, 0.7, 0.1]),
    "uncertainty": np.array([0.1, 0.2, 0.5, 0.4, 0.3, 0.2]),
    "sd": np.array([0.1, 0.2, 0.5, 0.4, 0.3, 0.2]),
}
ROWS["sd_or_uncertainty"] = ROWS["sd"]
ROWS |= {"frames": np.array([[3], [9], [5], [1], [7], [4]]), "frames_read": np.array([5])}
ROWS["scores"] = np.stack([1 - ROWS["score"], ROWS["score"] / 3, ROWS["score"] * 2 / 3], axis=1)


def arguments(metric):
    """Return small arrays of the kind that a metric's function takes."""
    if metric.interval == "rate":
        return [COUNTS]
    if metric.interval in ("widest", "difference", "ratio"):
        return [COUNTS]
    if metric.task == MULTICLASS and "prediction" in metric.needs:
        return [CLASS_COUNTS if "groups" in metric.needs else CLASS_COUNTS[0]]
    if "groups" in metric.needs:
        columns = [name for name in metric.needs if name != "groups"] or ["target"]
        columns = ["target", *columns] if "score" in columns else columns
        return [[ROWS[name][:3], ROWS[name][3:]] for name in columns]
    return [ROWS["target"], *(ROWS[name] for name in metric.needs)]


def test_every_metric_is_declared_in_plain_words_and_runs():
    assert len(declared()) > 40
    for metric in declared():
        assert metric.name.replace("_", "").isalnum(), metric
        assert metric.label, metric
        assert metric.sentence[0].isupper(), metric
        assert metric.sentence.endswith("."), metric
        assert 4 <= len(metric.sentence.split()) <= 20, metric
        assert metric.task in (BINARY, MULTICLASS, REGRESSION), metric
        assert metric.needs, metric
        assert metric.epsilon > 0, metric
        shape = {"rate": (2,), "difference": (1,), "ratio": (1,), "mean": (6,), "heavy_mean": (6,)}
        value = np.asarray(metric(*arguments(metric)))
        assert value.shape == shape.get(metric.interval, ()), metric
        assert np.isfinite(value).all(), metric


def test_a_name_has_one_label_and_one_direction_whatever_the_task():
    for metric in declared():
        other = find(metric.name)
        assert (other.label, other.better) == (metric.label, metric.better)
        assert label(metric.name) == metric.label
    assert label("abstention_error_rate") == "abstention error rate"


def test_functions_of_counts_are_undefined_without_rows():
    for metric in metrics_of(BINARY, "rate", "widest", "difference", "ratio").values():
        assert metric.rates, metric
        assert np.isnan(metric(np.zeros_like(COUNTS))).all(), metric


@pytest.mark.parametrize("task", [BINARY, REGRESSION])
def test_the_evaluator_reports_every_metric_and_gives_each_nan_a_reason(task):
    columns = {name: ROWS[name] for name in ("prediction", "uncertainty", "sd")}
    score = ROWS["score"] if task == BINARY else None
    table = evaluate(
        ROWS["target"], **columns, score=score, task=task, sensitive_features=list("aaabbb")
    )
    of_arrays = {name for name, metric in metrics_of(task).items() if "frames" not in metric.needs}
    assert of_arrays <= set(table["metric"])
    undefined = table["value"].isna()
    assert (table.loc[undefined, "status"] != "ok").all()
    # Who has no reason is ok and has an interval; who is ok without one has a reason, too.
    certain = table["status"].eq("ok") & table["lower"].notna()
    assert (certain == table["reason"].eq("")).all()
    assert setting_text(table).notna().all()


def test_a_new_rate_and_a_new_loss_are_one_declaration_each(monkeypatch):
    def share_of_hits(counts):
        return counts[..., 3] / counts.sum(axis=-1)

    common = {"label": "x", "sentence": "What is new here.", "task": BINARY, "better": "higher"}
    hits = Metric(
        name="share_of_hits", needs=("prediction",), interval="rate", function=share_of_hits,
        rates=metrics_of(BINARY, "rate")["accuracy"].rates, **common,
    )  # fmt: skip
    linear = Metric(
        name="linear_loss", needs=("score",), interval="mean",
        function=lambda target, score: np.abs(target - score), **common,
    )  # fmt: skip
    every = (*declared(), hits, linear)
    registry.metrics_of.cache_clear()
    monkeypatch.setattr(registry, "declared", lambda: every)
    try:
        table = evaluate(
            ROWS["target"],
            ROWS["prediction"],
            score=ROWS["score"],
            sensitive_features=list("aabbab"),
        )
    finally:
        registry.metrics_of.cache_clear()
    result = table[table["attribute"] == ""].set_index("metric")
    assert result["value"]["share_of_hits"] == pytest.approx(2 / 6)
    assert 0 < result["lower"]["share_of_hits"] < 2 / 6 < result["upper"]["share_of_hits"] < 1
    assert result["value"]["linear_loss"] == pytest.approx(np.mean([0.2, 0.1, 0.6, 0.6, 0.3, 0.1]))
    assert result["status"]["linear_loss"] == "insufficient"  # of 6 rows there is no interval
    assert set(table.loc[table["metric"] == "linear_loss", "group"]) == {"", "a", "b"}


def test_two_metrics_of_one_name_are_refused(monkeypatch):
    from fairbench.metrics import probability as ranks

    monkeypatch.setattr(ranks, "AGAIN", find("accuracy").__class__(**vars(find("roc_auc"))), False)
    registry.declared.cache_clear()
    try:
        with pytest.raises(ValueError, match="two metrics are called roc_auc"):
            declared()
    finally:
        registry.declared.cache_clear()


def gap_in_mean(counts):
    rates = [rate(counts) for rate in find("equalized_odds").rates]
    return np.ptp(np.mean(rates, axis=0), axis=-1)


def difference_in_mean(counts):
    mean = np.mean([rate(counts) for rate in find("equalized_odds").rates], axis=0)
    return mean[..., 1:] - mean[..., :1]


@pytest.mark.parametrize(
    ("like", "changes"),
    [
        ("equalized_odds", {"function": gap_in_mean}),
        (
            "false_positive_rate_difference",
            {"function": difference_in_mean, "rates": find("equalized_odds").rates},
        ),
        ("false_positive_rate_ratio", {"function": difference_in_mean}),
        ("false_positive_rate_ratio", {"rates": find("equalized_odds").rates}),
        ("error_rate", {"rates": find("accuracy").rates}),
    ],
)
def test_a_metric_that_is_not_that_of_its_rates_is_refused(monkeypatch, like, changes):
    """Of a mean of two rates, the interval of one of them once held another quantity."""
    from fairbench.metrics import group

    odd = dataclasses.replace(find(like), name="odd", **changes)
    monkeypatch.setattr(group, "AGAIN", odd, False)
    registry.declared.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"odd in group\.py.*declare a metric for each rate"):
            declared()
    finally:
        registry.declared.cache_clear()


def test_lists_of_metrics_kept_by_hand_name_declared_ones():
    """Their order is a choice, which the registry cannot know; their names are not."""
    from fairbench.evaluation.abstention import OBJECTIVES
    from fairbench.evaluation.group_thresholds import CONSTRAINTS
    from fairbench.inference.comparing import METRICS
    from fairbench.reporting.page.pairs import GAPS

    gaps = {name for name, metric in metrics_of(BINARY).items() if metric.is_gap}
    assert set(METRICS) | set(GAPS) | set(OBJECTIVES[1:]) <= gaps
    assert {"error_rate", *CONSTRAINTS} <= set(metrics_of(BINARY)) | {"equalized_odds"}
    assert OBJECTIVES[0] == "error_rate"


# Confusion counts per group, against scikit-learn and by hand.


@pytest.mark.parametrize("n_classes", [2, 4])
def test_counts_of_every_group_match_scikit_learn(n_classes):
    draw = np.random.default_rng(n_classes)
    target, prediction = draw.integers(n_classes, size=(2, 300))
    group = draw.integers(3, size=300)
    counts = confusion(target, prediction, group, n_groups=3, n_classes=n_classes)
    for g in range(3):
        expected = confusion_matrix(
            target[group == g], prediction[group == g], labels=range(n_classes)
        )
        np.testing.assert_array_equal(counts[g], expected)


def test_binary_cells_are_in_the_order_tn_fp_fn_tp():
    target = [0, 0, 0, 1, 1, 1, 1, 1]
    prediction = [0, 0, 1, 0, 0, 0, 1, 1]
    counts = binary_confusion(target, prediction, [0] * 8, n_groups=1)
    np.testing.assert_array_equal(counts, [[2, 1, 3, 2]])
    assert (counts[0, TN], counts[0, FP], counts[0, FN], counts[0, TP]) == (2, 1, 3, 2)


def test_a_group_without_rows_is_all_zeros_and_keeps_its_place():
    counts = binary_confusion([1, 0, 1], [1, 1, 0], [0, 2, 2], n_groups=4)
    np.testing.assert_array_equal(counts, [[0, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0], [0] * 4])


def test_labels_stored_as_floats_or_booleans_count_the_same():
    target, prediction, group = [0.0, 1.0, 1.0], [True, False, True], [0, 0, 1]
    counts = binary_confusion(target, prediction, group, n_groups=2)
    np.testing.assert_array_equal(counts, [[0, 1, 1, 0], [0, 0, 0, 1]])
    assert counts.dtype == np.int64


def test_total_pools_the_groups_and_keeps_other_axes():
    counts = np.arange(24).reshape(2, 3, 4)
    pooled = total(counts)
    assert pooled.shape == (2, 1, 4)
    np.testing.assert_array_equal(pooled[1, 0], counts[1, 0] + counts[1, 1] + counts[1, 2])


# Rates of a confusion table, against scikit-learn.

ORACLES = {
    "selection_rate": lambda y, p: p.mean(),
    "base_rate": lambda y, p: y.mean(),
    "accuracy": sk.accuracy_score,
    "error_rate": sk.zero_one_loss,
    "true_positive_rate": sk.recall_score,
    "false_negative_rate": lambda y, p: 1 - sk.recall_score(y, p),
    "false_positive_rate": lambda y, p: 1 - sk.recall_score(y, p, pos_label=0),
    "true_negative_rate": lambda y, p: sk.recall_score(y, p, pos_label=0),
    "positive_predictive_value": sk.precision_score,
    "negative_predictive_value": lambda y, p: sk.precision_score(y, p, pos_label=0),
    "f1_score": sk.f1_score,
}
BY_NAME = {
    name: metric.function
    for name, metric in metrics_of(BINARY, "rate").items()
    if len(metric.rates) == 1
}


def random_labels(seed, n=200):
    draw = np.random.default_rng(seed)
    target = (draw.random(n) < 0.3).astype(int)
    return target, np.where(draw.random(n) < 0.25, 1 - target, target)


def test_every_rate_has_an_oracle():
    assert set(ORACLES) == set(BY_NAME)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ORACLES)
def test_rate_matches_scikit_learn(name, seed):
    target, prediction = random_labels(seed)
    counts = binary_confusion(target, prediction, np.zeros(len(target)), n_groups=1)
    expected = ORACLES[name](target, prediction)
    np.testing.assert_allclose(BY_NAME[name](counts), [expected], rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_balanced_accuracy_matches_scikit_learn(seed):
    target, prediction = random_labels(seed)
    counts = binary_confusion(target, prediction, np.zeros(len(target)), n_groups=1)
    expected = sk.balanced_accuracy_score(target, prediction)
    np.testing.assert_allclose(rates.balanced_accuracy(counts), [expected], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("selection_rate", 19),
        ("base_rate", 19),
        ("accuracy", 19),
        ("error_rate", 19),
        ("true_positive_rate", 12),
        ("false_negative_rate", 12),
        ("false_positive_rate", 7),
        ("true_negative_rate", 7),
        ("positive_predictive_value", 10),
        ("negative_predictive_value", 9),
        ("f1_score", 15),
    ],
)
def test_size_is_the_number_of_rows_a_rate_rests_on(name, size):
    # TN 4, FP 3, FN 5, TP 7; the F1 score rests on every row but the true negatives.
    assert BY_NAME[name].size(np.array([4, 3, 5, 7])) == size


@pytest.mark.parametrize(
    ("counts", "undefined"),
    [
        ([0, 0, 0, 0], set(BY_NAME)),
        ([3, 2, 0, 0], {"true_positive_rate", "false_negative_rate"}),
        ([0, 0, 2, 3], {"false_positive_rate", "true_negative_rate"}),
        ([3, 0, 2, 0], {"positive_predictive_value"}),
        ([0, 3, 0, 2], {"negative_predictive_value"}),
        (
            [4, 0, 0, 0],
            {"true_positive_rate", "false_negative_rate", "positive_predictive_value", "f1_score"},
        ),
    ],
)
def test_a_rate_is_nan_exactly_where_its_denominator_is_empty(counts, undefined):
    table = np.array(counts)
    assert {name for name, rate in BY_NAME.items() if np.isnan(rate(table))} == undefined
    assert {name for name, rate in BY_NAME.items() if rate.size(table) == 0} == undefined


@pytest.mark.parametrize("name", BY_NAME)
def test_a_rate_maps_over_leading_axes_and_does_not_depend_on_scale(name):
    counts = np.random.default_rng(1).integers(1, 50, size=(6, 3, 4))
    values = BY_NAME[name](counts)
    assert values.shape == (6, 3)
    np.testing.assert_allclose(values[4, 2], BY_NAME[name](counts[4, 2]))
    shares = counts / counts.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(BY_NAME[name](shares), values, rtol=1e-12)


def test_complementary_rates_add_up_to_one():
    counts = np.random.default_rng(2).integers(1, 50, size=(20, 4))
    for one, other in (
        (rates.accuracy, rates.error_rate),
        (rates.true_positive_rate, rates.false_negative_rate),
        (rates.true_negative_rate, rates.false_positive_rate),
    ):
        np.testing.assert_allclose(one(counts) + other(counts), 1)
