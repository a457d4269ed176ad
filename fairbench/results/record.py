"""The shape of a run's record: what is read of it is there, in the types that it is written in.

A seal shows that a record is what somebody sealed, and not that it was this project. All that is
stored is checked here, once, when it is read: what chooses or sets a component is a plain name or a
plain value, so that nothing which is made of it later is code, a path or an interpolation.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from fairbench.core.errors import UserError
from fairbench.core.files import UNREADABLE, DamagedError, opened
from fairbench.core.text import said

Check: TypeAlias = Callable[[Any], bool]

FILES = ("config.yaml", "cells.txt", "summary.csv", "metrics.parquet", "predictions.parquet")
# Of each a run chose one; its options are a part of the configuration, of the same name.
GROUPS = ("dataset", "split", "learner", "intervention", "method", "evaluator")
# What marks the data set of a run with data.verify=false: an option, and the end of its name.
VERIFIED, UNVERIFIED = "verified", "-unverified"
# The purposes of runs, the least important first; and those that comparisons include.
PURPOSES = DEMO, TUNING, PAPER, STUDY = ("demo", "tuning", "paper", "study")
COUNTED = (PAPER, STUDY)


_ID = re.compile("[0-9a-z]{1,64}")


def is_id(value: object) -> bool:
    """Say whether a value is an id of a cell, of data or of a split, which names its file."""
    return _fits(value, _ID)


def _fits(value: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def plain_id(text: str) -> str:
    """Return an id unchanged, after checking that it may be part of a file's name.

    Raises
    ------
    UserError : it may not: a stranger's files could name any path.
    """
    if not is_id(text):
        raise UserError(f"{text[:60]!r} is no id of what is stored in a results folder")
    return text


def _is_name(value: object) -> bool:
    """Say whether a value is a name of a column: any text that is one, and some."""
    return value != "" and _is_any_text(value)


def _is_any_text(value: object) -> bool:
    return isinstance(value, str) and not _SURROGATE.search(value)


_SURROGATE = re.compile("[\ud800-\udfff]")  # half a sign, which no file of text can hold


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_whole(value: object) -> bool:
    return type(value) is int and abs(value) < 2**63


def _is_number_or_none(value: object) -> bool:
    return value is None or isinstance(value, float) or _is_whole(value)


def are_strings(value: object) -> bool:
    """Say whether a value is a text for each of some names."""
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


# Of a component: the name of a file without its ending, and so no path.
_COMPONENT = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_OPTION = re.compile("[A-Za-z][A-Za-z0-9_]{0,99}")  # none that tells Hydra what to call
_TELLS_HYDRA = re.compile("_.*_", re.DOTALL)  # such as _target_; a column may be called _RACE


def _is_component(value: object) -> bool:
    return _fits(value, _COMPONENT)


def _is_plain(value: object) -> bool:
    """Say whether a value is plain data: a number, a text, or lists and mappings of these.

    A text refers to nothing else: OmegaConf replaces ``${...}``, and takes ``???`` for no value.
    """
    if isinstance(value, str):
        return _is_any_text(value) and "${" not in value and value != "???"
    if isinstance(value, dict):  # a number as a name is a text once it is stored, of another order
        is_text = all(isinstance(name, str) and not _TELLS_HYDRA.fullmatch(name) for name in value)
        return is_text and _is_plain([*value, *value.values()])
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, bool) or _is_number_or_none(value)


def _are_options(value: object) -> bool:
    """Say whether a value is a component: its name, and a plain value for each option."""
    return (
        isinstance(value, dict)
        and _is_component(value.get("name"))
        and all(map(_OPTION.fullmatch, value))
        and _is_plain(value)
    )


def _is_count(value: object) -> bool:
    return _is_whole(value) and value >= 0  # type: ignore[operator]


def _is_protect(value: object) -> bool:
    names = value if isinstance(value, list) else [value]
    return value is None or (all(map(_is_name, names)) and _is_plain(value))


# The parts of a configuration, and a check of each; the last ones are not in every version.
CONFIG: Mapping[str, Check] = {
    **dict.fromkeys(GROUPS, _are_options),
    "split": lambda value: _are_options(value) and _is_count(value.get("repeats", 1)),
    "seed": _is_count,
    "consistency": _are_options,
    "protect": _is_protect,
    "headline": _is_name,
}
NEEDED = CONFIG.keys() - {"consistency", "protect", "headline"}


def _are_numbers(value: object) -> bool:
    """Say whether a value is a record of numbers, of which a task has a family, and costs a key."""
    if not isinstance(value, dict):
        return False
    texts = [value[name] for name in ("family", "key") if name in value]
    numbers = [number for name, number in value.items() if name not in ("family", "key")]
    return all(map(_is_text, texts)) and all(map(_is_number_or_none, numbers))


# The entries of a record by which runs are listed and selected, beside its configuration.
SUMMARY: Mapping[str, Check] = {
    "protect": _is_name,
    "data": is_id,
    "rows": is_id,
    "purpose": lambda value: value is None or value in PURPOSES,  # none of earlier versions
}
# What else is read of it; the last ones are not in records of every version.
_REST: Mapping[str, Check] = {
    "fingerprint": _is_text,
    "files": lambda value: are_strings(value) and {*value} <= {*FILES},
    "data_sha256": are_strings,
    "versions": are_strings,
    "python": _is_text,
    "cpu": _is_text,
}
_LATER: Mapping[str, Check] = {
    "task": _are_numbers,
    "cost": _are_numbers,
    "git_commit": _is_text,
    "git_dirty": lambda value: isinstance(value, bool),
    "group_at_prediction": lambda value: isinstance(value, bool),
}


class Parts:
    """Parts of records: equal ones are one object, which is checked once."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Check, str], tuple[Any, str]] = {}

    def shared(self, name: str, value: Any, check: Check) -> tuple[Any, str]:
        """Return the part that is equal to this one, and its text as JSON of sorted names.

        Raises
        ------
        DamagedError : it is no such part.
        """
        key = check, repr(value)
        if key not in self._kept:
            if not check(value):
                raise DamagedError(f"{name} is none")
            self._kept[key] = value, json.dumps(value, sort_keys=True)
        return self._kept[key]


def checked(values: Mapping[str, Any], run: str, parts: Parts) -> dict[str, Any]:
    """Return a record, after checking all that is read of it, its configuration first.

    Parameters
    ----------
    run : the id by which it is stored, which is the digest of its configuration.

    Raises
    ------
    DamagedError, LookupError, TypeError, RecursionError : it is no record, or that of another run.
    """
    stored = values["config"]
    if not isinstance(stored, dict) or not NEEDED <= stored.keys() <= CONFIG.keys():
        raise DamagedError("the configuration has other parts")
    shared = {name: parts.shared(name, part, CONFIG[name]) for name, part in stored.items()}
    texts = ", ".join([f'"{name}": {shared[name][1]}' for name in sorted(shared)])
    if hashlib.sha256(f"{{{texts}}}".encode()).hexdigest()[:12] != run:
        raise DamagedError("it is the record of another run")
    config = {name: part for name, (part, _) in shared.items()}
    summary = {
        name: parts.shared(name, values.get(name), check)[0] for name, check in SUMMARY.items()
    }
    described = described_by(config)
    if any(values.get(name) != own for name, own in described.items()):
        raise DamagedError("its names or its seed are not those of its configuration")
    for name, check in (*_REST.items(), *_LATER.items()):
        if (name in values or name in _REST) and not check(values.get(name)):
            raise DamagedError(f"{name} is none")
    return {**values, **described, **summary, "config": config}


def described_by(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a record that follow from its configuration."""
    choices = {group: str(config[group]["name"]) for group in GROUPS}
    if config["dataset"].get(VERIFIED) is False:
        choices["dataset"] += UNVERIFIED
    return {"name": run_name(choices), "choices": choices, "seed": config["seed"]}


def run_name(chosen: Mapping[str, str]) -> str:
    """Return a short name for people of what a run chose, such as ``german, xgboost, ensemble``."""
    names = (chosen[group] for group in ("dataset", "learner", "intervention", "method"))
    return ", ".join(name for name in names if name != "none")


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
        raise UserError(said("results", "damaged", path=path)) from error


# A zip archive whose first file is one of a pack; logs of other benchmarks are zip archives, too.
_PACKED = re.compile(rb"PK\x03\x04.{26}(cells/|splits/|data/|runs/|manifest)", re.DOTALL)


def refuse_pack(folder: Path) -> None:
    """Refuse a pack in place of a results folder: it is unpacked before it is read.

    Raises
    ------
    UserError : it is one.
    """
    try:
        with open(opened(folder), "rb") as file:
            is_packed = _PACKED.match(file.read(40))
    except OSError:  # a folder, or nothing
        return
    if is_packed:
        raise UserError(said("results", "is_pack", folder=folder))
