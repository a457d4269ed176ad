"""Figures of panels: matplotlib draws every series, and what has no room is cut."""

import numpy as np
import pandas as pd
import pytest

from fairbench.reporting.charts import chart, key_of
from fairbench.reporting.figures import DRAWN, figures
from fairbench.reporting.panels import OF_METHODS, method_styles
from tests.reporting.test_panels import METHODS, evaluated

TITLE = "simulated, xgboost"


@pytest.fixture(scope="module")
def metrics():
    """Return the metrics of two methods on a data set, and of three on another."""
    one = pd.concat([evaluated(method, repeat) for method in METHODS for repeat in (0, 1)])
    first = one[one["method"] != "third"].assign(dataset="first")
    return pd.concat([first, one.assign(dataset="second")], ignore_index=True)


@pytest.fixture(scope="module")
def drawn(metrics):
    own = metrics[(metrics["method"] == "third") & (metrics["dataset"] == "second")]
    return dict(figures(own, TITLE, "g"))


@pytest.fixture(scope="module")
def of_methods(metrics):
    return {
        f"{kind}:{name}": figure for kind, draw in DRAWN.items() for name, figure in draw(metrics)
    }


def test_every_figure_the_metrics_allow_is_drawn_labelled_and_titled(metrics, drawn):
    assert list(drawn) == [
        "reliability", "spread", "group_rates", "abstention", "feature_shift", "consistency",
        "uncertainties", "individual_fairness",
    ]  # fmt: skip
    few = metrics[metrics["metric"].isin(["selection_rate", "error_rate"])]
    assert [name for name, _ in figures(few, TITLE, "g")] == ["group_rates"]
    assert list(figures(metrics[metrics["metric"] == "nll"], TITLE, "g")) == []
    for name, figure in drawn.items():
        (legend,) = figure.legends
        assert legend.get_title().get_text() == TITLE, name
        for axes in figure.axes:
            assert axes.get_xlabel() or figure.get_supxlabel(), name
            named = axes.get_ylabel() or figure.get_supylabel()
            assert named or axes.get_yticklabels()[0].get_text(), name
        figure.canvas.draw()


@pytest.mark.thorough
def test_every_figure_of_methods_has_a_panel_for_each_data_set_and_its_labels_fit(
    metrics, of_methods
):
    assert list(of_methods) == [
        "consistency:", "spread:groups3", "spread:groups40", "abstention:error_rate",
        "abstention:statistical_parity", "abstention:equalized_odds",
        "abstention:mean_feature_shift", "abstention:feature_shift_rate0.2",
        "abstention:feature_shift_rate0.5", "group_errors:", "group_abstention:",
    ]  # fmt: skip
    for name, figure in of_methods.items():
        assert [axes.get_title() for axes in figure.axes] == ["first", "second"], name
    for name in ("spread:groups3", "abstention:error_rate", "abstention:feature_shift_rate0.5"):
        (legend,) = of_methods[name].legends  # also of methods that only some panels have
        labels = {text.get_text() for text in legend.get_texts()} - {"calibrated"}
        assert labels == {"one method", "another", "third"}
    for kind, draw in DRAWN.items():
        for name, figure in draw(metrics[metrics["dataset"] == "first"]):
            figure.canvas.draw()
            label = figure.texts[0].get_window_extent()
            assert label.x0 >= 0 and label.x1 <= figure.bbox.x1, (kind, name)


def test_what_a_panel_has_is_drawn_by_matplotlib_and_as_svg(metrics, of_methods):
    second = metrics[metrics["dataset"] == "second"]
    for kind in ("abstention", "spread", "consistency"):
        for name, panel in OF_METHODS[kind](second, method_styles(METHODS)):
            axes = of_methods[f"{kind}:{name}"].axes[-1]
            for line, one in zip(axes.lines, panel.series, strict=True):
                np.testing.assert_array_equal(line.get_xydata().T, [one.x, one.y])
                assert (line.get_linestyle() == "None") == (not one.lined)
            bands = [one for one in panel.series if one.band is not None]
            boxes = [one for one in panel.series if one.outline is not None]
            assert (len(axes.collections), len(axes.patches)) == (len(bands), len(boxes))
            drawing, *keys = chart([panel], key=key_of([panel]))
            marks = sum(np.isfinite(np.array(one.x)).sum() for one in panel.series if one.marked)
            assert drawing.count("<title>") == marks
            assert drawing.count('opacity=".12"') == len(bands)
            for word in {one.name.replace("_", " ") for one in panel.series}:
                assert word in "".join(keys)
            labels = [text.get_text() for text in axes.get_yticklabels()]
            if len(panel.names):
                assert labels[0].split("…")[0] in panel.names[0]
                assert max(map(len, labels)) <= 28


def test_variants_are_not_drawn(metrics, drawn):
    own = metrics[(metrics["method"] == "third") & (metrics["dataset"] == "second")]
    varied = own.assign(value=own["value"] / 2, variant="max_depth=5")
    again = dict(figures(pd.concat([varied, own], ignore_index=True), TITLE, "g"))
    assert list(again) == list(drawn)
    for name, figure in drawn.items():
        for axes, other in zip(figure.axes, again[name].axes, strict=True):
            for one, two in zip(axes.lines, other.lines, strict=True):
                np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())
