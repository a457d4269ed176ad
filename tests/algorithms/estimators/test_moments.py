"""Our shortcuts through fairlearn's moments give the numbers that fairlearn's own steps give."""

import fairlearn.reductions
import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.estimators import moments

ROWS = 400


@pytest.fixture(params=[2, 3], ids="{} groups".format)
def data(request):
    draw = np.random.default_rng(request.param)
    shares = {2: [0.6, 0.4], 3: [0.5, 0.3, 0.2]}[request.param]
    groups = draw.choice(list("abc")[: request.param], ROWS, p=shares)
    labels = (draw.random(ROWS) < 0.4).astype(float)
    # A group without positives has no constraint on theirs.
    labels[groups == "c"] = 0
    return np.zeros((ROWS, 1)), labels, groups


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (moments.DemographicParity, fairlearn.reductions.DemographicParity),
        (moments.EqualizedOdds, fairlearn.reductions.EqualizedOdds),
        (moments.EqualOpportunity, fairlearn.reductions.TruePositiveRateParity),
    ],
)
def test_multipliers_are_projected_as_by_fairlearn(ours, theirs, data):
    ours, theirs = ours(), theirs()
    for moment in (ours, theirs):
        moment.load_data(data[0], data[1], sensitive_features=data[2])
    draw = np.random.default_rng(0)
    for _ in range(20):
        multipliers = pd.Series(draw.exponential(size=len(ours.index)), ours.index)
        pd.testing.assert_series_equal(
            ours.project_lambda(multipliers), theirs.project_lambda(multipliers), rtol=1e-12
        )


def test_rows_are_weighted_as_by_fairlearn(data):
    loss = fairlearn.reductions.SquareLoss(0, 1)
    ours, theirs = moments.BoundedGroupLoss(loss), fairlearn.reductions.BoundedGroupLoss(loss)
    pairs = [(ours, theirs), (ours.default_objective(), theirs.default_objective())]
    draw = np.random.default_rng(0)
    for mine, plain in pairs:
        for moment in (mine, plain):
            moment.load_data(data[0], data[1], sensitive_features=data[2])
        multipliers = pd.Series(draw.exponential(size=len(mine.index)), mine.index)
        for given in (None, multipliers):
            pd.testing.assert_series_equal(
                mine.signed_weights(given), plain.signed_weights(given), check_names=False
            )
