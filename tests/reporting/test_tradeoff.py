"""The picture and the table of a trade-off: marks, letters, ellipses and the key."""

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from fairbench.reporting.comparison_figures import _ellipse, tradeoff_figure
from fairbench.reporting.document.terminal import print_document
from fairbench.reporting.runs import tradeoff_document

METRICS = ("statistical_parity", "equalized_odds", "equal_opportunity", "predictive_parity")
BASE = "xgboost, baseline"


def rows(metric):
    names = [("none", "baseline"), ("hardt", "baseline"), ("none", "ensemble"), ("hardt", "bag")]
    return pd.DataFrame(
        {
            "metric": metric, "run": list("1234"), "learner": "xgboost",
            "intervention": [name for name, _ in names], "method": [name for _, name in names],
            "error": [0.1, 0.3, 0.2, 0.4], "gap": [0.2, 0.1, 0.3, np.nan],
            "error_variance": 0.01**2, "covariance": -0.5 * 0.01 * 0.02, "gap_variance": 0.02**2,
            "dominated": [False, False, True, False], "certainty": [0, 0.1, 0.9, 0],
            "postprocessed_error": [0.1, np.nan, 0.1, np.nan],
        }
    )  # fmt: skip


CURVE = pd.DataFrame(
    {"constraint": "equalized_odds", "relaxation": [0.0, 1], "error": [0.3, 0.1], "gap": [0.0, 0.2]}
)


@pytest.fixture(scope="module")
def figure():
    table = pd.concat([rows(metric) for metric in METRICS], ignore_index=True)
    drawn = tradeoff_figure(table, CURVE, "german by age", BASE)
    drawn.canvas.draw()
    return drawn


def test_a_panel_a_metric_with_a_point_and_an_ellipse_a_run(figure):
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == [f"{metric.replace('_', ' ')} gap" for metric in METRICS]
    for axes in figure.axes:
        assert len(axes.patches) == 3
        assert axes.get_ylim()[0] == 0
        points = {line.get_xydata().tobytes() for line in axes.lines if line.get_marker() in "os^"}
        assert len(points) >= 3


def test_those_that_none_dominates_are_filled_and_have_letters(figure):
    for axes in figure.axes:
        letters = {text.get_text(): text.xy for text in axes.texts}
        assert letters == {"a": (0.1, 0.2), "b": (0.3, 0.1)}
        by_place = {
            tuple(line.get_xydata()[0]): line for line in axes.lines if line.get_zorder() > 2.5
        }
        assert by_place[0.2, 0.3].get_markerfacecolor() == "white"
        assert by_place[0.1, 0.2].get_markerfacecolor() == by_place[0.1, 0.2].get_color()


def test_the_key_names_every_run_once_and_the_frontier(figure):
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts[:2] == ["a  none, baseline", "b  hardt, baseline"]
    assert sorted(texts[2:4]) == ["hardt, bag", "none, ensemble"]
    assert texts[4].startswith(BASE)


def test_the_frontier_is_drawn_where_its_constraint_is(figure):
    drawn = [any(len(line.get_xdata()) == 2 for line in axes.lines) for axes in figure.axes]
    assert drawn == [False, True, False, False]


def test_an_ellipse_holds_95_percent_of_its_normal():
    row = rows("equalized_odds").iloc[0]
    covariance = [[row.error_variance, row.covariance], [row.covariance, row.gap_variance]]
    draws = np.random.default_rng(0).multivariate_normal([row.error, row.gap], covariance, 20000)
    inside = _ellipse(row).contains_points(draws)
    assert inside.mean() == pytest.approx(0.95, abs=0.007)


def test_the_table_marks_and_orders_and_fits_in_100_columns():
    console = Console(width=100, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        table = rows("equalized_odds")
        print_document(tradeoff_document(table, ["equalized_odds"], title="", base=BASE), console)
    lines = captured.get().splitlines()
    printed = [line for line in lines if "baseline  " in line or "bag  " in line or "ble  " in line]
    assert printed[0].split("  ")[0] == "* none, baseline"
    assert "0.100 (0.010)  0.200 (0.020)" in printed[0]
    assert [line[0] for line in printed] == ["*", " ", "*", " "]
    assert printed[2].rstrip().endswith("-")
    assert max(map(len, lines)) <= 100
