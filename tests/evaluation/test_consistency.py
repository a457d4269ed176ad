"""Rows for consistency: spread over variants and over draws, by hand."""

import numpy as np
import pytest

from fairbench.evaluation.table import MetricTable
from fairbench.evaluation.uncertainties import evaluate_consistency
from tests.evaluation.labelled import by_place

DEPTHS = {"max_depth=5": [0.1, 0.2, 0.4], "max_depth=6": [0.3, 0.2, 0.0]}
DRAWS = {"replicate=1": [0.0, 0.0, 0.3], "replicate=2": [0.0, 0.3, 0.3], "replicate=3": [0, 0, 0]}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def rows_of(uncertainty):
    table = MetricTable()
    evaluate_consistency(table, {name: np.array(u, float) for name, u in uncertainty.items()})
    return by_place(table)


def test_spread_over_two_variants_by_hand():
    rows = rows_of(DEPTHS)
    setting = "variants=2"
    # Individuals' population sds are 0.1, 0 and 0.2; their ranges twice that.
    for name, value in (("max_sd", 0.2), ("mean_sd", 0.1), ("mean_range", 0.2)):
        row = rows[f"consistency_{name}", "", setting]
        assert (row.value, row.n, row.status) == (pytest.approx(value), 3, "ok")
    for q in QUANTILES:
        row = rows["consistency_sd", "", f"{setting} quantile={q:g}"]
        assert row.value == pytest.approx(0.2 * q)
    assert len(rows) == 3 + len(QUANTILES)


def test_replicates_are_noise_and_no_consistency():
    rows = rows_of({**DEPTHS, **DRAWS})
    sds = [0.0, np.sqrt(0.02), np.sqrt(0.02)]
    assert rows["noise_max_sd", "", "variants=3"].value == pytest.approx(max(sds))
    assert rows["noise_mean_sd", "", "variants=3"].value == pytest.approx(np.mean(sds))
    assert rows["noise_mean_range", "", "variants=3"].value == pytest.approx(0.2)
    alone = rows_of(DEPTHS)
    assert {key: row.value for key, row in rows.items() if key[0].startswith("consistency")} == {
        key: row.value for key, row in alone.items()
    }


@pytest.mark.parametrize("few", [{}, {"max_depth=5": [0.1]}, {"replicate=1": [0.1], "x=2": [0]}])
def test_one_variant_has_no_spread(few):
    assert rows_of(few) == {}


def test_equal_variants_have_no_spread_at_all():
    rows = rows_of({f"gamma={i}": [0.3, 0.1] for i in range(4)})
    assert [row.value for row in rows.values()] == pytest.approx([0] * len(rows), abs=1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_uncertainty_that_does_not_exist_makes_every_row_undefined(bad):
    rows = rows_of({**DEPTHS, "max_depth=7": [0.1, bad, 0.1]})
    for row in rows.values():
        assert np.isnan(row.value)
        assert row.status == "invalid: uncertainty invalid in 1 of 3 rows"
