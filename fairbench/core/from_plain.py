"""Plain values, as JSON has them, turned into the dataclasses whose fields they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, get_args, get_origin, get_type_hints


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def from_plain(kind: Any, value: Any) -> Any:
    """Return plain values as a type hint has them, and all that they hold in turn.

    Parameters
    ----------
    kind : a dataclass, a text or a number, ``tuple[X, ...]``, ``Mapping[str, X]``, or any of these
        ``| None``. A value of any other kind stays as it is.

    Raises
    ------
    TypeError, ValueError : a field is missing or unknown, or a value is of another kind.
    """
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(
            **{name: from_plain(hints.get(name), part) for name, part in dict(value).items()}
        )
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else from_plain(inner[0], value)
    if origin is tuple:
        return tuple(from_plain(inner[0], part) for part in value)
    if origin is Mapping:
        return {name: from_plain(inner[1], part) for name, part in dict(value).items()}
    if kind in _SCALARS and type(value) not in _SCALARS[kind]:
        raise TypeError(f"{str(value)[:40]!r} is no {kind.__name__}")
    return value


_SCALARS: Mapping[Any, tuple[type, ...]] = MappingProxyType(
    {str: (str,), bool: (bool,), int: (int,), float: (int, float)}
)
