"""Every declared metric: a plain sentence, a function that runs, and NaN with a reason."""

import dataclasses

import numpy as np
import pytest

from fairbench import evaluate
from fairbench.evaluation.table import setting_text
from fairbench.metrics import registry
from fairbench.metrics.registry import (
    BINARY,
    MULTICLASS,
    REGRESSION,
    Metric,
    declared,
    find,
    label,
    metrics_of,
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
        ("spread_error", {"special": False}),
    ],
)
def test_a_metric_that_is_not_that_of_its_rates_is_refused(monkeypatch, like, changes):
    """Of a mean of two rates, the interval of one of them once held another quantity."""
    from fairbench.metrics import group

    odd = dataclasses.replace(find(like), name="odd", **changes)
    monkeypatch.setattr(group, "AGAIN", odd, False)
    registry.declared.cache_clear()
    try:
        said = "declare a metric for each rate|nothing computes a metric with interval='none'"
        with pytest.raises(ValueError, match=rf"odd in group\.py.*({said})"):
            declared()
    finally:
        registry.declared.cache_clear()


def test_lists_of_metrics_kept_by_hand_name_declared_ones():
    """Their order is a choice, which the registry cannot know; their names are not."""
    from fairbench.evaluation.abstention import CONSTRAINTS, OBJECTIVES
    from fairbench.inference.comparing import METRICS
    from fairbench.reporting.page.tables import GAPS

    gaps = {name for name, metric in metrics_of(BINARY).items() if metric.is_gap}
    assert set(METRICS) | set(GAPS) | set(OBJECTIVES[1:]) <= gaps
    assert {"error_rate", *CONSTRAINTS} <= set(metrics_of(BINARY)) | {"equalized_odds"}
    assert OBJECTIVES[0] == "error_rate"
