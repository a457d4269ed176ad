"""Sequences as features: what is refused, slices, encodings, and the digest."""

from dataclasses import replace

import numpy as np
import pytest

from fairbench.components.datasets import simulated_sequences
from fairbench.core.errors import DataError, UserError
from fairbench.data.features import Encoder, Encoding, SequenceEncoding, Sequences, onehot

LENGTHS = (3, 1, 5, 2)


def arrays(channels=2, lengths=LENGTHS):
    """Return rows whose frames say which row and which frame they are."""
    return [
        np.array([[100 * row + t] + [row] * (channels - 1) for t in range(n)], float)
        for row, n in enumerate(lengths)
    ]


def sequences():
    return Sequences.of("toy", {"acoustic": arrays(), "visual": arrays(3, (2, 2, 2, 2))})


def frames(features, modality=0):
    """Return the first channel of every row's frames."""
    padded, there = features.parts[modality].padded()
    return [row[mask][:, 0].tolist() for row, mask in zip(padded, there, strict=True)]


def spoilt(row, array):
    rows = arrays()
    rows[row] = array
    return rows


@pytest.mark.parametrize(
    ("modalities", "sentence"),
    [
        ({}, "toy: modalities need the same rows: there is none"),
        (
            {"acoustic": arrays(), "visual": arrays()[:3]},
            "toy: modalities need the same rows: acoustic has 4, visual has 3",
        ),
        (
            {"acoustic": spoilt(2, np.empty((0, 2)))},
            "toy: acoustic of row 2 has no frames; a row has at least one",
        ),
        (
            {"acoustic": spoilt(1, np.ones((4, 3)))},
            "toy: acoustic of row 1 is 3 channels wide, of row 0 2 channels wide",
        ),
        (
            {"acoustic": spoilt(1, np.ones(4))},
            "toy: acoustic of row 1 is an array of 1 dimensions, not of frames x channels, of row "
            "0 2 channels wide",
        ),
        (
            {"acoustic": spoilt(2, np.array([[1, 2], [3, np.nan]]))},
            "toy: acoustic has a value that is missing or infinite in frame 1 of row 2",
        ),
        (
            {"acoustic": spoilt(0, np.array([[np.inf, 2]]))},
            "toy: acoustic has a value that is missing or infinite in frame 0 of row 0",
        ),
        (
            {"acoustic": [1.7e9 + np.arange(8.0).reshape(4, 2)]},
            "toy: acoustic is kept in single precision, which rounds channel 0 too much: subtract "
            "the channel's mean and divide by its standard deviation first",
        ),
    ],
)
def test_what_is_no_sequence_is_refused_with_its_row(modalities, sentence):
    with pytest.raises(DataError) as refused:
        Sequences.of("toy", modalities)
    assert str(refused.value) == sentence


def test_rows_are_taken_in_any_order_and_frames_are_never_copied_or_written():
    features = sequences()
    some = features.take(np.array([2, 0, 2]))
    assert some.shape == (3, 2) and len(features) == 4
    assert frames(some) == [[200, 201, 202, 203, 204], [0, 1, 2], [200, 201, 202, 203, 204]]
    assert some.lengths.tolist() == [[5, 2], [3, 2], [5, 2]]
    assert some.parts[0].frames is features.parts[0].frames
    assert some.parts[0].joined()[:, 0].tolist() == sum(frames(some), [])
    with pytest.raises(ValueError, match="read-only"):
        features.parts[0].frames[0] = 1


@pytest.mark.parametrize(("cut", "kept"), [("end", [200, 201]), ("start", [203, 204])])
def test_an_end_is_cut_off(cut, kept):
    encoding = SequenceEncoding(("acoustic",), 2, cut)
    encoded = Encoder(encoding).fit(sequences()).transform(sequences())
    assert encoded.names == ("acoustic",) and encoded.lengths.ravel().tolist() == [2, 1, 2, 2]
    means = Encoder(encoding).fit(sequences())
    back = [
        [round(x * means.sds[0][0] + means.means[0][0]) for x in row] for row in frames(encoded)
    ]
    assert back[1:3] == [[100], kept]


def test_training_rows_alone_say_how_long_rows_may_be_and_what_is_usual():
    features = sequences()
    train = features.take(np.array([0, 3]))
    fitted = Encoder(SequenceEncoding()).fit(train)
    assert fitted.limits.tolist() == [3, 2]
    seen = fitted.transform(train).parts[0].joined()
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(seen.std(axis=0), 1, rtol=1e-6)
    assert fitted.transform(features).lengths[:, 0].tolist() == [3, 1, 3, 2]


def test_a_constant_channel_stays_finite():
    fitted = Encoder(SequenceEncoding()).fit(sequences().take(np.array([1])))
    assert np.isfinite(fitted.transform(sequences()).parts[0].joined()).all()


def test_names_and_lengths_that_there_are_not_are_refused():
    with pytest.raises(UserError, match="unknown modality of dataset=toy 'acustic': did you mean"):
        sequences().select(["acustic"], "dataset=toy")
    with pytest.raises(UserError, match="^learner.length is 0; it must be at least 1"):
        SequenceEncoding(length=0)
    with pytest.raises(UserError, match="valid: end, start"):
        SequenceEncoding(cut="middle")
    with pytest.raises(UserError, match="^sequences have no columns"):
        onehot(sequences())
    with pytest.raises(UserError, match="^sequences have no columns"):
        Encoder(Encoding.STANDARD).fit(sequences())


def test_a_data_set_of_sequences_is_sliced_hashed_and_grouped_like_any():
    data = simulated_sequences.load(None, n_samples=40)
    again = simulated_sequences.load(None, n_samples=40)
    assert (
        data.digest == again.digest != simulated_sequences.load(None, n_samples=40, seed=1).digest
    )
    rows = np.array([5, 3, 8])
    some = data.take(rows)
    assert len(some) == len(some.features) == 3
    assert frames(some.features, 1) == [frames(data.features, 1)[row] for row in rows]
    whole = data.take(np.arange(40)[::-1]).take(np.arange(40)[::-1])
    assert whole.digest == data.digest != data.take(np.arange(40)[::-1]).digest
    fewer = replace(data, features=data.features.select(["visual"]))
    assert fewer.digest != data.digest
    with pytest.raises(DataError, match="features has 3 rows, the target 40"):
        replace(data, features=some.features)
