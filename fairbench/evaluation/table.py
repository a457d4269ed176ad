"""The long table every evaluation returns, built row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

COLUMNS = ("metric", "attribute", "group", "setting", "value", "lower", "upper", "n", "status")
KEYS = ("repeat", "fold", "variant")
NAN = float("nan")


class Where(NamedTuple):
    """What a row is about: a group of an attribute, an attribute, or everyone."""

    attribute: str = ""
    group: str = ""


EVERYONE = Where()


@dataclass
class MetricTable:
    """Rows of one evaluation; `level` is the probability of the intervals of means."""

    rows: list[tuple[object, ...]] = field(default_factory=list)
    level: float = 0.95

    def add(
        self,
        metric: str,
        value: float,
        n: int,
        where: Where = EVERYONE,
        *,
        setting: str = "",
        interval: tuple[float, float] = (NAN, NAN),
        status: str = "ok",
    ) -> None:
        """Append one row; a NaN value must come with a status that says why."""
        if np.isnan(value):
            interval = (NAN, NAN)
            status = status if status != "ok" else "undefined"
        self.rows.append(
            (metric, *where, setting, float(value), *map(float, interval), int(n), status)
        )

    def add_mean(
        self,
        metric: str,
        losses: NDArray[np.float64],
        where: Where = EVERYONE,
        *,
        setting: str = "",
        status: str = "ok",
    ) -> None:
        """Append the mean of per-row losses with its normal interval, NaN if `status` is not ok."""
        n = len(losses)
        if n == 0 or status != "ok":
            reason = status if n else f"undefined: {no_rows(where.group)}"
            self.add(metric, NAN, n, where, setting=setting, status=reason)
            return
        mean = float(losses.mean())
        if not np.isfinite(mean):
            self.add(metric, mean, n, where, setting=setting)
            return
        quantile = NormalDist().inv_cdf((1 + self.level) / 2)
        half = quantile * float(losses.std(ddof=1)) / np.sqrt(n) if n > 1 else NAN
        self.add(metric, mean, n, where, setting=setting, interval=(mean - half, mean + half))

    def frame(self) -> pd.DataFrame:
        """Return the rows as a data frame with the columns of `COLUMNS`."""
        return pd.DataFrame(self.rows, columns=list(COLUMNS))


def no_rows(group: str) -> str:
    """Say that a part is empty."""
    return f"no rows in group '{group}'" if group else "no rows"


def invalid_rows(bad: NDArray[np.bool_], what: str) -> str:
    """Say of how many rows a metric does not exist, "ok" where it does of all."""
    return (
        f"undefined: {what} invalid in {int(bad.sum())} of {len(bad)} rows" if bad.any() else "ok"
    )


def invalidate(table: pd.DataFrame, reason: str) -> pd.DataFrame:
    """Return the same rows with NaN values and the status ``undefined: reason``."""
    return table.assign(value=NAN, lower=NAN, upper=NAN, status=f"undefined: {reason}")


def concatenate(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Stack evaluations into one table with the keys first."""
    stacked = pd.concat(list(tables), ignore_index=True)
    return stacked[[*KEYS, *COLUMNS]]
