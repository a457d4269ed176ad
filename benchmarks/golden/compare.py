"""Comparing two collections of answers, and saying in words where they differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

Same = Callable[[Any, Any], bool]
_TEN, _TWELVE = 1e-9, 1e-12


def same_bits(one: Any, other: Any) -> bool:
    """Say whether two values are of one type and the same to the last bit; NaN is NaN."""
    return type(one) is type(other) and repr(one) == repr(other)


def same_to_ten_digits(one: Any, other: Any) -> bool:
    """Say whether two numbers agree as far as ten digits tell; texts are the same or not."""
    return _same(one, other, _TEN)


def same_but_for_sums(one: Any, other: Any) -> bool:
    """Say whether two numbers agree to twelve digits: as far as the order of a sum allows."""
    return type(one) is type(other) and _same(one, other, _TWELVE)


def _same(one: Any, other: Any, tolerance: float) -> bool:
    numbers = [
        isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other)
    ]
    if not all(numbers):
        return same_bits(one, other)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance * 1e-3)


def differences(was: Any, found: Any, same: Same, where: str = "") -> Iterator[str]:
    """Yield a sentence for every place where two answers differ.

    Parameters
    ----------
    was, found : what is expected, and what there is: nested dicts and lists of plain values.
    same : when two plain values are the same.
    where : what is compared, for the sentences.
    """
    if isinstance(was, dict) and isinstance(found, dict):
        yield from _of_keys(was, found, same, where)
    elif isinstance(was, list) and isinstance(found, list):
        yield from _of_items(was, found, same, where)
    elif not same(was, found):
        yield f"{where}: was {was!r}, is {found!r}"


def _of_keys(was: dict[str, Any], found: dict[str, Any], same: Same, where: str) -> Iterator[str]:
    for key in was.keys() - found.keys():
        yield f"{where}: '{key}' is missing"
    for key in found.keys() - was.keys():
        yield f"{where}: '{key}' is new"
    if is_table(was) and is_table(found):
        yield from _of_cells(was, found, same, where)
        return
    for key in was:
        if key in found:
            yield from differences(was[key], found[key], same, f"{where}, {key}" if where else key)


def _of_items(was: list[Any], found: list[Any], same: Same, where: str) -> Iterator[str]:
    if len(was) != len(found):
        yield f"{where}: had {len(was)} items, has {len(found)}"
        return
    for place, (one, other) in enumerate(zip(was, found, strict=True), start=1):
        yield from differences(one, other, same, f"{where}, item {place}")


def _of_cells(
    was: dict[str, list[Any]], found: dict[str, list[Any]], same: Same, where: str
) -> Iterator[str]:
    """Compare two tables, and name a row by the texts in it.

    Metrics that the first does not know are new, and nothing to compare.
    """
    found = _known_metrics(was, found)
    rows, now = (len(next(iter(each.values()), [])) for each in (was, found))
    if rows != now:
        yield f"{where}: had {rows} rows, has {now}"
        return
    for row in range(rows):
        for column in was.keys() & found.keys():
            one, other = was[column][row], found[column][row]
            if not same(one, other):
                texts = [each[row] for each in was.values() if isinstance(each[row], str)]
                name = ", ".join(filter(None, texts))
                yield f"{where}, row {row + 1} ({name}): {column} was {one!r}, is {other!r}"


def _known_metrics(was: dict[str, list[Any]], found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    if not ("metric" in was and "metric" in found):
        return found
    known = set(was["metric"])
    kept = [row for row, metric in enumerate(found["metric"]) if metric in known]
    return {column: [values[row] for row in kept] for column, values in found.items()}


def is_table(value: Any) -> bool:
    """Say whether a value is columns of equal length that hold no columns themselves."""
    if not (isinstance(value, dict) and value):
        return False
    columns = list(value.values())
    if not all(isinstance(each, list) for each in columns):
        return False
    plain = not any(isinstance(item, dict | list) for each in columns for item in each)
    return plain and len({len(each) for each in columns}) == 1
