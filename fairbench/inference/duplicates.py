"""Whether equal rows are duplicates, or rows of different people that are equal by chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_MOST = 4  # rows that occur more often than this are counted as occurring this often
_SURE = 3.0  # standard errors by which repeated rows must exceed what chance allows
_FEW = 5.0  # allowance for rows that might have occurred more often but did not


def beyond_chance(times: ArrayLike) -> bool:
    """Return whether far more rows occur twice, or three times, than independent rows would.

    Parameters
    ----------
    times : how often each of the distinct rows occurs.

    Notes
    -----
    If people are independent, the numbers of occurrences are a mixture of Poisson numbers. Let f1,
    f2, f3 and f4 be the numbers of rows that occur once, twice, three and four times. On average
    (2 f2)² is then at most f1 · 6 f3, and (6 f3)² at most 2 f2 · 24 f4 (Cauchy and Schwarz),
    whatever the distribution of rows: if many occur twice by chance, some occur three times, and
    more occur once.
    """
    number = np.bincount(np.minimum(times, _MOST), minlength=_MOST + 1).astype(float)
    most = number + _SURE * np.sqrt(number) + _FEW
    least = number - _SURE * np.sqrt(number)
    twice = least[2] > np.sqrt(1.5 * number[1] * most[3])
    thrice = least[3] > np.sqrt(4 / 3 * number[2] * most[4])
    return bool(twice or thrice)
