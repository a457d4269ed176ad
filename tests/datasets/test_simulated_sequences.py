"""Simulated sequences: labels follow the truth, which is all in the events."""

import hashlib

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fairbench.components.datasets import simulated_sequences
from fairbench.core.errors import UserError
from fairbench.data.features import Encoder, SequenceEncoding


def draw(**options):
    return simulated_sequences.load(None, **options)


def test_the_default_population_never_changes():
    data = draw()
    total = hashlib.sha256()
    for part in data.features.parts:
        total.update(part.joined().round(4).tobytes())
    total.update(data.target.to_numpy(np.int64).tobytes())
    assert total.hexdigest()[:12] == "2961cffa57b4"


@pytest.fixture(scope="module")
def many():
    return draw(n_samples=10_000, longer=3.0)


def events(part):
    """Return the mean of what the second channel says where the first marks an event."""
    frames, _ = part.padded()
    marked = frames[..., 0] == 1
    return (frames[..., 1] * marked).sum(axis=1) / np.maximum(marked.sum(axis=1), 1), marked


def test_the_truth_is_a_function_of_the_events_and_labels_follow_it(many):
    truth = many.truth["probability"].to_numpy()
    said = [events(part)[0] for part in many.features.parts]
    odds = 4 * (said[0] + said[1]) / np.sqrt(2 * (1 + 0.25 / 4))
    np.testing.assert_allclose(np.log(truth / (1 - truth)), odds, atol=1e-4)
    for low in np.arange(0, 1, 0.1):
        rows = (truth >= low) & (truth < low + 0.1)
        share = pytest.approx(truth[rows].mean(), abs=5 * 0.5 / np.sqrt(rows.sum()))
        assert many.target[rows].mean() == share
    assert roc_auc_score(many.target, truth) == pytest.approx(0.947, abs=0.01)
    half = roc_auc_score(many.target, said[0])
    assert half == pytest.approx(0.815, abs=0.025)


def test_group_b_is_longer_and_loses_events_where_it_is_cut(many):
    in_b = (many.sensitive["group"] == "B").to_numpy()
    lengths = many.features.lengths[:, 0]
    assert lengths[in_b].mean() / lengths[~in_b].mean() == pytest.approx(3, abs=0.06)
    assert lengths[~in_b].max() <= 36 < lengths[in_b].max() <= 108
    assert all((events(part)[1].sum(axis=1) == 4).all() for part in many.features.parts)
    cut = many.features.parts[0].cut(36, end=True)
    lost = ~events(cut)[1].any(axis=1)
    assert not lost[~in_b].any()
    assert 0.4 < lost[in_b].mean() < 0.6
    encoded = Encoder(SequenceEncoding(length=36)).fit(many.features).transform(many.features)
    assert encoded.lengths.max() == 36


def test_groups_are_alike_but_for_their_lengths(many):
    by_group = many.truth["probability"].groupby(many.sensitive["group"], observed=True)
    assert by_group.mean().tolist() == pytest.approx([0.5, 0.5], abs=0.03)
    assert by_group.std().diff().iloc[1] == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_samples": 3}, "^dataset.n_samples is 3; it must be at least 20$"),
        ({"event": 0}, "^dataset.event is 0; it must be at least 1$"),
        ({"length": 7}, "^dataset.length is 7; it must be at least twice dataset.event, 4$"),
        ({"longer": 0.5}, "^dataset.longer is 0.5; it must be at least 1$"),
        ({"share_b": 1.0}, "^dataset.share_b is 1.0; it must be between 0 and 1$"),
    ],
)
def test_populations_that_are_none_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        draw(**options)
