"""How an option of a command is declared: a field of a frozen dataclass with one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field
from typing import Any, get_args, get_type_hints

from fairbench.core.errors import UserError


def option(
    default: Any,
    sentence: str,
    *,
    shown: str = "",
    argument: str = "",
    choices: Sequence[str] = (),
    least: float | None = None,
    several: str = "",
    pairs: Callable[[str], bool] | None = None,
    applies: Sequence[str] = (),
) -> Any:
    """Declare a field that a command line sets as ``name=value``.

    Parameters
    ----------
    default : the value where none is given; a function without arguments makes one each time.
    sentence : what the option means, for ``--help``.
    shown : what ``--help`` shows for the value, such as ``COLUMN``, where the type says too little.
    argument : what ``--help`` calls the value where it may be given without ``name=``.
    choices : the only values that are taken, if they can be listed.
    least : the smallest number that is taken.
    several : the field that gets the value where it is a list of two or more.
    pairs : says of the name in any other ``name=value`` whether this field collects the pair.
    applies : to what the option applies, where a command is about several things; to all of them
        where none is named.
    """
    metadata = {
        "sentence": sentence,
        "shown": shown,
        "argument": argument,
        "choices": tuple(choices),
        "least": least,
        "several": several,
        "pairs": pairs,
        "applies": tuple(applies),
    }
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def hidden(default: Any = MISSING, *, given: bool = False) -> Any:
    """Declare a field that no command line sets.

    Parameters
    ----------
    given : the field gets the names of the options that were given, as a frozenset.
    """
    return field(default=default, metadata={"hidden": True, "given": given})


def typed_values(options: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what Python code gave, as the fields of a dataclass of options take it.

    Parameters
    ----------
    given : name of a field -> a value; a text, a number, or several of them.

    Raises
    ------
    UserError : a value that is not the number it must be.
    """
    kinds = get_type_hints(options)
    return {name: _typed(name, value, kinds[name]) for name, value in given.items()}


def _typed(name: str, value: Any, kind: Any) -> Any:
    if get_args(kind) and get_args(kind)[-1] is Ellipsis:
        several = [value] * bool(value) if isinstance(value, str) else list(value)
        return tuple(_typed(name, item, get_args(kind)[0]) for item in several)
    if kind not in (str, int, float):
        return value
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise UserError(f"{name} is {value!r}; it must be a number") from None
