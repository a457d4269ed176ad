"""A policy: one YAML file of options and conditions, for Python, pytest and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from fairbench.core.errors import UserError, unknown_name
from fairbench.core.formats import shortened
from fairbench.core.safe_open import read_bytes
from fairbench.core.typed_options import typed_values

PREDICTIONS = "predictions"
_MOST = 100_000  # bytes


def policy_of(path: str | Path, options: type) -> dict[str, Any]:
    """Return the options that a policy gives, by their names on the command line.

    Every value is read as text, so that ``yes``, ``no`` and ``0.10`` are labels as they stand.

    Parameters
    ----------
    path : the policy file.
    options : the dataclass that declares the options. A policy may also name the file to judge as
        ``predictions``, relative to its own folder; that is returned as ``path``.

    Raises
    ------
    UserError : no such file, or one that is no mapping of names to texts or lists of texts; an
        option that is unknown or stands there twice.
    """
    path = Path(path)
    valid = [field.name for field in fields(options) if not field.metadata.get("hidden")]
    valid = [PREDICTIONS, *(name for name in valid if name not in _OF_A_COMMAND)]
    given: dict[str, Any] = {}
    for name, value in _entries(path):
        if name not in valid:
            raise unknown_name(f"option in {path.name}", name, valid)
        if name in given:
            raise UserError(f"{path.name} gives {name} twice: leave one of them out")
        given[name] = value
    predictions = given.pop(PREDICTIONS, "")
    values = typed_values(options, {name: value for name, value in given.items() if value})
    if predictions:
        if not isinstance(predictions, str):
            raise UserError(f"{path.name}: {PREDICTIONS} is one file, not several")
        values["path"] = path.parent / predictions
    return values


# What a policy leaves to whoever gives the command.
_OF_A_COMMAND = ("path", "out", "results", "detail", "formats", "repeat", "policy", "junit",
                 "sarif", "state")  # fmt: skip


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a policy, values as texts or lists of them."""
    import yaml

    try:
        text = read_bytes(path, _MOST).decode()
    except FileNotFoundError:
        raise UserError(f"policy={path}: there is no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"policy={path} is no text in UTF-8") from None
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except RecursionError:
        raise UserError(f"{path.name} cannot be read: its lists are nested too deep") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        why = getattr(error, "problem", None) or "it is no YAML"
        raise UserError(f"{path.name}{line} cannot be read: {why}") from None
    if not isinstance(root, yaml.MappingNode) or not root.value:
        raise UserError(
            f"{path.name} is no policy: it has a line for each option, such as "
            "fail_if: impact_ratio<0.8"
        )
    for key, value in root.value:
        if not isinstance(key, yaml.ScalarNode):
            raise UserError(f"{path.name}, line {key.start_mark.line + 1}: a name is one word")
        items = value.value if isinstance(value, yaml.SequenceNode) else [value]
        if not all(isinstance(item, yaml.ScalarNode) for item in items):
            raise UserError(
                f"{path.name}, line {value.start_mark.line + 1}: {shortened(key.value)} is a text "
                "or a list of texts"
            )
        texts = [item.value for item in items]
        yield key.value, texts if isinstance(value, yaml.SequenceNode) else texts[0]
