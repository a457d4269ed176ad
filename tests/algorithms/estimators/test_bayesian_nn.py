"""Bayes by Backprop: its divergence, gradients, members, and the posterior it recovers."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kstest, norm
from sklearn.linear_model import LogisticRegression

from fairbench.components.algorithms.learners.bayesian_nn import BayesianNN
from fairbench.components.algorithms.losses import Binomial
from fairbench.metrics.uncertainty import variance_decomposition
from tests.harness import Lazily

torch = Lazily("torch")
bayes = Lazily("fairbench.components.algorithms.estimators.weight_posterior")


def fitted(**options):
    X = np.random.default_rng(0).normal(size=(120, 3))
    learner = BayesianNN(**{"epochs": 5, "hidden": (8,), **options})
    return learner.estimator(Binomial(), 0).fit(X, (X[:, 0] > 0).astype(float)), X


def posterior(mean, sd):
    """Return a layer of independent weights, in float64."""
    rho = np.log(np.expm1(sd))
    return bayes.WeightPosterior(
        [torch.tensor(mean, requires_grad=True)], [torch.tensor(rho, requires_grad=True)]
    )


def test_the_mixture_has_the_density_of_two_normals():
    w = np.concatenate([np.linspace(-3, 3, 50), np.linspace(-0.005, 0.005, 50)])
    expected = np.log(0.5 * norm.pdf(w, scale=0.001) + 0.5 * norm.pdf(w))
    ours = bayes.ScaleMixture(0.5, 0.001, 1.0).log_density(torch.from_numpy(w)).numpy()
    np.testing.assert_allclose(ours, expected, atol=1e-9)
    alone = bayes.ScaleMixture(0.0, 0.001, 0.7).log_density(torch.from_numpy(w)).numpy()
    np.testing.assert_allclose(alone, norm.logpdf(w, scale=0.7), atol=1e-9)


def test_the_divergence_from_one_normal_is_the_closed_form():
    draw = np.random.default_rng(0)
    mean, sd = draw.normal(size=(4, 3)), draw.uniform(0.05, 0.5, (4, 3))
    ours, members = posterior(mean, sd), 20_000
    weights = ours.draw(members, torch.Generator().manual_seed(0))
    estimate = float(ours.divergence(weights, bayes.ScaleMixture(0.0, 0.1, 0.8)).detach())
    exact = (np.log(0.8 / sd) + (sd**2 + mean**2) / (2 * 0.8**2) - 0.5).sum()
    # Only the average of w^2 / (2 sd^2) over draws is random.
    error = np.sqrt((2 * sd**4 + 4 * mean**2 * sd**2).sum() / members) / (2 * 0.8**2)
    assert abs(estimate - exact) < 5 * error


def test_its_gradient_is_a_finite_difference():
    draw = np.random.default_rng(1)
    mean, sd = 0.3 * draw.normal(size=(3, 2)), np.full((3, 2), 0.1)

    def value(ours):
        weights = ours.draw(5, torch.Generator().manual_seed(0))
        raw = bayes.forward(torch.ones(4, 2, dtype=torch.float64), weights)
        return ours.divergence(weights, bayes.ScaleMixture(0.5, 0.05, 1.0)) + (raw**2).sum()

    ours = posterior(mean, sd)
    value(ours).backward()
    for i, name in enumerate(("means", "rhos")):
        (parameter,) = getattr(ours, name)
        steps = []
        for sign in (1, -1):
            moved = posterior(mean, sd)
            with torch.no_grad():
                getattr(moved, name)[0][1, i] += sign * 1e-6
            steps.append(float(value(moved).detach()))
        assert float(parameter.grad[1, i]) == pytest.approx((steps[0] - steps[1]) / 2e-6, rel=1e-5)


@pytest.mark.thorough
def test_a_member_is_one_network():
    ours = bayes.new_posterior(3, np.zeros(1), (5, 4), sd=0.1, seed=0, means="uniform")
    X = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    weights = ours.draw(7, torch.Generator().manual_seed(2))
    one = [layer[4] for layer in weights]
    hidden = torch.relu(X @ one[0][:-1] + one[0][-1])
    hidden = torch.relu(hidden @ one[1][:-1] + one[1][-1])
    torch.testing.assert_close(bayes.forward(X, weights)[4], hidden @ one[2][:-1] + one[2][-1])


def test_means_start_standard_normal_or_within_the_bound_of_each_layer():
    start = np.array([1.5])
    normal, uniform = (
        [layer.detach().numpy() for layer in bayes.new_posterior(
            60, start, (400,), sd=0.02, seed=0, means=means
        ).means]
        for means in ("normal", "uniform")
    )  # fmt: skip
    assert [layer.shape for layer in normal] == [(61, 400), (401, 1)]
    drawn = np.concatenate([layer.ravel() for layer in normal])
    assert kstest(drawn, "norm").pvalue > 0.01
    assert normal[-1][-1, 0] != start
    assert uniform[-1][-1, 0] == start
    for layer, fan_in in zip(uniform, (60, 400), strict=True):
        bound = 1 / np.sqrt(fan_in)
        assert 0.98 * bound < np.abs(layer[:-1]).max() <= bound


def test_the_posterior_keeps_its_first_means_for_a_training_that_moves_nothing():
    options = {"epochs": 1, "learning_rate": 1e-12, "hidden": (50,)}
    normal, uniform = (
        fitted(initial_means=means, **options)[0].posterior_.means[0].detach().numpy().std()
        for means in ("normal", "uniform")
    )
    assert normal > 2 * uniform


def test_without_spread_of_the_weights_nothing_is_epistemic():
    model, X = fitted()
    with torch.no_grad():
        for rho in model.posterior_.rhos:
            rho.fill_(-100)
    members = model.predict_members(X, 10, 0)
    assert members.shape == (10, len(X), 1)
    aleatoric, epistemic = variance_decomposition(members[..., 0])
    assert (epistemic == 0).all()
    assert (aleatoric > 0).all()


@pytest.mark.thorough
def test_the_posterior_of_a_logistic_regression_is_laplaces(monkeypatch):
    """With 1000 rows the normal approximation at the mode is good, and features independent."""

    def to_the_end(parameters, epoch, judge, *, epochs, patience):
        for _ in range(epochs):
            epoch()

    module = "fairbench.components.algorithms.estimators.bayesian_nn"
    monkeypatch.setattr(f"{module}.train_until_stale", to_the_end)
    draw = np.random.default_rng(0)
    X = draw.normal(size=(1000, 2))
    y = (draw.random(1000) < expit(X @ [1.5, -0.7] + 0.3)).astype(float)
    learner = BayesianNN(
        hidden=(), prior_share=0.0, likelihood_weight=None, samples=10, epochs=250,
        learning_rate=0.005, validation=0.001, batch_size=250,
    )  # fmt: skip
    model = learner.estimator(Binomial(), 0).fit(X, y)
    mean = model.posterior_.means[0].detach().numpy()[:, 0]
    sd = torch.nn.functional.softplus(model.posterior_.rhos[0]).detach().numpy()[:, 0]
    ones = np.column_stack([X, np.ones(len(X))])
    mode = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8).fit(ones, y).coef_[0]
    p = expit(ones @ mode)
    precision = np.einsum("ni,n,ni->i", ones, p * (1 - p), ones) + 1
    # A factorised posterior has the conditional standard deviations, 1 / sqrt(precision).
    np.testing.assert_allclose(mean, mode, atol=0.05)
    np.testing.assert_allclose(sd, 1 / np.sqrt(precision), rtol=0.15)
