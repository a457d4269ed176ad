"""Coverage and size of sets of labels and of intervals, by group, with intervals that hold."""

import numpy as np
import pandas as pd
import pytest

from fairbench import Evaluator
from fairbench.core.seeds import rng
from fairbench.evaluation.metric_batches import add_estimates
from fairbench.evaluation.prediction_sets import interval_batches, set_batches
from fairbench.evaluation.predictions import AllGroups
from fairbench.evaluation.table import MetricTable
from fairbench.inference.survey import Design
from tests.evaluation.labelled import by_place, labelled


def rows_of(sets, target, groups, design=None):
    """Return the rows of sets (C, n) at a level of 90 %."""
    columns = {f"set_{k}_90": np.asarray(members, float) for k, members in enumerate(sets)}
    labels = pd.Series(pd.Categorical(list(groups)))
    all_groups = AllGroups.of(len(target), {"g": labels}, design)
    table = MetricTable()
    batches = list(set_batches(np.asarray(target, float), columns, (0.8, 0.9), all_groups, 0))
    add_estimates(table, all_groups, batches)
    return by_place(table)


def test_coverage_size_and_emptiness_by_hand():
    rows = rows_of([[1, 0, 1, 0], [0, 0, 1, 1]], [0, 1, 1, 0], "aabb")
    for group, coverage, size, empty in (
        ("", 2 / 4, 1, 1 / 4), ("a", 1 / 2, 1 / 2, 1 / 2), ("b", 1 / 2, 3 / 2, 0),
    ):  # fmt: skip
        row = [rows[name, group, "level=0.9"] for name in ("coverage", "set_size", "empty_sets")]
        assert [figure.value for figure in row] == pytest.approx([coverage, size, empty])
    assert rows["set_size_gap", "", "level=0.9"].value == pytest.approx(1)
    assert rows["coverage_gap", "", "level=0.9"].value == 0
    assert not [place for place in rows if place[2] == "level=0.8"]


def test_sets_that_are_all_alike_may_differ_among_others():
    rows = rows_of([[1] * 30, [0] * 30], [0] * 30, "a" * 15 + "b" * 15)
    size = rows["set_size", "a", "level=0.9"]
    assert size.lower < 0.85
    assert size.upper > 1.15
    assert size.value == 1


def sizes(design, replications, rows, classes, share):
    draw = np.random.default_rng(5)
    group = np.repeat(np.arange(replications), rows)
    size = draw.choice(classes + 1, replications * rows, p=share)
    sets = np.arange(classes)[:, None] < size
    return rows_of(sets, np.zeros(len(size)), [f"{g:04d}" for g in group], design)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("classes", "share"),
    [(2, [0.05, 0.9, 0.05]), (2, [0, 0.97, 0.03]), (4, [0.1, 0.5, 0.2, 0.15, 0.05])],
)
@pytest.mark.parametrize("rows", [30, 200])
def test_the_interval_of_a_mean_size_covers(classes, share, rows, monkeypatch):
    # The groups stand for 600 samples; their pairs are not of interest here.
    monkeypatch.setattr("fairbench.evaluation.metric_batches._add_differences", lambda *_: None)
    monkeypatch.setattr("fairbench.evaluation.metric_batches._add_gaps", lambda *_: None)
    result = sizes(None, 600, rows, classes, share)
    truth = float(np.arange(classes + 1) @ share)
    held = [
        row.lower <= truth <= row.upper
        for (name, group, _), row in result.items()
        if name == "set_size" and group
    ]
    assert len(held) == 600
    assert np.mean(held) > 0.93


def test_rows_of_equal_weight_are_as_if_there_were_none():
    sets, target = np.random.default_rng(0).random((2, 60)) < 0.6, np.arange(60) % 2
    plain = rows_of(sets, target, "ab" * 30)
    weighed = rows_of(sets, target, "ab" * 30, Design.of(60, weight=np.full(60, 2.0)))
    for place in plain:
        if place[0] in ("coverage", "set_size", "empty_sets"):
            assert weighed[place].value == pytest.approx(plain[place].value)
            assert weighed[place].lower == pytest.approx(plain[place].lower, abs=0.02)


def test_infinite_intervals_are_counted_and_their_mean_width_has_a_status():
    y, lower = np.zeros(40), -1 - np.arange(40) / 40
    lower[30:] = -np.inf
    labels = pd.Series(pd.Categorical(["many"] * 30 + ["few"] * 10, ["many", "few"]))
    all_groups, table = AllGroups.of(40, {"g": labels}), MetricTable()
    add_estimates(
        table, all_groups, list(interval_batches(y, {0.9: (lower, -lower)}, all_groups, 0))
    )
    result = by_place(table)
    assert result["infinite_intervals", "few", "level=0.9"].value == 1
    assert result["infinite_intervals", "many", "level=0.9"].value == 0
    width = result["interval_width", "few", "level=0.9"]
    infinite = "no interval of an infinite mean in group 'few'"
    assert (width.value, width.status) == (np.inf, f"insufficient: {infinite}")
    gap = result["interval_width_gap", "", "level=0.9"]
    assert gap.status == f"insufficient: {infinite}"


def test_an_evaluation_has_the_sets_of_a_binary_task():
    sets = {"set_0_90": [1.0] * 20 + [0.0] * 20, "set_1_90": [1.0] * 40}
    ones, score = [1.0] * 40, [0.6] * 40
    data = labelled([0.0, 1.0] * 20, "ab" * 20, prediction=ones, score=score, **sets)
    metrics = Evaluator().evaluate(data, rng(0, "test"))
    result = metrics[metrics["level"] == 0.9].set_index(["metric", "group"])["value"]
    assert result["coverage", ""] == pytest.approx(0.75)
    assert result["set_size", ""] == pytest.approx(1.5)
