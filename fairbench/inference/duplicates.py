"""Whether rows that are alike are the same row twice, or different ones alike by chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_MOST = 4  # times that a row came, beyond which they are not told apart
_SURE = 3.0  # standard errors by which more rows must come twice than chance allows
_FEW = 5.0  # rows that may come three times, by chance, where none did


def beyond_chance(times: ArrayLike) -> bool:
    """Return whether far more rows come twice, or three times, than independent rows would.

    Parameters
    ----------
    times : how often each of the different rows came.

    Notes
    -----
    How often rows of independent people are alike is a mixture of Poisson numbers. Of f1, f2, f3
    and f4 that come so many times, (2 f2)² is then at most f1 · 6 f3 on average, and (6 f3)² at
    most 2 f2 · 24 f4 (Cauchy and Schwarz), whatever the rows look like: where many come twice by
    chance, some come three times, and more come once.
    """
    number = np.bincount(np.minimum(times, _MOST), minlength=_MOST + 1).astype(float)
    most = number + _SURE * np.sqrt(number) + _FEW
    least = number - _SURE * np.sqrt(number)
    twice = least[2] > np.sqrt(1.5 * number[1] * most[3])
    thrice = least[3] > np.sqrt(4 / 3 * number[2] * most[4])
    return bool(twice or thrice)
