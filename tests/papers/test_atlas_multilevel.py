"""Differences over data sets: closed forms, another sampler, and how often intervals hold."""

import numpy as np
import pytest
from scipy import special

from fairbench.components.papers.atlas.multilevel import fit
from fairbench_rank.approaches import MeasuredDifferences

SIZES = (1,) * 12 + (2,) * 4 + (3, 3, 4, 6)  # of twenty families


def measured(means, variances, *, splits=10.0, share=0.2, family=None, facts=None):
    means = np.atleast_2d(means)
    tasks = means.shape[1]
    own = np.arange(tasks) if family is None else np.asarray(family)
    count = np.where(np.isfinite(means), splits, 0)
    variances = np.broadcast_to(variances, means.shape)
    return MeasuredDifferences(means, variances, count, np.full(tasks, share), own, facts)


def simulated(count, draw, *, sizes=SIZES, tau=1.0, shared=0.5, tails=None, noise=1.0):
    """Return differences of which the mean is 0, on data sets of heterogeneous noise."""
    family, share, splits = np.repeat(np.arange(len(sizes)), sizes), 0.2, 10

    def effects(size):
        if tails is None:
            return draw.standard_normal((count, size))
        if tails == "skewed":
            return draw.standard_exponential((count, size)) - 1
        return draw.standard_t(tails, (count, size)) / np.sqrt(tails / (tails - 2))

    tasks = len(family)
    truth = np.sqrt(shared) * effects(len(sizes))[:, family] + np.sqrt(1 - shared) * effects(tasks)
    sd = noise * np.exp(draw.standard_normal((count, tasks)))
    of_splits = np.sqrt(1 - share) * draw.standard_normal((count, tasks, splits))
    of_splits += np.sqrt(share) * draw.standard_normal((count, tasks, 1))
    values = tau * truth[:, :, None] + sd[:, :, None] * of_splits
    return measured(values.mean(2), values.var(2, ddof=1), family=family)


def held(count=150, draws=150, **options):
    """Return how often the mean's interval holds."""
    simulation = simulated(count, np.random.default_rng(3), **options)
    posterior = fit(simulation, generator=np.random.default_rng(4), draws=draws)
    lower, upper = posterior.interval()
    return np.mean((lower <= 0) & (upper >= 0))


@pytest.fixture(scope="module")
def balanced():
    draw = np.random.default_rng(0)
    means = draw.normal([[0.3], [-2.0]], [[1.0], [0.1]], (2, 24))
    return means, fit(measured(means, 1e-12), generator=draw, draws=400)


def test_balanced_and_measured_without_noise_it_is_the_t_interval_of_the_means(balanced):
    means, posterior = balanced
    half = special.stdtrit(23, 0.975) * means.std(axis=1, ddof=1) / np.sqrt(24)
    lower, upper = posterior.interval()
    assert posterior.estimate() == pytest.approx(means.mean(axis=1), abs=0.2 * half.max())
    assert (upper - lower) / 2 == pytest.approx(half, rel=0.12)
    assert posterior.effects == pytest.approx(means, abs=1e-4)


def test_probabilities_and_intervals_agree(balanced):
    lower, upper = balanced[1].interval(0.01)
    assert balanced[1].below(lower) == pytest.approx([0.01, 0.01], abs=1e-6)
    assert balanced[1].below(upper) == pytest.approx([0.99, 0.99], abs=1e-6)


def test_the_unit_does_not_matter_and_nothing_measured_says_nothing():
    draw = np.random.default_rng(1)
    means = draw.standard_normal((1, 12))
    means[0, 3] = np.nan
    rows = np.concatenate([means, 1000 * means, np.full((1, 12), np.nan), np.zeros((1, 12))])
    variances = np.array([[0.5], [0.5e6], [0.5], [0.0]])
    posterior = fit(measured(rows, variances), generator=draw, draws=300)
    assert posterior.estimate()[1] == pytest.approx(1000 * posterior.estimate()[0], abs=80)
    assert np.isnan(posterior.estimate()[2])
    assert np.isnan(posterior.interval()[0][2])
    assert abs(posterior.interval()[1][3]) < 1e-6
    assert posterior.families.tolist() == [11, 11, 0, 12]
    assert np.isnan(posterior.effects[0, 3])


def test_data_sets_of_one_family_count_together():
    """Twelve copies of one data set tell hardly more than one of them."""
    draw = np.random.default_rng(2)
    means = np.concatenate([np.full(12, 3.0), draw.normal(0, 0.3, 8)])
    family = np.concatenate([np.zeros(12, int), np.arange(1, 9)])
    posterior = fit(measured(means, 0.01, family=family), generator=draw, draws=300)
    assert posterior.estimate()[0] < 1.0 < means.mean()


def test_slopes_are_found_and_shrunk():
    draw = np.random.default_rng(5)
    fact = draw.standard_normal((40, 2))
    fact = (fact - fact.mean(0)) / fact.std(0)
    means = np.stack([0.5 * fact[:, 0], np.zeros(40)]) + draw.normal(0, 0.2, (2, 40))
    posterior = fit(measured(means, 0.01, facts=fact), generator=draw, draws=300)
    lower, upper = posterior.interval(0.025 / 4, coefficient=1)
    assert lower[0] < 0.5 < upper[0]
    assert lower[0] > 0.2
    assert lower[1] < 0 < upper[1]
    assert posterior.estimate(2) == pytest.approx([0, 0], abs=0.15)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options", [{"tails": 3}, {"tails": "skewed"}], ids=["heavy tails", "skewed"]
)
def test_intervals_hold(options):
    """The bound lies three standard errors below 93 %."""
    assert held(**options) > 0.87


@pytest.mark.slow
def test_another_sampler_agrees():
    numpyro = pytest.importorskip("numpyro")
    import jax
    from numpyro import distributions as dist

    simulation = simulated(1, np.random.default_rng(8), sizes=(1, 1, 1, 2, 2, 3), noise=0.5)
    size = np.sqrt((simulation.means**2).mean() - simulation.means.mean() ** 2)
    means, splits = simulation.means[0] / size, 10
    of_split, inflation = simulation.variances[0] / size**2, simulation.inflation[0]
    families = int(simulation.family.max()) + 1

    def model():
        centre = numpyro.sample("centre", dist.Normal(0, 50))
        kappa = abs(numpyro.sample("kappa", dist.StudentT(4, 0, 1)))
        shared = numpyro.sample("shared", dist.Uniform(0, 1))
        precision = numpyro.sample("noise", dist.Gamma(1e-3, 1e-3).expand([len(means)]))
        common = numpyro.sample("common", dist.Normal(0, 1).expand([families]))
        own = numpyro.sample("own", dist.Normal(0, 1).expand([len(means)]))
        theta = centre + kappa * (
            shared**0.5 * common[simulation.family] + (1 - shared) ** 0.5 * own
        )
        numpyro.sample("means", dist.Normal(theta, (inflation / precision) ** 0.5), obs=means)
        rate = precision * (splits - 1) / 2
        numpyro.sample("variances", dist.Gamma((splits - 1) / 2, rate), obs=of_split)

    kernel = numpyro.infer.NUTS(model, target_accept_prob=0.95)
    chain = numpyro.infer.MCMC(kernel, num_warmup=1500, num_samples=6000, progress_bar=False)
    chain.run(jax.random.PRNGKey(0))
    theirs = np.asarray(chain.get_samples()["centre"], float) * size
    posterior = fit(simulation, generator=np.random.default_rng(9), draws=3000)
    lower, upper = posterior.interval()
    assert posterior.estimate()[0] == pytest.approx(theirs.mean(), abs=0.1 * theirs.std())
    ends = np.quantile(theirs, [0.025, 0.975])
    assert [lower[0], upper[0]] == pytest.approx(ends, abs=0.2 * theirs.std())
