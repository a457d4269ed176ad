"""The long table every evaluation returns, built row by row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairbench.evaluation.columns import COLUMNS, KEYS, SETTINGS, STATUSES, without_interval
from fairbench.inference.means import ROWS, Moments, loss_limits
from fairbench.inference.survey import Design

NAN = float("nan")


class Where(NamedTuple):
    """Whom a metric is about: a group of an attribute, an attribute, or everyone."""

    attribute: str = ""
    group: str = ""


class Setting(NamedTuple):
    """The setting of a metric, such as a rate or a level; None where it does not apply."""

    rate: float | None = None
    feature: str | None = None
    bins: int | None = None
    bin: int | None = None
    binning: str | None = None
    variants: int | None = None
    quantile: float | None = None
    level: float | None = None
    epsilon: float | None = None
    band: float | None = None
    constraint: str | None = None
    relaxation: float | None = None
    outcome: str | None = None
    k: int | None = None


class Status(NamedTuple):
    """Whether a value can be relied on: one of `STATUSES`, and why it cannot."""

    kind: str = "ok"
    reason: str = ""


EVERYONE, NO_SETTING, OK = Where(), Setting(), Status()
Row: TypeAlias = tuple[str, str, str, float, float, float, int, str, str, Setting]


def undefined(reason: str) -> Status:
    """Return the status of a value that does not exist for these rows."""
    return Status("undefined", reason)


def insufficient(reason: str) -> Status:
    """Return the status of a value that rests on too few rows."""
    return Status("insufficient", reason)


def mean_of(losses: NDArray[np.float64]) -> float:
    """Return the mean of per-row losses."""
    return float(losses.mean())


def normal_interval(losses: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Return the ends of the normal interval of a mean; NaN of one row, and where it is NaN."""
    n, mean = len(losses), mean_of(losses)
    if n < 2 or not np.isfinite(mean):
        return NAN, NAN
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    half = quantile * float(losses.std(ddof=1)) / np.sqrt(n)
    return mean - half, mean + half


@dataclass
class MetricTable:
    """Rows of one evaluation.

    Attributes
    ----------
    level : probability of the intervals.
    frequentist : every interval holds for few rows and rare labels too, or there is none and the
        status says why; otherwise they are the papers': normal for means, and else none.
    """

    rows: list[Row] = field(default_factory=list)
    level: float = 0.95
    frequentist: bool = True

    def add(
        self,
        metric: str,
        value: float,
        n: int,
        where: Where = EVERYONE,
        *,
        setting: Setting = NO_SETTING,
        interval: tuple[float, float] = (NAN, NAN),
        status: Status = OK,
        bounded: bool = False,
        lacking: str = "",
    ) -> None:
        """Append one row; a NaN value must come with a status that says why.

        Parameters
        ----------
        lacking : why a value that is ok has no interval, if it is not for what the metric is.
        bounded : the interval holds where there is no value, too: over a rate of 0 there is no
            ratio, but one that it exceeds.
        """
        value = float(value)
        if value != value:
            interval = interval if bounded else (NAN, NAN)
            status = status if status.kind != "ok" else undefined("the value is not a number")
        lower, upper = interval
        if self.frequentist and status == OK and lower != lower:
            status = Status("ok", lacking or without_interval(metric))
        self.rows.append(
            (metric, *where, value, float(lower), float(upper), int(n), *status, setting)
        )

    def add_bounded(
        self,
        metric: str,
        value: float,
        n: int,
        interval: tuple[float, float],
        lacking: str,
        where: Where = EVERYONE,
        *,
        setting: Setting = NO_SETTING,
        status: Status = OK,
    ) -> None:
        """Append a value with its interval, of which the papers' evaluation has none.

        Parameters
        ----------
        lacking : why there is no interval, where it is NaN.
        """
        if not self.frequentist:
            interval = (NAN, NAN)
        elif status == OK and np.isnan(interval[0]):
            status = insufficient(lacking)
        self.add(metric, value, n, where, setting=setting, interval=interval, status=status)

    def add_mean(
        self,
        metric: str,
        losses: NDArray[np.float64],
        where: Where = EVERYONE,
        *,
        setting: Setting = NO_SETTING,
        status: Status = OK,
    ) -> None:
        """Append the mean of per-row losses with its interval, NaN if `status` is not ok."""
        n = len(losses)
        if n == 0 or status.kind != "ok":
            reason = status if n else undefined(no_rows(where.group))
            self.add(metric, NAN, n, where, setting=setting, status=reason)
            return
        mean = mean_of(losses)
        interval = normal_interval(losses, self.level)
        if self.frequentist and np.isfinite(mean):
            limits = loss_limits(Moments.of(losses), level=self.level)
            interval = (float(limits.lower), float(limits.upper))
            if n < ROWS:
                status = insufficient(f"n={n}, an interval needs {ROWS}")
        self.add(metric, mean, n, where, setting=setting, interval=interval, status=status)

    def invalidated(self, reason: str) -> MetricTable:
        """Return the same rows without values, undefined for one reason."""
        rows: list[Row] = [
            (*row[:3], NAN, NAN, NAN, row[6], *undefined(reason), row[9]) for row in self.rows
        ]
        return MetricTable(rows, self.level, self.frequentist)

    def add_unweighted(self, rows: Iterable[Row], design: Design | None) -> None:
        """Append rows of metrics that know nothing of how rows were sampled, and say so.

        Of weighted rows their values would be of other people than those spoken of; of clustered
        ones their intervals would be too short.
        """
        if design is None:
            self.rows.extend(rows)
            return
        for row in rows:
            status, interval = Status(*row[7:9]), row[4:6]
            if design.weighted and status.kind not in ("undefined", "invalid"):
                row = (*row[:3], NAN, NAN, NAN, row[6], *undefined("it takes no weights"), row[9])
            elif not np.isnan(interval).all():
                if status.kind == "ok":
                    status = insufficient("its interval would take clustered rows for independent")
                row = (*row[:4], NAN, NAN, row[6], *status, row[9])
            self.rows.append(row)

    def frame(self) -> pd.DataFrame:
        """Return the rows as a data frame with the columns of `COLUMNS`."""
        return pd.DataFrame(_columns(self.rows), columns=list(COLUMNS))


# An evaluation, with the repeat, fold and variant that it is of.
KeyedTable: TypeAlias = tuple[tuple[int, int, str], MetricTable]


def concatenate(tables: Iterable[KeyedTable]) -> pd.DataFrame:
    """Stack evaluations into one data frame, each with its repeat, fold and variant in front."""
    parts = [(keys, table.rows) for keys, table in tables if table.rows]
    lengths = [len(rows) for _, rows in parts]
    keys = {
        name: np.repeat(np.array([each[i] for each, _ in parts], dtype), lengths)
        for i, (name, dtype) in enumerate(zip(KEYS, (np.int64, np.int64, object), strict=True))
    }
    rows = [row for _, each in parts for row in each]
    return pd.DataFrame({**keys, **_columns(rows)}, columns=[*KEYS, *COLUMNS])


def _columns(rows: list[Row]) -> dict[str, Any]:
    """Return the columns of rows; the settings, of which there are few, are made once each."""
    metric, attribute, group, value, lower, upper, n, status, reason, settings = (
        zip(*rows, strict=True) if rows else ((),) * 10
    )
    kinds = {kind: code for code, kind in enumerate(STATUSES)}
    codes: dict[Setting, int] = {}
    place = np.array([codes.setdefault(each, len(codes)) for each in settings], np.intp)
    values = {name: [each[i] for each in codes] for i, name in enumerate(SETTINGS)}
    taken = {name: each for name, each in values.items() if any(v is not None for v in each)}
    empty = {dtype: _empty(dtype, len(place)) for dtype in set(SETTINGS.values())}
    return {
        "metric": np.array(metric, object),
        "attribute": np.array(attribute, object),
        "group": np.array(group, object),
        "value": np.array(value, float),
        "lower": np.array(lower, float),
        "upper": np.array(upper, float),
        "n": np.array(n, np.int64),
        "status": pd.Categorical.from_codes([kinds[each] for each in status], list(STATUSES)),
        "reason": np.array(reason, object),
        **{
            name: pd.array(taken[name], dtype).take(place) if name in taken else empty[dtype]
            for name, dtype in SETTINGS.items()
        },
    }


def _empty(dtype: str, length: int) -> Any:
    """Return the column of a setting that no row has."""
    none = np.ones(length, np.int64)
    if dtype == "category":
        return pd.Categorical.from_codes(-none, pd.Index([], dtype="str"))
    return pd.arrays.IntegerArray(none, none > 0) if dtype == "Int64" else NAN * none


def no_rows(group: str) -> str:
    """Return the status of a metric of no rows."""
    return f"no rows in group '{group}'" if group else "no rows"


def invalid_rows(bad: NDArray[np.bool_], what: str) -> Status:
    """Say of how many rows a metric cannot be computed; ok where there is none."""
    if not bad.any():
        return OK
    return Status("invalid", f"{what} invalid in {int(bad.sum())} of {len(bad)} rows")
