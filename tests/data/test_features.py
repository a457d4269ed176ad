"""Features: how columns are encoded, of training rows alone, and sequences."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from fairbench.components.datasets import simulated_sequences
from fairbench.core.errors import DataError, UserError
from fairbench.data.features import (
    Encoder,
    Encoding,
    SequenceEncoding,
    Sequences,
    onehot,
    onehot_names,
    parse_encoding,
    sparse_onehot,
)


def frame(n=40, seed=0):
    draw = np.random.default_rng(seed)
    age, employed = draw.normal(40, 10, n), draw.random(n) < 0.5
    city = pd.Categorical(draw.choice(["Bern", "Oslo"], n), ["Bern", "Oslo", "Rome"])
    children = draw.integers(5, size=n)
    return pd.DataFrame({"age": age, "employed": employed, "city": city, "children": children})


def standard(train, test):
    return Encoder(Encoding.STANDARD).fit(train).transform(test)


def test_onehot_has_a_column_per_category_in_the_order_of_the_frame_and_learns_nothing():
    features = frame()
    names = ["age", "employed", "city=Bern", "city=Oslo", "city=Rome", "children"]
    assert onehot_names(features) == names
    matrix = onehot(features)
    assert matrix.dtype == np.float32
    expected = pd.get_dummies(features, prefix_sep="=")[names].astype(np.float32)
    np.testing.assert_array_equal(matrix, expected)
    encoded = Encoder(Encoding.ONEHOT).fit(frame(seed=1)).transform(features)
    np.testing.assert_array_equal(encoded.toarray(), matrix)
    assert Encoder(Encoding.NATIVE).fit(features).transform(features) is features


def test_a_missing_category_is_a_row_of_zeros_and_a_missing_number_stays_missing():
    others = [f"c{i}" for i in range(300)]  # more than a byte tells apart
    city = pd.Categorical(["Oslo", None, "Bern"], ["Bern", *others, "Oslo"])
    children = pd.array([1, None, 3], dtype="Int64")
    features = pd.DataFrame({"city": city, "income": [1.0, 2.0, np.nan], "children": children})
    expected = [[0, 1, 1, 1], [0, 0, 2, np.nan], [1, 0, np.nan, 3]]
    matrix = onehot(features)
    np.testing.assert_array_equal(matrix[:, [0, 301, 302, 303]], expected)
    assert not matrix[:, 1:301].any()


def test_sparse_onehot_stores_numbers_and_booleans_even_where_they_are_zero():
    city = pd.Categorical(["Bern", None])
    features = pd.DataFrame({"gain": [0.0, 5.0], "male": [False, True], "city": city})
    matrix = sparse_onehot(features)
    assert matrix.indices.tolist() == [0, 1, 2, 0, 1]
    assert matrix.data.tolist() == [0, 0, 1, 5, 1]


def test_other_rows_are_scaled_with_the_training_rows_statistics_each_on_its_own():
    train, test = frame(seed=1), frame(seed=2)
    test.loc[0, "city"] = "Rome"  # which no training row has
    encoded = standard(train, test)
    assert encoded.dtype == np.float64
    scaler = StandardScaler().fit(onehot(train).astype(float))
    np.testing.assert_allclose(encoded, scaler.transform(onehot(test).astype(float)))
    np.testing.assert_array_equal(standard(train, test[::-1]), encoded[::-1])


def test_missing_numbers_take_the_training_rows_median_and_columns_without_any_stay():
    train = pd.DataFrame({"income": [1.0, 2.0, 9.0, np.nan], "none": [np.nan] * 4})
    test = pd.DataFrame({"income": [np.nan, 2.0, 100.0], "none": [np.nan, 5.0, 1.0]})
    encoded = standard(train, test)
    assert np.isfinite(encoded).all() and encoded.shape == (3, 2)
    values = np.array([1, 2, 9, 2])
    assert encoded[:2, 0].tolist() == pytest.approx([(2 - values.mean()) / values.std()] * 2)


def test_encodings_are_found_by_name():
    assert [parse_encoding(kind.value) for kind in Encoding] == list(Encoding)
    with pytest.raises(UserError, match="^unknown encoding 'one-hot': valid: onehot, standard, na"):
        parse_encoding("one-hot")


# Sequences as features: what is refused, slices, encodings, and the digest.


def arrays(channels=2, lengths=(3, 1, 5, 2)):
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
    return {"acoustic": rows}


def test_what_is_no_sequence_is_refused_with_its_row():
    for modalities, sentence in (
        ({}, "modalities need the same rows: there is none"),
        ({"acoustic": arrays(), "visual": arrays()[:3]}, "modalities need the same rows: acoustic"),
        (spoilt(2, np.empty((0, 2))), "acoustic of row 2 has no frames; a row has at least one"),
        (spoilt(1, np.ones((4, 3))), "acoustic of row 1 is 3 channels wide, of row 0 2 channels"),
        (spoilt(1, np.ones(4)), "acoustic of row 1 is an array of 1 dimensions, not of frames x"),
        (spoilt(2, np.array([[1, 2], [3, np.nan]])), "acoustic has .* in frame 1 of row 2"),
        (spoilt(0, np.array([[np.inf, 2]])), "acoustic has .* infinite in frame 0 of row 0"),
        ({"acoustic": [1.7e9 + np.arange(8.0).reshape(4, 2)]}, "acoustic is kept in single prec"),
    ):
        with pytest.raises(DataError, match=f"^toy: {sentence}"):
            Sequences.of("toy", modalities)


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
    fitted = Encoder(SequenceEncoding(("acoustic",), 2, cut)).fit(sequences())
    encoded = fitted.transform(sequences())
    assert encoded.names == ("acoustic",) and encoded.lengths.ravel().tolist() == [2, 1, 2, 2]
    mean, sd = fitted.means[0][0], fitted.sds[0][0]
    back = [(np.multiply(row, sd) + mean).round().tolist() for row in frames(encoded)]
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
    constant = Encoder(SequenceEncoding()).fit(features.take(np.array([1])))
    assert np.isfinite(constant.transform(features).parts[0].joined()).all()


def test_modalities_that_there_are_not_and_columns_of_sequences_are_refused():
    with pytest.raises(UserError, match="^unknown modality of dataset=toy 'acustic'"):
        sequences().select(["acustic"], "dataset=toy")
    with pytest.raises(UserError, match="^sequences have no columns"):
        onehot(sequences())


def test_a_data_set_of_sequences_is_sliced_and_hashed_like_any():
    data, again, other = (simulated_sequences.load(None, n_samples=40, seed=i) for i in (0, 0, 1))
    assert data.digest == again.digest != other.digest
    some = data.take(np.array([5, 3, 8]))
    assert len(some) == len(some.features) == 3
    assert frames(some.features, 1) == [frames(data.features, 1)[row] for row in (5, 3, 8)]
    turned = data.take(np.arange(40)[::-1])
    assert turned.digest != data.digest == turned.take(np.arange(40)[::-1]).digest
    assert replace(data, features=data.features.select(["visual"])).digest != data.digest
    with pytest.raises(DataError, match="features has 3 rows, the target 40"):
        replace(data, features=some.features)
