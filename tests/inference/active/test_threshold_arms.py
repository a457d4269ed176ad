"""Thompson's lowest draw by thresholds: the same choices as plain draws, in distribution."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc, betaln

from fairbench.inference.active.arms import BetaArms
from fairbench.inference.active.rewards import Lowest
from fairbench.inference.active.strategies import Queues, assess, thompson
from fairbench.inference.active.threshold_arms import ThresholdArms
from fairbench.inference.beta import Beta, centred

REPLICATIONS = 20_000
POSTERIORS = {
    "alike": Beta(np.full(6, 2.0), np.full(6, 1.0)),
    "apart": Beta(np.array([8.0, 6, 7, 9, 2, 1]), np.array([2.0, 3, 2, 1, 3, 0.2])),
    "narrow": Beta(np.array([900.0, 905, 450, 1, 1, 1]), np.array([100.0, 98, 55, 0.01, 0.1, 1])),
}


def lowest(arms, generator):
    return ThresholdArms.of(arms).lowest(generator)[:, 0]


@pytest.mark.parametrize("name", POSTERIORS)
def test_choices_have_the_distribution_of_plain_draws(name):
    arms = BetaArms.of(POSTERIORS[name], [3, 3, 3, 3, 0, 3], replications=REPLICATIONS)
    fast = lowest(arms, np.random.default_rng(1))
    plain = thompson(arms, Lowest(), np.random.default_rng(2))[:, 0]
    counts = np.array([np.bincount(chosen, minlength=6) for chosen in (fast, plain)])
    assert (counts[:, 4] == 0).all()  # no row left
    kept = counts.sum(axis=0) > 20
    assert stats.chi2_contingency(counts[:, kept]).pvalue > 1e-4


def test_distribution_functions_follow_the_labels():
    generator = np.random.default_rng(0)
    arm = np.repeat(np.arange(4), 30)
    queues = Queues.of(generator.random(120) < 0.7, arm, generator, replications=5)
    arms = ThresholdArms.of(BetaArms.of(centred([0.5, 0.7, 0.9, 0.99]), [30] * 4, replications=5))
    assess(queues, arms, lambda a: a.lowest(generator), observe=lambda a: None, rounds=100)
    won, lost = arms.posterior.successes, arms.posterior.failures
    exact = betainc(won[:, None], lost[:, None], arms.thresholds[:, None])
    left = arms.unlabelled > 0
    np.testing.assert_allclose(arms.below, exact * left[:, None], atol=1e-12)
    np.testing.assert_allclose(arms.expected, arms.below.sum(axis=-1), atol=1e-11)
    np.testing.assert_allclose(arms.log_beta, betaln(won, lost), atol=1e-10)
    assert (arms.unlabelled.sum(axis=1) == 20).all()


def test_whole_runs_have_the_distribution_of_plain_runs():
    """After 60 labels, the labels of each arm are distributed alike (two-sample tests)."""
    pool = np.random.default_rng(3)
    arm = np.repeat(np.arange(5), 40)
    success = pool.random(200) < np.repeat([0.5, 0.6, 0.7, 0.8, 0.9], 40)
    spent = []
    for seed, fast in ((1, True), (2, False)):
        generator = np.random.default_rng(seed)
        queues = Queues.of(success, arm, generator, replications=2000)
        plain = BetaArms.of(centred(np.full(5, 0.8)), [40] * 5, replications=2000)
        arms = ThresholdArms.of(plain) if fast else plain
        choose = {
            True: lambda a, g=generator: a.lowest(g),
            False: lambda a, g=generator: thompson(a, Lowest(), g),
        }[fast]
        assess(queues, arms, choose, observe=lambda a: None, rounds=60)
        spent.append(40 - arms.unlabelled)
    for g in range(5):
        assert stats.ks_2samp(spent[0][:, g], spent[1][:, g]).pvalue > 1e-4


def test_nothing_left():
    arms = BetaArms.of(centred([0.5, 0.5]), [0, 0], replications=3)
    assert (lowest(arms, np.random.default_rng(0)) == -1).all()
    mixed = BetaArms.of(centred([0.5, 0.9]), np.array([[0, 0], [0, 2]]), replications=2)
    assert lowest(mixed, np.random.default_rng(0)).tolist() == [-1, 1]
