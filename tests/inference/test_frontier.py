"""The frontier of thresholds: whose it is, and what it has at a given gap."""

import numpy as np
import pandas as pd
import pytest

from fairbench.inference.comparing.objectives import at_equal_fairness, frontier

CURVE = pd.DataFrame(
    {"constraint": "parity", "error": [0.3, 0.2, 0.1], "gap": [0.02, 0.1, 0.2], "base": 0}
)


def metrics(validation_error, repeats=2):
    rows = [
        {
            "repeat": repeat, "variant": "", "metric": f"postprocessed_{name}", "attribute": "sex",
            "constraint": "equalized_odds", "relaxation": relaxation,
            "value": value + 0.1 * repeat,
        }
        for repeat in range(repeats)
        for relaxation, penalty in ((0.05, 0.1), (1, 0))
        for name, value in (
            ("error_rate", 0.2 + penalty),
            ("gap", 0.3 - penalty),
            ("validation_error_rate", validation_error + penalty),
        )
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_base_is_best_on_validation_rows_and_its_values_are_means_over_repeats():
    without = metrics(0.1).assign(metric="error_rate")
    curve = frontier([without, metrics(0.4), metrics(0.2)], "sex").sort_values("relaxation")
    assert set(curve["base"]) == {2}
    np.testing.assert_allclose(curve["relaxation"], [0.05, 1])
    np.testing.assert_allclose(curve["error"], [0.35, 0.25])
    np.testing.assert_allclose(curve["gap"], [0.25, 0.35])


def test_without_postprocessed_scores_of_the_attribute_there_is_no_frontier():
    assert frontier([metrics(0.1)], "age").empty
    assert np.isnan(at_equal_fairness(frontier([], "age"), "equalized_odds", 0.5))


@pytest.mark.parametrize(
    ("gap", "error"), [(0.01, np.nan), (0.02, 0.3), (0.15, 0.15), (0.2, 0.1), (0.9, 0.1)]
)
def test_two_points_are_mixed_to_reach_a_gap_between_them(gap, error):
    assert at_equal_fairness(CURVE, "parity", gap) == pytest.approx(error, nan_ok=True)
    assert np.isnan(at_equal_fairness(CURVE, "other", gap))


def test_a_point_that_is_worse_in_both_is_never_mixed_in():
    worse = pd.concat([CURVE, CURVE.iloc[:1].assign(error=0.6, gap=0.15)])
    for gap in (0.02, 0.12, 0.15, 0.3):
        assert at_equal_fairness(worse, "parity", gap) == at_equal_fairness(CURVE, "parity", gap)
