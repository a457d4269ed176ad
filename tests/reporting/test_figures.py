"""Figures of panels: every series, label and title is drawn, once for all data sets."""

import numpy as np
import pandas as pd
import pytest

from fairbench.core.errors import UserError
from fairbench.reporting import panels
from fairbench.reporting.charts import Panel, Series, chart, drawn, key_of
from tests.reporting.test_panels import METHODS, evaluated

TITLE = "simulated, xgboost"


@pytest.fixture(scope="module")
def metrics():
    """Return the metrics of two methods on a data set, and of three on another."""
    one = pd.concat([evaluated(method, repeat) for method in METHODS for repeat in (0, 1)])
    first = one[one["method"] != "third"].assign(dataset="first")
    return pd.concat([first, one.assign(dataset="second")], ignore_index=True)


@pytest.fixture(scope="module")
def of_run(metrics):
    own = metrics[(metrics["method"] == "third") & (metrics["dataset"] == "second")]
    return dict(panels._figures(own, TITLE, "g"))


@pytest.mark.thorough
def test_every_figure_the_metrics_allow_is_drawn_labelled_and_titled(metrics, of_run):
    assert list(of_run) == [
        "reliability", "spread", "group_rates", "abstention", "feature_shift", "consistency",
        "uncertainties", "individual_fairness",
    ]  # fmt: skip
    few = metrics[metrics["metric"].isin(["selection_rate", "error_rate"])]
    assert [name for name, _ in panels._figures(few, TITLE, "g")] == ["group_rates"]
    assert list(panels._figures(metrics[metrics["metric"] == "nll"], TITLE, "g")) == []
    own = metrics[(metrics["method"] == "third") & (metrics["dataset"] == "second")]
    for name, figure in of_run.items():
        assert figure.count(f">{TITLE}<") == 1, name
        for panel in panels.OF_A_RUN[name][1](own, "g"):
            assert panel.x_label and (panel.y_label or len(panel.names)), name
            assert panel.x_label[:20].partition("'")[0] in figure, name


@pytest.mark.thorough
def test_every_figure_of_methods_has_a_panel_for_each_data_set(metrics):
    of_methods = {
        f"{kind}:{name}": figure
        for kind in panels.OF_METHODS
        for name, figure in panels.figures_of_methods(metrics, kind)
    }
    assert list(of_methods) == [
        "consistency:", "spread:groups3", "spread:groups40", "abstention:error_rate",
        "abstention:statistical_parity", "abstention:equalized_odds",
        "abstention:mean_feature_shift", "abstention:feature_shift_rate0.2",
        "abstention:feature_shift_rate0.5", "group_errors:", "group_abstention:",
    ]  # fmt: skip
    for name, figure in of_methods.items():
        assert [figure.count(f">{title}<") for title in ("first", "second")] == [1, 1], name
    for name in ("spread:groups3", "abstention:error_rate", "abstention:feature_shift_rate0.5"):
        for method in ("one method", "another", "third"):  # also of a single panel
            assert of_methods[name].count(f">{method}</text>") == 1


def test_what_a_panel_has_is_drawn(metrics):
    second = metrics[metrics["dataset"] == "second"]
    for kind in ("abstention", "spread", "consistency"):
        for _, panel in panels.OF_METHODS[kind](second, panels.method_styles(METHODS)):
            bands = [one for one in panel.series if one.band is not None]
            drawing, *keys = chart([panel], key=key_of([panel]))
            marks = sum(np.isfinite(np.array(one.x)).sum() for one in panel.series if one.marked)
            assert drawing.count("<title>") == marks
            assert drawing.count('opacity=".12"') == len(bands)
            for word in {one.name.replace("_", " ") for one in panel.series}:
                assert word in "".join(keys)


@pytest.mark.thorough
def test_rows_with_names_have_room_and_a_figure_is_as_high_as_its_panels(tmp_path):
    def of(groups):
        series = [
            Series(str(g), np.arange(4), np.arange(4) + g / groups, "black") for g in range(groups)
        ]
        return Panel(series, "rate", "", names=list("abcd"))

    low, high = of(2), of(60)
    assert low.height < high.height
    assert high.height >= 8 * 240
    figure = drawn([low, high], "both")
    assert int(figure.partition('height="')[2].partition('"')[0]) > high.height + 60 * 12
    for name, start in (("both.png", b"\x89PNG"), ("both.svg", b"<svg")):
        figure.savefig(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(UserError, match="unknown format of a figure 'docx'"):
        figure.savefig(tmp_path / "both.docx")


def test_variants_are_not_drawn(metrics, of_run):
    own = metrics[(metrics["method"] == "third") & (metrics["dataset"] == "second")]
    varied = own.assign(value=own["value"] / 2, variant="max_depth=5")
    assert dict(panels._figures(pd.concat([varied, own], ignore_index=True), TITLE, "g")) == of_run
