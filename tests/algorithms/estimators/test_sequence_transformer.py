"""The transformer of sequences: reproducible, blind to padding, and able to learn from events."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fairbench.components.algorithms.learners.sequence_transformer import SequenceTransformer
from fairbench.components.algorithms.losses import Binomial, NormalLoss
from fairbench.components.datasets import simulated_sequences
from fairbench.data.features import Encoder, Sequences
from tests.harness import Lazily

torch = Lazily("torch")
networks = Lazily("fairbench.components.algorithms.estimators.sequence_network")

TINY = SequenceTransformer(epochs=2, width=4, heads=1)


@pytest.fixture(scope="module")
def rows():
    """Return encoded sequences of 80 rows, with labels."""
    data = simulated_sequences.load(None, n_samples=80, length=6, event=2)
    features = Encoder(TINY.encoding).fit(data.features).transform(data.features)
    return features, data.target.to_numpy(float)


def fit(rows):
    return TINY.estimator(Binomial(), 0).fit(*rows)


@pytest.mark.parametrize("modalities", [("acoustic",), ("acoustic", "visual")])
def test_what_fills_up_a_row_is_not_seen(rows, modalities):
    """Alone, or beside a longer row that it is filled up to, a row has the same prediction."""
    X = rows[0].select(modalities)
    model = fit((X, rows[1]))
    together = model.predict_proba(X)[:, 1]
    alone = [model.predict_proba(X.take(np.array([row])))[0, 1] for row in range(80)]
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_the_order_of_the_frames_is_seen(rows):
    X, y = rows
    model = fit(rows)
    turned = Sequences.of(
        "turned",
        {
            name: [frames[there][::-1] for frames, there in zip(*part.padded(), strict=True)]
            for name, part in zip(X.names, X.parts, strict=True)
        },
    )
    assert not np.allclose(model.predict_proba(X), model.predict_proba(turned))


@pytest.mark.parametrize(
    "loss", [NormalLoss(), NormalLoss("faithful_nll")], ids=lambda loss: loss.name
)
def test_a_faithful_scale_leaves_the_encoders_alone(rows, loss):
    options = {"width": 4, "layers": 1, "heads": 1, "dropout": 0.0}
    network = networks.SequenceNetwork(
        [4], np.zeros(2), **options, detached=loss.scale_detached_from_trunk
    )
    frames = networks.Padded(torch.randn(3, 5, 4), torch.ones(3, 5, dtype=torch.bool))
    torch.autograd.backward(network([frames])[:, 1].sum())
    moved = network.project[0].weight.grad
    assert (moved is not None and bool((moved != 0).any())) == (not network.detached)
    assert (network.head.weight.grad[1] != 0).any()


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
