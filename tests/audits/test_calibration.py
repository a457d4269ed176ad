"""Calibration by group: how much too high scores are, with intervals that know a rare label."""

import numpy as np
import pandas as pd
import pytest

from fairbench.audits.calibration import calibrations
from fairbench.audits.direction import Direction
from fairbench.audits.table import AuditTable


def found(rows, groups, shape, excess=0.0):
    """Return the calibration of many groups alike, each a sample of its own."""
    generator = np.random.default_rng(rows)
    score = generator.beta(*shape, rows * groups)
    label = (generator.random(len(score)) < score - excess).astype(float)
    codes = np.repeat(np.arange(groups), rows)
    names = pd.Series(pd.Categorical.from_codes(codes, [f"g{i}" for i in range(groups)]))
    table = AuditTable(
        score, np.zeros(len(score), int), label, {"g": names}, names, Direction(("0", "1"))
    )
    return list(calibrations(table))


@pytest.mark.parametrize(
    ("rows", "shape"), [(40, (1, 1)), (200, (1, 1.5)), (200, (1, 20)), (1000, (1, 40))]
)
def test_intervals_of_the_excess_hold_where_they_are_printed(rows, shape):
    each = found(rows, 500, shape)
    ends = np.array([(one.lower, one.excess, one.upper) for one in each])
    printed = ends[~np.isnan(ends[:, 0])]
    assert ((printed[:, 0] <= printed[:, 1]) & (printed[:, 1] <= printed[:, 2])).all()
    assert ((printed[:, 0] <= 0) & (printed[:, 2] >= 0)).mean() > 0.925


def test_too_few_of_the_rarer_label_leave_no_interval():
    each = found(60, 20, (1, 60))
    assert all(np.isnan(one.lower) and not np.isnan(one.excess) for one in each)


def test_scores_that_are_too_high_are_found():
    each = found(2000, 5, (4, 4), excess=0.1)
    assert all(one.lower > 0.05 and one.upper < 0.15 for one in each)
