"""The figure of parities: what is drawn and printed is what was measured."""

import numpy as np
import pandas as pd
import pytest

from fairbench import evaluate
from fairbench.reporting.figures import UA_SP, parity


def evaluated(dataset, method, repeat, **uncertainty):
    draw = np.random.default_rng([len(dataset), repeat])
    group, other = draw.choice(["a", "b"], (2, 200))
    mean = draw.normal(group == "b", 1)
    groups = pd.DataFrame({"group": group, "other": other})
    table = evaluate(
        mean + draw.normal(0, 0.5, 200), mean,
        sensitive_features=groups, task="regression", **uncertainty,
    )  # fmt: skip
    return table.assign(repeat=repeat, fold=0, variant="", dataset=dataset, method=method)


@pytest.fixture(scope="module")
def metrics():
    parts = []
    for repeat in (0, 1):
        parts += [evaluated("first", "plain_model", repeat)]
        parts += [
            evaluated(dataset, name, repeat, sd=np.full(200, sd))
            for dataset in ("first", "second_set")
            for name, sd in (("calibrated", 0.5), ("vague", 50.0))
        ]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def panels(metrics):
    ((name, figure),) = parity(metrics)
    assert name == ""
    figure.canvas.draw()
    return figure.axes


def values(metrics, **where):
    for column, value in where.items():
        metrics = metrics[metrics[column] == value]
    return metrics["value"]


def test_a_panel_for_each_data_set_and_a_line_for_each_method(panels):
    titles = [axes.get_title(loc="left") for axes in panels]
    assert titles == ["first, by group", "second_set, by group"]
    names = [text.get_text() for text in panels[0].get_yticklabels()]
    assert names == ["plain model", "calibrated", "vague"]


@pytest.mark.parametrize("metric", [UA_SP, "statistical_parity"])
def test_marks_are_means_over_repeats_of_the_first_attribute(metrics, panels, metric):
    containers = {container.get_label(): container for container in panels[0].containers}
    label = "predictions as normals (UA-SP)" if metric == UA_SP else "predictions as points"
    marks = containers[label].lines[0].get_xdata(orig=False)
    expected = [
        values(metrics, dataset="first", method=method, metric=metric, attribute="group").mean()
        for method in ("plain_model", "calibrated", "vague")
    ]
    np.testing.assert_allclose(marks, expected)


def test_the_labels_parity_is_the_line(metrics, panels):
    (line,) = [line for line in panels[1].lines if line.get_label() == "labels"]
    of_labels = values(metrics, dataset="second_set", metric="label_parity", attribute="group")
    np.testing.assert_allclose(line.get_xdata(), of_labels.mean())


def test_coverage_and_score_stand_beside_each_method(metrics, panels):
    texts = {
        (round(t.get_position()[0], 2), t.get_position()[1]): t.get_text() for t in panels[0].texts
    }
    assert texts[1.13, 0] == texts[1.27, 0] == "-"
    for row, method in ((1, "calibrated"), (2, "vague")):
        mine = {"dataset": "first", "method": method, "attribute": ""}
        coverage = values(metrics, **mine, metric="coverage", level=0.9).mean()
        assert texts[1.13, row] == f"{coverage:.3f}"
        assert texts[1.27, row] == f"{values(metrics, **mine, metric='crps').mean():.3f}"


def test_runs_without_such_a_parity_draw_nothing(metrics):
    assert list(parity(metrics[metrics["metric"] != UA_SP])) == []
