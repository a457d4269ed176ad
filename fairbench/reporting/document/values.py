"""Texts of the values of each kind of column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isnan
from types import MappingProxyType
from typing import Any

from fairbench.core import formats
from fairbench.reporting.document.model import Column, as_cell, plain


def _text(value: Any, decimals: int) -> str:
    return plain(value) if isinstance(value, tuple) else str(value)


def _estimate(parts: tuple[float, float, float], decimals: int) -> str:
    """Return a value, and its interval in brackets."""
    value, lower, upper = parts
    ends = formats.interval(lower, upper, decimals)
    return formats.number(value, decimals) + (f" ({ends})" if ends else "")


def _spread(parts: tuple[float, float], decimals: int) -> str:
    """Return a mean, and an sd in brackets."""
    mean, sd = parts
    return f"{formats.number(mean, decimals)} ({formats.number(sd, decimals)})"


_FORMATS: Mapping[str, Callable[[Any, int], str]] = MappingProxyType(
    {
        "text": _text,
        "number": formats.number,
        "signed": formats.signed,
        "general": lambda value, decimals: f"{value:g}",
        "count": lambda value, decimals: formats.count(value),
        "probability": lambda value, decimals: formats.probability(value),
        "percent": lambda value, decimals: formats.percent(value),
        "interval": lambda ends, decimals: formats.interval(ends[0], ends[1], decimals),
        "estimate": _estimate,
        "spread": _spread,
    }
)


def value_text(value: Any, column: Column) -> str:
    """Return a value of a column as text; empty for a missing value, and for a bar."""
    if value is None or column.kind == "bar":
        return ""
    return _FORMATS[column.kind](value, column.decimals)


def cell_text(value: Any, column: Column) -> str:
    """Return a cell of a table as text, with the texts around its value."""
    cell = as_cell(value)
    return f"{cell.before}{plain(value_text(cell.value, column))}{plain(cell.after)}"


def exact(value: Any) -> str:
    """Return the number by which a cell is sorted, the first of several; empty if undefined."""
    if isinstance(value, tuple):
        value = value[0]
    return "" if value is None or isnan(value) else f"{value:.8g}"
