"""The transformer of sequences: reproducible, blind to padding, and able to learn from events."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fairbench.components.algorithms.learners.sequence_transformer import SequenceTransformer
from fairbench.components.algorithms.losses import Binomial, NormalLoss, Softmax, SquaredError
from fairbench.components.datasets import simulated_sequences
from fairbench.core.errors import UserError
from fairbench.data.features import Encoder, Sequences
from tests.harness import Lazily

torch = Lazily("torch")
networks = Lazily("fairbench.components.algorithms.estimators.sequence_network")

TINY = SequenceTransformer(epochs=2, width=4, heads=1)
LOSSES = [
    Binomial(),
    Softmax(2),
    SquaredError(),
    NormalLoss(),
    NormalLoss("beta_nll"),
    NormalLoss("faithful_nll"),
]


@pytest.fixture(scope="module")
def rows():
    """Return encoded sequences of 80 rows, with labels."""
    data = simulated_sequences.load(None, n_samples=80, length=6, event=2)
    features = Encoder(TINY.encoding).fit(data.features).transform(data.features)
    return features, data.target.to_numpy(float)


def outputs(model, X):
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    distribution = getattr(model, "predict_distribution", None)
    return distribution(X) if distribution else model.predict(X)


def fit(rows, loss, seed=0, weight=None, learner=TINY):
    return learner.estimator(loss, seed).fit(*rows, sample_weight=weight)


@pytest.mark.parametrize(
    "loss",
    [
        LOSSES[0],
        *(pytest.param(further_loss, marks=pytest.mark.thorough) for further_loss in LOSSES[1:]),
    ],
    ids=lambda loss: loss.name,
)
def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(rows, loss):
    torch.manual_seed(1)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    one = outputs(fit(rows, loss), rows[0])
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    np.testing.assert_array_equal(one, outputs(fit(rows, loss), rows[0]))
    assert one.dtype == np.float64
    assert not np.array_equal(one, outputs(fit(rows, loss, seed=1), rows[0]))


def test_rows_of_weight_zero_have_no_part(rows):
    X, y = rows
    weight = (np.arange(80) < 60).astype(float)
    one = outputs(fit(rows, Binomial(), weight=weight), X)
    spoilt = np.where(weight == 0, 1 - y, y)
    np.testing.assert_array_equal(one, outputs(fit((X, spoilt), Binomial(), weight=weight), X))
    first = X.take(np.arange(60))
    np.testing.assert_array_equal(one, outputs(fit((first, y[:60]), Binomial()), X))


@pytest.mark.parametrize("modalities", [("acoustic",), ("acoustic", "visual")])
def test_what_fills_up_a_row_is_not_seen(rows, modalities):
    """Alone, or beside a longer row that it is filled up to, a row has the same prediction."""
    X = rows[0].select(modalities)
    model = fit((X, rows[1]), Binomial())
    together = model.predict_proba(X)[:, 1]
    alone = [model.predict_proba(X.take(np.array([row])))[0, 1] for row in range(80)]
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_any_number_of_modalities_is_joined(rows):
    X, y = rows
    three = Sequences(("a", "b", "c"), (*X.parts, X.parts[0]))
    assert np.isfinite(fit((three, y), Binomial()).predict_proba(three)).all()


def test_the_order_of_the_frames_is_seen(rows):
    X, y = rows
    model = fit(rows, Binomial())
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


def test_a_gpu_that_is_not_there_is_asked_for_in_vain(rows, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="^learner.device=cuda, but torch finds no GPU here: use "):
        fit(rows, Binomial(), learner=replace(TINY, device="cuda"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"width": 6, "heads": 2}, "^learner.width is 6 and learner.heads 2; the width must be "),
        ({"modalities": ("a", "a")}, "^learner.modalities names one twice$"),
        ({"length": 0}, "^learner.length is 0; it must be at least 1$"),
        ({"cut": "left"}, "learner.cut 'left'"),
        ({"device": "tpu"}, "learner.device 'tpu'"),
        ({"dropout": 1.0}, "^learner.dropout is 1.0"),
    ],
)
def test_settings_that_cannot_be_trained_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        SequenceTransformer(**options)
