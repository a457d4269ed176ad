"""The shape of a run's record: what is read of it is there, in the types that it is written in.

A seal shows that a record is what somebody sealed, and not that it was this project.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from fairbench.core.errors import UserError
from fairbench.core.files import UNREADABLE

Check: TypeAlias = Callable[[Any], bool]

FILES = ("config.yaml", "cells.txt", "summary.csv", "metrics.parquet", "predictions.parquet")
# Of each a run chose one; its options are a part of the configuration, of the same name.
GROUPS = ("dataset", "split", "learner", "intervention", "method", "evaluator")
# The purposes of runs, the least important first; and those that comparisons include.
PURPOSES = DEMO, TUNING, PAPER, STUDY = ("demo", "tuning", "paper", "study")
COUNTED = (PAPER, STUDY)


_ID = re.compile("[0-9a-z]{1,64}")


def is_id(value: object) -> bool:
    """Say whether a value is an id of a cell, of data or of a split, which names its file."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _is_name(value: object) -> bool:
    """Say whether a value is a name of a column: any text that is one, and some."""
    return isinstance(value, str) and value != "" and not _SURROGATE.search(value)


_SURROGATE = re.compile("[\ud800-\udfff]")  # half a sign, which no file of text can hold


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_whole(value: object) -> bool:
    return type(value) is int and abs(value) < 2**63


def _is_number_or_none(value: object) -> bool:
    return value is None or isinstance(value, float) or _is_whole(value)


def _is_purpose_or_none(value: object) -> bool:
    return value is None or value in PURPOSES  # there is none in records of earlier versions


def are_strings(value: object) -> bool:
    """Say whether a value is a text for each of some names."""
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _are_choices(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() >= set(GROUPS)
        and all(map(_is_text, (*value, *value.values())))
    )


def _are_options(value: object) -> bool:
    """Say whether a value is a group's options: a value for each name."""
    return isinstance(value, dict) and all(map(_is_text, value))


def _is_split(value: object) -> bool:
    return isinstance(value, dict) and _are_options(value) and _is_whole(value.get("repeats", 1))


# The parts of a configuration, and a check of each.
CONFIG: Mapping[str, Check] = MappingProxyType(
    {**dict.fromkeys(GROUPS, _are_options), "split": _is_split, "seed": _is_whole}
)


def _is_config(value: object) -> bool:
    return (
        isinstance(value, dict)
        and all(check(value.get(name)) for name, check in CONFIG.items())
        and _are_options(value.get("consistency", {}))
    )


def _is_task(value: object) -> bool:
    """Say whether a value is a record of the task: its family, and numbers."""
    if not isinstance(value, dict):
        return False
    numbers = [number for name, number in value.items() if name != "family"]
    return _is_text(value.get("family", "")) and all(map(_is_number_or_none, numbers))


def _are_files(value: object) -> bool:
    return isinstance(value, dict) and set(value) <= set(FILES) and are_strings(value)


def _are_costs(value: object) -> bool:
    """Say whether a value is the cost of a run: seconds, and the key of cells of equal cost."""
    if not isinstance(value, dict):
        return False
    seconds = [number for name, number in value.items() if name != "key"]
    return _is_text(value.get("key", "")) and all(map(_is_number_or_none, seconds))


# The entries of a record by which runs are listed and selected, and a check of each.
SUMMARY: Mapping[str, Check] = MappingProxyType(
    {
        "name": _is_text,
        "choices": _are_choices,
        "seed": _is_whole,
        "protect": _is_name,
        "data": is_id,
        "rows": is_id,
        "purpose": _is_purpose_or_none,
        "config": _is_config,
    }
)
# What else is read of it; the last ones are not in records of every version.
_REST: Mapping[str, Check] = MappingProxyType(
    {
        "fingerprint": _is_text,
        "files": _are_files,
        "data_sha256": are_strings,
        "versions": are_strings,
        "python": _is_text,
        "cpu": _is_text,
    }
)
_LATER: Mapping[str, Check] = MappingProxyType(
    {
        "task": _is_task,
        "cost": _are_costs,
        "git_commit": _is_text,
        "git_dirty": lambda value: isinstance(value, bool),
        "group_at_prediction": lambda value: isinstance(value, bool),
    }
)


def is_record(values: Mapping[str, Any]) -> bool:
    """Say whether values have the shape of a record."""
    return all(check(values.get(name)) for name, check in {**SUMMARY, **_REST}.items()) and all(
        check(values[name]) for name, check in _LATER.items() if name in values
    )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Read a file of a finished run.

    Raises
    ------
    UserError : it is missing or damaged.
    """
    try:
        yield
    except UNREADABLE as error:
        raise UserError(
            f"{path} is missing or damaged: repeat the command of that run, which makes it again "
            "and fits nothing that is in the store"
        ) from error
