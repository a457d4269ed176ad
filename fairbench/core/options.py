"""Options of a command: how they are declared, and how values become those of a dataclass.

An option is a field of a frozen dataclass with one sentence (:func:`option`). Python code gives
values of any type (:func:`typed_values`), stored states plain ones as JSON has them
(:func:`from_plain`), and Hydra reads words (:func:`hydra_word`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from fairbench.core.errors import UserError, check_choice, check_minimum, check_share
from fairbench.core.text import is_number, quoted


def option(
    default: Any,
    sentence: str = "",
    *,
    shown: str = "",
    argument: str = "",
    choices: Sequence[str] = (),
    least: float | None = None,
    above: float | None = None,
    share: bool = False,
    needed: str = "",
    several: str = "",
    pairs: Callable[[str], bool] | None = None,
    applies: Sequence[str] = (),
    main: bool = False,
    needs: Sequence[str] = (),
    excludes: Sequence[str] = (),
) -> Any:
    """Declare a field that a command line sets as ``name=value``.

    Parameters
    ----------
    default : the value if none is given; a function without arguments is called for each value.
    sentence : what the option means, for ``--help``; by default what the docstring of its class
        says, see :func:`meanings`.
    shown : what ``--help`` shows for the value, such as ``COLUMN``, where the type says too little.
    argument : what ``--help`` calls the value if it may be given without ``name=``.
    choices : the only values that are accepted beside the default, if they can be listed.
    least : the smallest number that is accepted.
    above : the largest number that is not accepted.
    share : whether the value must be between 0 and 1; it may be 0 if that is the `least`.
    needed : what a command says where the option has no value, if it does nothing without one.
    several : the field that gets the value if it is a list of two or more.
    pairs : a function of the name in any other ``name=value`` that says whether this field collects
        the pair.
    applies : the kinds of things that the option applies to, if a command is about several kinds;
        to all of them if none is named.
    main : whether ``--help`` explains it unasked, where there are too many options for a screen.
    needs : options of which one must be given with it.
    excludes : options that may not be given with it.
    """
    metadata = {**locals(), "choices": tuple(choices), "applies": tuple(applies)}
    if callable(metadata.pop("default")):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def declared_names(options: type) -> list[str]:
    """Return the names of a dataclass's options; its other fields no command line sets."""
    return [field.name for field in fields(options) if "sentence" in field.metadata]


def meanings(options: type) -> dict[str, str]:
    """Return what each option of a dataclass means, by name.

    It is what the declaration says, or the docstring of the class that declares the option.
    """
    declared = {field.name: field for field in fields(options)}
    found: dict[str, str] = {}
    for kind in reversed(options.__mro__):
        own = vars(kind).get("__dataclass_fields__", {})
        texts = documented(inspect.cleandoc(vars(kind).get("__doc__") or ""))
        found |= {name: text for name, text in texts.items() if own.get(name) is declared.get(name)}
    return {
        name: field.metadata.get("sentence") or found.get(name, "")
        for name, field in declared.items()
    }


def documented(docstring: str) -> dict[str, str]:
    """Return the sentences on each parameter or attribute that a docstring lists, by name."""
    entries = re.findall(r"^(\w+) : ((?:.+)(?:\n    .+)*)", docstring, re.M)
    return {name: " ".join(text.split()) for name, text in entries}


def broken_rules(options: Any) -> Iterator[tuple[str, str]]:
    """Yield each option that is given without what it needs, or with what it excludes.

    With it comes the first option that it needs, or the one that it excludes. An option is given
    where its value is not the default.
    """
    given = {
        declared.name
        for declared in fields(options)
        if getattr(options, declared.name) != declared.default
    }
    for declared in fields(options):
        if declared.name in given:
            needs = declared.metadata.get("needs", ())
            if needs and given.isdisjoint(needs):
                yield declared.name, needs[0]
            for other in declared.metadata.get("excludes", ()):
                if other in given:
                    yield declared.name, other


def check_declared(options: Any) -> None:
    """Refuse a value of a dataclass of options that its declaration does not take.

    Raises
    ------
    UserError : it is none of the choices, too small, or no share.
    """
    for declared in fields(options):
        name, value = declared.name, getattr(options, declared.name)
        choices = declared.metadata.get("choices")
        if choices and value != declared.default:
            check_choice(name, value, choices)
        check_limits(name, value, declared.metadata)


def check_limits(name: str, value: Any, declared: Mapping[str, Any]) -> None:
    """Refuse a number that is too small, or no share, as an option is declared."""
    least, above = declared.get("least"), declared.get("above")
    if declared.get("share"):
        check_share(name, value, zero=least == 0)
    elif least is not None and value is not None:
        check_minimum(name, value, least)
    if above is not None and value is not None and not value > above:
        raise UserError(f"{name} is {value:g}; it must be above {above:g}")


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


_SCALARS: Mapping[Any, Any] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_CONSTANTS = ("true", "false", "null")
_BACKSLASH = "\\"


def value_word(value: Any) -> str:
    """Return a value as it is typed on a command line."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(value_word, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def hydra_word(value: Any) -> str:
    """Return the text that stands for a value in a word ``name=TEXT`` of a Hydra command line.

    Parameters
    ----------
    value : None, a bool, number or text, or lists and mappings of these.

    Raises
    ------
    UserError : a text has an interpolation, or the key of a mapping is more than a name.
    """
    if isinstance(value, Mapping):
        for key in value:
            if not _is_plain(str(key)):
                raise UserError(f"{quoted(str(key))} cannot be written on a command line as a key")
        return f"{{{','.join(f'{key}:{hydra_word(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(hydra_word, value))}]"
    if not isinstance(value, str):
        return value_word(value)
    if "${" in value:
        raise UserError(f"{quoted(value)} has an interpolation, and is to stand for itself")
    return value if _is_plain(value) else _quoted(value)


def _is_plain(text: str) -> bool:
    """Say whether Hydra reads a text as itself, rather than as a number or a constant."""
    is_word = _PLAIN.fullmatch(text) and text.lower() not in _CONSTANTS
    return bool(is_word) and not is_number(text)


def _quoted(text: str) -> str:
    """Return a text in quotes; Hydra takes a backslash for one that escapes before a quote only."""
    runs = text.split("'")
    doubled = (f"{run}{run[len(run.rstrip(_BACKSLASH)) :]}" for run in runs)
    return "'" + "\\'".join(doubled) + "'"
