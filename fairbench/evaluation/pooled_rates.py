"""Several rates of many groups in plain columns; the groups of each rate are estimated jointly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.evaluation.many_groups import DRAWS, EXCEPTIONAL, SHOWN, estimates_of, parts_of
from fairbench.inference.flags import adjusted_p_values, differs_from_rest
from fairbench.inference.pooled import pool_rates
from fairbench.metrics.rates import binary_confusion, selection_rate, shares_of

WITHIN, BEYOND, UNSURE = "within", "beyond", "open"  # epsilon of everyone
_CERTAIN = 0.95  # the probability with which that is said


def counts_of_rates(
    label: Floats, prediction: NDArray[np.int64], codes: NDArray[np.intp]
) -> tuple[list[str], Floats, Floats]:
    """Return the names of the rates with a non-empty denominator, and their counts (R, G).

    The selection rate counts all rows. Rates that need labels count the labelled rows.

    Parameters
    ----------
    label : (n,) 0, 1, or NaN where unknown.
    prediction : (n,) 0 or 1.
    codes : (n,) the group 0 .. G - 1 of each row; every group has rows.
    """
    labelled = ~np.isnan(label)
    n_rows = np.bincount(codes)
    selection = list(SHOWN).index(selection_rate)
    counts = binary_confusion(
        label[labelled], prediction[labelled], codes[labelled], n_groups=len(n_rows)
    )
    successes, sizes = shares_of(list(SHOWN), counts)
    successes[selection] = np.bincount(codes, prediction)
    sizes[selection] = n_rows
    has_rows = sizes.sum(axis=1) > 0
    names = [rate.name for rate in compress(SHOWN, has_rows)]
    return names, successes[has_rows], sizes[has_rows]


def estimates_of_rates(
    names: Sequence[str],
    successes: Floats,
    sizes: Floats,
    attribute: str,
    groups: Sequence[str],
    *,
    generator: np.random.Generator,
    epsilon: float,
    false_discovery_rate: float = 0.1,
) -> pd.DataFrame:
    """Estimate several rates of many groups, jointly for each rate, and flag groups that stand out.

    Parameters
    ----------
    names : (R,) the names of the rates.
    successes, sizes : (R, G) the rows in each rate's numerator and denominator, by group.
    attribute : the attribute's name; that of a combination joins the names of several.
    groups : (G,) the names of the groups; those of a combination join one name of each attribute.
    epsilon : a distance from everyone under this makes no practical difference.
    false_discovery_rate : the share of the groups called unlike everyone else that may not be.

    Returns
    -------
    A row for each rate and group: rate, group, rows, own rate and pooled estimate with intervals,
    the rate of ``everyone``, how probably the group's is ``within_epsilon`` of it, ``verdict``:
    `WITHIN`, `BEYOND` or `UNSURE`, ``p_value`` of the exact test against the rest, ``adjusted``
    for all tests together, ``unlike_everyone``, and ``exception``: read its own rate.
    """
    posteriors = pool_rates(
        successes[:, None],
        sizes[:, None],
        [generator],
        attributes=parts_of(attribute, groups),
        draws=DRAWS,
    )
    p_values = differs_from_rest(successes, sizes)
    discoveries = adjusted_p_values(p_values, overlapping=True)
    frames = []
    for r, name in enumerate(names):
        posterior = posteriors.take(r).take(0)
        everyone = posterior.draws @ sizes[r] / sizes[r].sum()
        within = (np.abs(posterior.draws - everyone[:, None]) < epsilon).mean(axis=0)
        is_within_or_beyond = [within >= _CERTAIN, within <= 1 - _CERTAIN]
        columns = {
            "rate": name,
            "group": groups,
            "rows": sizes[r].astype(int),
            **estimates_of(successes[r], sizes[r], posterior),
            "everyone": float(successes[r].sum() / sizes[r].sum()),
            "within_epsilon": within,
            "verdict": np.select(is_within_or_beyond, [WITHIN, BEYOND], UNSURE),
            "p_value": p_values[r],
            "adjusted": discoveries[r],
            "unlike_everyone": discoveries[r] <= false_discovery_rate,
            "exception": adjusted_p_values(posterior.surprise) < EXCEPTIONAL,
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)
