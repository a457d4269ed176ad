"""Reading a command line into the dataclass that declares a command's options.

Every command reads its words here, so that all of them agree: ``name=value`` in any order and any
place, lists as ``[a,b]``, ``true`` or ``false``, and ``null`` for the default.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from fairbench.core.errors import UserError, check_minimum, did_you_mean, nearest, unknown_name

T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """One option as a dataclass declares it.

    Attributes
    ----------
    kind : the type of a value, or of a list's items.
    listed : whether the value is a list.
    default : the value where none is given.
    """

    name: str
    kind: type
    listed: bool
    default: Any
    metadata: Any

    @property
    def argument(self) -> str:
        """What the value is called where it may be given without its name, if it may."""
        return str(self.metadata.get("argument", ""))

    @property
    def pairs(self) -> bool:
        """Whether the option collects other ``name=value`` words."""
        return self.metadata.get("pairs") is not None

    def read(self, text: str) -> Any:
        """Return the value that a text means.

        Raises
        ------
        UserError : it means none.
        """
        if text == "null":
            return self.default
        if not self.listed:
            return self._single_value(text)
        return tuple(self._single_value(item) for item in items(text, self.name))

    def _single_value(self, text: str) -> Any:
        """Return a single value of the option's type."""
        choices = self.metadata.get("choices")
        if choices and text not in choices:
            raise unknown_name(self.name, text, filter(None, choices))
        if self.kind is bool:
            return self._truth(text)
        if self.kind in (int, float):
            return self._number(text)
        if self.kind is Path and not text:
            raise UserError(f"{self.name}= has no value: name a file or folder")
        return self.kind(text)

    def _truth(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise UserError(f"{self.name} is '{text}'; it must be true or false")
        return text.lower() == "true"

    def _number(self, text: str) -> float:
        """Return a finite number, at least the option's smallest value."""
        try:
            number: float = self.kind(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            expected = "a whole number" if self.kind is int else "a number"
            raise UserError(f"{self.name} is '{text}'; it must be {expected}")
        if (least := self.metadata.get("least")) is not None:
            check_minimum(self.name, number, least)
        return number


def options_of(options: type) -> dict[str, Option]:
    """Return the options that a dataclass declares, by name, in the order of its fields."""
    kinds = get_type_hints(options)
    visible_fields = (field for field in fields(options) if not field.metadata.get("hidden"))
    return {field.name: _option(field, kinds[field.name]) for field in visible_fields}


def _option(declared: Field[Any], kind: Any) -> Option:
    """Return the option that a field of a dataclass with this type declares."""
    default = declared.default
    if declared.default_factory is not MISSING:
        default = declared.default_factory()
    if isinstance(kind, UnionType):
        (kind,) = (arg for arg in get_args(kind) if arg is not NoneType)
    listed = get_origin(kind) is tuple
    item = get_args(kind)[0] if listed else kind
    return Option(declared.name, item, listed, default, declared.metadata)


def read(options: type[T], words: Sequence[str]) -> T:
    """Read the words of a command line, and return the options with their values.

    Raises
    ------
    UserError : an unknown option, one that is given twice, a value that cannot be read, or a word
        that is no option.
    """
    declared = options_of(options)
    texts: dict[str, Any] = {}
    for name, text in _words_by_option(declared, words):
        if declared[name].pairs or (declared[name].argument and declared[name].listed):
            texts.setdefault(name, []).append(text)
        elif name in texts:
            raise UserError(f"{name} is given twice: {name}={texts[name]} and {name}={text}")
        else:
            texts[name] = text
    values = dict(partial(_value, declared[name])(text) for name, text in texts.items())
    for field in fields(options):  # type: ignore[arg-type]
        if field.metadata.get("given"):
            values[field.name] = frozenset(texts)
    return options(**values)


def _value(option: Option, text: Any) -> tuple[str, Any]:
    """Return the name of a field and the value that a text sets it to."""
    if option.pairs:
        return option.name, tuple(text)
    if isinstance(text, list):
        return option.name, tuple(value for item in text for value in option.read(item))
    list_option = option.metadata.get("several")
    if list_option and len(values := items(text, option.name)) > 1:
        return list_option, values
    if list_option:
        return option.name, "".join(items(text, option.name))
    return option.name, option.read(text)


def _words_by_option(
    declared: dict[str, Option], words: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    """Yield for each word the name of its option, and the text of the value."""
    slots = [option for option in declared.values() if option.argument and not option.pairs]
    collecting = [option for option in declared.values() if option.pairs]
    for word in words:
        name, equals, text = word.partition("=")
        if equals and name in declared and not declared[name].pairs:
            slots = [slot for slot in slots if slot.name != name or slot.listed]
            yield name, text
        elif word.startswith("--"):
            raise _unknown_word(word, declared)
        elif slots and Path(word).is_file():
            yield slots[0].name, word
            slots = slots if slots[0].listed else slots[1:]
        elif equals and (
            takers := [collector for collector in collecting if collector.metadata["pairs"](name)]
        ):
            yield takers[0].name, (name, text)
        elif slots and not equals:
            yield slots[0].name, word
            slots = slots if slots[0].listed else slots[1:]
        else:
            raise _unknown_word(word, declared)


# What other commands and libraries call the columns of groups.
_COLUMNS_OF_GROUPS = ("sensitive", "sensitive_features", "protect", "protected", "attribute")


def _unknown_word(word: str, declared: dict[str, Option]) -> UserError:
    """Return the error for a word that no option takes."""
    name, equals, _ = word.partition("=")
    name = name.lstrip("-").replace("-", "_") if word.startswith("-") else name
    valid = [option.name for option in declared.values() if not option.pairs]
    if not declared:
        return UserError(f"unexpected word '{word}': this command has no options")
    if name in valid and declared[name].kind is bool:
        return UserError(f"'{word}' is no option: write {name}=true or {name}=false")
    if name in valid and equals:
        return UserError(f"'{word}' begins with dashes: write {word.lstrip('-')}")
    if name in valid:
        return UserError(f"'{word}' has no value: write {name}={value_shown(declared[name])}")
    if name in _COLUMNS_OF_GROUPS and "group" in valid:
        return UserError(f"unknown option '{name}': columns of groups are named with group=")
    if (equals or word.startswith("-")) and (group := _meant_of_run(name, valid)):
        return UserError(
            f"unknown option '{name}': {group}= is an option of fairbench run, not of this "
            "command; --help lists its options"
        )
    if equals or word.startswith("-"):
        return unknown_name("option", name, valid)
    hint = did_you_mean(name, valid, "{}=") or "--help lists the options"
    return UserError(
        f"unexpected word '{word}': options are written name=value, and a value with a space "
        f"needs quotes; {hint}"
    )


def _meant_of_run(name: str, valid: Sequence[str]) -> str:
    """Return the choice of a run that `name` is nearest to; empty if a valid option is nearer."""
    from fairbench.cli.choices import GROUPS

    nearest_name = next(iter(nearest(name, [*valid, *GROUPS, "experiment"])), "")
    return "" if nearest_name in valid else nearest_name


def items(text: str, name: str) -> tuple[str, ...]:
    """Return the items of a list such as ``[a,"b,c"]``; the brackets may be left out.

    Raises
    ------
    UserError : an unmatched bracket or quotation mark.
    """
    if text.startswith("[") != text.endswith("]"):
        raise UserError(f"{name}={text} cannot be read: a list is written [a,b]")
    line = text.removeprefix("[").removesuffix("]")
    try:
        cells = next(csv.reader([line], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise UserError(f"{name}={text} cannot be read: {error}") from None
    return tuple(item for cell in cells if (item := cell.strip()))


def value_shown(option: Option) -> str:
    """Return the text that ``--help`` shows for an option's value."""
    if declared := option.metadata.get("shown"):
        return str(declared)
    if choices := option.metadata.get("choices"):
        return "|".join(filter(None, choices))
    placeholder = {bool: "true|false", int: "NUMBER", float: "NUMBER", Path: "PATH"}.get(
        option.kind, "NAME"
    )
    return f"[{placeholder},...]" if option.listed else placeholder
