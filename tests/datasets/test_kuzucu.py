"""The synthetic sets of Kuzucu et al.: their sizes, moments and truth."""

import numpy as np
import pytest
from scipy.stats import norm

from fairbench.components.datasets import kuzucu
from fairbench.core.errors import UserError


@pytest.mark.parametrize("which", ["sd1", "sd2", "sd3"])
@pytest.mark.parametrize("n", [400, 320])
def test_four_equal_cells_and_the_group_can_be_a_feature(which, n, archive):
    data = kuzucu.load(archive, which=which, n_samples=n)
    cells = data.target.groupby(data.sensitive["group"], observed=True).value_counts()
    assert cells.tolist() == [n // 4] * 4
    assert list(data.features) == ["x0", "x1"]
    with_it = kuzucu.load(archive, which=which, n_samples=n, keep_sensitive=True)
    assert (with_it.features["group_1"] == (data.sensitive["group"] == "1")).all()


@pytest.mark.parametrize("which", ["sd1", "sd2", "sd3"])
def test_truth_is_calibrated(which, archive):
    data = kuzucu.load(archive, which=which, n_samples=40_000)
    p = data.truth["probability"].to_numpy()
    np.testing.assert_allclose(data.target.mean(), p.mean(), atol=0.01)
    middle = (p > 0.3) & (p < 0.7)
    if middle.sum() > 300:
        assert data.target[middle].mean() == pytest.approx(p[middle].mean(), abs=0.05)
    # The best rule's accuracy, in closed form for a normal with equal covariances.
    for group, kind in zip("01", kuzucu.GROUPS[which], strict=True):
        rows = data.sensitive["group"] == group
        accuracy = ((p[rows] > 0.5) == data.target[rows]).mean()
        bayes = 1.0
        if kind is not None:
            bayes = norm.cdf(2 * kind.mean / np.sqrt(2 * (kind.variance + kind.covariance)))
        assert accuracy == pytest.approx(bayes, abs=0.012)


def test_moments_of_sd2(archive):
    data = kuzucu.load(archive, which="sd2", n_samples=40_000)
    cell = (data.sensitive["group"] == "1") & (data.target == 1)
    np.testing.assert_allclose(data.features[cell].mean(), [7, 7], atol=0.1)
    np.testing.assert_allclose(np.cov(data.features[cell].T), [[5, 1], [1, 5]], atol=0.2)


def test_both_readings_of_sd1(archive):
    rising = kuzucu.load(archive, which="sd1")
    falling = kuzucu.load(archive, which="sd1", sd1_group0="falling")
    group0 = (rising.sensitive["group"] == "0").to_numpy()
    for data, sign in ((rising, 1), (falling, -1)):
        above = data.features.sum(axis=1)[group0] * sign > 0
        assert (above == (data.target[group0] == 1)).all()
        assert (data.truth["probability"][group0] == data.target[group0]).all()


def test_draws_are_repeatable_and_differ_by_seed(archive):
    one, same, other = (kuzucu.load(archive, which="sd3", seed=seed) for seed in (0, 0, 1))
    assert one.features.equals(same.features)
    assert not one.features.equals(other.features)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"which": "sd4"}, "unknown dataset.which 'sd4'"),
        (
            {"which": "sd1", "n_samples": 402},
            "n_samples is 402: it must be a multiple of 4",
        ),
        ({"which": "sd1", "sd1_group0": "up"}, "unknown dataset.sd1_group0 'up'"),
    ],
)
def test_what_is_refused(options, message, archive):
    with pytest.raises(UserError, match=message):
        kuzucu.load(archive, **options)
