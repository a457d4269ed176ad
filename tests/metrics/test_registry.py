"""Every declared metric: a plain sentence, a function that runs, and NaN with a reason."""

import dataclasses

import numpy as np
import pytest

from fairbench import evaluate
from fairbench.core.errors import UserError
from fairbench.evaluation.table import setting_text
from fairbench.metrics import group, registry
from fairbench.metrics.registry import BINARY, REGRESSION, declared, find, metrics_of

ROWS = {
    "target": np.array([0.0, 1, 1, 0, 1, 0]),
    "prediction": np.array([0.0, 1, 0, 1, 1, 0]),
    "score": np.array([0.2, 0.9, 0.4, 0.6, 0.7, 0.1]),
}


@pytest.mark.parametrize("metric", declared(), ids=lambda metric: f"{metric.task}-{metric.name}")
def test_every_metric_is_declared_in_plain_words(metric):
    assert metric.name.replace("_", "").isalnum()
    assert metric.label and metric.needs
    assert metric.sentence[0].isupper() and metric.sentence.endswith(".")
    assert 4 <= len(metric.sentence.split()) <= 20
    assert metric.task in (BINARY, registry.MULTICLASS, REGRESSION)
    assert metric.epsilon > 0


def test_a_name_has_one_label_and_one_direction_whatever_the_task():
    assert len(declared()) > 40
    for metric in declared():
        other = find(metric.name)
        assert (other.label, other.better) == (metric.label, metric.better)
        assert registry.label(metric.name) == metric.label
    assert registry.label("abstention_error_rate") == "abstention error rate"


@pytest.mark.parametrize("task", [BINARY, REGRESSION])
def test_the_evaluator_reports_every_metric_and_gives_each_nan_a_reason(task):
    columns = ROWS | {"score": ROWS["score"] if task == BINARY else None}
    columns |= dict.fromkeys(("uncertainty", "sd"), np.array([0.1, 0.2, 0.5, 0.4, 0.3, 0.2]))
    table = evaluate(**columns, task=task, sensitive_features=list("aaabbb"))
    of_arrays = {name for name, metric in metrics_of(task).items() if "frames" not in metric.needs}
    assert of_arrays <= set(table["metric"])
    assert (table.loc[table["value"].isna(), "status"] != "ok").all()
    # Who has no reason is ok and has an interval; who is ok without one has a reason, too.
    certain = table["status"].eq("ok") & table["lower"].notna()
    assert (certain == table["reason"].eq("")).all()
    assert setting_text(table).notna().all()


def test_a_new_rate_and_a_new_loss_are_one_declaration_each(monkeypatch):
    new = [
        dataclasses.replace(find(like), name=name, function=function)
        for like, name, function in (
            ("accuracy", "share_of_hits", lambda counts: counts[..., 3] / counts.sum(axis=-1)),
            ("brier_score", "linear_loss", lambda target, score: np.abs(target - score)),
        )
    ]
    every = (*declared(), *new)
    registry.metrics_of.cache_clear()
    monkeypatch.setattr(registry, "declared", lambda: every)
    try:
        columns = {name: ROWS[name] for name in ("target", "prediction", "score")}
        table = evaluate(**columns, sensitive_features=list("aabbab"))
    finally:
        registry.metrics_of.cache_clear()
    result = table[table["attribute"] == ""].set_index("metric")
    hits, linear = result.loc["share_of_hits"], result.loc["linear_loss"]
    assert hits["value"] == pytest.approx(2 / 6)
    assert 0 < hits["lower"] < 2 / 6 < hits["upper"] < 1
    assert linear["value"] == pytest.approx(np.mean([0.2, 0.1, 0.6, 0.6, 0.3, 0.1]))
    assert linear["status"] == "insufficient"  # of 6 rows there is no interval
    assert set(table.loc[table["metric"] == "linear_loss", "group"]) == {"", "a", "b"}


def in_mean(width):
    """Return a function of the mean (G,) of both rates of equalized odds."""
    return lambda counts: width(np.mean([r(counts) for r in find("equalized_odds").rates], axis=0))


GAP_IN_MEAN, FIRST_IN_MEAN = in_mean(np.ptp), in_mean(lambda mean: mean[1:] - mean[0])
BOTH = find("equalized_odds").rates
IN_MEAN = {"function": GAP_IN_MEAN, "rates": BOTH}


@pytest.mark.parametrize(
    ("like", "changes", "said"),
    [
        ("roc_auc", {"name": "roc_auc"}, "two metrics are called roc_auc"),
        ("equalized_odds", {"function": GAP_IN_MEAN}, "a metric for each rate"),
        ("false_positive_rate_difference", {"function": FIRST_IN_MEAN, "rates": BOTH}, "each rate"),
        ("false_positive_rate_ratio", {"function": FIRST_IN_MEAN}, "a metric for each rate"),
        ("false_positive_rate_ratio", {"rates": BOTH}, "a metric for each rate"),
        ("error_rate", {"rates": find("accuracy").rates}, "a metric for each rate"),
        ("equalized_odds", {"function": GAP_IN_MEAN, "rates": ()}, "names as rates="),
        ("disparate_impact", {**IN_MEAN, "rates": BOTH[:1]}, "something else"),
        ("disparate_impact", {**IN_MEAN, "interval": "widest_mean"}, "in the mean of its"),
        ("spread_error", {"special": False}, "unknown interval of odd in .*; valid: .*mean"),
        ("brier_score", {"special": True}, "special=True is for rows of declared.csv"),
        ("brier_score", {"needs": ("scroe",)}, "column that odd in .* needs 'scroe': did you mean"),
        ("brier_score", {"function": lambda *_: 0.5}, "must return one loss for each row"),
        ("mae", {"interval": "widest"}, "unknown interval of odd in .* 'widest'; valid"),
    ],
)
def test_a_metric_that_is_there_or_is_not_that_of_its_rates_is_refused(
    monkeypatch, like, changes, said
):
    """Of a mean of two rates, the interval of one of them once held another quantity."""
    odd = dataclasses.replace(find(like), **{"name": "odd", **changes})
    monkeypatch.setattr(group, "AGAIN", odd, False)
    registry.declared.cache_clear()
    try:
        with pytest.raises(UserError, match=said):
            declared()
    finally:
        registry.declared.cache_clear()


def test_a_metric_cannot_change_what_others_are_given():
    def changes(target, prediction):
        target[:] = 0
        return np.abs(target - prediction)

    metric = dataclasses.replace(find("mae"), function=changes)
    with pytest.raises(ValueError, match="read-only"):
        metric(target := np.ones(3), np.zeros(3))
    assert target.tolist() == [1, 1, 1]
    target[:] = 2  # which is its owner's still


def test_lists_of_metrics_kept_by_hand_name_declared_ones():
    """Their order is a choice, which the registry cannot know; their names are not."""
    from fairbench.evaluation.abstention import CONSTRAINTS, OBJECTIVES
    from fairbench.inference.comparing import METRICS
    from fairbench.reporting.page import GAPS

    gaps = {name for name, metric in metrics_of(BINARY).items() if metric.is_gap}
    assert set(METRICS) | set(GAPS) | set(OBJECTIVES[1:]) <= gaps
    assert {"error_rate", *CONSTRAINTS} <= set(metrics_of(BINARY)) | {"equalized_odds"}
    assert OBJECTIVES[0] == "error_rate"
