"""The draws of the study on ACS income: nested, and never tested on."""

import numpy as np
import pandas as pd

from fairbench.components.papers.uncertainty_fairness.epistemic_shrinks_acs import (
    SIZES,
    TEST,
    folds,
)

RACE = pd.Series(["White"] * 9000 + ["Black"] * 8000)


def test_test_rows_stay_and_training_rows_are_nested():
    result = folds(RACE, seeds=2)
    assert len(result) == 2 * len(SIZES)
    for fold in result:
        np.testing.assert_array_equal(fold.test, result[0].test)
        assert not np.isin(fold.train, fold.test).any()
        assert tuple(RACE[fold.train].value_counts()[["White", "Black"]]) == SIZES[fold.fold]
    assert RACE[result[0].test].value_counts().eq(TEST).all()
    for smaller, larger in zip(result[:3], result[1:4], strict=True):
        assert np.isin(smaller.train, larger.train).all()
    assert not np.isin(result[0].train, result[len(SIZES)].train).all()
