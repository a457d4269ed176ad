"""One result kept, so that all members of a bag share what is made of their one frame."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def last_call(function: Callable[P, R]) -> Callable[P, R]:
    """Keep the result of the last call; arguments, positional ones only, are told by identity.

    The strong references to the arguments keep their identities from being given to others.
    """
    kept: tuple[tuple[Any, ...], R] | None = None

    @wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal kept
        if kept is None or any(a is not b for a, b in zip(kept[0], args, strict=True)):
            kept = (args, function(*args, **kwargs))
        return kept[1]

    return remembered
