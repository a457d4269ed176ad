"""The readings of the published relative rhos, where the right one is known."""

import numpy as np
import pandas as pd
import pytest

from fairbench.components.papers.uncertainty_matters.published_ratios import readings
from fairbench.components.papers.uncertainty_matters.tables import AREA, read_published


def areas(r, worths):
    """Return areas proportional to the inflations that four choices of rho give."""
    values = {"rho=1/K": 1.9, "rho in [0,1/K]": 0.9 / np.log(1.9), "rho_rel": 1.9 * r, **worths}
    same = {"table": "12.1", "method": "any", "metric": AREA}
    rows = [{**same, "setting": s, "value": v} for s, v in values.items()]
    return pd.DataFrame(rows)


def test_each_reading_predicts_its_own_areas():
    r = 1.6
    grid = np.linspace(0, (1.9 * r - 1) / 9, 20001)
    up_to_rel = 1 / np.trapezoid(1 / (1 + 9 * grid), grid) * grid[-1]
    (row,) = readings(areas(r, {"rho_rel_up": up_to_rel})).to_dict("records")
    assert row["r"] == pytest.approx(r)
    assert row["rho in [0,rho_rel]"] == pytest.approx(up_to_rel, rel=1e-6)
    assert row["rho_0 in [0,1/K]"] == pytest.approx(r * 0.9 / np.log(1.9))


def test_published_areas_have_rho_averaged_up_to_rho_rel():
    result = readings(read_published())
    assert len(result) == 13
    errors = {
        name: (result[name] / result["published"] - 1).abs().mean() for name in result.columns[2:]
    }
    assert errors["rho in [0,rho_rel]"] < 0.015 < 0.1 < errors["rho_0 in [0,1/K]"]
