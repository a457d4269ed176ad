"""Each group's share of the positions of a ranking, in plain columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.core.arrays import Floats
from fairbench.data.groups import codes_of
from fairbench.inference.exposure import exposure_weights, top_weights, weighted_shares
from fairbench.inference.rates import Limits

Codes = NDArray[np.intp]
TOP, EXPOSURE = "top", "exposure"
_LONG = ("value", "lower", "upper", "n")
_LENGTHS = 40  # of the first places


def shares_of_places(
    score: Floats,
    groups: Mapping[str, pd.Series],
    lists: Codes | None,
    top: float,
    *,
    level: float = 0.95,
    error_rate: float = 0.05,
) -> pd.DataFrame:
    """Return the share of a ranking's positions that each group of each attribute gets.

    Parameters
    ----------
    score : (n,) scores; the highest comes first.
    groups : attribute -> (n,) categorical labels.
    lists : (n,) the list that each row is in, if there are several.
    top : how many positions count as the top, or which share of all positions.
    level : the level of the intervals.
    error_rate : the probability that any row of the table is wrong to be `surely` true.

    Returns
    -------
    A row for each attribute, kind and group. kind : `TOP`, the top positions, or `EXPOSURE`, all
    positions weighted by how much they are seen. of_rows : the group's share of all rows. share :
    its share of the positions. ratio : share over of_rows, 1 if they are equal. below : the
    probability that the ratio is under four fifths. surely : whether the ratio differs from 1,
    simultaneously for all rows of the table.
    """
    list_codes = np.zeros(len(score), np.intp) if lists is None else lists
    kinds = {
        TOP: top_weights(score, list_codes, top),
        EXPOSURE: exposure_weights(score, list_codes),
    }
    questions = len(kinds) * sum(len(labels.cat.categories) for labels in groups.values())
    tables = []
    for attribute, labels in groups.items():
        codes, names = codes_of(labels)
        for kind, weight in kinds.items():
            at_level, wider = (
                weighted_shares(weight, codes, len(names), lists=lists, level=reach)
                for reach in (level, 1 - error_rate / questions)
            )
            # The errors' correlation depends on the level a little, and so does what is wider.
            lower = np.minimum(at_level.ratios.lower, wider.ratios.lower)
            upper = np.maximum(at_level.ratios.upper, wider.ratios.upper)
            about = {"attribute": attribute, "group": names, "kind": kind}
            counts = {"rows": np.bincount(codes), "of_rows": at_level.rows.value}
            share = _limit_columns("share", at_level.shares)
            ratio = _limit_columns("ratio", at_level.ratios)
            sure = {"below": at_level.below, "surely": (lower > 1) | (upper < 1)}
            tables.append(pd.DataFrame(about | counts | share | ratio | sure))
    return pd.concat(tables, ignore_index=True)


def in_long_form(shares: pd.DataFrame) -> pd.DataFrame:
    """Return shares and ratios, of what `shares_of_places` returns, one per row.

    Returns
    -------
    metric, such as ``top_share``, attribute, group, value, lower, upper and n, the group's rows.
    """
    tables = []
    for name in ("share", "ratio"):
        columns = dict(zip((name, f"{name}_lower", f"{name}_upper", "rows"), _LONG, strict=True))
        long = shares.rename(columns=columns).assign(metric=shares["kind"] + f"_{name}")
        tables.append(long[["metric", "attribute", "group", *_LONG]])
    return pd.concat(tables).sort_index(kind="stable")


def shares_by_length(
    score: Floats, codes: Codes, groups: int, lists: Codes | None
) -> tuple[Floats, Limits]:
    """Return the groups' shares of the top positions, for tops of different lengths.

    Parameters
    ----------
    score : (n,) scores; the highest comes first.
    codes : (n,) the group 0 .. G - 1 of each row.
    lists : (n,) which list a row is in, where there are several.

    Returns
    -------
    The lengths (L,) of the top, up to that of the longest list, and the shares (L, G).
    """
    list_codes = np.zeros(len(score), np.intp) if lists is None else lists
    spread = np.round(np.geomspace(1, np.bincount(list_codes).max(), _LENGTHS))
    lengths = np.unique(np.asarray(spread, np.float64))
    tops = [top_weights(score, list_codes, length) for length in lengths]
    shares = [weighted_shares(top, codes, groups, lists=lists).shares for top in tops]
    return lengths, Limits(*np.stack(shares, axis=1))


def _limit_columns(name: str, limits: Limits) -> dict[str, Floats]:
    """Return the columns of a value and of both limits."""
    return dict(zip((name, f"{name}_lower", f"{name}_upper"), limits, strict=True))
