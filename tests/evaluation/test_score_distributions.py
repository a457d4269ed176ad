"""The scores of each group: what pandas says of them, with intervals of their means."""

import numpy as np
import pandas as pd
import pytest

from fairbench.evaluation.score_distributions import score_distributions
from fairbench.inference.survey import Design

GENERATOR = np.random.default_rng(0)
SEX = pd.Series(pd.Categorical(GENERATOR.choice(["m", "f"], 300), ["m", "f"]))
SCORE = GENERATOR.beta(2, 3, 300)


def test_means_and_quantiles_are_those_of_pandas():
    result = {
        score_distribution.group: score_distribution
        for score_distribution in score_distributions(SCORE, {"sex": SEX})
    }
    expected = pd.Series(SCORE).groupby(SEX, observed=True)
    for name, distribution in result.items():
        assert distribution.mean[0] == pytest.approx(expected.mean()[name])
        assert distribution.mean[1] < distribution.mean[0] < distribution.mean[2]
        assert distribution.quantiles == pytest.approx(
            [expected.quantile(q)[name] for q in (0.1, 0.5, 0.9)]
        )
        assert sum(distribution.density) == pytest.approx(1)
        assert (distribution.edges[0], distribution.edges[-1]) == (0, 1)
    assert result["f"].difference[0] == pytest.approx(expected.mean()["f"] - expected.mean()["m"])
    assert np.isnan(result["m"].difference).all()


def test_equal_weights_change_nothing_and_double_rows_widen():
    plain = score_distributions(SCORE, {"sex": SEX})
    design = Design.of(600, clusters=np.repeat(np.arange(300), 2))
    twice = pd.Series(SEX.repeat(2).array)
    doubled = score_distributions(np.repeat(SCORE, 2), {"sex": twice}, design)
    for one, other in zip(plain, doubled, strict=True):
        assert other.mean == pytest.approx(one.mean, abs=1e-3)
        assert other.difference == pytest.approx(one.difference, abs=2e-3, nan_ok=True)


def test_any_values_have_a_range_and_few_rows_no_interval():
    values = np.array([5.0, 5.0, 5.0, -2.0])
    groups = pd.Series(pd.Categorical(["a", "a", "b", "b"]))
    first, second = score_distributions(values, {"g": groups})
    assert (first.edges[0], first.edges[-1]) == (-2, 5)
    assert first.density[-1] == 1
    assert np.isnan(second.mean[1])
    assert score_distributions(np.full(4, 3.0), {"g": groups})[0].density[0] == 1


def test_means_of_numbers_have_both_ends():
    """Means of shares cannot be under 0 or above 1, and those of numbers can."""
    shares = score_distributions(SCORE, {"sex": SEX})
    for share, other in zip(
        shares, score_distributions(10 * SCORE - 50, {"sex": SEX}), strict=True
    ):
        mean, lower, upper = (10 * end - 50 for end in share.mean)
        assert other.mean == pytest.approx([mean, lower, upper], abs=0.02)
        assert other.mean[0] == pytest.approx(mean) and other.mean[1] < lower < upper < -40
    rare = np.where(np.arange(300) % 100 == 0, 0.9, 0.0)
    assert score_distributions(rare, {"sex": SEX})[0].mean[1] == 0
    assert score_distributions(rare - 0.1, {"sex": SEX})[0].mean[1] < -0.1


def test_a_group_that_stands_for_nobody_has_no_scores():
    design = Design.of(300, weight=(SEX == "m").to_numpy(float))
    first, second = score_distributions(SCORE, {"sex": SEX}, design)
    (alone,) = score_distributions(SCORE[SEX == "m"], {"sex": SEX[SEX == "m"]})
    assert first.mean[0] == pytest.approx(alone.mean[0])
    assert np.isnan([*second.mean, *second.difference, *second.quantiles]).all()
    assert set(second.density) == {0}
