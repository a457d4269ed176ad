"""Choosing runs by any option of their configuration, such as ``learner.max_depth=6``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fairbench.core.errors import UserError, nearest
from fairbench.results.runs import RunFolder


def with_options(folders: Sequence[Path], wanted: Mapping[str, set[str]]) -> list[Path]:
    """Return the folders of runs whose options have one of the wanted values each.

    Parameters
    ----------
    wanted : dotted name of an option -> its values, as they are written on a command line.

    Raises
    ------
    UserError : no run has an option of that name.
    """
    if not wanted or not folders:
        return list(folders)
    configurations = [dict(_flat(RunFolder(folder).config())) for folder in folders]
    for name in wanted:
        if not any(name in each for each in configurations):
            close = nearest(name, {option for each in configurations for option in each})
            hint = f"did you mean {' or '.join(close)}? " if close else ""
            raise UserError(f"no run has an option '{name}': {hint}`show` prints a run's options")
    values = {name: [_value(text) for text in texts] for name, texts in wanted.items()}
    pairs = zip(folders, configurations, strict=True)
    return [folder for folder, each in pairs if _matches(each, values)]


def _matches(configuration: Mapping[str, Any], wanted: Mapping[str, list[Any]]) -> bool:
    return all(
        name in configuration and configuration[name] in values for name, values in wanted.items()
    )


def _flat(node: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _value(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise UserError(f"'{text}' cannot be read as the value of an option") from None
