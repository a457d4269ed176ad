"""Verbs and functions that other distributions add to fairbench, by their entry points.

An entry point of the group `fairbench.verbs` is named as the verb, and its value is a module like
those of `fairbench.cli.verbs`, which also has `MADE_FOR`, the version of fairbench that it was made
for, such as "0.1". One of the group `fairbench.functions` is a function or class that
``import fairbench`` has under its name. Nothing of an extension is imported before it is asked for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from fairbench.components import is_installed
from fairbench.core import VERSION
from fairbench.core.errors import UserError
from fairbench.core.text import said

VERBS, FUNCTIONS = "fairbench.verbs", "fairbench.functions"
# What the extensions of this repository add, and the folder of each.
OURS = {
    VERBS: {
        "alternative": "search", "choose": "search", "dossier": "dossiers", "label": "label",
        "leaderboard": "rank", "rank": "rank", "resolve": "rank", "tune": "search",
        "watch": "watch",
    },
    FUNCTIONS: {"RankReport": "rank", "rank": "rank"},
}  # fmt: skip


@cache
def added(group: str) -> dict[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by their names; two have one name by mistake only."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=group):
        if point not in found.get(point.name, ()):
            found[point.name] = (*found.get(point.name, ()), point)
    return dict(sorted(found.items()))


def verb_module(verb: str) -> ModuleType:
    """Import the module of a verb that an extension adds.

    Raises
    ------
    UserError : it is not installed, added by two distributions, or made for another version.
    """
    if verb not in added(VERBS):
        raise UserError(_missing(f"fairbench {verb}", OURS[VERBS][verb]))
    if problem := problem_of(verb):
        raise UserError(f"fairbench {verb}: {problem}")
    return added(VERBS)[verb][0].load()


def problem_of(verb: str) -> str:
    """Return why a verb that is added cannot be used, nothing if it can."""
    points = added(VERBS)[verb]
    named = [point.dist.name if point.dist else point.value for point in points]
    if len(points) > 1:
        return f"{' and '.join(sorted(named))} both add it: uninstall one of them"
    if (file := file_of(verb)) is None:
        return f"{named[0]} names {points[0].module}, which is not there: install it again"
    text = file.read_text(encoding="utf-8")
    made_for = re.search(r"""^MADE_FOR *= *["'](.*?)["']""", text, re.M)
    if not made_for or made_for[1] != ".".join(VERSION.split(".")[:2]):
        version = made_for[1] if made_for else "of no version that it names"
        return said("cli", "other_version", name=named[0], version=version, this=VERSION)
    return ""


def file_of(verb: str) -> Path | None:
    """Return the file of the module that a verb is added by, None if there is none."""
    try:
        spec = find_spec(added(VERBS)[verb][0].module)
    except ImportError:
        return None
    return Path(spec.origin) if spec and spec.origin else None


def function(name: str) -> Any:
    """Return what an extension adds to ``import fairbench`` under a name.

    Raises
    ------
    AttributeError : nothing is added under it.
    ImportError : an extension of ours adds it, which is not installed.
    """
    if name in added(FUNCTIONS):
        return added(FUNCTIONS)[name][0].load()
    if name in OURS[FUNCTIONS]:
        raise ImportError(_missing(f"fairbench.{name}", OURS[FUNCTIONS][name]))
    raise AttributeError(f"module 'fairbench' has no attribute '{name}'")


def _missing(what: str, folder: str) -> str:
    """Return which extension has something, and what installs it here."""
    made = f"pip install extensions/{folder} in a clone of fairbench, or its wheel"
    command = made if is_installed() else "make setup"
    return f"{what} is in the extension fairbench-{folder}, which is not installed: {command}"
