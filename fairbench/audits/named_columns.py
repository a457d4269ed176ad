"""What may be said where a column is named: the bands of ages, the period of dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fairbench.core.errors import UserError, check_choice

PROBABILITY, PERCENT = "probability", "percent"
SCALES = (PROBABILITY, PERCENT)
PERIODS = ("day", "week", "month", "quarter", "year")
QUANTILES = re.compile(r"quantiles\((\d+)\)")


def bands_apart(named: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of groups, and the bands of those that have some, as ``age:25,40,62``.

    Parameters
    ----------
    named : the items of ``group=``, as a list of a command line or of Python has them: bands may
        be one item or one a number.

    Examples
    --------
    >>> bands_apart(["sex", "age:25", "40", "62"])
    (('sex', 'age'), ('age:25,40,62',))
    """
    joined: list[str] = []
    for item in named:
        if joined and _is_number(item) and _has_bands(joined[-1]):
            joined[-1] += f",{item}"
        else:
            joined.append(item)
    columns = tuple(each.rpartition(":")[0] if _has_bands(each) else each for each in joined)
    return columns, tuple(each for each in joined if _has_bands(each))


def _has_bands(item: str) -> bool:
    name, colon, spec = item.rpartition(":")
    parts = [each.strip() for each in spec.split(",")]
    return bool(name and colon and (QUANTILES.fullmatch(spec) or all(map(_is_number, parts))))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)\s*", text) is not None


def check_bands(cuts: Iterable[str]) -> None:
    """Refuse bands that are none: limits that do not rise, or fewer than two parts."""
    for each in cuts:
        name, _, spec = each.rpartition(":")
        parts = QUANTILES.fullmatch(spec)
        if parts and int(parts.group(1)) < 2:
            raise UserError(f"group={each}: name two parts or more, such as {name}:quantiles(4)")
        limits = [] if parts else [float(part) for part in spec.split(",")]
        if any(low >= high for low, high in zip(limits, limits[1:], strict=False)):
            raise UserError(f"group={each}: the limits of bands rise, such as {name}:25,40,62")


def period_asked(time: str) -> tuple[str, str]:
    """Return the column of periods and their unit, empty where its values are the periods.

    Raises
    ------
    UserError : a unit that there is not.
    """
    name, colon, unit = time.rpartition(":")
    if not colon:
        return time, ""
    check_choice("period", unit, PERIODS)
    return name, unit
