"""A changed bit is a difference, of a size relative to the output; equal bits are none."""

import numpy as np
import pytest

from fairbench.experiments.verification import compare

STORED = {
    "row": np.arange(3, dtype=np.int32),
    "score": np.array([0.5, np.nan, -2.0], np.float32),
}


def changed(**columns):
    return compare("id", STORED, {**STORED, **columns})


def test_equal_bits_are_no_difference():
    assert changed() is None
    assert changed(score=STORED["score"].copy()) is None


def test_a_difference_is_relative_to_the_largest_value():
    found = changed(score=np.array([0.75, np.nan, -2.0], np.float32))
    assert found.largest == pytest.approx(0.25 / 2)
    assert "1 of 2 columns (score ...)" in found.what


def test_the_last_bit_counts():
    score = STORED["score"].copy()
    score[0] = np.nextafter(score[0], np.float32(1))
    assert 0 < changed(score=score).largest < 1e-6


@pytest.mark.parametrize(
    "columns",
    [
        {"score": np.array([0.5, 0.0, -2.0], np.float32)},
        {"score": STORED["score"].astype(np.float64)},
        {"score": STORED["score"][:2]},
        {"more": np.zeros(3)},
    ],
)
def test_another_shape_type_or_undefined_row_is_infinitely_different(columns):
    assert changed(**columns).largest == np.inf


def test_columns_without_finite_values_may_differ_in_their_bits():
    stored = {"score": np.array([np.nan, np.nan], np.float32)}
    fresh = {"score": -stored["score"]}
    assert compare("id", stored, fresh).largest == 0.0
