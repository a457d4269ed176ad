"""How numbers are written: with decimals, unless all of them would be 0."""

import numpy as np
import pytest

from fairbench.core.formats import fixed, interval, number, signed


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.96171, 4, "0.9617"),
        (0.00081, 4, "0.0008"),
        (0.0004, 3, "0.000"),
        (123.456, 3, "123.5"),
        (0.0, 4, "0.0000"),
        (8.8123e-7, 4, "8.8e-07"),
        (-3.2e-5, 3, "-3.2e-05"),
        (0.3 - 0.1 - 0.2, 3, "-0.000"),  # what rounding leaves is 0
        (np.nan, 3, "-"),
    ],
)
def test_a_number_that_is_not_0_is_not_written_as_0(value, decimals, text):
    assert number(value, decimals) == text


def test_signs_stay():
    assert signed(2.5e-7) == "+2.5e-07"
    assert signed(-0.25) == "-0.250"
    assert fixed(250.123456, 4) == "250.1235"


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (0.012, 0.25, "0.012 to 0.250"),
        (2.5e-5, 0.0056, "0.000 to 0.006"),  # beside such an end it is as good as 0
        (8.1e-7, 9.6e-7, "8.1e-07 to 9.6e-07"),
        (-0.00021, 0.00034, "-0.00021 to 0.00034"),
        (0.0, 0.0, "0.000 to 0.000"),
        (-np.inf, np.inf, "-inf to inf"),
        (np.nan, np.nan, ""),
    ],
)
def test_ends_of_an_interval_are_written_alike(lower, upper, text):
    assert interval(lower, upper) == text
