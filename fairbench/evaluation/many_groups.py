"""Rates of many groups estimated together, from a table of counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from fairbench.core.arrays import Codes, Floats, rng
from fairbench.core.errors import UserError, check_minimum, check_share
from fairbench.core.text import MISSING
from fairbench.data.columns import text_of
from fairbench.data.groups import CROSSED
from fairbench.data.in_memory import as_array, by_text
from fairbench.evaluation.table import values_of
from fairbench.inference.gaps import GroupLimits, probability_below, surest_gap
from fairbench.inference.pooled import (
    Pooled,
    adjusted_p_values,
    differs_from_rest,
    pool,
    same_rate,
)
from fairbench.inference.rates import rate_limits
from fairbench.metrics import registry

# What is printed of every group, and whether the largest value is the worst.
SHOWN = {
    registry.selection_rate: False,
    registry.error_rate: True,
    registry.true_positive_rate: False,
    registry.false_positive_rate: True,
}
DRAWS = 400  # that a table needs: a probability to two digits
EXCEPTIONAL = 0.05  # share of false alarms among the groups called unlike the others
FALSE_DISCOVERY_RATE = 0.1  # the share of the groups called unlike everyone else that may not be
_TESTED = ["metric", "attribute", "group"]  # what one test is about
CLASS = " of "  # between the name of a rate and that of a class
_WHOLE = 1e-6  # how far a count may be from a whole number


def parts_of(attribute: str, groups: Sequence[str]) -> Codes | None:
    """Return codes (G, K) of the K values that each group combines; None for one attribute.

    Parameters
    ----------
    attribute : the attribute's name; that of a combination joins the names of several.
    groups : (G,) the names of the groups; those of a combination join one name of each attribute.
    """
    n_attributes = len(attribute.split(CROSSED))
    values = [group.split(CROSSED) for group in groups]
    if n_attributes < 2 or any(len(group_values) != n_attributes for group_values in values):
        return None
    return _codes(zip(*values, strict=True))


def _codes(columns: Iterator[Sequence[object]] | Sequence[Sequence[object]]) -> Codes:
    codes = [
        np.unique(np.array([str(value) for value in column]), return_inverse=True)[1]
        for column in columns
    ]
    return np.column_stack(codes).astype(np.int64)


def pooled(
    counts: ArrayLike,
    sizes: ArrayLike,
    *,
    groups: Sequence[object] | None = None,
    attributes: Mapping[str, Sequence[object]] | pd.DataFrame | None = None,
    worst: str = "smallest",
    epsilon: float = 0.05,
    level: float = 0.95,
    false_discovery_rate: float = 0.1,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Estimate one rate in many groups jointly, with partial pooling.

    A raw rate of 20 people is mostly noise. Here each group's estimate is shrunk towards the rate
    predicted from the other groups, in particular those that share the value of an attribute with
    it. It shrinks the more, the fewer rows the group has and the less the other groups vary. A
    group that is unlike the others is marked as an exception: read its raw rate instead.

    Parameters
    ----------
    counts : (G,) the rows in each group's numerator, such as those that are selected, or right.
    sizes : (G,) the rows of each group. A group may be empty.
    groups : the groups' names; without them, the values of their attributes, or numbers from 0.
    attributes : attribute -> (G,) values, where each group is a combination of several, such as
        sex and race.
    worst : whether the ``smallest`` or the ``largest`` rate is the worst.
    epsilon : a gap under this makes no practical difference.
    level : probability of the intervals.
    false_discovery_rate : the share of flags that may be wrong, on average.
    draws : posterior draws.
    seed : the seed of these draws.

    Returns
    -------
    One row per group, by name:

    n, raw, raw_lower, raw_upper : the group's rows, and its rate and interval from them alone.
    pooled, lower, upper : the estimate from all groups, and its credible interval.
    rank_lower, rank_upper : interval of its rank, from 1 for the smallest rate.
    worst : the probability that no other group's rate is worse.
    exception : whether its raw rate is surprising among the others (then read ``raw``).
    differs : whether it is flagged as different from everyone else.

    ``attrs["gap_below"]`` is the probability that the largest gap is under `epsilon`. It is bounded
    by what the gap's interval from the counts alone allows.
    ``attrs["at_least"]`` and ``attrs["at_most"]`` are bounds on the rates of all groups at once,
    at `level` and from the counts alone, each with the group that limits it.

    Raises
    ------
    UserError : if lengths or the orders of series differ; a count is negative, missing or above its
        size; the level, the false discovery rate or epsilon is not between 0 and 1; or there are
        fewer than 100 draws.

    Examples
    --------
    >>> import fairbench
    >>> table = fairbench.pooled([30, 33, 5, 0], [100, 100, 10, 2], groups=list("abcd"))
    >>> table[["raw", "pooled"]].round(1).loc["c"].to_dict()
    {'raw': 0.5, 'pooled': 0.4}
    >>> bool(table.loc["d", "upper"] < table.loc["d", "raw_upper"])
    True
    """
    y, n = _counts(counts, sizes)
    check_share("level", level)
    check_share("false_discovery_rate", false_discovery_rate)
    check_share("epsilon", epsilon, zero=True)
    check_minimum("draws", draws, 100, whole=True)
    if worst not in ("smallest", "largest"):
        raise UserError(f"worst is '{worst}'; valid: smallest, largest")
    given = by_text({} if attributes is None else attributes.items(), "attributes")
    _check_order({"counts": counts, "sizes": sizes, "groups": groups, **given})
    columns = {name: list(values) for name, values in given.items()}
    if groups is not None:
        names = [text_of(group) or MISSING for group in groups]
    elif columns:
        names = [CROSSED.join(map(str, values)) for values in zip(*columns.values(), strict=False)]
    else:
        names = [str(g) for g in range(len(n))]
    for name, values in {**columns, "groups": names}.items():
        if len(values) != len(n):
            raise UserError(f"{name} has {len(values)} values, but there are {len(n)} groups")
    codes = _codes(list(columns.values())) if columns else None
    posterior = pool(y, n, rng(seed, "posterior"), attributes=codes, draws=draws)
    lowest_rank, highest_rank = posterior.ranks(level)
    table = pd.DataFrame(
        {
            "n": n.astype(int) if (n == np.round(n)).all() else n,
            **own_and_pooled(y, n, posterior, level),
            "rank_lower": lowest_rank,
            "rank_upper": highest_rank,
            "worst": posterior.worst(largest=worst == "largest"),
            "exception": adjusted_p_values(posterior.surprise) < EXCEPTIONAL,
            "differs": adjusted_p_values(differs_from_rest(y, n)) <= false_discovery_rate,
        },
        index=pd.Index(names, name="group"),
    )
    gap, _, _ = surest_gap(GroupLimits.of(y, n, level=level))
    table.attrs["gap_below"] = float(
        probability_below(posterior.gap_below(epsilon), gap.lower, gap.upper, epsilon, level=level)
    )
    least, group = _all_at_least(y, n, level)
    table.attrs["at_least"] = {"bound": least, "group": names[group]}
    least, group = _all_at_least(n - y, n, level)  # of the others
    table.attrs["at_most"] = {"bound": 1 - least, "group": names[group]}
    return table


def _all_at_least(successes: ArrayLike, sizes: ArrayLike, level: float = 0.95) -> tuple[float, int]:
    """Certify "no group's rate is under c" with the largest c that holds with confidence `level`.

    Returned are the bound c and the position of the group that determines it.

    c is the smallest of the groups' exact one-sided limits (0 for an empty group), without a
    correction: the statement is false only if the truly worst group is under c, and then that
    group's own limit has failed. So the error rate is that of one limit, for any number of groups,
    overlapping or not.
    """
    y, n = np.asarray(successes, np.float64), np.asarray(sizes, np.float64)
    limits = np.where(y > 0, special.betaincinv(np.maximum(y, 1), n - y + 1, 1 - level), 0.0)
    worst = int(limits.argmin())
    return float(limits[worst]), worst


def own_and_pooled(
    successes: Floats, sizes: Floats, posterior: Pooled, level: float = 0.95
) -> dict[str, Floats]:
    """Return each group's rate (G,), by its own counts and among the others, with intervals."""
    raw = rate_limits(successes, sizes, level=level)
    lower, upper = posterior.interval(level)
    own = {"raw": raw.value, "raw_lower": raw.lower, "raw_upper": raw.upper}
    return {**own, "pooled": posterior.mean, "lower": lower, "upper": upper}


def unlike_everyone_else(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the groups of a run that differ from everyone else, over all its rates together.

    Every group of an attribute with three or more is tested in four rates (Fisher's exact test with
    mid-p). The folds of a repeat are one test; repeats share rows, so that twice the mean of their
    p-values counts (Vovk & Wang 2020, Combining p-values via averaging). Benjamini & Yekutieli's
    procedure then chooses among all tests of the run, which depend on each other.

    Parameters
    ----------
    metrics : the long table of one run. Weighted rates, which are not counts, are left out.


    Returns
    -------
    A table, most certain first, with the columns metric (for a class ``selection_rate of CLASS``),
    attribute, group, value, rest (the rate of everyone else), n (rows) and adjusted (the adjusted
    p-value: the smallest false discovery rate at which the row is returned). ``attrs["tests"]`` is
    the number of tests.
    """
    tests = _against_the_rest(metrics)
    kept = tests[tests["adjusted"] <= FALSE_DISCOVERY_RATE]
    furthest = np.lexsort([-(kept["value"] - kept["rest"]).abs(), kept["adjusted"]])
    kept = kept.iloc[furthest].reset_index(drop=True)
    kept.attrs["tests"] = len(tests)
    return kept


def _against_the_rest(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return one row per rate and group, with the p-value of all repeats and its adjusted one."""
    metrics = values_of(metrics)
    of_groups = (metrics["variant"] == "") & (metrics["group"] != "") & (metrics["n"] > 0)
    of_groups &= metrics["value"].between(0, 1)  # which only a table made elsewhere may not be
    names = {rate.name for rate in SHOWN}
    rows = metrics[of_groups & metrics["metric"].isin(names)]
    # Of two groups, everyone else of one is the other: that is their gap.
    rows = rows[rows.groupby("attribute", observed=True)["group"].transform("nunique") > 2]  # noqa: PLR2004
    rows = rows.assign(metric=with_class(rows), count=rows["value"] * rows["n"])
    rows = rows[["repeat", *_TESTED, "n", "count"]]
    is_whole = (rows["count"] - rows["count"].round()).abs() < _WHOLE
    # A weighted rate of 0 or 1 looks like one of counts; those beside it do not.
    rows = rows[is_whole.groupby([rows["metric"], rows["attribute"]]).transform("all")]
    rows = rows.groupby(["repeat", *_TESTED], observed=True, sort=False).sum().reset_index()
    everyone = rows.groupby(["repeat", "metric", "attribute"], observed=True)[["n", "count"]]
    others = everyone.transform("sum") - rows[["n", "count"]]
    p_values = same_rate(rows["count"].round(), rows["n"], others["count"].round(), others["n"])
    rows = rows.assign(
        value=rows["count"] / rows["n"],
        rest=others["count"] / others["n"].where(others["n"] > 0),
        p=p_values,
    )
    tests = rows.groupby(_TESTED, observed=True, sort=False).agg(
        value=("value", "mean"), rest=("rest", "mean"), n=("n", "median"),
        p=("p", "mean"), repeats=("p", "size"),
    )  # fmt: skip
    combined = np.minimum(1, tests["p"] * np.where(tests["repeats"] > 1, 2, 1))
    adjusted_p = adjusted_p_values(combined, overlapping=True)
    return tests.assign(adjusted=adjusted_p).drop(columns=["p", "repeats"]).reset_index()


def with_class(rows: pd.DataFrame) -> pd.Series:
    """Return the metric of each row, with the name of its class in a task of several classes."""
    if "outcome" not in rows or rows["outcome"].isna().all():
        return rows["metric"]
    with_outcome = rows["metric"].astype(str) + CLASS + rows["outcome"].astype(str)
    return rows["metric"].astype(str).where(rows["outcome"].isna(), with_outcome)


def _check_order(columns: Mapping[str, Any]) -> None:
    """Refuse series whose rows are in different orders: they are paired by position."""
    series = [
        (name, values.index) for name, values in columns.items() if isinstance(values, pd.Series)
    ]
    for name, index in series[1:]:
        if not index.equals(series[0][1]):
            raise UserError(
                f"the rows of {name} and of {series[0][0]} have different names (index): give both "
                "with one index in one order, or as arrays (.to_numpy())"
            )


def _counts(counts: ArrayLike, sizes: ArrayLike) -> tuple[Floats, Floats]:
    """Return counts and sizes (G,) as numbers, once it is sure that they can be both."""
    try:
        y, n = (np.asarray(as_array(values), np.float64) for values in (counts, sizes))
    except (TypeError, ValueError) as error:
        raise UserError(f"counts and sizes must be numbers: {error}") from error
    if y.ndim != 1 or y.shape != n.shape or not len(y):
        raise UserError(f"counts have shape {y.shape}, sizes {n.shape}: give one of each a group")
    wrong = np.flatnonzero(~((y >= 0) & (y <= n) & np.isfinite(n)))
    if wrong.size:
        g = wrong[0]
        raise UserError(f"group {g} has {y[g]:g} of {n[g]:g}: a count lies between 0 and its size")
    return y, n
