"""FT-Transformer and TabM: the authors' packages, any loss, columns of a frame, and members."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

from fairbench.components.algorithms.estimators.tabular_columns import TabularColumns
from fairbench.components.algorithms.learners.ft_transformer import FTTransformer
from fairbench.components.algorithms.learners.tabm import TabM
from fairbench.components.algorithms.losses import Binomial, NormalLoss, SquaredError
from tests.harness import Lazily

torch = Lazily("torch")
tabular_network = Lazily("fairbench.components.algorithms.estimators.tabular_network")

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


@both
def test_a_faithful_scale_leaves_the_trunk_alone(table, learner):
    for loss in (NormalLoss(), NormalLoss("faithful_nll")):
        model = fit(learner, loss, table)
        network = model.network_
        network.zero_grad()
        raw = network(torch.from_numpy(model.columns_.matrix(table[0])))
        torch.autograd.backward(raw[..., 1].sum())
        trained = any(
            parameter.grad is not None and bool((parameter.grad != 0).any())
            for parameter in network.trunk.parameters()
        )
        assert trained == (not loss.scale_detached_from_trunk)
        assert bool((network.head.weight.grad != 0).any())


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
    matrix = TabularColumns.of(known).matrix(
        pd.DataFrame({"x": [0.0, -5, 1.0, 1e9, 1e12, np.nan], "none": 1.0})
    )
    scores = [NormalDist().inv_cdf(share) for share in (0.3, 0.1, 0.7, 0.9, 0.9, 0.5)]
    np.testing.assert_allclose(matrix[:, 0], scores, atol=1e-6)
    np.testing.assert_array_equal(matrix[:, 1], 0)
