"""What Python code gives for options, as the dataclass that declares them takes it."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

from fairbench.core.errors import UserError
from fairbench.core.formats import quoted


def typed_values(options: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as the fields of a dataclass take them: texts, numbers, or tuples of these.

    Parameters
    ----------
    given : name of a field -> a value, or several of them in anything that can be iterated over.

    Raises
    ------
    UserError : a value that is not the number or the text it must be.
    """
    kinds = get_type_hints(options)
    return {name: _typed(name, value, kinds[name]) for name, value in given.items()}


def _typed(name: str, value: Any, kind: Any) -> Any:
    """Return a value of the type that an option is declared with."""
    if isinstance(kind, UnionType):
        if value is None:
            return None
        (kind,) = (arg for arg in get_args(kind) if arg is not NoneType)
    if get_args(kind) and get_args(kind)[-1] is Ellipsis:
        if not isinstance(value, str) and not hasattr(value, "__iter__"):
            value = str(value)
        several = ([value] if value else []) if isinstance(value, str) else list(value)
        return tuple(_typed(name, item, get_args(kind)[0]) for item in several)
    if kind not in (str, int, float):
        return value
    wanted = "a text" if kind is str else "a number"
    if hasattr(value, "__len__") and not isinstance(value, str):
        raise UserError(f"{name} is a {type(value).__name__}; it must be {wanted}")
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise UserError(f"{name} is {quoted(value)}; it must be {wanted}") from None
