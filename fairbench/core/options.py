"""How an option of a command is declared: a field of a frozen dataclass with one sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, field, fields
from typing import Any

from fairbench.core.errors import check_choice, check_minimum, check_share


def option(
    default: Any,
    sentence: str,
    *,
    shown: str = "",
    argument: str = "",
    choices: Sequence[str] = (),
    least: float | None = None,
    share: bool = False,
    several: str = "",
    pairs: Callable[[str], bool] | None = None,
    applies: Sequence[str] = (),
) -> Any:
    """Declare a field that a command line sets as ``name=value``.

    Parameters
    ----------
    default : the value if none is given; a function without arguments is called for each value.
    sentence : what the option means, for ``--help``.
    shown : what ``--help`` shows for the value, such as ``COLUMN``, where the type says too little.
    argument : what ``--help`` calls the value if it may be given without ``name=``.
    choices : the only values that are accepted beside the default, if they can be listed.
    least : the smallest number that is accepted.
    share : whether the value must be between 0 and 1.
    several : the field that gets the value if it is a list of two or more.
    pairs : a function of the name in any other ``name=value`` that says whether this field collects
        the pair.
    applies : the kinds of things that the option applies to, if a command is about several kinds;
        to all of them if none is named.
    """
    metadata = {
        "sentence": sentence,
        "shown": shown,
        "argument": argument,
        "choices": tuple(choices),
        "least": least,
        "share": share,
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
    default : the value of the field.
    given : whether the field gets the names of the options that were given, as a frozenset.
    """
    return field(default=default, metadata={"hidden": True, "given": given})


def check_declared(options: Any) -> None:
    """Refuse a value of a dataclass of options that its declaration does not take.

    Raises
    ------
    UserError : it is none of the choices, under the least, or no share.
    """
    for declared in fields(options):
        name, value = declared.name, getattr(options, declared.name)
        choices = declared.metadata.get("choices")
        if choices and value != declared.default:
            check_choice(name, value, choices)
        if (least := declared.metadata.get("least")) is not None and value is not None:
            check_minimum(name, value, least)
        if declared.metadata.get("share"):
            check_share(name, value)
