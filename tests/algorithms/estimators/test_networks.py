"""Networks: of layers, Bayes by Backprop, of tables and of sequences."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import kstest, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from fairbench.components.algorithms.estimators.tabular_columns import TabularColumns
from fairbench.components.algorithms.learners.bayesian_nn import BayesianNN
from fairbench.components.algorithms.learners.ft_transformer import FTTransformer
from fairbench.components.algorithms.learners.mlp import MLP
from fairbench.components.algorithms.learners.sequence_transformer import SequenceTransformer
from fairbench.components.algorithms.learners.tabm import TabM
from fairbench.components.algorithms.losses import Binomial, NormalLoss, SquaredError
from fairbench.components.datasets import simulated_sequences
from fairbench.data.features import Encoder, Sequences
from fairbench.metrics.uncertainty import variance_decomposition
from tests.harness import Lazily

torch = Lazily("torch")
mlp = Lazily("fairbench.components.algorithms.estimators.network")


def test_training_stops_where_held_out_rows_no_longer_improve():
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=120)
    short, long = (MLP(epochs=n, patience=2).estimator(SquaredError(), 0) for n in (150, 300))
    np.testing.assert_array_equal(short.fit(X, y).predict(X), long.fit(X, y).predict(X))


@pytest.fixture(scope="module")
def thinned():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(400, 4))
    y = (X[:, 0] + 0.5 * draw.normal(size=400) > 0).astype(float)
    return MLP(hidden=(16,), dropout=0.25, epochs=20).estimator(Binomial(), 0).fit(X, y), X


def test_a_member_leaves_the_same_units_out_for_every_row(thinned):
    model, X = thinned
    members = model.predict_members(X, 50, 1)
    assert members.shape == (50, 400, 1)
    np.testing.assert_allclose(members[:, :7], model.predict_members(X[:7], 50, 1), atol=1e-6)
    assert members.std(axis=0).min() > 0
    assert not hasattr(MLP().estimator(Binomial(), 0), "predict_members")


def test_dropout_keeps_the_expected_scores(thinned):
    model, X = thinned
    p = np.clip(model.predict_members(X, 4000, 2)[..., 0], 1e-12, 1 - 1e-12)
    scores = np.log(p / (1 - p))
    whole = model.predict_proba(X)[:, 1]
    error = scores.std(axis=0) / np.sqrt(len(scores))
    # One hidden layer: the score is linear in the masks, whose mean is 1.
    assert (np.abs(scores.mean(axis=0) - np.log(whole / (1 - whole))) < 6 * error).all()


bayes = Lazily("fairbench.components.algorithms.estimators.weight_posterior")


def fitted(**options):
    X = np.random.default_rng(0).normal(size=(120, 3))
    learner = BayesianNN(**{"epochs": 5, "hidden": (8,), **options})
    return learner.estimator(Binomial(), 0).fit(X, (X[:, 0] > 0).astype(float)), X


def posterior(mean, sd):
    """Return a layer of independent weights, in float64."""
    both = (torch.tensor(each, requires_grad=True) for each in (mean, np.log(np.expm1(sd))))
    return bayes.WeightPosterior(*([each] for each in both))


def test_the_mixture_has_the_density_of_two_normals():
    w = np.concatenate([np.linspace(-3, 3, 50), np.linspace(-0.005, 0.005, 50)])
    expected = np.log(0.5 * norm.pdf(w, scale=0.001) + 0.5 * norm.pdf(w))
    ours = bayes.ScaleMixture(0.5, 0.001, 1.0).log_density(torch.from_numpy(w)).numpy()
    np.testing.assert_allclose(ours, expected, atol=1e-9)
    alone = bayes.ScaleMixture(0.0, 0.001, 0.7).log_density(torch.from_numpy(w)).numpy()
    np.testing.assert_allclose(alone, norm.logpdf(w, scale=0.7), atol=1e-9)


def test_the_divergence_from_one_normal_and_its_gradient_are_the_closed_form():
    draw = np.random.default_rng(0)
    mean, sd = draw.normal(size=(4, 3)), draw.uniform(0.05, 0.5, (4, 3))
    ours, members = posterior(mean, sd), 20_000
    weights = ours.draw(members, torch.Generator().manual_seed(0))
    divergence = ours.divergence(weights, bayes.ScaleMixture(0.0, 0.1, 0.8))
    divergence.backward()
    estimate, drawn = float(divergence.detach()), weights[0].detach().numpy()
    exact = (np.log(0.8 / sd) + (sd**2 + mean**2) / (2 * 0.8**2) - 0.5).sum()
    # Only the average of w^2 / (2 sd^2) over draws is random.
    error = np.sqrt((2 * sd**4 + 4 * mean**2 * sd**2).sum() / members) / (2 * 0.8**2)
    assert abs(estimate - exact) < 5 * error
    np.testing.assert_allclose(ours.means[0].grad, drawn.mean(axis=0) / 0.8**2)
    by_sd = (drawn * (drawn - mean) / sd).mean(axis=0) / 0.8**2 - 1 / sd
    np.testing.assert_allclose(ours.rhos[0].grad, -np.expm1(-sd) * by_sd)


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
    assert kstest(np.concatenate([layer.ravel() for layer in normal]), "norm").pvalue > 0.01
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


LEARNERS = {
    "ft_transformer": FTTransformer(width=8, heads=2, blocks=1, epochs=2, batch_size=64),
    "tabm": TabM(members=3, width=8, blocks=1, bins=4, embedding=2, epochs=2, batch_size=64),
}
both = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


@pytest.fixture(scope="module")
def table():
    """Return 240 rows with missing numbers and categories, a city of the last row, and values."""
    draw = np.random.default_rng(0)
    city = pd.Series(draw.choice(["Bern", "Oslo"], 240))
    values = draw.normal(size=240) + 2 * (city == "Bern")
    city[:5], city[239] = None, "Rome"
    columns = {
        "age": np.where(np.arange(240) % 7 == 0, np.nan, values + 0.1 * draw.normal(size=240)),
        "employed": draw.random(240) < 0.5,
        "city": pd.Categorical(city, ["Bern", "Oslo", "Rome", "Paris"]),
        "same": np.full(240, 3.0),
    }
    return pd.DataFrame(columns), values.to_numpy()


def fit(learner, loss, table):
    return learner.estimator(loss, 0).fit(*table)


@both
def test_threads_change_no_bit(table, learner):
    one, threads = fit(learner, NormalLoss(), table).linked(table[0]), torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        again = fit(learner, NormalLoss(), table).linked(table[0])
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(one, again)


@both
def test_a_category_that_no_training_row_has_is_read_as_the_most_frequent(table, learner):
    X, y = table
    model = fit(learner, SquaredError(), (X[:239], y[:239]))
    cities = X["city"].cat.categories
    at = {name: X[10:20].assign(city=pd.Categorical([name] * 10, cities)) for name in cities}
    seen = X["city"][:239].value_counts().idxmax()
    np.testing.assert_array_equal(model.predict(at["Rome"]), model.predict(at[seen]))
    np.testing.assert_array_equal(model.predict(at["Paris"]), model.predict(at[seen]))


def raw_scores(loss, table):
    """Yield raw scores of each network, what mean and scale have in common, and the head."""
    layers = mlp.new_network(3, np.zeros(2), (5,), loss, 0)
    yield layers.forward(torch.ones(4, 3)), layers.weights[:1], layers.weights[1:]
    for learner in LEARNERS.values():
        model = fit(learner, loss, table)
        network, columns = model.network_, torch.from_numpy(model.columns_.matrix(table[0]))
        network.zero_grad()
        yield network(columns), [*network.trunk.parameters()], [network.head.weight]
    options = {"width": 4, "layers": 1, "heads": 1, "dropout": 0.0}
    options["detached"] = loss.scale_detached_from_trunk
    of_frames = networks.SequenceNetwork([4], np.zeros(2), **options)
    frames = networks.Padded(torch.randn(3, 5, 4), torch.ones(3, 5, dtype=torch.bool))
    yield of_frames([frames]), [of_frames.project[0].weight], [of_frames.head.weight]


@pytest.mark.parametrize("loss", [NormalLoss(), NormalLoss("faithful_nll")], ids=str)
def test_a_faithful_scale_moves_the_head_alone(loss, table):
    for raw, common, head in raw_scores(loss, table):
        torch.autograd.backward(raw[..., 1].sum())
        common_moves, head_moves = (
            any(part.grad is not None and bool((part.grad != 0).any()) for part in parts)
            for parts in (common, head)
        )
        assert head_moves and common_moves == (not loss.scale_detached_from_trunk)


@both
def test_learns_what_there_is_to_learn(learner, table):
    draw = np.random.default_rng(1)
    city = draw.choice(["Bern", "Oslo"], 600)
    X = pd.DataFrame({"x": np.exp(5 * draw.normal(size=600)), "city": pd.Categorical(city)})
    y = ((np.log(X["x"]) > 0) ^ (city == "Bern")).to_numpy(float)
    learner = replace(learner, width=16, epochs=25, learning_rate=0.01)
    model = learner.estimator(Binomial(), 0).fit(X[:400], y[:400])
    assert (model.predict(X[400:]) == y[400:]).mean() > 0.9


def test_tabms_members_make_up_its_prediction(table):
    X = table[0]
    model = fit(LEARNERS["tabm"], NormalLoss(), table)
    members = model.predict_members(X, 32, 0)
    assert members.shape == (3, 240, 2)
    means, sds = np.moveaxis(members, -1, 0)
    mean, sd = model.predict_distribution(X).T
    np.testing.assert_allclose(mean, means.mean(axis=0))
    np.testing.assert_allclose(sd**2, (sds**2).mean(axis=0) + means.var(axis=0))
    assert means.std(axis=0).min() > 0
    two = model.predict_members(X, 2, 5)
    assert all(any(np.array_equal(expected, one) for one in members) for expected in two)
    assert not hasattr(fit(LEARNERS["ft_transformer"], NormalLoss(), table), "predict_members")


def test_numbers_are_ranks_whatever_their_tails_and_missing_ones_are_in_the_middle():
    known = pd.DataFrame({"x": [0.0, 0.0, 0.0, 1.0, 1e9], "none": np.nan})
    others = pd.DataFrame({"x": [0.0, -5, 1.0, 1e9, 1e12, np.nan], "none": 1.0})
    matrix = TabularColumns.of(known).matrix(others)
    scores = [NormalDist().inv_cdf(share) for share in (0.3, 0.1, 0.7, 0.9, 0.9, 0.5)]
    np.testing.assert_allclose(matrix[:, 0], scores, atol=1e-6)
    np.testing.assert_array_equal(matrix[:, 1], 0)


networks = Lazily("fairbench.components.algorithms.estimators.sequence_network")

TINY = SequenceTransformer(epochs=2, width=4, heads=1)


@pytest.fixture(scope="module")
def sequences():
    """Return encoded sequences of 80 rows, with labels."""
    data = simulated_sequences.load(None, n_samples=80, length=6, event=2)
    features = Encoder(TINY.encoding).fit(data.features).transform(data.features)
    return features, data.target.to_numpy(float)


def fit_tiny(sequences):
    return TINY.estimator(Binomial(), 0).fit(*sequences)


@pytest.mark.parametrize("modalities", [("acoustic",), ("acoustic", "visual")])
def test_what_fills_up_a_row_is_not_seen(sequences, modalities):
    """Alone, or beside a longer row that it is filled up to, a row has the same prediction."""
    X = sequences[0].select(modalities)
    model = fit_tiny((X, sequences[1]))
    together = model.predict_proba(X)[:, 1]
    alone = [model.predict_proba(X.take(np.array([row])))[0, 1] for row in range(80)]
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_the_order_of_the_frames_is_seen(sequences):
    X, y = sequences
    model = fit_tiny(sequences)
    turned = Sequences.of(
        "turned",
        {
            name: [frames[there][::-1] for frames, there in zip(*part.padded(), strict=True)]
            for name, part in zip(X.names, X.parts, strict=True)
        },
    )
    assert not np.allclose(model.predict_proba(X), model.predict_proba(turned))


@pytest.mark.slow
def test_it_learns_what_the_truth_allows():
    """An area of 0.95 is the most that there is to be had; 0.5 is what nothing learnt has."""
    train, test = (simulated_sequences.load(None, n_samples=n, seed=n) for n in (1000, 4000))
    best = roc_auc_score(test.target, test.truth["probability"])
    learner = SequenceTransformer()
    encoded = Encoder(learner.encoding).fit(train.features)
    model = learner.estimator(Binomial(), 0)
    model.fit(encoded.transform(train.features), train.target.to_numpy(float))
    p = model.predict_proba(encoded.transform(test.features))[:, 1]
    assert best == pytest.approx(0.95, abs=0.01)
    assert roc_auc_score(test.target, p) > 0.9
